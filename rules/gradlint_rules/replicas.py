"""Modules that DistributedDataParallel (or its like) wraps, and what became of their gradients
between the ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from gradlint.dataclass import dataclass
from gradlint.tape import Backward, Event, Fact, Module, OptimizerStep, Tape, ZeroGrad

_REDUCED = ("gradients-reduced", "replica-handed")


@dataclass(eq=False, slots=True)
class Pass:
    """One backward that reaches the parameters of a replica, and what happened since the one before
    it.
    """

    sink: Backward
    since: list[Event]  # events since the last backward that reached the replica
    forward: Fact | None  # the last call of the wrapper before it
    unsynchronised: Fact | None  # the `no_sync` region that this forward was in


@dataclass(eq=False, slots=True)
class Update:
    """An optimizer step on the parameters of a replica, and the backwards whose gradients it
    uses.
    """

    step: OptimizerStep
    passes: list[Pass] = field(default_factory=list)
    # by hand: gradients went through a collective, or code out of view may see to it
    is_reduced: bool = False


def replicas(tape: Tape, *also: str) -> list[Module]:
    """The wrapped modules that a path speaks of, in these facts too."""
    found = [fact.module for fact in tape.facts("ddp-forward", "ddp-module", "no-sync", *also)]
    return list({id(module): module for module in found if module is not None}.values())


def passes(tape: Tape, replica: Module) -> Iterator[Pass]:
    """The backwards of a path that reach the parameters of `replica`."""
    since: list[Event] = []
    forward: Fact | None = None
    region: Fact | None = None
    inside: Fact | None = None
    prepared = False  # torch 2.13: once the reducer is, the next backward exchanges gradients
    for event in tape.events:
        if isinstance(event, Fact) and event.module is replica:
            if event.what == "no-sync":
                region = event if event.detail == "entered" else None
            elif event.what == "ddp-forward":
                forward, prepared = event, prepared or region is None
                inside = None if prepared else region
            elif event.what == "ddp-prepared":
                prepared, inside = True, None
        if isinstance(event, Backward) and _reaches(event, replica):
            yield Pass(event, since, forward, inside)
            since, prepared = [], False
        else:
            since.append(event)


def _reaches(sink: Backward, replica: Module) -> bool:
    owners = (leaf.parameter.module for leaf in sink.leaves if leaf.parameter is not None)
    return any(owner is not None and owner.is_within(replica) for owner in owners)


def updates(tape: Tape, replica: Module) -> Iterator[Update]:
    """The steps on the parameters of `replica`, each with what was accumulated for it."""
    by_order = {run.sink.order: run for run in passes(tape, replica)}
    gathered: list[Pass] = []
    reduced = False
    for event in tape.among(Backward, OptimizerStep, ZeroGrad, *_REDUCED) if by_order else ():
        if event.order in by_order:
            gathered.append(by_order[event.order])
            reduced = False
        elif isinstance(event, Fact):
            reduced = True
        elif isinstance(event, ZeroGrad):
            gathered, reduced = ([], False) if _clears(event, replica) else (gathered, reduced)
        elif isinstance(event, OptimizerStep) and gathered and _holds(event, replica):
            yield Update(event, gathered, reduced)
            gathered, reduced = [], False


def _holds(step: OptimizerStep, replica: Module) -> bool:
    owners = [
        value.parameter.module for value in step.optimizer.parameters if value.parameter is not None
    ]
    return not step.optimizer.complete or any(
        owner is not None and owner.is_within(replica) for owner in owners
    )


def _clears(event: ZeroGrad, replica: Module) -> bool:
    values = event.optimizer.parameters if event.optimizer is not None else event.parameters
    owners = [value.parameter.module for value in values if value.parameter is not None]
    return not event.complete or any(
        owner is not None and owner.is_within(replica) for owner in owners
    )
