"""Generated counters: a remainder is reported where torch shows that one is left, however many
rounds there are.

`GRADLINT_COUNTERS` says how many programs a seed gives (150), `GRADLINT_SEED` the seed of those
that are drawn.
"""

from __future__ import annotations

import os
import pathlib

import pytest
from differential import counters
from differential.ledger import kept
from seeds import SEEDS

from gradlint.analysis import analyze

COUNTERS = int(os.environ.get("GRADLINT_COUNTERS", "150"))
# a first window that is cut by more than one round is not told apart where the window is large
AGREEMENT = 0.98


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS.keys())
def test_what_a_counter_leaves_is_what_torch_shows(seed: int) -> None:
    wrong = []
    for number in range(seed, seed + COUNTERS):
        text = counters.generate(number)
        ledger = kept(text)
        assert not ledger.raised, f"{ledger.raised}\n{text}"
        path = pathlib.Path("train.py")
        analysis = analyze([path], select={"GL504", "GL506"}.__contains__, sources={path: text})
        assert not analysis.gaps, f"{analysis.gaps}\n{text}"
        if bool(ledger.lost) != bool(analysis.findings):
            wrong.append(
                f"{'missed' if ledger.lost else 'false'}, {ledger}\n"
                f"{text.removeprefix(counters.HEADER)}"
            )
    print("\n\n".join(wrong))
    assert not any(each.startswith("false") for each in wrong), f"seed {seed}"
    assert 1 - len(wrong) / COUNTERS >= AGREEMENT, f"seed {seed}"
