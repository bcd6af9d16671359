"""What gradlint says of the bad examples of its pages, word for word: `tests/said.txt`.

`GRADLINT_SAID=write pytest tests/test_rules_words.py` writes the file anew, to be read before it is
kept.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest
from test_rules_examples import BAD, Example

from gradlint.analysis import analyze
from gradlint.finding import Finding

SAID = pathlib.Path(__file__).with_name("said.txt")


def told(finding: Finding) -> Iterator[str]:
    """A finding and all that is said around it, a line each."""
    at = finding.at
    yield f"{at.line}:{at.column}-{at.end_column} {finding.severity.label}: {finding.message}"
    yield from (f"  {place.at.line}:{place.at.column} {place.message}" for place in finding.related)
    yield f"  help: {finding.help}"


def said(example: Example, folder: pathlib.Path) -> str:
    """What is said of an example, under its name."""
    found = analyze([example.write(folder)], select=lambda code: code == example.code).findings
    return "\n".join([str(example), *(line for finding in found for line in told(finding))])


def test_the_file_holds_the_examples_and_nothing_else(tmp_path: pathlib.Path) -> None:
    if os.environ.get("GRADLINT_SAID") == "write":
        SAID.write_text(
            "\n\n".join(said(example, tmp_path) for example in BAD) + "\n", encoding="utf-8"
        )
    names = [block.partition("\n")[0] for block in SAID.read_text(encoding="utf-8").split("\n\n")]
    assert names == [str(example) for example in BAD]


@pytest.mark.parametrize("example", BAD, ids=str)
def test_an_example_is_told_in_these_words(example: Example, tmp_path: pathlib.Path) -> None:
    blocks = SAID.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    assert said(example, tmp_path) in blocks
