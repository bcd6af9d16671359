"""What a driven part gives: the tensors that are minimised, and those that are saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import saving, tensors
from gradlint.interpret.machine import Stop
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Builtin,
    Call,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.operations import Trait, has
from gradlint.tape import HANDED, UNSEEN, Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def _minimised(m: Machine, call: Call) -> Abstract:
    """Of what a part gives, the tensors that are minimised: the `loss`, or else what carries a
    gradient, or any.

    What gives no tensor measures or makes something; so does what has no parameters and names
    several results, of which one has no gradient:
    `{"rmse": error.mean().sqrt(), "bad": (error > 1).float().mean()}`. Of a loss that is called
    without a prediction, `if pred is None: …`, nothing is minimised.
    """
    predicted = m.state.get("predicted")
    if predicted is not None and m.oracle.facts.known(Test(predicted.asked, "is", None)):
        raise Stop
    results = _results(m, call.args[0], call)
    live = [each for each, node in results if node.requires_grad]
    if not results or _is_measured(call.args[0], [node for _, node in results]):
        raise Stop
    return Sequence("list", live or [each for each, _ in results[:1]])


def _is_measured(result: Abstract, nodes: list[Value]) -> bool:
    if (
        not isinstance(result, Mapping)
        or "loss" in result.items
        or all(node.requires_grad for node in nodes)
    ):
        return False
    return not any(leaf.parameter is not None for node in nodes for leaf in tape.leaves(node))


def _results(m: Machine, value: Abstract, call: Call) -> list[tuple[Abstract, Value]]:
    """The tensors of a result: of a record that has a `loss`, that alone; a list of such records
    compares losses, and nobody minimises them.
    """
    match value:
        case Sequence(kind="list", items=items) if any(map(_has_loss, items)):
            return []
        case Mapping(items=items) | Instance(attrs=items) | Object(attrs=items):
            parts = list(items.values())
            if "loss" in items and (found := _results(m, items["loss"], call)):
                return found
        case Sequence():
            parts = value.items
        case Tensor() | Unknown():
            parts = []
        case _:
            return []
    if parts:
        return [result for part in parts for result in _results(m, part, call)]
    node = tensors.node_of(m, value, call.node, call.frame)
    is_tensor = (
        node is not None
        and node.in_torch
        and node.kind is not Kind.DATA
        and not isinstance(value, Const)
    )
    return [(value, node)] if node is not None and is_tensor else []


def _has_loss(value: Abstract) -> bool:
    items = value.attrs if isinstance(value, Instance) else getattr(value, "items", None)
    return isinstance(items, dict) and "loss" in items


def _saved(m: Machine, call: Call) -> Abstract:
    """Has an operation that is not in view keep what a model gave for its backward: a loss of it
    was computed.
    """
    node = tensors.node_of(m, call.args[0], call.node, call.frame)
    if node is not None and node.requires_grad:
        node.flags |= {UNSEEN, HANDED}
        saving.save(node, [node], "result")
    return NONE


def _reduced(m: Machine, call: Call) -> Abstract:
    """What a comparison gives; ends the path where that is known to be no one number."""
    result = call.args[0]
    node = tensors.node_of(m, result, call.node, call.frame)
    if node is not None and _has_parts(node):
        raise Stop
    return result


def _has_parts(value: Value) -> bool:
    """Whether a tensor was written to part by part, or joined of others, and is as large since:
    `images[chosen] = changed`.
    """
    pending, seen = [value], {id(value)}
    for each in pending:
        if has(each.op, Trait.WRITES_PART, Trait.JOINS):
            return True
        if has(each.op, Trait.POINTWISE, Trait.REARRANGES, Trait.COPIES, Trait.CHOOSES):
            pending += [source for source in each.inputs if id(source) not in seen]
            seen.update(map(id, each.inputs))
    return False


MINIMISED, SAVED = Builtin("minimised", _minimised), Builtin("saved", _saved)
REDUCED = Builtin("reduced", _reduced)
