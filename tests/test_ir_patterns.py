"""`match` and the `if`s made of it do the same."""

import ast
import dataclasses
from typing import Any

import pytest

from gradlint.ir.patterns import as_ifs

SOURCE = """
match subject{call}:
    case 1 | 2:
        said = "small"
    case None:
        said = "none"
    case Point(x=0, y=y):
        said = f"on the axis at {{y}}"
    case Point(x, _):
        said = f"point {{x}}"
    case str(text) if text.startswith("a"):
        said = f"begins: {{text}}"
    case str():
        said = "text"
    case {{"kind": kind, **rest}}:
        said = f"{{kind}} {{rest}}"
    case (_, 0):
        said = "even"
    case [first, *between, last] as whole:
        said = f"{{first}} {{between}} {{last}} {{len(whole)}}"
    case [] | (_,):
        said = "short"
    case other:
        said = f"other {{other}}"
"""


@dataclasses.dataclass
class Point:
    x: int
    y: int


SUBJECTS = [
    1, 2, 3, None, Point(0, 5), Point(4, 5), "abc", "xyz", {"kind": "k", "n": 1}, {"n": 1}, (7, 0),
    (7, 1),
    [1, 2, 3, 4], [], (9,), 2.5,
]  # fmt: skip


def said(tree: ast.Module, subject: Any) -> Any:
    names = {"subject": subject, "Point": Point}
    exec(compile(tree, "<match>", "exec"), names)
    return names["said"]


@pytest.mark.parametrize("subject", SUBJECTS, ids=repr)
def test_ifs_do_what_a_match_does(subject: Any) -> None:
    tree = ast.parse(SOURCE.format(call=""))
    statement = tree.body[0]
    assert isinstance(statement, ast.Match)
    assert said(ast.Module(as_ifs(statement), []), subject) == said(tree, subject)


def test_the_subject_is_evaluated_once() -> None:
    statement = ast.parse(SOURCE.format(call=".pop()")).body[0]
    assert isinstance(statement, ast.Match)
    assert said(ast.Module(as_ifs(statement), []), [3, 1]) == "small"
