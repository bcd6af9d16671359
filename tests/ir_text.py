"""The IR as text: one node a line, parts indented."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.ir import lower
from gradlint.ir import nodes as ir

_HIDDEN = ("at", "cached", "code", "source", "is_generator", "globals", "nonlocals")


def text(statements: list[ir.Node]) -> str:
    """These statements, with the bodies of the functions among them."""
    return "".join(f"{line}\n" for statement in statements for line in _lines(statement, 0))


def _lines(part: object, depth: int, label: str = "") -> Iterator[str]:
    indent = "  " * depth + (f"{label}: " if label else "")
    if isinstance(part, ir.Node | ir.Parameter | ir.Handler):
        yield from _node(part, indent, depth)
    elif isinstance(part, list | tuple) and not _is_plain(part):
        for entry in part:
            yield from _lines(entry, depth, label)
    elif part is not None and part != [] and part != ():
        yield f"{indent}{type(part).__name__ if isinstance(part, ast.AST) else repr(part)}"


def _node(node: ir.Node | ir.Parameter | ir.Handler, indent: str, depth: int) -> Iterator[str]:
    fields = {name: getattr(node, name) for name in _slots(type(node)) if name not in _HIDDEN}
    if isinstance(node, ir.Function):
        fields["body"] = lower.body(node)
    plain = {name: value for name, value in fields.items() if _is_plain(value)}
    words = " ".join(
        f"{name}={value!r}" for name, value in plain.items() if value not in (None, [], ())
    )
    place = f"{node.at[0]}:{node.at[1]} " if isinstance(node, ir.Node) else ""
    yield f"{indent}{place}{type(node).__name__} {words}".rstrip()
    for name, value in fields.items():
        if name not in plain:
            yield from _lines(value, depth + 1, name)


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(entry) for entry in value)
    return not isinstance(value, ir.Node | ir.Parameter | ir.Handler | ast.AST)


def _slots(kind: type) -> list[str]:
    return [slot for base in reversed(kind.__mro__) for slot in getattr(base, "__slots__", ())]
