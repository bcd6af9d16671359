"""Lists that a loop over data fills, where code behind the loop asks whether they are empty; a
comprehension is such a loop.

    for before, after in zip(frames, frames[1:]):
        losses.append(gap(before, after))
    if not losses:
        return frames.new_zeros(())

A loop over data is taken to run at least once; in a loss, who asks knows that it may not.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed
from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.interpret import conditions
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import Abstract, Const, Object, Sequence, Tensor, Unknown
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_LOSSES = frozenset(["loss", "method", "comparison"])
_WRAPS = frozenset(["builtins.zip", "builtins.enumerate", "builtins.reversed"])


@dataclass(frozen=True, slots=True)
class Question:
    """What code asks of a list that a loop has filled; `there` is the answer where it ran."""

    listed: Sequence
    asked: Abstract
    there: bool

    def answered(self, answer: bool) -> None:
        """Has the list be as the answer says."""
        if answer is not self.there:
            self.listed.items.clear()


@dataclass(frozen=True, slots=True)
class Before:
    """The lists that were empty before a loop, and how many branches the path had decided."""

    empty: Listed[Sequence]
    decided: int


def before(m: Machine, frame: Frame) -> Before | None:
    """What a loop in a loss begins with, where there is a list to be filled."""
    if m.session.contract not in _LOSSES or frame.function is None:
        return None
    found = [
        value for value in frame.locals.values() if isinstance(value, Sequence) and _is_new(value)
    ]
    return Before(found, len(m.oracle.decisions)) if found else None


def _is_new(value: Sequence) -> bool:
    return value.kind == "list" and not value.open and not value.items


def filled(m: Machine, begun: Before, iterable: Abstract) -> None:
    """Notes which of the lists that were empty a loop over data has filled in each of its rounds.

    Where a branch leaves items out, its other side has the list be empty.
    """
    now = [each for each in begun.empty if each.items]
    is_plain = len(m.oracle.decisions) == begun.decided
    source = _data(m, iterable) if now and is_plain else None
    if source is not None:
        by_loops: dict[int, _Filled] = m.state.setdefault("filled by loops", {})
        by_loops.update((id(each), _Filled(each, len(each.items), source)) for each in now)


def made(m: Machine, listed: Sequence, decided: int, iterables: Listed[Abstract]) -> None:
    """Notes a list that a comprehension in a loss has made of all items of some data, behind so
    many branches; elsewhere, of what was read out of a tensor.

    pairs = [(queries[row], texts[column]) for row, column in zip(rows.tolist(), columns.tolist())]
    """
    is_plain = len(iterables) == 1 and len(m.oracle.decisions) == decided and bool(listed.items)
    if is_plain and listed.kind == "list":
        source = _data(m, iterables[0])
        in_loss = m.session.contract in _LOSSES
        if source is not None and (in_loss or _is_read_out(iterables[0])):
            by_loops: dict[int, _Filled] = m.state.setdefault("filled by loops", {})
            by_loops[id(listed)] = _Filled(listed, len(listed.items), source)


@dataclass(frozen=True, slots=True)
class _Filled:
    """A list that a loop has filled, its length behind it, and what the loop got its items from."""

    listed: Sequence
    length: int
    source: Symbol


def question(m: Machine, node: ir.Node, value: Abstract, frame: Frame) -> Question | None:
    """What a condition asks, where it asks whether such a list is empty: as if that were not
    known.
    """
    by_loops: dict[int, _Filled] | None = m.state.get("filled by loops")
    name = _asked_about(node) if by_loops else None
    if by_loops is None or name is None:
        return None
    found, there = by_loops.get(id(m.evaluate(name, frame))), conditions.truth(m, value)
    if found is None or there is None or len(found.listed.items) != found.length:
        return None
    source = found.source
    test = Test(source.derive("len", f"len({source.text})"), ">", 0, negated=not there)
    return Question(found.listed, conditions.boolean(m, test, frame.text(node)), there)


def _data(m: Machine, iterable: Abstract) -> Symbol | None:
    """What a loop over a batch, over what a model gave, or over what was read out of a tensor gets
    its items from; None of names and settings, of which there are some.
    """
    if isinstance(iterable, Object) and iterable.cls in _WRAPS:
        sources = [_data(m, each) for each in iterable.state.get("sources", ())]
        return next((each for each in sources if each is not None), None)
    is_batch = isinstance(iterable, Tensor) or (
        isinstance(iterable, Unknown)
        and (
            iterable.type == "tensor" or _is_read_out(iterable) or _is_predicted(m, iterable.symbol)
        )
    )
    return m.symbol(iterable) if is_batch else None


def _is_read_out(iterable: Abstract) -> bool:
    """Whether it was read out of a tensor: `mask.nonzero().tolist()`."""
    if isinstance(iterable, Object) and iterable.cls in _WRAPS:
        return any(map(_is_read_out, iterable.state.get("sources", ())))
    return isinstance(iterable, Unknown) and iterable.origin is not None


def _is_predicted(m: Machine, symbol: Symbol) -> bool:
    """Whether it is what a model gave, or a slice of that."""
    match symbol.key:
        case ("item", ("slice", *_)) if symbol.source is not None:
            symbol = symbol.source
    return symbol is m.state.get("predicted")


def _asked_about(node: ir.Node) -> ir.Node | None:
    """The name of the list that a condition asks about: `not losses`, `len(losses) == 0`."""
    match node:
        case ir.Unary(op="not", operand=inner):
            return _asked_about(inner)
        case ir.Name():
            return node
        case ir.Call(function=ir.Name(id="len"), args=[ir.Name() as name], kwargs=[]):
            return name
        case ir.Compare(left=left, rights=[ir.Literal(value=0)]) if isinstance(left, ir.Call):
            return _asked_about(left)
    return None


def are_partly_nothing(items: Listed[Abstract]) -> bool:
    """Whether of some data, that are written out, a part is None or an empty list."""
    are_data = all(map(_is_written_out, items))
    return are_data and len({_is_nothing(item) for item in items}) > 1


def _is_written_out(item: Abstract) -> bool:
    """Whether it is made of numbers and words: `[(2, [0.1, 0.4])]`."""
    if isinstance(item, Sequence):
        return all(map(_is_written_out, item.items))
    return isinstance(item, Const)


def _is_nothing(item: Abstract) -> bool:
    if isinstance(item, Sequence):
        return not item.items and not item.open
    return isinstance(item, Const) and item.value is None
