"""What the recorder has to know of a torch function before it calls it: a small, cached judgement
by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from gradlint.library.effects import lookup
from gradlint.library.layer_effects import is_loss_function

# Attributes whose value is a tensor that shares something with the one they are read from.
_DESCRIPTORS = frozenset({"__get__", "__set__", "__delete__"})
_TENSOR_ATTRIBUTES = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})
# Methods that give sizes, flags or text, and those that torch calls for its own bookkeeping.
_UNRELATED = frozenset(
    [
        "size",
        "dim",
        "numel",
        "nelement",
        "stride",
        "is_contiguous",
        "data_ptr",
        "element_size",
        "type_as",
        "ndimension",
        "storage_offset",
        "__len__",
        "__repr__",
        "__hash__",
        "is_complex",
        "is_floating_point",
        "get_device",
        "register_post_accumulate_grad_hook",
        "__format__",
        "__deepcopy__",
        "__reduce_ex__",
        "__setstate__",
        "untyped_storage",
        "storage",
        "_record_function_enter_new",
        "allclose",
        "equal",
        "is_pinned",
        "is_shared",
        "share_memory_",
        "_is_view",
        "is_sparse",
        "is_set_to",
        "is_inference",
        "is_nonzero",
        "_version",
        "_is_all_true",
        "_has_compatible_shallow_copy_type",
        "get_default_dtype",
        "is_same_size",
        "is_conj",
        "is_neg",
        "promote_types",
        "result_type",
        "can_cast",
        "__dir__",
        "dim_order",
        "has_names",
        "_get_tracing_state",
        "broadcast_shapes",
        "__contains__",
        "_typed_storage",
        "resize_",
        "set_",
        "__cuda_array_interface__",
        "_nested_tensor_size",
        "storage_type",
        "is_signed",
        "is_distributed",
    ]
)
_ESCAPES = frozenset(
    ["item", "tolist", "numpy", "__float__", "__int__", "__complex__", "__array__", "__index__"]
)
_CONSTANTS = frozenset(
    [
        "tensor",
        "as_tensor",
        "zeros",
        "ones",
        "full",
        "empty",
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_empty",
        "new_tensor",
        "scalar_tensor",
        "eye",
        "asarray",
    ]
)
_DATA = frozenset(
    [
        "rand",
        "randn",
        "randint",
        "randperm",
        "arange",
        "linspace",
        "logspace",
        "rand_like",
        "randn_like",
        "randint_like",
        "normal",
        "from_numpy",
        "frombuffer",
        "empty_strided",
        "new_empty_strided",
        "tril_indices",
        "triu_indices",
        "hann_window",
        "hamming_window",
        "blackman_window",
        "from_file",
    ]
)
_SOFTMAX = frozenset(["softmax", "log_softmax"])
# `scaled_dot_product_attention` gives zeros there
_ATTENTION = frozenset(["multi_head_attention_forward"])
_SHAPED = frozenset(["expand_as", "view_as", "reshape_as", "type_as", "to"])
_COPIES = frozenset(
    ["tensor", "as_tensor", "new_tensor", "scalar_tensor", "full", "asarray", "from_numpy"]
)


@dataclass(frozen=True, slots=True)
class Spec:
    """How the recorder treats one function of torch's."""

    name: str
    title: str = ""  # as the tape names the operation: torch.Tensor.detach, torch.where
    ignored: bool = False
    escapes: bool = False
    writes: bool = False
    functional: bool = False
    constant: bool = False
    fill: float | None = None  # the number that all of a new tensor is: of `zeros_like` 0
    data: bool = False
    copies: bool = False
    patterned: bool = False  # the tensors that it is given only say shape and dtype
    shaped: bool = False  # those after the first do
    zero_gradient: bool = False
    missing: bool = False
    is_loss: bool = False
    is_softmax: bool = False  # or its logarithm
    is_attention: bool = False  # takes a softmax of what its masks leave
    reflected: bool = False  # called for `1 - x`: the tensor stands on the right
    special: str = ""
    passes: bool = field(init=False)  # a result that carries a gradient needs no record

    def __post_init__(self) -> None:
        passes = not (self.writes or self.functional or self.constant or self.data)
        object.__setattr__(self, "passes", passes)


