"""Functions that autograd does not look into: kernels that a compiler takes from Python, and custom
operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import function, method
from gradlint.interpret.values import Abstract, Builtin, Call, Function, Object

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

KERNEL = "triton.JITFunction"
OPERATOR = "torch.library.CustomOpDef"


@function(
    "triton.jit",
    "triton.runtime.jit.jit",
    "numba.cuda.jit",
    "taichi.kernel",
    "taichi.func",
    "warp.kernel",
)
def kernel(m: Machine, call: Call) -> Abstract:
    """`@triton.jit`, bare or with settings: `pointer += offset` in it writes to no tensor, as
    autograd sees it.
    """
    if call.args and isinstance(call.args[0], Function):
        return Object(KERNEL, call.frame.span(call.node))
    return Builtin(call.name, kernel)


@function("torch.library.custom_op", "torch.library.triton_op")
def custom_operator(m: Machine, call: Call) -> Abstract:
    """`@custom_op("mine::norm", mutates_args=())`: its gradient is what `register_autograd` is
    given, out of view.
    """
    if any(isinstance(given, Function) for given in call.args):
        return Object(OPERATOR, call.frame.span(call.node))
    return Builtin(call.name, custom_operator)


@method(KERNEL, "__getitem__")
def at_a_grid(m: Machine, made: Object, call: Call) -> Abstract:
    """`kernel[grid]`: what launches it; a launch is a call of code out of view."""
    return made
