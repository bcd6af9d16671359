"""`torch.distributed`: what ranks exchange.

What another rank sent carries no gradient: the outputs of `all_gather` are cut. An in-place
reduction leaves the graph as it is, so that its gradient is not reduced: the fact `collective`;
`detail` is the function, `value` the tensor. Where gradients, or parameters, are exchanged by hand:
the facts `gradients-reduced` and `parameters-reduced`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import fallback, function
from gradlint.interpret.values import NONE, Abstract, Call, Const, Sequence, Tensor, Unknown
from gradlint.library.effects import lookup
from gradlint.tape import Cut, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PREFIX = "torch.distributed."
alias("torch.distributed.distributed_c10d", "torch.distributed")
alias("torch.distributed.nn.functional", "torch.distributed.nn")
# Where each function has what it fills and what it sends: positions and names of the arguments.
_GATHERS = {
    "all_gather": ((0, "tensor_list"), (1, "tensor")),
    "all_gather_into_tensor": ((0, "output_tensor"), (1, "input_tensor")),
    "_all_gather_base": ((0, "output_tensor"), (1, "input_tensor")),
    "gather": ((1, "gather_list"), (0, "tensor")),
    "all_to_all": ((0, "output_tensor_list"), (1, "input_tensor_list")),
    "all_to_all_single": ((0, "output"), (1, "input")),
    "reduce_scatter": ((0, "output"), (1, "input_list")),
    "reduce_scatter_tensor": ((0, "output"), (1, "input")),
    "scatter": ((0, "tensor"), (1, "scatter_list")),
    "recv": ((0, "tensor"), (9, "")),
}
_REDUCES = tuple(
    f"{_PREFIX}{name}" for name in ("all_reduce", "broadcast", "reduce", "all_reduce_coalesced")
)
_NUMBERS = frozenset(["get_rank", "get_world_size", "get_node_local_rank"])
_QUESTIONS = frozenset(
    [
        "is_initialized",
        "is_available",
        "is_nccl_available",
        "is_gloo_available",
        "is_torchelastic_launched",
        "is_mpi_available",
    ]
)


@function(*(f"{_PREFIX}{name}" for name in _GATHERS))
def gather(m: Machine, call: Call) -> Abstract:
    """`all_gather(into, tensor)`: fills tensors that have no graph."""
    into, sent = (call.get(*place) for place in _GATHERS[call.name.rpartition(".")[2]])
    inputs = tensors.sources(m, [sent], call.node, call.frame) if sent is not None else []
    _exchanged(m, inputs, call)
    for tensor in _tensors(m, into, call):
        before = tensor.node
        cut = Cut.COLLECTIVE if m.grad.enabled else None
        made = tensors.operation(m, call.name, inputs, call.node, call.frame, cut=cut)
        made.storage, made.name = before.storage, before.name
        made.dtype = inputs[0].dtype if inputs else before.dtype
        tensor.node = made
    return m.unknown(call.frame.text(call.node), data=True, type="object")


def _tensors(m: Machine, into: Abstract | None, call: Call) -> Iterable[Tensor]:
    """The tensors that a collective fills, each once."""
    if isinstance(into, Tensor):
        return [into]
    if isinstance(into, Sequence):
        items = [item for item in (*into.items, into.rest) if isinstance(item, Tensor)]
        return {id(item): item for item in items}.values()
    if isinstance(into, Unknown) and not into.data:
        return [tensors.as_tensor(m, into, call.node, call.frame)]
    return []


@function(*_REDUCES)
def reduce(m: Machine, call: Call) -> Abstract:
    """`all_reduce(tensor)`: changes the data; autograd knows nothing of it."""
    given = call.get(0, "tensor") or call.get(0, "tensors")
    nodes = tensors.sources(m, [given], call.node, call.frame) if given is not None else []
    name, at = call.name.rpartition(".")[2], call.frame.span(call.node)
    for node in [] if _exchanged(m, nodes, call) else nodes:
        if node.requires_grad and m.grad.enabled:
            m.emit(
                tape.Fact(
                    at=at,
                    what="collective",
                    value=node,
                    detail=name,
                    text=call.frame.text(call.node),
                )
            )
    return m.unknown(call.frame.text(call.node), data=True, type="object")


def _exchanged(m: Machine, sent: Iterable[Value], call: Call) -> bool:
    """Whether gradients are sent, or parameters: what a program does that keeps its ranks alike by
    itself.
    """
    found = False
    for node in (node for node in sent if not node.requires_grad or node.assumed):
        parameter = _parameter(node)
        is_gradient = any("gradient" in value.flags for value in tape.ancestors(node))
        if is_gradient or parameter is not None:
            found = True
            what = "gradients-reduced" if is_gradient else "parameters-reduced"
            m.emit(
                tape.Fact(
                    at=call.frame.span(call.node),
                    what=what,
                    value=node if is_gradient else parameter,
                )
            )
    return found


def _parameter(node: Value) -> Value | None:
    """The parameter whose memory it is: `p.data`."""
    around = (node, *node.inputs)
    return next(
        (each for each in around if each.parameter is not None and each.storage is node.storage),
        None,
    )


@function(
    "torch._utils._flatten_dense_tensors", "torch.nn.parallel.distributed._flatten_dense_tensors"
)
def flatten(m: Machine, call: Call) -> Abstract:
    """Gradients as one long tensor, to be sent at once."""
    given = call.get(0, "tensors")
    return tensors.apply(
        m, call.name, [given] if given is not None else [], call.node, call.frame, lookup("cat")
    )


@fallback
def other(m: Machine, call: Call) -> Abstract | None:
    """Collectives that autograd knows (`torch.distributed.nn`), questions, and the rest, which does
    nothing here.
    """
    if not call.name.startswith(_PREFIX):
        return None
    name = call.name.rpartition(".")[2]
    if name[:1].isupper():
        return None
    if "autograd" in name or call.name.startswith(
        (f"{_PREFIX}nn.", f"{_PREFIX}_functional_collectives.")
    ):
        return _differentiable(m, name, call)
    if name in _NUMBERS or name in _QUESTIONS:
        symbol = m.session.library_symbol(call.name)
        return Unknown(symbol, data=True, type="number" if name in _NUMBERS else "bool")
    if call.name != _PREFIX + name:  # torch.distributed.rpc, tensor, pipelining: not known here
        return None
    if name in (
        "broadcast_object_list",
        "all_gather_object",
        "gather_object",
        "scatter_object_list",
    ):
        _unknown_items(m, call.get(0, "object_list"))
    return m.unknown(call.frame.text(call.node), data=True, type="object")


# they are given what they fill, then what they send
_FILLING = ("reduce_scatter", "all_to_all", "all_to_all_single")
_NO_TENSORS = ("group", "op", "src", "dst", "async_op", "input_split_sizes", "output_split_sizes")


def _differentiable(m: Machine, name: str, call: Call) -> Abstract:
    """`torch.distributed.nn.all_gather(x)`: a tuple of tensors with their graphs, where that of `x`
    requires grad.
    """
    many = 2 if name in _FILLING else 1
    given = [
        *call.args[:many],
        *(value for key, value in call.kwargs.items() if key not in _NO_TENSORS),
    ]
    inputs: list[Value] = tensors.sources(m, given, call.node, call.frame)
    made = Tensor(tensors.operation(m, call.name, inputs, call.node, call.frame))
    made.node.storage = tape.Storage()
    several = name in ("all_gather", "gather", "all_to_all")
    return Sequence("tuple", [made, made], True, made) if several else made


def _unknown_items(m: Machine, given: Abstract | None) -> None:
    if isinstance(given, Sequence):
        given.items[:] = [
            item if isinstance(item, Const) and item is not NONE else m.unknown("object", data=True)
            for item in given.items
        ]
