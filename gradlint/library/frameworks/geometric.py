"""PyTorch Geometric: `propagate` of a MessagePassing class runs the methods that the class defines.

class Conv(MessagePassing):
    def forward(self, x, edge_index):
        # message, aggregate and update, in this order
        return self.propagate(edge_index, x=self.lin(x))

    def message(self, x_j, x_i):  # rows of `x`: where an edge begins, where it ends
        return x_j - x_i

As in release 2.8: what a method does not define is `x_j`, a sum over the edges of each node, and
that sum itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import tensors
from gradlint.interpret.lineage import alias, parent
from gradlint.interpret.registry import method
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Bound,
    Call,
    Const,
    Function,
    Instance,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.effects import lookup
from gradlint.library.python.results import fresh, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

LAYER = "torch_geometric.nn.MessagePassing"
parent(LAYER, "torch.nn.Module")
for _module in ("torch_geometric.nn.conv", "torch_geometric.nn.conv.message_passing"):
    alias(f"{_module}.MessagePassing", LAYER)
_ENDS = {"_j": 0, "_i": 1}  # the rows of `edge_index`: messages go from source to target


@method(LAYER, "propagate")
def propagate(m: Machine, layer: Instance, call: Call) -> Abstract:
    """`self.propagate(edge_index, x=x)`: messages of the edges, summed up at their nodes, and what
    is made of that.
    """
    messages = _own(m, layer, "message", call, [])
    if messages is None:
        messages = _argument(m, "x_j", call)
    if messages is None:
        return m.unknown(text(call))
    summed = _own(m, layer, "aggregate", call, [messages])
    if summed is None:
        summed = _summed(m, messages, call)
    made = _own(m, layer, "update", call, [summed])
    return summed if made is None else made


@method(LAYER, "edge_updater")
def edge_updater(m: Machine, layer: Instance, call: Call) -> Abstract:
    """`self.edge_updater(edge_index, alpha=alpha)`: what `edge_update` makes of the edges."""
    made = _own(m, layer, "edge_update", call, [])
    return m.unknown(text(call)) if made is None else made


def _own(
    m: Machine, layer: Instance, name: str, call: Call, given: list[Abstract]
) -> Abstract | None:
    """What a method gives that the class of a layer defines; None where it has none of its own."""
    found = m.session.member_of(layer.cls, name)
    if not isinstance(found, Function):
        return None
    wanted = [
        each
        for each in found.node.parameters[1 + len(given) :]
        if each.kind in ("positional", "keyword")
    ]
    kwargs = {
        each.name: value for each in wanted if (value := _argument(m, each.name, call)) is not None
    }
    return m.call(Bound(found, layer), Call(name, given, kwargs, call.node, call.frame))


def _argument(m: Machine, name: str, call: Call) -> Abstract | None:
    """What a parameter of a method is given; None where `propagate` was given nothing for it."""
    if name in call.kwargs:
        return call.kwargs[name]
    if name[-2:] in _ENDS and name[:-2] in call.kwargs:
        return _rows(m, call.kwargs[name[:-2]], _ENDS[name[-2:]], call)
    if name in ("index", "edge_index_i", "edge_index_j"):
        return m.unknown(name, data=True, type="tensor")
    if name in ("size_i", "size_j", "dim_size"):
        return fresh(m, call, "number")
    return call.get(0, "edge_index") if name == "edge_index" else NONE if name == "ptr" else None


def _rows(m: Machine, nodes: Abstract, end: int, call: Call) -> Abstract:
    """The rows of what nodes have at one end of each edge; sources and targets can have each their
    own.
    """
    if isinstance(nodes, Sequence) and len(nodes.items) == len(_ENDS):
        nodes = nodes.items[end]
    if not isinstance(nodes, Tensor | Unknown):
        return nodes
    index = m.unknown("edge_index", data=True, type="tensor")
    arguments: list[Abstract] = [nodes, Const(0), index]
    return tensors.apply(
        m, "torch.index_select", arguments, call.node, call.frame, lookup("index_select")
    )


def _summed(m: Machine, messages: Abstract, call: Call) -> Abstract:
    if not isinstance(messages, Tensor | Unknown):
        return m.unknown(text(call))
    return tensors.apply(
        m, "torch.index_add", [messages], call.node, call.frame, lookup("index_add")
    )
