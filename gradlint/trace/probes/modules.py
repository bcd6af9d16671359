"""Modules and parameters as they are made, so that a report can name them; and those replaced later
on.
"""

from __future__ import annotations

import dataclasses
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from gradlint.trace.counting import counted
from gradlint.trace.explain import lineage
from gradlint.trace.frames import Place, here, is_users, nearest, running, scopes
from gradlint.trace.memory import tensors
from gradlint.trace.records import Held, Op
from gradlint.trace.session import Session

Module = torch.nn.Module
_LOADER = "from_pretrained"  # evidence by name: it makes a note of what would be a warning


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(torch.nn.Parameter, "__new__", lambda original: _create(session, original))
    session.replace(Module, "__init__", lambda original: _init(session, original))
    session.replace(Module, "register_parameter", lambda original: _register(session, original))
    attached = _Attached(session)
    session.on_loss.append(attached.tell)
    session.on_end.append(attached.tell)
    session.replace(Module, "__setattr__", lambda original: _set(session, original, attached))
    session.replace(Module, "load_state_dict", lambda original: _load(session, original))
    session.replace(Module, "add_module", lambda original: _add(session, original, attached))
    session.replace(Module, "__setstate__", lambda original: _restore(session, original))
    session.attention.before_compiling.append(
        session.replace(Module, "__call__", lambda original: _call(session, original))
    )
    session.replace(Module, "_apply", lambda original: _apply(session, original))


