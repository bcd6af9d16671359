"""Numbers and arrays that left torch and come back: what a new tensor is made from, as far as can
be told.

A Python number that is handed on as it came out is the very object. One that equals a number that
left torch a moment ago is linked to it, too, and so is one that the source of the function that
took the other out computes from it; constants of the source are not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import CodeType
from typing import Any

import torch

from gradlint.tape import Kind
from gradlint.trace.derived import carriers, divides
from gradlint.trace.frames import Frame, Place, is_users_path, scopes
from gradlint.trace.loops import iterates
from gradlint.trace.memory import COMMON, Memory
from gradlint.trace.records import Op, serial

_MOST = 8


def handed_on(memory: Memory, things: Iterable[Any]) -> tuple[Op, ...]:
    """The records of the numbers among `things` that are the very objects that left torch."""
    numbers = {id(thing) for thing in things if isinstance(thing, float)} if memory.escapes else ()
    return tuple(op for value, op in memory.escapes if id(value) in numbers) if numbers else ()


def linked(memory: Memory, things: Sequence[Any], place: Place) -> tuple[Op, ...]:
    """The records of the numbers and arrays among `things` that came out of tensors."""
    if not memory.escapes:
        return ()
    found: dict[int, Op] = {}
    for thing in _flat(things, 3):
        for op in _origins(memory, thing, place):
            found[id(op)] = op
    return tuple(found.values())[:_MOST]


def _flat(things: Sequence[Any], depth: int) -> Iterator[Any]:
    for thing in things:
        if depth and isinstance(thing, (list, tuple)):
            yield from _flat(thing[:64], depth - 1)
        elif isinstance(thing, float) or type(thing).__module__ == "numpy":
            yield thing


def _origins(memory: Memory, thing: Any, place: Place) -> Iterator[Op]:
    """What one number or array was copied from: by identity, by value, or by the function that both
    are in.
    """
    known = memory.known(thing) or memory.known(getattr(thing, "base", None))
    if known is not None:
        yield known
        return
    same = handed_on(memory, [thing])
    if not same and isinstance(thing, float) and (thing != thing or _is_written(thing, place)):
        return
    yield from same or _equal(memory, thing) or _same_function(memory, place)


def _equal(memory: Memory, thing: Any) -> list[Op]:
    """What left torch as an equal number, where it is not one that comes up everywhere."""
    if not isinstance(thing, float) or thing in COMMON:
        return []
    return [op for value, op in memory.escapes if isinstance(value, float) and value == thing]


def _is_written(number: float, place: Place) -> bool:
    """Whether the source itself says this number where it is used."""
    return bool(place) and number in _numbers(place[0].code)


def _numbers(code: CodeType) -> set[float]:
    return {value for value in code.co_consts if type(value) in (int, float)}


def _same_function(memory: Memory, place: Place) -> Iterator[Op]:
    """What left torch in the function that is running, where its source says that it goes into what
    is made now.
    """
    if not place:
        return
    frame = place[0]
    for _, op in memory.escapes:
        if op.step == memory.step and op.inputs:
            left = next((each for each in op.place if each.activation == frame.activation), None)
            if left is not None and _is_carried(
                frame, carriers(frame.code, left.instruction, frame.instruction)
            ):
                yield (
                    _divisor(op, place)
                    if divides(frame.code, left.instruction, frame.instruction)
                    else op
                )


def _divisor(op: Op, place: Place) -> Op:
    """The number that a number which left torch divides: `bound / norm.item()`."""
    quotient = Op(
        "python", Kind.OPERATION, (op,), place, next(serial), op.step, False, in_torch=False
    )
    quotient.flags = frozenset({"quotient"})
    return quotient


def _is_carried(frame: Frame, words: frozenset[str]) -> bool:
    """Whether one of these names may have a number: a tensor of the same name, at another time, is
    followed itself.
    """
    if not words:
        return False
    variables = next((variables for running, variables in scopes() if running is frame.code), {})
    values = [_value(word, variables) for word in words]
    if iterates(frame.code, frame.instruction):
        values = [value for value in values if _may_give(value)]
    return not all(isinstance(value, torch.Tensor) for value in values)


def _value(word: str, variables: Mapping[str, Any]) -> Any:
    """What a name, or an attribute of one, stands for; None where that is not seen."""
    first, *rest = word.split(".")
    value = variables.get(first)
    for name in rest:
        value = getattr(value, "__dict__", {}).get(name)
    return value


def _may_give(iterable: Any) -> bool:
    """Whether the items of an iterable may be what its methods were given: not those of a library's
    loader, or of its progress bar, to which a loss is only shown.
    """
    if (
        isinstance(iterable, (Sequence, AbstractSet, Mapping))
        or type(iterable).__module__ == "numpy"
    ):
        return True
    file = getattr(sys.modules.get(type(iterable).__module__), "__file__", None)
    return file is None or is_users_path(file)
