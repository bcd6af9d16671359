"""Comprehensions and generator expressions, interpreted as the loops that they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.interpret import conditions, emptied, filters, retention
from gradlint.interpret.iteration import is_endless, shorten
from gradlint.interpret.keys import hashable
from gradlint.interpret.scopes import Frame as Scope
from gradlint.interpret.storage import assign
from gradlint.interpret.tables import EVALUATE, handles
from gradlint.interpret.values import (
    Abstract,
    Call,
    Instance,
    Mapping,
    Object,
    Sequence,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


@handles(EVALUATE, ir.Comprehension)
def comprehension(m: Machine, node: ir.Comprehension, frame: Frame) -> Abstract:
    scope = Scope(frame.code, {}, frame, function=frame.function)
    if frame.is_class:
        scope.locals.update(frame.locals)
    items: list[Abstract] = []
    mapping = Mapping({}, at=frame.span(node))
    sinks = len(m.sinks)

    def finish() -> None:
        if node.value is None:
            items.append(m.evaluate(node.element, scope))
            return
        key_value = m.evaluate(node.element, scope)
        key, value = hashable(key_value), m.evaluate(node.value, scope)
        if key is None:
            mapping.open = True
            m.state.setdefault("copied from", {})[m.symbol(mapping)] = m.symbol(key_value)
            mapping.items.setdefault(("unknown", m.symbol(key_value)), value)
        else:
            mapping.items[key] = value

    shown, decided = _Shown(), len(m.oracle.decisions)
    _clauses(m, node, 0, scope, finish, shown)
    if any(sink.iteration == m.rounds and sink.sink != "autograd.grad" for sink in m.sinks[sinks:]):
        m.session.loops.trains_in(node)
    if node.value is not None:
        return mapping
    if node.kind != "generator" and len(m.sinks) > sinks:
        retention.report_list(m, items, m.sinks[sinks:], frame.span(node.element))
    made = Sequence(node.kind, items, at=frame.span(node))
    if not m.session.loops.is_training(node):
        shorten(m, made)
    emptied.made(m, made, decided, shown.sources)
    if shown.is_partial:
        made.rest = _layer_like(made)
    if shown.left_out and not items:
        m.state.setdefault("all left out", []).append(made)
    return made


@dataclass(slots=True)
class _Shown:
    """What a comprehension has run through, the items that its tests left out, and whether there
    can be more than were shown.
    """

    sources: list[Abstract] = field(default_factory=list)
    left_out: list[Abstract] = field(default_factory=list)
    is_partial: bool = False


def _layer_like(listed: Sequence) -> Abstract | None:
    """What stands for the layers of a list behind those that are shown: the last of these."""
    last = listed.items[-1] if listed.items else None
    return last if isinstance(last, Instance | Object) and last.module is not None else None


def _clauses(
    m: Machine,
    node: ir.Comprehension,
    position: int,
    scope: Frame,
    finish: Callable[[], None],
    shown: _Shown,
) -> None:
    if position == len(node.clauses):
        finish()
        return
    target, iterable, tests = node.clauses[position]
    source = m.evaluate(iterable, scope)
    shown.sources.append(source)

    def is_left_in(test: ir.Node) -> bool:
        before, m.branch.keeps = m.branch.keeps, True
        try:
            return conditions.decide(m, conditions.question(m, test, scope), test, scope)
        finally:
            m.branch.keeps = before

    def visit(item: Abstract) -> bool:
        assign(m, target, item, scope)
        if all(map(is_left_in, tests)):
            _clauses(m, node, position + 1, scope, finish, shown)
        else:
            shown.left_out.append(item)
        return False

    call = Call("for", [], {}, iterable, scope)
    if not m.session.loops.is_training(node):
        with m.loop("", m.listed) as loop:
            loop.target, loop.looks_up = target, filters.looks_up(node, target, iterable)
            m.iterate(source, visit, call)
        shown.is_partial |= loop.number not in m.state.get("in full", ())
        return

    def step(item: Abstract) -> bool:  # losses = [self.step(batch) for batch in loader]
        with m.round(loop, scope.span(node), scope.text(iterable)):
            return visit(item)

    with m.loop("for", m.session.loops.batches) as loop:
        loop.node = node
        m.iterate(source, step, call)
        if not is_endless(source):
            loop.ends()
        retention.report(m, loop)
