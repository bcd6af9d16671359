"""einops: which of its results are shapes, and carry no gradient whatever they were read from, and
which show the memory of what they were made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import memory, tensors
from gradlint.interpret.calls import call_unseen
from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import function
from gradlint.interpret.values import Abstract, Call, Tensor, Unknown
from gradlint.library.effects import lookup
from gradlint.library.python.results import fresh, pair

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

alias("einops.packing", "einops")
alias("einops.einops", "einops")


@function("einops.pack")
def pack(m: Machine, call: Call) -> Abstract:
    """`pack([x, y], "b *")`: one tensor, and the shapes that its parts had."""
    return pair(call_unseen(m, call), fresh(m, call))


@function("einops.parse_shape")
def parse_shape(m: Machine, call: Call) -> Abstract:
    """`parse_shape(x, "b c h w")`: the sizes by name."""
    return fresh(m, call)


@function("einops.rearrange")
def rearrange(m: Machine, call: Call) -> Abstract:
    """`rearrange(x, "b n -> b n 1")`: a view, unless axes are joined, which can take a copy."""
    whole, pattern = call.get(0, "tensor"), call.constant(1, "pattern")
    joins = not isinstance(pattern, str) or "(" in pattern.rpartition("->")[2]
    is_mask = isinstance(whole, Unknown) and whole.type == "bool"
    if joins or whole is None or not (is_mask or _is_tensor(m, whole)):
        return call_unseen(m, call)
    shown = tensors.as_tensor(m, whole, call.node, call.frame)
    return memory.view(m, shown, call.name, call.node, call.frame)


_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin", "prod": "prod"}


@function("einops.reduce")
def reduce(m: Machine, call: Call) -> Abstract:
    """`reduce(x, "b n d -> b d", "sum")`: a sum over axes, which carries what `x` carries."""
    whole, kind = call.get(0, "tensor"), call.constant(2, "reduction")
    name = _REDUCTIONS.get(kind) if isinstance(kind, str) else None
    if name is None or whole is None or not _is_tensor(m, whole):
        return call_unseen(m, call)
    shown = tensors.as_tensor(m, whole, call.node, call.frame)
    return tensors.apply(m, f"torch.{name}", [shown], call.node, call.frame, lookup(name))


@function("einops.repeat")
def repeat(m: Machine, call: Call) -> Abstract:
    """`repeat(x, "b d -> b n d", n=4)`: a copy, which carries what `x` carries."""
    whole = call.get(0, "tensor")
    if whole is None or not _is_tensor(m, whole):
        return call_unseen(m, call)
    shown = tensors.as_tensor(m, whole, call.node, call.frame)
    return tensors.apply(m, "torch.repeat", [shown], call.node, call.frame, lookup("repeat"))


def _is_tensor(m: Machine, value: Abstract) -> bool:
    """Whether it is one tensor, and no list of several."""
    is_known = isinstance(value, Unknown) and (value.type == "tensor" or value.symbol in m.tensors)
    return isinstance(value, Tensor) or is_known
