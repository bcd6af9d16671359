"""Whatever Python's grammar allows is analysed without a mistake of gradlint's own.

`GRADLINT_MODULES` says how many modules are made up of the grammar (2,000); there is one of
libcst's nodes for forty of these, since such a one takes a third of a second to be made up.
"""

from __future__ import annotations

import os
import sys

import pytest
from fuzz.everywhere import everywhere
from fuzz.grammar import module
from fuzz.test_fuzz import mistakes
from hypothesis import HealthCheck, given, seed, settings
from seeds import SEEDS

from gradlint.analyzer import RECURSION_LIMIT

MODULES = int(os.environ.get("GRADLINT_MODULES", "2000"))
PARTS = 4  # of the tests, which run side by side


@pytest.fixture(autouse=True)
def deep_stack() -> None:
    """What the analysis sets by itself: hypothesis wonders where the limit changes within a
    test.
    """
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))


def _analysed(text: str) -> None:
    assert not mistakes(text), text
    try:
        entered = everywhere(text)
    except ValueError:  # an f-string that Python's own unparser cannot write
        return
    assert not mistakes(entered), entered


@pytest.mark.parametrize("part", range(PARTS))
def test_modules_of_the_grammar_are_analysed_to_their_end(part: int) -> None:
    for number in range(part, MODULES, PARTS):
        _analysed(module(SEEDS["drawn"] + number))


@pytest.mark.parametrize("part", range(PARTS))
def test_modules_of_nodes_are_analysed_to_their_end(part: int) -> None:
    """Other ones for each state of gradlint and each part."""
    import hypothesmith  # seconds, which only those that run this pay

    modules = hypothesmith.from_node(auto_target=False)
    health = settings(
        max_examples=MODULES // PARTS // 40,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    seed(SEEDS["drawn"] + part)(health(given(modules)(_analysed)))()