def _name(func: Callable[..., Any]) -> str:
    name = getattr(func, "__name__", type(func).__name__)
    if name in _DESCRIPTORS:
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    return name


_SPECIAL = {
    "requires_grad_": "requires_grad_",
    "_set_grad_enabled": "grad_mode",
    "detach_": "detach_",
    "register_hook": "tap",
    "register_post_accumulate_grad_hook": "hook",
    "retain_grad": "tap",
}
_SETTERS = {"requires_grad": "set_requires_grad", "grad": "set_grad", "data": "set_data"}


# `1 - x` calls `__rsub__(x, 1)`; the tape has it as it is written.
_REFLECTED = {"__rsub__": "sub", "__rdiv__": "div", "__rtruediv__": "div", "__rpow__": "pow"}
_PYTHON = {
    "__float__": "float",
    "__int__": "int",
    "__complex__": "complex",
    "__array__": "numpy.asarray",
    "__index__": "int",
}


def _title(func: Callable[..., Any], name: str) -> str:
    if name in _PYTHON:
        return _PYTHON[name]
    if getattr(func, "__module__", "") == "torch.nn.functional":
        return f"torch.nn.functional.{name}"
    owner = (
        getattr(getattr(func, "__objclass__", None), "__name__", "")
        or getattr(func, "__qualname__", "").partition(".")[0]
    )
    return (
        f"torch.Tensor.{name}"
        if owner in ("TensorBase", "Tensor", "getset_descriptor")
        else f"torch.{name}"
    )


def _special(func: Callable[..., Any], name: str) -> str:
    kind = getattr(func, "__name__", "")
    if kind == "__set__":
        return _SETTERS.get(name, "")
    if kind == "__delete__":
        return "set_grad" if name == "grad" else ""
    if kind == "__get__":
        return {"grad": "get_grad", "data": "get_data"}.get(name, "")
    return _SPECIAL.get(name, "")


def _judge(func: Callable[..., Any]) -> Spec:
    name = _name(func)
    kind = getattr(func, "__name__", "")
    special = _special(func, name)
    if special:
        return Spec(name, _title(func, name), special=special)
    if (
        (kind in _DESCRIPTORS and name not in _TENSOR_ATTRIBUTES)
        or name in _UNRELATED
        or name.startswith("_record_function")
    ):
        return Spec(name, name, ignored=True)
    if func is torch.Tensor.backward or func is torch.autograd.grad:
        return Spec(name, name, ignored=True)
    title = _title(func, name)
    known = lookup(title)
    if name in _REFLECTED:
        title = f"torch.{_REFLECTED[name]}"
    functional = getattr(func, "__module__", "") == "torch.nn.functional"
    return Spec(
        name.removeprefix("__").removesuffix("__") if name.startswith("__") else name,
        title,
        escapes=name in _ESCAPES,
        writes=name == "__setitem__" or (name.endswith("_") and not name.endswith("__")),
        functional=functional,
        constant=name in _CONSTANTS,
        fill=0.0 if "zeros" in name else 1.0 if "ones" in name else None,
        data=name in _DATA,
        copies=name in _COPIES,
        patterned=name.endswith("_like") or (name.startswith("new_") and name != "new_tensor"),
        shaped=name in _SHAPED,
        zero_gradient=known is not None and known.zero_gradient,
        missing=known is not None and known.missing_derivative,
        is_loss=is_loss_function(title),
        is_softmax=name in _SOFTMAX,
        is_attention=name in _ATTENTION,
        reflected=name in _REFLECTED,
    )


known_specs: dict[Callable[..., Any], Spec] = {}


def spec(func: Callable[..., Any]) -> Spec:
    """The judgement on `func`; made once."""
    known = known_specs.get(func)
    if known is None:
        known = known_specs[func] = _judge(func)
    return known
