"""Generated training loops: what `check` says of their gradients is what torch shows, and what a
trace of them says.

`GRADLINT_LOOPS` says how many programs a seed gives (120), `GRADLINT_SEED` the seed of those that
are drawn.
"""

from __future__ import annotations

import itertools
import os
import pathlib
from collections.abc import Iterator

import pytest
import traced
from differential import loops
from differential.ledger import Ledger, kept
from seeds import SEEDS

from gradlint.analysis import analyze
from gradlint.finding import Finding, Severity
from gradlint.rule import at_run_time

LOOPS = int(os.environ.get("GRADLINT_LOOPS", "120"))
TRACED = 8  # of these: a trace takes a second
# what the last round leaves is not looked for, nor windows that are cleared where the tail is
# stepped
AGREEMENT = 0.94
LOST = {
    "GL502",
    "GL504",
    "GL505",
    "GL506",
    "GL511",
}  # a counter from the wrong number leaves a remainder, too


def apart(ledger: Ledger, codes: set[str]) -> Iterator[str]:
    """How the codes that are reported differ from what became of the gradients."""
    if ledger.stacked != ("GL501" in codes):
        yield "missed: used gradients are added to" if ledger.stacked else "false: GL501"
    if ledger.lost and not codes & LOST:
        yield "missed: gradients are lost"
    if not ledger.lost and (false := codes & {"GL502", "GL505"}):
        yield f"false: {', '.join(sorted(false))}"
    if any(ledger.sizes) and "GL511" in codes:
        yield "false: GL511"
    if not ledger.lost and "GL504" in codes and len(set(ledger.sizes)) < 2:
        yield "false: GL504"
    if "GL506" in codes and ledger.sizes[:1] != [1]:
        yield "false: GL506"


def found(text: str, path: pathlib.Path) -> tuple[Finding, ...]:
    analysis = analyze([path], select=at_run_time().__contains__, sources={path: text})
    assert not analysis.gaps, f"{analysis.gaps}\n{text}"
    return tuple(each for each in analysis.findings if each.severity > Severity.NOTE)


def programs(seed: int) -> Iterator[tuple[str, Ledger]]:
    """Programs without end, but for those that torch refuses to run."""
    for number in itertools.count(seed):
        text = loops.generate(number)
        ledger = kept(text)
        if not ledger.raised:
            yield text, ledger


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS.keys())
def test_check_says_what_becomes_of_gradients(seed: int) -> None:
    wrong = []
    for text, ledger in itertools.islice(programs(seed), LOOPS):
        differences = list(
            apart(ledger, {each.code for each in found(text, pathlib.Path("train.py"))})
        )
        if differences:
            wrong.append(f"{'; '.join(differences)}\n{text.removeprefix(loops.HEADER)}")
    print("\n\n".join(wrong))
    assert not any(each.startswith("false") for each in wrong), f"seed {seed}"
    assert 1 - len(wrong) / LOOPS >= AGREEMENT, f"seed {seed}"


def test_a_trace_says_what_check_says(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    for text, _ in itertools.islice(programs(5_000), TRACED):
        script.write_text(text)
        static = {(each.code, each.at.line) for each in found(text, script)}
        report = traced.trace(
            tmp_path, "--output-format", "json", "--output-file", "report.json", "train.py"
        )
        assert report.code in (0, 1), report.err
        assert static == _of_report(tmp_path / "report.json"), text


def _of_report(file: pathlib.Path) -> set[tuple[str, int]]:
    import json

    findings = json.loads(file.read_text())["findings"]
    return {
        (each["code"], each["location"]["row"]) for each in findings if each["severity"] != "note"
    }
