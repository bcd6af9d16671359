"""Syntax that is newer than the oldest Python gradlint runs on: what it is called, and which Python
brought it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import libcst as cst

_Version = tuple[int, int]
_KINDS: dict[type[cst.CSTNode], tuple[_Version, str]] = {
    cst.TypeParameters: ((3, 12), "type parameters"),
    cst.TypeAlias: ((3, 12), "a `type` statement"),
    cst.TemplatedString: ((3, 14), "a template string"),
    cst.LazyImport: ((3, 15), "a lazy import"),
    cst.LazyImportFrom: ((3, 15), "a lazy import"),
    cst.StarredDictComp: ((3, 15), "unpacking in a comprehension"),
}


def found(module: cst.Module) -> list[str]:
    """What this Python does not read in a module, each with the Python that brought it, the newest
    first.
    """
    seen = {each for node in walk(module) for each in _of(node)}
    return [
        f"{name} (Python 3.{version[1]})"
        for version, name in sorted(seen, reverse=True)
        if version > sys.version_info
    ]


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all nodes in it, in the order of the text."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending.extend(reversed(each.children))


def _of(node: cst.CSTNode) -> Iterator[tuple[_Version, str]]:
    if type(node) in _KINDS:
        yield _KINDS[type(node)]
    match node:
        case cst.TypeParam(default=cst.BaseExpression()):
            yield (3, 13), "defaults of type parameters"
        case (
            cst.ExceptHandler(type=cst.Tuple(lpar=[]))
            | cst.ExceptStarHandler(type=cst.Tuple(lpar=[]))
        ):
            yield (3, 14), "exceptions without parentheses"
        case cst.BaseSimpleComp(elt=cst.StarredElement()):
            yield (3, 15), "unpacking in a comprehension"
        case cst.FormattedString() if _is_nested(node):
            yield (3, 12), "quotes, backslashes or comments within the fields of an f-string"


def _is_nested(node: cst.FormattedString) -> bool:
    """Whether a field of an f-string holds what only could stand there since PEP 701."""
    fields = [
        part.expression for part in node.parts if isinstance(part, cst.FormattedStringExpression)
    ]
    text = "".join(map(cst.Module([]).code_for_node, fields))
    is_short = len(node.end) == 1
    return node.end in text or "\\" in text or "#" in text or (is_short and "\n" in text)
