"""What is known of the numbers in a tensor: where they were taken from unchanged, and when they can
be zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.operations import Trait, canonical, has
from gradlint.tape import Kind, Value, ancestors

# the same numbers, in another shape, order or dtype
_SHOWS = (Trait.REARRANGES, Trait.CASTS, Trait.COPIES)
_OF_NO_TENSOR = ("checkpoint", "part", "Identity")  # which show what they are given
_SOME = (Trait.SPLITS, Trait.UNBINDS, Trait.EXTREMES)  # some of the numbers, or all in their order
_PURE = (Trait.POINTWISE, Trait.KEEPS_ZERO, Trait.COMPARES, Trait.ASKS_FINITE)
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


def of_memory(written: Value) -> Iterator[Value]:
    """What a value shows the memory of; not what it is a copy of, nor what it is computed from, as
    that is which a layer writes in place.
    """
    yield written
    value = written
    while value.inputs and _shows(value, selected=True) and not _is_copied(value):
        value = value.inputs[0]
        yield value
    if written.storage is not None:
        yield from (each for each in ancestors(written) if each.storage is written.storage)


def _is_copied(value: Value) -> bool:
    """Whether an operation that keeps the numbers gives them memory of their own, for all that is
    known.
    """
    name = canonical(value.op)
    return has(name, Trait.COPIES, Trait.CASTS) and name not in ("data", "detach")


def _shows(value: Value, selected: bool) -> bool:
    name = canonical(value.op)
    if name == "output":
        return has(value.op.rpartition(".")[0], *_SOME)
    if has(name, Trait.SELECTS):
        return selected or ("selection" not in value.flags and name == "getitem")
    if has(name, Trait.EXTREMES) and isinstance(value.argument(1, "other"), Value):
        return False
    return name in _OF_NO_TENSOR or has(name, *_SHOWS, *_SOME)


def origin(value: Value, *, selected: bool = True) -> Value:
    """Where the numbers of `value` were computed."""
    *_, last = unchanged(value, selected=selected)
    return last


def key(value: Value, depth: int = 0) -> object:
    """What identifies the numbers of `value`: the same for two computations of the same from the
    same.
    """
    value = origin(value, selected=False)
    if depth > DEPTH or not has(value.op, *_PURE) or not value.inputs:
        return id(value)
    constants = tuple(
        (name, given) for name, given in value.arguments if isinstance(given, int | float | str)
    )
    return canonical(value.op), tuple(key(source, depth + 1) for source in value.inputs), constants


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
    name = canonical(value.op)
    if name == "pow":
        exponent = value.argument(1, "exponent")
        return isinstance(exponent, int | float) and exponent > 0
    if name in ("clamp", "clamp_min"):
        return value.argument(1, "min") in (None, 0) and len(value.inputs) == 1
    if name in ("maximum", "max"):
        return len(value.inputs) == 1 or constant(value.inputs[1]) == 0
    if name == "mul":
        return len(value.inputs) == 1
    if name == "div":
        return len(value.inputs) == 1 and value.argument(0) in (None, value.inputs[0])
    return has(name, Trait.KEEPS_ZERO)


def constant(value: Value) -> object:
    """The number that a constant is; None of what is computed."""
    return value.number if value.kind is Kind.CONSTANT else None


def leaves_out(softmax: Value) -> bool:
    """Whether some of its logits are minus infinity, so that their share is zero exactly."""
    logits = origin(softmax.inputs[0], selected=False) if softmax.inputs else softmax
    is_choice = canonical(logits.op) in ("masked_fill", "where")
    return is_choice and any(is_left_out(given) for _, given in logits.arguments)


def is_left_out(logit: object) -> bool:
    """Whether it is a number, or a tensor of one, that a softmax gives no share."""
    number = constant(logit) if isinstance(logit, Value) else logit
    return isinstance(number, int | float) and number <= _LEFT_OUT


def passes_relu(value: Value) -> bool:
    """Whether, where `value` is zero, a ReLU on the way back makes the gradient zero, whatever it
    was.
    """
    return any(canonical(source.op) in ("relu", "relu6") for source in zero_with(value))
