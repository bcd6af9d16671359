"""Memory of tensors: views, writes in place, `x.detach()`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Many
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret.registry import notify
from gradlint.interpret.saving import refuse_inference, save_as_listed, saved_values
from gradlint.interpret.tensors import operation
from gradlint.interpret.values import (
    Tensor,
)
from gradlint.ir import nodes as ir
from gradlint.library.effects import Effect, lookup
from gradlint.tape import Cut, Kind, Storage, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


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
    refused: str = "", of_part: bool = False, index: object = None,
) -> Tensor:  # fmt: skip
    """Modifies `tensor` in place: a new version of its memory, and a new node where autograd
    records the write.

    `index` chooses what of it is written, in `x[index] = …`. What torch refuses changes nothing.
    `of_part`: a view of the tensor is what is written, as in `x[0] = 1`.
    """
    m.oracle.writes.add(node)
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
            save_as_listed(made, [(effect.argument(0, method=True), before), *named], effect)
            refuse_inference(m, made)
    version = storage.version if tensor.uncounted or raises else storage.version + 1
    done = tape.Write(
        op, frame.span(node), m.where, version, not tensor.uncounted, len(m.tape.events),
        (*inputs,),
        effect is not None and effect.maps_input,
        tape.extent(before) if index is None else (*tape.extent(before), index),
    )  # fmt: skip
    if not raises:
        notify("written", m, tensor)
        storage.version = version
        storage.writes.append(done)
        for earlier in _counted_on(tensor, storage):
            earlier.version += 1
            earlier.writes.append(replace(done, version=earlier.version))
        if made is not before:
            made.saves = tuple(
                saved_values(made, kept.role) or kept if kept.value is made else kept
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
        if _is_one_of_several(tensor) and not node.assumed:
            return "views"
    has_versions = tensor.own_versions and not of_part
    if node.inference and not (m.grad.inference or has_versions) and _is_made_here(node):
        return "inference"
    return ""


# what gives several views at once, each of which torch 2.13 refuses to have written in place;
# `tensor_split` and its kin make each view by itself
_SEVERAL_VIEWS = frozenset(["chunk", "split", "split_with_sizes", "unbind"])


def _is_one_of_several(tensor: Tensor) -> bool:
    """Whether a tensor is one of several views that autograd recorded together, or a view of
    one.
    """
    while tensor.base is not None:
        node = tensor.node
        is_recorded = node.requires_grad and node.storage is tensor.base.node.storage
        if is_recorded and node.op.rpartition(".")[2] in _SEVERAL_VIEWS:
            return True
        tensor = tensor.base
    return False


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
