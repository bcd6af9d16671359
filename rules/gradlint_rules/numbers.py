"""What is known of the numbers in a tensor: where they were taken from unchanged, and when they can
be zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.tape import Kind, Value
from gradlint_rules.words import bare

_SELECTS = {
    "getitem",
    "index",
    "index_select",
    "gather",
    "take",
    "take_along_dim",
    "masked_select",
    "narrow",
    "select",
}
_SELECTS |= {"diagonal"}
_SPLITS = {
    "chunk",
    "split",
    "unbind",
    "tensor_split",
    "split_with_sizes",
    "sort",
    "topk",
    "max",
    "min",
    "amax",
    "amin",
}
_SAME = {
    "view",
    "reshape",
    "view_as",
    "reshape_as",
    "flatten",
    "unflatten",
    "ravel",
    "squeeze",
    "unsqueeze",
    "transpose",
}
_SAME |= {
    "permute",
    "t",
    "T",
    "mT",
    "swapaxes",
    "movedim",
    "contiguous",
    "clone",
    "detach",
    "data",
    "to",
    "float",
}
_SAME |= {
    "double",
    "half",
    "bfloat16",
    "type",
    "type_as",
    "cuda",
    "cpu",
    "expand",
    "expand_as",
    "repeat",
    "flip",
    "roll",
}
_SAME |= {"broadcast_to", "checkpoint", "part", "Flatten", "Unflatten", "Identity"}
_KEEPS_ZERO = {
    "abs",
    "neg",
    "square",
    "sqrt",
    "sum",
    "mean",
    "nanmean",
    "nansum",
    "cumsum",
    "any",
    "all",
    "norm",
}
_KEEPS_ZERO |= {"vector_norm", "count_nonzero", "bool", "relu", "ReLU", "sgn", "sign", "threshold"}
SOFTMAX = {"softmax", "Softmax"}
RELU = {"relu", "ReLU", "relu6", "ReLU6"}
_PURE = {
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "clamp",
    "gt",
    "ge",
    "lt",
    "le",
    "eq",
    "ne",
    "exp",
    "log",
    "cos",
    "sin",
}
_PURE |= {"isnan", "isfinite", "isinf", "reciprocal", "rsqrt", *_KEEPS_ZERO}
BOUNDED_BOTH = {
    "sigmoid",
    "Sigmoid",
    "softmax",
    "Softmax",
    "tanh",
    "Tanh",
    "cos",
    "sin",
    "hardtanh",
    "Hardtanh",
}
BOUNDED_BOTH |= {
    "cosine_similarity",
    "CosineSimilarity",
    "normalize",
    "hardsigmoid",
    "relu6",
    "ReLU6",
}
_LEFT_OUT = -1e4  # the exponential of which, beside that of a usual logit, is zero in float32
DEPTH = 8


def unchanged(value: Value, *, selected: bool = True) -> Iterator[Value]:
    """`value`, then what its numbers were taken from as they are: through views, copies, casts,
    selections.
    """
    yield value
    while value.inputs and _shows(value, selected):
        value = value.inputs[0]
        yield value


def _shows(value: Value, selected: bool) -> bool:
    name = bare(value.op)
    if name == "output":
        return bare(value.op.rpartition(".")[0]) in _SPLITS
    if name in _SELECTS:
        return selected or ("selection" not in value.flags and name == "getitem")
    if name in ("max", "min", "amax", "amin") and isinstance(value.argument(1, "other"), Value):
        return False
    return name in _SAME or name in _SPLITS


def origin(value: Value, *, selected: bool = True) -> Value:
    """Where the numbers of `value` were computed."""
    *_, last = unchanged(value, selected=selected)
    return last


def key(value: Value, depth: int = 0) -> object:
    """What identifies the numbers of `value`: the same for two computations of the same from the
    same.
    """
    value = origin(value, selected=False)
    if depth > DEPTH or bare(value.op) not in _PURE or not value.inputs:
        return id(value)
    constants = tuple(
        (name, given) for name, given in value.arguments if isinstance(given, int | float | str)
    )
    return bare(value.op), tuple(key(source, depth + 1) for source in value.inputs), constants


def zero_with(value: Value) -> Iterator[Value]:
    """`value`, then what is zero where it is zero: below views, powers, sums, norms, products with
    a number.
    """
    while True:
        value = origin(value, selected=False)
        yield value
        if not value.inputs or not keeps_zero(value):
            return
        value = value.inputs[0]


def keeps_zero(value: Value) -> bool:
    """Whether an operation gives zero where what it is computed from is zero."""
    name = bare(value.op)
    if name == "pow":
        exponent = value.argument(1, "exponent")
        return isinstance(exponent, int | float) and exponent > 0
    if name in ("clamp", "clip", "clamp_min"):
        return value.argument(1, "min") in (None, 0) and len(value.inputs) == 1
    if name in ("maximum", "max"):
        return len(value.inputs) == 1 or constant(value.inputs[1]) == 0
    if name == "mul":
        return len(value.inputs) == 1
    if name == "div":
        return len(value.inputs) == 1 and value.argument(0) in (None, value.inputs[0])
    return name in _KEEPS_ZERO


def constant(value: Value) -> object:
    """The number that a constant is; None of what is computed."""
    return value.number if value.kind is Kind.CONSTANT else None


def leaves_out(softmax: Value) -> bool:
    """Whether some of its logits are minus infinity, so that their share is zero exactly."""
    logits = origin(softmax.inputs[0], selected=False) if softmax.inputs else softmax
    is_choice = bare(logits.op) in ("masked_fill", "where")
    return is_choice and any(is_left_out(given) for _, given in logits.arguments)


def is_left_out(logit: object) -> bool:
    """Whether it is a number, or a tensor of one, that a softmax gives no share."""
    number = constant(logit) if isinstance(logit, Value) else logit
    return isinstance(number, int | float) and number <= _LEFT_OUT


def passes_relu(value: Value) -> bool:
    """Whether, where `value` is zero, a ReLU on the way back makes the gradient zero, whatever it
    was.
    """
    return any(bare(source.op) in RELU for source in zero_with(value))
