"""Subscripts: `target[index]` of sequences, mappings, tensors and unknown values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradlint.interpret import (
    arguments,
    axes,
    chances,
    conditions,
    copies,
    counts,
    emptied,
    memory,
    saving,
    tensors,
)
from gradlint.interpret.derived import derived
from gradlint.interpret.keys import hashable, key_of
from gradlint.interpret.lineage import is_a
from gradlint.interpret.machine import Raised
from gradlint.interpret.operands import concrete, is_collated
from gradlint.interpret.registry import find_method
from gradlint.interpret.tables import EVALUATE, handles
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Range,
    Sequence,
    Tensor,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.source import effects
from gradlint.source.effects import How
from gradlint.tape import COMPUTED_ANEW, DType, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
    from gradlint.interpret.symbols import Symbol
MOST_PICKED = 6  # of the functions and classes that an unknown key may find


@handles(EVALUATE, ir.Slice)
def slice_(m: Machine, node: ir.Slice, frame: Frame) -> Abstract:
    bounds = [
        NONE if part is None else concrete(m, m.evaluate(part, frame))
        for part in (node.lower, node.upper, node.step)
    ]
    if all(isinstance(bound, Const) and isinstance(bound.value, int | None) for bound in bounds):
        return Const(slice(*(bound.value for bound in bounds if isinstance(bound, Const))))
    return Object("builtins.slice", frame.span(node), {"bounds": bounds})


@handles(EVALUATE, ir.Subscript)
def subscript(m: Machine, node: ir.Subscript, frame: Frame) -> Abstract:
    target = m.evaluate(node.target, frame)
    return item(m, target, concrete(m, m.evaluate(node.index, frame)), node, frame)


def item(m: Machine, target: Abstract, index: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """`target[index]`."""
    match target:
        case Sequence():
            return _sequence_item(m, target, index, node, frame)
        case Mapping():
            return _mapping_item(m, target, index, node, frame)
        case Tensor():
            return tensor_item(m, target, index, node, frame)
        case Unknown():
            handler = (
                find_method("numpy.ndarray", "__getitem__") if target.type == "array" else None
            )
            if handler is not None:
                return handler(m, target, Call("__getitem__", [index], {}, node, frame))
            is_of_tensor = _adds_axes(index) or _is_chosen(index)
            is_mask = target.type == "bool" and (_adds_axes(index) or target.symbol in m.tensors)
            if is_mask or (target.data and is_of_tensor and is_collated(m, target)):
                return tensor_item(m, tensors.as_tensor(m, target, node, frame), index, node, frame)
            found = derived(m, target, "item", hashable(index) or m.symbol(index), node, frame)
            if (
                found.origin is None
                and target.data
                and isinstance(index, Unknown)
                and index.origin is not None
            ):
                kind = "array" if index.type == "array" else found.type
                found = replace(
                    found, origin=copies.python(m, "python", [index], node, frame), type=kind
                )
            return found
        case Const() if isinstance(target.value, str | bytes) and isinstance(index, Const):
            try:
                return Const(target.value[index.value])
            except (TypeError, IndexError, ValueError):  # a step of zero
                return m.unknown(frame.text(node), data=True)
        case Lib():
            return target
        case Class() if not any(is_a(base, "enum.Enum") for base in target.libraries()):
            # Base[int]
            return target
        case Instance() | Object():
            at = Call("__getitem__", [index], {}, node, frame)
            method = m.attribute(target, "__getitem__", at)
            if not isinstance(method, Unknown):
                return m.call(method, at)
        case Builtin() | Function():
            return target
    return m.unknown(frame.text(node), data=isinstance(target, Const | Range))


def _adds_axes(index: Abstract) -> bool:
    """Whether an index makes axes, as one of a tensor alone does: `mask[:, None]`."""
    parts = index.items if isinstance(index, Sequence) and index.kind == "tuple" else ()
    return any(isinstance(part, Const) and part.value is None for part in parts)


def _is_chosen(index: Abstract) -> bool:
    """Whether an index is a tensor, which chooses among rows: `prices[scores.argmax()]`."""
    parts = index.items if isinstance(index, Sequence) and index.kind == "tuple" else [index]
    return any(isinstance(part, Tensor) for part in parts)


def _sequence_item(
    m: Machine, target: Sequence, index: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    if isinstance(index, Const):
        if isinstance(index.value, int) and -len(target.items) <= index.value < len(target.items):
            if m.loops and isinstance(target.items[index.value], Tensor):
                _taken(m, target).setdefault(index.value % len(target.items), index)
            return target.items[index.value]
        if isinstance(index.value, slice) and index.value.step != 0:
            return Sequence(
                target.kind, target.items[index.value], target.open, target.rest, at=target.at
            )
        if target.rest is not None:
            return target.rest
    if isinstance(index, Object):
        return Sequence(target.kind, list(target.items), target.open, target.rest, at=target.at)
    if target.items and not isinstance(index, Const):
        return _looked_up(m, _at_unknown(m, target, index, node, frame), index, node, frame)
    if _is_left_empty(m, target, node):
        raise Raised(Object("builtins.IndexError", frame.span(node)), frame.span(node))
    carries = any(not isinstance(entry, Const) for entry in target.items)
    return m.unknown(frame.text(node), data=not carries)


def _is_left_empty(m: Machine, target: Sequence, node: ir.Node) -> bool:
    """Whether all that the program puts into a list was left out; one that it puts nothing into,
    others may fill.
    """
    if (
        target.items
        or target.open
        or target.rest is not None
        or target.kind not in ("list", "tuple")
    ):
        return False
    return any(target is each for each in m.state.get("all left out", ())) or _is_filled_at_first(
        m, node
    )


def _is_filled_at_first(m: Machine, node: ir.Node) -> bool:
    """Whether an `__init__` puts something into the attribute that `node` takes an item of."""
    held = node.target if isinstance(node, ir.Subscript) else None
    if not isinstance(held, ir.Attribute):
        return False
    initial = (
        effects.body(function.source) for function in m.executed if function.name == "__init__"
    )
    found = (found for block in initial for found in effects.of(block, functions=False))
    written = (each for summary in found for each in summary.does.written)
    return any(
        how is How.FILLED and len(path) > 1 and path[-1] == held.name for path, how in written
    )


def _at_unknown(
    m: Machine, target: Sequence, index: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """The item at an unknown index: the first (of data of which some are nothing, any); of tensors
    with a graph, one that no other index has found.
    """
    first, key = target.items[0], ("item", m.symbol(index))
    if emptied.are_partly_nothing(target.items):
        return Unknown(m.symbol(target).derive(key, frame.text(node)), data=True)
    if not isinstance(first, Tensor) or not first.node.requires_grad:
        return first
    taken, symbol = _taken(m, target), m.symbol(index)
    for number, item in enumerate(target.items):
        if m.symbol(taken.setdefault(number, index)) == symbol:
            return item
    return m.unknown(frame.text(node))


def _taken(m: Machine, target: Sequence) -> dict[int, Abstract]:
    """By which index each item of a list was looked up first."""
    _, taken = m.state.setdefault("looked up", {}).setdefault(id(target), (target, {}))
    found: dict[int, Abstract] = taken
    return found


def _looked_up(
    m: Machine, item: Abstract, index: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """An item at an unknown index. A number that is looked up by what came from a tensor comes from
    it, too.
    """
    if not isinstance(item, Const):
        return item
    if not (isinstance(index, Unknown) and index.origin is not None):
        found = Const(item.value, item.at)
        m.state.setdefault("found constants", {})[id(found)] = found
        return found
    origin = copies.python(m, "python", [index], node, frame)
    return Unknown(m.unknown(frame.text(node)).symbol, data=True, origin=origin, type="number")


def _mapping_item(
    m: Machine, target: Mapping, index: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    key = hashable(index)
    if key is not None and _has(target.items, key):
        return target.items[key]
    if (
        key is None
        and ("unknown", m.symbol(index)) not in target.items
        and target.items
        and not target.open
    ):
        return _looked_up(m, _chosen(m, target, index, node, frame), index, node, frame)
    if target.factory is not None:
        place = key_of(m, index)
        if place not in target.items:
            target.items[place] = m.call(target.factory, Call("factory", [], {}, node, frame))
        return target.items[place]
    symbol = target.symbol or m.symbol(target)
    unknown_key = key if key is not None else m.symbol(index)
    held = target.items.get(("unknown", m.symbol(index)))
    if held is None and target.symbol is None:
        held = _any_filled_in(m, target, unknown_key)
    if held is not None:
        return held
    return Unknown(
        symbol.derive(("item", unknown_key), frame.text(node)), data=target.symbol is not None
    )


def _any_filled_in(m: Machine, target: Mapping, key: object) -> Abstract | None:
    """What a dict that is filled under unknown keys has under another key: data and no graph, or a
    module.

    One key after the other finds one module after the other.
    """
    values = list(target.items.values())
    if not all(isinstance(known, tuple) and known[:1] == ("unknown",) for known in target.items):
        return None
    if all(isinstance(value, Tensor) and not value.node.requires_grad for value in values):
        return next(iter(values), None)
    if not all(
        isinstance(value, Instance | Object) and value.module is not None for value in values
    ):
        return None
    found: dict[object, Abstract] = m.state.setdefault("found under", {}).setdefault(
        m.symbol(target), {}
    )
    return found.setdefault(key, values[len(found) % len(values)])


def _chosen(m: Machine, target: Mapping, index: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """What an unknown key finds: what this path knows it to be, else what it is by default, else
    the first.

    Of functions and classes of the program, each is found on some path.
    """
    symbol = m.symbol(index)
    known = m.oracle.facts.equal.get(symbol)
    if known is not None and _has(target.items, known):
        return target.items[known]
    key = _key_by_default(m, symbol)
    key = key if key is not None and _has(target.items, key) else next(iter(target.items))
    others = [
        other for other, value in target.items.items() if other != key and _is_of_program(value)
    ]
    picked = conditions.pick(m, symbol, others[:MOST_PICKED], node, frame)
    return target.items[key if picked is None else picked]


def _key_by_default(m: Machine, symbol: Symbol) -> object:
    """What an option is where nobody sets it, or what most objects of a part are made with."""
    _, default = m.state.get("options", {}).get(symbol) or (None, None)
    if isinstance(default, Const):
        return default.value
    return m.state.get("defaults", {}).get(symbol)


def _is_of_program(value: Abstract) -> bool:
    return isinstance(value, Function | Bound | Class)


def _has(items: dict[Any, Abstract], key: object) -> bool:
    try:
        return key in items
    except TypeError:
        return False


def _is_basic(index: Abstract) -> bool:
    """Whether an index is a number or a slice, and no tensor or list."""
    if isinstance(index, Unknown):
        return index.type == "number" and index.origin is None
    return isinstance(index, Const) or (isinstance(index, Object) and index.cls == "builtins.slice")


def _is_saved(index: Value) -> bool:
    """Whether indexing saves an index for its backward: a mask, or integers that have an axis; one
    integer alone is read at once.
    """
    return index.in_torch and (
        index.dtype is DType.BOOL or (index.dtype is DType.INTEGER and (axes.rank(index) or 0) > 0)
    )


def _copies_rows(index: Abstract) -> bool:
    """Whether what an index picks is a copy for sure: of a mask, a list, integers with an axis."""
    if isinstance(index, Sequence):
        return index.kind == "list"
    return isinstance(index, Tensor) and _is_saved(index.node)


def tensor_item(m: Machine, target: Tensor, index: Abstract, node: ir.Node, frame: Frame) -> Tensor:
    """`tensor[index]`: a view for integers and slices, a copy for tensors, lists and masks."""
    parts = index.items if isinstance(index, Sequence) and index.kind == "tuple" else [index]
    if all(map(_is_basic, parts)):
        made = memory.view(m, target, "torch.Tensor.__getitem__", node, frame)
        made.node.arguments = arguments.given(m, [target, index], {})
        if all(
            isinstance(part, Const) and part.value in (None, ..., slice(None)) for part in parts
        ):
            made.node.flags |= {"reshaping"}  # labels[:, None]
        made.node.number = _written_number(m, target, parts)
    else:
        chosen = [
            index for index in tensors.sources(m, parts, node, frame) if not index.requires_grad
        ]
        made = tensors.apply(m, "torch.Tensor.__getitem__", [target], node, frame, None)
        made.node.inputs = tuple(dict.fromkeys((*made.node.inputs, *chosen)))
        made.node.dtype = target.node.dtype
        if made.node.requires_grad:
            saving.save(made.node, filter(_is_saved, chosen), needed_by=(target.node,))
        if not all(isinstance(part, Unknown) and part.type == "number" for part in parts):
            made.node.flags |= {"selection"}
        if any(map(_copies_rows, parts)):
            made.node.flags |= {COMPUTED_ANEW}
        made.node.inference = made.node.inference or False
        if len(parts) == 1:
            counts.note_selection(m, made.node, parts[0])
        for mask in chosen if made.node.requires_grad else ():
            if mask.dtype is DType.BOOL:
                chances.note(m, made.node, chances.of_nothing(mask))
    key = tuple(_index_key(m, part) for part in parts)
    m.identify(made.node, m.symbol(target).derive(("item", key), frame.text(node)))
    return made


def _written_number(m: Machine, target: Tensor, parts: list[Abstract]) -> int | float | None:
    """The number that stands at a place of a tensor of numbers that are written out:
    `torch.tensor([1.0, 0.0])[1]`.
    """
    written = m.state.get("written-out", {}).get(id(target.node))
    storage, place = target.node.storage, parts[0] if len(parts) == 1 else None
    is_as_written = storage is not None and storage.version == 0
    if not is_as_written or not isinstance(written, Sequence) or written.open:
        return None
    if not isinstance(place, Const) or type(place.value) is not int:
        return None
    is_in = -len(written.items) <= place.value < len(written.items)
    item = written.items[place.value] if is_in else None
    is_number = isinstance(item, Const) and isinstance(item.value, int | float)
    return item.value if isinstance(item, Const) and is_number else None


def _index_key(m: Machine, part: Abstract) -> object:
    if isinstance(part, Const):
        return repr(part.value)
    return m.symbol(part)
