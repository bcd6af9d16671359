"""# unknown-code (GL003)

A suppression comment names a code that no rule has, or is no comment that gradlint knows.

## Why it matters
A misspelt code suppresses nothing, and whoever reads the comment believes that it does. (A setting
or option that names an unknown code stops the run with exit code 2.)

## Example
```python
target = value.detach()  # gradlint: ignore[GL19] bootstrap value
```

## Use instead
```python
target = value.detach()  # gradlint: ignore[GL109] bootstrap value
```

## What it does not report
Codes of other tools in a `# noqa` comment.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity
from gradlint.paths import Paths
from gradlint.rule import Report

SEVERITY = Severity.WARNING


def check(paths: Paths) -> Iterator[Report]:
    """Nothing: comments leave no trace on a tape, so the engine reports this where it reads
    them.
    """
    return iter(())
