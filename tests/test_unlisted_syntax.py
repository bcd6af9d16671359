"""Syntax of a Python to come costs its own place, not the script: a gap there, and what stands
around is checked.
"""

import ast
import copy
import pathlib
import sys
from typing import Any

import pytest

from gradlint import analyzer, library  # noqa: F401  (what reads files is imported before they read otherwise)
from gradlint.analysis import Analysis, analyze

PROGRAM = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
name = "a"
{new}
loss = model(torch.rand(2, 4)).detach().sum()
loss.backward()
"""


class Wish(ast.stmt):
    """A statement that no Python has yet."""

    _fields = ("value",)


class Template(ast.expr):
    """What `TemplateStr` of Python 3.14 is to an older one."""

    _fields = ("values",)


class MatchAny(ast.pattern):
    """A pattern that no Python has yet."""

    _fields = ()


def _made(kind: Any, **fields: Any) -> Any:
    return kind(**fields)


class _FromTheFuture(ast.NodeTransformer):
    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return ast.copy_location(_made(Template, values=node.values), node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        return ast.copy_location(_made(Wish, value=node.test), node)

    def visit_MatchStar(self, node: ast.MatchStar) -> Any:
        return ast.copy_location(MatchAny(), node)


def read_as_of_the_future(new: str, monkeypatch: pytest.MonkeyPatch) -> Analysis:
    library.load()
    parse = ast.parse

    def of_the_future(*args: Any, **kwargs: Any) -> Any:
        return _FromTheFuture().visit(copy.deepcopy(parse(*args, **kwargs)))

    monkeypatch.setattr(ast, "parse", of_the_future)
    path = pathlib.Path("train.py")
    return analyze([path], select=lambda code: True, sources={path: PROGRAM.format(new=new)})


@pytest.mark.parametrize(
    ("new", "kind"),
    [
        ('said = f"model {name}"', "Template"),
        ("assert name", "Wish"),
        ("match [name]:\n    case [*_]:\n        pass", "MatchAny"),
    ],
)
def test_syntax_that_is_not_known_is_a_gap_at_its_place(
    new: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read_as_of_the_future(new, monkeypatch)
    gaps = {(gap.kind, gap.detail, gap.at.line) for gap in found.gaps}
    assert [finding.code for finding in found.findings] == ["GL102"]
    assert gaps == {("syntax", kind, 6 + new.count("\n") // 2)}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="t-strings are of Python 3.14")
def test_a_template_string_costs_its_own_place_alone() -> None:
    path = pathlib.Path("train.py")
    text = PROGRAM.format(new='said = t"model {name!r:>8}"')
    found = analyze([path], select=lambda code: True, sources={path: text})
    assert [finding.code for finding in found.findings] == ["GL102"]
    assert {gap.kind for gap in found.gaps} <= {"syntax"}
