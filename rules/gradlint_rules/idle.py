"""Terms of a loss whose gradients no step uses: they run through a network that another optimizer
trains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradlint.tape import Backward, Cut, Optimizer, Tape, Value, leaves
from gradlint_rules.accounts import accounts_on
from gradlint_rules.cached import of_tape
from gradlint_rules.cuts import is_cut, is_meant

_CUTS = (Cut.DETACH, Cut.COPY, Cut.NON_DIFFERENTIABLE)


def idle_terms(tape: Tape, sink: Backward, sums: Iterable[Value]) -> Iterator[tuple[Value, Value]]:
    """Each term that teaches nothing which a step behind the sink trains, and the cut that keeps it
    from that.

    critic(fake.detach()).mean() + (fake - real).abs().mean()  # for the generator: its critic's
    opinion is idle
    """
    users = _users(tape).get(id(sink), ())
    if not users or not all(optimizer.complete for optimizer in users):
        return
    for value in sums:
        beside = [term for term in value.inputs if _teaches(term, users)]
        idle = [term for term in value.inputs if beside and _is_idle(term, users)]
        yield from ((term, cut) for term in idle for cut in _cuts(term, sink, users))


@of_tape
def _users(tape: Tape) -> dict[int, list[Optimizer]]:
    """By the sink, the optimizers whose steps find its gradients."""
    found: dict[int, list[Optimizer]] = {}
    for account in accounts_on(tape):
        used = {id(sink) for update in account.updates for sink in update.fresh}
        for number in used:
            found.setdefault(number, []).append(account.optimizer)
    return found


def _teaches(value: Value, optimizers: Sequence[Optimizer]) -> bool:
    """Whether a gradient comes back from a value to what one of the optimizers holds."""
    held = (leaf.parameter for leaf in leaves(value) if leaf.parameter is not None)
    return any(optimizer.holds(parameter) for parameter in held for optimizer in optimizers)


def _is_idle(term: Value, optimizers: Sequence[Optimizer]) -> bool:
    """Whether a term carries a gradient to known parameters, none of which the optimizers hold."""
    reached = list(leaves(term))
    is_known = all(leaf.parameter is not None and not leaf.assumed for leaf in reached)
    return term.requires_grad and is_known and not _teaches(term, optimizers)


def _cuts(term: Value, sink: Backward, optimizers: Sequence[Optimizer]) -> list[Value]:
    """The cuts behind a term, made in the round of the sink, below which what is trained lies."""
    seen, pending = {id(term)}, [term]
    found = []
    for value in pending:
        if is_cut(value):
            if _is_of_round(value, sink) and any(
                _teaches(source, optimizers) for source in value.inputs
            ):
                found.append(value)
            continue
        for source in value.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)
    return [cut for cut in found if cut.cut in _CUTS and not is_meant(cut)]


def _is_of_round(cut: Value, sink: Backward) -> bool:
    return cut.iteration[: len(sink.iteration)] == sink.iteration
