"""Looks for programs that gradlint stumbles over, led on by what each covers of it. No test:
atheris is its engine.

    PYTHONPATH=tests python tests/fuzz/guided.py -max_total_time=1200 -timeout=120

The bytes that libFuzzer changes choose a program of the fixtures and what becomes of it. A mistake
is printed with its program, once; a program without end stops the run.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import atheris  # type: ignore[import-untyped]
from fuzz.everywhere import everywhere
from fuzz.mutants import changed

with atheris.instrument_imports(include=["gradlint", "gradlint_rules"]):
    from gradlint import library
    from gradlint.analysis import analyze
    from gradlint.rule import rules

    library.load()
    rules()

FIXTURES = Path(__file__).parents[2] / "fixtures"
SOURCES = [path.read_text() for path in sorted(FIXTURES.rglob("*.py"))]
MUTANT = Path("mutant.py")
known: set[str] = set()


class Drawn(random.Random):
    """Choices that the fuzzer's bytes make; the first of all where there are no bytes left."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._provider = atheris.FuzzedDataProvider(data)

    def getrandbits(self, count: int, /) -> int:
        drawn: int = self._provider.ConsumeIntInRange(0, (1 << count) - 1)
        return drawn


def analysed(data: bytes) -> None:
    """Analyses the program that the bytes stand for, and prints what went wrong for the first
    time.
    """
    choose = Drawn(data)
    try:
        text = changed(choose.choice(SOURCES), choose, changes=8)
        text = everywhere(text) if choose.getrandbits(1) else text
    except (SyntaxError, ValueError, RecursionError, IndexError):  # nothing to change, or to write
        return
    for gap in analyze([MUTANT], select=lambda code: True, sources={MUTANT: text}).gaps:
        if gap.kind == "internal" and gap.detail not in known:
            known.add(gap.detail)
            print(f"{gap.detail}\n{text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    atheris.Setup(sys.argv, analysed)
    atheris.Fuzz()
