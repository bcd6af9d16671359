"""What a training loop is fed with: the items of something that nothing is known of.

Where each round runs a backward and steps an optimizer, what the loop runs over was there before.
An item that carried a gradient would be back-propagated through weights that the round before has
changed. So the items are data, whatever the thing is called: `for x, y in batches:`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.ir import nodes as ir
from gradlint.source import effects

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
    from gradlint.interpret.symbols import Symbol
    from gradlint.interpret.values import Unknown

_PARTS = ("item", "attribute")


def is_fed(m: Machine, iterated: Unknown, frame: Frame) -> bool:
    """Whether the innermost loop trains in its rounds, on what something unknown gives."""
    node = m.loops[-1].node if m.loops else None
    if not isinstance(node, ir.For) or not m.session.may_train or not _is_out_of_view(m, iterated):
        return False
    loop, path = node.source, frame.code.path
    return (
        m.session.is_written(loop, path, tape.May.BACKWARD)
        and m.session.is_written(loop, path, tape.May.STEP)
        and not _is_over_learners(loop)
    )


def _is_over_learners(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether the items take part in the steps themselves: a loop over models and their optimizers,
    or over losses.

    `for agent in agents: … agent.optimizer.step()`
    """
    targets = effects.mentions([loop.target])
    return any(
        call.name in effects.EVENTS and bool(call.path) and call.path[0] in targets
        for each in effects.of([loop])
        for call in each.does.calls
    )


def _is_out_of_view(m: Machine, iterated: Unknown) -> bool:
    """Whether nothing that the program has computed is known to be in it."""
    known = m.nodes.get(iterated.symbol)
    return iterated.origin is None and (known is None or known.assumed)


def feed(m: Machine, item: Unknown) -> None:
    """Notes that an item is what a training loop is fed with."""
    m.nodes.pop(item.symbol, None)
    m.state.setdefault("fed", set()).add(item.symbol)


def is_fed_with(m: Machine, symbol: Symbol) -> bool:
    """Whether something unknown is an item that a training loop is fed with, or a part of one."""
    fed: set[Symbol] = m.state.get("fed", set())
    part: Symbol | None = symbol if fed else None
    while part is not None and part not in fed:
        is_part = isinstance(part.key, tuple) and part.key[0] in _PARTS
        part = part.source if is_part else None
    return part is not None
