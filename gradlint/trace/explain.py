"""Looking at the graph of a loss: which saved tensor was overwritten, and by what.

This reads private parts of torch (`_saved_*`, `_sequence_nr`); it happens when a backward has
failed, or when something was written behind autograd's back, never on the way of a healthy step.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from gradlint.tape import Kind
from gradlint.trace.extents import extent
from gradlint.trace.memory import storage_key
from gradlint.trace.records import Cell, Note, Op
from gradlint.trace.session import Session

_OVERWRITTEN = "modified by an inplace operation"
_VERSION = re.compile(r"expected version (\d+)")
# torch 2.13: "The differentiated Tensor at index 0 …"
UNUSED = "appears to not have been used in the graph"
_FREED = "backward through the graph a second time"
_RESULT = ("result", "output", "out")
_OTHER = ("other", "weight", "mat2", "tensor2", "exponent", "vec", "batch2")


def nodes(losses: Iterable[torch.Tensor]) -> Iterator[Any]:
    """The nodes of autograd's graph below the losses, each once."""
    pending = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
    seen = set(pending)
    for node in pending:
        yield node
        for source, _ in node.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                pending.append(source)


def backward_failed(
    session: Session, note: Note, losses: list[torch.Tensor], error: RuntimeError
) -> None:
    """Find out which record a failing backward is about."""
    text = str(error)
    with session.paused():
        if _OVERWRITTEN in text:
            note.facts["broken"] = _overwritten(session, note, losses)
        elif _FREED in text:
            _mark_freed(note, losses)


def grad_failed(
    session: Session, note: Note, losses: list[torch.Tensor], inputs: list[torch.Tensor]
) -> None:
    """Find the tensor whose gradient was asked for, and of which nothing in the graphs was
    computed.
    """
    with session.paused():
        found = set(nodes(losses))
        for tensor, op in zip(inputs, note.facts["inputs"], strict=True):
            node = (
                torch.autograd.graph.get_gradient_edge(tensor).node
                if tensor.requires_grad
                else None
            )
            if node is not None and node not in found:
                loss = note.facts["ops"][0]
                session.note("fact", note.place, what="unmet-input", op=op, source=loss, detail="")
                return


def _overwritten(session: Session, note: Note, losses: list[torch.Tensor]) -> bool:
    by_sequence = _by_sequence(note.facts["ops"])
    found = False
    for node in nodes(losses):
        for attribute, tensor, version in _stale(node):
            op = _maker(by_sequence, node)
            if op is not None:
                _mark(session, op, attribute, tensor)
                found = True
            elif version is not None and (loss := _unseen(session, note, losses)) is not None:
                found |= _mark_unseen(session, loss, attribute, tensor, version)
    return found


def _unseen(session: Session, note: Note, losses: list[torch.Tensor]) -> Op | None:
    """The record of the loss of a step that was only watched, with the parameters that it hangs
    on.
    """
    loss: Op = note.facts["ops"][0]
    if loss.kind is Kind.UNKNOWN and not loss.inputs:
        leaves = (getattr(node, "variable", None) for node in nodes(losses))
        parameters = [leaf for leaf in leaves if isinstance(leaf, torch.nn.Parameter)]
        loss.inputs = tuple(session.leaf(session.memory.held(each)) for each in parameters)
        loss.kind, loss.flags = Kind.OPERATION, loss.flags | {"unseen"}
    return loss if "unseen" in loss.flags else None


def _mark_unseen(
    session: Session, loss: Op, attribute: str, tensor: torch.Tensor, version: int
) -> bool:
    """Write down for a loss that something on the way to it saved `tensor`, and what wrote there
    since.
    """
    cell = session.memory.cell(tensor)
    before = sum(written.version <= version for written in cell.writes)
    if before == len(cell.writes):
        return False
    loss.saves.append((_role(attribute), cell, loss, before))
    return True


def _stale(node: Any) -> Iterator[tuple[str, torch.Tensor, int | None]]:
    """The saved tensors of a node that no longer are what was saved, each with the version that it
    had then.
    """
    for attribute in _attributes(node):
        try:
            getattr(node, attribute)
        except RuntimeError as error:
            if _OVERWRITTEN in str(error):
                version = _VERSION.search(str(error))
                saved = int(version[1]) if version is not None else None
                yield from ((attribute, tensor, saved) for tensor in _live(node, attribute))


def _attributes(node: Any) -> list[str]:
    names = [name for name in dir(type(node)) if name.startswith("_saved_")]
    return names or (["saved_tensors"] if hasattr(type(node), "saved_tensors") else [])


def _live(node: Any, attribute: str) -> list[torch.Tensor]:
    """The tensor itself, although torch refuses to unpack it."""
    got: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        got.append(tensor)
        return tensor

    raw = getattr(
        node, f"_raw{attribute}" if attribute.startswith("_") else f"_raw_{attribute}", ()
    )
    for each in raw if isinstance(raw, tuple) else (raw,):
        with contextlib.suppress(
            RuntimeError
        ):  # torch cannot pack some outputs that were overwritten
            each.register_hooks(pack, lambda packed: packed)
    return got


