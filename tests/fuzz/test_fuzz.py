"""Programs that nobody would write are analysed without a mistake of gradlint's own, in a bounded
number of steps.

`GRADLINT_MUTANTS` says how many mutants of the fixtures are made (60), `GRADLINT_SEED` from which
seed on (0). README.md tells of long runs and what they found.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from differential.generator import generate
from fuzz.mutants import mutant

from gradlint.analysis import analyze

FIXTURES = Path(__file__).parents[2] / "fixtures"
MUTANTS = int(os.environ.get("GRADLINT_MUTANTS", "60"))
SEED = int(os.environ.get("GRADLINT_SEED", "0"))


def mistakes(text: str) -> list[str]:
    """What went wrong inside gradlint: every rule on every entry of the program."""
    path = Path("mutant.py")
    found = analyze([path], select=lambda code: True, sources={path: text})
    assert all(1 <= finding.at.line <= text.count("\n") + 1 for finding in found.findings)
    return [gap.detail for gap in found.gaps if gap.kind == "internal"]


def _sources() -> list[str]:
    return [path.read_text() for path in sorted(FIXTURES.rglob("*.py"))]


@pytest.mark.parametrize("part", range(4))
def test_mutants_of_the_fixtures_are_analysed_to_their_end(part: int) -> None:
    sources = _sources()
    for seed in range(SEED + part, SEED + MUTANTS, 4):
        text = mutant(random.Random(seed).choice(sources), seed)
        assert not mistakes(text), f"seed {seed}\n{text}"


def test_mutants_of_generated_programs_are_analysed_to_their_end() -> None:
    for seed in range(SEED, SEED + MUTANTS // 3):
        text = mutant(generate(seed).text, seed, changes=8)
        assert not mistakes(text), f"seed {seed}\n{text}"


def test_mutants_differ_from_their_program_and_parse() -> None:
    source = generate(0).text
    made = {mutant(source, seed) for seed in range(30)}
    assert len(made) > 25
    for text in made:
        compile(text, "mutant.py", "exec", flags=0x400)  # a tree alone: `return` may stand anywhere
