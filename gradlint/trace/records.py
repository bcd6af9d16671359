"""What is written down while the program runs: as little as possible, since it is written for every
operation.

An `Op` becomes a `Value` and a `Note` an event when the tape is assembled; until then nothing is
formatted, no file is read, and no tensor is kept alive.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from gradlint.contracts import Contract
from gradlint.tape import Cut, Kind
from gradlint.trace.extents import Extent
from gradlint.trace.frames import Place

# on a softmax: somewhere all that it was taken of was minus infinity
ROW_OF_NOTHING = "row-of-nothing"
serial = itertools.count(1)


@dataclass(eq=False, slots=True)
class Cell:
    """Memory that tensors share, and the writes to it."""

    writes: list[Written] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Written:
    """One write in place."""

    name: str
    place: Place
    counted: bool
    serial: int
    version: int
    extent: Extent | None = None  # what it covers of its memory, where autograd does not see it
    lasts: bool = False  # it spoils a gradient without an error: the account of a step hangs on it


@dataclass(eq=False, slots=True)
class Held:
    """A parameter's identity: where it was made, and its name once a module or optimizer tells
    it.
    """

    place: Place
    name: str = ""
    path: tuple[str, ...] = ()
    frozen_at: Place = ()
    cell: Cell | None = None
    is_loaded: bool = False  # its values came out of a file
    is_seen: bool = False  # `nn.Parameter(…)` itself was seen, at `place`
    is_zero: bool = False  # it held nothing but zeros when it was frozen
    serial: int = field(default_factory=lambda: next(serial))


@dataclass(eq=False, slots=True)
class Op:
    """One value: the operation that made it (or what sort of leaf it is), its inputs, and where."""

    name: str
    kind: Kind
    inputs: tuple[Op, ...]
    place: Place
    serial: int
    step: int
    requires_grad: bool
    dtype: Any = None
    cut: Cut | None = None
    cut_place: Place = ()
    in_torch: bool = True
    held: Held | None = None
    gradient_of: Held | None = None
    cell: Cell | None = None
    number: object | None = None
    flags: frozenset[str] = frozenset()
    sequence: tuple[int, int] = (0, 0)
    # with the writes before, if known
    saves: list[tuple[str, Cell, Op, int | None]] = field(default_factory=list)
    checkpointed: str = ""
    autocast: str | None = None
    inference: bool = False
    missing: bool = False
    arguments: tuple[tuple[int | str, object], ...] = ()
    layer_made: Place = ()  # of what a layer of an nn.Sequential gave: where the layer was made
    layer: Callable[[], Any] | None = None  # and the layer itself, while it lives

    def without_past(self) -> Op:
        """The same value cut off from what it was computed from, so that chains over many steps do
        not grow.

        A gradient is still one: it can be cleared in place in every step.
        """
        kind = Kind.UNKNOWN if self.requires_grad else Kind.DATA
        return Op(
            self.name, kind, (), self.place, self.serial, self.step, self.requires_grad,
            self.dtype, cell=self.cell,
            inference=self.inference, cut_place=self.cut_place if self.inference else (),
            flags=self.flags & {"grad", "data"}, gradient_of=self.gradient_of,
        )  # fmt: skip


@dataclass(eq=False, slots=True)
class Note:
    """Something that happened: `make` turns it into an event of the tape."""

    kind: str
    place: Place
    step: int
    serial: int = field(default_factory=lambda: next(serial))
    facts: dict[str, Any] = field(default_factory=dict)
    make: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Driven:
    """A part that a contract drives: the code of its driver, what the part is called, the contract,
    and its lines.
    """

    codes: tuple[CodeType, ...]
    name: str
    contract: Contract
    lines: tuple[int, int]

    @property
    def file(self) -> str:
        """The file that it is defined in."""
        return self.codes[0].co_filename

    def does(self, place: Place) -> bool:
        """Whether its driver does by itself what happens at a place."""
        return bool(place) and any(place[0].code is code for code in self.codes)
