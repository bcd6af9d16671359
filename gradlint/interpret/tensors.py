"""The model of autograd: the values that operations put on the tape, and what each records."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Sequence as Many
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import fed, unseen
from gradlint.interpret.arguments import given
from gradlint.interpret.saving import refuse_inference, save_as_listed
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    Abstract,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.effects import Effect, may_be_tensors
from gradlint.tape import BESIDE, Cut, DType, Kind, Storage, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

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


def leaf(
    m: Machine,
    symbol: Symbol,
    node: ir.Node,
    frame: Frame,
    *,
    fed: bool = True,
    called: bool = False,
) -> Value:
    """The parameters of an unknown module (or of an unknown callable, `fed` with tensors), as one
    value; where it is `called`, nothing but that says that it is a module.
    """
    known = m.leaves.get(symbol)
    if known is None:
        parameter = tape.Parameter("", unseen.module(m, symbol), frame.span(node))
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
            frozenset({tape.GIVEN_NOTHING, tape.MERELY_CALLED}),
        )
        m.leaves[symbol] = known
    if fed and tape.GIVEN_NOTHING in known.flags:
        known.flags -= {tape.GIVEN_NOTHING}
    if not called:  # model.parameters(), model.train()
        known.flags -= {tape.MERELY_CALLED}
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
        is_data = unknown.data or fed.is_fed_with(m, unknown.symbol)
        kind = Kind.DATA if is_data else Kind.UNKNOWN
        known = value(m, "input", kind, (), node, frame, requires_grad=not is_data, assumed=True)
        known.storage, known.text, known.name = Storage(), unknown.symbol.text, unknown.symbol.text
        known.inference = False  # it came from elsewhere, and may have been there before
        known.arguments = _part_of(unknown.symbol)
        known.flags = m.state.get(BESIDE, {}).get(unknown.symbol.root, frozenset())
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
        save_as_listed(made, named, effect)
        refuse_inference(m, made)
    if made.dtype is DType.UNKNOWN and tensors:
        made.dtype = result_dtype(tensors)
    return Tensor(made)


def name_arguments(
    m: Machine, args: Many[Abstract], kwargs: dict[str, Abstract], node: ir.Node, frame: Frame,
    effect: Effect | None,
    *, method: bool = False,
) -> list[tuple[str, Value]]:  # fmt: skip
    """The tensors among the arguments, each with the name by which the table speaks of it."""
    named = []
    for position, arg in enumerate(args):
        if isinstance(arg, Const):
            continue
        name = effect.argument(position, method=method) if effect is not None else ""
        if effect is not None and _is_mask(arg, name, effect):
            as_tensor(m, arg, node, frame)
        named += [(name, source) for source in sources(m, [arg], node, frame)]
    for name, arg in may_be_tensors(kwargs):
        named += [(name, source) for source in sources(m, [arg], node, frame)]
    return named


def _is_mask(arg: Abstract, name: str, effect: Effect) -> bool:
    """Whether an operation saves what is the answer of a comparison: `torch.where(x > 0, x, y)`."""
    is_answer = isinstance(arg, Unknown) and arg.type == "bool"
    return is_answer and any(save.what == name for save in effect.saves)


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
                else batch(m, "input", node, frame)
            )
            if isinstance(abstract, Unknown):
                known.node.text = key.text
                if abstract.type == "bool":
                    known.node.dtype = DType.BOOL
        else:
            known = Tensor(made)
            made.storage = made.storage or Storage()
            made.flags |= {tape.TENSOR}
            _show_the_whole(m, key, known, node, frame)
        m.tensors[key] = known
    return known


def _show_the_whole(m: Machine, symbol: Symbol, part: Tensor, node: ir.Node, frame: Frame) -> None:
    """Has a slice of data show the memory of what it is a slice of: where it is a tensor, that is
    one, too.

    `labels[:half].view(-1)`
    """
    match symbol.key:
        case "item", ("slice", *_) if symbol.source is not None and part.node.kind is Kind.DATA:
            whole = as_tensor(m, Unknown(symbol.source, data=True), node, frame)
            part.base, part.node.storage = whole, whole.node.storage
            m.views.setdefault(id(whole.node.storage), [whole]).append(part)
