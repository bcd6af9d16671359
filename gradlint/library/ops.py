"""Torch's operations on tensors: methods and functions alike, as the table of effects says."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from collections.abc import Sequence as ListOf
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, estimates, layouts, shapes, tensors
from gradlint.interpret.dtypes import DTYPES, dtype_of
from gradlint.interpret.iteration import is_counted, iterates
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import (
    attribute,
    fallback,
    find_method,
    function,
    hears,
    method,
    tell,
)
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Lib,
    Object,
    Sequence,
    Symbol,
    Tensor,
    Test,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library import losses, sameness
from gradlint.library.autograd import (
    gains_gradient,
    last_backward,
    may_have_gradient,
    refuse_in_transform,
)
from gradlint.library.chance import is_random
from gradlint.library.devices import (
    goes_to,
    is_from_out_of_view,
    is_made_there,
    note_device,
    place,
    send,
)
from gradlint.library.effects import Effect, lookup
from gradlint.library.python import outside
from gradlint.library.python.results import last
from gradlint.tape import Cut, DType, Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Frame, Machine, Visit

_COUNTING = {"any": (">", 0), "sum": None, "count_nonzero": None}
_NEGATIONS, _UNIONS = ("bitwise_not", "invert", "logical_not"), ("bitwise_or", "logical_or")
_PREDICATES = {
    "is_floating_point",
    "is_cuda",
    "is_contiguous",
    "is_complex",
    "is_sparse",
    "is_nonzero",
    "equal",
    "allclose",
}
_CASTS = (
    "to",
    "type",
    "type_as",
    "cuda",
    "cpu",
    "float",
    "double",
    "half",
    "bfloat16",
    "long",
    "int",
    "bool",
    "short",
    "char",
    "byte",
)
_SHAPES = {
    "size",
    "numel",
    "nelement",
    "element_size",
    "get_device",
    "stride",
    "data_ptr",
    "storage_offset",
}
_LISTS = {
    "split",
    "chunk",
    "unbind",
    "tensor_split",
    "split_with_sizes",
    "meshgrid",
    "broadcast_tensors",
    "hsplit",
    "vsplit",
    "dsplit",
}


def result(
    m: Machine,
    name: str,
    args: list[Abstract],
    call: Call,
    effect: Effect | None,
    *,
    is_method: bool,
) -> Abstract:
    """What the operation gives: a tensor, or several."""
    plain = name.removeprefix("torch.").removeprefix("Tensor.").removeprefix("nn.functional.")
    effect = _form(plain, args, call, effect)
    if plain in _LISTS:
        return _several(m, name, args, call, effect, is_method)
    if effect is not None and effect.outputs is not None and _gives_several(plain, args, call):
        return _outputs(m, name, args, call, effect, is_method)
    if (
        effect is not None
        and effect.view
        and args
        and isinstance(args[0], Tensor)
        and _is_view(m, effect, args[0])
    ):
        if effect.itself:
            return args[0]
        shown = tensors.view(m, args[0], name, call.node, call.frame)
        shown.node.arguments = () if call.open else tensors.given(m, args, call.kwargs)
        return shown
    made = tensors.apply(
        m, name, args, call.node, call.frame, effect, kwargs=call.kwargs, method=is_method
    )
    if effect is not None and effect.view in ("ordered", "maybe"):
        made.node.flags |= {tape.MAY_SHARE}
    dtype = dtype_of(call.kwargs.get("dtype"))
    if dtype is not None:
        made.node.dtype = dtype
    if made.node.op in _FLAGGED:
        made.node.flags |= {_FLAGGED[made.node.op]}
    if not made.node.requires_grad:  # torch.normal(0, 1, (3,), requires_grad=True)
        made = _as_declared(m, made, call)
    if (
        effect is not None
        and (made.node.assumed or not made.node.requires_grad)
        and not is_random(plain)
    ):
        _repeat(m, made, plain, args, call)
    return made


def _repeat(m: Machine, made: Tensor, name: str, args: list[Abstract], call: Call) -> None:
    """Asks of what is computed from data what is asked of the same once more: `x.isnan().any()`,
    `mask.sum(0) > 0`.
    """
    if args and isinstance(args[0], Tensor | Unknown) and "out" not in call.kwargs:
        others = (
            *map(m.symbol, args[1:]),
            *((key, m.symbol(call.kwargs[key])) for key in sorted(call.kwargs)),
        )
        m.identify(made.node, m.symbol(args[0]).derive((name, others), made.node.title))


_FLAGGED = {
    f"{prefix}{name}": name
    for name in ("softmax", "log_softmax", "sigmoid", "log", "sqrt", "where", "mean", "sum")
    for prefix in ("torch.", "torch.Tensor.", "torch.nn.functional.")
}


def _form(plain: str, args: list[Abstract], call: Call, effect: Effect | None) -> Effect | None:
    """The table's form of an operation that the arguments ask for."""
    if plain in ("max", "min", "median", "mode", "sum") and (
        "dim" in call.kwargs or _is_number(args, 1)
    ):
        return lookup(plain, "dim") or effect
    if plain in ("max", "min") and len(args) > 1:
        return lookup(plain, "other") or effect
    if call.constant(None, "return_indices") is True:
        return lookup(plain, "indices") or effect
    if plain == "scaled_dot_product_attention" and _is_fused(args, call):
        return lookup(plain, "fused") or effect
    if plain == "pad" and call.constant(2, "mode") in ("reflect", "replicate"):
        return lookup(plain, "reflect") or effect
    mode = call.constant(None, "rounding_mode")
    if plain.removesuffix("_") in ("div", "divide", "true_divide") and isinstance(mode, str):
        return lookup(plain, mode) or effect
    if len(args) > 1 and _is_number(args, 1):
        return lookup(plain, "scalar") or effect
    return effect


def _is_fused(args: list[Abstract], call: Call) -> bool:
    """Whether a fused kernel computes attention: in four dimensions, without dropout, no gradient
    for the mask.
    """
    mask = call.get(3, "attn_mask")
    is_plain = call.open or (isinstance(mask, Tensor) and mask.node.requires_grad)
    if (
        is_plain
        or call.constant(4, "dropout_p", 0.0 if call.get(4, "dropout_p") is None else None) != 0
    ):
        return False
    query = args[0] if args else call.get(None, "query")
    return isinstance(query, Tensor) and layouts.rank(query.node) == 4


def _is_number(args: list[Abstract], position: int) -> bool:
    if len(args) <= position:
        return False
    value = args[position]
    return (isinstance(value, Const) and isinstance(value.value, int | float)) or (
        isinstance(value, Unknown) and value.type == "number"
    )


def _gives_several(plain: str, args: list[Abstract], call: Call) -> bool:
    if plain in ("max", "min", "median", "mode"):
        return "dim" in call.kwargs or _is_number(args, 1)
    return True


