"""Signs of numbers: whether those of a tensor are above zero, never negative, or squares."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.operations import Trait, canonical, has
from gradlint.tape import DRAWN, DType, Kind, Value, ancestors
from gradlint_rules.numbers import (
    DEPTH,
    constant,
    keeps_zero,
    key,
    leaves_out,
    origin,
    passes_relu,
    zero_with,
)

_SMALL = 1e-2  # what is added against a zero


def is_positive(value: Value) -> bool:
    """Whether the numbers of `value` are above zero by what computed them."""
    return any(_is_above_zero(source) for source in zero_with(value))


def _is_above_zero(value: Value) -> bool:
    name = canonical(value.op)
    if name in ("clamp", "clamp_min"):
        low = value.argument(1, "min")
        return low is not None and (not isinstance(low, int | float) or low > 0)
    if name in ("maximum", "max"):
        return any(
            isinstance(given := constant(source), int | float) and given > 0
            for source in value.inputs
        )
    if name == "add":
        others = [given for _, given in value.arguments if given not in value.inputs]
        added = any(
            not isinstance(other, int | float) or other > 0 for other in others
        ) or _count_all(value.inputs)
        return added and all(is_never_negative(source) for source in value.inputs)
    return has(name, Trait.POSITIVE) and not (name == "softmax" and leaves_out(value))


def _count_all(counts: tuple[Value, ...]) -> bool:
    """Whether these count a mask and the rest: `mask.sum() + (~mask).sum()`."""
    masks = [count.inputs[0] for count in counts if canonical(count.op) == "sum" and count.inputs]
    return len(masks) == len(counts) == 2 and any(
        one.inputs[:1] == (other,) and one.dtype is DType.BOOL
        for one, other in (masks, masks[::-1])
    )


def is_never_negative(value: Value, depth: int = 0) -> bool:
    """Whether the numbers of `value` are zero or above."""
    found = origin(value, selected=False)
    name = canonical(found.op)
    if name in ("clamp", "clamp_min"):
        low = found.argument(1, "min")
        return low is not None and (not isinstance(low, int | float) or low >= 0)
    if _adds(name) and found.inputs and depth < DEPTH:
        terms = [
            source
            for source in found.inputs
            if len(found.inputs) == 1 or source.dtype is not DType.INTEGER
        ]
        # an index is no term
        return all(_adds_nothing_negative(source, depth + 1) for source in terms)
    return has(name, Trait.NEVER_NEGATIVE, Trait.POSITIVE) or is_square(found)


def _adds(name: str) -> bool:
    """Whether an operation gives sums or means of what it is given."""
    return has(name, Trait.SUMS, Trait.MEANS) or name in ("cumsum", "scatter_add", "index_add")


def _adds_nothing_negative(value: Value, depth: int) -> bool:
    """Whether a term of a sum is zero or above, as a mask is."""
    number = constant(value)
    is_large = isinstance(number, int | float) and number >= 0
    return is_large or value.dtype is DType.BOOL or is_never_negative(value, depth)


def is_square(value: Value, depth: int = 0) -> bool:
    """Whether `value` is a square, or a sum or mean of squares, that can be zero."""
    found = origin(value, selected=False)
    if depth > DEPTH or not found.inputs:
        return False
    name, first = canonical(found.op), found.inputs[0]
    match name:
        case "pow":
            return _is_even(found.argument(1, "exponent")) and _can_be_zero(first, found)
        case "square" | "var":
            return _can_be_zero(first, found)
        case "einsum" | "dot" | "inner" | "vdot":
            return _is_with_itself(found) and _can_be_zero(first, found)
        case "diag" | "diagonal":  # of `x @ x.T`
            product = origin(first, selected=False)
            is_gram = bool(product.inputs) and _is_with_itself(product)
            return is_gram and _can_be_zero(product.inputs[0], found)
        case "mul":
            if _is_with_itself(found):
                return _can_be_zero(first, found)
            return any(is_square(source, depth + 1) for source in found.inputs)
        case "div":
            return found.argument(0) in (None, first) and is_square(first, depth + 1)
        case "add" | "sum" | "mean" | "stack" | "cat" | "nansum" | "cumsum":
            return _sums_squares(found, name, depth) or _is_expanded_square(found, depth)
        case "sub" | "rsub" | "addmm" | "baddbmm":
            return _is_expanded_square(found, depth) or _is_apart_from_itself(found)
        case "clamp" | "clamp_min":
            return keeps_zero(found) and is_square(first, depth + 1)
    return name == "mse_loss"


def _is_even(exponent: object) -> bool:
    return isinstance(exponent, int | float) and exponent > 0 and exponent % 2 == 0


def _is_with_itself(value: Value) -> bool:
    """Whether a product is one of a tensor with itself."""
    left, right = value.argument(0), value.argument(1, "other")
    return isinstance(left, Value) and isinstance(right, Value) and key(left) == key(right)


def _sums_squares(value: Value, name: str, depth: int) -> bool:
    if name == "add":
        others = [given for _, given in value.arguments if given not in value.inputs]
        # what carries no gradient is there to keep the root from zero: `(x - y) ** 2 + width ** 2`
        is_smoothed = value.requires_grad and not all(term.requires_grad for term in value.inputs)
        if is_smoothed or any(other != 0 for other in others):
            return False
    return all(is_square(source, depth + 1) for source in value.inputs)


def _can_be_zero(base: Value, square: Value) -> bool:
    found = origin(base, selected=False)
    if found.kind in (Kind.PARAMETER, Kind.LEAF):
        return _is_still_zero(found, square)
    if _is_written(found) or DRAWN in found.flags:
        return False
    return not is_positive(base) and not passes_relu(base) and not _is_kept_from_zero(found)


def _is_still_zero(leaf: Value, use: Value) -> bool:
    """Whether a leaf begins with zeros, which nothing has written over before it is used."""
    writes = leaf.storage.writes if leaf.storage is not None else ()
    return leaf.number == 0 and not any(write.order <= use.order for write in writes)


def _is_written(value: Value) -> bool:
    """Whether it is computed from written numbers alone."""
    return all(each.kind is Kind.CONSTANT for each in ancestors(value) if not each.inputs)


def _is_kept_from_zero(value: Value) -> bool:
    """Whether a small number is added, `(x - y + 1e-10) ** 2`, or a number is divided: it has no
    zero of its own.
    """
    given = [given for _, given in value.arguments if isinstance(given, int | float) and given != 0]
    if canonical(value.op) in ("add", "sub"):
        return any(abs(number) <= _SMALL for number in given)
    return canonical(value.op) == "div" and value.argument(0) in given


def _is_expanded_square(value: Value, depth: int) -> bool:
    """`a² + b² - 2ab`: a sum of squares and products of matrices, and of nothing else."""
    if any(isinstance(number, int | float) and number for number in _numbers_in(value)):
        return False
    found, terms = origin(value, selected=False), list(_terms(value, depth))
    others = [term for term in terms if term is found or not is_square(term, depth + 1)]
    are_products = all(_is_product(_factored(term)[1]) for term in others)
    return bool(others) and are_products and len(others) < len(terms)


def _is_product(value: Value) -> bool:
    """Whether it is a product of two matrices, and of no weights: that is a layer."""
    is_layer = any(each.kind is Kind.PARAMETER for each in value.inputs)
    return has(value.op, Trait.CONTRACTS) and not is_layer


def _is_apart_from_itself(value: Value) -> bool:
    """`2 - 2 * (x @ x.T)` of what has unit length: zero where a row meets itself."""
    number, product = value.argument(0), value.argument(1, "other")
    if canonical(value.op) == "rsub":
        number, product = product, number
    return isinstance(product, Value) and own_cosine(product) == number


def own_cosine(value: Value) -> float:
    """The factor of a product of what has unit length with itself, `2` of `2 * (x @ x.T)`, which is
    what a row gives with itself; zero of anything else.
    """
    factor, product = _factored(value)
    if not has(product.op, Trait.CONTRACTS) or len(product.inputs) != 2:
        return 0
    (left, one), (right, other) = map(_factored, product.inputs)
    factor *= left * right
    return factor if key(one) == key(other) and _is_of_unit_length(one) else 0


def _factored(value: Value) -> tuple[float, Value]:
    """A multiple of a tensor: the number, and the tensor, whichever way it is turned."""
    factor, found = 1.0, origin(value, selected=False)
    while len(found.inputs) == 1:
        is_multiple = canonical(found.op) == "mul"
        if not (is_multiple or has(found.op, Trait.REARRANGES)):
            break
        numbers = [each for _, each in found.arguments if isinstance(each, int | float)]
        factor *= numbers[0] if is_multiple and numbers else 1
        found = origin(found.inputs[0], selected=False)
    return factor, found


def _is_of_unit_length(value: Value) -> bool:
    """`F.normalize(x)`, `x / x.norm(dim=1, keepdim=True)`."""
    if canonical(value.op) == "div" and len(value.inputs) == 2:
        length = origin(value.inputs[1], selected=False)
        is_norm = canonical(length.op) in ("norm", "vector_norm") and bool(length.inputs)
        return is_norm and key(length.inputs[0]) == key(value.inputs[0])
    return canonical(value.op) == "normalize"


def _numbers_in(value: Value, depth: int = 0) -> Iterator[object]:
    """The numbers that a sum adds besides its tensors."""
    found = origin(value, selected=False)
    if canonical(found.op) in ("add", "sub", "rsub") and depth < DEPTH:
        alpha = found.argument(2, "alpha")
        yield from (
            each for _, each in found.arguments if each not in found.inputs and each != alpha
        )
        for source in found.inputs:
            yield from _numbers_in(source, depth + 1)


def _terms(value: Value, depth: int = 0) -> Iterator[Value]:
    """What a sum adds up; `addmm(x, a, b)` adds its own product to `x`."""
    found = origin(value, selected=False)
    name = canonical(found.op)
    if name not in ("add", "sub", "addmm", "baddbmm") or depth >= DEPTH:
        yield found
        return
    adds_product = name in ("addmm", "baddbmm")
    if adds_product:
        yield found
    for source in found.inputs[:1] if adds_product else found.inputs:
        yield from _terms(source, depth + 1)


def is_difference(value: Value) -> bool:
    """`a - b` of two tensors: zero where they are equal, whatever they are."""
    return canonical(value.op) in ("sub", "rsub") and len(value.inputs) == 2
