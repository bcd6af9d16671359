"""The reports for machines: SARIF, GitHub, GitLab, JUnit, JSON lines, Markdown, and the count by
rule.
"""

import json
import os
import pathlib
from typing import Any
from xml.etree import ElementTree

import pytest

from gradlint.finding import Applicability, Edit, Finding, Fix, Related, Severity, Span
from gradlint.report import Outcome, formats, render

PROGRAM = [
    "import torch",
    "",
    "loss = torch.tensor(0.0)",
    "loss.backward()",
    "loss = torch.tensor(0.0)",
]


def finding(line: int = 3, severity: Severity = Severity.ERROR, **more: Any) -> Finding:
    return Finding(
        "GL001",
        "syntax-error",
        severity,
        more.pop("message", "a message"),
        Span("a b.py", line, 8, line, 25),
        **more,
    )


def outcome(
    *findings: Finding, lines: list[str] = PROGRAM, root: pathlib.Path | None = None
) -> Outcome:
    return Outcome(findings, 1, lambda path: lines, root or pathlib.Path.cwd())


def sarif(*findings: Finding, lines: list[str] = PROGRAM) -> dict[str, Any]:
    log = json.loads(render("sarif", outcome(*findings, lines=lines)))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    return dict(run)


def test_sarif_has_a_result_with_its_place_and_its_rule() -> None:
    run = sarif(finding(related=(Related(Span("net.py", 1, 1, 1, 2), "called here"),)))
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert (result["ruleId"], rule["id"], result["level"]) == ("GL001", "GL001", "error")
    assert "valid Python" in rule["help"]["markdown"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 3, "startColumn": 8, "endLine": 3, "endColumn": 25}
    assert result["relatedLocations"][0]["message"] == {"text": "called here"}


def test_sarif_has_the_fix() -> None:
    fix = Fix("mend it", Applicability.SAFE, (Edit(Span("a b.py", 3, 8, 3, 25), "x * 0"),))
    (result,) = sarif(finding(fix=fix))["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 8, "endLine": 3, "endColumn": 25},
            "insertedContent": {"text": "x * 0"},
        }
    ]


def prints(*findings: Finding, lines: list[str] = PROGRAM) -> list[str]:
    return [
        result["partialFingerprints"]["gradlint/v1"]
        for result in sarif(*findings, lines=lines)["results"]
    ]


def test_fingerprints_survive_lines_that_shift_and_spaces_that_change() -> None:
    shifted = ["# new", *PROGRAM[:2], "    loss  = torch.tensor(0.0)", *PROGRAM[3:]]
    assert prints(finding(3)) == prints(finding(4), lines=shifted)


def test_fingerprints_tell_equal_lines_apart() -> None:
    assert len(set(prints(finding(3), finding(5)))) == 2


def test_fingerprints_change_with_the_code_that_they_stand_on() -> None:
    assert prints(finding(3)) != prints(finding(3), lines=["", "", "loss = torch.tensor(1.0)"])


def test_github_gets_one_escaped_command_a_finding() -> None:
    text = render(
        "github",
        outcome(
            finding(message="50% of\n`a, b`", help="do: this"), finding(severity=Severity.NOTE)
        ),
    )
    first, second = text.splitlines()
    assert first == (
        "::error title=gradlint (GL001 syntax-error),file=a "
        "b.py,line=3,endLine=3,col=8,endColumn=25"
        "::50%25 of%0A`a, b`%0Ahelp: do: this"
    )
    assert second.startswith("::notice ")


def test_gitlab_gets_what_it_asks_for() -> None:
    (found,) = json.loads(render("gitlab", outcome(finding())))
    assert found.keys() == {"description", "check_name", "fingerprint", "severity", "location"}
    assert found["severity"] == "critical"
    assert found["location"]["path"] == "a b.py"
    assert found["location"]["positions"]["begin"] == {"line": 3, "column": 8}


def test_junit_counts_failures_by_file() -> None:
    root = ElementTree.fromstring(
        render("junit", outcome(finding(message="`a < b` & \x1b"), finding(5)))
    )
    assert root.attrib == {"name": "gradlint", "tests": "2", "failures": "2"}
    (suite,) = root
    assert suite.attrib["name"] == "a b.py"
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.attrib["message"] == "`a < b` & \\x1b"


def test_junit_without_findings_has_a_test_that_passes() -> None:
    root = ElementTree.fromstring(render("junit", outcome()))
    assert [case.find("failure") for case in root.iter("testcase")] == [None]


def test_json_lines_are_the_objects_of_json() -> None:
    found = outcome(finding(), finding(5))
    assert [json.loads(line) for line in render("jsonl", found).splitlines()] == json.loads(
        render("json", found)
    )


def test_statistics_count_by_rule() -> None:
    lines = render("statistics", outcome(finding(), finding(5))).splitlines()
    assert lines == ["     2  GL001  error    syntax-error", "Found 2 errors in 1 file."]


@pytest.mark.parametrize("name", formats())
def test_every_format_can_tell_of_nothing_and_of_an_absent_text(name: str) -> None:
    assert isinstance(render(name, outcome()), str)
    outside = Finding(
        "GL001", "syntax-error", Severity.ERROR, "m", Span(os.path.abspath("/x/y.py"), 9, 1, 12, 1)
    )
    assert isinstance(render(name, outcome(outside, lines=[])), str)


def test_markdown_tells_the_worst_first_in_a_table_that_no_text_can_leave() -> None:
    hostile = finding(
        4, Severity.NOTE, message="`a|b<!--\n@you` at www.example.org, [x](http://y)", help="Do it."
    )
    heading, _, _, _, *rows = render("markdown", outcome(hostile, finding())).splitlines()
    assert heading == "### gradlint: Found 1 error and 1 note in 1 file"
    assert [row.split(" | ")[0] for row in rows] == ["| error", "| note"]
    assert rows[0].split(" | ")[1] == "<code>a b.py&#58;3&#58;8</code>"
    said = rows[1].split(" | ")[3]
    assert said.startswith(
        "<code>a&#124;b&#60;&#33;--&#92;n&#64;you</code> at www&#46;example.org, "
        "&#91;x&#93;(http&#58;"
    )
    assert said.endswith("<br>Do it. |")
    assert all(row.count("|") == 5 for row in rows)


def test_markdown_of_many_findings_fits_a_comment() -> None:
    many = [finding(number, message="`|`" * 500) for number in range(1, 200)]
    text = render("markdown", outcome(*many))
    assert len(text) < 65_536
    told = sum(row.startswith("| error") for row in text.splitlines())
    assert text.endswith(f"\nAnd {199 - told} findings more.\n")
    assert render("markdown", outcome()) == "### gradlint: Nothing found in 1 file\n"