def _outputs(
    m: Machine, name: str, args: list[Abstract], call: Call, effect: Effect, is_method: bool
) -> Abstract:
    """Several outputs of one operation; those without a derivative (indices) are cut from it."""
    whole = tensors.apply(
        m, name, args, call.node, call.frame, effect, kwargs=call.kwargs, method=is_method
    )
    made: list[Abstract] = []
    assert effect.outputs is not None
    for position, differentiable in enumerate(effect.outputs):
        if differentiable:
            made.append(tensors.part(m, whole, position, call.node, call.frame))
        else:
            indices = tensors.apply(
                m,
                f"{name}.indices",
                args,
                call.node,
                call.frame,
                INDICES,
                kwargs=call.kwargs,
                method=is_method,
            )
            made.append(indices)
    names = ("values", "indices")
    return Object(
        "torch.return_types",
        call.frame.span(call.node),
        {"items": made},
        dict(zip(names, made, strict=False)),
    )


_MOST_PARTS = 8
INDICES = Effect("indices", differentiable=False, dtype=DType.INTEGER)


def _several(
    m: Machine, name: str, args: list[Abstract], call: Call, effect: Effect | None, is_method: bool
) -> Abstract:
    """`split`, `chunk`, `unbind`: as many parts as the program asks for by unpacking."""
    symbol = (
        m.symbol(args[0])
        if args
        else m.symbol(call.values[0])
        if call.values
        else m.unknown(name).symbol
    )
    parts: list[Abstract] = []
    count = (
        call.constant(1, "chunks")
        if name.endswith("chunk") and isinstance(call.constant(1, "chunks"), int)
        else None
    )
    count = call.constant(0, "chunks", count) if is_method and name.endswith("chunk") else count
    count = _splits(m, args, call, is_method) if name.endswith(".split") else count
    if name.endswith(("meshgrid", "broadcast_tensors")):
        count = len(args)
    whole = tensors.apply(
        m, name, args, call.node, call.frame, effect, kwargs=call.kwargs, method=is_method
    )
    for position in range(_shown_parts(m, count) if isinstance(count, int) else 3):
        if effect is not None and effect.view and args and isinstance(args[0], Tensor):
            part = tensors.view(m, args[0], name, call.node, call.frame)
            part.node.arguments = () if call.open else tensors.given(m, args, call.kwargs)
        else:
            part = tensors.part(m, whole, position, call.node, call.frame)
        m.identify(part.node, symbol.derive((name, position), name))
        part.node.flags |= {"multi-output"}
        parts.append(part)
    left_out = count - len(parts) if isinstance(count, int) and is_counted(m) else 0
    return Sequence(
        "tuple", parts, open=count is None, rest=parts[-1] if parts else None, left_out=left_out
    )


