"""Gradients that a program adds by hand, with `p.grad += g`, to those that a step has used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gradlint.dataclass import dataclass
from gradlint.operations import Trait, has
from gradlint.tape import (
    Backward,
    Event,
    Fact,
    InPlace,
    Optimizer,
    OptimizerStep,
    Parameter,
    Tape,
    Value,
    ZeroGrad,
    ancestors,
)
from gradlint_rules.accounts import ELSEWHERE, serves
from gradlint_rules.cached import of_tape
from gradlint_rules.held import identities, share

_KINDS = (
    Backward, OptimizerStep, ZeroGrad, InPlace, "gradient-set", "gradient-beside",
    "gradients-tapped",
)  # fmt: skip
_GIVES = ("torch.autograd.grad", "torch.Tensor.grad")  # what a gradient comes from


@dataclass(frozen=True, slots=True)
class Added:
    """A gradient that was added to that of a parameter, and the step that had used what lay
    there.
    """

    event: Event
    optimizer: Optimizer
    used: OptimizerStep | None  # None: it was cleared since the last step


@of_tape
def added_on(tape: Tape) -> tuple[Added, ...]:
    """The gradients that one path adds behind the first step of what it steps with."""
    if tape.traced or not tape.facts("gradient-set"):
        return ()
    return tuple(each for optimizer in tape.optimizers() for each in _added(tape, optimizer))


def _added(tape: Tape, optimizer: Optimizer) -> Iterator[Added]:
    """The additions to what one optimizer holds; none of an optimizer that a backward serves."""
    used: list[Parameter] = []
    step: OptimizerStep | None = None
    own: dict[int, Parameter] = {}  # whose gradient a value is that was put in by hand
    is_alone = len(tape.optimizers()) == 1
    for event in tape.among(*_KINDS):
        match event:
            case Backward():
                if event.sink not in ELSEWHERE and serves(optimizer, event, is_alone=is_alone):
                    return
            case OptimizerStep():
                if event.optimizer is optimizer:
                    step, used = event, identities(optimizer.held_at(event.order))
            case ZeroGrad():
                is_partial = (
                    event.complete and event.parameters and event.optimizer is not optimizer
                )
                used = _without(used, identities(event.parameters)) if is_partial else []
            case InPlace() if (held := _whose(event.before, own)) is not None:
                own[id(event.after)] = held
                added = _added_to(event.write.op, event.write.by)
                if added and step is not None and step.optimizer.holds(held):
                    yield Added(event, optimizer, step if share(used, [held]) else None)
                elif not added:
                    used = _without(used, [held])
            case Fact(value=Value(parameter=Parameter() as held), source=Value() as source):
                is_put_back = _whose(source, own) is held
                rest = [each for each in source.inputs if _whose(each, own) is not held]
                added = len(rest) < len(source.inputs) and _added_to(source.op, rest)
                own[id(source)] = held
                if added and not is_put_back and step is not None and optimizer.holds(held):
                    yield Added(event, optimizer, step if share(used, [held]) else None)
                elif not is_put_back:
                    used = _without(used, [held])
            case Fact():  # some gradients, by code that is not in view
                used = []


def _without(used: list[Parameter], gone: list[Parameter]) -> list[Parameter]:
    return [one for one in used if not share(gone, [one])]


def _whose(value: Value, own: Mapping[int, Parameter]) -> Parameter | None:
    """The parameter whose gradient a value is."""
    if id(value) in own:
        return own[id(value)]
    return value.parameter if "gradient" in value.flags else None


def _added_to(op: str, given: Sequence[Value]) -> bool:
    """Whether an operation adds what a gradient comes from."""
    return has(op, Trait.ADDS) and any(
        each.op in _GIVES or "gradient" in each.flags for each in ancestors(*given)
    )
