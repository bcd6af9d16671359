"""What chance decides: the numbers that calls draw, by the symbols that questions about them are
asked of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import on
from gradlint.interpret.values import Abstract, Call, Const, Tensor, Unknown
from gradlint.library.effects import lookup

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_MODULES = ("random.", "secrets.", "numpy.random.")
_SAMPLED = (
    "bernoulli",
    "multinomial",
    "normal",
    "poisson",
    "rrelu",
    "gumbel_softmax",
    "fractional_max_pool2d",
)


@on("library call")
def drawn(m: Machine, call: Call, made: Abstract) -> None:
    """`random.random()`, `np.random.uniform()`, `torch.rand(1)`; what `random.choice(x)` picks was
    there before.

    What the constructor of the entry's object draws is the same whenever its method is called.
    """
    is_number = isinstance(made, Tensor) or (
        isinstance(made, Unknown) and made.type in ("number", "array")
    )
    if is_number and not m.oracle.prepares and _draws(call.name):
        m.state.setdefault("drawn", set()).add(m.symbol(made))


def _draws(name: str) -> bool:
    if name.startswith(_MODULES):
        return True
    package, _, op = name.rpartition(".")
    return package == "torch" and is_random(op)


def is_random(op: str) -> bool:
    """Whether an operation gives something else each time: `rand`, `bernoulli`, `dropout`."""
    effect = lookup(op)
    return effect is not None and (effect.random or op in _SAMPLED or "dropout" in op)


def is_nothing(m: Machine, share: Abstract) -> bool:
    """Whether so much of a tensor is dropped as none at all: 0, or what is 0 by the default of what
    a part is made with.
    """
    if isinstance(share, Unknown):
        return bool(m.state.get("defaults", {}).get(share.symbol) == 0)
    return isinstance(share, Const) and share.value == 0
