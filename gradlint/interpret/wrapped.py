"""Functions of the program that code out of view wraps: who calls the result runs the function.

update = TensorDictModule(update, in_keys=["obs"], out_keys=["loss"])
out = update(batch)

What the function is called with, and what comes of its result, is known to the wrapper alone. So it
is run for what it does, where it may back-propagate: with the arguments of the call where these are
as many as it takes, else with unknown ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Call, Function, Unknown
from gradlint.source import effects
from gradlint.tape import May

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_WRAPPED = "wrapped functions"  # by the symbols of what wraps them


def note(m: Machine, result: Symbol, call: Call) -> None:
    """Takes down which function the result of a call out of view wraps: the first argument."""
    function = _function(m, call.args[0]) if call.args else None
    if function is not None:
        m.state.setdefault(_WRAPPED, {})[result] = function


def run(m: Machine, called: Symbol, call: Call) -> None:
    """Runs the function that something unknown wraps, which is called here."""
    function: Function | None = m.state.get(_WRAPPED, {}).get(called)
    if function is not None:
        m.call(
            function, Call(function.name, _given(function, called, call), {}, call.node, call.frame)
        )


def _function(m: Machine, wrapped: Abstract) -> Function | None:
    """The function of the program that an argument is, or wraps in its turn, if it may
    back-propagate.
    """
    if isinstance(wrapped, Unknown):
        known: Function | None = m.state.get(_WRAPPED, {}).get(wrapped.symbol)
        return known
    if not isinstance(wrapped, Function) or wrapped.node.is_generator:
        return None
    done = effects.of([each.node.source for each in (wrapped, *_enclosed(wrapped))])
    return wrapped if any(each.at_hand & May.BACKWARD for each in done) else None


def _enclosed(function: Function) -> list[Function]:
    """The functions that a closure can call: `step` of the `run` that a decorator makes of it."""
    scope = function.scope
    if scope.function is None:
        return []
    return [each for each in scope.locals.values() if isinstance(each, Function)]


def _given(function: Function, called: Symbol, call: Call) -> list[Abstract]:
    """The arguments of the call, or unknown ones for all that have no default."""
    wanted = [
        parameter.name
        for parameter in function.node.parameters
        if parameter.kind == "positional" and parameter.default is None
    ]
    takes_all = any(parameter.kind == "args" for parameter in function.node.parameters)
    fits = len(call.args) == len(wanted) or (takes_all and len(call.args) > len(wanted))
    if fits and not call.kwargs and not call.open:
        return call.args
    return [Unknown(called.derive(("given", name), name)) for name in wanted]
