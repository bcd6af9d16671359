"""What gradlint reports: a finding, where it is, how bad it is, and the edit that repairs it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from gradlint.dataclass import dataclass

# a hint: a run does not show this one, although it shows others of its code
NOT_SHOWN = "not-shown"
DENIES = "denies"  # a hint: what happens on no path, by the finding (a `Denied`)


class Denied(enum.Enum):
    """What a finding says that never happens, whatever the program decides: a run in which it does
    refutes it.
    """

    # the loss at the related backward carries one, computed from what stands at the finding
    GRADIENT = "gradient"
    TRAINING = "training"  # all that the related optimizer holds gets a gradient
    USE = "use"  # what is computed at the finding is back-propagated
    STEP = "step"  # the optimizer steps that is cleared at a related place

    @property
    def hint(self) -> Mapping[str, str]:
        """The hint that says so."""
        return {DENIES: self.value}


class Severity(enum.IntEnum):
    """How sure and how bad, in the words of the catalogue; ordered, so that severities compare."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    @property
    def label(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, text: str) -> Severity:
        """The severity that `text` names; raises KeyError for any other word."""
        return cls[text.upper()]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of a source file. Lines and columns count from 1, columns in characters; the end is
    exclusive.

    In a report, lines count from the beginning of the `cell` of a notebook; elsewhere `cell` is 0.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.place}"

    @property
    def place(self) -> str:
        """Where it begins in its file: `5:2`, or `cell 3:5:2`."""
        return f"{f'cell {self.cell}:' if self.cell else ''}{self.line}:{self.column}"

    @property
    def last_line(self) -> int:
        """The last line of which the stretch holds anything."""
        return max(self.line, self.end_line - (self.end_column == 1))

    def encloses(self, other: Span) -> bool:
        """Whether another stretch lies within this one."""
        is_same_file = (self.path, self.cell) == (other.path, other.cell)
        begins = (self.line, self.column) <= (other.line, other.column)
        return (
            is_same_file
            and begins
            and (other.end_line, other.end_column) <= (self.end_line, self.end_column)
        )


class Role(enum.Enum):
    """What a related place is to the finding: a fix goes by it, not by the words of the message."""

    CALL = "call"  # the call that led to it
    BACKWARD = "backward"  # the gradients come from here
    STEP = "step"
    CLEARING = "clearing"
    UNSCALING = "unscaling"
    COMPUTED = "computed"  # what the finding speaks of is computed here
    RETURNED = "returned"  # `autograd.grad` returns gradients here
    UNUSED = "unused"  # gradients that no optimizer uses come from here
    HOLDER = "holder"  # an optimizer takes its parameters here
    DEVICE = "device"  # the device is chosen here
    FILLED = "filled"  # infinity is put in here
    REGISTERED = "registered"  # a hook is


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that a finding speaks of: the sink, a call in between, the operation that
    saved.
    """

    at: Span
    message: str
    role: Role | None = None  # None where no fix asks


class Applicability(enum.Enum):
    """Whether a fix keeps the meaning of the program but for the bug (ruff's words)."""

    SAFE = "safe"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace what stands at `at` by `content`; an insertion has an empty span, a deletion empty
    content.
    """

    at: Span
    content: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that together repair one finding."""

    message: str
    applicability: Applicability
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, told about the user's program in the user's names."""

    code: str
    name: str
    severity: Severity
    message: str
    at: Span
    help: str = ""
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    step: int | None = None
    # what fixes and `--confirm` take from the tape
    hints: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def wording(self) -> tuple[str, int, tuple[tuple[int, int, int, str], ...]]:
        """The order of findings of one code, place and severity: by their words, and whoever points
        to more places first. Without backslashes, of which SARIF has more.
        """
        places = (
            (each.at.cell, each.at.line, each.at.column, each.message.replace("\\", ""))
            for each in self.related
        )
        return self.message.replace("\\", ""), -len(self.related), tuple(places)

    @property
    def sort_key(self) -> tuple[str, int, int, int, str, str]:
        return (self.at.path, self.at.cell, self.at.line, self.at.column, self.code, self.message)
