"""# placeholder-target (GL601)

A dataset fabricates labels for a sample that has none, and the loss cannot tell them apart.

## What it does
Takes a sample of each dataset along all paths, and reports a label that is written down in the code
on the path of a sample without one (class 0, a `[[0.0, 0.0]]` keypoint, a box of zeros), where
other samples have a label that was read.

## Why it matters
The model is trained on labels that nobody gave: it learns to answer 0 for whatever was not
annotated. Nothing fails, and the metrics are computed with the same wrong labels.

## Example
```python
import torch
from torch.utils.data import DataLoader, Dataset


class Leaves(Dataset):
    def __init__(self, diagnoses):
        self.diagnoses = diagnoses

    def __len__(self):
        return 12

    def __getitem__(self, index):
        label = self.diagnoses.get(index, 0)  # expect: GL601
        return torch.full((4,), float(index)), label


torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, label in DataLoader(Leaves({1: 2, 5: 1, 7: 2}), batch_size=4):
    loss = torch.nn.functional.cross_entropy(model(x), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
A label that the loss ignores:

```python
import torch
from torch.utils.data import DataLoader, Dataset


class Leaves(Dataset):
    def __init__(self, diagnoses):
        self.diagnoses = diagnoses

    def __len__(self):
        return 12

    def __getitem__(self, index):
        label = self.diagnoses.get(index, -100)
        return torch.full((4,), float(index)), label


torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, label in DataLoader(Leaves({1: 2, 5: 1, 7: 2}), batch_size=4):
    loss = torch.nn.functional.cross_entropy(model(x), label, ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Or leave such samples out, or return a mask beside the label, and weight the loss by it.

## What it does not report
- Labels that cannot be real: negative numbers, NaN, None, empty tensors.
- Labels that losses ignore: 255, and the number (or the name of one) that stands behind
  `ignore_index=` in the file of the dataset.
- Samples that say so: another part of them is a mask, a weight or a flag, by its key or by the name
  that is returned. One that is set for them as for the others, `visibility = [1]`, says that they
  are real.
- A label for a whole split that has none (`if self.split == "test":`), and random draws.
- What hangs on a question that the dataset asks once, as it is made: a default that the
  configuration can replace.
- A length by which the sample is cut: `motion[start : start + length], length`.
- A mask of ones: by it all of the sample counts.
- What hangs on the items of a list that the sample has, too: where those are padding, so is this.
- A number that the dataset counts up, as it looks for the part that a sample is in.

## Limits
A label is known by the words of its key, or as the last part of a tuple. What the loss does with it
is not looked at: an `ignore_index` other than 255 in another file, or a mask that the training
makes of the label, is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence

from gradlint import evidence
from gradlint.dataclass import dataclass
from gradlint.finding import Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Report
from gradlint.tape import Decision, Tape

SEVERITY = Severity.WARNING
_HELP = "Leave such samples out, or give a label that the loss ignores, or a mask beside it."
_FLAGS = re.compile(
    r"mask|valid|visib|weight|has_|is_|known|present|observed|flag|confiden|ignore|exist|missing"
)
_SETTING = re.compile(
    r"rand|augment|flip|train|test|split|phase|mode|transform|cache|return_|use_|with_"
)
_OWN = re.compile(
    r"self(\.\w+)+|\b(not|and|or|is|in|None|True|False|len|isinstance|hasattr|str|list|dict)\b"
    r"""|"[^"]*"|'[^']*'|\b\d+\b"""
)

