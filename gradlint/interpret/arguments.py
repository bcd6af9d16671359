"""Arguments of an operation, as the tape has them: constants, slices and symbols."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint.interpret.values import (
    Abstract,
    Const,
    Object,
    Sequence,
    Tensor,
    Unknown,
)

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def given(
    m: Machine, args: Iterable[Abstract], kwargs: dict[str, Abstract]
) -> tuple[tuple[int | str, object], ...]:
    """The constants, tuples of them and tensors among an operation's arguments, and the symbols of
    others, by position or name.
    """
    found: list[tuple[int | str, object]] = [
        (key, _argument(m, each)) for key, each in enumerate(args)
    ]
    if kwargs:
        found += [(key, _argument(m, each)) for key, each in kwargs.items()]
    return tuple([each for each in found if each[1] is not None])


def bounds(index: Abstract) -> slice | None:
    """The slice that an index is: its bounds are constants, or the symbols of what is not known."""
    match index:
        case Const(value=slice() as known):
            return known
        case Object(cls="builtins.slice", state={"bounds": [*given]}):
            found = [
                bound.value
                if isinstance(bound, Const)
                else bound.symbol
                if isinstance(bound, Unknown)
                else bound
                for bound in given
            ]
            return slice(*found)
    return None


def _argument(m: Machine, value: Abstract) -> object:
    match value:
        case Tensor():
            return value.node
        case Unknown():
            known = (
                m.tensors[value.symbol].node
                if value.symbol in m.tensors
                else m.nodes.get(value.symbol)
            )
            return value.symbol if known is None else known
        case Const():
            return value.value
        case Object(cls="builtins.slice"):
            return bounds(value)
        case Sequence() if not value.open and all(isinstance(item, Const) for item in value.items):
            return tuple(item.value for item in value.items if isinstance(item, Const))
    return None
