"""Every program under `fixtures/`: what torch does with it, and what gradlint says of it.

The `said.txt` of a case holds the words of it and what the fixes write. `GRADLINT_SAID=write pytest
tests/test_fixtures.py` writes them anew, to be read before they are kept.
"""

from __future__ import annotations

import difflib
import functools
import importlib.util
import os
import pathlib
from collections.abc import Iterable, Iterator

import pytest
from programs import OUTCOMES, Case, Marker, Place, Program, cases, disagreements, read_markers
from truth import Record, alone

from gradlint.finding import Finding, Span
from gradlint.fix.attach import Files, with_fixes
from gradlint.fix.edits import edited

CASES = cases()
PROGRAMS = [program for case in CASES for program in case.programs()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_torch_shows_the_bug_before_and_trains_after(case: Case) -> None:
    for package in case.spec.get("needs", []):
        if not importlib.util.find_spec(package):
            pytest.skip(f"needs {package}")
    after = _run(case, "after")
    assert not after.fault(case.untrained), f"after/: {after.fault(case.untrained)}"
    if case.before:
        assert (fault := _unshown(case, after)) == "", f"before/: {fault}"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_check_says_what_the_markers_say(program: Program) -> None:
    from gradlint.analysis import analyze
    from gradlint.rule import rules

    found = analyze(program.files(), select=lambda code: True).findings
    reported = {
        (
            Place(_relative(finding.at.path, program.folder), finding.at.line, finding.code),
            finding.severity.label,
        )
        for finding in found
    }
    assert disagreements(program.markers(), reported, rules().keys()) == []
    words = "\n".join(_said(found, program.folder)) + "\n"
    kept = program.folder.parent / "said.txt"
    if program.folder.name == "before":
        if os.environ.get("GRADLINT_SAID") == "write":
            kept.write_text(words, encoding="utf-8")
        assert words == kept.read_text(encoding="utf-8")


def _said(findings: Iterable[Finding], folder: pathlib.Path) -> Iterator[str]:
    """Each finding, the places around it, and how its fix changes the lines."""
    files = Files(lambda path: pathlib.Path(path).read_text(encoding="utf-8"))
    for finding in with_fixes(findings, files):
        end = f"{finding.at.end_line}:{finding.at.end_column}"
        yield (
            f"{_place(finding.at, folder)}-{end} {finding.code} {finding.severity.label}: "
            f"{finding.message}"
        )
        yield from (
            f"  {_place(related.at, folder)} {related.message}" for related in finding.related
        )
        yield f"  help: {finding.help}"
        fix = finding.fix
        file = files.file(fix.edits[0].at.path) if fix is not None else None
        if fix is not None and file is not None:
            place = "" if file.path == finding.at.path else f" in {_relative(file.path, folder)}"
            yield f"  {fix.applicability.value} fix{place}: {fix.message}"
            old, new = file.layout.text.splitlines(), edited(file.layout, fix.edits).splitlines()
            _, _, *lines = difflib.unified_diff(old, new, n=0, lineterm="")
            yield from (f"  {line}" for line in lines)


def _place(at: Span, folder: pathlib.Path) -> str:
    return f"{_relative(at.path, folder)}:{at.line}:{at.column}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_whole(case: Case) -> None:
    markers = [marker for program in case.programs()[:-1] for marker in program.markers()]
    expected = {marker.place.code for marker in markers if marker.kind in ("expect", "miss")}
    assert (case.folder / "after" / case.entry).is_file()
    if case.folder.name.startswith("clean-"):
        assert not case.before
        assert not expected
    else:
        assert case.before["outcome"] in OUTCOMES
        assert case.folder.name[:5] in expected


def _run(case: Case, side: str) -> Record:
    return alone(case.folder / side, case.entry)


def _relative(path: str, folder: pathlib.Path) -> str:
    return pathlib.Path(path).resolve().relative_to(folder).as_posix()


def _unshown(case: Case, after: Record) -> str:
    """Why a run of before/ does not show what the case says of it, or ""."""
    outcome, message = case.before["outcome"], case.before.get("message", "")
    if outcome == "latent":
        return "" if case.before.get("why") else "latent, and no why"
    before = _run(case, "before")
    if outcome == "raises":
        return "" if message and message in before.exception else f"it ends in {before.exception!r}"
    if before.exception:
        return f"it ends in {before.exception}"
    shown = {
        "untrained": before.untrained > case.untrained or not before.steps,
        "wrong-update": abs(before.checksum - after.checksum)
        > 1e-7 * max(before.checksum, after.checksum),
        "grows": len(before.live) > 3
        and before.live[-1] - before.live[0] > after.live[-1] - after.live[0],
        "nan": before.nonfinite,
        "warns": any(message in warning for warning in before.warnings),
    }
    return "" if shown[outcome] else f"{outcome} did not show: {before}"


HERE = functools.partial(Place, "train.py")


def _judge(source: str, *reported: tuple[Place, str]) -> list[str]:
    return disagreements(
        list(read_markers("train.py", source)), reported, {"GL101", "GL102", "GL205"}
    )


def test_an_expectation_is_met_by_a_finding_on_its_line() -> None:
    assert _judge("x = 1  # expect: GL101\n", (HERE(1, "GL101"), "error")) == []
    assert _judge("x = 1  # expect: GL101\n") == ["GL101 at train.py:1 is not reported"]


def test_a_group_is_met_by_one_of_its_lines() -> None:
    source = "x = 1  # expect: GL101 (any of a), GL102\ny = 2  # expect: GL101 (any of a)\n"
    assert _judge(source, (HERE(2, "GL101"), "error"), (HERE(1, "GL102"), "error")) == []
    assert _judge(source, (HERE(1, "GL102"), "error")) == [
        "GL101 at train.py:1 or GL101 at train.py:2 is not reported"
    ]


def test_a_line_without_a_marker_is_silent_but_for_notes() -> None:
    assert _judge("x = 1\n", (HERE(1, "GL205"), "note")) == []
    assert _judge("x = 1\n", (HERE(1, "GL102"), "warning")) == [
        "GL102 at train.py:1 is reported, and no marker says so"
    ]


def test_a_line_that_is_right_has_not_even_a_note() -> None:
    assert _judge("x = 1  # ok: GL205 a buffer\n") == []
    assert _judge("x = 1  # ok: GL205 a buffer\n", (HERE(1, "GL205"), "note")) != []


def test_a_miss_or_noise_that_is_gone_is_a_disagreement() -> None:
    assert _judge("x = 1  # miss: GL101 deep  # may: GL205\n") == []
    assert _judge("x = 1  # miss: GL101 deep  # may: GL205\n", (HERE(1, "GL101"), "error")) != []
    assert _judge("x = 1  # noise: GL101 deep\n", (HERE(1, "GL101"), "error")) == []
    assert _judge("x = 1  # noise: GL101 deep\n") != []


def test_a_code_without_a_rule_is_not_yet_expected() -> None:
    assert _judge("x = 1  # expect: GL999\n") == []


@pytest.mark.parametrize("text", ["expect: constant-loss", "miss: GL101", "noise: GL102", "ok: "])
def test_a_marker_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no marker"):
        list(read_markers("train.py", f"x = 1  # {text}\n"))


def test_markers_are_read_from_comments_alone() -> None:
    assert list(read_markers("train.py", 'x = "# expect: GL101"\n')) == []
    assert list(read_markers("train.py", "x = 1  # ok: GL102 logging\n")) == [
        Marker("ok", HERE(1, "GL102"), why="logging")
    ]
