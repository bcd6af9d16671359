"""What a sample shows of how it was made: a condition on an item of what the sample has, too.

    wrong = [draw() if item != 0 else 0 for item in following]
    return torch.tensor(following), torch.tensor(wrong)

Where the one is padding, so is the other: a loss can leave both out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Sequence, Tensor, Unknown

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def decisions(m: Machine, part: Abstract) -> Iterator[tape.Decision]:
    """The decisions of a path about the items that a part of a sample consists of."""
    contents = list(_contents(m, part))
    listed = {symbol for value in contents for symbol in _lists(value)} - {None}
    items = {item.symbol.asked for value in contents for item in _unknown_items(value)}
    for decision, test in zip(m.oracle.decisions, m.state.get("questions", ()), strict=True):
        if test.subject in items or _list_of(test.subject) in listed:
            yield decision


def note(m: Machine, tensor: Tensor, content: Abstract | None) -> None:
    """Takes down what a tensor of a sample is a copy of."""
    if content is not None and m.state.get("sampling"):
        m.state.setdefault("copied in samples", {})[id(tensor.node)] = (tensor.node, content)


def _contents(m: Machine, part: Abstract) -> Iterator[Abstract]:
    """What a part of a sample is, and was copied out of."""
    yield part
    copied = m.state.get("copied in samples", {})
    for node in tape.ancestors(part.node) if isinstance(part, Tensor) else ():
        if id(node) in copied:
            yield copied[id(node)][1]


def _lists(value: Abstract) -> Iterator[Symbol | None]:
    """What has the items of a list, or of a slice of one."""
    if isinstance(value, Unknown):
        yield _whole(value.symbol)
    elif isinstance(value, Sequence):
        yield from (_list_of(item.symbol) for item in _unknown_items(value))


def _unknown_items(value: Abstract) -> Iterator[Unknown]:
    items = value.items if isinstance(value, Sequence) else ()
    return (item for item in items if isinstance(item, Unknown))


def _list_of(item: Symbol) -> Symbol | None:
    """What a loop has taken an item out of, in one of its rounds; None of what it did not."""
    match item.key:
        case ("item", (int(), int())) if item.source is not None:
            return _whole(item.source)
    return None


def _whole(symbol: Symbol) -> Symbol:
    """What a slice is one of, and what is one itself."""
    while symbol.source is not None:
        match symbol.key:
            case ("item", ("slice", *_)):
                symbol = symbol.source
            case _:
                break
    return symbol
