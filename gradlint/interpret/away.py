"""Calls from the file of a part into other files, among these, and back into it.

Where code of another file raises, or takes too many steps, only the result of that call becomes
unknown: the path goes on behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.gaps import GiveUp
from gradlint.interpret.machine import Raised

if TYPE_CHECKING:
    from collections.abc import Callable

    from gradlint.interpret.machine import Machine
    from gradlint.interpret.values import Abstract
    from gradlint.ir import nodes as ir

SHARE = 3  # the part of the steps that are left which a call out of the file of a part may take


def run(
    m: Machine, caller: ir.Code, called: ir.Code, run_it: Callable[[], Abstract]
) -> Abstract | None:
    """What a call of a function in one file by another one gives; None where it was left."""
    entered = m.session.entered
    driver = m.session.driver[0] if m.session.driver is not None else None
    if entered is None or (caller is called and called in (entered, driver)):
        return run_it()
    if called is entered:
        return _back(m, run_it)
    if caller is entered:
        return within_steps(m, (m.most - m.steps) // SHARE, run_it)
    return _between_others(m, run_it)


def within_steps(m: Machine, most: int, run_it: Callable[[], Abstract]) -> Abstract | None:
    """What some code gives; None where it raises or takes more than so many steps: the program goes
    on behind it.
    """
    before = m.most
    bound = m.most = min(m.steps + most, before)
    grad, autocast, loops, branch = m.grad, list(m.autocast), list(m.loops), m.branch
    is_tried = any(node.handlers for node, frame, _ in m.trying if frame.code is m.session.entered)
    try:
        return run_it()
    except GiveUp as gave_up:
        if m.steps > before + m.most - bound:
            raise
        m.session.gaps.add(gave_up.gap)
    except Raised:
        if is_tried:
            raise
    finally:
        m.most += before - bound
    m.grad, m.autocast[:], m.branch = grad, autocast, branch
    m.set_loops(loops)
    return None


def _between_others(m: Machine, run_it: Callable[[], Abstract]) -> Abstract | None:
    """What a function of another file gives another one; None where it raises, and nobody is there
    to catch it: what called it goes on, and is not lost as a whole.

    Not where the path has taken a side of a branch that an exception ends.
    """
    grad, autocast, loops, branch = m.grad, list(m.autocast), list(m.loops), m.branch
    try:
        return run_it()
    except Raised:
        if m.oracle.goes_astray or any(node.handlers for node, _, _ in m.trying):
            raise
    m.grad, m.autocast[:], m.branch = grad, autocast, branch
    m.set_loops(loops)
    return None


def _back(m: Machine, run_it: Callable[[], Abstract]) -> Abstract:
    """What code of the part's own file gives that code out of it has called: its steps are those of
    the part.
    """
    bound, before = m.most, m.steps
    m.most = m.session.most
    try:
        return run_it()
    finally:
        m.most = bound + m.steps - before
