"""The optimizers, scalers and schedulers of a tape."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gradlint import tape
from gradlint.finding import Span
from gradlint.trace import bindings
from gradlint.trace.frames import Place
from gradlint.trace.places import at, stack
from gradlint.trace.records import Held
from gradlint.trace.steppers import Stepper
from gradlint.trace.values import Values


class Holders:
    """What steps, scales and schedules, each made once."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self._made: dict[int, Any] = {}
        # optimizers, by where they are made
        self._alike: Counter[tuple[Span, tuple[Span, ...]]] = Counter()
        self._groups: dict[int, list[Held]] = {}  # what an optimizer was last seen to hold

    def optimizer(self, stepper: Stepper) -> tape.Optimizer:
        """An optimizer with all that it holds."""
        known = self._made.get(id(stepper))
        if known is None:
            place = stepper.place
            known = tape.Optimizer(
                _name(stepper) or stepper.cls.lower(), stepper.cls, at(place), stack=stack(place)
            )
            known.unscales = stepper.unscales
            known.number = self._alike[known.at, known.stack]
            self._alike[known.at, known.stack] += 1
            self._made[id(stepper)] = known
        if len(known.parameters) != len(stepper.held):
            known.parameters[:] = [
                self.values.held(each, index in stepper.frozen)
                for index, each in enumerate(stepper.held)
            ]
        assert isinstance(known, tape.Optimizer)
        return known

    def holds(self, optimizer: tape.Optimizer, held: list[Held]) -> None:
        """Writes down what an optimizer held until now, where it is something else than before."""
        before = self._groups.get(id(optimizer), held)
        self._groups[id(optimizer)] = held
        if before is not held:
            optimizer.earlier.append(
                (len(self.values.tape.events), [self.values.held(each) for each in before])
            )

    def scaler(self, stepper: Stepper | None) -> tape.Scaler | None:
        """A gradient scaler."""
        if stepper is None:
            return None
        if id(stepper) not in self._made:
            self._made[id(stepper)] = tape.Scaler(
                _bound(stepper.place) or "scaler", at(stepper.place), stepper.enabled
            )
        known: tape.Scaler = self._made[id(stepper)]
        return known

    def scheduler(self, stepper: Stepper) -> tape.Scheduler:
        """A scheduler of learning rates, and the optimizer that it steers."""
        if id(stepper) not in self._made:
            steered = None if stepper.optimizer is None else self.optimizer(stepper.optimizer)
            self._made[id(stepper)] = tape.Scheduler(
                _bound(stepper.place) or stepper.cls, at(stepper.place), steered
            )
        known: tape.Scheduler = self._made[id(stepper)]
        return known


def _name(stepper: Stepper) -> str:
    """The variable that holds an optimizer, or '' where a library keeps it to itself."""
    return "" if stepper.is_inner else _bound(stepper.place)


def _bound(place: Place) -> str:
    """The name that what is made at a place is bound to, or ''."""
    return bindings.name(place[0].code, place[0].instruction) if place else ""
