"""`torch._foreach_mul_(tensors, 0.9)`: what an optimizer does to many tensors at once, done to each
of them.

Only what is done in place: of the others each result requires grad where one of the tensors does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import function
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import NONE, Abstract, Call, Lib, Sequence

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PREFIX = "torch._foreach_"
_OPS = (
    *(
        "abs_",
        "add_",
        "addcdiv_",
        "addcmul_",
        "ceil_",
        "clamp_max_",
        "clamp_min_",
        "copy_",
        "cos_",
        "div_",
        "exp_",
    ),
    *(
        "floor_",
        "lerp_",
        "log_",
        "mul_",
        "neg_",
        "pow_",
        "reciprocal_",
        "round_",
        "rsqrt_",
        "sigmoid_",
        "sign_",
    ),
    *("sin_", "sqrt_", "sub_", "tanh_", "trunc_", "zero_"),
)


@function(*(f"{_PREFIX}{op}" for op in _OPS))
def each(m: Machine, call: Call) -> Abstract:
    """Nothing: the tensors were written to."""
    if not call.args or not isinstance(call.args[0], Sequence):
        return call_unknown(m, m.session.library_symbol(call.name), call)
    op = f"torch.Tensor.{call.name.removeprefix(_PREFIX)}"
    for position in range(len(call.args[0].items)):
        args = [_at(position, arg) for arg in call.args]
        kwargs = {name: _at(position, arg) for name, arg in call.kwargs.items()}
        m.call(Lib(op), Call(op, args, kwargs, call.node, call.frame))
    return NONE


def _at(position: int, given: Abstract) -> Abstract:
    """The part of a list of tensors or numbers that belongs to a tensor; what is no list belongs to
    all.
    """
    return (
        given.items[position]
        if isinstance(given, Sequence) and position < len(given.items)
        else given
    )
