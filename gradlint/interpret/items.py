"""How a value is put at an index, under a key or into a slice: `scores[mask] = 0.0`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import (
    arguments,
    memory,
    operands,
    tensors,
)
from gradlint.interpret.keys import hashable
from gradlint.interpret.placing import note, put_away
from gradlint.interpret.registry import find_method
from gradlint.interpret.scopes import Frame
from gradlint.interpret.values import (
    MOST_ITEMS,
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
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def set_item(
    m: Machine, owner: Abstract, index: Abstract, value: Abstract, node: ir.Node, frame: Frame
) -> None:
    """`owner[index] = value`."""
    note(m, "item", frame.text(node), value)
    match owner:
        case Mapping():
            _set_key(m, owner, index, value, node, frame)
        case Sequence():
            _set_at(owner, index, value)
        case Tensor() if isinstance(index, Const) and isinstance(index.value, str):
            pass  # what has such keys is no tensor, whatever it was taken for
        case Tensor() if owner.node.assumed and isinstance(value, Instance | Object):
            pass  # nor is what holds modules: `model[key] = nn.DataParallel(model[key])`
        case Tensor():
            _write_elements(m, owner, index, value, node, frame)
        case Unknown():
            _set_of_unknown(m, owner, index, value, node, frame)
        case Instance() | Object():
            at = Call("__setitem__", [index, value], {}, node, frame)
            method = m.attribute(owner, "__setitem__", at)
            if not isinstance(method, Unknown):
                m.call(method, at)


def _set_key(
    m: Machine, owner: Mapping, index: Abstract, value: Abstract, node: ir.Node, frame: Frame
) -> None:
    """`mapping[key] = value`; a key that is not known leaves the mapping open."""
    key = hashable(index)
    if key is not None:
        owner.put(Mapping({key: value}))
        m.appended[id(owner)] = frame.span(node)
        return
    owner.open = True
    sources = m.state.setdefault("copied from", {})
    sources[owner.symbol or m.symbol(owner)] = m.symbol(index)
    owner.items[("unknown", m.symbol(index))] = value
    put_away(m, value, node, frame)


def _set_at(owner: Sequence, index: Abstract, value: Abstract) -> None:
    """`items[number] = value`, `items[first:last] = value`."""
    place = index.value if isinstance(index, Const) else None
    if place == -1 and _is_repeated(owner):  # of `[True] * n` with an unknown `n`, the last one
        owner.items.append(value)
    elif isinstance(place, int) and -len(owner.items) <= place < len(owner.items):
        owner.items[place] = value
    elif isinstance(place, slice):
        _set_slice(owner, place, value)
    else:
        owner.open, owner.rest = True, value


def _is_repeated(owner: Sequence) -> bool:
    """Whether one item is shown of a list that has any number of them."""
    return owner.open and len(owner.items) == 1 and owner.items[0] is owner.rest


def _write_elements(
    m: Machine, owner: Tensor, index: Abstract, value: Abstract, node: ir.Node, frame: Frame
) -> None:
    """`tensor[index] = value`: a write in place, lost where `tensor` is a copy that has no name."""
    inputs = tensors.sources(m, [value], node, frame)
    old = owner.node
    # the weight of a parametrized layer is computed at each access: nobody else sees the write
    if tape.COMPUTED_ANEW in old.flags and not old.name:
        text = frame.text(node)
        m.emit(tape.Fact(at=frame.span(node), what="lost-write", value=old, text=text))
    given = arguments.given(m, [NONE, index, value], {})
    memory.write(
        m, owner, "torch.Tensor.__setitem__", inputs, node, frame,
        of_part=_is_part(index), index=next((each for at, each in given if at == 1), None),
    )  # fmt: skip
    if owner.node is not old:
        owner.node.arguments = given


def _set_of_unknown(
    m: Machine, owner: Unknown, index: Abstract, value: Abstract, node: ir.Node, frame: Frame
) -> None:
    """`anything[index] = value`: a write in place where it may be a tensor."""
    inputs = tensors.sources(m, [value], node, frame)
    is_a_name = isinstance(index, Const) and isinstance(index.value, str)
    holds_modules = isinstance(value, Instance | Object)
    if is_a_name:  # graph.ndata["h"] = h: no tensor
        if any(source.requires_grad for source in inputs):
            m.state.setdefault("keeps", set()).add(owner.symbol.source or owner.symbol)
    elif _may_be_tensor(m, owner) and not holds_modules:
        tensor = tensors.as_tensor(m, owner, node, frame)
        written = memory.write(m, tensor, "torch.Tensor.__setitem__", inputs, node, frame)
        m.nodes[owner.symbol] = written.node
    handler = find_method("numpy.ndarray", "__setitem__") if owner.type == "array" else None
    if handler is not None:
        handler(m, owner, Call("__setitem__", [index, value], {}, node, frame))
    m.overrides[owner.symbol][f"item:{hashable(index) or m.symbol(index)}"] = value


def _may_be_tensor(m: Machine, owner: Unknown) -> bool:
    """Whether torch has computed with it, and it may be a tensor: no data, but what a loader gives,
    and a mask.
    """
    if owner.type == "bool":
        return owner.symbol in m.tensors
    return owner.symbol in m.nodes and (not owner.data or operands.is_collated(m, owner))


def _is_part(index: Abstract) -> bool:
    """Whether `x[index]` is a view of some of `x`, which `x[mask]`, `x[:]` and `x[...]` are not."""
    if isinstance(index, Sequence) and index.kind == "tuple":
        return any(map(_is_part, index.items))
    return isinstance(index, Const) and index.value not in (slice(None), ..., None)


def _set_slice(owner: Sequence, part: slice, value: Abstract) -> None:
    """`losses[1:] = others`; what of it is not known leaves the list open."""
    items = list(value.items) if isinstance(value, Sequence) and not value.open else None
    if part == slice(None):
        owner.items.clear()
        owner.open, owner.rest = False, None
    if items is not None and not owner.open:
        with contextlib.suppress(ValueError):  # of steps: there have to be as many
            owner.items[part] = items
            owner.open = len(owner.items) > MOST_ITEMS
            del owner.items[MOST_ITEMS:]
            return
    owner.open, owner.rest = True, None
