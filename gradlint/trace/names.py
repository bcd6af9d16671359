"""What modules and parameters are called, by where the program reaches them, and where modules are
made.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator, Sequence
from types import FrameType

import torch

from gradlint.trace.frames import Place, here, is_users
from gradlint.trace.memory import Memory
from gradlint.trace.records import Held


class Root(str):
    """The name of an outermost module: equal to no other, though another module is called the
    same.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class Names:
    """The modules of a run, their paths and those of their parameters."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.modules: list[weakref.ref[torch.nn.Module]] = []
        self._named_at = (0, 0)
        self._roots: dict[int, tuple[weakref.ref[torch.nn.Module], Root]] = {}
        self._parts: dict[int, tuple[weakref.ref[torch.nn.Module], tuple[str, ...]]] = {}
        self._modules_made: dict[int, tuple[weakref.ref[torch.nn.Module], Place]] = {}
        self._firsts: dict[int, tuple[weakref.ref[torch.nn.Module], tuple[Held, int] | None]] = {}

    def part(self, module: torch.nn.Module) -> tuple[str, ...]:
        """The path of a module from the outermost one that holds it."""
        entry = self._parts.get(id(module))
        if entry is not None and entry[0]() is module:
            return entry[1]
        return (self._root(module),)

    def _root(self, module: torch.nn.Module) -> Root:
        """The name of an outermost module; what is wrapped under its own name keeps that."""
        entry = self._roots.get(id(module))
        if entry is not None and entry[0]() is module:
            return entry[1]
        name = _variable(module) or type(module).__name__
        inside = set(map(id, module.modules()))
        alike = (
            root
            for key, (known, root) in self._roots.items()
            if key in inside and known() is not None
        )
        root = next((each for each in alike if str.__eq__(each, name)), None) or Root(name)
        self._roots[id(module)] = weakref.ref(module), root
        return root

    def variable(self, thing: object) -> str:
        """The name that the program has for an object at this moment, or ''."""
        return _variable(thing)

    def made_at(self, module: torch.nn.Module | None) -> Place:
        """Where the program made a module; () where that was not seen."""
        entry = self._modules_made.get(id(module)) if module is not None else None
        return entry[1] if entry is not None and entry[0]() is module else ()

    def module_made(self, module: torch.nn.Module) -> None:
        """A module begins to be one."""
        reference = weakref.ref(module)
        self.modules.append(reference)
        self._modules_made[id(module)] = reference, here()

    def find_modules(self) -> None:
        """The modules that were made before anybody watched: of them only the names are known."""
        # asks no proxy
        found = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
        self.modules += map(weakref.ref, found)

    def first_parameter(self, module: torch.nn.Module) -> tuple[Held, int] | None:
        """A parameter of a module, and how deep it lies in it: says later, by its name, where the
        module is.
        """
        entry = self._firsts.get(id(module))
        if entry is None or entry[0]() is not module:
            found = next(module.named_parameters(), None)
            first = None if found is None else (self.memory.held(found[1]), found[0].count(".") + 1)
            entry = self._firsts[id(module)] = (weakref.ref(module), first)
        return entry[1]

    def name_parameters(self) -> None:
        """Give each parameter the path by which the program reaches it, while its module is
        alive.
        """
        if self._named_at == (self.memory.parameters_seen, len(self.modules)):
            return
        self._named_at = (self.memory.parameters_seen, len(self.modules))
        modules = [module for reference in self.modules if (module := reference()) is not None]
        inner = {id(child) for module in modules for child in module._modules.values()}
        roots = [(self._root(module), module) for module in modules if id(module) not in inner]
        for root, module in roots:
            for name, part in module.named_modules():
                self._parts[id(part)] = (weakref.ref(part), (root, *filter(None, name.split("."))))
        for parameter, path in _paths(roots):
            held = self.memory.held(parameter)
            held.path = held.path or path


def _paths(
    roots: Sequence[tuple[str, torch.nn.Module]],
) -> Iterator[tuple[torch.Tensor, tuple[str, ...]]]:
    for root, module in roots:
        for name, parameter in module.named_parameters():
            yield parameter, (root, *name.split("."))


def _variable(thing: object) -> str:
    """The name that a frame of the user's has for an object."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code):
            for name, value in frame.f_locals.items():
                if value is thing and name != "self":
                    return name
                held = getattr(value, "__dict__", None) if name == "self" else None
                if held is not None:
                    found = next((key for key, item in list(held.items()) if item is thing), "")
                    if found:
                        return found
        frame = frame.f_back
    return ""
