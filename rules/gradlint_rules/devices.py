"""Which devices the paths of a program choose, and what hangs on that choice.

A place that puts something on a device *chooses* if it is another device on another path, or one
that the user can set. Where something on a path was put by such a place on a device that is not
CUDA, the code runs without CUDA there.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradlint import evidence
from gradlint.dataclass import dataclass
from gradlint.finding import Related, Role, Span
from gradlint.paths import Paths
from gradlint.tape import Decision, Event, Fact, May, Tape
from gradlint_rules.accounts import Key, key
from gradlint_rules.cached import of_paths, of_tape

AMP, PLACED, NAMED, NEEDS_CUDA = "amp", "placed", "named", "needs-cuda"
CUDA, UNKNOWN = "cuda", "unknown"


@dataclass(frozen=True, slots=True)
class Amp:
    """What a fact `amp` says: the name that was used, the device, whether it is enabled, and what
    decides that.
    """

    name: str
    device: str
    enabled: str
    by: str
    is_setting: bool  # what decides is a flag: of the command line, or one that is handed in
    is_given: bool  # it is one that is handed in, by callers out of view
    is_beside_the_new: bool  # a branch takes it, or the name that is new since torch 2.4

    @classmethod
    def read(cls, fact: Fact) -> Amp:
        """The parts of the detail: `torch.autocast device=cuda enabled=unknown by=args.amp`."""
        name, *rest = fact.detail.split(" ")
        said = dict(part.split("=", 1) for part in rest if "=" in part)
        device, enabled = said.get("device", UNKNOWN), said.get("enabled", UNKNOWN)
        is_given = said.get("setting") == "given"
        return cls(
            name,
            device,
            enabled,
            said.get("by", ""),
            "setting" in said,
            is_given,
            "chosen" in said,
        )


@dataclass(frozen=True, slots=True)
class Choices:
    """The places at which an entry puts something on a device that differs, each with the calls
    that led there.
    """

    places: frozenset[Key]

    def made_at(self, at: Span) -> bool:
        """Whether something is chosen at this place, whoever calls."""
        return any(place == at for place, _ in self.places)

    def without_cuda(self, tape: Tape) -> Fact | None:
        """A place where this path puts something on a device other than CUDA, or on one that can be
        another.
        """
        chosen = [fact for fact in placed(tape) if key(fact) in self.places]
        if (
            any(fact.detail == CUDA for fact in chosen)
            or _is_said_to_be_cuda(tape, chosen)
            or _needs_cuda(tape)
        ):
            return None
        return next(
            (fact for fact in chosen if set(fact.detail.split(" ")) - {CUDA, UNKNOWN}), None
        )


@of_paths
def choices(paths: Paths) -> Choices:
    """The choosing places of all paths together; a function that is called for two devices chooses
    neither.
    """
    seen: dict[Key, set[str]] = {}
    for fact in paths.some(placed):
        seen.setdefault(key(fact), set()).update(fact.detail.split(" "))
    return Choices(frozenset(place for place, types in seen.items() if len(types) > 1))


def placed(tape: Tape) -> Sequence[Fact]:
    """What a path puts on devices."""
    return tape.facts(PLACED)


def placed_by_name(tape: Tape) -> Sequence[Fact]:
    """What a path puts on a device that is written there, and not on what a variable says."""
    return tape.facts(NAMED)


def _needs_cuda(tape: Tape) -> bool:
    """Whether this path does what raises without CUDA, whatever the device:
    `torch.cuda.synchronize()`.
    """
    return bool(tape.facts(NEEDS_CUDA))


def _is_said_to_be_cuda(tape: Tape, chosen: Sequence[Fact]) -> bool:
    """Whether the device is the user's choice, and this path has asked, in whatever words, whether
    it is CUDA.
    """
    if not any(" " in fact.detail for fact in chosen):
        return False
    return any(
        decision.holds and _is_about_the_choice(decision.text) for decision in tape.decisions
    )


def _is_about_the_choice(text: str) -> bool:
    return (
        evidence.mentions_cuda(text) and "is_available" not in text and "device_count" not in text
    )


def gates(event: Event, paths: Paths) -> list[Decision]:
    """The decisions without which this is never come to: alike on all paths that do, other on one
    that does not.

    Where no path goes the other way, what stands below the condition counts, and all where that way
    may lead elsewhere.
    """
    having = list(
        paths.some(
            lambda tape: [tape] if any(other.at == event.at for other in tape.events) else []
        )
    )
    common = set.intersection(*map(_made, having)) if having else set()
    return [
        decision
        for decision in (having[0].decisions if having else ())
        if (decision.at, decision.holds) in common
        and (is_below(event, decision) or not _is_always_alike(decision, paths))
    ]


def _is_always_alike(decision: Decision, paths: Paths) -> bool:
    """Whether no path goes the other way at a decision, or none that was not run leads elsewhere
    there.
    """
    other_way = decision.at, not decision.holds
    return bool(paths.never(lambda tape: other_way in _made(tape), May.LEAVE))


def is_below(event: Event, decision: Decision) -> bool:
    """Whether something happens within the statement that a decision is the condition of, or in
    what that calls.
    """
    whole = decision.whole
    return whole is not None and any(
        (at.path, at.cell) == (whole.path, whole.cell)
        and whole.line <= at.line
        and at.end_line <= whole.end_line
        for at in (event.at, *event.stack)
    )


@of_tape
def _made(tape: Tape) -> set[tuple[Span, bool]]:
    return {(decision.at, decision.holds) for decision in tape.decisions}


def is_checked(event: Event, paths: Paths) -> bool:
    """Whether a question about the device stands before this."""
    return any(evidence.mentions_devices(decision.text) for decision in gates(event, paths))


def chosen_here(fact: Fact) -> Related:
    """The place where the device is another one, for the reader."""
    types = [name for name in fact.detail.split(" ") if name not in (CUDA, UNKNOWN)]
    return Related(fact.at, f"the device can be {' or '.join(types)} here", Role.DEVICE)
