"""What an operation saves for its backward."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Many
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import layouts
from gradlint.interpret.batches import batches_lie_apart
from gradlint.library.effects import Effect, flattens, joins_batches
from gradlint.tape import Saved, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def save_as_listed(made: Value, named: Many[tuple[str, Value]], effect: Effect) -> None:
    if not made.requires_grad:
        return
    requiring = [(name, source) for name, source in named if source.requires_grad]
    kept = {save.what: save.when for save in effect.savings({name for name, _ in requiring})}
    saved = [
        saved_values(source, name, _needing(source, requiring, kept[name]))
        for name, source in named
        if name in kept and not _is_copied(source, name, effect)
    ]
    if any(what.startswith("result") for what in kept):
        saved.append(saved_values(made, "result"))
    made.saves = tuple(entry for entry in saved if entry is not None)


def _needing(
    kept: Value, requiring: Many[tuple[str, Value]], names: tuple[str, ...]
) -> tuple[Value, ...]:
    """Those of the arguments of these names for whose gradients alone a tensor is kept; none where
    it is kept for its own.
    """
    needing = tuple(value for name, value in requiring if name in names)
    return () if any(value is kept for value in needing) else needing


def _is_copied(source: Value, name: str, effect: Effect) -> bool:
    """Whether an operation saves a copy: it joins axes that lie apart."""
    if joins_batches(effect):
        return batches_lie_apart(source)
    return name == effect.argument(0) and flattens(effect) and layouts.lie_apart(source)


def saved_values(kept: Value, role: str, needed_by: tuple[Value, ...] = ()) -> Saved | None:
    storage = kept.storage
    return (
        None
        if storage is None
        else Saved(kept, storage, storage.version, len(storage.writes), role, needed_by)
    )


def refuse_inference(m: Machine, made: Value) -> None:
    """Notes the inference tensors that torch refuses to save.

    Nothing is saved where no gradient is needed, as with the weights of a frozen model that is out
    of view: an assumed gradient alone proves nothing.
    """
    refused = [kept for kept in made.saves if kept.value.inference and kept.value is not made]
    if refused and not all(leaf.assumed for leaf in tape.leaves(made)):
        for kept in refused:
            m.emit(
                tape.Fact(
                    at=made.at,
                    what="inference-tensor-used",
                    value=kept.value,
                    detail=made.op,
                    text=made.text,
                )
            )


def save(
    made: Value,
    kept: Iterable[Value],
    role: str = "input",
    needed_by: tuple[Value, ...] = (),
) -> None:
    """Adds to what `made` saves for its backward."""
    if made.requires_grad:
        made.saves += tuple(
            entry
            for entry in (saved_values(one, role, needed_by) for one in kept)
            if entry is not None
        )
