"""How two texts differ, in as few words as can be: what an editor shows of a fix."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence

Difference = tuple[int, int, str]  # from one offset of the old text to another: this


def differences(old: str, new: str) -> list[Difference]:
    """The stretches of `old`, each with what is there in `new`; of lines that stand deeper, the
    white space alone.
    """
    found = list[Difference]()
    for start, end, content in _by_lines(old, new):
        if found and found[-1][1] == start:
            first, _, before = found.pop()
            found.append((first, end, before + content))
        else:
            found.append((start, end, content))
    return found


def _by_lines(old: str, new: str) -> Iterator[Difference]:
    before, after = _lines(old), _lines(new)
    starts = [0, *itertools.accumulate(map(len, before))]
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    before, after = before[head : len(before) - tail], after[head : len(after) - tail]
    matcher = difflib.SequenceMatcher(
        None, [each.strip() for each in before], [each.strip() for each in after], False
    )
    for _, first, last, other, end in matcher.get_opcodes():
        gone, come = before[first:last], after[other:end]
        pairs = (
            list(zip(gone, come, strict=True))
            if len(gone) == len(come)
            else [("".join(gone), "".join(come))]
        )
        at = starts[head + first]
        for one, two in pairs:
            yield from _within(one, two, at)
            at += len(one)


def _within(old: str, new: str, at: int) -> Iterator[Difference]:
    """The difference of two stretches but for the words that both begin and end with."""
    if old == new:
        return
    before, after = _words(old), _words(new)
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    start = at + sum(map(len, before[:head]))
    gone, come = before[head : len(before) - tail], after[head : len(after) - tail]
    yield start, start + sum(map(len, gone)), "".join(come)


def _lines(text: str) -> list[str]:
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [
        line for line in text.split("\n")[-1:] if line
    ]


def _words(text: str) -> list[str]:
    """A text by its words; each other character is one by itself."""
    groups = itertools.groupby(text, key=lambda letter: letter.isalnum() or letter == "_")
    return [
        word for is_word, letters in groups for word in (["".join(letters)] if is_word else letters)
    ]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items two sequences begin with in common."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
