"""Optimizers: what they hold, their steps, and gradients cleared."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from gradlint.tape import Kind
from gradlint.trace.capture import is_captured
from gradlint.trace.counting import counted
from gradlint.trace.frames import here, is_within, nearest
from gradlint.trace.pause import Underway
from gradlint.trace.records import Held
from gradlint.trace.refusals import refusals
from gradlint.trace.session import Session, Stop
from gradlint.trace.spent import handed, is_spent, used_up
from gradlint.trace.steppers import Clearing, Stepper

Optimizer = torch.optim.Optimizer


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(Optimizer, "__init__", lambda original: _init(session, original))
    session.replace(Optimizer, "profile_hook_step", lambda original: _hook(session, original))
    session.replace(Optimizer, "add_param_group", lambda original: _add(session, original))
    session.replace(torch.nn.Module, "zero_grad", lambda original: _zero_module(session, original))
    for cls in _subclasses(Optimizer):
        _watch_class(session, cls)


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for each in cls.__subclasses__():
        yield from _subclasses(each)


def _watch_class(session: Session, cls: type) -> None:
    """Wrap what a class defines itself: its `zero_grad`, and its `step` where torch has already
    hooked it.
    """
    if "zero_grad" in vars(cls) and not hasattr(vars(cls)["zero_grad"], "gradlint"):
        session.replace(cls, "zero_grad", lambda original: _zero(session, original))
        vars(cls)["zero_grad"].gradlint = True
    step = vars(cls).get("step")
    if getattr(step, "hooked", False) and not hasattr(step, "gradlint"):
        session.replace(cls, "step", lambda original: _step(session, original))
        vars(cls)["step"].gradlint = True


def held(session: Session, optimizer: Any) -> Stepper:
    """The record of an optimizer, with the parameters that it holds now."""
    optimizer = _wrapped(optimizer)
    stepper = session.stepper(optimizer)
    # torch 2.13: `fused=True`
    stepper.unscales = getattr(optimizer, "_step_supports_amp_scaling", False) is True
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if not _are(stepper.seen, parameters):
        stepper.held = [_identity(session, parameter, stepper) for parameter in parameters]
        stepper.seen = list(map(weakref.ref, parameters))
        stepper.is_kept = False
    return stepper


def _are(seen: Sequence[weakref.ref[torch.Tensor]], parameters: Sequence[torch.Tensor]) -> bool:
    """Whether these are the parameters that were seen, in their order."""
    alive = [reference() for reference in seen]
    return len(alive) == len(parameters) and all(map(operator.is_, alive, parameters))


def _wrapped(optimizer: Any) -> Any:
    """The optimizer that steps, behind one that only passes its groups on: `fabric.setup` gives
    such a one.
    """
    own = vars(optimizer)
    if "param_groups" in own:
        return optimizer
    inner = (each for each in own.values() if isinstance(each, Optimizer))
    return next((each for each in inner if each.param_groups is optimizer.param_groups), optimizer)


def _identity(session: Session, parameter: torch.Tensor, stepper: Stepper) -> Held:
    """Who a parameter is; a plain tensor that the program made a leaf becomes one by being held."""
    known = session.memory.known(parameter)
    place = stepper.place if known is None else known.place or stepper.place
    identity = session.memory.held(parameter, place)
    if known is not None and known.kind is Kind.LEAF:
        known.held = identity
        identity.name = identity.name or session.names.variable(parameter)
    return identity


def _init(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        given = args[0] if args else kwargs.get("params")
        sources = handed(given)
        spent = any(is_spent(session, each) for each in sources)
        try:
            original(self, *args, **kwargs)
            session.read_out += [each for each in sources if isinstance(each, Iterator)]
        finally:
            if spent:
                session.guarded(used_up, session)
        session.guarded(_made, session, self)

    return make


def _made(session: Session, optimizer: Any) -> None:
    for cls in type(optimizer).__mro__:
        if cls is not object and issubclass(cls, Optimizer):
            _watch_class(session, cls)
    for each in session.on_optimizer:
        each()
    stepper = held(session, optimizer)
    if session.timeline.wanted:
        _expect(
            session,
            stepper,
            [parameter for group in optimizer.param_groups for parameter in group["params"]],
        )
    session.names.name_parameters()
    session.attention.look_again()
    session.happened("optimizer", stepper=stepper, leaves=_leaves(session, optimizer))


def _leaves(session: Session, optimizer: Any) -> list[Any]:
    """What the optimizer holds that no backward fills: tensors that are no leaves."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return [
        session.memory.of(parameter, ())
        for parameter in parameters
        if not isinstance(parameter, torch.nn.Parameter)
    ]


