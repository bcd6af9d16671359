"""Patterns as in a .gitignore, with git's meaning.

A pattern becomes a regular expression that never goes back over what a star has taken: behind a
star, the first place at which the text up to the next one fits leaves the most for the rest. So a
match takes no longer than the length of the path times that of the pattern, however many stars
there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from gradlint.dataclass import dataclass

_FOLDERS = "**"  # as a whole segment: any folders, none among them
_STARS = re.compile(r"\*+")
_ELEMENT = re.compile(
    r"\[:(?P<name>[^\]]*):\]|(?P<first>\\.|[^\\])(?:-(?P<last>\\.|[^\]\\]))?", re.DOTALL
)  # of what stands in brackets
_CLASSES = {  # of POSIX, as git has them: ASCII alone
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line: whether it leaves out or takes back in, whether folders alone, and which paths it
    is about.
    """

    leaves_out: bool
    is_of_folders: bool
    path: re.Pattern[str]

    def matches(self, path: str) -> bool:
        """Whether it is about this path; that of a folder ends in a slash."""
        if path.endswith("/"):
            return self.path.fullmatch(path, 0, len(path) - 1) is not None
        return not self.is_of_folders and self.path.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class Patterns:
    """The patterns of one place, of which the last that is about a path decides."""

    patterns: tuple[Pattern, ...]
    # which folders are left out, or lie in one that is
    _around: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[str]) -> Patterns:
        """The patterns in these lines; ValueError for a line that is none."""
        return cls(tuple(found for line in lines if (found := pattern(line)) is not None))

    @classmethod
    def valid(cls, lines: Iterable[str]) -> Patterns:
        """Those of the lines that git would hear: it passes over what is no pattern."""
        return cls(tuple(_valid(lines)))

    def verdict(self, path: str) -> bool | None:
        """Whether this very path is left out; None where no pattern is about it."""
        return next(
            (each.leaves_out for each in reversed(self.patterns) if each.matches(path)), None
        )

    def leaves_out(self, path: str) -> bool:
        """Whether a path is left out, or lies in a folder that is: nothing in that can be taken
        back in.
        """
        around = path[: path.rstrip("/").rfind("/") + 1]
        if around and around not in self._around:
            self._around[around] = self.leaves_out(around)
        return self._around.get(around, False) or bool(self.verdict(path))


def pattern(line: str) -> Pattern | None:
    """The pattern of a line, None for a comment or an empty line; ValueError for one that can match
    nothing.
    """
    text = _trimmed(line)
    if not text or text.startswith("#"):
        return None
    leaves_out = not text.startswith("!")
    text = text if leaves_out else text[1:]
    is_of_folders = text.endswith("/")
    text = text[:-1] if is_of_folders else text
    if not text:
        raise ValueError(f"{line!r} is about no path")
    segments = _segments(text.removeprefix("/"))
    if "/" not in text:  # a name, wherever it stands
        segments = [[_FOLDERS], ["*" if token == _FOLDERS else token for token in segments[0]]]
    return Pattern(leaves_out, is_of_folders, re.compile(_expression(segments), re.DOTALL))


def _valid(lines: Iterable[str]) -> Iterator[Pattern]:
    for line in lines:
        try:
            found = pattern(line)
        except ValueError:
            continue
        if found is not None:
            yield found


def _trimmed(line: str) -> str:
    """A line without the spaces at its end, but for one behind a backslash."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return line[: len(text) + 1] if backslashes % 2 else text


def _segments(text: str) -> list[list[str]]:
    """What stands between the slashes of a pattern, each in tokens."""
    found: list[list[str]] = [[]]
    for token in _tokens(text):
        if token == "/":
            found.append([])
        else:
            found[-1].append(token)
    return found


def _tokens(text: str) -> Iterator[str]:
    """`*`, `**` and `/`, and for all else an expression for one character."""
    at = 0
    while at < len(text):
        char, end = text[at], at + 1
        if stars := _STARS.match(text, at):
            end = stars.end()
            yield "*" if len(stars[0]) == 1 else _FOLDERS
        elif char == "?":
            yield "[^/]"
        elif char == "[":
            content, end = _bracket(text, end)
            yield content
        elif char == "\\":
            end = at + 2
            yield "/" if text[at + 1 : end] == "/" else re.escape(_one(text, at + 1))
        else:
            yield "/" if char == "/" else re.escape(char)
        at = end


def _one(text: str, at: int) -> str:
    if at >= len(text):
        raise ValueError(f"{text!r} ends too early")
    return text[at]


def _bracket(text: str, at: int) -> tuple[str, int]:
    """The expression for what begins behind a `[`, and where it ends; it never matches a slash."""
    is_negated = _one(text, at) in "!^"
    at += is_negated
    parts: list[str] = []
    while not parts or _one(text, at) != "]":
        element = _ELEMENT.match(text, at)
        if element is None or element["name"] not in (None, *_CLASSES):
            raise ValueError(
                f"{text!r} has a bracket that is not closed, or an unknown class in one"
            )
        parts.append(_range(element) if element["name"] is None else _CLASSES[element["name"]])
        at = element.end()
    content = "".join(parts)
    if not content:
        return ("[^/]" if is_negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if is_negated else ''}{content}]", at + 1


def _range(element: re.Match[str]) -> str:
    """One character of a bracket, or all from one to another: none where they stand the other way
    round.
    """
    first = element["first"][-1]
    last = (element["last"] or first)[-1]
    return f"\\U{ord(first):08x}-\\U{ord(last):08x}" if first <= last else ""


def _expression(segments: Sequence[Sequence[str]]) -> str:
    """The expression for a path; where `**` stands, the first place at which the next folders fit
    is theirs.
    """
    runs: list[list[str]] = [[]]
    for segment in segments:
        if list(segment) == [_FOLDERS]:
            runs.append([])
        else:
            runs[-1].append(_name(segment))
    first, *others = runs
    if not others:
        return "/".join(first)
    *inner, last = others
    head = "/".join([*first, ""])
    inside = "".join(f"(?>(?:[^/]+/)*?{'/'.join(run)}/)" for run in inner if run)
    return head + inside + (f"(?:[^/]+/)*{'/'.join(last)}" if last else ".+")


def _name(tokens: Sequence[str]) -> str:
    """The expression for the name of a file or folder."""
    pieces = [""]
    for token in tokens:
        if token in ("*", _FOLDERS):
            pieces.append("")
        else:
            pieces[-1] += token
    first, *others = pieces
    if not others:
        return first
    *inner, last = others
    return first + "".join(f"(?>[^/]*?{piece})" for piece in inner if piece) + f"[^/]*{last}"
