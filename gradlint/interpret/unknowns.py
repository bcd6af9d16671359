"""Calls of something unknown: what is assumed of the result, and of what the call is given."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import counts, tensors, unseen, wrapped
from gradlint.interpret.registry import (
    notify,
)
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.tables import CALL, handles
from gradlint.interpret.values import Abstract, Call, Const, Tensor, Unknown
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradlint.interpret.machine import Machine
# results, by the literals of their calls
_ByLiterals = dict[tuple[tuple[object, object], ...], list[tape.Value]]


@handles(CALL, Unknown)
def call_unknown_value(m: Machine, function: Unknown, call: Call) -> Abstract:
    known = m.state.get("looked at", {}).get(function.symbol)
    known = known or m.session.parameters.called_as(m, function.symbol)
    if known is not None:
        return m.call(known, call)
    wrapped.run(m, function.symbol, call)
    if (
        function.data
        and function.origin is None
        and function.type != "module"
        and not _is_made(m, function.symbol)
    ):
        notify("data call", m, function.symbol, call)
    elif _listed(call) != "names":  # the keys of a dict have no gradient
        function.data = False
        return call_unknown(m, function.symbol, call)
    made = Unknown(function.symbol.derive(_asked(m, call), call.frame.text(call.node)), data=True)
    wrapped.note(m, made.symbol, call)
    _note_listing(m, made, call)
    _note_counting(m, made, function.symbol, call)
    return made


def _is_made(m: Machine, symbol: Symbol) -> bool:
    """Whether what is called may be a module although it came with data, loaded or looked up: no
    method of data.
    """
    key = symbol.key
    if not (isinstance(key, tuple) and key[:1] == ("attribute",)):
        return True
    return is_loaded(m, symbol) and not any(hasattr(kind, key[1]) for kind in (dict, list, str))


def is_loaded(m: Machine, symbol: Symbol) -> bool:
    """Whether it was unpickled, or handed to a constructor, or taken out of what was: a whole model
    can be, whose methods compute.
    """
    loaded: set[Symbol] = m.state.get("loaded", set())
    handed: set[Symbol] = m.state.get("hyperparameters", set())
    inner: Symbol | None = symbol
    while inner is not None and inner not in loaded and inner not in handed:
        inner = inner.source
    return inner is not None


def call_unknown(m: Machine, symbol: Symbol, call: Call) -> Unknown:
    """A call of something unknown: it is assumed to carry gradient, from parameters of its own."""
    node, frame = call.node, call.frame
    inputs = tensors.sources(m, call.values, node, frame)
    notify("unknown call", m, symbol, call)
    is_fed = call.open or (bool(inputs) and not _is_told_numbers(symbol, inputs))
    own = tensors.leaf(m, _owner(m, symbol), node, frame, fed=is_fed, called=True)
    own = _left_to_train(m, own)
    made = tensors.operation(m, "call", [*inputs, own], node, frame)
    made.storage = tape.Storage()
    made.assumed = not any(source.requires_grad and not source.assumed for source in inputs)
    _tell_apart(m, symbol, made, call)
    result = Unknown(Symbol(call.frame.text(node)))
    result.symbol.twin = symbol.derive(_asked(m, call), call.frame.text(node))
    _note_listing(m, result, call)
    _note_counting(m, result, symbol, call)
    m.nodes[result.symbol] = made
    wrapped.note(m, result.symbol, call)
    unseen.note_making(m, result.symbol, symbol, call)
    m.emit(tape.ModuleCall(at=frame.span(node), module=_module_of(own), result=made))
    return result


def _is_told_numbers(called: Symbol, inputs: Sequence[tape.Value]) -> bool:
    """Whether all that a method of something unknown is handed are numbers that the program has
    gathered: `self.baseline.compare(torch.tensor(rewards))`.
    """
    return called.is_attribute and all(
        value.cut is tape.Cut.COPY and not value.requires_grad for value in inputs
    )


def _owner(m: Machine, called: Symbol) -> Symbol:
    """Whose parameters a call uses: of the method of something unknown whose parameters were asked
    for, its own.

    `optimizer = SGD(model.parameters()); loss = model.compute_loss(batch)`
    """
    receiver = called.source
    if called.is_attribute and receiver is not None and receiver in m.leaves:
        return receiver
    return called


def _left_to_train(m: Machine, own: tape.Value) -> tape.Value:
    """The parameters that a call trains: where a loop has frozen those of something unknown, it may
    have passed over some, which are neither those that it met nor those that are clipped with them.

    `for p in backbone.parameters(): p.requires_grad = False`
    """
    whole = m.parameters.get(own.parameter) if own.parameter is not None else None
    if whole is None or whole.node.requires_grad or not own.requires_grad:
        return own
    left: dict[Symbol, tape.Value] = m.state.setdefault("left to train", {})
    symbol = m.symbol(whole)
    if symbol not in left:
        assert own.parameter is not None
        made = dataclasses.replace(own)
        rest = tape.Module(f"the rest of {_module_of(own).path}", unseen=True)
        made.parameter = dataclasses.replace(own.parameter, module=rest)
        left[symbol] = made
    return left[symbol]


def _tell_apart(m: Machine, symbol: Symbol, made: tape.Value, call: Call) -> None:
    """Marks the results of a callable that is called with different literals: `loss(x, fake, 0)`,
    `loss(x, fake, 1)`.

    Each can be computed from some of the arguments alone: the loss of the generator, or of the
    discriminator. Of one tensor there is no other: `rearrange(x, "b c -> c b")`.
    """
    if not isinstance(call.node, ir.Call) or _is_given_one_tensor(call):
        return
    by_place = [*enumerate(call.node.args), *call.node.kwargs]
    literals = tuple(
        (place, node.value) for place, node in by_place if isinstance(node, ir.Literal)
    )
    if not literals:
        return
    known: _ByLiterals = m.state.setdefault("told apart", {}).setdefault(symbol, {})
    known.setdefault(literals, []).append(made)
    for given, others in known.items():
        if any(dict(given).get(place, value) != value for place, value in literals):
            for each in (made, *others):
                each.flags |= {tape.TOLD_APART}
            others.clear()


def _is_given_one_tensor(call: Call) -> bool:
    """Whether a tensor and constants are all that a call hands over."""
    given = [value for value in call.values if not isinstance(value, Const)]
    return len(given) == 1 and isinstance(given[0], Tensor)


def _note_listing(m: Machine, result: Unknown, call: Call) -> None:
    """Takes down that something lists the entries of a dict, or their names."""
    listed = None if call.args or call.kwargs else _listed(call)
    if listed is not None:
        m.state.setdefault(listed, set()).add(result.symbol)


def _note_counting(m: Machine, result: Unknown, method: Symbol, call: Call) -> None:
    """Has `mask.any()` be the question that `mask.sum() > 0` is, of what is handed in as of
    tensors.
    """
    if call.args or call.kwargs or method.source is None:
        return
    function = call.node.function if isinstance(call.node, ir.Call) else None
    if isinstance(function, ir.Attribute) and function.name == "any":
        result.test = m.oracle.facts.any_of(counts.of_unknown(method.source).asked)


def _listed(call: Call) -> str | None:
    """What a method of something unknown lists: the "entries" of a dict, `x.items()`, or their
    "names", `x.keys()`.
    """
    function = call.node.function if isinstance(call.node, ir.Call) else None
    if not isinstance(function, ir.Attribute) or call.values:
        return None
    return {"items": "entries", "keys": "names"}.get(function.name)


def _module_of(own: tape.Value) -> tape.Module:
    assert own.parameter is not None
    assert own.parameter.module is not None
    return own.parameter.module


def _asked(m: Machine, call: Call) -> object:
    by_name = (
        tuple([(name, m.symbol(call.kwargs[name])) for name in sorted(call.kwargs)])
        if call.kwargs
        else ()
    )
    return ("call", tuple(map(m.symbol, call.args)), by_name)
