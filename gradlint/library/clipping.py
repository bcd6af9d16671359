"""Gradients clipped or measured: `clip_grad_norm_` and what is like it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import function
from gradlint.interpret.values import Abstract, Call, Const, Mapping, Sequence, Tensor, Unknown
from gradlint.library import misfits
from gradlint.library.holdings import MAX_DEPTH
from gradlint.library.structure import is_module, unknown_parameters
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

alias("torch.nn.utils.clip_grad", "torch.nn.utils")
_CLIPS = tuple(
    f"torch.nn.utils.{name}"
    for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm", "clip_grads_with_norm_")
)


@function(*_CLIPS)
def clip_grad(m: Machine, call: Call) -> Abstract:
    """`clip_grad_norm_(parameters, max_norm)`: gives the norm that there was."""
    misfits.refuse(m, call.get(0, "parameters"), call, "parameters", groups=False)
    # no norm is above infinity: `clip_grad_norm_(parameters, inf)` is how a norm is measured
    return clip(
        m, call.get(0, "parameters"), call, measures=call.constant(1, "max_norm") == math.inf
    )


def clip(m: Machine, given: Abstract | None, call: Call, *, measures: bool = False) -> Abstract:
    """Clips the gradients of `given`: parameters, or a module that has them. Without a bound, it
    measures.
    """
    exhausted = (
        isinstance(given, Sequence) and given.kind == "generator" and given.consumed is not None
    )
    values = tuple(parameters(m, given, call)) if given is not None else ()
    m.emit(
        tape.Clip(
            at=call.frame.span(call.node),
            parameters=values,
            reads_only=measures,
            exhausted=exhausted,
            text=call.frame.text(call.node),
        )
    )
    return tensors.batch(m, call.name, call.node, call.frame)


def parameters(m: Machine, given: Abstract, call: Call, depth: int = 0) -> list[Value]:
    """The parameters that an argument holds: tensors, generators and lists of them, a module's."""
    if isinstance(given, Tensor):
        return [given.node]
    if isinstance(given, Unknown):
        is_plain = given.type in ("number", "str", "bool")
        return [] if is_plain else [unknown_parameters(m, given, call).node]
    if is_module(given):
        method = m.attribute(given, "parameters", call)
        given = m.call(method, Call("parameters", [], {}, call.node, call.frame))
    if isinstance(given, Const) or depth > MAX_DEPTH:
        return []
    if isinstance(given, Mapping):
        held: Iterable[Abstract] = given.items.values()
    else:
        held = map(_without_name, m.items(given, call))
    return [value for item in held for value in parameters(m, item, call, depth + 1)]


def _without_name(item: Abstract) -> Abstract:
    """The parameter of a pair of `named_parameters()`; anything else as it is."""
    if isinstance(item, Sequence) and len(item.items) == 2 and isinstance(item.items[0], Const):
        return item.items[1]
    return item


@function("torch.nn.utils.get_total_norm")
def get_total_norm(m: Machine, call: Call) -> Abstract:
    """`get_total_norm(gradients)`: a number; that gradients were read stands on the tape
    already.
    """
    return tensors.batch(m, call.name, call.node, call.frame)