class _Attached:
    """Parameters that became part of a module after an optimizer was made.

    They are told at the next backward, of modules that are still there: a part of a list,
    `self.layers[:2]`, is a module of its own, and gone once the loop over it is.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.met: list[tuple[tuple[int, int], weakref.ref[Any], Place, str, list[Held]]] = []

    def meet(self, module: torch.nn.Module, name: str, value: Any) -> None:
        """A module, or a parameter, became part of another one."""
        place = counted(nearest())
        held = [self.session.memory.held(parameter, place) for parameter in _parameters(value)]
        if held:
            self.session.attention.came_late(place)
            self.met.append((self.session.moment(), weakref.ref(module), place, name, held))

    def tell(self, *_: object) -> None:
        """Write down what came into modules that are still there."""
        for when, module, place, name, parameters in self.met:
            for held in parameters if module() is not None else ():
                self.session.noted_then(
                    when, "fact", place, what="attached", held=held, detail=name
                )
        self.met.clear()


def _create(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def create(cls: type, *args: Any, **kwargs: Any) -> Any:
        made = original(cls, *args, **kwargs)
        if not session.quiet:
            session.guarded(_created, session, made)
        return made

    return create


def _created(session: Session, parameter: torch.Tensor) -> None:
    """`nn.Parameter(…)`: where a parameter is made that no module may ever hold."""
    held = session.memory.held(parameter, nearest())
    held.is_seen = not held.name


def _init(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not session.quiet:
            session.guarded(session.names.module_made, self)

    return make


def _restore(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def set_state(self: Any, state: Any) -> None:
        original(self, state)
        if not session.quiet:
            session.guarded(_restored, session, self)

    return set_state


def _restored(session: Session, module: torch.nn.Module) -> None:
    """A module was copied or loaded, which neither calls its `__init__` nor registers its
    parameters.
    """
    session.names.modules.append(weakref.ref(module))
    is_copied = _runs("deepcopy")
    for name, parameter in module._parameters.items():
        if parameter is not None:
            _made(session, name, parameter)
            session.memory.held(parameter).is_loaded |= not is_copied
            if session.steppers:
                session.happened(
                    "fact", what="copied", held=session.memory.held(parameter), detail=name
                )


def _register(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def register_parameter(self: Any, name: str, param: Any) -> None:
        original(self, name, param)
        if param is not None and not session.quiet:
            session.guarded(_made, session, name, param)

    return register_parameter


def _load(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        out = original(self, state_dict, *args, **kwargs)
        if not session.quiet:
            session.guarded(_loaded, session, self, state_dict)
        return out

    return load_state_dict


def _loaded(session: Session, module: torch.nn.Module, state: Mapping[str, Any]) -> None:
    for name, parameter in module.named_parameters():
        if name in state:
            session.memory.held(parameter).is_loaded = True


def _runs(name: str) -> bool:
    """Whether a function of this name is running."""
    return any(frame.f_code.co_name == name for frame in running(sys._getframe(1)))


def _call(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            session.calling
            or session.quiet
            or not (session.recording or session.attention.evaluations)
        ):
            return original(self, *args, **kwargs)
        session.calling = True
        try:
            out = original(self, *args, **kwargs)
        finally:
            session.calling = False
        session.guarded(_called, session, self, out)
        return out

    return call


def _called(session: Session, module: Any, out: Any) -> None:
    """An outermost module was called."""
    result = next(iter(tensors([out])), None)
    session.attention.evaluations = max(0, session.attention.evaluations - 1)
    if result is not None:
        place = here()
        op = session.memory.of(result, place)
        first = session.names.first_parameter(module)
        owners, woken = _owners(session), session.attention.woken(module)
        session.note(
            "module",
            place,
            path=session.names.part(module),
            first=first,
            op=op,
            owners=owners,
            woken=woken,
        )


def _owners(session: Session) -> tuple[tuple[Held, int] | None, ...]:
    """For the user's frames, innermost first, what `first_parameter` says of the module whose
    method is run.
    """
    found: list[tuple[Held, int] | None] = []
    for code, names in scopes():
        owner = names.get(code.co_varnames[0]) if code.co_argcount else None
        found.append(session.names.first_parameter(owner) if isinstance(owner, Module) else None)
    return tuple(found)


def _made(session: Session, name: str, parameter: torch.nn.Parameter) -> None:
    held = session.memory.held(parameter, nearest())
    if held.is_seen:
        held.place, held.is_seen = nearest(), False
    held.name = held.name or name
    held.is_loaded |= _runs(_LOADER)
    if parameter.dtype is torch.float16:
        session.note("fact", held.place, what="parameter-cast", held=held, detail="half")


def _set(session: Session, original: Callable[..., Any], attached: _Attached) -> Callable[..., Any]:
    def set_attribute(self: Any, name: str, value: Any) -> None:
        try:
            original(self, name, value)
        except TypeError:
            session.guarded(_refused, session, self, name, value)
            raise
        if session.quiet:
            return
        if isinstance(value, (Module, torch.nn.Parameter)):
            if session.steppers:
                session.guarded(attached.meet, self, name, value)
        elif (isinstance(value, (list, tuple, dict)) or _is_record(value)) and is_users(
            sys._getframe(1).f_code
        ):
            containers.append((session.moment(), weakref.ref(self), name, here()))
        elif (
            isinstance(value, torch.Tensor)
            and _is_result(session, value)
            and is_users(sys._getframe(1).f_code)
        ):
            op = session.guarded(session.memory.of, value, place := here())
            if op is not None and name in self._buffers:
                session.note("fact", place, what="buffer-set", op=op, detail="")
            results.extend([(session.moment(), place, op)] if op is not None else [])

    def tell(*_: object) -> None:
        for when, module, name, place in containers:
            session.guarded(_contained, session, when, module(), name, place)
        for when, place, op in results:
            session.guarded(_no_leaf, session, when, place, op)
        containers.clear()
        results.clear()

    containers: list[tuple[tuple[int, int], weakref.ref[Any], str, Place]] = []
    results: list[tuple[tuple[int, int], Place, Op]] = []
    session.on_loss.append(tell)
    return set_attribute


def _is_result(session: Session, value: torch.Tensor) -> bool:
    return session.recording and value.grad_fn is not None


def _refused(session: Session, module: Any, name: str, value: Any) -> None:
    """torch refuses what is computed from a parameter in the parameter's place."""
    place = here()
    if isinstance(value, torch.Tensor) and value.grad_fn is not None and name in module._parameters:
        session.note(
            "fact", place, what="non-leaf-attribute", op=session.memory.of(value, place), detail=""
        )


