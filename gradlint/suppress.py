"""After the rules: which findings a comment suppresses, and which comments suppress nothing or name
no rule.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Span
from gradlint.guess import did_you_mean
from gradlint.rule import Report, rules
from gradlint.source.comments import Comment
from gradlint.source.comments import comments as comments_of

_HINT = re.compile(r"gradlint:|noqa", re.IGNORECASE)
_OURS = re.compile(r"(?<!\S)#\s*gradlint:\s*(?P<verb>[\w-]+)(?:\[(?P<codes>[^\]]*)\])?")
_NOQA = re.compile(
    r"(?<!\S)#\s*noqa(?![\w-])(?::\s*(?P<codes>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*))?",
    re.IGNORECASE,
)
_NOQA_CODE = re.compile(r"GL[0-9]{3}")  # of the codes in a noqa, those meant for us
_VERBS = ("ignore", "skip-file")
_USAGE = "write `# gradlint: ignore[CODE] reason` on the line, or `# gradlint: skip-file`"
UNUSED, UNKNOWN = "GL002", "GL003"


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: where it is and which codes it names; None stands for every code."""

    at: Span
    codes: tuple[str, ...] | None
    is_ours: bool  # not a noqa, which other tools read, too


@dataclass(frozen=True, slots=True)
class Comments:
    """What the comments of a file ask for."""

    suppressions: tuple[Suppression, ...]
    unknown_verbs: tuple[tuple[Span, str], ...]
    skips_file: bool


def comments(path: str, text: str) -> Comments:
    """The suppression comments of a program. Only real comments count, not strings that look like
    one.
    """
    suppressions: list[Suppression] = []
    unknown: list[tuple[Span, str]] = []
    skips = False
    for comment in comments_of(text) if _HINT.search(text) else ():
        for ours in _OURS.finditer(comment.text):
            at, verb = _span(path, comment, ours), ours["verb"]
            skips |= verb == "skip-file"
            if verb == "ignore":
                suppressions.append(Suppression(at, _split(ours["codes"]), is_ours=True))
            elif verb not in _VERBS:
                unknown.append((at, verb))
        for noqa in _NOQA.finditer(comment.text):
            suppressions.append(
                Suppression(_span(path, comment, noqa), _split(noqa["codes"]), is_ours=False)
            )
    return Comments(tuple(suppressions), tuple(unknown), skips)


def apply(
    path: str, text: str, findings: Sequence[Finding], is_on: Callable[[str], bool]
) -> list[Finding]:
    """The findings of one file that no comment suppresses, and what is wrong with its comments."""
    found = comments(path, text)
    if found.skips_file:
        return []
    used: set[tuple[Suppression, str]] = set()
    left = [
        finding for finding in findings if not _is_suppressed(finding, found.suppressions, used)
    ]
    about = [*_unused(found.suppressions, used, is_on), *_unknown(found)]
    return left + [
        finding
        for finding in about
        if is_on(finding.code) and not _is_suppressed(finding, found.suppressions, used)
    ]


def _is_suppressed(
    finding: Finding, suppressions: Sequence[Suppression], used: set[tuple[Suppression, str]]
) -> bool:
    """Whether a comment on a line of the finding names it; the comments stand in the order of their
    lines.
    """
    first = bisect.bisect_left(suppressions, finding.at.line, key=_line)
    last = bisect.bisect_right(suppressions, finding.at.last_line, key=_line)
    fitting = [each for each in suppressions[first:last] if _names(each, finding)]
    used.update((each, finding.code) for each in fitting)
    return bool(fitting)


def _line(suppression: Suppression) -> int:
    return suppression.at.line


def _names(suppression: Suppression, finding: Finding) -> bool:
    if suppression.codes is None:
        # a blanket comment does not hide that it is useless
        return finding.code not in (UNUSED, UNKNOWN)
    return finding.code in suppression.codes


def _unused(
    suppressions: Iterable[Suppression],
    used: set[tuple[Suppression, str]],
    is_on: Callable[[str], bool],
) -> Iterator[Finding]:
    useful = {each for each, _ in used}
    for each in suppressions:
        if each.codes is None:
            if each.is_ours and each not in useful and all(is_on(code) for code in rules()):
                yield _unused_finding(each.at, "the comment suppresses nothing")
            continue
        for code in dict.fromkeys(each.codes):
            if (
                code in rules()
                and code not in (UNUSED, UNKNOWN)
                and is_on(code)
                and (each, code) not in used
            ):
                yield _unused_finding(each.at, f"{code} is suppressed here but not reported")


def _unused_finding(at: Span, message: str) -> Finding:
    return rules()[UNUSED].finding(Report(at, message, help="remove it from the comment"))


def _unknown(found: Comments) -> Iterator[Finding]:
    rule = rules()[UNKNOWN]
    for at, verb in found.unknown_verbs:
        message = f"`# gradlint: {verb}` means nothing{did_you_mean(verb, _VERBS)}"
        yield rule.finding(Report(at, message, help=_USAGE))
    for each in found.suppressions:
        for code in dict.fromkeys(each.codes or ()):
            if code not in rules() and (each.is_ours or _NOQA_CODE.fullmatch(code)):
                message = f"no rule has the code {code!r}{did_you_mean(code, rules())}"
                yield rule.finding(Report(each.at, message, help="`gradlint rule` lists the codes"))


def _split(codes: str | None) -> tuple[str, ...] | None:
    return (
        None
        if codes is None
        else tuple(word.upper() for word in re.split(r"[,\s]+", codes) if word)
    )


def _span(path: str, comment: Comment, match: re.Match[str]) -> Span:
    column = comment.offset + 1
    return Span(path, comment.line, column + match.start(), comment.line, column + match.end())
