"""The reports for people: text and concise."""

import pathlib

import pytest

from gradlint.finding import Finding, Related, Severity, Span
from gradlint.report import Outcome, render

PROGRAM = """\
def train(model, x, valid):
    if valid.sum() > 0:
        loss = model(x).mean()
    else:
        loss = torch.tensor(0.0)
    loss.backward()
"""
CONSTANT = Finding(
    "GL001",
    "constant-loss",
    Severity.ERROR,
    "the loss is a constant when `valid.sum() > 0` is false",
    Span("train.py", 5, 16, 5, 33),
    help="multiply something that carries gradient by 0",
    related=(Related(Span("train.py", 6, 5, 6, 20), "back-propagated here"),),
)


def report(name: str, *findings: Finding, program: str = PROGRAM, color: bool = False) -> str:
    return render(name, Outcome(findings, 1, lambda path: program.split("\n"), color=color))


def test_a_finding_reads_like_a_compilers() -> None:
    assert (
        report("text", CONSTANT)
        == """\
error[GL001]: the loss is a constant when `valid.sum() > 0` is false
 --> train.py:5:16
  |
3 |         loss = model(x).mean()
4 |     else:
5 |         loss = torch.tensor(0.0)
  |                ^^^^^^^^^^^^^^^^^
note: back-propagated here
 --> train.py:6:5
  |
6 |     loss.backward()
  |     ---------------
help: multiply something that carries gradient by 0

Found 1 error in 1 file.
"""
    )


def test_concise_is_one_line_a_finding() -> None:
    assert report("concise", CONSTANT) == (
        "train.py:5:16: error[GL001] the loss is a constant when `valid.sum() > 0` is false\n"
        "Found 1 error in 1 file.\n"
    )


def at(line: int, column: int, end_line: int, end_column: int) -> Finding:
    return Finding(
        "GL001", "n", Severity.NOTE, "m", Span("a.py", line, column, end_line, end_column)
    )


def framed(program: str, finding: Finding) -> list[str]:
    """The code frame of the report of `finding`."""
    lines = report("text", finding, program=program).splitlines()
    return lines[lines.index("  |") + 1 : -2]


@pytest.mark.parametrize(
    ("program", "finding", "lines"),
    [
        ("\tx = 1", at(1, 2, 1, 3), ["1 |     x = 1", "  |     ^"]),
        ("日本 = f(x)", at(1, 6, 1, 10), ["1 | 日本 = f(x)", "  |        ^^^^"]),
        ("e\u0301 = f(x)", at(1, 6, 1, 10), ["1 | e\u0301 = f(x)", "  |     ^^^^"]),
        (
            "f(\n    x,\n)",
            at(1, 1, 3, 2),
            ["1 | f(", "  | ^^", "2 |     x,", "  |     ^^", "3 | )", "  | ^"],
        ),
        ("f(x)\ny", at(1, 1, 2, 1), ["1 | f(x)", "  | ^^^^"]),
        ("f(x)", at(1, 5, 1, 5), ["1 | f(x)", "  |     ^"]),
        ("x = '\x1b[31m'", at(1, 5, 1, 12), ["1 | x = '\\x1b[31m'", "  |     ^^^^^^^^^^"]),
        ("\n\n  \nx", at(4, 1, 4, 2), ["4 | x", "  | ^"]),
        ("", at(3, 1, 3, 2), []),
    ],
)
def test_the_underline_stands_under_what_it_means(
    program: str, finding: Finding, lines: list[str]
) -> None:
    if lines:
        assert framed(program, finding) == lines
    else:
        assert "  |" not in report("text", finding, program=program)


def test_a_stretch_of_many_lines_is_cut_short() -> None:
    program = "f(\n" + "    x,\n" * 50 + ")"
    lines = report("text", at(1, 1, 52, 2), program=program).splitlines()
    assert len(lines) < 20
    assert "... |" in lines


def test_a_long_line_is_quoted_around_the_finding() -> None:
    program = "x = [" + "1, " * 300 + "bad, " + "2, " * 300 + "]"
    quoted, marks = framed(program, at(1, 906, 1, 909))
    start = marks.index("^")
    assert quoted[start : start + 3] == "bad"
    assert len(quoted) < 180


def test_at_most_four_places_are_shown() -> None:
    places = tuple(
        Related(Span("train.py", line, 1, line, 2), f"step {line}") for line in range(1, 7)
    )
    text = report(
        "text",
        Finding("GL001", "n", Severity.ERROR, "m", Span("train.py", 5, 1, 5, 2), related=places),
    )
    assert text.count("-->") == 4


def test_paths_are_shown_from_here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = Finding(
        "GL001", "n", Severity.ERROR, "m", Span(str(tmp_path / "a" / "b.py"), 1, 1, 1, 2)
    )
    assert report("concise", here).startswith("a/b.py:1:1: ")


def test_on_a_terminal_codes_are_links() -> None:
    text = report("text", CONSTANT, color=True)
    assert "\x1b]8;;https://" in text
    assert "\x1b[1;31merror" in text


@pytest.mark.parametrize(
    ("severities", "line"),
    [
        ([], "Nothing found in 1 file."),
        (["ERROR", "ERROR"], "Found 2 errors in 1 file."),
        (["NOTE", "ERROR"], "Found 1 error and 1 note in 1 file."),
        (
            ["NOTE", "WARNING", "WARNING", "ERROR"],
            "Found 1 error, 2 warnings and 1 note in 1 file.",
        ),
    ],
)
def test_the_last_line_counts(severities: list[str], line: str) -> None:
    findings = [
        Finding("GL001", "n", Severity[name], "m", Span("a.py", 1, 1, 1, 2)) for name in severities
    ]
    assert report("text", *findings).splitlines()[-1] == line
