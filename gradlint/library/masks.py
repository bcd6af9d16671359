"""Counts of masks: `mask.any()` and `mask.sum() > 0` are one question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import counts, shapes
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import Tensor
from gradlint.library.python.results import last
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
_NEGATIONS, _UNIONS = ("bitwise_not", "invert", "logical_not"), ("bitwise_or", "logical_or")


def ask_of_count(m: Machine, tensor: Tensor, made: Tensor, name: str) -> None:
    """`mask.any()` and `mask.sum() > 0` are one question."""
    count = counts.of_tensor(m, tensor)
    if name == "any":
        m.tests[id(made.node)] = (made.node, m.oracle.facts.any_of(count.asked))
    else:
        m.identify(made.node, count)
    has_some = shapes.has_some(tensor.node)
    if has_some is None and _is_what_is_left(m, tensor, count.asked):
        has_some = True
    if has_some is not None:  # `torch.ones(4, 8)`: none of the masks that are empty
        m.oracle.facts.learn(Test(count.asked, ">", 0), has_some)


def _is_what_is_left(m: Machine, mask: Tensor, count: Symbol) -> bool:
    """Whether a mask selects something for the others do not, which are the whole with it:
    `~(left | right)`.
    """
    groups: dict[Symbol, list[list[Symbol]]] = m.state.setdefault("masks of a whole", {})
    of = mask.node.inputs[0] if last(mask.node.op) in _NEGATIONS and mask.node.inputs else None
    if of is not None and not any("selection" in value.flags for value in tape.ancestors(of)):
        others = (counts.of_tensor(m, Tensor(part)).asked for part in _united(of))
        group = [count, *others]
        for each in group:
            groups.setdefault(each, []).append(group)
    known = m.oracle.facts.known
    return any(
        all(known(Test(other, ">", 0)) is False for other in group if other is not count)
        for group in groups.get(count, ())
    )


def _united(mask: Value) -> Iterator[Value]:
    """The masks of which one is the union: of `left | right` these two."""
    waiting, seen = [mask], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if last(part.op) in _UNIONS and len(part.inputs) == 2:
            waiting += part.inputs
        else:
            yield part
