"""Edits on one file: what a fix asks for is done, and all the rest stays as it was."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from gradlint.finding import Applicability, Edit, Fix, Span
from gradlint.fix.edits import edited, joined, without_conflicts
from gradlint.fix.layout import Layout
from gradlint.fix.source import File
from gradlint.rule import NoFixError

Edits = Edit | tuple[Edit, ...]


def source_of(text: str) -> File:
    return File("train.py", Layout(text, ast.parse(text)))


def after(text: str, make: Callable[[File], Edits]) -> str:
    source = source_of(text)
    edits = make(source)
    return edited(source.layout, (edits,) if isinstance(edits, Edit) else edits)


def called(source: File, name: str) -> ast.Call:
    """The call of `name` in a file."""
    return next(
        n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and source.text(n.func) == name
    )


def line(source: File, number: int) -> ast.stmt:
    return source.statement_on(number)


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        ("y = f(x)\n", "a + b", "y = a + b\n"),
        ("y = f(x) * 2\n", "a + b", "y = (a + b) * 2\n"),
        ("y = f(x).sum()\n", "-a", "y = (-a).sum()\n"),
        ("y = [f(x), 1]\n", "a if b else c", "y = [a if b else c, 1]\n"),
        ("y = (f(x)) * 2  # why\n", "a + b", "y = (a + b) * 2  # why\n"),
        ("if f(x):\n    pass\n", "a or b", "if a or b:\n    pass\n"),
        ("if f(x) and z:\n    pass\n", "a or b", "if (a or b) and z:\n    pass\n"),
        ("ä = 'ö', f(x)\n", "b", "ä = 'ö', b\n"),
    ],
)
def test_an_expression_is_replaced_in_parentheses_where_it_needs_them(
    text: str, content: str, expected: str
) -> None:
    assert after(text, lambda source: source.replace(called(source, "f"), content)) == expected


def test_a_statement_is_removed_with_its_line() -> None:
    assert (
        after("a = 1\nf()  # gone\nb = 2\n", lambda source: source.remove(line(source, 2)))
        == "a = 1\nb = 2\n"
    )


def test_pass_takes_the_place_of_the_only_statement() -> None:
    assert (
        after("if a:\n    f()\n", lambda source: source.remove(line(source, 2)))
        == "if a:\n    pass\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"), [("f(); b = 2\n", "b = 2\n"), ("a = 1; f()\n", "a = 1\n")]
)
def test_a_statement_is_removed_from_a_shared_line(text: str, expected: str) -> None:
    assert (
        after(text, lambda source: source.remove(source.statement(called(source, "f")))) == expected
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "\t", "  "])
def test_new_lines_have_the_indentation_and_the_line_ends_of_the_file(
    newline: str, indent: str
) -> None:
    text = f"if a:{newline}{indent}f(){newline}"
    expected = f"if a:{newline}{indent}before(){newline}{indent}f(){newline}"
    assert after(text, lambda source: source.before(line(source, 2), "before()")) == expected


def test_a_line_is_added_at_the_end_of_a_file_without_an_end_of_line() -> None:
    assert after("f()", lambda source: source.after(line(source, 1), "g()")) == "f()\ng()\n"


def test_a_moved_statement_takes_the_comment_above_it_along() -> None:
    text = "a = 1\n# why\nf()\nb = 2\n"
    moved = after(text, lambda source: source.move_after([line(source, 3)], line(source, 4)))
    assert moved == "a = 1\nb = 2\n# why\nf()\n"


def test_a_statement_moved_into_a_block_takes_its_indentation() -> None:
    text = 'f("""\n  x\n""")\nif a:\n    b = 2\n'
    expected = 'if a:\n    f("""\n  x\n""")\n    b = 2\n'
    assert (
        after(text, lambda source: source.move_before([source.tree.body[0]], line(source, 5)))
        == expected
    )


def test_a_body_is_wrapped_and_unwrapped_with_its_strings_and_comments_untouched() -> None:
    text = 'x = """\n a\n"""\n# note\ny = 1\n'
    wrapped = after(text, lambda source: source.wrap(source.tree.body, "with c:"))
    assert wrapped == 'with c:\n    x = """\n a\n"""\n    # note\n    y = 1\n'

    def unwrap(source: File) -> Edits:
        (statement,) = source.tree.body
        assert isinstance(statement, ast.With)
        return source.unwrap(statement)

    assert after(wrapped, unwrap) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a, b=1)\n", "f(a)\n"),
        ("f(b=1)\n", "f()\n"),
        ("f(b=1, c=2)\n", "f(c=2)\n"),
        ("f(\n    a,\n    b=1,\n)\n", "f(\n    a,\n)\n"),
    ],
)
def test_an_argument_goes_with_its_comma(text: str, expected: str) -> None:
    def remove(source: File) -> Edit:
        call = called(source, "f")
        return source.remove_argument(
            call, next(keyword for keyword in call.keywords if keyword.arg == "b")
        )

    assert after(text, remove) == expected


@pytest.mark.parametrize(
    ("text", "written", "first"),
    [
        ("import torch\n", "torch.amp.GradScaler", "import torch\n"),
        ("import torch as t\n", "t.amp.GradScaler", "import torch as t\n"),
        ("from torch import amp\n", "amp.GradScaler", "from torch import amp\n"),
        (
            '"""A"""\nfrom torch import nn\n',
            "torch.amp.GradScaler",
            '"""A"""\nimport torch\nfrom torch import nn\n',
        ),
        ("import os\n\nf()\n", "torch.amp.GradScaler", "import os\nimport torch\n\nf()\n"),
        (
            "#!/usr/bin/python\nimport os\n",
            "torch.amp.GradScaler",
            "#!/usr/bin/python\nimport os\nimport torch\n",
        ),
    ],
)
def test_a_name_is_written_by_the_imports_there_are_or_with_a_new_one(
    text: str, written: str, first: str
) -> None:
    source = source_of(text)
    content, edits = source.reference("torch.amp.GradScaler")
    assert content == written
    assert edited(source.layout, edits) == first


def test_nothing_is_imported_over_a_name_that_means_something_else() -> None:
    with pytest.raises(NoFixError):
        source_of("torch = 1\n").reference("torch.no_grad")


def fix_at(line: int, first: int, last: int, content: str) -> Fix:
    return Fix("", Applicability.SAFE, (Edit(Span("train.py", line, first, line, last), content),))


def test_of_two_fixes_that_overlap_the_first_is_taken() -> None:
    one, other, third = fix_at(1, 1, 4, "a"), fix_at(1, 3, 6, "b"), fix_at(2, 1, 2, "c")
    assert without_conflicts([one, other, third]) == [one, third]


def test_fixes_that_break_a_program_together_are_tried_one_by_one() -> None:
    text = "f(1)\nf(2)\n"
    layout = Layout(text, ast.parse(text))
    good, bad = fix_at(1, 3, 4, "3"), fix_at(2, 4, 5, "")
    assert joined(layout, [good, bad]) == ("f(3)\nf(2)\n", [good])