_MESSAGE = (
    "a sample without a label gets one that looks real: the loss cannot tell it from those that "
    "were given"
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sample: what it is, the number that it is filled with (or ""), where and how it
    is called.
    """

    said: str
    number: str
    at: Span
    name: str


_Parts = dict[str, _Part]


@dataclass(frozen=True, slots=True)
class _Sample:
    """A sample on one path: what each part of it is, where it is written, and how it is called."""

    tape: Tape
    parts: _Parts

    def says(self, part: str) -> str:
        return self.parts[part].said if part in self.parts else ""


def check(paths: Paths) -> Iterator[Report]:
    """Every part of a sample that is read on one path and made up on another."""
    samples = list(paths.some(_samples))
    reported: set[Span] = set()
    for part in sorted({part for sample in samples for part in sample.parts}):
        read = [sample for sample in samples if sample.says(part) == "read"]
        if not any(_is_target(part, sample.parts) for sample in read):
            continue
        if any(sample.says(part) == "counted" for sample in samples):
            continue
        made = [sample for sample in samples if sample.says(part) in ("zero", "made")]
        reported |= set(_coded(part, made))
        for sample in made:
            at = sample.parts[part].at
            if at in reported or _is_drawn(part, sample) or _is_told_apart(part, sample, read):
                continue
            if _counts_all(sample.parts[part]):
                continue
            if _is_for_the_sample(part, sample, read):
                reported.add(at)
                yield Report(at, _MESSAGE, _HELP)


def _parts(tape: Tape) -> _Parts:
    found: _Parts = {}
    for fact in tape.facts("sample"):
        part, _, said = fact.detail.rpartition(" ")
        said, _, number = said.partition("=")
        found[part] = _Part(
            said, number, fact.at, fact.text if _is_place(part) and fact.text else part
        )
    return found


def _is_target(part: str, parts: _Parts) -> bool:
    """Whether a part of a sample is a label by the words of its name, or by standing last."""
    first = part.partition(".")[0]
    if "weight" in parts[part].name:  # of a term of the loss
        return False
    if _is_place(part) and first != "0":
        places = (name.partition(".")[0] for name in parts if _is_place(name))
        if int(first) == max(map(int, places)):
            return True
    return evidence.is_label(parts[part].name)


def _is_place(part: str) -> bool:
    """Whether all that tells this part from the others is where it stands: `0`, `1.2`."""
    return part.replace(".", "").isdigit()


def _counts_all(made: _Part) -> bool:
    """Whether it is a mask of ones, by which all of a sample counts: no label looks like that."""
    return made.number == "1" and _FLAGS.search(made.name) is not None


def _is_told_apart(part: str, made: _Sample, read: Sequence[_Sample]) -> bool:
    """Whether a sample says that its label is made up: by a mask or a flag, or else by a constant
    of its own.

    A flag that says the same of those that have a label, `visibility = [1]`, says that this one is
    real.
    """
    flags = {
        key
        for sample in read
        for key, other in sample.parts.items()
        if key != part and _FLAGS.search(other.name)
    }
    if not flags:
        return _is_flagged(part, made, read)
    return not all(_says_real(flag, made, read) for flag in flags)


def _says_real(flag: str, made: _Sample, read: Sequence[_Sample]) -> bool:
    """Whether a flag is set for this sample, and is the same number in those with a label."""
    own = made.parts[flag].number if flag in made.parts else ""
    theirs = {sample.parts[flag].number if flag in sample.parts else "" for sample in read}
    return own != "" and theirs == {own}


def _samples(tape: Tape) -> Iterator[_Sample]:
    """The sample that a path takes, if it takes one."""
    parts = _parts(tape)
    if parts:
        yield _Sample(tape, parts)


def _is_for_the_sample(part: str, made: _Sample, read: Sequence[_Sample]) -> bool:
    """Whether what parts a path from those on which the label is read hangs on the sample: not on
    how the dataset is set up, on chance, or on what the sample shows by another part. The paths
    that go another way at the fewest conditions show it.
    """
    shown = {fact.at for fact in made.tape.facts("sample-shows") if fact.detail != part}
    parting = [found for other in read if (found := _parting(made.tape, other.tape))]
    if any(_was_left_out(made.tape, found) for found in parting):
        return False
    fewest = min((len(found) for found in parting), default=0)
    nearest = [list(found.values()) for found in parting if len(found) == fewest]
    is_drawn = any(all(decision.by_chance for decision in asked) for asked in nearest)
    return not is_drawn and any(
        all(_asks_the_sample(decision) and decision.at not in shown for decision in asked)
        for asked in nearest
    )


def _is_drawn(part: str, made: _Sample) -> bool:
    """Whether chance decides in the line that makes a label up:
    `label = 1 if random.random() > 0.5 else 0`.
    """
    place = made.parts[part].at
    near = (
        each
        for each in made.tape.decisions
        if each.at.path == place.path and each.at.line == place.line
    )
    return any(each.by_chance or "rand" in each.text for each in near)


def _coded(part: str, made: Sequence[_Sample]) -> Iterator[Span]:
    """Where a label is made up by a condition that makes up another one otherwise: classes by the
    name of a file.
    """
    for one in made:
        place = one.parts[part].at
        others = (other for other in made if other.parts[part].at != place)
        if any(len(_parting(one.tape, other.tape)) == 1 for other in others):
            yield place


def _was_left_out(tape: Tape, parting: Container[Span]) -> bool:
    """Whether the same was asked before, with the same answer, where the dataset chose its samples:
    this is none.
    """
    asked = [
        (decision.text, decision.holds) for decision in tape.decisions if decision.at not in parting
    ]
    return any(
        (decision.text, decision.holds) in asked
        for decision in tape.decisions
        if decision.at in parting
    )


def _parting(one: Tape, other: Tape) -> dict[Span, Decision]:
    """The conditions that both paths come to, and that do not hold alike."""
    sides, others = _sides(one), _sides(other)
    return {d.at: d for d in one.decisions if others.get(d.at, sides[d.at]) != sides[d.at]}


def _sides(tape: Tape) -> dict[Span, set[bool]]:
    found: dict[Span, set[bool]] = {}
    for decision in tape.decisions:
        found.setdefault(decision.at, set()).add(decision.holds)
    return found


def _asks_the_sample(asked: Decision) -> bool:
    is_setting = asked.once or asked.by_chance or _SETTING.search(asked.text)
    return not is_setting and re.search(r"[A-Za-z_]\w*", _OWN.sub("", asked.text)) is not None


def _is_flagged(part: str, made: _Sample, read: Sequence[_Sample]) -> bool:
    """Whether another part tells these samples from those with a label: a constant here, and
    another one there.
    """
    for other, said in ((name, each.said) for name, each in made.parts.items()):
        if other == part or said not in ("zero", "made", "mark", "true", "false"):
            continue
        theirs = {sample.says(other) or "read" for sample in read}
        if said == "mark" and said not in theirs:  # a kind of -100 beside a box of zeros
            return True
        if said not in theirs and theirs != {"read"}:
            return True
    return False
