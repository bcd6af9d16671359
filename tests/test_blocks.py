"""Walks over syntax trees give what Python's own walk gives, but for what they say they leave
out.
"""

import ast
from pathlib import Path

import pytest
from fuzz.grammar import module
from seeds import SEEDS

from gradlint.source.blocks import statements, walk

BARE = ast.expr_context | ast.operator | ast.unaryop | ast.boolop | ast.cmpop
FILES = sorted((Path(__file__).parents[1] / "gradlint").rglob("*.py"))


def agree(tree: ast.Module) -> None:
    """Holds both walks against `ast.walk`."""
    everything = list(ast.walk(tree))
    assert set(walk(tree)) == {node for node in everything if not isinstance(node, BARE)}
    kinds = ast.Module | ast.stmt | ast.excepthandler
    assert {node for node in statements(tree) if isinstance(node, kinds)} == {
        node for node in everything if isinstance(node, kinds)
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_walks_come_to_every_node_of_our_own_files(path: Path) -> None:
    agree(ast.parse(path.read_text(encoding="utf-8")))


def test_walks_come_to_every_node_of_what_the_grammar_allows() -> None:
    for number in range(300):
        agree(ast.parse(module(SEEDS["drawn"] + number)))


@pytest.mark.parametrize("text", ["lambda: f()", "lambda x: x if x else f(x)", "lambda: (yield)"])
def test_a_lambda_holds_no_statements(text: str) -> None:
    tree = ast.parse(text, mode="eval").body
    assert list(statements(tree)) == [tree]
