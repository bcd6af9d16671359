"""einops: which of its results are shapes, and carry no gradient whatever they were read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.calls import call_unseen
from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import function
from gradlint.interpret.values import Abstract, Call
from gradlint.library.python.results import fresh, pair

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

alias("einops.packing", "einops")
alias("einops.einops", "einops")


@function("einops.pack")
def pack(m: Machine, call: Call) -> Abstract:
    """`pack([x, y], "b *")`: one tensor, and the shapes that its parts had."""
    return pair(call_unseen(m, call), fresh(m, call))


@function("einops.parse_shape")
def parse_shape(m: Machine, call: Call) -> Abstract:
    """`parse_shape(x, "b c h w")`: the sizes by name."""
    return fresh(m, call)
