"""The tape: what a program did with tensors, as the interpreter or the recorder wrote it down and
the rules read it.

*Values* form a graph. Each knows the operation that made it, the values it was computed from,
where, whether autograd records it, and if not, why (its *cut*). *Events* stand in the order in
which they happened. A tape is one path through one entry; a traced run is one tape.
"""

from __future__ import annotations

import enum
import functools
import itertools
import operator
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar, cast

from gradlint.dataclass import dataclass
from gradlint.tape.events import (
    GLANCES,
    Autocast,
    Backward,
    Clip,
    Decision,
    End,
    Event,
    Fact,
    GradMode,
    Handed,
    InPlace,
    Iteration,
    Kept,
    ModuleCall,
    OptimizerMade,
    OptimizerStep,
    ScalerUpdate,
    SchedulerStep,
    TrainMode,
    Unscale,
    ZeroGrad,
)
from gradlint.tape.extents import are_apart, extent
from gradlint.tape.lineage import (
    above,
    ancestors,
    as_far_as_leaves,
    constants,
    cuts,
    graph,
    leaves,
    sure,
    users_among,
)
from gradlint.tape.values import (
    AS_GIVEN,
    BESIDE,
    CAST,
    COMPUTED_ANEW,
    DRAWN,
    EVERY,
    FRAMEWORK,
    GIVEN_NOTHING,
    HANDED,
    LOOKUP,
    MAY_SHARE,
    MERELY_CALLED,
    OF_A_FUNCTION,
    OF_A_LIST,
    PREDICTED,
    REFUSED,
    REFUSES,
    TENSOR,
    TOLD_APART,
    UNSEEN,
    WRITTEN,
    Cut,
    DType,
    Kind,
    Module,
    Optimizer,
    Parameter,
    Saved,
    Scaler,
    Scheduler,
    Storage,
    Value,
    Write,
)

__all__ = [
    "ALL_EVENTS",
    "AS_GIVEN",
    "BESIDE",
    "CAST",
    "COMPUTED_ANEW",
    "DRAWN",
    "EVERY",
    "FRAMEWORK",
    "GIVEN_NOTHING",
    "GLANCES",
    "HANDED",
    "LOOKUP",
    "MAY_SHARE",
    "MERELY_CALLED",
    "OF_A_FUNCTION",
    "OF_A_LIST",
    "PREDICTED",
    "REFUSED",
    "REFUSES",
    "TENSOR",
    "TOLD_APART",
    "UNSEEN",
    "WRITTEN",
    "Autocast",
    "Backward",
    "Clip",
    "Cut",
    "DType",
    "Decision",
    "End",
    "Event",
    "Fact",
    "GradMode",
    "Handed",
    "InPlace",
    "Iteration",
    "Kept",
    "Kind",
    "May",
    "Module",
    "ModuleCall",
    "Optimizer",
    "OptimizerMade",
    "OptimizerStep",
    "Parameter",
    "Saved",
    "Scaler",
    "ScalerUpdate",
    "Scheduler",
    "SchedulerStep",
    "Storage",
    "Tape",
    "TrainMode",
    "Unscale",
    "Value",
    "Write",
    "ZeroGrad",
    "above",
    "ancestors",
    "are_apart",
    "as_far_as_leaves",
    "constants",
    "cuts",
    "extent",
    "graph",
    "leaves",
    "sure",
    "users_among",
]

_Kind = TypeVar("_Kind", bound=Event)
_OF_OPTIMIZERS = (OptimizerStep, ZeroGrad)


