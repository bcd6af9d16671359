"""Assignments: how a value is put into a name, an attribute, an item or a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import (
    tensors,
    unknowns,
)
from gradlint.interpret.derived import derived
from gradlint.interpret.items import set_item
from gradlint.interpret.machine import Raised
from gradlint.interpret.placing import note
from gradlint.interpret.registry import find_method, notify
from gradlint.interpret.scopes import Frame
from gradlint.interpret.subscripts import tensor_item
from gradlint.interpret.values import (
    Abstract,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Package,
    Sequence,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.names import words

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def name_value(m: Machine, value: Abstract, name: str) -> None:
    """Gives what is assigned for the first time the name that messages use."""
    if isinstance(value, Const):
        return
    if isinstance(value, Tensor):
        value.node.name = value.node.name or name
        parameter = value.node.parameter
        # one without a name stands for all of its module: `for p in model.parameters():`
        if parameter is not None and parameter.module is None and not parameter.name:
            parameter.name = name
    elif isinstance(value, Unknown):
        known = m.nodes.get(value.symbol)
        if known is not None:
            known.name = known.name or name
    elif isinstance(value, Instance | Object):
        if value.module is not None and value.module.name.startswith("<"):
            value.module.name = name
        if isinstance(value, Object):
            handle = value.state.get("handle")
            if (
                isinstance(handle, tape.Optimizer | tape.Scaler | tape.Scheduler)
                and not handle.name
            ):
                handle.name = name


def assign(m: Machine, target: ir.Node, value: Abstract, frame: Frame) -> None:
    """`target = value`."""
    match target:
        case ir.Name():
            bind(m, target.id, value, frame)
        case ir.Attribute():
            owner = m.evaluate(target.target, frame)
            set_attribute(m, owner, target.name, value, target, frame)
        case ir.Subscript():
            owner = m.evaluate(target.target, frame)
            set_item(m, owner, m.evaluate(target.index, frame), value, target, frame)
        case ir.Display():
            _unpack(m, target.items, value, target, frame)
        case ir.Star():
            assign(m, target.value, value, frame)


def bind(m: Machine, name: str, value: Abstract, frame: Frame) -> None:
    name_value(m, value, name)
    notify("bound", m, name, value)
    scope = frame
    function = frame.function
    if function is not None:
        if name in function.node.globals:
            scope = frame.module
        elif name in function.node.nonlocals and frame.parent is not None:
            scope = frame.parent
            while scope.parent is not None and name not in scope.locals:
                scope = scope.parent
    scope.locals[name] = value
    note(m, "name", name, value)


def _unpack(
    m: Machine, targets: list[ir.Node], value: Abstract, node: ir.Node, frame: Frame
) -> None:
    if _is_no_tuple(m, value, len(targets)):
        raise Raised(Object("builtins.ValueError", frame.span(node)), frame.span(node))
    if isinstance(value, Tensor | Unknown):
        for position, target in enumerate(targets):
            index = Const(position)
            part = (
                tensor_item(m, value, index, target, frame)
                if isinstance(value, Tensor)
                else derived(m, value, "item", position, target, frame)
            )
            assign(m, target, part, frame)
        return
    items = m.items(value, Call("=", [], {}, node, frame))
    is_open = isinstance(value, Sequence) and value.open
    star = next((i for i, target in enumerate(targets) if isinstance(target, ir.Star)), None)
    if star is not None:
        after = len(targets) - star - 1
        middle = items[star : len(items) - after] if len(items) >= len(targets) - 1 else []
        items = [
            *items[:star],
            Sequence("list", middle, is_open),
            *(items[len(items) - after :] if after else []),
        ]
    are_data = bool(items) and all(map(_is_data, items))
    for position, target in enumerate(targets):
        # like the items that are known of an open list
        further = m.unknown(frame.text(target), data=are_data)
        assign(m, target, items[position] if position < len(items) else further, frame)


def _is_data(value: Abstract) -> bool:
    """Whether no gradient comes to a value, for it is a part of a batch."""
    if isinstance(value, Tensor):
        return value.node.kind is tape.Kind.DATA
    return isinstance(value, Unknown) and value.data


def _is_no_tuple(m: Machine, value: Abstract, length: int) -> bool:
    """Whether the value comes from a `return` whose arity does not match this unpacking; such a
    path is infeasible.
    """
    returned, arities = m.state.get("instead of a tuple", (None, ()))
    return returned is value and length in arities


def set_attribute(
    m: Machine, owner: Abstract, name: str, value: Abstract, node: ir.Node, frame: Frame
) -> None:
    """`owner.name = value`."""
    note(m, "attribute", name, value)
    at = Call(name, [value], {}, node, frame)
    if (
        isinstance(owner, Tensor | Unknown)
        and isinstance(value, Tensor | Unknown)
        and _is_of_a_gradient(name)
    ):
        m.emit(tape.Fact(at=frame.span(node), what="gradient-beside", text=name))
    match owner:
        case Instance():
            _set_instance(m, owner, name, value, at)
        case Class():
            if not _replaces_method(m, owner, name, value):
                owner.namespace[name] = value
        case Package():
            owner.scope.locals[name] = value
        case Function():
            owner.attrs[name] = value
        case Object():
            setter = find_method(owner.cls, f"__set_{name}__") or find_method(
                owner.cls, "__set_*__"
            )
            if setter is not None:
                setter(m, owner, at)
            else:
                owner.attrs[name] = value
        case Tensor():
            setter = find_method("torch.Tensor", f"__set_{name}__") or find_method(
                "torch.Tensor", "__set_*__"
            )
            if setter is not None:
                setter(m, owner, at)
            else:
                owner.attrs[name] = value
        case Unknown():
            setter = find_method("unknown", f"__set_{name}__")
            if setter is not None:
                setter(m, owner, at)
            notify("put in", m, owner, at)
            m.overrides[owner.symbol][f"attribute:{name}"] = value


def _replaces_method(m: Machine, cls: Class, name: str, value: Abstract) -> bool:
    """Whether code out of view takes the place of a method in view: it is taken to do the same, as
    a decorator is.

    cls.propagate = module_from_template("propagate.jinja").propagate
    """
    return isinstance(value, Unknown) and isinstance(m.session.member_of(cls, name), Function)


def _is_of_a_gradient(name: str) -> bool:
    """Whether some optimizers take what is put into a parameter under this name for its gradient:
    `grad_sample`.
    """
    return name not in ("grad", "requires_grad") and "grad" in words(name)


def _set_instance(m: Machine, owner: Instance, name: str, value: Abstract, at: Call) -> None:
    if name == "__dict__" and isinstance(value, Mapping):
        owner.attrs = value.items
        return
    for cls in owner.cls.lineage():
        found = cls.namespace.get(name) if isinstance(cls, Class) else None
        if isinstance(found, Object) and found.cls == "builtins.property":
            setter = found.state.get("set")
            if isinstance(setter, Abstract):
                m.call(setter, Call(name, [owner, value], {}, at.node, at.frame))
                return
        if (
            isinstance(found, Instance)
            and (own := m.session.member_of(found.cls, "__set__")) is not None
        ):
            m.invoke(own, [found, owner, value], at)
            return
        if isinstance(cls, Class) and "__setattr__" in cls.namespace:
            break
    hook = m.session.member_of(owner.cls, "__setattr__")
    if isinstance(hook, Function) and not owner.state.get("setting"):
        _set_by_hook(m, hook, owner, name, value, at)
    else:
        store(m, owner, name, value, at)


def _set_by_hook(
    m: Machine, hook: Function, owner: Instance, name: str, value: Abstract, at: Call
) -> None:
    """What the program's own `__setattr__` does, whose `super().__setattr__(name, value)`
    stores.
    """
    owner.state["setting"] = True
    try:
        m.invoke(hook, [owner, Const(name), value], at)
    finally:
        del owner.state["setting"]


def store(m: Machine, owner: Instance, name: str, value: Abstract, at: Call) -> None:
    """Puts an attribute where objects keep theirs."""
    if owner.module is not None:
        setter = find_method("torch.nn.Module", "__set_*__")
        if setter is not None:
            setter(m, owner, Call(name, [value], {}, at.node, at.frame))
    if name in owner.state.get("buffers", ()) and isinstance(value, Tensor) and value.node.records:
        m.emit(tape.Fact(at=at.frame.span(at.node), what="buffer-set", value=value.node))
    if isinstance(value, Unknown):
        value = _as_was_saved(m, owner.attrs.get(name), value, at)
    owner.attrs[name] = value
    name_value(m, value, name if owner.module is not None else f"self.{name}" if name else name)


def _as_was_saved(m: Machine, before: Abstract | None, value: Unknown, at: Call) -> Abstract:
    """What is loaded in the place of a leaf that is trained is one, too: `torch.save` keeps
    `requires_grad`.
    """
    kinds = (tape.Kind.PARAMETER, tape.Kind.LEAF)
    if not isinstance(before, Tensor) or before.node.kind not in kinds:
        return value
    if not (before.node.requires_grad and unknowns.is_loaded(m, value.symbol)):
        return value
    made = tensors.value(
        m, "torch.load", tape.Kind.LEAF, (), at.node, at.frame, requires_grad=True, assumed=True
    )
    made.storage, made.parameter = tape.Storage(), tape.Parameter("", None, made.at)
    return Tensor(made)
