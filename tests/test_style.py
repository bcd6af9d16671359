"""The figures of `tools/style.py`: what it counts in a package, and how it shows that."""

import ast
import pathlib
import runpy
import textwrap
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[1]
STYLE: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "style.py"))
PACKAGE = {
    "first.py": '''
        """A module with a docstring."""

        from package import second


        def grade(points, bonus):  # a comment behind code
            """What the points come to."""
            # a comment of its own
            if points > 3 and bonus:
                return [point for point in bonus if point]
            return points if points else None
        ''',
    "second.py": """
        def late():
            from package import first

            return first, "%s"
        """
    % ("x" * 100),
    "test_first.py": "assert True\n",
}


@pytest.fixture
def package(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "package"
    folder.mkdir()
    for name, text in PACKAGE.items():
        (folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


def test_functions_lines_comments_and_decisions_are_counted(package: pathlib.Path) -> None:
    found = STYLE["measure"]([package])
    assert (found.files, found.function_lengths) == (2, [6, 4])
    assert (found.decisions, found.body_lines) == (5, 5)
    assert (found.comments, found.long_lines) == (2, 1)
    assert (found.documented, found.to_document) == (2, 4)


@pytest.mark.parametrize(
    ("program", "count"),
    [
        ("x = 1", 0),
        ("if a and b or c:\n    pass\nelif d:\n    pass", 4),
        ("for x in y:\n    while z:\n        pass", 2),
        ("try:\n    pass\nexcept A:\n    pass\nexcept B:\n    pass", 2),
        ("match x:\n    case 1:\n        pass\n    case _:\n        pass", 2),
        ("x = [a if b else c for a in d for e in f if g]", 4),
    ],
)
def test_a_decision_is_another_way_to_go(program: str, count: int) -> None:
    assert STYLE["decisions"](ast.parse(program)) == count


def test_a_circle_of_imports_is_found_with_those_of_functions_alone(package: pathlib.Path) -> None:
    found = STYLE["measure"]([package])
    assert found.circles == []
    assert found.lazy_circles == [["package.first", "package.second"]]


def test_modules_that_only_lead_to_a_circle_are_not_in_it() -> None:
    imports = {"a": ["b"], "b": ["c"], "c": ["d", "e"], "d": ["b"], "e": []}
    assert STYLE["circles"](imports) == [["b", "c", "d"]]


def test_the_table_has_a_column_for_each_package(package: pathlib.Path) -> None:
    found = STYLE["measure"]([package])
    lines = STYLE["table"]({"mine": found, "yours": found}).splitlines()
    assert lines[0].split() == ["mine", "yours"]
    assert len(lines) == 1 + len(STYLE["ROWS"])
    assert lines[5].split() == ["decisions", "in", "100", "body", "lines", "100", "100"]
