"""Generators, and the contexts that are written as generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import calm
from gradlint.interpret.calls import run
from gradlint.interpret.gaps import Gap, GiveUp
from gradlint.interpret.machine import (
    Raised,
)
from gradlint.interpret.registry import (
    find_method,
    notify,
)
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Lib,
    Object,
    Sequence,
    Unknown,
)  # fmt: skip
from gradlint.ir.lower import body

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


class _Unwound(Exception):
    """Leaves a generator that is not resumed."""


def run_generator(
    m: Machine, generator: Object, visit: Callable[[Abstract], bool], call: Call
) -> None:
    """Runs a generator; each value that it yields goes to `visit` before it goes on.

    One that came to its end is used up, which is told; it is run again all the same, for its end
    may be assumed. What a decorator has put "around" it is handed the run of it.
    """
    around = generator.state.get("around")
    if around is None:
        _run_generator(m, generator, visit, call)
    else:
        around(m, lambda inner: _run_generator(m, generator, inner, call), visit)


def _run_generator(
    m: Machine, generator: Object, visit: Callable[[Abstract], bool], call: Call
) -> None:
    frame, function = generator.state["frame"], generator.state["function"]
    given = Sequence("generator", [])
    if "given" in generator.state:
        notify("used up", m, generator.state["given"], call)

    outside = list(m.loops)

    def on_yield(value: Abstract) -> Abstract:
        inside = m.loops
        # what is done with a value is no part of the generator's own loops
        m.set_loops(list(outside))
        for loop in inside[len(outside) :] if outside else ():
            outside[-1].sizes.update(loop.sizes)  # but how long something is stays known
            outside[-1].fed_by.add(loop.number)
            m.tape.feeding[loop.number] = outside[-1].number
        own = inside[len(outside) :]
        if outside and len(own) == 1 and outside[-1].length is None:
            outside[-1].length = own[0].length  # for x in range(n): yield x
        if outside:
            outside[-1].skipped = sum(loop.skipped for loop in inside[len(outside) :])
        given.items.append(value)
        try:
            if visit(value):
                raise _Unwound
        finally:
            m.set_loops(inside)
        return m.unknown("yield", data=True) if "sent to" in generator.state else NONE

    frame.on_yield = on_yield
    frame.wanted = outside[-1].rounds if outside else 0
    was_run = function.node in m.executed
    try:
        run(m, function, frame, body(function.node), call)
        if frame.is_endless:
            generator.state["endless"] = True
        given.consumed = call.frame.span(call.node)
        generator.state["given"] = given
    except _Unwound:
        # `next(learner)`: what stands behind the `yield` was not run
        if not was_run and outside and not outside[-1].over:
            m.executed.discard(function.node)


def run_context(
    m: Machine, context: Abstract, inside: Callable[[Abstract], None], call: Call
) -> None:
    """`with context as entered: inside(entered)`."""
    if isinstance(context, Lib):
        notify("discarded", m, context, call.node, call.frame)  # with torch.no_grad: …
        context = _as_called(m, context, call)
    if isinstance(context, Object) and context.cls == "contextlib.generator":
        _run_context_function(m, context, inside, call)
        return
    if isinstance(context, Object):
        runner = find_method(context.cls, "__with__")
        if runner is not None:
            m.state["with"] = inside
            runner(m, context, call)
            return
    entered, leave = enter(m, context, call)
    try:
        inside(entered)
    except Raised:
        swallowed = leave(call, *[m.unknown("exception", data=True)] * 3)
        if not (isinstance(swallowed, Const) and swallowed.value is True):
            raise
        return
    leave(call, NONE, NONE, NONE)


def _as_called(m: Machine, cls: Lib, call: Call) -> Abstract:
    """What a class of contexts gives that was not called: Python raises, and what follows is run as
    it is meant.
    """
    made = m.call(cls, Call(cls.name, [], {}, call.node, call.frame))
    is_context = isinstance(made, Object) and find_method(made.cls, "__enter__") is not None
    return made if is_context else cls


def enter(m: Machine, context: Abstract, call: Call) -> tuple[Abstract, Callable[..., Abstract]]:
    """What `__enter__` gives, and what is called in the end with the call that ends it and the
    error: `__exit__`.
    """
    begin, end = m.attribute(context, "__enter__", call), m.attribute(context, "__exit__", call)
    before, start = m.grad, len(m.tape.events)
    entered = m.invoke(begin, [], call) if not isinstance(begin, Unknown) else context
    switched = [event for event in m.tape.events[start:] if isinstance(event, tape.GradMode)]

    def leave(call: Call, *error: Abstract) -> Abstract:
        answer = m.invoke(end, list(error), call) if not isinstance(end, Unknown) else NONE
        if m.grad.enabled == before.enabled:
            for event in switched:
                event.by_call = False  # what `__enter__` has switched, `__exit__` has restored
        return answer

    return entered, leave


def _run_context_function(
    m: Machine, context: Object, inside: Callable[[Abstract], None], call: Call
) -> None:
    """A context manager written as a generator: its `yield` is where the body runs."""
    function = context.state["function"]
    if function.node in m.session.passed_over:
        m.gap(m.session.passed_over[function.node], call.frame.span(call.node), function.name)
        inside(m.unknown(f"{function.name}()"))
        return
    made = m.call(
        function,
        Call(call.name, context.state["args"], context.state["kwargs"], call.node, call.frame),
    )
    if not (isinstance(made, Object) and made.cls == "builtins.generator"):
        inside(made)
        return
    entered: list[Abstract] = []
    frame, before = made.state["frame"], m.made

    def visit(value: Abstract) -> bool:
        if not entered:
            entered.append(value)
            with calm.left_out(m, frame, is_silent=m.made == before):
                inside(value)
        return False

    run_generator(m, made, visit, call)
    if not entered:
        raise GiveUp(
            Gap("dynamic", call.frame.span(call.node), "a context manager that does not yield")
        )
