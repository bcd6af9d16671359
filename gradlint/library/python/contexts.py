"""The module contextlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import generators
from gradlint.interpret.registry import function, method
from gradlint.interpret.values import NONE, TRUE, Abstract, Builtin, Call, Instance, Object, Unknown
from gradlint.library.python.results import argument, place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_STACK = "contextlib.ExitStack"


@function("contextlib.contextmanager", "contextlib.asynccontextmanager")
def contextmanager(m: Machine, call: Call) -> Abstract:
    """`@contextmanager`: a call of the function gives a context that runs it around a body."""
    if not call.args:
        return m.unknown(text(call))
    written = call.args[0]

    def make(m: Machine, at: Call) -> Abstract:
        return Object(
            "contextlib.generator",
            place(at),
            {"function": written, "args": at.args, "kwargs": at.kwargs},
        )

    return Builtin("contextlib.contextmanager", make, wraps=written)


@method("contextlib.generator", "__call__")
def decorate(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`@context()`: the function runs inside the context each time that it is called."""
    if not call.args:
        return m.unknown(text(call))
    written = call.args[0]

    def run(m: Machine, at: Call) -> Abstract:
        return inside(m, receiver, written, at)

    return Builtin("contextlib.generator", run, wraps=written)


def inside(m: Machine, context: Abstract, called: Abstract, call: Call) -> Abstract:
    """Calls a function within a context."""
    from gradlint.interpret.generators import run_context

    results: list[Abstract] = []

    def run(entered: Abstract) -> None:
        results.append(m.call(called, call))

    run_context(m, context, run, call)
    return results[0] if results else NONE


@function("contextlib.nullcontext")
def nullcontext(m: Machine, call: Call) -> Abstract:
    """`nullcontext(x)`."""
    return Object(
        "contextlib.nullcontext", place(call), {"entered": call.get(0, "enter_result") or NONE}
    )


@method(("contextlib.nullcontext", "contextlib.closing"), "__enter__")
def enter_nothing(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Gives what the context was made with."""
    found = receiver.state["entered"]
    assert isinstance(found, Abstract)
    return found


@function("contextlib.aclosing")
def closing_later(m: Machine, call: Call) -> Abstract:
    """`aclosing(x)`: a context that gives `x`."""
    return Object("contextlib.nullcontext", place(call), {"entered": argument(m, call)})


@function("contextlib.closing")
def closing(m: Machine, call: Call) -> Abstract:
    """`closing(x)`: a context that gives `x`, and closes it."""
    return Object("contextlib.closing", place(call), {"entered": argument(m, call)})


@method("contextlib.closing", "__exit__")
def close(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Calls `x.close()`."""
    method = m.attribute(receiver.state["entered"], "close", call)
    if not isinstance(method, Unknown):
        m.invoke(method, [], call)
    return NONE


@function("contextlib.redirect_stdout", "contextlib.redirect_stderr", "contextlib.chdir")
def redirected(m: Machine, call: Call) -> Abstract:
    """A context without effect on gradients."""
    return Object("contextlib.nullcontext", place(call), {"entered": NONE})


@function("contextlib.suppress")
def suppress(m: Machine, call: Call) -> Abstract:
    """`suppress(ValueError)`."""
    return Object("contextlib.suppress", place(call), {"types": call.args})


@method(("contextlib.nullcontext", "contextlib.suppress"), "__exit__")
def leave_nothing(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Only `suppress` swallows what was raised."""
    return (
        TRUE
        if receiver.cls == "contextlib.suppress" and call.args and isinstance(call.args[0], Unknown)
        else NONE
    )


@function(_STACK, "contextlib.AsyncExitStack")
def stack(m: Machine, call: Call) -> Abstract:
    """`ExitStack()`."""
    return Object(_STACK, place(call), {"leave": []})


@method(_STACK, "__enter__")
def enter_stack(m: Machine, receiver: Object, call: Call) -> Abstract:
    """The stack itself."""
    receiver.state["entered"] = True
    return receiver


@method(_STACK, "enter_context")
def enter_context(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Enters a context, which ends with the stack."""
    from gradlint.library.modes import MODES, set_by_context

    if not call.args:
        return NONE
    context = call.args[0]
    entered, leave = generators.enter(m, context, call)
    receiver.state["leave"].append(leave)
    if isinstance(context, Object) and context.cls in MODES and receiver.state.get("entered"):
        set_by_context(m, context)
    return entered


@method(_STACK, "callback")
def call_back(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`stack.callback(function, *args, **kwargs)`: what is called as the stack ends."""
    if not call.args:
        return NONE
    function, *given = call.args

    def leave(at: Call, *error: Abstract) -> Abstract:
        return m.call(
            function, Call(call.name, given, call.kwargs, call.node, call.frame, call.open)
        )

    receiver.state["leave"].append(leave)
    return function


@method(_STACK, "push")
def push(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`stack.push(context)`: its `__exit__`, or itself where it has none, is called as the stack
    ends.
    """
    pushed = argument(m, call)
    end = m.attribute(pushed, "__exit__", call) if isinstance(pushed, Instance | Object) else pushed
    if not isinstance(end, Unknown):
        receiver.state["leave"].append(lambda at, *error: m.invoke(end, list(error), at))
    return pushed


@method(_STACK, "pop_all")
def pop_all(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`stack.pop_all()`: another stack, which takes over what this one would have left."""
    taken, receiver.state["leave"] = receiver.state["leave"], []
    return Object(_STACK, place(call), {"leave": taken})


@method(_STACK, "__exit__", "close")
def leave_stack(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Leaves what was entered, the last first."""
    while receiver.state["leave"]:
        receiver.state["leave"].pop()(call, NONE, NONE, NONE)
    return NONE
