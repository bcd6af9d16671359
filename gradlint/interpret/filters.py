"""Filters in loops: what leaves items out, and the items of which one at least is taken to be left
in.

A loop over samples can find none that it wants. One over names, settings or losses cannot: who
writes `if name in weights` knows that some are, else the program would do nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.interpret.symbols import Symbol, Test
from gradlint.ir import nodes as ir
from gradlint.ir.walk import within

if TYPE_CHECKING:
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine

MOST_PARTS = 40  # of a question that are looked through


def answer_that_keeps(branch: ir.If) -> bool | None:
    """The answer by which an item is not left out; None where both sides do something with it."""
    if (_passes_on(branch.then) or _refuses(branch.then)) and not branch.otherwise:
        return False
    return True if _is_filter(branch) else None


def _passes_on(block: Sequence[ir.Node]) -> bool:
    return len(block) == 1 and isinstance(block[0], ir.Jump) and block[0].kind == "continue"


def _refuses(block: Sequence[ir.Node]) -> bool:
    """Whether it ends the program, which is taken to work:
    `if "/" in name: raise ValueError(name)`.
    """
    return bool(block) and isinstance(block[-1], ir.Raise)


def _is_filter(branch: ir.If) -> bool:
    """Whether nothing is done where this holds no more than any `elif` behind it."""
    match branch.otherwise:
        case []:
            return True
        case [ir.If() as other]:
            return _is_filter(other)
    return False


def kept(m: Machine, test: Test, node: ir.Node, keeps: bool | None) -> bool | None:
    """The answer that a question is given which is asked of the first item, where that is not left
    out.
    """
    if test.relation == "in" and test.subject in m.state.get("empty", ()):
        return None
    if _is_about(test, m.state.get("first keys", ())):
        return not test.negated if keeps is None else keeps
    if keeps is None or not m.loops:
        return None
    if test.relation == "isa" and _is_first_of_kind(m, test, node, m.loops[-1]):
        return keeps
    if _is_about(test, m.state.get("first entries", ())) or _is_first_of_settings(
        m, test, node, m.loops[-1]
    ):
        return keeps
    return None


def note_empty(m: Machine, container: Symbol) -> None:
    """Notes that the program has put nothing into what a filter looks items up in."""
    m.state.setdefault("empty", set()).add(container)


def _is_about(test: Test, sources: Collection[Symbol]) -> bool:
    """Whether it asks for some symbols, or for what is derived from one or looked up by it."""
    return bool(sources) and any(part in sources for part in _parts(test))


def _parts(test: Test) -> Iterator[Symbol]:
    """All that a question is made of: what it asks, what that is derived from, and by which
    keys.
    """
    pending: list[object] = [test.subject, test.operand]
    for count, part in enumerate(pending):
        if count >= MOST_PARTS:
            return
        if isinstance(part, tuple):
            pending += part
        elif isinstance(part, Symbol):
            yield part
            pending += [part.source, part.key]


def _is_first_of_settings(m: Machine, test: Test, node: ir.Node, loop: Loop) -> bool:
    """Whether it is the first time in a loop that a setting is asked for which each round has one
    of its own.
    """
    if loop.target is None or not _names(node) & _names(loop.target):
        return False
    if not (_is_setting(m, test.subject) or _is_made_of_settings(m, test)):
        return False
    return _is_first(m, test, node, loop)


def _is_first_of_kind(m: Machine, test: Test, node: ir.Node, loop: Loop) -> bool:
    """Whether it is the first time that a comprehension asks of what kind its items are:
    `sum(each.sum() for each in given if isinstance(each, Tensor))`.
    """
    return not loop.over and _is_first(m, test, node, loop)


def _is_first(m: Machine, test: Test, node: ir.Node, loop: Loop) -> bool:
    """Whether a loop asks this for the first time."""
    asked: dict[tuple[int, ir.Node], Symbol] = m.state.setdefault("first asked", {})
    return asked.setdefault((loop.number, node), test.subject) is test.subject


def _is_setting(m: Machine, subject: Symbol) -> bool:
    """Whether it is a plain part of an object that is called, or of the one whose method is
    entered: `self.weights`.
    """
    part = subject
    while part.source is not None:
        if not (
            isinstance(part.key, tuple) and part.key[0] in ("attribute", "item", "true", "==", ">")
        ):
            return False
        if part.key[0] == "attribute" and _has_settings(m, part.source):
            return True
        part = part.source
    return False


def _is_made_of_settings(m: Machine, test: Test) -> bool:
    """Whether it asks for an item of what a library made of no tensor:
    `np.array([1 / 2**i for i in range(n)])[i]`.

    What a list of Python numbers came from is not looked for: it may be data.
    """
    subject = test.subject
    if not (isinstance(subject.key, tuple) and subject.key[0] == "item") or m.values_of(
        set(_parts(test))
    ):
        return False
    root = subject
    while root.source is not None:
        root = root.source
    return m.session.is_constant(root)


def _has_settings(m: Machine, owner: Symbol) -> bool:
    made = m.state.get("made")
    return owner in m.leaves or (made is not None and m.symbol(made) is owner)


@memo.of_programs
def _names(node: ir.Node) -> frozenset[str]:
    """The names that stand in an expression."""
    return frozenset(each.id for each in within([node]) if isinstance(each, ir.Name))


@memo.of_programs
def looks_up(loop: ir.For | ir.Comprehension, target: ir.Node, iterable: ir.Node) -> bool:
    """Whether a loop looks up in what it runs over what this gives:
    `for name in losses: … losses[name]`.
    """
    if not isinstance(target, ir.Name):
        return False
    parts = (
        loop.body
        if isinstance(loop, ir.For)
        else [loop.element, *([loop.value] if loop.value else [])]
    )
    found = (each for each in within(parts) if isinstance(each, ir.Subscript))
    return any(_is_same(each.index, target) and _is_same(each.target, iterable) for each in found)


def _is_same(one: ir.Node, other: ir.Node) -> bool:
    """Whether two expressions are the same name, or the same attribute of such."""
    match one, other:
        case ir.Name(id=name), ir.Name(id=named):
            return name == named
        case ir.Attribute(name=name, target=target), ir.Attribute(name=named, target=owner):
            return name == named and _is_same(target, owner)
    return False
