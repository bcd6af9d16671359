"""The examples in the pages of the rules: PyTorch does what they say, and gradlint reports the
marked lines.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from truth import observe

from gradlint import rule
from gradlint.analysis import analyze
from gradlint.finding import Severity

HEADINGS = [
    "What it does",
    "Why it matters",
    "Example",
    "Use instead",
    "What it does not report",
    "Limits",
]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# that are not installed everywhere
_FRAMEWORKS = re.compile(r"^from (accelerate) import", re.MULTILINE)
_RAISES = re.compile(r"# (\w+Error): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A program of a rule's page: under `## Example` (it is bad) or under `## Use instead`."""

    code: str
    heading: str
    number: int
    program: str

    def __str__(self) -> str:
        return f"{self.code}-{self.heading.lower().replace(' ', '-')}-{self.number}"

    @property
    def marked(self) -> set[int]:
        lines = enumerate(self.program.splitlines(), start=1)
        return {number for number, line in lines if f"# expect: {self.code}" in line}

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        path = folder / "train.py"
        path.write_text(self.program, encoding="utf-8")
        return path


def pages() -> list[rule.Rule]:
    """The rules about programs; those about gradlint itself (GL0xx) are tested with what they speak
    of.
    """
    return [found for found in rule.rules().values() if not found.code.startswith("GL0")]


def examples() -> Iterator[Example]:
    for found in pages():
        for section in found.page.split("\n## ")[1:]:
            heading, _, body = section.partition("\n")
            for number, match in enumerate(_BLOCK.finditer(body), start=1):
                yield Example(found.code, heading, number, match[1])


BAD = [example for example in examples() if example.heading == "Example"]
GOOD = [example for example in examples() if example.heading != "Example"]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.code)
def test_a_page_has_the_fixed_headings_and_an_example_on_either_side(page: rule.Rule) -> None:
    assert page.page.startswith(f"# {page.name} ({page.code})\n")
    assert re.findall(r"^## (.+)$", page.page, re.MULTILINE) == HEADINGS
    headings = {example.heading for example in examples() if example.code == page.code}
    assert {"Example", "Use instead"} <= headings


def _needs(example: Example) -> None:
    """Skips a run where a framework that the example is about is not installed."""
    for name in _FRAMEWORKS.findall(example.program):
        pytest.importorskip(name)


@pytest.mark.parametrize("example", BAD, ids=str)
def test_pytorch_does_to_a_bad_example_what_its_comments_say(
    example: Example, tmp_path: pathlib.Path
) -> None:
    _needs(example)
    example.write(tmp_path)
    ended = observe(tmp_path).exception
    claim = _RAISES.search(example.program)
    if claim:
        assert ended.startswith(f"{claim[1]}: ")
        assert claim[2] in ended
    else:
        assert ended == ""


@pytest.mark.parametrize("example", GOOD, ids=str)
def test_pytorch_runs_what_a_page_advises(example: Example, tmp_path: pathlib.Path) -> None:
    _needs(example)
    example.write(tmp_path)
    assert observe(tmp_path).exception == ""


@pytest.mark.parametrize("example", BAD, ids=str)
def test_a_bad_example_is_reported_at_its_marked_lines_alone(
    example: Example, tmp_path: pathlib.Path
) -> None:
    path = example.write(tmp_path)
    found = analyze([path], select=lambda code: code == example.code).findings
    assert {finding.at.line for finding in found} == example.marked != set()


@pytest.mark.parametrize("example", GOOD, ids=str)
def test_what_a_page_advises_is_free_of_errors_and_warnings(
    example: Example, tmp_path: pathlib.Path
) -> None:
    path = example.write(tmp_path)
    found = analyze([path], select=lambda code: True).findings
    assert [
        str(finding)
        for finding in found
        if finding.severity > Severity.NOTE or finding.code == example.code
    ] == []
