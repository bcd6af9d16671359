"""The modules math and random."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradlint.interpret.registry import FUNCTIONS, attribute, function
from gradlint.interpret.values import NONE, Abstract, Call, Unknown
from gradlint.library.python.lazies import listed
from gradlint.library.python.numbers import computed
from gradlint.library.python.outside import result_type
from gradlint.library.python.results import argument, constant, fresh, plain

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_LARGE = ("factorial", "comb", "perm", "pow", "exp", "prod", "lcm")
MAX_ARGUMENT = 100  # of a function that grows fast


def _compute(name: str) -> None:
    run = getattr(math, name)

    def bounded(*args: Any) -> Any:
        if name in _LARGE and any(abs(arg) > MAX_ARGUMENT for arg in args):
            raise ArithmeticError
        return run(*args)

    @function(f"math.{name}")
    def handler(m: Machine, call: Call) -> Abstract:
        made = computed(m, call, f"math.{name}", bounded, call.args)
        if isinstance(made, Unknown):
            made.type = result_type(f"math.{name}") or "number"
        return made


def _constant(name: str) -> None:
    @attribute("math", name)
    def handler(m: Machine, receiver: Abstract, call: Call) -> Abstract:
        return constant(call, getattr(math, name))


for _name in dir(math):
    if (
        callable(getattr(math, _name))
        and f"math.{_name}" not in FUNCTIONS
        and not _name.startswith("_")
    ):
        _compute(_name)
    elif isinstance(getattr(math, _name), float):
        _constant(_name)


@function("random.choice")
def choice(m: Machine, call: Call) -> Abstract:
    """`random.choice(x)`: one of them."""
    made = listed(m, argument(m, call), call)
    known = plain(made.items)
    return made.items[0] if known is None else fresh(m, call, _common(known))


def _common(values: list[Any]) -> str:
    kinds = {type(value) for value in values}
    return "number" if kinds and kinds <= {int, float} else "str" if kinds == {str} else ""


@function("random.sample", "random.choices")
def sample(m: Machine, call: Call) -> Abstract:
    """`random.sample(x, k)`: some of them."""
    made = listed(m, argument(m, call), call)
    made.open, made.rest = True, made.rest or (made.items[0] if made.items else None)
    return made


@function("random.shuffle", "random.seed")
def shuffle(m: Machine, call: Call) -> Abstract:
    """Another order, which is not followed."""
    return NONE
