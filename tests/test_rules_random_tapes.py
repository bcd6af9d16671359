"""What the rules say of any tape: something, without raising; and of the beginning of one no more
than of the whole.

`GRADLINT_TAPES` says how many tapes are made up (150).
"""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_tapes import Action, build

from gradlint import rule
from gradlint.paths import Paths
from gradlint.tape import Tape

NUMBERS = st.integers(0, 997)
ACTIONS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=60)
STARVED = ("GL101", "GL102", "GL103", "GL104", "GL105", "GL107")
random_tapes = settings(
    max_examples=int(os.environ.get("GRADLINT_TAPES", "150")), deadline=None, derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def said(*paths: Tape) -> set[tuple[str, int]]:
    """Code and line of what all rules find."""
    return {
        (finding.code, finding.at.line)
        for each in rule.rules().values()
        for finding in each.findings(Paths(paths))
    }


def claims(*paths: Tape) -> set[tuple[str, int]]:
    """What is found; of several cuts, which one is blamed for a loss is decided by the step that
    comes next.
    """
    return {
        ("a loss without gradient", 0) if code in STARVED else (code, line)
        for code, line in said(*paths)
    }


@random_tapes
@given(ACTIONS, ACTIONS)
def test_no_tape_is_too_odd(one: list[Action], two: list[Action]) -> None:
    whole, other = build(one), build(two)
    alone = said(whole)
    assert {line for _, line in alone} <= set(range(len(one) + 2))
    assert said(build(one)) == alone  # the same tape, the same findings
    said(whole, other, build(two, complete=False))


@random_tapes
@given(ACTIONS, NUMBERS)
def test_where_the_analysis_gives_up_nothing_is_found_that_the_rest_would_refute(
    actions: list[Action], number: int
) -> None:
    begun = build(actions[: number % len(actions)], complete=False)
    assert claims(begun) - claims(build(actions)) == set()


def test_made_up_tapes_are_such_that_most_rules_find_something() -> None:
    draw = random.Random(0).randrange
    tapes = (build([(draw(997), draw(997), draw(997)) for _ in range(997)]) for _ in range(39))
    assert len({code for tape in tapes for code, _ in said(tape)}) > 35
