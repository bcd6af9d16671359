"""Whether a conversion changes nothing, so that torch gives back the very tensor: `.float()`,
`.to("cpu")`.

What is not sure is taken for a copy that carries the flag `may-share`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.values import Abstract, Call, Const, Lib, Object, Tensor
from gradlint.library.devices import DEVICE, goes_to, is_made_there, names_device, type_of
from gradlint.library.effects import lookup
from gradlint.library.layer_effects import layer
from gradlint.tape import DType, Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_DEEPEST = 24  # operations that are followed
_OF_ONE_DTYPE = frozenset(
    ["linear", "matmul", "mm", "bmm", "mv", "addmm", "conv1d", "conv2d", "conv3d"]
)


def changes_nothing(m: Machine, tensor: Tensor, wanted: DType | None, call: Call) -> bool:
    """Whether a tensor surely has the dtype, and lies where it is sent to."""
    if call.open or call.kwargs.keys() - {"dtype", "device", "non_blocking", "other"}:
        return False  # `copy=True`, `memory_format=…`
    model = next((value for value in call.values if isinstance(value, Tensor)), None)
    if wanted is not None and not _has_dtype(m, tensor.node, wanted, call, model):
        return False
    if model is not None:
        return is_on_cpu(m, tensor.node) and is_on_cpu(m, model.node)
    if _names_place(call):
        return is_made_there(m, [tensor.node], call) or (
            goes_to(m, call) == "cpu" and is_on_cpu(m, tensor.node)
        )
    return True


def _names_place(call: Call) -> bool:
    return (
        call.called in ("cpu", "cuda") or "device" in call.kwargs or any(map(_is_place, call.args))
    )


def _is_place(value: Abstract) -> bool:
    is_name = isinstance(value, Const) and (
        isinstance(value.value, str) or type(value.value) is int
    )
    is_dtype = isinstance(value, Lib) or (isinstance(value, Object) and value.cls != DEVICE)
    return is_name or (names_device(value) and not isinstance(value, Const) and not is_dtype)


def _has_dtype(m: Machine, node: Value, wanted: DType, call: Call, model: Tensor | None) -> bool:
    """Whether a tensor has the dtype that is asked for, `x.to(x.dtype)` included."""
    if node.dtype is not wanted or not wanted.is_differentiable:
        return False
    is_sure = wanted is not DType.UNKNOWN and is_of_sure_dtype(m, node)
    return is_sure and (model is None or is_of_sure_dtype(m, model.node))


def is_of_sure_dtype(m: Machine, node: Value, depth: int = _DEEPEST) -> bool:
    """Whether nothing that is unknown could have made the dtype of a tensor another one."""
    if (
        node.dtype is DType.UNKNOWN
        or node.autocast
        or node.assumed
        or depth == 0
        or m.state.get("default-set")
    ):
        return False
    wrapped: Value | None = m.state.get("wrapped", {}).get(id(node))  # by an `nn.Parameter`
    if wrapped is not None:
        return is_of_sure_dtype(m, wrapped, depth - 1)
    if "converted" in node.flags:
        return True
    computed = [
        source for source in node.inputs if source.in_torch and source.dtype.is_differentiable
    ]
    sure = (is_of_sure_dtype(m, source, depth - 1) for source in computed)
    return any(sure) if computed and _is_of_one_dtype(node.op) else all(sure)


def _is_of_one_dtype(op: str) -> bool:
    """Whether the operation refuses tensors of different dtypes: where one is known, so are all."""
    of_layer = layer(op) if op.startswith("torch.nn.") else None
    name = of_layer.function if of_layer is not None else getattr(lookup(op), "name", "")
    return name in _OF_ONE_DTYPE


def is_on_cpu(m: Machine, node: Value) -> bool:
    """Whether a tensor surely lies in the CPU's memory: it is computed from what is made there, and
    this path puts nothing elsewhere.
    """
    placed = m.state.get("placed", {}).values()
    if m.state.get("default-set") or any(type_of(m, given) != "cpu" for _, given in placed):
        return False
    return any(_is_made_here(leaf) for leaf in tape.ancestors(node))


def _is_made_here(leaf: Value) -> bool:
    if leaf.inputs or leaf.assumed:
        return False
    effect = lookup(leaf.op)
    return leaf.kind in (Kind.PARAMETER, Kind.CONSTANT) or (effect is not None and effect.creates)
