"""# unused-suppression (GL002)

A comment suppresses a code that is not reported on its line.

## Why it matters
A suppression that outlives its finding hides the next one: the line can break again and nobody is
told.

## Example
```python
loss = criterion(model(x), y)  # gradlint: ignore[GL102] the target is a constant
```

## Use instead
```python
loss = criterion(model(x), y)
```

## What it does not report
Codes of rules that are switched off, codes of other tools, and a bare `# noqa`.

Nor does it speak of a file whose module is named in another one of the project that is not checked
along with it, as happens where a commit changes one file: what the comment suppresses may come from
there.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity
from gradlint.paths import Paths
from gradlint.rule import Report

SEVERITY = Severity.WARNING


def check(paths: Paths) -> Iterator[Report]:
    """Nothing: comments leave no trace on a tape, so the engine reports this after all rules have
    spoken.
    """
    return iter(())
