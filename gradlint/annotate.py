"""Writes suppressions into programs: a comment with a reason on a line of each finding."""

from __future__ import annotations

import ast
import collections
import io
import pathlib
import re
import tokenize
from collections.abc import Collection, Iterable, Mapping, Sequence

from gradlint.finding import Finding
from gradlint.output import replace_file
from gradlint.source import document, kinds
from gradlint.source.lines import split_lines
from gradlint.source.parse import Source, is_of_this_python, parse

_OURS = re.compile(r"(?P<head>(?<!\S)#\s*gradlint:\s*ignore\[)(?P<codes>[^\]]*)(?P<tail>\])")


def add_ignores(
    findings: Iterable[Finding], reason: str, root: pathlib.Path
) -> tuple[int, Sequence[Finding]]:
    """Write a suppression for each finding; how many were written, and the findings where none can
    stand.
    """
    by_file: dict[str, list[Finding]] = collections.defaultdict(list)
    for finding in findings:
        by_file[finding.at.path].append(finding)
    written = 0
    left: list[Finding] = []
    for path, found in by_file.items():
        unplaced = _annotate(path, found, reason, root)
        written += len(found) - len(unplaced)
        left += unplaced
    return written, left


def suppressed(text: str, finding: Finding, in_strings: Collection[int]) -> tuple[int, str] | None:
    """Which line takes a comment against a finding, and what it is then; None where none can stand.

    A line before one of those that begin in a string ends in it, unless it ends between two of its
    parts.
    """
    lines, first = split_lines(text), finding.at.line
    is_plain = first + 1 not in in_strings and not lines[first - 1].endswith("\\")
    codes, _ = _codes_by_line(
        [finding], frozenset([first]) if is_plain else _lines_for_comments(text)
    )
    return next(
        ((number, _with_comment(lines[number - 1], added, "")) for number, added in codes.items()),
        None,
    )


def _annotate(
    path: str, findings: Sequence[Finding], reason: str, root: pathlib.Path
) -> Sequence[Finding]:
    content = document.read(pathlib.Path(path))
    text = document.decode(path, content)
    before = parse(path, text) if isinstance(text, str) else text
    if not isinstance(text, str) or not isinstance(before, Source):
        return findings
    codes, unplaced = _codes_by_line(findings, _lines_for_comments(text))
    after = _with_comments(text, codes, reason)
    assert _same(before, parse(path, after)), f"a comment changes the meaning of {path}"
    replace_file(
        pathlib.Path(document.file_of(path)), content, document.encode(path, after, content), root
    )
    return unplaced


def _codes_by_line(
    findings: Sequence[Finding], lines: frozenset[int]
) -> tuple[Mapping[int, Sequence[str]], Sequence[Finding]]:
    codes: dict[int, list[str]] = collections.defaultdict(list)
    unplaced = []
    for finding in findings:
        line = next(
            (n for n in range(finding.at.line, finding.at.last_line + 1) if n in lines), None
        )
        if line is None:
            unplaced.append(finding)
        elif finding.code not in codes[line]:
            codes[line].append(finding.code)
    return codes, unplaced


def _lines_for_comments(text: str) -> frozenset[int]:
    """The lines at whose end a comment can stand: no string goes on there, and no backslash."""
    lines = split_lines(text)
    fit = {number for number, line in enumerate(lines, 1) if not line.endswith("\\")}
    if is_of_this_python(text):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type not in (
                tokenize.NEWLINE,
                tokenize.NL,
                tokenize.DEDENT,
                tokenize.ENDMARKER,
            ):
                fit.difference_update(range(token.start[0], token.end[0]))
        return frozenset(fit) - _within(text, (ast.JoinedStr, kinds.TemplateStr))
    return frozenset(fit) - _within(text, (ast.JoinedStr, kinds.TemplateStr, ast.Constant))


def _within(text: str, strings: tuple[type[ast.expr], ...]) -> frozenset[int]:
    """Lines that end inside of such strings, of which those with fields are several tokens from
    Python 3.12 on.
    """
    parsed = parse("", text)
    nodes = ast.walk(parsed.tree) if isinstance(parsed, Source) else ()
    found = (node for node in nodes if isinstance(node, strings))
    return frozenset(
        n for node in found for n in range(node.lineno, node.end_lineno or node.lineno)
    )


def _with_comments(text: str, codes: Mapping[int, Sequence[str]], reason: str) -> str:
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n|\Z)", text)
    for number, added in codes.items():
        body = lines[number - 1].rstrip("\r\n")
        end = lines[number - 1][len(body) :]
        lines[number - 1] = _with_comment(body, added, reason) + end
    return "".join(lines)


def _with_comment(line: str, codes: Sequence[str], reason: str) -> str:
    if existing := _OURS.search(line):
        merged = dict.fromkeys([*re.findall(r"\w+", existing["codes"]), *codes])
        return line[: existing.start("codes")] + ", ".join(merged) + line[existing.end("codes") :]
    return f"{line.rstrip()}  # gradlint: ignore[{', '.join(codes)}] {reason}".rstrip()


def _same(before: Source, after: object) -> bool:
    return isinstance(after, Source) and ast.dump(before.tree) == ast.dump(after.tree)
