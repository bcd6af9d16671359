"""Strings of libcst as those of `ast`: plain ones, formatted ones, templates, and several in a row.

What stands within a formatted string has its place as Python 3.12 and later give it; 3.11 often
gives another one.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import libcst as cst

from gradlint.source.concrete.places import moved
from gradlint.source.kinds import Interpolation, TemplateStr

if TYPE_CHECKING:
    from gradlint.source.concrete.expressions import Expressions

_QUOTE = re.compile(r'\\.|"', re.DOTALL)  # or what a backslash keeps from being one
_LINE_END = re.compile(r"\r\n?")
_Field = cst.FormattedStringExpression | cst.TemplatedStringExpression
_Formatted = cst.FormattedString | cst.TemplatedString


def string(convert: Expressions, node: cst.BaseString) -> ast.expr:
    """A string, or several in a row, as one expression."""
    parts = list(_in_a_row(node))
    place = convert.places.at(node)
    values = [value for part in parts for value in _values(convert, part)]
    if any(isinstance(part, cst.TemplatedString) for part in parts):
        template: ast.expr = TemplateStr(_joined(values), **place)
        return template
    if any(isinstance(part, cst.FormattedString) for part in parts):
        return ast.JoinedStr(_joined(values), **place)
    constants = [value for value in values if isinstance(value, ast.Constant)]
    whole: Any = b"" if isinstance(constants[0].value, bytes) else ""
    return ast.Constant(whole.join(each.value for each in constants), constants[0].kind, **place)


def _in_a_row(node: cst.BaseString) -> Iterator[cst.SimpleString | _Formatted]:
    while isinstance(node, cst.ConcatenatedString):
        yield node.left
        node = node.right
    assert isinstance(node, cst.SimpleString | _Formatted)
    yield node


def _values(convert: Expressions, node: cst.SimpleString | _Formatted) -> Iterator[ast.expr]:
    if isinstance(node, cst.SimpleString):
        kind = "u" if node.value.startswith("u") else None
        yield ast.Constant(_evaluated(node.value), kind, **convert.places.at(node))
    else:
        yield from _contents(convert, node.parts, "r" in node.prefix)


def _contents(
    convert: Expressions, parts: Iterable[cst.CSTNode], is_raw: bool, is_in_spec: bool = False
) -> Iterator[ast.expr]:
    """What stands between the quotes of a formatted string, or behind the colon of a field: there,
    all is formatted.
    """
    for part in parts:
        if isinstance(part, _Field):
            yield from _field(convert, part, is_raw, is_in_spec)
        else:
            assert isinstance(part, cst.FormattedStringText | cst.TemplatedStringText)
            yield ast.Constant(_decoded(part.value, is_raw), **convert.places.at(part))


def _field(
    convert: Expressions, node: _Field, is_raw: bool, is_in_spec: bool
) -> Iterator[ast.expr]:
    places, value = convert.places, convert(node.expression)
    at, begin = places.at(node), moved(places.of(node).start, 1)
    conversion = -1 if node.conversion is None else ord(node.conversion)
    if node.equal is not None:  # f"{x = }"
        end = places.behind_blanks(places.of(node.equal).end)
        yield ast.Constant(
            _LINE_END.sub("\n", places.text(begin, end)), **places.between(begin, end)
        )
        if conversion == -1 and node.format_spec is None:
            conversion = ord("r")
    spec = None if node.format_spec is None else _spec(convert, node, node.format_spec, is_raw)
    if isinstance(node, cst.FormattedStringExpression) or is_in_spec:
        yield ast.FormattedValue(value, conversion, spec, **at)
    else:
        text = places.text(begin, places.end(node.expression))
        yield Interpolation(value, text, conversion, spec, **at)


def _spec(
    convert: Expressions, field: _Field, parts: Sequence[cst.CSTNode], is_raw: bool
) -> ast.JoinedStr:
    """What stands behind the colon of a field; its place begins at the colon."""
    end = moved(convert.places.of(field).end, -1)
    begin = moved(convert.places.of(parts[0]).start if parts else end, -1)
    return ast.JoinedStr(
        _joined(_contents(convert, parts, is_raw, True)), **convert.places.between(begin, end)
    )


def _joined(values: Iterable[ast.expr]) -> list[ast.expr]:
    """The values with texts that stand side by side made one, and without those that are empty."""
    found: list[ast.expr] = []
    for value in values:
        last = found[-1] if found else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            # both are texts
            last.value = f"{last.value}{value.value}"  # type: ignore[str-bytes-safe]
            last.end_lineno, last.end_col_offset = value.end_lineno, value.end_col_offset
        else:
            found.append(value)
    return [value for value in found if not isinstance(value, ast.Constant) or value.value]


def _decoded(text: str, is_raw: bool) -> str:
    """The text of a formatted string, with its escapes and doubled braces evaluated."""
    text = text.replace("{{", "{").replace("}}", "}")
    if is_raw or "\\" not in text:
        return _LINE_END.sub("\n", text)
    quoted = _QUOTE.sub(lambda found: '\\"' if found[0] == '"' else found[0], text)
    slashes = len(text) - len(text.rstrip("\\"))
    closed = quoted + "\\" * (slashes % 2)  # one right before a field escapes nothing
    return str(_evaluated(f'"""{closed}"""'))


def _evaluated(literal: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape
        return ast.literal_eval(literal)