def _splits(m: Machine, args: list[Abstract], call: Call, is_method: bool) -> int | None:
    """Into how many parts a tensor of a known length is split, where all of them are shown."""
    place, name = (0, "split_size") if is_method else (1, "split_size_or_sections")
    sizes, size = call.get(place, name), call.constant(place, name)
    if isinstance(sizes, Sequence) and not sizes.open:
        return len(sizes.items)
    length = estimates.length(m, args[0]) if args and isinstance(args[0], Tensor) else None
    if (
        type(size) is not int
        or size < 1
        or length is None
        or call.get(1 if is_method else 2, "dim") is not None
    ):
        return None
    count = -(-length // size)
    return count if count <= _MOST_PARTS or is_counted(m) else None


def _shown_parts(m: Machine, count: int) -> int:
    return m.session.shown(count) if is_counted(m) else min(count, _MOST_PARTS)


def _is_view(m: Machine, effect: Effect, tensor: Tensor) -> bool:
    """A call that by its nature may copy (`reshape`) is taken to share memory only where it surely
    does.
    """
    is_shown = effect.view == "always" or (
        effect.view == "ordered" and layouts.is_in_order(m, tensor.node)
    )
    return is_shown and not effect.in_place


@method("torch.return_types", "__getitem__")
def _part(m: Machine, value: Object, call: Call) -> Abstract:
    items: ListOf[Abstract] = value.state["items"]
    index = call.constant(0, "")
    is_within = isinstance(index, int) and -len(items) <= index < len(items)
    return items[index] if is_within else items[0]


@iterates("torch.return_types")
def _parts(m: Machine, value: Object, visit: Visit, call: Call) -> None:
    """`values, indices = x.max(dim=1)`."""
    for part in value.state["items"]:
        if visit(part):
            return


@method("torch.Tensor", "*")
def tensor_method(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """Any method of a tensor that has no handler of its own."""
    name = call.name
    effect = lookup(name)
    if name == "size" and call.constant(0, "dim") == 0:
        return length(m, tensor, call)
    if name in ("dim", "ndimension"):
        return _axes(m, tensor)
    is_of_floats = _answer(_is_of_floats(tensor.node)) if name == "is_floating_point" else None
    if is_of_floats is not None:
        return is_of_floats
    if name in _SHAPES or name in _PREDICATES or name.startswith("is_"):
        symbol = m.symbol(tensor).derive(
            (name, tuple(m.symbol(arg) for arg in call.values)), f"{tensor.node.title}.{name}()"
        )
        return Unknown(
            symbol,
            data=True,
            type="bool" if name.startswith("is_") or name in _PREDICATES else "number",
        )
    if effect is not None and effect.in_place:
        return in_place(m, tensor, name, call.args, call, effect)
    if effect is not None and effect.creates:
        return created(m, f"torch.Tensor.{name}", call, effect, like=tensor)
    made = result(m, f"torch.Tensor.{name}", [tensor, *call.args], call, effect, is_method=True)
    if name in _COUNTING and isinstance(made, Tensor) and not call.values:
        _count(m, tensor, made, name)
    return made


def _count(m: Machine, tensor: Tensor, made: Tensor, name: str) -> None:
    """`mask.any()` and `mask.sum() > 0` are one question."""
    count = m.symbol(tensor).derive("count", f"{tensor.node.title}.sum()")
    if name == "any":
        m.tests[id(made.node)] = (made.node, m.oracle.facts.any_of(count.asked))
    else:
        m.identify(made.node, count)
    has_some = shapes.has_some(tensor.node)
    if has_some is None and _is_what_is_left(m, tensor, count.asked):
        has_some = True
    if has_some is not None:  # `torch.ones(4, 8)`: none of the masks that are empty
        m.oracle.facts.learn(Test(count.asked, ">", 0), has_some)


def _is_what_is_left(m: Machine, mask: Tensor, count: Symbol) -> bool:
    """Whether a mask selects something for the others do not, which are the whole with it:
    `~(left | right)`.
    """
    groups: dict[Symbol, list[list[Symbol]]] = m.state.setdefault("masks of a whole", {})
    of = mask.node.inputs[0] if last(mask.node.op) in _NEGATIONS and mask.node.inputs else None
    if of is not None and not any("selection" in value.flags for value in tape.ancestors(of)):
        others = (
            m.symbol(Tensor(part)).derive("count", f"{part.title}.sum()").asked
            for part in _united(of)
        )
        group = [count, *others]
        for each in group:
            groups.setdefault(each, []).append(group)
    known = m.oracle.facts.known
    return any(
        all(known(Test(other, ">", 0)) is False for other in group if other is not count)
        for group in groups.get(count, ())
    )


def _united(mask: Value) -> Iterator[Value]:
    """The masks of which one is the union: of `left | right` these two."""
    waiting, seen = [mask], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if last(part.op) in _UNIONS and len(part.inputs) == 2:
            waiting += part.inputs
        else:
            yield part


def in_place(
    m: Machine, tensor: Tensor, name: str, args: list[Abstract], call: Call, effect: Effect | None
) -> Tensor:
    """`tensor.name_(…)`."""
    before = tensor.node
    effect = _form(name, [tensor, *args], call, effect)
    named = tensors.name_arguments(
        m, [NONE, *args], call.kwargs, call.node, call.frame, effect, method=True
    )
    inputs = [source for _, source in named]
    written = tensors.write(
        m, tensor, f"torch.Tensor.{name}", inputs, call.node, call.frame, effect=effect, named=named
    )
    if written.node is not before:
        written.node.arguments = tensors.given(m, [NONE, *args], call.kwargs)
    if name in ("zero_", "fill_") and not inputs and written.node is not before:
        written.node.zero_gradient = written.node.requires_grad
    return written


def created(
    m: Machine, name: str, call: Call, effect: Effect, like: Tensor | None = None
) -> Tensor:
    """`torch.zeros(…)`, `x.new_ones(…)`, `torch.randn_like(x)`."""
    plain = name.rpartition(".")[2]
    dtype = dtype_of(call.kwargs.get("dtype")) or (
        like.node.dtype if like is not None else _dtype_made(plain, call)
    )
    model = call.get(0, "input") if plain.endswith("_like") else None
    if isinstance(model, Unknown) and not model.data:
        tensors.as_tensor(m, model, call.node, call.frame)  # torch takes nothing else
    if effect.random or plain.startswith(
        ("arange", "linspace", "eye", "empty", "new_empty", "rand")
    ):
        made = tensors.batch(m, name, call.node, call.frame, dtype=dtype)
    else:
        made = tensors.constant(m, name, call.node, call.frame, _fill(plain, call), dtype)
    if plain in shapes.FRESH:
        made.node.arguments = tensors.given(m, _sizes(plain, call), {})
    elif made.node.kind is Kind.DATA:
        made.node.arguments = tensors.given(m, call.args, call.kwargs)
    elif model is not None:
        made.node.arguments = tensors.given(m, [model], {})
    return _as_declared(m, made, call)


def _sizes(plain: str, call: Call) -> list[Abstract]:
    """The sizes that a tensor is made with; none where there can be more of them."""
    first = call.args[0] if call.args else None
    if isinstance(first, Sequence):
        shape, is_open = first.items, first.open
    else:
        shape, is_open = call.args[:1] if plain == "full" else call.args, call.open
    written = [
        Const(size.written, size.at) if isinstance(size, Const) and size.written else size
        for size in shape
    ]
    return [] if is_open else written


def _is_to_require_grad(m: Machine, call: Call) -> bool:
    """Whether a call asks for a leaf, `torch.zeros(3, requires_grad=True)`; a branch, where it
    hangs on a setting.
    """
    given = call.kwargs.get("requires_grad")
    return given is not None and conditions.decide(m, given, call.node, call.frame)


def _as_declared(m: Machine, made: Tensor, call: Call) -> Tensor:
    """What a call makes, as the leaf that it may ask for."""
    if _is_to_require_grad(m, call):
        node = made.node
        node.kind, node.cut, node.requires_grad = Kind.LEAF, None, True
        node.parameter = tape.Parameter("", None, node.at)
    return made


def _dtype_made(plain: str, call: Call) -> DType:
    """The dtype where none is asked for: indices are whole numbers, and a range is of what bounds
    it.
    """
    if plain in ("randint", "randperm", "tril_indices", "triu_indices"):
        return DType.INTEGER
    if plain != "arange" or any(
        isinstance(bound, Const) and isinstance(bound.value, float) for bound in call.args
    ):
        return DType.FLOAT
    are_whole = all(
        isinstance(bound, Const) and isinstance(bound.value, int) for bound in call.args
    )
    return DType.INTEGER if are_whole else DType.UNKNOWN


def _fill(plain: str, call: Call) -> object:
    if "zeros" in plain:
        return 0.0
    if "ones" in plain:
        return 1.0
    if "full" in plain:
        value = call.constant(1, "fill_value")
        return value if isinstance(value, int | float) else None
    return None


@fallback
def torch_function(m: Machine, call: Call) -> Abstract | None:
    """Any function of torch that has no handler of its own."""
    name = call.name
    if not name.startswith("torch."):
        return None
    if (
        name.startswith(("torch.Tensor.", "torch.nn.functional."))
        or name.count(".") == 1
        or name.startswith(_NAMESPACES)
    ):
        effect = lookup(name)
        if effect is None:
            return _unlisted(m, call)
        plain = name.rpartition(".")[2]
        has_handler = plain in _COUNTING or find_method("torch.Tensor", plain)
        if has_handler and isinstance(call.get(0, "input"), Tensor | Unknown):
            return _as_method(m, call)
        if effect.creates and not effect.in_place:
            return created(m, name, call, effect, like=_first_tensor(call))
        if effect.in_place or call.constant(None, "inplace") is True:
            return _functional_in_place(m, call, effect)
        if name.startswith("torch.Tensor.") and call.args and isinstance(call.args[0], Tensor):
            return _as_method(m, call)
        losses.refuses(m, name, call)
        made = result(m, name, call.args, call, effect, is_method=False)
        if isinstance(made, Tensor):
            losses.computed(m, name, made.node, call.frame.text(call.node))
        out = call.kwargs.get("out")
        if isinstance(out, Tensor) and isinstance(made, Tensor):
            return _out(m, out, made, call)
        return made
    return None


def _as_method(m: Machine, call: Call) -> Abstract:
    """`torch.detach(x)`, `torch.Tensor.mean(x, 0)`: what the method of that name gives."""
    named = dict(call.kwargs)
    owner, rest = (call.args[0], call.args[1:]) if call.args else (named.pop("input"), [])
    return m.invoke(m.attribute(owner, call.name.rpartition(".")[2], call), rest, call, **named)


_NAMESPACES = (
    "torch.linalg.",
    "torch.fft.",
    "torch.special.",
    "torch.sparse.",
    "torch.signal.",
    "torch.masked.",
)


def _first_tensor(call: Call) -> Tensor | None:
    return next((value for value in call.values if isinstance(value, Tensor)), None)


def _unlisted(m: Machine, call: Call) -> Abstract | None:
    """A name of torch that is no operation: `torch.manual_seed`, `torch.device`."""
    if call.name.startswith("torch.nn.functional."):
        return tensors.apply(
            m, call.name, call.args, call.node, call.frame, None, kwargs=call.kwargs
        )
    if (
        tensors.sources(m, call.values, call.node, call.frame)
        and call.name.rpartition(".")[2][:1].islower()
    ):
        return tensors.apply(
            m, call.name, call.args, call.node, call.frame, None, kwargs=call.kwargs
        )
    return Unknown(
        m.session.library_symbol(call.name).derive(call.frame.text(call.node), call.name), data=True
    )


def _functional_in_place(m: Machine, call: Call, effect: Effect) -> Abstract:
    """`F.relu(x, inplace=True)`, `torch.relu_(x)`: what torch takes there is a tensor."""
    written = call.get(0, "input")
    if not isinstance(written, Tensor | Unknown):
        return m.unknown(call.name)
    tensor = tensors.as_tensor(m, written, call.node, call.frame)
    twin = effect if effect.in_place else lookup(call.name.removesuffix("_") + "_") or effect
    return in_place(
        m, tensor, call.name.rpartition(".")[2].removesuffix("_") + "_", call.args[1:], call, twin
    )


def _out(m: Machine, out: Tensor, made: Tensor, call: Call) -> Tensor:
    """`out=`: torch refuses it where an input, or what is written, requires grad (2.13)."""
    sources = made.node.inputs
    refused = (
        "out"
        if m.grad.enabled and any(source.requires_grad for source in (out.node, *sources))
        else ""
    )
    return tensors.write(
        m, out, f"{call.name}.out", sources, call.node, call.frame, refused=refused
    )


# what leaves torch


@method("torch.Tensor", "item", "tolist", "numpy", "__float__", "__int__", "__array__")
def copied_out(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    if call.called == "numpy" and _is_prediction(m, tensor.node):
        at = call.frame.span(call.node)
        # torch refuses it, so that nobody gives a prediction
        raise Raised(Object("builtins.RuntimeError", at), at)
    kind = "array" if call.called in ("numpy", "tolist", "__array__") else "number"
    number = tensors.number(m, tensor, f"torch.Tensor.{call.called}", call.node, call.frame, kind)
    if call.called == "numpy" and number.origin is not None:
        number.origin.storage = tensor.node.storage
    return (
        Const(tensor.node.number)
        if isinstance(tensor.node.number, int | float) and kind == "number"
        else number
    )


def _is_prediction(m: Machine, node: tape.Value) -> bool:
    """Whether it requires grad because an argument of a loss in a part is taken to, and by nothing
    else.
    """
    leaves = (
        list(tape.leaves(node)) if m.session.contract and m.session.contract != "forward" else []
    )
    return bool(leaves) and all(leaf.kind is Kind.UNKNOWN for leaf in leaves)


@method("torch.Tensor", "detach")
def detach(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    return tensors.detach(m, tensor, "torch.Tensor.detach", call.node, call.frame)


@attribute("torch.Tensor", "data")
def data(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    known = tensor.attrs.get("<data>")
    if isinstance(known, Tensor) and known.node.storage is tensor.node.storage:
        return known
    return tensors.detach(m, tensor, "torch.Tensor.data", at.node, at.frame, uncounted=True)


@method("torch.Tensor", "__set_data__")
def set_data(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`x.data = new`: other memory; what was saved keeps the old, and is out of date with the next
    write to `x`.

    That a parameter is set so is a fact `data-set`.
    """
    new = tensors.node_of(m, call.args[0], call.node, call.frame)
    if tensor.node.parameter is not None:
        at, text = call.frame.span(call.node), call.frame.text(call.node)
        m.emit(
            tape.Fact(
                at=at,
                what="data-set",
                value=tensor.node,
                source=new,
                detail="torch.Tensor.data",
                text=text,
            )
        )
    if tensor.node.storage is not None and not tensor.uncounted:
        tensor.memory_before = (*tensor.memory_before, tensor.node.storage)
    tensor.node.storage = tape.Storage()
    if new is not None and new.storage is not None:
        tensor.node.storage = new.storage
    return NONE


@method("torch.Tensor", "detach_")
def detach_in_place(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    made = tensors.detach(m, tensor, "torch.Tensor.detach_", call.node, call.frame)
    tensor.node = made.node
    return tensor


@method("torch.Tensor", "requires_grad_")
def requires_grad_(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    refuse_in_transform(m, "requires_grad_", call)
    wanted = call.constant(0, "requires_grad", True)
    set_requires_grad(m, tensor, wanted is not False, call, "torch.Tensor.requires_grad_")
    return tensor


@method("torch.Tensor", "__set_requires_grad__")
def assign_requires_grad(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    wanted = conditions.truth(m, call.args[0])
    if wanted is not None:
        set_requires_grad(m, tensor, wanted, call, "requires_grad")
    elif tensor.node.parameter is not None:
        tensor.node.assumed = True
        set_requires_grad(
            m,
            tensor,
            conditions.decide(m, call.args[0], call.node, call.frame),
            call,
            "requires_grad",
        )
    return NONE


def set_requires_grad(m: Machine, tensor: Tensor, wanted: bool, call: Call, op: str) -> None:
    """Makes a tensor a leaf that requires grad, or freezes one."""
    from gradlint.library import holdings

    node = tensor.node
    if node.parameter is not None:
        at, what = call.frame.span(call.node), "thawed" if wanted else "frozen"
        m.emit(tape.Fact(at=at, what=what, value=node, text=call.frame.text(call.node)))
    is_refused = op == "requires_grad" or (op == "torch.Tensor.requires_grad_" and not wanted)
    if is_refused and node.records and not node.is_leaf:
        _refuses_flag(m, node, call)
    if not wanted:
        holdings.freezes_data(m, tensor, call)
    if wanted == node.requires_grad:
        holdings.freezes_rows(m, tensor, call)
        return
    if wanted:
        if node.parameter is not None and node.kind is Kind.PARAMETER:
            made = _again(m, node, call)
            made.requires_grad, made.cut = True, None
        else:
            if node.inference and not m.grad.inference:
                m.emit(
                    tape.Fact(
                        at=call.frame.span(call.node),
                        what="inference-tensor-used",
                        value=node,
                        detail=op,
                    )
                )
            made = tensors.value(
                m,
                op,
                Kind.LEAF,
                (node,),
                call.node,
                call.frame,
                requires_grad=True,
                dtype=node.dtype,
            )
            made.parameter = tape.Parameter(node.name, None, made.at)
            made.number, made.inference, made.inference_at = None, node.inference, node.inference_at
            tensor.detached = False
            if node.inference and not m.grad.inference:
                m.emit(
                    tape.Fact(
                        at=made.at, what="inference-tensor", value=node, detail="requires_grad"
                    )
                )
    elif node.kind in (Kind.PARAMETER, Kind.LEAF):
        made = _again(m, node, call)
        made.requires_grad, made.cut, made.cut_at, made.cut_stack = (
            False,
            Cut.FROZEN,
            call.frame.span(call.node),
            m.where,
        )
        if holdings.is_named(node, call):
            made.flags |= {"frozen-by-name"}
    else:
        return
    made.storage, made.name = node.storage, node.name
    tensor.node = made
    if wanted:
        holdings.thaws_rows(m, tensor, call)


def _refuses_flag(m: Machine, node: tape.Value, call: Call) -> None:
    """Ends the program as torch does: the flag of what is computed from what requires grad cannot
    be set (torch 2.13).

    `requires_grad_()` alone asks for what is so already.
    """
    if all(value.assumed for value in tape.leaves(node)):
        return
    at = call.frame.span(call.node)
    m.emit(tape.Fact(at=at, what="flag-refused", value=node))
    raise Raised(Object("builtins.RuntimeError", at), at)


def _again(m: Machine, node: tape.Value, call: Call) -> tape.Value:
    """The same parameter as a new value."""
    made = tensors.value(
        m, node.op, node.kind, (), call.node, call.frame, assumed=node.assumed, dtype=node.dtype
    )
    made.parameter, made.at, made.stack, made.text = node.parameter, node.at, node.stack, node.text
    return made


@attribute("torch.Tensor", "requires_grad")
def requires_grad(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    node = tensor.node
    if node.assumed:
        test = _grad_test(m, tensor)
        m.state.setdefault("grad-tests", {})[test.subject] = node
        return (
            conditions.boolean(m, test, f"{node.title}.requires_grad")
            if node.requires_grad
            else FALSE
        )
    return TRUE if node.requires_grad else FALSE


def _grad_test(m: Machine, tensor: Tensor) -> Test:
    """The question whether a tensor out of view requires grad."""
    return Test(
        m.symbol(tensor).derive("requires_grad", f"{tensor.node.title}.requires_grad"), "true"
    )


@attribute("torch.Tensor", "is_leaf")
def is_leaf(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return FALSE if tensor.node.records else TRUE


@attribute("torch.Tensor", "grad_fn")
def grad_fn(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    if not tensor.node.records:
        return NONE
    return Object("torch.autograd.graph.Node", at.frame.span(at.node))


@attribute("torch.Tensor", "grad")
def grad(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    """The gradient: a tensor without a graph (with one where a backward created it)."""
    from gradlint.library import holdings

    holdings.reads_gradient(m, tensor, at)
    last = last_backward(m)
    is_frozen = tensor.node.assumed and m.oracle.facts.known(_grad_test(m, tensor)) is False
    if is_frozen or not may_have_gradient(m, tensor.node):
        tensor.grad = None
        return NONE
    if tensor.grad is None or _is_of_another(tensor.grad, last):
        made = _gradient(m, tensor, last, at)
        made.node.name = f"{tensor.node.title}.grad"
        made.attrs["<of>"] = tensor
        tensor.grad = made
    if (
        isinstance(tensor.grad, Tensor) and tensor.grad.attrs.get("<of>") is tensor
    ):  # once written, it has a new node
        tensor.grad.node.flags |= {"gradient"}
        tensor.grad.node.parameter = tensor.node.parameter
    if tensor.grad is not NONE and m.state.get("glance") is not at.node:
        m.emit(
            tape.Clip(
                at=at.frame.span(at.node),
                parameters=(tensor.node,),
                reads_only=True,
                text=at.frame.text(at.node),
            )
        )
    return tensor.grad


def _gradient(m: Machine, tensor: Tensor, last: tape.Backward | None, at: Call) -> Tensor:
    if last is None or not last.create_graph or not tensor.node.requires_grad:
        return tensors.batch(m, "torch.Tensor.grad", at.node, at.frame)
    made = tensors.value(
        m, "torch.Tensor.grad", Kind.OPERATION, (last.value, tensor.node), at.node, at.frame
    )
    made.requires_grad, made.assumed = True, last.value.assumed  # in whatever grad mode it is read
    return Tensor(made)


def _is_of_another(gradient: Abstract, last: tape.Backward | None) -> bool:
    """Whether a gradient with a graph is that of an earlier backward."""
    if (
        not isinstance(gradient, Tensor)
        or gradient.node.op != "torch.Tensor.grad"
        or not gradient.node.inputs
    ):
        return False
    return last is not None and gradient.node.inputs[0] is not last.value


@method("torch.Tensor", "__set_grad__")
def set_grad(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`x.grad = g`; of what is no leaf it is a plain attribute, which reads as it was set."""
    from gradlint.library import holdings

    given, kept = call.args[0], m.state.setdefault("grad-kept", set())
    is_none = isinstance(given, Const) and given.value is None
    if is_none or holdings.constant_zero(given):
        m.emit(
            tape.ZeroGrad(at=call.frame.span(call.node), optimizer=None, parameters=(tensor.node,))
        )
        tensor.grad = None
    else:
        m.emit(tape.Fact(at=call.frame.span(call.node), what="gradient-set", value=tensor.node))
        tensor.grad = given
    if is_none:
        kept.discard(id(tensor.node))
        return NONE
    kept.add(id(tensor.node))
    gains_gradient(m, tensor.node)
    return NONE


@attribute("torch.Tensor", "shape")
def shape(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    """The sizes, the first of which is the tensor's length."""
    sizes = Unknown(
        m.symbol(tensor).derive("shape", f"{tensor.node.title}.shape"), data=True, type=""
    )
    known = m.overrides[sizes.symbol]
    known.setdefault(f"item:{m.symbol(Const(0))}", length(m, tensor, at))
    written = shapes.shape(tensor.node) or ()
    for axis, size in enumerate(written):
        if type(size) is int:
            made = length(m, tensor, at) if axis == 0 else _size(m, sizes, axis, size)
            for index in (axis, axis - len(written)):
                known.setdefault(f"item:{index or m.symbol(Const(index))}", made)
    return sizes


def _size(m: Machine, sizes: Unknown, axis: int, size: int) -> Unknown:
    """A size that the program writes down: a number of which questions are answered."""
    made = Unknown(
        sizes.symbol.derive(("size", axis), f"{sizes.symbol.text}[{axis}]"),
        data=True,
        type="number",
    )
    _bind(m, made.symbol, size)
    return made


def _bind(m: Machine, symbol: Symbol, number: int) -> None:
    """Has a number be known where it is compared, and nowhere else: rounds are not counted by
    it.
    """
    m.oracle.facts.low[symbol.asked] = m.oracle.facts.high[symbol.asked] = (number, False)


@attribute("torch.Tensor", "ndim")
def ndim(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return _axes(m, tensor)


def _axes(m: Machine, tensor: Tensor) -> Abstract:
    """How many axes a tensor has; a number where the program writes down the sizes of what it is
    computed from.
    """
    known = layouts.rank(tensor.node)
    if known is not None:
        return Const(known)
    return Unknown(
        m.symbol(tensor).derive("ndim", f"{tensor.node.title}.ndim"), data=True, type="number"
    )


@attribute("torch.Tensor", "device")
def device(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return Unknown(
        m.symbol(tensor).derive("device", f"{tensor.node.title}.device"), data=True, type="object"
    )


@attribute("torch.Tensor", "dtype")
def dtype(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    state = {"dtype": tensor.node.dtype, "floats": _is_of_floats(tensor.node)}
    return Object("torch.dtype", at.frame.span(at.node), state)


@attribute("torch.dtype", "is_floating_point")
def dtype_of_floats(m: Machine, dtype: Object, at: Call) -> Abstract | None:
    """`x.dtype.is_floating_point`."""
    return _answer(dtype.state.get("floats"))


def _is_of_floats(node: Value) -> bool | None:
    """Whether a tensor holds floats: what carries a gradient does, what was cast to integers does
    not.
    """
    return True if node.requires_grad else None if node.dtype.is_differentiable else False


def _answer(known: bool | None) -> Abstract | None:
    return None if known is None else TRUE if known else FALSE


@attribute("torch.Tensor", "is_cuda")
def is_cuda(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return Unknown(m.symbol(tensor).derive("is_cuda", "is_cuda"), data=True, type="bool")


@attribute("torch.Tensor", "T")
@attribute("torch.Tensor", "mT")
@attribute("torch.Tensor", "real")
@attribute("torch.Tensor", "imag")
def transposed(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return tensors.view(m, tensor, "torch.Tensor.T", at.node, at.frame)


# casts


@method("torch.Tensor", *_CASTS)
def cast(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`.to(…)`, `.float()`, `.cuda()`: the graph is kept, unless the dtype has no gradient."""
    place(m, call)
    name = call.called
    wanted = DTYPES.get(name) if name in DTYPES else _wanted_dtype(m, call)
    if name in ("char", "byte"):
        wanted = DType.INTEGER
    return converted(m, tensor, f"torch.Tensor.{name}", wanted, call)


def _wanted_dtype(m: Machine, call: Call) -> DType | None:
    for value in call.values:
        if isinstance(value, Tensor) and call.called in ("to", "type_as"):
            return value.node.dtype
        found = dtype_of(value)
        if found is not None:
            return found
    return None


def _asks_for_float32(call: Call) -> bool:
    asked = [value.name for value in call.values if isinstance(value, Lib)]
    return call.called == "float" or (
        len(call.values) == 1 and asked in (["torch.float32"], ["torch.float"])
    )


def converted(m: Machine, tensor: Tensor, name: str, wanted: DType | None, call: Call) -> Tensor:
    node = tensor.node
    if call.values and all(
        isinstance(value, Const) and value.value is None for value in call.values
    ):
        return tensor  # `x.to(device)` with the default of `device=None`
    if wanted is not None and not wanted.is_differentiable:
        made = tensors.operation(m, name, [node], call.node, call.frame, differentiable=False)
        made.flags |= {tape.CAST}
    elif (
        not node.requires_grad
        and node.kind in (Kind.CONSTANT, Kind.DATA)
        and "memory_format" not in call.kwargs
    ):
        if "in-numpy" not in node.flags and (
            wanted in (None, node.dtype) or node.dtype is DType.UNKNOWN
        ):
            send(m, node, call)
            return tensor
        made = copy.copy(node)  # another tensor: what requires grad from now on is this one alone
    elif not m.autocast and sameness.changes_nothing(m, tensor, wanted, call):
        return tensor
    else:
        made = tensors.operation(m, name, [node], call.node, call.frame)
        if call.constant(None, "copy") is not True:
            made.flags |= {tape.MAY_SHARE}
        if _goes_nowhere(m, node, call) if wanted is None else _asks_for_float32(call):
            # where it was made there, and so: then torch gives back the very tensor
            made.flags |= {"stays-put"}
        if wanted is not None:
            made.flags |= {"converted"}
    made.dtype = wanted or node.dtype
    made.storage = tape.Storage()
    if node.number in (0, 1):
        made.number, made.arguments = node.number, node.arguments
    m.identify(made, m.symbol(tensor))
    made.flags |= {"cast"}
    return Tensor(made)


def _goes_nowhere(m: Machine, node: tape.Value, call: Call) -> bool:
    """Whether a tensor is sent where it may be: to the CPU, or the device of what it was computed
    from.
    """
    made_of = list(tape.ancestors(node))
    for leaf in tape.ancestors(node):
        wrapped = m.state.get("wrapped", {}).get(id(leaf))  # by an `nn.Parameter`
        made_of += tape.ancestors(wrapped) if wrapped is not None else ()
    return (
        goes_to(m, call) == "cpu"
        or is_made_there(m, made_of, call)
        or is_from_out_of_view(m, made_of)
    )


@method("torch.Tensor", "retain_grad")
def retain_grad(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """Its gradient will be kept, although it is no leaf."""
    m.state.setdefault("grad-kept", set()).add(id(tensor.node))
    return NONE


@method("torch.Tensor", "pin_memory", "share_memory_", "rename")
def unchanged(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    return tensor


@method("torch.Tensor", "contiguous")
def contiguous(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """`x.contiguous()`: the very tensor where its elements lie in order, else what has its numbers
    in other memory.
    """
    if not call.values and layouts.is_in_order(m, tensor.node):
        return tensor
    made = tensors.apply(
        m, "torch.Tensor.contiguous", [tensor], call.node, call.frame, lookup("contiguous")
    )
    made.node.flags |= {tape.MAY_SHARE}
    m.identify(made.node, m.symbol(tensor))
    return made


@method("torch.Tensor", "register_hook")
def register_hook(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    if tensor.node.parameter is not None:
        m.emit(tape.Fact(at=call.frame.span(call.node), what="parameter-hooked", value=tensor.node))
    tell("data call", m, m.symbol(tensor), call)
    return m.unknown("hook", data=True)


@method("torch.Tensor", "__len__")
def length(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    symbol = m.symbol(tensor).derive("len", f"len({tensor.node.title})")
    m.state.setdefault("lengths", {})[symbol] = estimates.length(m, tensor)
    known = shapes.known_length(tensor)
    if known is not None:
        _bind(m, symbol, known)
    return Unknown(symbol, data=True, type="number")


# what comes into torch


@function(
    "torch.tensor",
    "torch.FloatTensor",
    "torch.LongTensor",
    "torch.IntTensor",
    "torch.ShortTensor",
    "torch.ByteTensor",
    "torch.CharTensor",
    "torch.DoubleTensor",
    "torch.BoolTensor",
    "torch.Tensor",
    "torch.cuda.FloatTensor",
    "torch.cuda.LongTensor",
    "torch.HalfTensor",
)
def from_values(m: Machine, call: Call) -> Abstract:
    """`torch.tensor(x)` copies values: whatever graph they had stays behind."""
    note_device(m, call)
    content = call.get(0, "data")
    return copied_in(m, content, call)


@method("torch.Tensor", "new_tensor")
def new_tensor(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    return copied_in(m, call.get(0, "data"), call)


@function(
    "torch.as_tensor",
    "torch.asarray",
    "torch.from_numpy",
    "torch.Tensor.as_subclass",
    "torch.scalar_tensor",
)
def as_tensor(m: Machine, call: Call) -> Abstract:
    content = call.get(0, "data")
    if isinstance(content, Tensor):
        wanted = dtype_of(call.kwargs.get("dtype"))
        return converted(m, content, call.name, wanted, call) if wanted is not None else content
    if (
        isinstance(content, Unknown)
        and content.origin is None
        and content.type == ""
        and not content.data
    ):
        known = m.nodes.get(content.symbol)
        if call.name != "torch.from_numpy":
            tensor = tensors.as_tensor(m, content, call.node, call.frame)
            return _perhaps_copied(m, tensor, call) if tensor.node.assumed else tensor
        if known is None or known.assumed:  # an array: torch refuses a tensor
            return tensors.batch(m, call.name, call.node, call.frame)
    made = copied_in(m, content, call)
    if call.name == "torch.from_numpy" and isinstance(content, Unknown) and content.type == "array":
        _shares_memory(m, content, made, call)
    return made


def _perhaps_copied(m: Machine, tensor: Tensor, call: Call) -> Tensor:
    """The tensor of something unknown: of a list it is a copy, and writes to an array are not
    counted.
    """
    made = tensors.operation(
        m, call.name, [tensor.node], call.node, call.frame, dtype=tensor.node.dtype
    )
    made.flags |= {tape.MAY_SHARE}
    made.storage, made.name = tape.Storage(), tensor.node.name
    return Tensor(made)


def _shares_memory(m: Machine, array: Unknown, tensor: Tensor, call: Call) -> None:
    """Makes what is written into the array from now on a write to the tensor, but not to what that
    is converted to.

    An array of doubles, which `.float()` copies, is not told from one of floats, which it gives
    back as it is.
    """
    tensor.node.flags |= {"in-numpy"}
    if array.origin is None:
        array.origin = tensors.batch(m, "numpy.ndarray", call.node, call.frame).node
        array.origin.storage = tensor.node.storage


WRITTEN_OUT = frozenset(["written-out"])  # on a leaf: it begins as numbers that the program writes


def copied_in(m: Machine, content: Abstract | None, call: Call) -> Tensor:
    """A tensor of copied values: a constant, data, or the end of a route."""
    node, frame = call.node, call.frame
    dtype = dtype_of(call.kwargs.get("dtype")) or _literal_dtype(call.name, content)
    if content is not None and tensors.is_no_tensor(m, content):
        # whether this path is taken, who knows
        return tensors.as_tensor(m, m.unknown(frame.text(node)), node, frame)
    origins = tensors.sources(m, [content], node, frame) if content is not None else []
    leaf = _is_to_require_grad(m, call)
    if origins:
        made = tensors.operation(m, call.name, origins, node, frame, cut=Cut.COPY, dtype=dtype)
        made.storage = (
            origins[0].storage or tape.Storage()
            if call.name == "torch.from_numpy"
            else tape.Storage()
        )
        if all(origin.kind is Kind.CONSTANT for origin in origins) and made.cut is None:
            made.kind, made.cut = Kind.CONSTANT, Cut.CONSTANT
        elif not any(origin.requires_grad or origin.inputs for origin in origins):
            made.kind = Kind.DATA
        tensor = Tensor(made)
    elif isinstance(content, Const) or _is_written_out(content):
        number = (
            content.value
            if isinstance(content, Const) and isinstance(content.value, int | float)
            else None
        )
        tensor = tensors.constant(m, call.name, node, frame, number, dtype)
        m.state.setdefault("written-out", {})[id(tensor.node)] = content
    else:
        tensor = tensors.batch(m, call.name, node, frame, dtype=dtype)
    if leaf:
        before = tensor.node
        made = tensors.value(
            m,
            call.name,
            Kind.LEAF,
            (before,) if origins else (),
            node,
            frame,
            requires_grad=True,
            dtype=before.dtype,
        )
        made.storage, made.parameter = tape.Storage(), tape.Parameter("", None, made.at)
        made.flags = WRITTEN_OUT if before.kind is Kind.CONSTANT else frozenset()
        tensor = Tensor(made)
    return tensor


def _is_written_out(content: Abstract | None) -> bool:
    return (
        isinstance(content, Sequence)
        and bool(content.items)
        and all(isinstance(item, Const) or _is_written_out(item) for item in content.items)
    )


def _literal_dtype(name: str, content: Abstract | None) -> DType:
    if any(kind in name for kind in ("Long", "Int", "Short", "Byte", "Char")):
        return DType.INTEGER
    if "Bool" in name:
        return DType.BOOL
    first = content
    while isinstance(first, Sequence) and first.items:
        first = first.items[0]
    if isinstance(first, Const) and isinstance(first.value, bool):
        return DType.BOOL
    if (
        isinstance(first, Const)
        and isinstance(first.value, int)
        and not name.endswith(("Tensor", "FloatTensor"))
    ):
        return DType.INTEGER
    return DType.FLOAT if isinstance(first, Const) else DType.UNKNOWN


@function("torch.autograd.Variable")
def variable(m: Machine, call: Call) -> Abstract:
    """`Variable(x)` is `x` without its graph; with `requires_grad=True` it is a new leaf over the
    same data.
    """
    content = call.get(0, "data")
    if call.constant(1, "requires_grad") is not True or content is None:
        if isinstance(content, Tensor) and content.node.requires_grad and not content.node.assumed:
            return tensors.detach(m, content, call.name, call.node, call.frame)
        return content or m.unknown("Variable")
    tensor = tensors.as_tensor(m, content, call.node, call.frame)
    node = tensor.node
    made = tensors.value(
        m,
        call.name,
        Kind.LEAF,
        (node,),
        call.node,
        call.frame,
        requires_grad=True,
        dtype=node.dtype,
    )
    made.storage, made.parameter = node.storage, tape.Parameter("", None, made.at)
    return Tensor(made)


@function("torch._assert", "torch._assert_async")
def assert_(m: Machine, call: Call) -> Abstract:
    """`torch._assert(condition, message)`: on a GPU the asynchronous one ends the program later."""
    value = conditions.asked(m, call.get(0, "condition") or NONE)
    conditions.assume(m, value, call.frame.span(call.node), call.frame.text(call.node))
    return NONE


@function("torch.is_tensor")
def is_tensor(m: Machine, call: Call) -> Abstract:
    value = call.get(0, "obj")
    if isinstance(value, Unknown) and value.type in ("", "tensor"):
        return conditions.boolean(
            m, Test(m.symbol(value).asked, "isa", "torch.Tensor"), call.frame.text(call.node)
        )
    return TRUE if isinstance(value, Tensor) else FALSE


@function("torch.numel", "torch.is_floating_point", "torch.is_complex")
def number_of(m: Machine, call: Call) -> Abstract:
    value = call.values[0] if call.values else NONE
    name = call.name.rpartition(".")[2]
    is_of_floats = _answer(_is_of_floats(value.node)) if isinstance(value, Tensor) else None
    if name == "is_floating_point" and is_of_floats is not None:
        return is_of_floats
    return Unknown(
        m.symbol(value).derive((name, ()), f"{name}()"),
        data=True,
        type="number" if name == "numel" else "bool",
    )


@function("torch.einsum")
def einsum(m: Machine, call: Call) -> Abstract:
    return tensors.apply(m, call.name, call.args[1:], call.node, call.frame, lookup("matmul"))


_UNPICKLED = (
    "torch.load",
    *(f"{name}.{load}" for name in ("pickle", "cloudpickle", "dill") for load in ("load", "loads")),
)


@function(*_UNPICKLED, "torch.hub.load")
def loaded(m: Machine, call: Call) -> Abstract:
    """What a file or a configuration says: weights, a whole model, anything."""
    found = m.unknown(call.frame.text(call.node), data=call.name in _UNPICKLED)
    m.state.setdefault("loaded", set()).add(found.symbol)
    return found


@function(
    "torch.manual_seed",
    "torch.save",
    "torch.get_rng_state",
    "torch.set_rng_state",
)
def plain(m: Machine, call: Call) -> Abstract:
    return m.unknown(call.name, data=True, type="object")


_MOVING = ("to", "type", "cuda")  # the methods that take the name of a device or type
_OF_ARRAYS = {
    f"torch.Tensor.{name}"
    for name in ("flatten", "ravel", "reshape", "squeeze", "transpose", "__getitem__")
}
_LISTS_OF_MODULES = [
    ("attribute", name) for name in ("modules", "children", "named_modules", "named_children")
]


@hears("discarded")
def discarded(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """A method that changes nothing in place, called for nothing: `x.detach()` as a statement, or
    `x.requires_grad`.
    """
    if isinstance(node, ir.Attribute) and node.name == "requires_grad":
        at, text = frame.span(node), frame.text(node)
        m.emit(
            tape.Fact(
                at=at, what="discarded-result", detail="torch.Tensor.requires_grad", text=text
            )
        )
    if (
        isinstance(value, Tensor)
        and value.node.at == frame.span(node)
        and not value.node.op.endswith("_")
    ):
        op = value.node.op
        is_method = (
            op.startswith("torch.Tensor.") and lookup(op) is not None and not op.endswith("__")
        )
        is_known = op == "torch.Tensor.detach" or not _is_guessed(value.node)
        if is_method and is_known and not _is_run(m, node, frame) and not _is_repeated(m, node):
            m.emit(
                tape.Fact(
                    at=value.node.at,
                    what="discarded-result",
                    value=value.node,
                    detail=op,
                    text=frame.text(node),
                )
            )


def _is_run(m: Machine, node: ir.Node, frame: Frame) -> bool:
    """Whether the receiver is something unknown that is a module: it is called, has parameters, or
    is one's part.
    """
    receiver = (
        node.function.target
        if isinstance(node, ir.Call) and isinstance(node.function, ir.Attribute)
        else None
    )
    owner = m.evaluate(receiver, frame) if isinstance(receiver, ir.Name) else None
    return isinstance(owner, Unknown) and (
        owner.symbol in m.leaves or _is_listed_module(owner.symbol)
    )


def _is_repeated(m: Machine, node: ir.Node) -> bool:
    """Whether a loop does nothing but this, the same in each round: it warms something up, or
    measures it.
    """
    loop = m.loops[-1].node if m.loops else None
    if not isinstance(loop, ir.For) or [getattr(each, "value", None) for each in loop.body] != [
        node
    ]:
        return False
    changing = {each.id for each in ir.within([loop.target]) if isinstance(each, ir.Name)}
    return not any(isinstance(each, ir.Name) and each.id in changing for each in ir.within([node]))


def _is_listed_module(symbol: Symbol) -> bool:
    """Whether it comes out of `model.modules()` or the like."""
    part: Symbol | None = symbol
    while part is not None and part.key not in _LISTS_OF_MODULES:
        part = part.source or (part.twin.source if part.twin is not None else None)
    return part is not None


def _is_guessed(result: tape.Value) -> bool:
    """Whether the method is all that speaks for a tensor; its unused result speaks against:
    `logger.log()`.
    """
    receiver = next(iter(result.inputs), None)
    while receiver is not None and receiver.op in _OF_ARRAYS and receiver.inputs:
        # so have arrays of whatever: `axes.flatten()[0].scatter(x, y)`
        receiver = receiver.inputs[0]
    if receiver is not None and outside.is_outside(_made_by(receiver)):
        return True
    if (
        receiver is not None
        and receiver.op.startswith("torch.Tensor.")
        and lookup(receiver.op) is None
    ):
        return True  # no tensor has what gave it: `model.eval().to("cpu")`
    if receiver is None or receiver.op not in ("input", "call", "part"):
        return receiver is None
    # `result.log("loss", loss)`
    says = any(isinstance(given, str) for _, given in result.arguments)
    return receiver.assumed or (says and result.op.rpartition(".")[2] not in _MOVING)


def _made_by(value: tape.Value) -> str:
    """The function that made what the methods of tensors, or what was taken for them, were called
    on.
    """
    while value.op.startswith("torch.Tensor.") and value.inputs:
        value = value.inputs[0]
    return value.op
