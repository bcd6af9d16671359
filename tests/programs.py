"""The programs under `fixtures/`, what their markers claim, and where gradlint disagrees.

A marker is a comment at the end of the line that a finding is at:

    # expect: GL101               reported here
    # expect: GL107 (any of a)    reported at one or more of this program's lines that say `GL107 (any of a)`
    # may: GL205                  reported here or not
    # ok: GL102 why               not reported here, not even as a note, although it looks like it
    # miss: GL106 why             ought to be reported here, and is not yet
    # noise: GL109 why            reported here, and ought not to be

Codes are separated by commas, and a line may carry several markers. A line without one is silent,
but for notes. A code that no rule has yet is a miss by itself: an expectation begins to count when
its rule is there.
"""

from __future__ import annotations

import io
import pathlib
import re
import tokenize
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

ROOT = pathlib.Path(__file__).parents[1] / "fixtures"
OUTCOMES = {"raises", "untrained", "wrong-update", "grows", "nan", "warns", "latent"}
_MARKER = re.compile(r"# ?(expect|may|ok|miss|noise): ?([^#]*)")
_CLAIM = re.compile(r"((?:GL\d{3}(?: \(any of [a-z]\))?(?:, )?)+)(?: (.+))?")
_CODE = re.compile(r"(GL\d{3})(?: \(any of ([a-z])\))?")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A code at a line of one of a program's files."""

    file: str
    line: int
    code: str

    def __str__(self) -> str:
        return f"{self.code} at {self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Marker:
    """One claim. Markers of one kind and code with the same group (not "") are one claim about
    several lines.
    """

    kind: str
    place: Place
    group: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A program before or after its repair."""

    folder: pathlib.Path

    @property
    def name(self) -> str:
        return self.folder.relative_to(ROOT).as_posix()

    def files(self) -> list[pathlib.Path]:
        return sorted(self.folder.rglob("*.py"))

    def markers(self) -> list[Marker]:
        return [
            marker
            for path in self.files()
            for marker in read_markers(
                path.relative_to(self.folder).as_posix(), path.read_text(encoding="utf-8")
            )
        ]


@dataclass(frozen=True, slots=True)
class Case:
    """A bug and its repair (or, where the name begins with `clean-`, a program that is right)."""

    folder: pathlib.Path
    spec: dict[str, Any]

    @property
    def name(self) -> str:
        return self.folder.relative_to(ROOT).as_posix()

    @property
    def entry(self) -> str:
        return str(self.spec.get("entry", "train.py"))

    @property
    def before(self) -> dict[str, Any]:
        return dict(self.spec.get("before", {}))

    @property
    def untrained(self) -> int:
        """How many of the optimizers' parameters rightly get no gradient after the repair."""
        return int(self.spec.get("after", {}).get("untrained", 0))

    def varies(self, side: str) -> bool:
        """Whether two runs of the program can end differently by themselves."""
        return bool(self.spec.get(side, {}).get("varies"))

    def programs(self) -> list[Program]:
        return [
            Program(folder)
            for side in ("before", "after")
            if (folder := self.folder / side).is_dir()
        ]


def cases() -> list[Case]:
    """Every case, by name."""
    return [
        Case(path.parent, tomllib.loads(path.read_text()))
        for path in sorted(ROOT.glob("*/*/case.toml"))
    ]


def read_markers(file: str, source: str) -> Iterator[Marker]:
    """The markers of one file; a comment that begins like one and is none raises ValueError."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for kind, text in _MARKER.findall(token.string):
                yield from _claims(kind, text.strip(), file, token.start[0])


def _claims(kind: str, text: str, file: str, line: int) -> Iterator[Marker]:
    claim = _CLAIM.fullmatch(text)
    why = (claim[2] or "") if claim else ""
    if not claim or (kind in ("miss", "noise") and not why):
        raise ValueError(
            f"{file}:{line}: `# {kind}: {text}` is no marker (a code, and for a miss or noise why)"
        )
    for code, group in _CODE.findall(claim[1]):
        yield Marker(kind, Place(file, line, code), group, why)


def disagreements(
    markers: Iterable[Marker], reported: Collection[tuple[Place, str]], known: Collection[str]
) -> list[str]:
    """Where `reported` (places with their severities) differs from what the markers claim of the
    `known` codes.
    """
    claims: dict[tuple[object, ...], list[Marker]] = {}
    for marker in markers:
        if marker.place.code in known:
            key = (marker.kind, marker.place.code, marker.group) if marker.group else (marker,)
            claims.setdefault(key, []).append(marker)
    places = {place for place, _ in reported}
    wrong = [text for claim in claims.values() if (text := _broken(claim, places))]
    answered = {marker.place for claim in claims.values() for marker in claim}
    loud = {place for place, severity in reported if severity != "note"}
    return sorted(wrong) + [
        f"{place} is reported, and no marker says so" for place in sorted(loud - answered)
    ]


def _broken(claim: list[Marker], places: set[Place]) -> str:
    """What is wrong with one claim (its markers differ in their lines alone), or ""."""
    is_reported = any(marker.place in places for marker in claim)
    where = " or ".join(str(marker.place) for marker in claim)
    match claim[0].kind, is_reported:
        case "expect", False:
            return f"{where} is not reported"
        case "ok", True:
            return f"{where} is reported, and is right as it stands"
        case "miss", True:
            return f"{where} is reported: no longer a miss, make it an `expect`"
        case "noise", False:
            return f"{where} is not reported: no longer noise, remove the marker"
    return ""
