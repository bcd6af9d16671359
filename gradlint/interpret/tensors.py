"""The model of autograd: what an operation makes of its inputs, what it saves, what a write in
place does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Sequence as Many
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret.values import (
    Abstract,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Symbol,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.effects import Effect, lookup
from gradlint.tape import Cut, DType, Kind, Saved, Storage, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Frame, Machine

MAX_NESTING = 4  # how deep containers are searched for tensors
# what is one, or can hold some
_COMPUTED = frozenset([Tensor, Unknown, Sequence, Mapping, Object, Instance])


def value(
    m: Machine,
    op: str,
    kind: Kind,
    inputs: Iterable[Value],
    node: ir.Node,
    frame: Frame,
    **fields: Any,
) -> Value:
    """A new value on the tape, made here."""
    made = Value(op, kind, tuple(inputs), frame.span(node), m.where, **fields)
    if not made.text:
        made.text = frame.text(node)
    made.order, made.iteration, made.checkpointed = len(m.tape.events), m.rounds, m.checkpoint
    if m.grad.inference and kind is not Kind.PARAMETER:
        made.inference, made.inference_at = True, m.grad.at
    if made.inference and made.cut_at is None:
        made.cut_at, made.cut_stack = m.grad.at, m.grad.stack
    if m.autocast:
        device, enabled = m.autocast[-1]
        made.autocast = None if enabled is False else device or "unknown"
    return made


def operation(
    m: Machine, op: str, inputs: Iterable[Value], node: ir.Node, frame: Frame,
    *, differentiable: bool = True, cut: Cut | None = None, **fields: Any,
) -> Value:  # fmt: skip
    """The value of an operation: recorded if grad mode is on, it has a derivative and an input
    requires grad.
    """
    sources = tuple(dict.fromkeys(inputs))
    made = value(m, op, Kind.OPERATION, sources, node, frame, **fields)
    live = [source for source in sources if source.requires_grad]
    if not live:
        return made
    if m.session.contract:
        for source in live:
            if source.kind is Kind.UNKNOWN:
                m.uses.setdefault(id(source), set()).add(op)
    made.assumed = all(source.assumed for source in live)
    if cut is None and not m.grad.enabled:
        cut = Cut.GRAD_MODE if differentiable else Cut.NON_DIFFERENTIABLE
    elif cut is None and not differentiable:
        cut = Cut.NON_DIFFERENTIABLE
    if cut is None:
        made.requires_grad = True
    else:
        made.cut = cut
        if cut is Cut.GRAD_MODE:
            made.cut_at, made.cut_stack = m.grad.at, m.grad.stack
            if m.grad.by_call:
                made.flags |= {"grad-mode-by-call"}
    return made


def constant(
    m: Machine,
    op: str,
    node: ir.Node,
    frame: Frame,
    number: object = None,
    dtype: DType = DType.FLOAT,
) -> Tensor:
    """A tensor made from nothing."""
    made = value(
        m, op, Kind.CONSTANT, (), node, frame, cut=Cut.CONSTANT, number=number, dtype=dtype
    )
    made.storage, made.around = Storage(), _with_gradient(m, frame)
    return Tensor(made)


def _with_gradient(m: Machine, frame: Frame) -> tuple[tuple[str, Value], ...]:
    """The local names that are bound to tensors with gradient."""
    found = []
    for name, bound in frame.locals.items():
        tensor = m.tensors.get(bound.symbol) if isinstance(bound, Unknown) else bound
        if isinstance(tensor, Tensor) and tensor.node.requires_grad:
            found.append((name, tensor.node))
    return tuple(found)


def batch(
    m: Machine,
    op: str,
    node: ir.Node,
    frame: Frame,
    inputs: Iterable[Value] = (),
    dtype: DType = DType.UNKNOWN,
) -> Tensor:
    """A tensor known to carry no gradient: random numbers, a batch, a buffer."""
    made = value(m, op, Kind.DATA, inputs, node, frame, dtype=dtype)
    made.storage = Storage()
    return Tensor(made)


def leaf(m: Machine, symbol: Symbol, node: ir.Node, frame: Frame, *, fed: bool = True) -> Value:
    """The parameters of an unknown module (or of an unknown callable, `fed` with tensors), as one
    value.
    """
    known = m.leaves.get(symbol)
    if known is None:
        module = m.session.modules.get(symbol)
        if module is None:
            module = tape.Module(symbol.text, unseen=True)
        parameter = tape.Parameter("", module, frame.span(node))
        known = value(
            m,
            "parameters",
            Kind.PARAMETER,
            (),
            node,
            frame,
            requires_grad=True,
            assumed=True,
            parameter=parameter,
        )
        known.storage, known.name, known.flags = (
            Storage(),
            symbol.text,
            frozenset({tape.GIVEN_NOTHING}),
        )
        m.leaves[symbol] = known
    if fed and tape.GIVEN_NOTHING in known.flags:
        known.flags -= {tape.GIVEN_NOTHING}
    return known


def node_of(m: Machine, abstract: Abstract, node: ir.Node, frame: Frame) -> Value | None:
    """The value on the tape behind an abstract value; None for what is no tensor and came from
    none.
    """
    if isinstance(abstract, Tensor):
        return abstract.node
    if isinstance(abstract, Unknown):
        return _unknown_node(m, abstract, node, frame)
    return None


def _unknown_node(m: Machine, unknown: Unknown, node: ir.Node, frame: Frame) -> Value | None:
    if unknown.symbol in m.tensors:
        return m.tensors[unknown.symbol].node
    if unknown.origin is not None:
        return unknown.origin
    if unknown.type in ("number", "bool", "str", "array", "module", "object"):
        return None
    known = m.nodes.get(unknown.symbol)
    if known is None:
        kind = Kind.DATA if unknown.data else Kind.UNKNOWN
        known = value(
            m, "input", kind, (), node, frame, requires_grad=not unknown.data, assumed=True
        )
        known.storage, known.text, known.name = Storage(), unknown.symbol.text, unknown.symbol.text
        known.inference = False  # it came from elsewhere, and may have been there before
        known.arguments = _part_of(unknown.symbol)
        known.assumed = not (unknown.data and _is_loaded(m, unknown.symbol))
        m.nodes[unknown.symbol] = known
        m.identify(known, unknown.symbol)
    return known


def _part_of(symbol: Symbol) -> tuple[tuple[int | str, object], ...]:
    """Of a slice of something unknown, and of an item of a loader's batch: the whole, and which
    part of it.
    """
    part: Symbol | None = symbol
    while part is not None:
        match part.key:
            case "item", ("slice", *bounds):
                return (0, part.source), (1, slice(*bounds))
            case "batch", *which:
                return (0, part.source), (1, ("batch", *which))
            case "item", _:
                part = part.source
            case _:
                break
    return ()


def _is_loaded(m: Machine, symbol: Symbol) -> bool:
    """Whether it is an item of what a loader in view gives: known to be data."""
    part: Symbol | None = symbol
    while part is not None and isinstance(part.key, tuple) and part.key[0] == "item":
        part = part.source
    is_batch = part is not None and isinstance(part.key, tuple) and part.key[0] == "batch"
    loader = (
        m.objects.get(part.source)
        if part is not None and is_batch and part.source is not None
        else None
    )
    return isinstance(loader, Object) and loader.cls == "torch.utils.data.DataLoader"


def sources(m: Machine, values: Iterable[Abstract], node: ir.Node, frame: Frame) -> list[Value]:
    """The values on the tape in these arguments, in containers too, each of which is looked into
    once.
    """
    found: list[Value] = []
    _find(m, values, node, frame, found, set(), 0)
    return found


def _find(
    m: Machine,
    values: Iterable[Abstract],
    node: ir.Node,
    frame: Frame,
    found: list[Value],
    seen: set[int],
    depth: int,
) -> None:
    for item in values:
        if type(item) not in _COMPUTED:  # most of what large containers hold
            continue
        if isinstance(item, Tensor):
            found.append(item.node)
        elif isinstance(item, Unknown):
            known = _unknown_node(m, item, node, frame)
            if known is not None:
                found.append(known)
        elif depth < MAX_NESTING and id(item) not in seen:
            seen.add(id(item))
            inside = _inside(item)
            if inside:
                _find(m, inside, node, frame, found, seen, depth + 1)


def _inside(item: Abstract) -> Collection[Abstract]:
    if isinstance(item, Sequence):
        return item.items if item.rest is None else [*item.items, item.rest]
    if isinstance(item, Mapping):
        return item.items.values()
    if isinstance(item, Object) and "loc" in item.state:
        return [part for part in item.state.values() if isinstance(part, Abstract)]
    if isinstance(item, Instance) and item.module is None:
        contents = item.state.get("items")
        if not isinstance(contents, Abstract):
            return item.attrs.values()
        return [*item.attrs.values(), *_inside(contents)]
    return ()


def apply(
    m: Machine, op: str, args: Many[Abstract], node: ir.Node, frame: Frame, effect: Effect | None,
    *, kwargs: dict[str, Abstract] | None = None, method: bool = False, **fields: Any,
) -> Tensor:  # fmt: skip
    """Runs a torch operation that gives one tensor: what it records, saves and shares."""
    named = name_arguments(m, args, kwargs or {}, node, frame, effect, method=method)
    tensors = [source for _, source in named]
    made = operation(
        m,
        op,
        tensors,
        node,
        frame,
        differentiable=effect is None or effect.differentiable,
        **fields,
    )
    made.storage, made.arguments = Storage(), given(m, args, kwargs or {})
    if effect is not None:
        made.zero_gradient = effect.zero_gradient and made.requires_grad
        made.missing_derivative = effect.missing_derivative and made.requires_grad
        made.dtype = effect.dtype or made.dtype
        _save(made, named, effect)
        _refuse_inference(m, made)
    if made.dtype is DType.UNKNOWN and tensors:
        made.dtype = result_dtype(tensors)
    return Tensor(made)


def given(
    m: Machine, args: Iterable[Abstract], kwargs: dict[str, Abstract]
) -> tuple[tuple[int | str, object], ...]:
    """The constants, tuples of them and tensors among an operation's arguments, and the symbols of
    others, by position or name.
    """
    found: list[tuple[int | str, object]] = [
        (key, _argument(m, each)) for key, each in enumerate(args)
    ]
    if kwargs:
        found += [(key, _argument(m, each)) for key, each in kwargs.items()]
    return tuple([each for each in found if each[1] is not None])


def bounds(index: Abstract) -> slice | None:
    """The slice that an index is: its bounds are constants, or the symbols of what is not known."""
    match index:
        case Const(value=slice() as known):
            return known
        case Object(cls="builtins.slice", state={"bounds": [*given]}):
            found = [
                bound.value
                if isinstance(bound, Const)
                else bound.symbol
                if isinstance(bound, Unknown)
                else bound
                for bound in given
            ]
            return slice(*found)
    return None


def _argument(m: Machine, value: Abstract) -> object:
    match value:
        case Tensor():
            return value.node
        case Unknown():
            known = (
                m.tensors[value.symbol].node
                if value.symbol in m.tensors
                else m.nodes.get(value.symbol)
            )
            return value.symbol if known is None else known
        case Const():
            return value.value
        case Object(cls="builtins.slice"):
            return bounds(value)
        case Sequence() if not value.open and all(isinstance(item, Const) for item in value.items):
            return tuple(item.value for item in value.items if isinstance(item, Const))
    return None


def name_arguments(
    m: Machine, args: Many[Abstract], kwargs: dict[str, Abstract], node: ir.Node, frame: Frame,
    effect: Effect | None,
    *, method: bool = False,
) -> list[tuple[str, Value]]:  # fmt: skip
    """The tensors among the arguments, each with the name by which the table speaks of it."""
    named = []
    for position, arg in enumerate(args):
        found = None if isinstance(arg, Const) else sources(m, [arg], node, frame)
        if found:
            name = effect.argument(position, method=method) if effect is not None else ""
            named += [(name, source) for source in found]
    for name, arg in kwargs.items():
        named += [(name, source) for source in sources(m, [arg], node, frame)]
    return named


def result_dtype(inputs: list[Value]) -> DType:
    """The dtype of arithmetic on these: a float wins over integers; unknown where one is
    unknown.
    """
    # no set: that of an enumeration is slow to build
    kinds = [source.dtype for source in inputs if source.in_torch]
    for kind in (DType.DOUBLE, DType.FLOAT, DType.HALF, DType.BFLOAT):
        if kind in kinds:
            return kind
    if DType.UNKNOWN in kinds or not kinds:
        return DType.UNKNOWN
    return DType.INTEGER if DType.INTEGER in kinds else DType.BOOL


def _save(made: Value, named: Many[tuple[str, Value]], effect: Effect) -> None:
    if not made.requires_grad:
        return
    kept = effect.saved({name for name, source in named if source.requires_grad})
    saved = [_saved(source, name) for name, source in named if name in kept]
    if any(what.startswith("result") for what in kept):
        saved.append(_saved(made, "result"))
    made.saves = tuple(entry for entry in saved if entry is not None)


def _saved(kept: Value, role: str) -> Saved | None:
    storage = kept.storage
    return (
        None
        if storage is None
        else Saved(kept, storage, storage.version, len(storage.writes), role)
    )


def _refuse_inference(m: Machine, made: Value) -> None:
    """Notes the inference tensors that torch refuses to save."""
    for kept in made.saves:
        if kept.value.inference and kept.value is not made:
            m.emit(
                tape.Fact(
                    at=made.at,
                    what="inference-tensor-used",
                    value=kept.value,
                    detail=made.op,
                    text=made.text,
                )
            )


def save(made: Value, kept: Iterable[Value], role: str = "input") -> None:
    """Adds to what `made` saves for its backward."""
    if made.requires_grad:
        made.saves += tuple(
            entry for entry in (_saved(one, role) for one in kept) if entry is not None
        )


def part(m: Machine, whole: Tensor, number: int, node: ir.Node, frame: Frame) -> Tensor:
    """One of several outputs of the operation that `whole` stands for."""
    made = operation(
        m,
        f"{whole.node.op}.output",
        [whole.node],
        node,
        frame,
        flags=frozenset({"multi-output", f"output-{number}"}),
    )
    made.storage, made.dtype = Storage(), whole.node.dtype
    return Tensor(made)


def view(m: Machine, base: Tensor, op: str, node: ir.Node, frame: Frame, **fields: Any) -> Tensor:
    """A tensor that shows the memory of another: writes to either are seen by both."""
    made = operation(m, op, [base.node], node, frame, **fields)
    if (
        base.node.kind in (Kind.PARAMETER, Kind.LEAF)
        and not m.grad.enabled
        and base.node.requires_grad
    ):
        # torch 2.13: a view of a leaf made under no_grad requires grad, has no grad_fn and is a
        # leaf of its own.
        made.kind = Kind.LEAF
        made.requires_grad, made.cut = True, Cut.GRAD_MODE
    made.storage, made.dtype = base.node.storage, base.node.dtype
    _same_memory(base.node, made)
    shown = Tensor(made, base=base, detached=base.detached, uncounted=base.uncounted)
    _share(m, base, shown)
    return shown


def _same_memory(before: Value, made: Value) -> None:
    """What shows the memory of `before` is an inference tensor exactly where that is one (torch
    2.13).
    """
    if before.inference and not made.inference:
        made.cut_at, made.cut_stack = before.cut_at, before.cut_stack
    made.inference, made.inference_at = before.inference, before.inference_at


def _share(m: Machine, base: Tensor, other: Tensor) -> None:
    if base.node.storage is not None:
        sharing = m.views.setdefault(id(base.node.storage), [base])
        sharing.append(other)


def detach(
    m: Machine, base: Tensor, op: str, node: ir.Node, frame: Frame, *, uncounted: bool = False
) -> Tensor:
    """`x.detach()` and `x.data`: the same memory, no graph. Autograd sees writes through the first
    only.
    """
    made = operation(m, op, [base.node], node, frame, cut=Cut.DETACH)
    made.storage, made.dtype, made.number = base.node.storage, base.node.dtype, base.node.number
    _same_memory(base.node, made)
    if base.node.kind in (Kind.DATA, Kind.CONSTANT):
        made.kind = base.node.kind
        made.cut = base.node.cut
    return Tensor(
        made, base=base, detached=True, uncounted=uncounted or base.uncounted, own_versions=True
    )


def write(
    m: Machine, tensor: Tensor, op: str, inputs: Iterable[Value], node: ir.Node, frame: Frame,
    *, effect: Effect | None = None, result: Value | None = None,
    named: Many[tuple[str, Value]] | None = None,
    refused: str = "", of_part: bool = False,
) -> Tensor:  # fmt: skip
    """Modifies `tensor` in place: a new version of its memory, and a new node where autograd
    records the write.

    What torch refuses changes nothing. `of_part`: a view of the tensor is what is written, as in
    `x[0] = 1`.
    """
    before = tensor.node
    storage = before.storage
    if storage is None:
        storage = before.storage = Storage()
    raises = refused or _refusal(m, tensor, of_part=of_part)
    made, inputs = before, list(inputs)
    if (m.grad.enabled and not tensor.detached) or not _stays(before):
        made = operation(m, op, [before, *inputs], node, frame) if result is None else result
        made.storage, made.dtype, made.name = storage, before.dtype, before.name
        # A tensor made outside of inference mode stays a normal one, whatever is written into it
        # there.
        made.inference, made.inference_at = before.inference, before.inference_at
        if effect is not None and result is None:
            named = [("other", source) for source in inputs] if named is None else named
            _save(made, [(effect.argument(0, method=True), before), *named], effect)
            _refuse_inference(m, made)
    version = storage.version if tensor.uncounted or raises else storage.version + 1
    done = tape.Write(
        op, frame.span(node), m.where, version, not tensor.uncounted, len(m.tape.events),
        (*inputs,),
        effect is not None and effect.maps_input,
    )  # fmt: skip
    if not raises:
        storage.version = version
        storage.writes.append(done)
        for earlier in _counted_on(tensor, storage):
            earlier.version += 1
            earlier.writes.append(replace(done, version=earlier.version))
        if made is not before:
            made.saves = tuple(
                _saved(made, kept.role) or kept if kept.value is made else kept
                for kept in made.saves
            )
        tensor.node = made
        update_views(m, tensor, made, node, frame)
    m.emit(
        tape.InPlace(
            at=done.at, before=before, after=made, write=done, raises=raises, text=frame.text(node)
        )
    )
    return tensor


def _counted_on(tensor: Tensor, storage: Storage) -> Iterator[Storage]:
    """Memory that a tensor, or what it is a view of, had before `x.data = new`: its version counts
    for that still.
    """
    owner: Tensor | None = tensor if not tensor.uncounted else None
    while owner is not None:
        yield from (earlier for earlier in owner.memory_before if earlier is not storage)
        owner = owner.base


def _stays(node: Value) -> bool:
    """Whether a write that autograd does not record leaves a tensor what it was: a frozen parameter
    is still one.
    """
    return node.requires_grad or node.kind is Kind.PARAMETER


def _refusal(m: Machine, tensor: Tensor, *, of_part: bool = False) -> str:
    """Why torch refuses the write at once."""
    node = tensor.node
    if m.grad.enabled and node.requires_grad and not tensor.detached:
        if node.kind in (Kind.PARAMETER, Kind.LEAF) and not node.assumed:
            return "leaf"
        base = tensor.base
        while base is not None:
            if (
                base.node.kind in (Kind.PARAMETER, Kind.LEAF)
                and base.node.requires_grad
                and not base.node.assumed
            ):
                return "leaf"
            base = base.base
    has_versions = tensor.own_versions and not of_part
    if node.inference and not (m.grad.inference or has_versions) and _is_made_here(node):
        return "inference"
    return ""


def _is_made_here(node: Value) -> bool:
    """Whether the operation is in view that made it: what comes from outside was there before it
    was met.
    """
    effect = lookup(node.op) if node.kind is Kind.DATA else None
    return node.kind in (Kind.OPERATION, Kind.CONSTANT) or (effect is not None and effect.creates)


def update_views(m: Machine, written: Tensor, made: Value, node: ir.Node, frame: Frame) -> None:
    """Gives what shares the memory of `written` a node that knows of the write."""
    if written.detached or made.storage is None:
        return
    for other in m.views.get(id(made.storage), ()):
        if not m.grad.enabled and other.node.requires_grad:
            # torch 2.13: what is written under no_grad through a view leaves the graph of its base
            # as it is
            continue
        if other is not written and not other.detached and other.node is not made:
            text = other.node.text
            updated = operation(m, "view", [other.node, made], node, frame)
            updated.storage, updated.dtype, updated.text, updated.name = (
                made.storage,
                other.node.dtype,
                text,
                other.node.name,
            )
            _same_memory(other.node, updated)
            other.node = updated


def as_tensor(m: Machine, abstract: Abstract, node: ir.Node, frame: Frame) -> Tensor:
    """`abstract` as a tensor: itself, or the tensor that something unknown stands for."""
    if isinstance(abstract, Tensor):
        return abstract
    key = m.symbol(abstract)
    known = m.tensors.get(key)
    if known is None:
        made = node_of(m, abstract, node, frame)
        if made is None:
            number = abstract.value if isinstance(abstract, Const) else None
            known = (
                constant(m, "number", node, frame, number)
                if isinstance(abstract, Const)
                else batch(m, "data", node, frame)
            )
        else:
            known = Tensor(made)
            made.storage = made.storage or Storage()
        m.tensors[key] = known
    return known


def is_no_tensor(m: Machine, value: Abstract) -> bool:
    """Whether this path knows that something unknown is no tensor, or a number made of such: `not
    isinstance(x, torch.Tensor)`. A copy of it loses no gradient."""
    if not isinstance(value, Unknown):
        return False
    symbol = value.symbol
    while symbol.key == ("copy",) and symbol.source is not None:
        symbol = symbol.source
    asked = (symbol, symbol.asked)
    denied = (
        key
        for key, holds in m.oracle.facts.truth.items()
        if not holds and key[1] == "isa" and key[0] in asked
    )
    return any("torch.Tensor" in _classes(cls) for *_, cls in denied)


def _classes(asked: object) -> tuple[object, ...]:
    """The names of the classes that `isinstance` was asked for; none of what is not known."""
    return asked if isinstance(asked, tuple) else (asked,) if isinstance(asked, str) else ()


def number(
    m: Machine, tensor: Abstract, op: str, node: ir.Node, frame: Frame, type: str = "number"
) -> Unknown:
    """A Python number (or list, or NumPy array) copied out of a tensor."""
    known = None if is_no_tensor(m, tensor) else node_of(m, tensor, node, frame)
    symbol = m.symbol(tensor).derive(("copy",), m.symbol(tensor).text)
    if type == "number":  # `count.item() > 0` is what `count > 0` is
        symbol.twin = m.symbol(tensor).asked
    if known is None:
        return Unknown(symbol, data=True, type=type)
    made = operation(m, op, [known], node, frame, cut=Cut.COPY, in_torch=False)
    made.dtype = known.dtype
    return Unknown(symbol, data=True, origin=made, type=type)


def python(m: Machine, op: str, args: Many[Abstract], node: ir.Node, frame: Frame) -> Value | None:
    """Arithmetic outside torch on what was copied out of it; None where nothing was."""
    origins = [arg.origin for arg in args if isinstance(arg, Unknown) and arg.origin is not None]
    return operation(m, op, origins, node, frame, in_torch=False) if origins else None