class May(enum.Flag):
    """What code that was not run may do: the side of a branch that no path took."""

    STEP = enum.auto()  # an optimizer steps
    CLEAR = enum.auto()  # gradients are cleared, or set
    BACKWARD = enum.auto()
    CLIP = enum.auto()  # gradients are clipped, or unscaled
    HOLD = enum.auto()  # an optimizer is made, or given parameters
    BIND = enum.auto()  # a name, an attribute or an item gets another value: a loss one more term
    READ = enum.auto()  # gradients are read: to update parameters by hand, or to measure them
    SCALE = enum.auto()  # a scaler is updated
    SYNC = enum.auto()  # gradient synchronisation between ranks is switched off or on
    LEAVE = enum.auto()  # what follows is not come to: `return`, `continue`, `raise`
    WRITE = enum.auto()  # a tensor is written in place
    # a tensor is detached, copied or frozen, or computed where nothing is recorded
    CUT = enum.auto()
    SPOIL = enum.auto()  # a gradient is not finite: of a quotient, a root, the mean of nothing
    KEEP = enum.auto()  # layers or parameters are put where a module does not register them
    LEAF = enum.auto()  # a parameter is made, frozen or replaced, or something is computed of it
    TRAINING = STEP | CLEAR | BACKWARD | CLIP | HOLD | BIND | READ | SCALE | SYNC | LEAVE
    ANYTHING = TRAINING | WRITE | CUT | SPOIL | KEEP | LEAF


ALL_EVENTS = range(sys.maxsize)  # of a path


def _nothing(_: May, __: range) -> bool:
    return False


@dataclass(eq=False, slots=True)
class Tape:
    """One path through one entry, or one traced run."""

    entry: str
    traced: bool = False
    events: list[Event] = field(default_factory=list)
    decisions: tuple[Decision, ...] = ()
    complete: bool = True  # False: the analysis gave up on this path; see the gaps
    # whether code that no path has run may do something, between two events
    unrun: Callable[[May, range], bool] = _nothing
    # those met, with how many events were before each time
    branches: dict[object, list[int]] = field(default_factory=dict)
    # what rules have worked out about it, once it is whole
    answers: dict[object, Any] = field(default_factory=dict)
    # the loops of generators, each with the loop over what it yields: its rounds are in the other's
    feeding: dict[int, int] = field(default_factory=dict)
    _kinds: defaultdict[type[Event] | str, list[Event]] = field(
        default_factory=functools.partial(defaultdict, list)
    )
    _merged: dict[tuple[type[Event] | str, ...], Sequence[Event]] = field(default_factory=dict)
    _optimizers: dict[int, Optimizer] = field(default_factory=dict)
    _searched: int = 0  # how many of the events these are of

    def write(self, event: Event) -> None:
        event.order = len(self.events)
        self.events.append(event)

    def of(self, kind: type[_Kind]) -> Sequence[_Kind]:
        """The events of one kind, in order."""
        return cast("Sequence[_Kind]", self._by_kind().get(kind, ()))

    def meets(self, branch: object) -> None:
        """The path has come to a branch."""
        met, now = self.branches.setdefault(branch, []), len(self.events)
        if met[-1:] != [now]:
            met.append(now)

    def facts(self, name: str, *others: str) -> Sequence[Fact]:
        """The facts of these names, in order."""
        found = self.among(name, *others) if others else self._by_kind().get(name, ())
        return cast("Sequence[Fact]", found)

    def among(self, *kinds: type[Event] | str) -> Sequence[Event]:
        """The events of these kinds, and the facts of these names, in order."""
        known = self._by_kind()
        if kinds not in self._merged:
            found = [events for kind in kinds if (events := known.get(kind))]
            self._merged[kinds] = sorted(itertools.chain.from_iterable(found), key=_order)
        return self._merged[kinds]

    def backwards(self) -> Iterator[Backward]:
        return iter(self.of(Backward))

    def optimizers(self) -> list[Optimizer]:
        """Every optimizer that stepped or cleared, in order of first use."""
        self._by_kind()
        return list(self._optimizers.values())

    def _by_kind(self) -> Mapping[type[Event] | str, Sequence[Event]]:
        """What there is of each kind: nearly every rule asks for some, and most events are of no
        rule.
        """
        if self._searched < len(self.events):
            self._search()
        return self._kinds

    def _search(self) -> None:
        for event in itertools.islice(self.events, self._searched, None):
            self._kinds[type(event)].append(event)
            if isinstance(event, Fact):
                self._kinds[event.what].append(event)
            elif isinstance(event, _OF_OPTIMIZERS) and event.optimizer:
                self._optimizers.setdefault(id(event.optimizer), event.optimizer)
        self._searched = len(self.events)
        self._merged.clear()


_order = operator.attrgetter("order")
