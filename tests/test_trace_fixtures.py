"""Every program under `fixtures/`, traced: it computes what it does alone, and shows what its
markers say.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import re
from collections.abc import Iterator

import pytest
from programs import Case, Marker, Place, cases, disagreements
from traced import trace
from truth import Record, alone, observe

from gradlint.rule import at_run_time

_TIME = re.compile(r"\d+\.\d+ ?s\b")  # "took 0.1s"
CASES = [
    (case, side)
    for case in cases()
    for side in ("before", "after")
    if (case.folder / side).is_dir()
]


@pytest.mark.parametrize(("case", "side"), CASES, ids=lambda each: getattr(each, "name", each))
def test_a_traced_run_computes_the_same_and_says_what_the_markers_say(
    case: Case, side: str, tmp_path: pathlib.Path
) -> None:
    for package in case.spec.get("needs", []):
        if not importlib.util.find_spec(package):
            pytest.skip(f"needs {package}")
    folder, report = case.folder / side, tmp_path / "report.json"
    left_alone = _left(alone(folder, case.entry))
    watched = trace(
        folder,
        "--fail-on",
        "never",
        "--output-format",
        "json",
        "--output-file",
        str(report),
        case.entry,
    )
    left = watched.code, _printed(watched.out), watched.steps, watched.digest
    if not case.varies(side) and left != left_alone:
        assert _left(observe(folder, case.entry)) != left_alone, (
            f"only left alone it is the same twice\n{left}\n{left_alone}\n{watched.err}"
        )
    reported = json.loads(report.read_text())
    assert not [unseen for unseen in reported["unseen"] if "fault" in unseen]
    if side == "after" or case.before.get("trace", True):
        assert disagreements(_claims(case, side), _places(reported, folder), at_run_time()) == []


def test_a_bug_that_a_run_shows_otherwise_says_why() -> None:
    for case in cases():
        if not case.before.get("trace", True):
            shown = [
                marker
                for marker in _markers(case, "before")
                if marker.kind == "expect" and marker.place.code in at_run_time()
            ]
            assert not shown or case.before.get("trace_why"), case.name


def _left(run: Record) -> tuple[object, ...]:
    """What must be the same."""
    return run.code, _printed(run.out), run.ended, run.digest


def _printed(out: str) -> list[str]:
    """What a program printed; ranks print in any order."""
    return sorted(_TIME.sub("", out).splitlines())


def _claims(case: Case, side: str) -> Iterator[Marker]:
    """What a run is to show: what the markers say, but where the case says otherwise."""
    wanted = case.before.get("trace_expect") if side == "before" else None
    for number, expected in enumerate(wanted or []):
        for line in expected["lines"]:
            yield Marker("expect", Place(expected["file"], line, expected["code"]), f"run {number}")
    yield from (marker for marker in _markers(case, side) if not wanted or marker.kind != "expect")


def _markers(case: Case, side: str) -> Iterator[Marker]:
    """The markers of a program. What the source does not show may show in the run, and the other
    way round.

    `trace_miss` and `trace_noise` of `case.toml` list where a traced run alone is known to be
    wrong, as "GL106 at quant.py:15"; an entry that stopped being true fails the test.
    """
    program = next((program for program in case.programs() if program.folder.name == side), None)
    known = case.spec.get(side, {})
    missed = known.get("trace_miss", [])
    for place in known.get("trace_noise", []):
        yield _known("noise", place)
    for marker in program.markers() if program is not None else ():
        kind = "may" if marker.kind in ("miss", "noise") else marker.kind
        if str(marker.place) in missed and kind == "expect":
            kind = "miss"
        yield Marker(kind, marker.place, marker.group, marker.why)
        if marker.place.code in (
            "GL602",
            "GL702",
            "GL703",
        ):  # a run that meets the NaN says so there
            yield Marker("may", Place(marker.place.file, marker.place.line, "GL701"))


def _known(kind: str, place: str) -> Marker:
    """The marker that "GL106 at quant.py:15" stands for."""
    code, _, at = place.partition(" at ")
    file, _, line = at.rpartition(":")
    return Marker(kind, Place(file, int(line), code))


def _places(
    reported: dict[str, list[dict[str, object]]], folder: pathlib.Path
) -> set[tuple[Place, str]]:
    found = set()
    for finding in reported["findings"]:
        path = (folder / str(finding["filename"])).resolve()
        name = (
            path.relative_to(folder.resolve()).as_posix()
            if path.is_relative_to(folder.resolve())
            else str(path)
        )
        location = finding["location"]
        assert isinstance(location, dict)
        found.add((Place(name, location["row"], str(finding["code"])), str(finding["severity"])))
    return found
