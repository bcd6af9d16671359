"""Whether an expression needs parentheses to be an operand, and where those of one end."""

from __future__ import annotations

import ast

from gradlint.source.parse import expression

ATOMS = (
    ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Dict, ast.Set, ast.ListComp,
    ast.DictComp,
    ast.SetComp, ast.JoinedStr,
)  # fmt: skip


def enclosed(content: str) -> str:
    """An expression that can be an operand: in parentheses, unless it is an atom on one line."""
    node = expression(f"({content})")
    if isinstance(node, ATOMS) and "\n" not in content and "\r" not in content:
        return content
    if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | complex):
        return content
    is_one = content.startswith("(") and content.endswith(")") and _closes_at_the_end(content)
    return content if is_one else f"({content})"


def _closes_at_the_end(content: str) -> bool:
    """Whether the parenthesis that opens `content` is the one that closes it."""
    try:
        ast.parse(f"({content[1:-1]}\n)", mode="eval")
    except SyntaxError:
        return False
    return True


def back(text: str, offset: int) -> int:
    """The offset behind what stands before `offset`, white space apart."""
    while offset and text[offset - 1] in " \t\r\n\f":
        offset -= 1
    return offset


def forth(text: str, offset: int) -> int:
    """The offset of what stands behind `offset`, white space apart."""
    while offset < len(text) and text[offset] in " \t\r\n\f":
        offset += 1
    return offset
