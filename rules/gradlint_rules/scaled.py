"""Gradients that a GradScaler has scaled, and the clips and steps that find them scaled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import field

from gradlint.dataclass import dataclass
from gradlint.operations import Trait, canonical, has
from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    Clip,
    Event,
    Fact,
    InPlace,
    May,
    Optimizer,
    OptimizerStep,
    Parameter,
    Scaler,
    ScalerUpdate,
    Tape,
    Unscale,
    Value,
    ZeroGrad,
)  # fmt: skip
from gradlint_rules.held import identities, meet, optimizes, reached

SCALE_READ = "scale-read"
_KINDS = (Backward, SCALE_READ, ZeroGrad, ScalerUpdate, Unscale, InPlace, Clip, OptimizerStep)
_GROWS = (Trait.CLAMPS, Trait.SUMS, Trait.MEANS, Trait.JOINS)
_SIZES = ("abs", "add", "amax", "max", "norm", "pow", "sqrt", "square", "vector_norm")
# what leaves the size of a tensor what it is, or adds to it
_OF_NUMBERS = ("item", "tolist", "float", "python")


@dataclass(eq=False, slots=True)
class Gradients:
    """What one backward of a scaled loss left in the parameters."""

    sink: Backward
    scaler: Scaler
    parameters: list[Parameter]
    unscaled: list[Optimizer] = field(default_factory=list)

    def is_unscaled(self, parameter: Parameter) -> bool:
        """Whether an optimizer that holds the parameter (or is not known to hold others) was
        unscaled.
        """
        return any(
            not optimizer.complete
            or any(meet(parameter, held) for held in identities(optimizer.parameters))
            for optimizer in self.unscaled
        )


@dataclass(frozen=True, slots=True)
class Meeting:
    """A clip or a step that comes upon gradients of a scaled loss, some of which are `scaled`
    still.
    """

    tape: Tape
    event: Clip | InPlace | OptimizerStep
    gradients: Gradients
    scaled: tuple[Parameter, ...]


def meetings(tape: Tape) -> Iterator[Meeting]:
    """Every clip and step of a path with the scaled gradients that it comes upon, unscaled or not.

    Gradients that somebody unscales by hand, for which the scale has to be read, are not among
    them; nor is what stands behind an `unscale_` that raises, of an optimizer that was stepped
    since the last update.
    """
    alive: list[Gradients] = []
    stepped: list[tuple[Scaler, Optimizer]] = []
    updated: set[Scaler] = set()
    for event in (
        tape.among(*_KINDS) if any(sink.scaler is not None for sink in tape.backwards()) else ()
    ):
        match event:
            case Backward(scaler=Scaler(enabled=enabled) as scaler) if enabled is not False:
                if not _was_read(tape, event):
                    alive.append(Gradients(event, scaler, reached(event)))
            case Fact(what="scale-read"):
                alive.clear()
            case ZeroGrad():
                alive = [found for found in alive if not _clears(event, found)]
            case ScalerUpdate(scaler=scaler):
                updated.add(scaler)
                stepped = [each for each in stepped if each[0] is not scaler]
            case Unscale(optimizer=Optimizer() as optimizer):
                if any(each == (event.scaler, optimizer) for each in stepped):
                    return
                _unscale(alive, event.scaler, optimizer, updated)
            case InPlace() if _is_clipped(event):
                yield from _met(tape, event, alive, identities([_shown(event.before)]))
            case Clip():
                yield from _met(tape, event, alive, identities(event.parameters))
            case OptimizerStep():
                held = [
                    found for found in alive if optimizes(event.optimizer, found.parameters, tape)
                ]
                yield from _met(tape, event, held, identities(event.optimizer.parameters))
                if event.scaler is not None:
                    _unscale(alive, event.scaler, event.optimizer, updated)
                    stepped.append((event.scaler, event.optimizer))


def _was_read(tape: Tape, sink: Backward) -> bool:
    """Whether the scale was read in the round of this backward, before it."""
    return any(
        read.order < sink.order and read.iteration == sink.iteration
        for read in tape.facts(SCALE_READ)
    )


def _clears(event: ZeroGrad, gradients: Gradients) -> bool:
    cleared = identities(event.parameters)
    return not event.complete or any(
        meet(one, other) for one in cleared for other in gradients.parameters
    )


def _unscale(
    alive: Sequence[Gradients], scaler: Scaler, optimizer: Optimizer, updated: Set[Scaler]
) -> None:
    """Notes whose gradients are divided by the factor that is in them: that of this scaler, or of
    another that was made in the same place, while both have the factor that they began with.
    """
    for gradients in alive:
        other = gradients.scaler
        is_new = other.at == scaler.at and not {other, scaler} & updated
        if other is scaler or is_new:
            gradients.unscaled.append(optimizer)


def _is_clipped(event: InPlace) -> bool:
    """`p.grad.clamp_(-1, 1)`, `p.grad.mul_(bound / norm)`: a clip by hand, of the gradient of the
    parameter that its value speaks of.
    """
    if "gradient" not in _shown(event.before).flags:
        return False
    op, factors = canonical(event.write.op), event.after.inputs[1:]
    if op == "mul":
        return any(_is_bound(factor) for factor in factors)
    return has(op, Trait.CLAMPS) or (op == "div" and any(map(_is_size, factors)))


def _shown(value: Value) -> Value:
    """The gradient whose memory a value shows, `p.grad.data`; or the value itself."""
    while (
        "gradient" not in value.flags and value.inputs and value.inputs[0].storage is value.storage
    ):
        value = value.inputs[0]
    return value


def _is_bound(factor: Value) -> bool:
    """Whether it is a number, or the size of something else, by the size of gradients, clamped or
    not.
    """
    return any(_is_quotient(value) and _is_by_size(value) for value in _since_gradients(factor))


def _is_quotient(value: Value) -> bool:
    """Whether a tensor or a number was divided."""
    return canonical(value.op) == "div" or "quotient" in value.flags


def _is_by_size(quotient: Value) -> bool:
    match quotient.inputs:
        case (below,):
            return quotient.argument(0) is not below and _is_size(below)
        case (above, below):
            return not _is_measured(above) and _is_size(below)
    return False


def _is_size(value: Value) -> bool:
    """Whether it grows with the gradients that it is computed from: `a.norm()`, and not
    `a @ b / (b @ b)`.
    """
    steps = list(_since_gradients(value))
    if any("quotient" in step.flags for step in steps):
        return False
    grows = (*_SIZES, *_OF_NUMBERS)
    known = (
        "gradient" in step.flags
        or canonical(step.op) in grows
        or has(step.op, *_GROWS)
        or _is_view(step)
        for step in steps
    )
    return _is_measured(value) and all(known)


def _is_measured(value: Value) -> bool:
    """Whether it is computed from gradients."""
    return any("gradient" in step.flags for step in _since_gradients(value))


def _is_view(value: Value) -> bool:
    return any(source.storage is value.storage for source in value.inputs)


def _since_gradients(value: Value) -> Iterator[Value]:
    """A value and what it is computed from, as far as the gradients."""
    seen, pending = {id(value)}, [value]
    for current in pending:
        yield current
        for source in () if "gradient" in current.flags else current.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def _met(
    tape: Tape,
    event: Clip | InPlace | OptimizerStep,
    alive: Sequence[Gradients],
    touched: list[Parameter],
) -> Iterator[Meeting]:
    for gradients in alive:
        met = [
            one
            for one in gradients.parameters
            if not touched or any(meet(one, other) for other in touched)
        ]
        if met:
            yield Meeting(
                tape, event, gradients, tuple(one for one in met if not gradients.is_unscaled(one))
            )


def is_gated(meeting: Meeting, paths: Paths, kind: type[Event], may: May) -> bool:
    """Whether it is not known that the scaler is enabled, and another path does what is right with
    it, or may do it.

    `if use_amp: scaler.unscale_(optimizer)`, where a scaler that is passed in is disabled without
    `use_amp`.
    """
    if meeting.gradients.scaler.enabled is not None:
        return False
    return not paths.never(
        lambda tape: any(map(_is_right, tape.of(kind))),
        may,
        between=_scaled,
        enough=lambda tape: len(_scaled(tape)) > 1,
    )


def _scaled(tape: Tape) -> range:
    """From the first scaled gradients of a path to the last step of the loop that steps on them.

    What ran before is not done with them, and what runs behind the loop comes too late. Nothing
    where a path has not gone all the way from a backward to a step.
    """
    end = len(tape.events)
    begin = next((sink.order for sink in tape.backwards() if sink.scaler is not None), end)
    steps = [step for step in tape.of(OptimizerStep) if step.order > begin]
    if not steps:
        return range(end, end)
    loop = steps[0].iteration[:-1]
    return range(begin, max(step.order for step in steps if step.iteration[:-1] == loop))


def _is_right(event: Event) -> bool:
    return not isinstance(event, OptimizerStep) or event.scaler is not None
