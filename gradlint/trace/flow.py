"""Whether gradients flow from a loss to a model's parameters; where not, the lines that keep them
from it.

```python
with recording() as assert_gradients_flow:
    loss = criterion(model(images), labels)
    assert_gradients_flow(loss, model)
```
"""

from __future__ import annotations

import contextlib
import functools
import linecache
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import torch

from gradlint.finding import Span
from gradlint.report._place import listed
from gradlint.tape import Cut, Kind, Value, ancestors, constants, cuts
from gradlint.trace import probes, source
from gradlint.trace.assemble import Assembler
from gradlint.trace.findings import place
from gradlint.trace.frames import nearest
from gradlint.trace.places import at
from gradlint.trace.session import Session
from gradlint.trace.values import joined

_SHOWN = 6  # names
_WHY = {
    Cut.DETACH: "detached from the graph",
    Cut.COPY: "copied out of torch, without its graph",
    Cut.GRAD_MODE: "grad mode is off",
    Cut.NON_DIFFERENTIABLE: "no derivative",
    Cut.FROZEN: "frozen",
    Cut.CONSTANT: "a constant",
    Cut.CHECKPOINT: "a reentrant checkpoint whose inputs need no gradient",
    Cut.COLLECTIVE: "a collective without a backward",
}


Losses = torch.Tensor | Iterable[torch.Tensor]
Models = torch.nn.Module | Mapping[str, torch.nn.Module] | Iterable[torch.nn.Module]


class AssertGradientsFlow(Protocol):
    """Raises AssertionError unless every parameter of the model that requires one gets a gradient
    of the loss.

    Several losses count together; several models go by their numbers, `0.weight`, or by the keys of
    a dict. `except_for` names parameters, or modules by their dotted path, that are meant to get
    none.
    """

    def __call__(self, loss: Losses, model: Models, *, except_for: Iterable[str] = ()) -> None: ...


@contextlib.contextmanager
def recording() -> Iterator[AssertGradientsFlow]:
    """Records what runs inside, and gives the assertion that says what keeps gradients from a
    model.
    """
    source.begin()
    session = Session("record")
    probes.install(session)
    session.start()
    try:
        yield functools.partial(_assert_gradients_flow, session)
    finally:
        session.close()


def _assert_gradients_flow(
    session: Session, loss: Losses, model: Models, *, except_for: Iterable[str] = ()
) -> None:
    __tracebackhide__ = True
    exempt = (except_for,) if isinstance(except_for, str) else tuple(except_for)
    wanted = {
        name: parameter
        for name, parameter in _parameters(model)
        if parameter.requires_grad
        and not any(name == each or name.startswith(f"{each}.") for each in exempt)
    }
    if not wanted:
        raise AssertionError("the model has no parameter that requires a gradient")
    losses = [loss] if isinstance(loss, torch.Tensor) else list(loss)
    with session.paused():
        told = _Explained(session, losses, wanted)
        gradients = _gradients(losses, wanted)
    starved = [
        name
        for name, gradient in gradients.items()
        if gradient is None or told.is_only_zero(name, gradient)
    ]
    if starved:
        raise AssertionError("\n".join(told.message(starved)))


def _parameters(model: Models) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters of a model by their names; of several, with the names of these before them."""
    if isinstance(model, torch.nn.Module):
        yield from model.named_parameters()
        return
    for key, each in model.items() if isinstance(model, Mapping) else enumerate(model):
        yield from each.named_parameters(prefix=str(key))


def _gradients(
    losses: Sequence[torch.Tensor], wanted: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor | None]:
    """What autograd gives each parameter; the graph is kept for the backward of the test."""
    carrying = [loss for loss in losses if loss.requires_grad]
    if not carrying:
        return dict.fromkeys(wanted)
    found = torch.autograd.grad(
        carrying, list(wanted.values()), retain_graph=True, allow_unused=True
    )
    return dict(zip(wanted, found, strict=True))


class _Explained:
    """What was recorded of a loss, held against the parameters that it should reach."""

    def __init__(
        self, session: Session, losses: Sequence[torch.Tensor], wanted: Mapping[str, torch.Tensor]
    ) -> None:
        assembler = Assembler(session, "test")
        place = nearest()
        values = [assembler.values.value(session.memory.of(loss, place)) for loss in losses]
        self.loss = values[0] if len(values) == 1 else joined(values, at(place), 0)
        self.parameters = {
            name: assembler.values.parameter(session.memory.held(each))
            for name, each in wanted.items()
        }

    def is_only_zero(self, name: str, gradient: torch.Tensor) -> bool:
        """Whether a gradient is zero for what the loss is computed by: each route has a derivative
        of zero.
        """
        if bool(gradient.count_nonzero()):
            return False
        routes = [value for value in self._sloped() if value.parameter is self.parameters[name]]
        return not routes and name in self._used_by(self.loss)

    def _sloped(self) -> Iterator[Value]:
        """The values to which the loss leads without an operation whose derivative is zero."""
        seen, pending = {id(self.loss)}, [self.loss]
        for value in pending:
            yield value
            for each in () if value.zero_gradient else value.inputs:
                if each.requires_grad and id(each) not in seen:
                    seen.add(id(each))
                    pending.append(each)

    def _used_by(self, value: Value) -> set[str]:
        used = {id(each.parameter) for each in ancestors(value) if each.parameter is not None}
        return {name for name, parameter in self.parameters.items() if id(parameter) in used}

    def message(self, starved: Collection[str]) -> Iterator[str]:
        """What is wrong, and below it each line that is to blame."""
        yield (
            f"no gradient reaches {len(starved)} of {len(self.parameters)} parameters: "
            f"{listed(starved, _SHOWN)}"
        )
        left = set(starved)
        blamed: dict[Span, tuple[str, set[str]]] = {}
        for value, why in self._culprits():
            names = self._used_by(value) & set(starved)
            if names:
                blamed.setdefault(place(value), (why, set()))[1].update(names)
                left -= names
        for where, (why, names) in blamed.items():
            yield from _shown(
                where, why if names == set(starved) else f"{why}: {listed(sorted(names), _SHOWN)}"
            )
        if left:
            yield from self._unexplained(sorted(left))

    def _culprits(self) -> Iterator[tuple[Value, str]]:
        for value in cuts(self.loss):
            yield value, _WHY[value.cut or Cut.CONSTANT]
        for value in ancestors(self.loss):
            if value.zero_gradient and value.requires_grad:
                yield value, "a derivative of zero"

    def _unexplained(self, names: Collection[str]) -> Iterator[str]:
        if self.loss.kind in (Kind.UNKNOWN, Kind.DATA):
            yield "  how the loss was computed was not seen: record from before it is computed"
            return
        fresh = [] if self.loss.requires_grad else constants(self.loss)
        for value in fresh:
            yield from _shown(value.at, _WHY[Cut.CONSTANT])
        if not fresh:
            yield f"  nothing that the loss is computed from uses {listed(names, _SHOWN)}"


def _shown(at: Span, why: str) -> Iterator[str]:
    yield f"  {at}: {why}"
    linecache.checkcache(at.path)
    if line := linecache.getline(at.path, at.line).strip():
        yield f"      {line}"
