"""What a result can rest on: parts of files, each with what stands for its text. An edit of others
costs nothing.

A part is named by a word: a name of the module, for the statements that bind it, or one of the
kinds below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gradlint.dataclass import dataclass

PARSES = ""  # that the file can be parsed at all
WHOLE = "*"
STARS = "import *"
SETTINGS = "settings"  # of torch
_FILLS, _BELOW, _RETURNS, _MENTIONS = "fills ", "below ", "returns ", "mentions "
Part = tuple[str, str]  # the path of a file, and the word for a part of it


def fills(name: str) -> str:
    """What fills a container of the module."""
    return _FILLS + name


def below(name: str) -> str:
    """The classes that inherit from one of the module."""
    return _BELOW + name


def returns(name: str) -> str:
    """The lengths of the tuples that methods of this name return."""
    return _RETURNS + name


def mentions(names: Iterable[str]) -> str:
    """Whether the file speaks of one of these."""
    return _MENTIONS + " ".join(sorted(names))


@dataclass(frozen=True, slots=True)
class Text:
    """What stands for the text of a part, and where it is: the first and last line of each of its
    statements.
    """

    digest: str
    lines: tuple[tuple[int, int], ...] = ()


NOTHING = Text("")
SOMETHING = Text("yes")
MISSING = Text("missing")  # of a file that cannot be parsed


@dataclass(frozen=True, slots=True)
class Edited:
    """A file that was edited: the parts whose text is what it was, and by how many lines each of
    them has moved.
    """

    same: Mapping[str, Text]
    # first and last line before, and how far down they went
    moved: tuple[tuple[int, int, int], ...]

    def line(self, line: int) -> int | None:
        """Where a line is now; None where nothing says so."""
        return next((line + by for first, last, by in self.moved if first <= line <= last), None)
