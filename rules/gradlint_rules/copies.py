"""Parameters that get values where autograd records nothing: averages, copies, `x.data = y`."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from gradlint.dataclass import dataclass
from gradlint.tape import (
    Event,
    Fact,
    InPlace,
    Kind,
    Parameter,
    Tape,
    Value,
)  # fmt: skip
from gradlint_rules.cached import of_tape
from gradlint_rules.overwritten import is_projection, is_step, taught_after

WRITTEN = "written-into-a-parameter"
_COPIES = ("data-set", "values-loaded")


@dataclass(frozen=True, slots=True)
class Written:
    """The parameters that the code updates itself, as a moving average does, or puts another in the
    place of.
    """

    first: int  # the order of the first backward
    # by id: what gets other values, or the gradient to step on (`p.grad = before - after`)
    given: AbstractSet[int]
    attached: Sequence[Parameter]  # what a module gets by some name

    @classmethod
    def on(cls, tape: Tape) -> Written:
        """What is written behind the first backward of a path that has one."""
        first = next(tape.backwards()).order
        given, attached = (
            [
                fact.value.parameter
                for fact in tape.facts(what)
                if fact.value is not None and fact.order >= first
            ]
            for what in ("gradient-set", "attached")
        )
        ids = {id(parameter) for parameter in given if parameter is not None} | taught_after(
            first, tape
        )
        return cls(first, ids, [parameter for parameter in attached if parameter is not None])

    def has(self, leaf: Value) -> bool:
        """Whether a parameter is one of them."""
        own, writes = leaf.parameter, leaf.storage.writes if leaf.storage else []
        if own is None or id(own) in self.given:
            return True
        behind = [write for write in writes if write.order > self.first and not is_step(write.op)]
        if not all(is_projection(write, own) for write in behind):
            return True
        return any(other is not own and other.path == own.path for other in self.attached)


@of_tape
def copies(tape: Tape) -> list[tuple[Event, Parameter, Sequence[Value], str]]:
    """What gets values where autograd records nothing: the event, the parameter, what they come
    from, and how.
    """
    found = ((event, *_copied(event)) for event in tape.among(InPlace, *_COPIES))
    return [
        (event, target, sources, op) for event, target, sources, op in found if target is not None
    ]


def _copied(event: Event) -> tuple[Parameter | None, Sequence[Value], str]:
    """The parameter that gets values where autograd records nothing, what they come from, and how
    it gets them.
    """
    match event:
        case Fact(value=Value(parameter=target), source=Value() as source):
            return target, [source], event.detail
        case InPlace(
            before=Value(op="torch.Tensor.data", inputs=(Value(parameter=target), *_)), write=write
        ):
            return target, write.by, write.op
        case InPlace(
            before=Value(kind=Kind.PARAMETER, parameter=target) as before, after=after, write=write
        ):
            return target if after is before else None, write.by, write.op
    return None, (), ""
