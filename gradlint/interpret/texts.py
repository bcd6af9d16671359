"""Texts made from templates: `f"epoch {epoch}"`, `"layer%d" % i`."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradlint.interpret.tables import EVALUATE, handles
from gradlint.interpret.values import (
    Abstract,
    Const,
    Sequence,
    Unknown,
    is_small,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
_WIDTH = re.compile(r"[0-9]{4}|\*")
_CONVERSIONS: dict[str, Callable[[object], object]] = {
    "": lambda value: value,
    "s": str,
    "r": repr,
    "a": ascii,
}
_WRITTEN = (str, int, float, bool, type(None))


def filled(template: str | bytes, values: Abstract) -> str | None:
    """A template filled with constants, `"layer%d" % i`; none where something is unknown, or a
    width is large.
    """
    items = values.items if isinstance(values, Sequence) else [values]
    given = [item.value for item in items if isinstance(item, Const)]
    if isinstance(template, bytes) or not is_small(template, *given) or _WIDTH.search(template):
        return None
    try:
        return template % tuple(given)
    except (TypeError, ValueError, KeyError):
        return None


@handles(EVALUATE, ir.Format)
def format_string(m: Machine, node: ir.Format, frame: Frame) -> Abstract:
    parts = [m.evaluate(part, frame) for part in node.parts]
    constants = [part.value for part in parts if isinstance(part, Const)]
    if len(constants) == len(parts) and is_small(*constants):
        return Const("".join(map(str, constants)))
    symbol = m.session.constant_symbol("format")
    for part in parts:
        symbol = symbol.derive(m.symbol(part), frame.text(node))
    return Unknown(symbol, data=True, type="str")


@handles(EVALUATE, ir.Formatted)
def formatted(m: Machine, node: ir.Formatted, frame: Frame) -> Abstract:
    """`{value!r:spec}`: computed where both are known, and the width is not large."""
    value = m.evaluate(node.value, frame)
    spec = m.evaluate(node.spec, frame) if node.spec is not None else Const("")
    if (
        isinstance(value, Const)
        and isinstance(spec, Const)
        and _is_written(value.value, spec.value)
    ):
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return Const(format(_CONVERSIONS[node.conversion](value.value), spec.value))
    key = ("format", node.conversion, m.symbol(spec))
    return Unknown(m.symbol(value).derive(key, frame.text(node)), data=True, type="str")


def _is_written(value: object, spec: str) -> bool:
    return isinstance(value, _WRITTEN) and is_small(value) and not _WIDTH.search(spec)
