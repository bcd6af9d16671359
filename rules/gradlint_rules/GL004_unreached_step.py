"""# unreached-step (GL004)

No path that `check` ran has come to this call of `backward`: nothing is known of this training
step.

It is no finding about the program. The reports for people say it in their last line, `Nothing found
in 3 files; 1 training step was not reached (train.py:210)`; the formats `json` and `jsonl` tell it
as a note of this code, so that a program that reads them can tell "nothing found" from "not looked
at".

## Why it matters
Silence about a step that was not looked at would be taken for praise.

## Example
```python
def train(model, batches):
    raise NotImplementedError("use train_fast")
    for x in batches:
        model(x).mean().backward()
```

## Use instead
```python
def train(model, batches):
    for x in batches:
        model(x).mean().backward()
```
`gradlint check --gaps` says where the analysis gave up.

## What it does not report
Steps that the program leaves to a framework or to code out of view.

## Limits
A step is a call of a method `backward` or `manual_backward`. `gradlint trace` runs the program and
looks at all that happens.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity
from gradlint.paths import Paths
from gradlint.rule import Report

SEVERITY = Severity.NOTE


def check(paths: Paths) -> Iterator[Report]:
    """Nothing: what no path came to stands on no tape, so the engine reports it."""
    return iter(())
