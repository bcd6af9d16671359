"""Budgets of steps: a call that takes many without touching a tensor is cut short, and its result
is unknown.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.gaps import Gap, Overrun
from gradlint.interpret.scopes import GradState
from gradlint.interpret.values import Abstract, Bound, Instance, Mapping, Object, Sequence, Tensor

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

EVERY = 250  # steps
SHORT = 40  # steps: calls of fewer are not counted
SHARE = 20  # the part of the steps of a path that one such call may take
_TRAINS = tape.May.STEP | tape.May.CLEAR | tape.May.BACKWARD | tape.May.HOLD


def took(m: Machine, frame: Frame) -> None:
    """Counts the steps of a call that has ended: of a function that takes many of them, later calls
    are not run.
    """
    if frame.began is None:
        return
    steps, made = frame.began
    spent = m.steps - steps
    if spent < SHORT or m.made != made:
        return
    node = frame.function.node
    m.spent[node] = m.spent.get(node, 0) + spent
    if m.spent[node] > _most(m) and _is_calm(m, [frame], contexts=True):
        m.session.passed_over[node] = "steps"


@contextlib.contextmanager
def left_out(m: Machine, frame: Frame, *, is_silent: bool) -> Iterator[None]:
    """Keeps the steps of what runs inside of a context that is written as a generator from those of
    the generator.

    One that has no event of its own, a mode or a write, can be passed over like any call.
    """
    steps, made = m.steps, m.made
    try:
        yield
    finally:
        if frame.began is not None:
            began, before = frame.began
            frame.began = began + m.steps - steps, before + m.made - made
        frame.is_silent = is_silent


@contextlib.contextmanager
def module_code(m: Machine) -> Iterator[None]:
    """Keeps the steps of what a module runs when it is imported from those of the calls that wait
    for it.

    It was imported before these calls: the contexts and decorators around them are not around it.
    """
    steps, floor, before = m.steps, m.floor, m.grad
    m.floor = len(m.frames)
    m.grad = own = before if before.by_call else GradState()
    try:
        yield
    finally:
        if m.grad is own:
            m.grad = before
        m.floor = floor
        for frame in m.frames:
            if frame.began is not None:
                began, made = frame.began
                frame.began = began + m.steps - steps, made


def look(m: Machine) -> None:
    """Ends the outermost call that has taken too many steps: `rows = transfers(names)`, three
    loops.
    """
    m.calm = m.steps + EVERY
    for place, frame in enumerate(m.frames[m.floor :], m.floor):
        if frame.began is None or m.steps - frame.began[0] < _most(m):
            continue
        if m.made == frame.began[1] and _is_calm(m, m.frames[place:]):
            raise Overrun(Gap("steps", frame.span(frame.function.node), frame.function.name), frame)


def _most(m: Machine) -> float:
    """The steps that a call may take that cannot train and has no tensor, module or optimizer in
    view.

    None is too many in a part: what its functions take and give is unknown, and can be a tensor or
    a module.
    """
    return m.session.most / SHARE if m.session.may_train and not m.session.contract else math.inf


def _is_calm(m: Machine, frames: list[Frame], *, contexts: bool = False) -> bool:
    """Whether a call, with all that it has called, has nothing to do with gradients.

    That of a generator is none, but where it has run as a context.
    """
    function = frames[0].function.node
    if any(
        frame.function is None
        or (frame.function.node.is_generator and not (contexts and frame.is_silent))
        for frame in frames
    ):
        return False
    if any(_bears(value, 2) for frame in frames for value in frame.locals.values()):
        return False
    # a context that has run clears nothing: `setattr(module, name, function)` might
    effects = _TRAINS & ~tape.May.CLEAR if contexts and frames[0].is_silent else _TRAINS
    return not m.session.is_written(function.source, function.code.path, effects)


def _bears(value: Abstract, depth: int) -> bool:
    """Whether a value is a tensor, a module or an optimizer, or holds one."""
    match value:
        case Tensor():
            return True
        case Instance():
            inner = list(value.attrs.values())
            return value.module is not None or (
                depth > 0 and any(_bears(each, depth - 1) for each in inner)
            )
        case Object():
            return value.module is not None or value.cls.startswith(("torch.optim", "torch.amp"))
        case Bound():
            return (
                depth > 0 and isinstance(value.receiver, Instance) and _bears(value.receiver, depth)
            )
        case Sequence():
            return depth > 0 and any(_bears(each, depth - 1) for each in value.items)
        case Mapping():
            return depth > 0 and any(_bears(each, depth - 1) for each in value.items.values())
    return False
