"""What runs on each side of a branch, and of the parts of its test."""

from __future__ import annotations

import ast

import pytest

from gradlint.source import sides

PROGRAM = """\
def f(a, b, x):
    if {test}:
        {then}
    x.rest()
"""


def _led_to(test: str, part: str, holds: bool, then: str = "x.first()") -> list[str]:
    text = PROGRAM.format(test=test, then=then)
    column = text.splitlines()[1].index(part, text.splitlines()[1].index("if ") + 3)
    found = sides.of(ast.parse(text))[2, column, 2, column + len(part)]
    return [ast.unparse(each).splitlines()[0] for each in found.of(holds)]


@pytest.mark.parametrize(
    ("test", "part", "holds", "expected"),
    [
        ("a and b", "a and b", True, ["x.first()"]),
        ("a and b", "a and b", False, []),
        ("a and b", "a", False, []),
        ("a and b", "a", True, ["x.first()", "b"]),
        ("a and b", "b", True, ["x.first()"]),
        ("a or b", "a", True, ["x.first()"]),
        ("a or b", "a", False, ["x.first()", "b"]),
        ("not a or b", "a", False, ["x.first()"]),
        ("not a or b", "a", True, ["x.first()", "b"]),
        ("a(b)", "b", True, ["x.first()", "a(b)"]),
        ("a(b)", "b", False, ["x.first()", "a(b)"]),
    ],
)
def test_a_part_of_a_test_leads_to_what_its_answer_settles(
    test: str, part: str, holds: bool, expected: list[str]
) -> None:
    assert _led_to(test, part, holds) == expected


@pytest.mark.parametrize(
    ("test", "part", "holds", "goes_on"),
    [
        ("not a or b", "not a or b", True, False),
        ("not a or b", "not a or b", False, True),
        ("not a or b", "not a", True, False),
        ("not a or b", "not a", False, True),
        ("a and b", "a", False, True),
        ("a and b", "a", True, False),
        ("a(b)", "b", True, True),
    ],
)
def test_what_follows_is_led_to_by_the_answer_that_stays_where_the_other_can_leave(
    test: str, part: str, holds: bool, goes_on: bool
) -> None:
    assert ("def f(a, b, x):" in _led_to(test, part, holds, "return x")) == goes_on
