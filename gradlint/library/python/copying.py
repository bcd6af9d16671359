"""The module copy: `copy` shares what is inside, `deepcopy` makes tensors and parameters of its
own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.registry import function
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.optimizers import tensor_of
from gradlint.library.python.results import argument, place, text
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

T = TypeVar("T")


@function("copy.copy")
def shallow(m: Machine, call: Call) -> Abstract:
    """`copy(x)`: another container of the same things."""
    value = argument(m, call)
    match value:
        case Sequence():
            return Sequence(
                value.kind,
                list(value.items),
                value.open,
                value.rest,
                at=place(call),
                most=value.most,
            )
        case Mapping():
            return Mapping(dict(value.items), value.open, value.factory, place(call), value.symbol)
        case Instance():
            return Instance(
                value.cls,
                dict(value.attrs),
                value.module,
                dict(value.state),
                value.symbol,
                place(call),
            )
        case Object():
            return Object(value.cls, value.at, dict(value.state), dict(value.attrs), value.module)
    return value


@function("copy.deepcopy")
def deep(m: Machine, call: Call) -> Abstract:
    """`deepcopy(x)`: of a module, one with parameters of its own."""
    return Copier(m, call).copy(call.args[0]) if call.args else NONE


class Copier:
    """One `deepcopy`: what occurs twice is copied once."""

    def __init__(self, m: Machine, call: Call) -> None:
        self.m, self.call = m, call
        self.done: dict[int, tuple[object, object]] = {}

    def copy(self, value: Abstract) -> Abstract:
        """The copy of `value`."""
        known = self.done.get(id(value))
        if known is not None:
            assert isinstance(known[1], Abstract)
            return known[1]
        match value:
            case Tensor():
                return self._keep(value, self._tensor(value))
            case Unknown():
                return self._keep(value, self._unknown(value))
            case Sequence():
                made = self._keep(
                    value,
                    Sequence(value.kind, [], value.open, at=place(self.call), most=value.most),
                )
                made.items.extend(self.copy(item) for item in value.items)
                made.rest = None if value.rest is None else self.copy(value.rest)
                return made
            case Mapping():
                copied = self._keep(
                    value, Mapping({}, value.open, value.factory, place(self.call), value.symbol)
                )
                copied.items.update({key: self.copy(item) for key, item in value.items.items()})
                return copied
            case Instance():
                return self._instance(value)
            case Object():
                return self._object(value)
        return value

    def _keep(self, value: object, made: T) -> T:
        self.done[id(value)] = (value, made)
        return made

    def _tensor(self, value: Tensor) -> Tensor:
        """A leaf stays a leaf, with memory and identity of its own; torch 2.13 refuses to copy
        anything else.
        """
        node, call = value.node, self.call
        if node.kind is Kind.OPERATION:
            made = tensors.operation(self.m, "copy.deepcopy", [node], call.node, call.frame)
            made.dtype, made.storage = node.dtype, tape.Storage()
            return Tensor(made)
        parameter = node.parameter
        if parameter is not None:
            owner = self._module(parameter.module)
            copied_parameter = tape.Parameter(parameter.name, owner, place(call), copy_of=parameter)
            parameter = self._keep(parameter, copied_parameter)
        made = replace(
            node, parameter=parameter, storage=tape.Storage(), saves=(), at=place(call),
            stack=self.m.where,
            order=len(self.m.tape.events),
        )  # fmt: skip
        copied = Tensor(made, detached=False, uncounted=False)
        if parameter is not None:
            self.m.parameters[parameter] = copied
        return copied

    def _unknown(self, value: Unknown) -> Unknown:
        """A copy of an unknown module has parameters of its own, so that it is another unknown."""
        if value.data or value.origin is not None:
            return value
        symbol = value.symbol.derive(("deepcopy", self.call.node), text(self.call))
        if value.type in ("", "module"):
            both = (value.symbol, symbol)
            own, copied = (
                tensors.leaf(self.m, each, self.call.node, self.call.frame) for each in both
            )
            assert copied.parameter is not None
            copied.parameter.copy_of = own.parameter
        return Unknown(symbol, value.data, None, value.type)

    def _module(self, module: tape.Module | None) -> tape.Module | None:
        if module is None:
            return None
        known = self.done.get(id(module))
        if known is not None:
            assert isinstance(known[1], tape.Module)
            return known[1]
        made = self._keep(module, tape.Module(module.name))
        if module.parent is not None and id(module.parent) in self.done:
            made.parent = self._module(module.parent)
        return made

    def _instance(self, value: Instance) -> Instance:
        made = self._keep(value, Instance(value.cls, symbol=None, at=place(self.call)))
        made.module = self._root(value.module)
        made.state.update({key: self._part(item) for key, item in value.state.items()})
        made.attrs.update({name: self.copy(item) for name, item in value.attrs.items()})
        return made

    def _object(self, value: Object) -> Object:
        made = self._keep(value, Object(value.cls, value.at))
        made.module = self._root(value.module)
        made.state.update({key: self._part(item) for key, item in value.state.items()})
        made.attrs.update({name: self.copy(item) for name, item in value.attrs.items()})
        return made

    def _optimizer(self, handle: tape.Optimizer) -> tape.Optimizer:
        """It holds copies of what the first one holds."""
        known = self.done.get(id(handle))
        if known is not None:
            assert isinstance(known[1], tape.Optimizer)
            return known[1]
        made = tape.Optimizer(
            handle.name, handle.cls, place(self.call), complete=handle.complete, stack=self.m.where
        )
        self._keep(handle, made)
        groups: dict[int, list[int]] = self.m.state.setdefault("groups", {})
        groups[id(made.parameters)] = list(groups.get(id(handle.parameters), ()))
        for value in handle.parameters:
            copied = self.copy(tensor_of(self.m, value))
            assert isinstance(copied, Tensor)
            made.parameters.append(copied.node)
            self.m.state["tensors-of"][id(copied.node)] = copied
        return made

    def _root(self, module: tape.Module | None) -> tape.Module | None:
        """The module of a copied object; the outermost one takes its name from where it is
        assigned.
        """
        outermost = not any(isinstance(made, tape.Module) for _, made in self.done.values())
        made = self._module(module)
        if made is not None and outermost:
            made.name = f"<{made.name}>"
        return made

    def _part(self, item: object) -> object:
        """A part of the state of a library object."""
        if isinstance(item, Abstract):
            return item if isinstance(item, Const) else self.copy(item)
        if isinstance(item, tape.Module):
            return self._module(item)
        if isinstance(item, tape.Optimizer):
            return self._optimizer(item)
        if isinstance(item, tape.Parameter):
            known = self.done.get(id(item))
            made = tape.Parameter(item.name, self._module(item.module), item.at)
            return known[1] if known else self._keep(item, made)
        if isinstance(item, list):
            return [self._part(entry) for entry in item]
        if isinstance(item, dict):
            return {key: self._part(entry) for key, entry in item.items()}
        return item
