"""`torch.autograd.grad`: the gradients of losses with respect to its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import shapes, tensors
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import function
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.autograd import (
    backward_options,
    fail_as_meant,
    joined_losses,
    loss_of,
    may_have_a_graph,
    raise_as_torch_does,
    refuse_in_transform,
)
from gradlint.library.effects import lookup
from gradlint.library.layer_effects import is_loss_function, layer
from gradlint.tape import Cut, Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


_WITHOUT_GRAPH = ("vmap", "jvp", "jacfwd")  # of what they give a function
_WITH_GRAPH = ("grad", "grad_and_value", "jacrev", "vjp", "hessian")


@function("torch.autograd.grad")
def grad(m: Machine, call: Call) -> Abstract:
    """The gradients, with a graph of their own where `create_graph=True`."""
    fail_as_meant(m, call)
    outputs, wanted = call.get(0, "outputs"), call.get(1, "inputs")
    options: dict[str, Any] = backward_options(call, 3)
    asked = call.get(4, "create_graph")
    if call.open or not isinstance(asked, Const | None):
        options = {"retain_graph": True, "create_graph": True}  # there can be a graph, and it stays
    inputs = tensors.sources(m, [wanted], call.node, call.frame) if wanted is not None else []
    values = outputs.items if isinstance(outputs, Sequence) else [outputs]
    made = [
        loss
        for value in values
        if value is not None and (loss := loss_of(m, value, call)) is not None
    ]
    is_of_transform = _is_of_transform(m, inputs, made, call)
    sinks = _sinks(m, made, call)
    for loss in () if is_of_transform else sinks:
        if not may_have_a_graph(m, loss):
            _back_propagate(m, loss, inputs, options, call)
    if made and not _allows_unused(call) and not is_of_transform:
        _refuse_unreached(m, inputs, made, call)
    creates = options["create_graph"]
    used = [value for loss in made for value in _used(loss, inputs)] if creates else []
    sources = used or [*made, *_reached(inputs, made)]
    gradients = _gradients(m, wanted, sources, call, create=creates)
    # with `materialize_grads=True` torch gives zeros for what the graph does not hold
    may_materialize = call.open or call.get(8, "materialize_grads") is not None
    if call.constant(6, "allow_unused") is True and not may_materialize:
        _leave_out(gradients, wanted, made)
    return gradients


def _sinks(m: Machine, losses: list[Value], call: Call) -> list[Value]:
    """The losses as autograd takes them: several that require grad are one backward together."""
    if len(losses) > 1 and all(loss.requires_grad for loss in losses):
        return [joined_losses(m, losses, call)]
    return losses


def _back_propagate(
    m: Machine, loss: Value, inputs: list[Value], options: dict[str, Any], call: Call
) -> None:
    """Writes the backward of a loss onto the tape, and raises where torch does."""
    event = tape.Backward(
        at=call.frame.span(call.node), text=call.frame.text(call.node), value=loss,
        sink="autograd.grad",
        inputs=tuple(inputs), scaler=m.state.get("scaled", {}).get(id(loss)), **options,
    )  # fmt: skip
    m.emit(event)
    raise_as_torch_does(m, event)


def _is_of_transform(m: Machine, inputs: list[Value], losses: list[Value], call: Call) -> bool:
    """Whether the graph is one that a transform records, of what it gives a function; ends the
    program where it records none (torch 2.13).

    Some transforms record none of what they give: "does not require grad". In the others what a
    function was not given is not in the graph of what it computes from what it was given.
    """
    around = m.state.get("transforms", ())
    if not inputs or not around:
        return False
    given = {id(value) for value in m.state.get("given in transforms", ())}
    is_computed = _hangs_on(m, losses, given)
    if all(name.endswith(_WITHOUT_GRAPH) for name in around):
        is_refused = is_computed or all(id(value) in given for value in inputs)
    else:
        is_apart = not all(_hangs_on(m, [value], given) for value in inputs)
        is_refused = is_computed and is_apart and around[-1].endswith(_WITH_GRAPH)
        is_refused = is_refused and not _allows_unused(call)
    if is_refused:
        refuse_in_transform(m, "autograd.grad", call)
    return is_computed and around[-1].endswith(_WITH_GRAPH)


def _hangs_on(m: Machine, values: list[Value], given: set[int]) -> bool:
    """Whether the function that is transformed computes these from what it was given: what was
    computed outside of it is none of the transform's.
    """
    around = m.where[: m.state.get("around transforms", 0) + 1]
    seen, pending = set(map(id, values)), list(values)
    for value in pending:
        if id(value) in given:
            return True
        is_within = value.stack[: len(around)] == around
        for source in value.inputs if is_within else ():
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return False


def _allows_unused(call: Call) -> bool:
    """Whether `autograd.grad` may be told to give None or zeros for an input that was not met."""
    asked = (call.get(6, "allow_unused"), call.get(8, "materialize_grads"))
    return call.open or any(option is not None for option in asked)


def _refuse_unreached(m: Machine, inputs: list[Value], losses: list[Value], call: Call) -> None:
    """Ends the program where an input stands nowhere in the graphs: "to not have been used in the
    graph" (torch 2.13).

    What code out of view has computed with nobody knows. What a function was given was there
    before it: it is computed from no result of the function's own. Where such a result has no
    gradient, the call raises, too: "does not require grad".
    """
    graph = [value for loss in losses for value in tape.graph(loss)]
    if not all(map(_is_in_view, graph)):
        return
    is_known = not any(value.assumed for value in (*losses, *graph))
    for value in inputs:
        is_sure = not value.is_leaf or (is_known and not value.assumed)
        if value.requires_grad and is_sure and not _stands_in(value, graph):
            at = call.frame.span(call.node)
            m.emit(tape.Fact(at=at, what="unmet-input", value=value, source=losses[0]))
            raise Raised(Object("builtins.RuntimeError", at), at)


def _is_in_view(value: Value) -> bool:
    """Whether it is known what an operation computes with."""
    # from what of a graph it is computed is not known for certain
    is_derived = value.op == "torch.autograd.grad"
    is_given = value.is_leaf or tape.PREDICTED in value.flags
    return is_given or (
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
        if not value.inputs or not _can_be_its_input(value):
            return False
        value = value.inputs[0]
    return True


def _can_be_its_input(value: Value) -> bool:
    """Whether an operation may return the very tensor that it is given: `to`, `float`, `flatten` of
    one axis, but not `reshape`, which makes a new one of the same sizes, too (torch 2.13).
    """
    effect = lookup(value.op)
    if effect is None or effect.in_place:
        return True
    axes, before = shapes.axes(value), shapes.axes(value.inputs[0])
    if before is None:
        is_turned = axes is not None and shapes.least_axes(value.inputs[0]) > axes
    else:
        is_turned = axes != before
    return (effect.itself or effect.unchanged or effect.view == "maybe") and not is_turned


def _are_same(own: tuple[object, object], other: Value) -> bool:
    parameter, storage = own
    is_parameter = parameter is not None and other.parameter is parameter
    return is_parameter or (storage is not None and other.storage is storage)


def _reached(inputs: list[Value], losses: list[Value]) -> list[Value]:
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
