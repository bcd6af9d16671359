"""What is known of the numbers in a tensor: where they were taken from unchanged, and when they can
be zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.tape import DRAWN, DType, Kind, Value, ancestors
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
_LOSSES_OF_SQUARES = {"mse_loss", "MSELoss"}
_POSITIVE = {
    "exp",
    "softplus",
    "Softplus",
    "sigmoid",
    "Sigmoid",
    "softmax",
    "Softmax",
    "cosh",
    "erfc",
}
SOFTMAX = {"softmax", "Softmax"}
_RELU = {"relu", "ReLU", "relu6", "ReLU6"}
_PRODUCTS = {"matmul", "mm", "bmm", "einsum", "addmm", "baddbmm"}
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
_QUOTIENTS = {"div", "divide", "true_divide"}
_BOUNDED_BOTH = {
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
_BOUNDED_BOTH |= {
    "cosine_similarity",
    "CosineSimilarity",
    "normalize",
    "hardsigmoid",
    "relu6",
    "ReLU6",
}
_BOUNDED = {*_BOUNDED_BOTH, "log_softmax", "LogSoftmax", "logsigmoid", "LogSigmoid"}
_SPREADS = {
    "add",
    "sub",
    "mul",
    "div",
    "sum",
    "mean",
    "matmul",
    "mm",
    "bmm",
    "einsum",
    "cat",
    "stack",
}
_ADDS = {"sum", "nansum", "mean", "nanmean", "cumsum", "scatter_add", "index_add"}
_LEFT_OUT = -1e4  # the exponential of which, beside that of a usual logit, is zero in float32
_SMALL = 1e-2  # what is added against a zero
_DEPTH = 8


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
    if depth > _DEPTH or bare(value.op) not in _PURE or not value.inputs:
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
        if not value.inputs or not _keeps_zero(value):
            return
        value = value.inputs[0]


def _keeps_zero(value: Value) -> bool:
    name = bare(value.op)
    if name == "pow":
        exponent = value.argument(1, "exponent")
        return isinstance(exponent, int | float) and exponent > 0
    if name in ("clamp", "clip", "clamp_min"):
        return value.argument(1, "min") in (None, 0) and len(value.inputs) == 1
    if name in ("maximum", "max"):
        return len(value.inputs) == 1 or _constant(value.inputs[1]) == 0
    if name == "mul":
        return len(value.inputs) == 1
    if name == "div":
        return len(value.inputs) == 1 and value.argument(0) in (None, value.inputs[0])
    return name in _KEEPS_ZERO


def _constant(value: Value) -> object:
    return value.number if value.kind is Kind.CONSTANT else None


def is_positive(value: Value) -> bool:
    """Whether the numbers of `value` are above zero by what computed them."""
    return any(_is_above_zero(source) for source in zero_with(value))


def _is_above_zero(value: Value) -> bool:
    name = bare(value.op)
    if name in ("clamp", "clip", "clamp_min"):
        low = value.argument(1, "min")
        return low is not None and (not isinstance(low, int | float) or low > 0)
    if name in ("maximum", "max"):
        return any(
            isinstance(given := _constant(source), int | float) and given > 0
            for source in value.inputs
        )
    if name == "add":
        others = [given for _, given in value.arguments if given not in value.inputs]
        added = any(
            not isinstance(other, int | float) or other > 0 for other in others
        ) or _count_all(value.inputs)
        return added and all(is_never_negative(source) for source in value.inputs)
    return name in _POSITIVE and not (name in SOFTMAX and leaves_out(value))


def _count_all(counts: tuple[Value, ...]) -> bool:
    """Whether these count a mask and the rest: `mask.sum() + (~mask).sum()`."""
    masks = [count.inputs[0] for count in counts if bare(count.op) == "sum" and count.inputs]
    return len(masks) == len(counts) == 2 and any(
        one.inputs[:1] == (other,) and one.dtype is DType.BOOL
        for one, other in (masks, masks[::-1])
    )


def leaves_out(softmax: Value) -> bool:
    """Whether some of its logits are minus infinity, so that their share is zero exactly."""
    logits = origin(softmax.inputs[0], selected=False) if softmax.inputs else softmax
    is_choice = bare(logits.op) in ("masked_fill", "where")
    return is_choice and any(is_left_out(given) for _, given in logits.arguments)


def is_left_out(logit: object) -> bool:
    """Whether it is a number, or a tensor of one, that a softmax gives no share."""
    number = _constant(logit) if isinstance(logit, Value) else logit
    return isinstance(number, int | float) and number <= _LEFT_OUT


def passes_relu(value: Value) -> bool:
    """Whether, where `value` is zero, a ReLU on the way back makes the gradient zero, whatever it
    was.
    """
    return any(bare(source.op) in _RELU for source in zero_with(value))


def is_never_negative(value: Value, depth: int = 0) -> bool:
    """Whether the numbers of `value` are zero or above."""
    found = origin(value, selected=False)
    name = bare(found.op)
    if name in ("clamp", "clip", "clamp_min"):
        low = found.argument(1, "min")
        return low is not None and (not isinstance(low, int | float) or low >= 0)
    if name in _ADDS and found.inputs and depth < _DEPTH:
        terms = [
            source
            for source in found.inputs
            if len(found.inputs) == 1 or source.dtype is not DType.INTEGER
        ]
        # an index is no term
        return all(_adds_nothing_negative(source, depth + 1) for source in terms)
    return (
        name in ("abs", "norm", "vector_norm")
        or name in _RELU
        or name in _POSITIVE
        or is_square(found)
    )


def _adds_nothing_negative(value: Value, depth: int) -> bool:
    """Whether a term of a sum is zero or above, as a mask is."""
    number = _constant(value)
    is_large = isinstance(number, int | float) and number >= 0
    return is_large or value.dtype is DType.BOOL or is_never_negative(value, depth)


def is_square(value: Value, depth: int = 0) -> bool:
    """Whether `value` is a square, or a sum or mean of squares, that can be zero."""
    found = origin(value, selected=False)
    if depth > _DEPTH or not found.inputs:
        return False
    name, first = bare(found.op), found.inputs[0]
    match name:
        case "pow":
            exponent = found.argument(1, "exponent")
            return (
                isinstance(exponent, int | float)
                and exponent > 0
                and exponent % 2 == 0
                and _can_be_zero(first)
            )
        case "square" | "var":
            return _can_be_zero(first)
        case "einsum" | "dot" | "inner" | "vdot":
            return _is_with_itself(found) and _can_be_zero(first)
        case "diag" | "diagonal":  # of `x @ x.T`
            product = origin(first, selected=False)
            return (
                bool(product.inputs)
                and _is_with_itself(product)
                and _can_be_zero(product.inputs[0])
            )
        case "mul":
            if _is_with_itself(found):
                return _can_be_zero(first)
            return any(is_square(source, depth + 1) for source in found.inputs)
        case "div":
            return found.argument(0) in (None, first) and is_square(first, depth + 1)
        case "add" | "sum" | "mean" | "stack" | "cat" | "nansum" | "cumsum":
            return _sums_squares(found, name, depth)
        case "clamp" | "clip" | "clamp_min":
            if _keeps_zero(found):
                return is_square(first, depth + 1) or _is_expanded_square(first)
            return False
    return name in _LOSSES_OF_SQUARES


def _is_with_itself(value: Value) -> bool:
    """Whether a product is one of a tensor with itself."""
    left, right = value.argument(0), value.argument(1, "other")
    return isinstance(left, Value) and isinstance(right, Value) and key(left) == key(right)


def _sums_squares(value: Value, name: str, depth: int) -> bool:
    if name == "add":
        others = [given for _, given in value.arguments if given not in value.inputs]
        if any(other != 0 for other in others):
            return False
    return all(is_square(source, depth + 1) for source in value.inputs)


def _can_be_zero(base: Value) -> bool:
    found = origin(base, selected=False)
    if found.kind in (Kind.PARAMETER, Kind.LEAF) or _is_written(found) or DRAWN in found.flags:
        return False
    return not is_positive(base) and not passes_relu(base) and not _is_kept_from_zero(found)


def is_within(value: Value, most: float) -> bool:
    """Whether an operation with a bound on both sides, and written factors, leave no number further
    from zero.
    """
    found, factor = origin(value, selected=False), 1.0
    for _ in range(_DEPTH):
        name = bare(found.op)
        if name in _BOUNDED_BOTH or name in ("clamp", "clip"):
            return factor <= most
        numbers = [given for _, given in found.arguments if isinstance(given, int | float)]
        is_factor = name == "mul" or (name == "div" and found.argument(0) not in numbers)
        if not is_factor or len(found.inputs) != 1 or not numbers:
            return False
        factor *= abs(numbers[0]) if name == "mul" else 1 / abs(numbers[0] or 1)
        found = origin(found.inputs[0], selected=False)
    return False


def is_bounded(value: Value, depth: int = 0) -> bool:
    """Whether the numbers of `value` have a bound above by what computed them, as far as that is
    known.
    """
    found = origin(value, selected=False)
    name = bare(found.op)
    numbers = [given for _, given in found.arguments if isinstance(given, int | float)]
    if name in _BOUNDED or not found.requires_grad:
        return True
    if name in ("clamp", "clip"):
        return found.argument(2, "max") is not None
    if name in ("clamp_max", "minimum"):
        return True
    if depth > _DEPTH or not found.inputs:
        return False
    if name in ("neg", "negative"):
        return is_never_negative(found.inputs[0]) or is_bounded_below(found.inputs[0], depth + 1)
    if name in ("mul", "div") and len(found.inputs) == 1 and numbers and numbers[0] < 0:
        return is_never_negative(found.inputs[0]) or is_bounded_below(found.inputs[0], depth + 1)
    if (
        name == "sub"
        and len(found.inputs) == 2
        and _is_extreme_of(found.inputs[1], found.inputs[0])
    ):
        return True
    return name in _SPREADS and all(is_bounded(source, depth + 1) for source in found.inputs)


def is_bounded_below(value: Value, depth: int = 0) -> bool:
    """Whether the numbers of `value` have a bound below by what computed them, as far as that is
    known.
    """
    found = origin(value, selected=False)
    name = bare(found.op)
    if name in _BOUNDED_BOTH or is_never_negative(found) or not found.requires_grad:
        return True
    if name in ("clamp", "clip"):
        return found.argument(1, "min") is not None
    spreads = name in _SPREADS and depth <= _DEPTH and bool(found.inputs)
    return spreads and all(is_bounded_below(source, depth + 1) for source in found.inputs)


def _is_extreme_of(value: Value, of: Value) -> bool:
    """Whether it is the largest of something: `x - x.max()`."""
    return any(
        bare(each.op) in ("max", "amax", "logsumexp", "output") for each in unchanged(value)
    ) and any(source is origin(of) for source in ancestors(value))


def _is_written(value: Value) -> bool:
    """Whether it is computed from written numbers alone."""
    return all(each.kind is Kind.CONSTANT for each in ancestors(value) if not each.inputs)


def _is_kept_from_zero(value: Value) -> bool:
    """Whether a small number is added, `(x - y + 1e-10) ** 2`, or a number is divided: it has no
    zero of its own.
    """
    given = [given for _, given in value.arguments if isinstance(given, int | float) and given != 0]
    if bare(value.op) in ("add", "sub"):
        return any(abs(number) <= _SMALL for number in given)
    return bare(value.op) in _QUOTIENTS and value.argument(0) in given


def _is_expanded_square(value: Value) -> bool:
    """`a² + b² - 2ab`: a sum in which squares and a product of matrices meet."""
    terms = list(_terms(value))
    products = [
        term for term in terms if any(bare(part.op) in _PRODUCTS for part in zero_with(term))
    ]
    return bool(products) and any(is_square(term) for term in terms)


def _terms(value: Value, depth: int = 0) -> Iterator[Value]:
    found = origin(value, selected=False)
    if bare(found.op) in ("add", "sub", "addmm", "baddbmm") and depth < _DEPTH:
        if bare(found.op) in ("addmm", "baddbmm"):
            yield found
        for source in found.inputs:
            yield from _terms(source, depth + 1)
    else:
        yield found
