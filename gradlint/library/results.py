"""What an operation gives: one tensor, several outputs, views or parts."""

from __future__ import annotations

from collections.abc import Sequence as ListOf
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import arguments, conditions, estimates, layouts, memory, tensors
from gradlint.interpret.axes import rank
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.iteration import is_counted, iterates
from gradlint.interpret.registry import (
    method,
)
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.chance import is_nothing, is_random
from gradlint.library.creation import as_declared_leaf
from gradlint.library.effects import Effect, lookup
from gradlint.tape import DType

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.tables import Visit
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
    if args and isinstance(args[0], Unknown) and _lets_through(m, plain, call):
        return args[0]
    effect = _form(m, plain, args, call, effect)
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
        shown = memory.view(m, args[0], name, call.node, call.frame)
        shown.node.arguments = () if call.open else arguments.given(m, args, call.kwargs)
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
        made = as_declared_leaf(m, made, call)
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


def _form(
    m: Machine, plain: str, args: list[Abstract], call: Call, effect: Effect | None
) -> Effect | None:
    """The table's form of an operation that the arguments ask for."""
    if plain in ("max", "min", "median", "mode", "sum") and (
        "dim" in call.kwargs or _is_number(args, 1)
    ):
        return lookup(plain, "dim") or effect
    if plain in ("max", "min") and len(args) > 1:
        return lookup(plain, "other") or effect
    if call.constant(None, "return_indices") is True:
        return lookup(plain, "indices") or effect
    if plain == "scaled_dot_product_attention" and _is_fused(m, args, call):
        return lookup(plain, "fused") or effect
    if _lets_through(m, plain, call):
        return lookup(plain, "eval")
    if plain == "pad" and call.constant(2, "mode") in ("reflect", "replicate"):
        return lookup(plain, "reflect") or effect
    if plain == "where" and len(args) == 1 and not call.kwargs and not call.open:
        return lookup("nonzero")  # the indices of what is true
    mode = call.constant(None, "rounding_mode")
    if plain.removesuffix("_") in ("div", "divide", "true_divide") and isinstance(mode, str):
        return lookup(plain, mode) or effect
    if len(args) > 1 and _is_number(args, 1):
        return lookup(plain, "scalar") or effect
    return effect


def _is_fused(m: Machine, args: list[Abstract], call: Call) -> bool:
    """Whether a fused kernel computes attention: in four dimensions, without dropout, no gradient
    for the mask. Where a number that nobody knows is the share of dropout, it is asked for.
    """
    mask, share = call.get(3, "attn_mask"), call.get(4, "dropout_p")
    query = args[0] if args else call.get(None, "query")
    if call.open or (isinstance(mask, Tensor) and mask.node.requires_grad):
        return False
    if not isinstance(query, Tensor) or rank(query.node) != _WITH_HEADS:
        return False
    asked = _written(call, 4, "dropout_p")
    return share is None or not conditions.decide(m, share, asked, call.frame, default=False)


def _lets_through(m: Machine, plain: str, call: Call) -> bool:
    """Whether it is a dropout that gives what it is given: of nothing, or in evaluation."""
    own, let_through = lookup(plain), lookup(plain, "eval")
    if own is None or own.itself or let_through is None or not let_through.itself:
        return False
    share = call.get(1, "p")
    is_on = call.constant(2, "training") is not False and call.constant(2, "train") is not False
    return not is_on or (share is not None and is_nothing(m, share))


def _written(call: Call, position: int, name: str) -> ir.Node:
    """Where an argument is written down; the call itself where that is not seen."""
    if not isinstance(call.node, ir.Call):
        return call.node
    by_name = (node for key, node in call.node.kwargs if key == name)
    return next(by_name, (*call.node.args, *[call.node] * (position + 1))[position])


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
            made.append(memory.part(m, whole, position, call.node, call.frame))
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
_WITH_HEADS = 4  # the axes of batches, heads, positions and numbers
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
            part = memory.view(m, args[0], name, call.node, call.frame)
            part.node.arguments = () if call.open else arguments.given(m, args, call.kwargs)
        else:
            part = memory.part(m, whole, position, call.node, call.frame)
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
    return m.session.loops.shown(count) if is_counted(m) else min(count, _MOST_PARTS)


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


def in_place(
    m: Machine, tensor: Tensor, name: str, args: list[Abstract], call: Call, effect: Effect | None
) -> Tensor:
    """`tensor.name_(…)`."""
    before = tensor.node
    effect = _form(m, name, [tensor, *args], call, effect)
    named = tensors.name_arguments(
        m, [NONE, *args], call.kwargs, call.node, call.frame, effect, method=True
    )
    inputs = [source for _, source in named]
    written = memory.write(
        m, tensor, f"torch.Tensor.{name}", inputs, call.node, call.frame, effect=effect, named=named
    )
    if written.node is not before:
        written.node.arguments = arguments.given(m, [NONE, *args], call.kwargs)
    if name in ("zero_", "fill_") and not inputs and written.node is not before:
        written.node.zero_gradient = written.node.requires_grad
    return written
