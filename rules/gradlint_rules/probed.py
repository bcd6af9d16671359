"""Gradients for a step that are cleared together with those of a probe."""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.paths import Paths
from gradlint_rules.accounts import Account, Update, Wiped, accounts, key
from gradlint_rules.rounds import is_tapped
from gradlint_rules.uses import is_late, is_never_used, uses_on


def beside_probes(paths: Paths) -> Iterator[tuple[Account, Update, Wiped]]:
    """The gradients for a step that are cleared with those of a probe, which came after them and
    are for no step.

    `model(probe).sum().backward()`, to read `probe.grad`, and then `model.zero_grad()`.
    """
    used = {(use.optimizer.identity, key(use.sink)) for use in paths.some(uses_on)}
    for account, update, wiped in _wiped_in_view(paths):
        is_for_it = (account.optimizer.identity, key(wiped.sink)) in used
        is_on_time = is_for_it and not wiped.read and not is_late(update, wiped)
        is_alone = all(key(sink) == key(wiped.sink) for sink in update.fresh)
        is_probed = _is_cleared_with_a_probe(account, update, wiped, paths)
        if is_on_time and is_alone and is_probed:
            yield account, update, wiped


def _wiped_in_view(paths: Paths) -> Iterator[tuple[Account, Update, Wiped]]:
    """What is cleared before a step, of optimizers whose parameters and gradients are all known."""
    for account in accounts(paths):
        if account.optimizer.complete and not is_tapped(account.tape):
            for update in account.updates:
                yield from ((account, update, wiped) for wiped in update.wiped)


def _is_cleared_with_a_probe(account: Account, update: Update, wiped: Wiped, paths: Paths) -> bool:
    """Whether the same clearing takes later gradients that no step of this optimizer finds."""
    together = [other for other in update.wiped if other.clearing is wiped.clearing]
    probes = [other.sink for other in together if other.sink.order > wiped.sink.order]
    return any(is_never_used(probe, paths, account.optimizer) for probe in probes)