def _by_sequence(ops: Iterable[Op]) -> list[Op]:
    return [op for op in lineage(ops) if op.sequence[0] < op.sequence[1]]


def lineage(ops: Iterable[Op]) -> Iterator[Op]:
    """Records and all that they were computed from, each once."""
    pending = list(ops)
    seen = {id(op) for op in pending}
    for op in pending:
        yield op
        for source in op.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def _maker(ops: Iterable[Op], node: Any) -> Op | None:
    """The record of the operation that made a node: the narrowest whose calls include its
    number.
    """
    number = getattr(node, "_sequence_nr", lambda: -1)()
    fitting = [op for op in ops if op.sequence[0] <= number < op.sequence[1]]
    return min(fitting, key=lambda op: (op.sequence[1] - op.sequence[0], op.serial), default=None)


def maker_of(ops: Iterable[Op], node: Any) -> Op | None:
    """The record of the operation that made a node, among records and what they were computed
    from.
    """
    return _maker(_by_sequence(ops), node)


def saved(node: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a node saved, by attribute."""
    return (
        (attribute, tensor) for attribute in _attributes(node) for tensor in _saved(node, attribute)
    )


def _mark(session: Session, op: Op, attribute: str, tensor: torch.Tensor) -> None:
    """Write down that `op` saved `tensor`, and in which memory."""
    role = _role(attribute)
    held = _parameter(session, tensor)
    cell = session.memory.cell(tensor)
    if held is not None and held.cell is not None and not cell.writes:
        # nothing has been written since the last step: what was before is known to the parameter
        cell = held.cell
    if held is not None:
        held.cell = cell
    source = _source(op, role, cell, held)
    source.cell = cell
    op.saves.append((role, cell, source, None))


def _role(attribute: str) -> str:
    name = attribute.removeprefix("_saved_")
    return "result" if name.startswith(_RESULT) else "other" if name.startswith(_OTHER) else "input"


def _parameter(session: Session, tensor: torch.Tensor) -> Any:
    key = storage_key(tensor)
    return next(
        (held for parameter, held in session.memory.parameters() if storage_key(parameter) == key),
        None,
    )


def _source(op: Op, role: str, cell: Cell, held: Any) -> Op:
    """Which value the saved tensor was: the result, or the input that shares its memory."""
    if role == "result" or not op.inputs:
        return op
    for source in op.inputs:
        if source.cell is cell or (held is not None and source.held is held):
            return source
    first, *others = op.inputs
    return others[0] if role == "other" and others else first


def _mark_freed(note: Note, losses: list[torch.Tensor]) -> None:
    """Write down that operations saved something, where an earlier backward has freed it."""
    ops = _by_sequence(note.facts["ops"])
    for node in nodes(losses):
        if any(_is_freed(node, attribute) for attribute in _attributes(node)):
            op = _maker(ops, node)
            if op is not None:
                op.saves = op.saves or [("input", Cell(), op.inputs[0] if op.inputs else op, None)]


def _is_freed(node: Any, attribute: str) -> bool:
    try:
        getattr(node, attribute)
    except RuntimeError as error:
        return "freed" in str(error)
    return False


def overwritten_unseen(session: Session, note: Note, losses: list[torch.Tensor]) -> None:
    """Find saved tensors that were written through `.data` since: autograd does not notice, so we
    look.
    """
    unseen = {
        key: cell
        for key, cell in session.memory.cells.items()
        if any(not written.counted for written in cell.writes)
    }
    if not unseen:
        return
    ops = _by_sequence(note.facts["ops"])
    with session.paused():
        found = [
            (node, attribute, tensor)
            for node in nodes(losses)
            for attribute in _attributes(node)
            for tensor in _saved(node, attribute)
            if storage_key(tensor) in unseen
        ]
        for node, attribute, tensor in found:
            op = _maker(ops, node)
            if (
                op is not None
                and op.kind is Kind.OPERATION
                and _is_spoilt(tensor, op, unseen[storage_key(tensor)])
            ):
                _mark(session, op, attribute, tensor)
    _keep_writes(session, [unseen[storage_key(tensor)] for _, _, tensor in found])


def _is_spoilt(tensor: torch.Tensor, op: Op, cell: Cell) -> bool:
    """Whether something wrote, after the operation, what it saved; elsewhere in the same memory
    does no harm.
    """
    covered = extent(tensor)
    later = [each.extent for each in cell.writes if not each.counted and each.serial > op.serial]
    return any(each is None or covered is None or each.overlaps(covered) for each in later)


def _keep_writes(session: Session, cells: Iterable[Cell]) -> None:
    """The notes of writes that spoil a gradient without an error outlast their step; the next ones
    are recorded.
    """
    for write in (
        each for cell in cells for each in cell.writes if not (each.counted or each.lasts)
    ):
        write.lasts = True
        session.attention.came_late(write.place)


def _saved(node: Any, attribute: str) -> list[torch.Tensor]:
    try:
        found = getattr(node, attribute)
    except RuntimeError:
        return []
    found = found if isinstance(found, (tuple, list)) else (found,)
    return [tensor for tensor in found if isinstance(tensor, torch.Tensor)]
