"""JUnit's XML: a suite for each file, a failed test for each finding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from xml.etree import ElementTree

from gradlint.finding import Finding
from gradlint.fingerprint import relative
from gradlint.report import Outcome
from gradlint.report._place import printable


def render(outcome: Outcome) -> str:
    """The findings as failures; with none, one test that passes, since CI takes an empty report for
    a broken one.
    """
    number = str(len(outcome.findings))
    suites = ElementTree.Element(
        "testsuites", name="gradlint", tests=str(max(1, len(outcome.findings))), failures=number
    )
    ordered = sorted(outcome.findings, key=lambda finding: finding.at.path)
    for path, found in itertools.groupby(ordered, key=lambda finding: finding.at.path):
        _add_suite(suites, relative(path, outcome.root), list(found), outcome)
    if not outcome.findings:
        suite = ElementTree.SubElement(
            suites, "testsuite", name="gradlint", tests="1", failures="0"
        )
        ElementTree.SubElement(suite, "testcase", name="nothing found", classname="gradlint")
    ElementTree.indent(suites)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        + ElementTree.tostring(suites, encoding="unicode")
        + "\n"
    )


def _add_suite(
    suites: ElementTree.Element, path: str, findings: Sequence[Finding], outcome: Outcome
) -> None:
    number = str(len(findings))
    suite = ElementTree.SubElement(
        suites, "testsuite", name=printable(path), tests=number, failures=number
    )
    for finding in findings:
        at = finding.at
        case = ElementTree.SubElement(
            suite, "testcase", name=f"{finding.code} {finding.name} at {at.place}",
            classname=printable(path), file=printable(path), line=str(outcome.raw(at).line),
        )  # fmt: skip
        message = printable(finding.message)
        failure = ElementTree.SubElement(
            case, "failure", message=message, type=finding.severity.label
        )
        failure.text = printable(f"{path}:{at.place}: {finding.code} {finding.message}")
