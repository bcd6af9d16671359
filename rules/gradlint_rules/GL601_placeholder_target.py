"""# placeholder-target (GL601)

A dataset fabricates labels for a sample that has none, and the loss cannot tell them apart.

## What it does
Takes a sample of each dataset along all paths, and reports a label that is written down in the code on the path of
a sample
without one (class 0, a `[[0.0, 0.0]]` keypoint, a box of zeros), where other samples have a label that was read.

## Why it matters
The model is trained on labels that nobody gave: it learns to answer 0 for whatever was not annotated. Nothing
fails, and the
metrics are computed with the same wrong labels.

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
- Samples that say so: another part of them is a mask, a weight or a flag.
- A label for a whole split that has none (`if self.split == "test":`), and random draws.

## Limits
What the loss does with a label in another file is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gradlint.finding import Severity, Span
from gradlint.rule import Report
from gradlint.tape import Decision, Fact, Tape

SEVERITY = Severity.WARNING
_HELP = "Leave such samples out, or give a label that the loss ignores, or a mask beside it."
_TARGETS = re.compile(
    r"label|target|class|box|keypoint|landmark|joint|mask|depth|score|rating|annot|^y$|\by\b|gt|truth|tag|category|answer"
)
_FLAGS = re.compile(r"mask|valid|visib|weight|has_|is_|known|present|observed|flag|confiden|ignore|exist|missing")
_SETTING = re.compile(r"rand|augment|flip|train|test|split|phase|mode|transform|cache|return_|use_|with_")
_OWN = re.compile(
    r"""self(\.\w+)+|\b(not|and|or|is|in|None|True|False|len|isinstance|hasattr|str|list|dict)\b|"[^"]*"|'[^']*'|\b\d+\b"""
)

_Parts = dict[str, tuple[str, Span]]


def check(paths: Sequence[Tape]) -> Iterator[Report]:
    """Every part of a sample that is read on one path and made up on another."""
    samples = [(tape, parts) for tape in paths if (parts := _parts(tape))]
    told: set[Span] = set()
    for part in sorted({part for _, parts in samples for part in parts}):
        read = [parts for _, parts in samples if parts.get(part, ("",))[0] == "read"]
        if (
            not read
            or not _is_target(part)
            or any(_FLAGS.search(other) for parts in read for other in parts if other != part)
        ):
            continue
        for tape, parts in samples:
            said, at = parts.get(part, ("", None))
            if (
                said in ("zero", "made")
                and at is not None
                and at not in told
                and _is_for_the_sample(tape.decisions, at)
            ) and not _is_flagged(part, parts, read):
                told.add(at)
                yield Report(at, _message(tape.decisions), _HELP)


def _parts(tape: Tape) -> _Parts:
    found: _Parts = {}
    for event in tape.events:
        if isinstance(event, Fact) and event.what == "sample":
            part, _, said = event.detail.rpartition(" ")
            found[part] = (said, event.at)
    return found


def _is_target(part: str) -> bool:
    """Whether a part of a sample is a label by its name, or by not being the first."""
    return (part[-1:].isdigit() and part != "0") or bool(_TARGETS.search(part.lower()))


def _is_for_the_sample(decisions: Sequence[Decision], at: Span) -> bool:
    """Whether what was decided depends on the sample, and not on how the dataset is set up, or on chance."""
    return any(
        not _SETTING.search(decision.text) and re.search(r"[A-Za-z_]\w*", _OWN.sub("", decision.text)) is not None
        for decision in decisions
        if decision.at.path == at.path and 0 <= at.line - decision.at.line <= 6
    )


def _is_flagged(part: str, parts: _Parts, read: Sequence[_Parts]) -> bool:
    """Whether another part tells these samples from those with a label: a constant here, and another one there."""
    for other, (said, _) in parts.items():
        if (
            other != part
            and said in ("zero", "made", "mark")
            and not any(_same(theirs, other, said) for theirs in read)
        ) and any(theirs.get(other, ("read",))[0] != "read" for theirs in read):
            return True
    return False


def _same(theirs: _Parts, other: str, said: str) -> bool:
    return theirs.get(other, ("",))[0] == said


def _message(decisions: Sequence[Decision]) -> str:
    return "a sample without a label gets one that looks real: the loss cannot tell it from those that were given"
