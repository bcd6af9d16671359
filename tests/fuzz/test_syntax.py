"""Whatever Python's grammar allows is analysed without a mistake of gradlint's own.

`GRADLINT_MODULES` says how many modules are made up of the grammar, and how many of libcst's nodes (20).
"""

from __future__ import annotations

import os
import sys

import hypothesmith
import pytest
from fuzz.everywhere import everywhere
from fuzz.test_fuzz import mistakes
from hypothesis import HealthCheck, given, settings

from gradlint.analysis import RECURSION_LIMIT

modules = settings(
    max_examples=int(os.environ.get("GRADLINT_MODULES", "20")), deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(autouse=True)
def deep_stack() -> None:
    """What the analysis sets by itself: hypothesis wonders where the limit changes within a test."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))


def _analysed(text: str) -> None:
    assert not mistakes(text)
    try:
        entered = everywhere(text)
    except ValueError:  # an f-string that Python's own unparser cannot write
        return
    assert not mistakes(entered)


@modules
@given(hypothesmith.from_grammar(auto_target=False))
def test_modules_of_the_grammar_are_analysed_to_their_end(text: str) -> None:
    _analysed(text)


@modules
@given(hypothesmith.from_node(auto_target=False))
def test_modules_of_nodes_are_analysed_to_their_end(text: str) -> None:
    _analysed(text)
