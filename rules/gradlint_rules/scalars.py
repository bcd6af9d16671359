"""Which values are known to be single numbers: what is reduced over all its dimensions, and what is
made of such.
"""

from __future__ import annotations

from collections.abc import Collection

from gradlint.tape import Value
from gradlint_rules.words import bare

_REDUCTIONS = {
    "mean",
    "nanmean",
    "sum",
    "nansum",
    "prod",
    "std",
    "var",
    "median",
    "norm",
    "max",
    "min",
    "amax",
    "amin",
}
_REDUCTIONS |= {"trace", "dot", "dist", "vdot"}
_ELEMENTWISE = {
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "multiply",
    "div",
    "truediv",
    "rtruediv",
    "true_divide",
}
_ELEMENTWISE |= {
    "divide",
    "neg",
    "negative",
    "pow",
    "square",
    "sqrt",
    "exp",
    "log",
    "log1p",
    "abs",
    "relu",
    "softplus",
}
_ELEMENTWISE |= {
    "clamp",
    "clip",
    "sigmoid",
    "tanh",
    "maximum",
    "minimum",
    "scale",
    "squeeze",
    "to",
    "float",
    "half",
}
_ELEMENTWISE |= {"double", "bfloat16", "clone", "contiguous", "cuda", "cpu", "nan_to_num"}


def is_scalar(value: Value, known: Collection[int] = ()) -> bool:
    """Whether a value is surely a single number; `known` are the ids of values that are."""
    seen, pending = {id(value)}, [value]
    for current in pending:
        if id(current) in known or _is_reduced(current):
            continue
        sources = [source for source in current.inputs if source.requires_grad]
        if bare(current.op) not in _ELEMENTWISE or not sources:
            return False
        for source in sources:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return True


def _is_reduced(value: Value) -> bool:
    """Whether an operation reduces over all dimensions: it is given none of them, nor a second
    tensor.
    """
    if bare(value.op) not in _REDUCTIONS:
        return False
    axis = 2 if bare(value.op) in ("norm", "dot", "dist", "vdot") else 1
    return value.argument(axis, "dim", "axis", "other") is None
