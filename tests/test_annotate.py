"""Where `--add-ignore` writes its comments."""

import pathlib
import textwrap

import pytest

from gradlint import suppress
from gradlint.annotate import add_ignores
from gradlint.finding import Finding, Severity, Span


def annotated(tmp_path: pathlib.Path, program: str, line: int, end_line: int) -> str | None:
    """The program with a suppression for a finding on these lines; None if there is no place for
    one.
    """
    file = tmp_path / "a.py"
    file.write_text(textwrap.dedent(program))
    found = Finding(
        "GL001", "syntax-error", Severity.ERROR, "m", Span(str(file), line, 1, end_line, 4)
    )
    written, left = add_ignores([found], "why", tmp_path)
    text = file.read_text()
    if written:
        assert suppress.apply(str(file), text, [found], lambda code: True) == []
        return text
    assert left == [found]
    return None


@pytest.mark.parametrize(
    ("program", "span", "line"),
    [
        ("x = f(\n    1,\n)\n", (1, 3), 1),
        ("x = 1 + \\\n    2\n", (1, 2), 2),
        ("x = '''\na\n'''\n", (1, 3), 3),
        ("x = f'''\n{y}\n'''\n", (1, 3), 3),
        ("x = f('''\na\n''', 2)\n", (1, 3), 3),
    ],
)
def test_the_comment_stands_on_the_first_line_that_can_take_one(
    tmp_path: pathlib.Path, program: str, span: tuple[int, int], line: int
) -> None:
    text = annotated(tmp_path, program, *span)
    assert text is not None
    assert text.splitlines()[line - 1].endswith("  # gradlint: ignore[GL001] why")


@pytest.mark.parametrize(
    "program", ["x = '''\na\n'''\n", "x = 1 + \\\n    2\n", "x = f'''{y}\n'''\n"]
)
def test_a_line_that_can_take_no_comment_gets_none(tmp_path: pathlib.Path, program: str) -> None:
    assert annotated(tmp_path, program, 1, 1) is None


def test_the_encoding_of_a_file_is_kept(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"# coding: latin-1\nx = '\xe9'\n")
    add_ignores(
        [Finding("GL001", "n", Severity.ERROR, "m", Span(str(file), 2, 1, 2, 2))], "why", tmp_path
    )
    assert file.read_bytes() == b"# coding: latin-1\nx = '\xe9'  # gradlint: ignore[GL001] why\n"
