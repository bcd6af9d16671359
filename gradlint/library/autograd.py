"""Loss sinks of torch itself: `backward`, `autograd.backward`, `autograd.grad`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.interpret import tensors
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import function, hears, method
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Object,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
)
from gradlint.library import hooks
from gradlint.library.effects import is_loss_function, layer, lookup
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
    if loss is None or _may_have_a_graph(m, loss):
        return NONE
    scaler = m.state.get("scaled", {}).get(id(loss))
    event = tape.Backward(
        at=call.frame.span(call.node), text=call.frame.text(call.node), value=loss, sink=sink,
        autocast=_autocast(m), guarded=_guarded(m, loss),
        caught=call.frame in m.protected, **{"scaler": scaler, **facts},
    )  # fmt: skip
    m.emit(event)
    if not event.by_framework:
        _raise_as_torch_does(m, event)
    hooks.run(m, event, call)
    return NONE


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


def _may_have_a_graph(m: Machine, loss: Value) -> bool:
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


def _raise_as_torch_does(m: Machine, event: tape.Backward) -> None:
    """Ends the program where this backward has no graph, a freed one, or a saved tensor that was
    overwritten.
    """
    loss = event.value
    freed: set[int] = m.state.setdefault("freed", set())
    visited = [value for value in _run_through(event) if value.records and value.saves]
    fails = not loss.requires_grad and not loss.assumed
    for value in visited:
        fails = (
            fails
            or id(value) in freed
            or (not value.checkpointed and any(s.storage.version > s.version for s in value.saves))
        )
    if not event.retain_graph:
        freed.update(id(value) for value in visited)
        m.state.setdefault("held", []).extend(visited)
    if fails:
        raise Raised(Object("builtins.RuntimeError", event.at), event.at)


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


@hears("unknown call")
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
    return backward(m, tensor, call, **_options(call, 1))


def _options(call: Call, position: int) -> dict[str, Any]:
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
        values = [Tensor(_joined(m, losses, call))]
    for value in values:
        backward(m, value, call, "autograd.backward", **_options(call, 2))
    return NONE


def _joined(m: Machine, losses: list[Value], call: Call) -> Value:
    """Several losses that one backward starts from, as one value."""
    joined = tensors.value(
        m, "torch.autograd.backward", Kind.OPERATION, losses, call.node, call.frame
    )
    joined.requires_grad, joined.assumed = True, all(loss.assumed for loss in losses)
    joined.text = call.frame.text(call.node)
    return joined


@function("torch.autograd.grad")
def grad(m: Machine, call: Call) -> Abstract:
    """The gradients, with a graph of their own where `create_graph=True`."""
    fail_as_meant(m, call)
    outputs, wanted = call.get(0, "outputs"), call.get(1, "inputs")
    options: dict[str, Any] = _options(call, 3)
    asked = call.get(4, "create_graph")
    if call.open or (
        asked is not None and not isinstance(asked, Const)
    ):  # then there can be a graph, and it is kept
        options = {"retain_graph": True, "create_graph": True}
    inputs = tensors.sources(m, [wanted], call.node, call.frame) if wanted is not None else []
    values = (
        outputs.items if isinstance(outputs, Sequence) else [outputs] if outputs is not None else []
    )
    made = [loss for value in values if (loss := loss_of(m, value, call)) is not None]
    sinks = (
        [_joined(m, made, call)]
        if len(made) > 1 and all(loss.requires_grad for loss in made)
        else made
    )
    for loss in sinks:
        if _may_have_a_graph(m, loss):
            continue
        event = tape.Backward(
            at=call.frame.span(call.node), text=call.frame.text(call.node), value=loss,
            sink="autograd.grad",
            inputs=tuple(inputs), scaler=m.state.get("scaled", {}).get(id(loss)), **options,
        )  # fmt: skip
        m.emit(event)
        _raise_as_torch_does(m, event)
    if (
        made
        and not call.open
        and call.get(6, "allow_unused") is None
        and call.get(8, "materialize_grads") is None
    ):
        _refuse_unmet(m, inputs, made, call)
    used = (
        [value for loss in made for value in _used(loss, inputs)] if options["create_graph"] else []
    )
    gradients = _gradients(
        m, wanted, used or [*made, *_met(inputs, made)], call, create=options["create_graph"]
    )
    if (
        call.constant(6, "allow_unused") is True
        and call.get(8, "materialize_grads") is None
        and not call.open
    ):
        _leave_out(gradients, wanted, made)
    return gradients


def _refuse_unmet(m: Machine, inputs: list[Value], losses: list[Value], call: Call) -> None:
    """Ends the program where an input stands nowhere in the graphs: "to not have been used in the
    graph" (torch 2.13).

    What code out of view has computed with nobody knows.
    """
    graph = [value for loss in losses for value in tape.graph(loss)]
    if any(value.assumed or not _is_in_view(value) for value in graph):
        return
    for value in inputs:
        if value.requires_grad and not value.assumed and not _stands_in(value, graph):
            at = call.frame.span(call.node)
            m.emit(tape.Fact(at=at, what="unmet-input", value=value, source=losses[0]))
            raise Raised(Object("builtins.RuntimeError", at), at)


def _is_in_view(value: Value) -> bool:
    """Whether it is known what an operation computes with."""
    # from what of a graph it is computed is not known for certain
    is_derived = value.op == "torch.autograd.grad"
    return value.is_leaf or (
        not is_derived and (lookup(value.op) is not None or layer(value.op) is not None)
    )


def _stands_in(value: Value, graph: list[Value]) -> bool:
    """Whether a tensor is one of a graph, or can be: the same parameter, or what an operation may
    return unchanged.
    """
    if value.is_leaf:
        own = (value.parameter, value.storage)
        return any(value is each or (each.is_leaf and _are_same(own, each)) for each in graph)
    known = {id(each) for each in graph}
    while id(value) not in known:
        effect = lookup(value.op)
        can_be_its_input = (
            effect is None
            or effect.itself
            or effect.in_place
            or effect.view in ("maybe", "ordered")
        )
        if not can_be_its_input or not value.inputs:
            return False
        value = value.inputs[0]
    return True


def _are_same(own: tuple[object, object], other: Value) -> bool:
    parameter, storage = own
    is_parameter = parameter is not None and other.parameter is parameter
    return is_parameter or (storage is not None and other.storage is storage)


def _met(inputs: list[Value], losses: list[Value]) -> list[Value]:
    """The inputs, but for what may be the parameters of something out of view, and is met nowhere
    in the losses.
    """
    met = {id(value) for loss in losses for value in tape.graph(loss)}
    return [
        value
        for value in inputs
        if id(value) in met or not (value.assumed and value.kind is Kind.PARAMETER)
    ]


def _used(loss: Value, inputs: list[Value]) -> list[Value]:
    """What gradients with a graph of their own are computed from: what was saved on the way, not
    the way itself.

    What an operation out of view saved nobody knows, and a cross entropy saves what lies inside of
    it: they count.
    """
    graph, asked = list(tape.graph(loss)), {id(value) for value in inputs}
    way = tape.above(graph, {id(value) for value in graph if id(value) in asked}) or graph
    found: list[Value] = []
    for value in way:
        if value.op == "torch.autograd.grad":  # of the second order
            found += [source for source in value.inputs if source.requires_grad]
            continue
        saved = [kept.value for kept in value.saves if kept.value.requires_grad]
        is_in_view = value.is_leaf or lookup(value.op) is not None or layer(value.op) is not None
        between = is_loss_function(value.op) and value.saves and not saved
        found += saved if is_in_view and not between else [value]
    return found


def _leave_out(gradients: Sequence, wanted: Abstract | None, losses: list[Value]) -> None:
    """Puts None where nothing known of the losses was computed from an input
    (`allow_unused=True`).
    """
    values = [value for loss in losses for value in tape.graph(loss)]
    if not losses or any(value.assumed for value in values):
        return
    reached = {id(value.storage) for value in values}
    for position, asked in enumerate(wanted.items if isinstance(wanted, Sequence) else [wanted]):
        if (
            isinstance(asked, Tensor)
            and asked.node.storage is not None
            and id(asked.node.storage) not in reached
        ):
            gradients.items[position] = NONE


def _gradients(
    m: Machine, wanted: Abstract | None, sources: list[Value], call: Call, *, create: bool
) -> Sequence:
    count = len(wanted.items) if isinstance(wanted, Sequence) else 1
    is_open = (isinstance(wanted, Sequence) and wanted.open) or isinstance(wanted, Unknown)
    parts: list[Abstract] = []
    for position in range(max(count, 1)):
        if create or any(source.requires_grad and not source.assumed for source in sources):
            cut = None if create else Cut.DETACH
            made = tensors.operation(
                m, "torch.autograd.grad", sources, call.node, call.frame, cut=cut
            )
            made.storage = tape.Storage()
            part = Tensor(made)
        else:
            part = tensors.batch(m, "torch.autograd.grad", call.node, call.frame)
        part.node.flags |= {"gradient", f"output-{position}"}
        parts.append(part)
    return Sequence("tuple", parts, is_open, parts[-1])
