"""Loss sinks of torch itself: `backward` and `autograd.backward`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.interpret import tensors
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import function, method, on
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import NONE, Abstract, Call, Const, Object, Sequence, Tensor
from gradlint.ir import nodes as ir
from gradlint.library import hooks
from gradlint.tape import Cut, Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def backward(
    m: Machine, value: Abstract, call: Call, sink: str = "backward", **facts: Any
) -> Abstract:
    """Asks for the gradient of `value`. Where torch would raise for want of one, the program ends
    here.
    """
    fail_as_meant(m, call)
    refuse_in_transform(m, sink, call)
    loss = loss_of(m, value, call)
    if loss is None or may_have_a_graph(m, loss):
        return NONE
    refuse_for_inference(m, loss, call)
    scaler = m.state.get("scaled", {}).get(id(loss))
    event = tape.Backward(
        at=call.frame.span(call.node), text=call.frame.text(call.node), value=loss, sink=sink,
        autocast=_autocast(m), guarded=_guarded(m, loss),
        caught=call.frame in m.protected, **{"scaler": scaler, **facts},
    )  # fmt: skip
    m.emit(event)
    if not event.by_framework:
        raise_as_torch_does(m, event)
    hooks.run(m, event, call)
    return NONE


def handed(call: Call) -> str:
    """What the program calls the loss that it hands to an engine: `engine.backward(loss)`."""
    written = call.node.args if isinstance(call.node, ir.Call) else []
    return call.frame.text(written[0]) if written else ""


def fail_as_meant(m: Machine, call: Call) -> None:
    """Has a backward raise that a test wants to raise:
    `with pytest.raises(RuntimeError): loss.backward()`.
    """
    if m.state.get("meant to raise"):
        at = call.frame.span(call.node)
        raise Raised(Object("builtins.RuntimeError", at), at)


def refuse_in_transform(m: Machine, what: str, call: Call) -> None:
    """Ends the program where `backward` or `requires_grad_` runs in a function that `torch.func`
    transforms.

    All transforms refuse them, whichever tensor it is (torch 2.13).
    """
    if m.state.get("transforms"):
        at = call.frame.span(call.node)
        m.emit(tape.Fact(at=at, what="autograd-in-transform", detail=what))
        raise Raised(Object("builtins.RuntimeError", at), at)


def refuse_for_inference(m: Machine, loss: Value, call: Call) -> None:
    """Ends the program where the graph leads through a function whose `backward` only raises: it is
    there for inference, and a program that trains is taken to go another way.
    """
    refusing = {id(value) for value in tape.graph(loss) if tape.REFUSES in value.flags}
    if refusing and not refusing.isdisjoint(
        map(id, tape.sure(list(tape.graph(loss)), m.tape.optimizers()))
    ):
        at = call.frame.span(call.node)
        raise Raised(Object("builtins.NotImplementedError", at), at)


def may_have_a_graph(m: Machine, loss: Value) -> bool:
    """Whether the loss hangs on the gradient of a backward that is not in view: that can have made
    a graph for it.
    """
    if loss.requires_grad or last_backward(m) is not None:
        return False
    return any("gradient" in value.flags and not value.inputs for value in tape.ancestors(loss))


def last_backward(m: Machine) -> tape.Backward | None:
    """The last backward that has written gradients to parameters."""
    sinks = (event for event in reversed(m.tape.events) if isinstance(event, tape.Backward))
    return next((sink for sink in sinks if sink.sink != "autograd.grad"), None)


def raise_as_torch_does(m: Machine, event: tape.Backward) -> None:
    """Ends the program where this backward has no graph, a freed one, or a saved tensor that was
    overwritten; not where these only may carry a gradient, as the tensors of a batch: a program is
    taken to work.
    """
    loss = event.value
    freed: set[int] = m.state.setdefault("freed", set())
    visited = [value for value in _run_through(event) if value.records and value.saves]
    fails = not loss.requires_grad and not loss.assumed
    refused = {id(value) for value in visited if id(value) in freed or _is_overwritten(value)}
    if refused:
        sure = tape.sure(event.graph, m.tape.optimizers())
        fails = fails or not refused.isdisjoint(map(id, sure))
    if not event.retain_graph:
        freed.update(id(value) for value in visited)
        m.state.setdefault("held", []).extend(visited)
    if fails:
        raise Raised(Object("builtins.RuntimeError", event.at), event.at)


def _is_overwritten(value: Value) -> bool:
    return not value.checkpointed and any(s.storage.version > s.version for s in value.saves)


def _run_through(event: tape.Backward) -> list[Value]:
    """The graph of a loss; of `autograd.grad(loss, inputs)` what lies above these: torch frees
    nothing else.
    """
    graph = list(tape.graph(event.value))
    inputs = {id(value) for value in event.inputs or ()}
    wanted = [id(value) for value in graph if id(value) in inputs]
    return tape.above(graph, wanted) if wanted else graph


def loss_of(m: Machine, value: Abstract, call: Call) -> Value | None:
    """The value on the tape that a sink is given; a Python number is a constant."""
    if isinstance(value, Const):
        if not isinstance(value.value, int | float) or isinstance(value.value, bool):
            return None
        at = value.at or call.frame.span(call.node)
        number = Value(
            "number",
            Kind.CONSTANT,
            (),
            at,
            m.where,
            cut=Cut.CONSTANT,
            in_torch=False,
            number=value.value,
        )
        number.text = repr(value.value)
        return number
    return tensors.node_of(m, value, call.node, call.frame)


def _autocast(m: Machine) -> str | None:
    if not m.autocast:
        return None
    device, enabled = m.autocast[-1]
    return None if enabled is False else device or "unknown"


def _guarded(m: Machine, loss: Value) -> bool:
    """Whether this path asked whether the loss requires grad."""
    return any(node is loss for node in m.state.get("grad-tests", {}).values())


@dataclass(slots=True)
class _Gradients:
    """The parameters that have a gradient, and those that were cleared and have none, as far as the
    tape was read.
    """

    present: set[tape.Parameter] = field(default_factory=set)
    absent: set[tape.Parameter] = field(default_factory=set)
    read: int = 0


def has_gradient(m: Machine, value: Value) -> bool:
    """Whether a parameter has a gradient now, which an optimizer asks before it writes it.

    What came into the entry from outside, or was there before it, is taken to have one until it is
    cleared.
    """
    known = m.state.setdefault("gradients", _Gradients())
    for event in m.tape.events[known.read :]:
        if isinstance(event, tape.Backward) and event.sink != "autograd.grad":
            _fill(
                known,
                {leaf.parameter for leaf in tape.leaves(event.value) if leaf.parameter is not None},
            )
        elif isinstance(event, tape.ZeroGrad) and event.to_none:
            _empty(
                known,
                {
                    cleared.parameter
                    for cleared in event.parameters
                    if cleared.parameter is not None
                },
            )
    known.read = len(m.tape.events)
    parameter = value.parameter
    if parameter is None or parameter in known.present:
        return True
    return (
        value.assumed or parameter in m.state.get("older", ())
    ) and parameter not in known.absent


def gains_gradient(m: Machine, value: Value) -> None:
    """A parameter is given a gradient by hand."""
    has_gradient(m, value)  # as far as the tape is written
    _fill(m.state["gradients"], {value.parameter} if value.parameter is not None else set())


def may_have_gradient(m: Machine, value: Value) -> bool:
    """Whether `.grad` can be other than None: code out of view may have back-propagated."""
    return bool(m.state.get("out of view")) or has_gradient(m, value)


@on("unknown call")
def out_of_view(m: Machine, symbol: Symbol, call: Call) -> None:
    """Something was called whose code is not seen."""
    m.state["out of view"] = True


def clears(call: Call) -> bool:
    """Whether `zero_grad` leaves no gradient, and not one of zeros."""
    return call.constant(0, "set_to_none", True) is not False


def _fill(known: _Gradients, parameters: set[tape.Parameter]) -> None:
    known.present |= parameters
    known.absent -= parameters


def _empty(known: _Gradients, parameters: set[tape.Parameter]) -> None:
    known.absent |= parameters
    known.present -= parameters


@method(("float", "int"), "backward")
def number_backward(m: Machine, number: Abstract, call: Call) -> Abstract:
    """A loss that stayed the Python number that it began as: Python raises."""
    return backward(m, number, call)


@method("torch.Tensor", "backward")
def tensor_backward(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    return backward(m, tensor, call, **backward_options(call, 1))


def backward_options(call: Call, position: int) -> dict[str, Any]:
    create = call.constant(position + 1, "create_graph", False) is True
    retain = call.get(position, "retain_graph")
    kept = (
        create
        if retain is None or (isinstance(retain, Const) and retain.value is None)
        else not (isinstance(retain, Const) and not retain.value)
    )
    return {"retain_graph": kept, "create_graph": create}


@function("torch.autograd.backward")
def autograd_backward(m: Machine, call: Call) -> Abstract:
    given = call.get(0, "tensors")
    values = given.items if isinstance(given, Sequence) else [given] if given is not None else []
    losses = [loss for value in values if (loss := loss_of(m, value, call)) is not None]
    if len(losses) > 1 and all(loss.requires_grad for loss in losses):
        values = [Tensor(joined_losses(m, losses, call))]
    for value in values:
        backward(m, value, call, "autograd.backward", **backward_options(call, 2))
    return NONE


def joined_losses(m: Machine, losses: list[Value], call: Call) -> Value:
    """Several losses that one backward starts from, as one value."""
    joined = tensors.value(
        m, "torch.autograd.backward", Kind.OPERATION, losses, call.node, call.frame
    )
    joined.requires_grad, joined.assumed = True, all(loss.assumed for loss in losses)
    joined.text = call.frame.text(call.node)
    return joined
