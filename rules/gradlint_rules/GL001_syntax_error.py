"""# syntax-error (GL001)

A file cannot be read or is not valid Python. It is reported, and every other file is still checked.

## Why it matters
What cannot be parsed cannot be checked: silence about such a file would look like a clean result.

## Example
```python
def loss(x:
    return x.sum()
```

## Use instead
```python
def loss(x):
    return x.sum()
```

## What it does not report
Syntax that is newer than the Python that runs gradlint: what that Python refuses, libcst reads, up
to the lazy imports and the unpacking comprehensions of Python 3.15, and the program is checked like
any other.

## Limits
What libcst does not read either is reported, with the Python that gradlint runs on and the newer
syntax that stands before the fault. libcst 1.9 knows no template strings in a row (`t"a" t"b"`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity
from gradlint.paths import Paths
from gradlint.rule import Report

SEVERITY = Severity.ERROR


def check(paths: Paths) -> Iterator[Report]:
    """Nothing: a file without a tree has no tape, so the engine reports this where it parses."""
    return iter(())