def _add(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def add_param_group(self: Any, *args: Any, **kwargs: Any) -> Any:
        with session.paused():
            try:
                return original(self, *args, **kwargs)
            except ValueError:
                session.guarded(_refused, session, args)
                raise

    return add_param_group


def _refused(session: Session, args: Any) -> None:
    """torch refuses tensors that are no leaves, and an empty list."""
    for op in _given(session, args):
        session.happened("fact", what="non-leaf-parameter", op=op, detail="")


def _given(session: Session, args: Any) -> list[Any]:
    given = args[0].get("params", ()) if args and isinstance(args[0], dict) else ()
    given = [given] if isinstance(given, torch.Tensor) else given
    return [
        session.memory.of(tensor, ())
        for tensor in given
        if isinstance(tensor, torch.Tensor) and not tensor.is_leaf
    ]


def _hook(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        return _step(session, original(func))

    return profile_hook_step


def _step(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or session.stepping:
            return original(self, *args, **kwargs)
        closure = args[0] if args else kwargs.get("closure")
        session.guarded(_before, session, self)
        session.stepping = True
        end = functools.partial(_end, session, self, callable(closure))
        try:
            with session.paused() as pause:
                underway = session.underway = Underway(pause, end)
                if callable(closure) and args:
                    args = (_recorded(session, pause.lifted(closure)), *args[1:])
                elif callable(closure):
                    kwargs["closure"] = _recorded(session, pause.lifted(closure))
                with refusals(session, original):
                    out = original(self, *args, **kwargs)
        finally:
            session.stepping, session.underway = False, None
        underway.end()
        if session.limit is not None and session.step >= session.limit and session.scaler is None:
            raise Stop(0)
        return out

    step.gradlint = True  # type: ignore[attr-defined]
    return step


def _end(session: Session, optimizer: Any, closure: bool, running: bool) -> None:
    session.guarded(_after, session, optimizer, closure, running)
    session.guarded(_tell_cleared, session)


def _recorded(session: Session, closure: Callable[..., Any]) -> Callable[..., Any]:
    """The closure of a step: what the step cleared before it calls the closure again had been of
    use to the step.
    """

    @functools.wraps(closure)
    def call(*args: Any, **kwargs: Any) -> Any:
        session.guarded(_tell_cleared, session, True)
        return closure(*args, **kwargs)

    return call


def _before(session: Session, optimizer: Any) -> None:
    """Look at the gradients that the step will use: none where there were some means that something
    changed.
    """
    with session.paused():
        stepper = held(session, optimizer)
        parameters = [
            parameter for group in optimizer.param_groups for parameter in group["params"]
        ]
        gradients = [parameter.grad for parameter in parameters]
        starved = frozenset([index for index, each in enumerate(gradients) if each is None])
        if not torch.compiler.is_compiling():
            stepper.versions = _versions(gradients)
            session.movement.feed(gradients)
        stepper.frozen = {
            index for index, parameter in enumerate(parameters) if not parameter.requires_grad
        }
        if starved != stepper.starved and stepper.steps:
            session.attention.look_again()
        stepper.starved = starved
        if not stepper.steps:
            stepper.is_inner = is_within(here(), stepper.place)
        if not stepper.is_kept:
            stepper.is_kept = True
            session.movement.keep(zip(stepper.held, parameters, strict=False))
        if session.timeline.wanted and not any(map(is_captured, parameters)):
            _expect(session, stepper, parameters)
            _measure(session, stepper, parameters)


def _expect(session: Session, stepper: Stepper, parameters: list[torch.Tensor]) -> None:
    """Those that can get a gradient are held to have had none so far."""
    for each, parameter in zip(stepper.held, parameters, strict=False):
        if parameter.requires_grad:
            session.timeline.trained.setdefault(each, False)


def _measure(session: Session, stepper: Stepper, parameters: list[torch.Tensor]) -> None:
    norms: dict[str, float | None] = {}
    for index, (each, parameter) in enumerate(zip(stepper.held, parameters, strict=False)):
        name = ".".join(each.path) or f"parameter {index}"
        if parameter.grad is not None:
            gradient = parameter.grad.detach()
            norm = float(
                (gradient.coalesce().values() if gradient.is_sparse else gradient).float().norm()
            )
            norms[name] = norm
            session.timeline.trained[each] = session.timeline.trained.get(each, False) or norm != 0
            session.timeline.look(f"the gradient of {name}", norm, session.step, nearest())
        elif parameter.requires_grad:
            norms[name] = None
    if session.timeline.kept:
        session.timeline.norms.append((session.step, norms))
    for hear in session.timeline.on_norms:
        hear(session.step, norms)


def _after(session: Session, optimizer: Any, closure: bool, running: bool) -> None:
    stepper = session.stepper(optimizer)
    session.happened(
        "step",
        stepper=stepper,
        held=stepper.held,
        scaler=session.scaler,
        closure=closure,
        starved=stepper.starved,
        running=running,
    )
    if session.scaler is not None:
        session.scaler_stepped = True
    session.stepped(stepper)
    if not torch.compiler.is_compiling():
        _note_dropped(session, optimizer)


def _note_dropped(session: Session, optimizer: Any) -> None:
    """A step that leaves no gradients, or zeros that it wrote over them, has cleared them."""
    stepper = session.stepper(_wrapped(optimizer))
    with session.paused():
        gradients = [each.grad for group in optimizer.param_groups for each in group["params"]]
        dropped = [
            each
            for each, gradient, before, version in zip(
                stepper.held, gradients, stepper.versions, _versions(gradients), strict=False
            )
            if before is not None and (version is None or (version > before and _is_zero(gradient)))
        ]
    if dropped and not session.cleared:  # by `zero_grad`
        session.cleared.append(Clearing(counted(nearest()), stepper, dropped, False))


def _versions(gradients: Sequence[torch.Tensor | None]) -> list[int | None]:
    """How often the memory of each gradient has been written; inference tensors do not count it."""
    try:
        return [None if each is None else each._version for each in gradients]
    except RuntimeError:  # one of them is an inference tensor
        return [
            None if each is None else 0 if each.is_inference() else each._version
            for each in gradients
        ]


def _is_zero(gradient: torch.Tensor) -> bool:
    """Whether a gradient is zero all over: its numbers are looked at on the CPU alone."""
    return gradient.device.type == "cpu" and not gradient.is_sparse and not gradient.any()


def _zero(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or (session.depth and not session.stepping):
            return original(self, *args, **kwargs)
        session.guarded(_cleared_optimizer, session, self)
        with session.paused():
            return original(self, *args, **kwargs)

    return zero_grad


def _zero_module(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or (session.depth and not session.stepping):
            return original(self, *args, **kwargs)
        session.guarded(_cleared_module, session, self)
        with session.paused():
            return original(self, *args, **kwargs)

    return zero_grad


def _cleared_optimizer(session: Session, optimizer: Any) -> None:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    stepper = held(session, optimizer)
    _cleared(session, stepper, stepper.held, parameters)


def _cleared_module(session: Session, module: torch.nn.Module) -> None:
    parameters = list(module.parameters())
    _cleared(session, None, list(map(session.memory.held, parameters)), parameters)


def _cleared(
    session: Session,
    stepper: Stepper | None,
    identities: list[Held],
    parameters: Sequence[torch.Tensor],
) -> None:
    with session.paused():
        was_read = _has_hooks(parameters)  # which may have made use of the gradients
    session.cleared.append(Clearing(counted(nearest()), stepper, identities, was_read))
    if not session.depth:  # the program cleared it, or a closure of its
        _tell_cleared(session)


def _has_hooks(parameters: Sequence[Any]) -> bool:
    hooks = [each._backward_hooks or each._post_accumulate_grad_hooks for each in parameters]
    return any(hooks)


def _tell_cleared(session: Session, read: bool = False) -> None:
    """Write down what was cleared; inside a step it was kept back until the step is over, or asks
    for new gradients.
    """
    for place, stepper, parameters, was_read in session.cleared:
        if read or was_read:
            session.note("clip", place, held=parameters, reads=True, exhausted=False)
        session.note("zero", place, stepper=stepper, held=parameters)
    session.cleared.clear()
