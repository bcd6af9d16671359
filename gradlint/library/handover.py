"""Optimizers that are handed over to code out of view, which may step them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import evidence, names, tape
from gradlint.interpret.registry import on
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Call, Instance, Mapping, Object, Sequence, Unknown
from gradlint.library.holdings import MAX_DEPTH

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

# what an optimizer is, or can be had from
_HOLDING = frozenset([Unknown, Object, Instance, Sequence, Mapping])
# what a name with one of these does is no setting up
_RUNS = frozenset(["step", "train", "run", "fit", "epoch", "loop"])


@on("unknown call")
def optimizer_escapes(m: Machine, symbol: Symbol, call: Call) -> None:
    """What is given an optimizer may step it; a schedule steers its rate alone."""
    values = call.values
    steers = (
        values
        and evidence.role(symbol.text) == "scheduler"
        and _RUNS.isdisjoint(names.words(symbol.text))
    )
    if not steers:
        escapes(m, values, call)


@on("end")
def stepped_elsewhere(m: Machine) -> None:
    """Other methods of the object step what it has as an optimizer."""
    for value in m.state.get("stepped elsewhere", ()):
        handle = value.state.get("handle") if isinstance(value, Object | Instance) else None
        if isinstance(value, Unknown):
            handle = m.state.get("unknown-optimizers", {}).get(value.symbol)
        if isinstance(handle, tape.Optimizer):
            handle.stepped_elsewhere = True


def escapes(m: Machine, values: Iterable[Abstract], call: Call, depth: int = 0) -> None:
    """Optimizers are handed to code that is not in view, and can be stepped and cleared there."""
    for value in values:
        if type(value) not in _HOLDING:  # most of what large containers hold
            continue
        if isinstance(value, Unknown):
            _unknown_escapes(m, value.symbol, call, depth)
        elif isinstance(value, Object | Instance):
            handle = value.state.get("handle")
            if isinstance(handle, tape.Optimizer):
                _hand_over(m, handle, call)
            elif (
                isinstance(value, Instance)
                and depth < MAX_DEPTH
                and value.module is None
                and value.attrs
            ):
                escapes(m, value.attrs.values(), call, depth + 1)
        elif isinstance(value, Sequence | Mapping) and depth < MAX_DEPTH and value.items:
            inner = value.items if isinstance(value, Sequence) else value.items.values()
            escapes(m, inner, call, depth + 1)


def _hand_over(m: Machine, optimizer: tape.Optimizer, call: Call) -> None:
    optimizer.escapes = True
    m.emit(tape.Handed(at=call.frame.span(call.node), optimizer=optimizer))


def _unknown_escapes(m: Machine, symbol: Symbol, call: Call, depth: int) -> None:
    """Something unknown is handed there: it may be an optimizer, and one may have been put into
    it.
    """
    if symbol in m.state.get("unknown-optimizers", {}):
        _hand_over(m, m.state["unknown-optimizers"][symbol], call)
    if symbol in m.overrides and depth < MAX_DEPTH and m.state.get("optimizers"):
        escapes(m, m.overrides[symbol].values(), call, depth + 1)
