"""Which findings comments suppress, and what is said of comments that suppress nothing."""

import textwrap

import pytest

from gradlint import suppress
from gradlint.finding import Finding, Severity, Span


def finding(
    line: int, code: str = "GL001", end_line: int | None = None, end_column: int = 9
) -> Finding:
    return Finding(
        code,
        "a-name",
        Severity.ERROR,
        "wrong",
        Span("train.py", line, 5, end_line or line, end_column),
    )


def left(program: str, *findings: Finding, off: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    """Code and line of what is reported of `program` after its comments were heard."""
    reported = suppress.apply(
        "train.py", textwrap.dedent(program), findings, lambda code: code not in off
    )
    return [(each.code, each.at.line) for each in reported]


@pytest.mark.parametrize(
    "comment",
    [
        "# gradlint: ignore[GL001]",
        "#gradlint:ignore[GL001]",
        "# gradlint: ignore[gl001] a reason",
        "# gradlint: ignore[GL001, GL001] twice is once",
        "# gradlint: ignore",
        "# gradlint: ignore whatever it is",
        "# noqa: GL001",
        "# noqa: E501, GL001",
        "# noqa:E501 GL001 and prose",
        "# NOQA",
        "# type: ignore  # noqa: GL001",
        "# pragma: no cover # gradlint: ignore[GL001] # noqa: E501",
    ],
)
def test_a_comment_suppresses_the_code_it_names_on_its_line(comment: str) -> None:
    assert left(f"loss = 0  {comment}\n", finding(1)) == []


@pytest.mark.parametrize(
    "line",
    [
        "text = '# gradlint: ignore[GL001]'",
        "loss = 0  # noqa: E501",
        "loss = 0  # see `# gradlint: ignore[GL001]`",
        "loss = 0  # noqa-ish",
        "loss = 0  # gradlint says GL001",
    ],
)
def test_what_only_looks_like_a_suppression_suppresses_nothing(line: str) -> None:
    assert ("GL001", 1) in left(line + "\n", finding(1))


def test_a_comment_suppresses_on_its_own_line_only() -> None:
    assert left("a = 1  # noqa: GL001\nb = 2\n", finding(1), finding(2)) == [("GL001", 2)]


def test_a_comment_on_any_line_of_a_finding_suppresses_it() -> None:
    program = """\
        loss = f(
            x,  # gradlint: ignore[GL001]
            y,
        )
        """
    assert left(program, finding(1, end_line=4, end_column=2)) == []


def test_the_line_at_whose_start_a_finding_ends_is_not_its_line() -> None:
    program = "loss = 0\nother = 1  # noqa\n"
    assert left(program, finding(1, end_line=2, end_column=1)) == [("GL001", 1)]


def test_skip_file_silences_the_file() -> None:
    assert left("# gradlint: skip-file\nloss = 0\n", finding(2)) == []


def test_an_unused_suppression_is_reported_where_it_stands() -> None:
    (unused,) = suppress.apply(
        "train.py", "loss = 0  # gradlint: ignore[GL001] why\n", [], lambda code: True
    )
    assert (unused.code, unused.at) == ("GL002", Span("train.py", 1, 11, 1, 36))


def test_of_two_codes_only_the_unused_one_is_reported() -> None:
    program = "x = 0  # gradlint: ignore[GL001, GL101]\n"
    (unused,) = suppress.apply("t.py", program, [finding(1, "GL001")], lambda code: True)
    assert unused.message.startswith("GL101 ")


def test_the_suppression_of_a_rule_that_is_off_is_not_called_unused() -> None:
    assert left("x = 0  # noqa: GL001\n", off=("GL001",)) == []


def test_an_unused_blanket_comment_is_reported_only_when_every_rule_is_on() -> None:
    assert left("x = 0  # gradlint: ignore\n") == [("GL002", 1)]
    assert left("x = 0  # gradlint: ignore\n", off=("GL001",)) == []


def test_a_bare_noqa_is_never_called_unused() -> None:
    assert left("x = 0  # noqa\n") == []


def test_a_suppression_can_suppress_its_own_report() -> None:
    assert left("x = 0  # gradlint: ignore[GL001, GL002] on some machines\n") == []


def test_an_unknown_code_is_reported_with_what_was_meant() -> None:
    (unknown,) = suppress.apply(
        "t.py", "x = 0  # gradlint: ignore[GL0001]\n", [], lambda code: True
    )
    assert unknown.code == "GL003"
    assert "'GL0001'" in unknown.message
    assert "did you mean 'GL001'?" in unknown.message


def test_codes_of_other_tools_are_nobodys_business() -> None:
    assert left("x = 0  # noqa: E501, GL08, PLR0913\n") == []


def test_an_unknown_code_of_ours_in_a_noqa_is_reported() -> None:
    assert left("x = 0  # noqa: GL999\n") == [("GL003", 1)]


def test_a_misspelt_verb_is_reported_with_what_was_meant() -> None:
    (unknown,) = suppress.apply("t.py", "x = 0  # gradlint: ingore[GL001]\n", [], lambda code: True)
    assert unknown.code == "GL003"
    assert "did you mean 'ignore'?" in unknown.message


def test_comments_before_a_syntax_error_still_count() -> None:
    assert left("def f(:  # noqa: GL001\n    '''\n", finding(1)) == []