def _no_leaf(session: Session, when: tuple[int, int], place: Place, op: Op) -> None:
    """At the first backward: what a module has was computed from parameters that no module has."""
    leaves = [each for each in lineage([op]) if each.requires_grad and not each.inputs]
    nowhere = [
        each for each in leaves if each.held is not None and not (each.held.name or each.held.path)
    ]
    if leaves and len(nowhere) == len(leaves):
        session.noted_then(when, "fact", place, what="non-leaf-attribute", op=op, detail="")


def _contained(
    session: Session, when: tuple[int, int], module: Any, name: str, place: Place
) -> None:
    """At the first backward: parameters in a list or dict of a module that are not registered with
    it.
    """
    inside = list(_inside(getattr(module, name, None), 3)) if module is not None else []
    if module is None or not inside:
        return
    known = {id(parameter) for parameter in module.parameters()}
    path = ".".join((*session.names.part(module), name))
    beside = _beside(session, module)
    for parameter in inside:
        if id(parameter) not in known:
            held = session.memory.held(parameter)
            session.noted_then(
                when, "fact", place, what="plain-container", held=held, beside=beside, detail=path
            )


def _beside(session: Session, module: Any) -> Any:
    """A registered parameter of a module, one that an optimizer holds before others."""
    registered = [session.memory.held(parameter) for parameter in module.parameters()]
    trained = {id(held) for _, stepper in session.steppers.values() for held in stepper.held}
    return next(
        (held for held in registered if id(held) in trained), registered[0] if registered else None
    )


def _inside(container: Any, depth: int) -> Iterator[torch.nn.Parameter]:
    """The parameters in lists, tuples, dicts and dataclasses, and in modules that lie in these."""
    known = vars(container) if _is_record(container) else container
    things = known.values() if isinstance(known, dict) else known
    for thing in things if isinstance(known, (list, tuple, dict)) and depth else ():
        if isinstance(thing, (Module, torch.nn.Parameter)):
            yield from _parameters(thing)
        else:
            yield from _inside(thing, depth - 1)


def _is_record(value: Any) -> bool:
    return (
        dataclasses.is_dataclass(value)
        and hasattr(value, "__dict__")
        and not isinstance(value, (type, Module))
    )


def _add(session: Session, original: Callable[..., Any], attached: _Attached) -> Callable[..., Any]:
    def add_module(self: Any, name: str, module: Any) -> None:
        original(self, name, module)
        if module is not None and not session.quiet and session.steppers:
            session.guarded(attached.meet, self, name, module)

    return add_module


def _parameters(thing: Any) -> list[torch.nn.Parameter]:
    return [thing] if isinstance(thing, torch.nn.Parameter) else list(thing.parameters())


def _apply(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def _apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.quiet or session.depth or session.in_apply:
            return original(self, *args, **kwargs)
        before = session.guarded(_dtypes, self) or {}
        session.in_apply = True
        try:
            return original(self, *args, **kwargs)
        finally:
            session.in_apply = False
            session.guarded(_cast, session, self, before)

    return _apply


def _dtypes(module: Any) -> dict[int, torch.dtype]:
    return {id(parameter): parameter.dtype for parameter in module.parameters()}


def _cast(session: Session, module: Any, before: dict[int, torch.dtype]) -> None:
    """`module.half()`: remember where the parameters changed their dtype."""
    place = nearest()
    for parameter in module.parameters():
        if before.get(id(parameter), parameter.dtype) != parameter.dtype:
            held = session.memory.held(parameter, place)
            dtype = (
                "half"
                if parameter.dtype is torch.float16
                else str(parameter.dtype).removeprefix("torch.")
            )
            session.note("fact", place, what="parameter-cast", held=held, detail=dtype)
