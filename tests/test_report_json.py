"""The JSON reports."""

import json
import os

from gradlint.finding import Applicability, Edit, Finding, Fix, Related, Severity, Span
from gradlint.report import Outcome, formats, render

AT = Span("src/train.py", 5, 16, 5, 33)
FINDING = Finding(
    "GL001",
    "syntax-error",
    Severity.ERROR,
    "what happens",
    AT,
    help="what to do",
    related=(Related(Span("src/net.py", 1, 1, 1, 2), "called here"),),
    fix=Fix("mend it", Applicability.UNSAFE, (Edit(AT, "x * 0"),)),
)


def outcome(*findings: Finding) -> Outcome:
    return Outcome(findings, 1, lambda path: [])


def test_a_finding_has_ruffs_fields_and_ours() -> None:
    (found,) = json.loads(render("json", outcome(FINDING)))
    url = found.pop("url")
    assert url.endswith("/syntax-error")
    assert found == {
        "code": "GL001",
        "name": "syntax-error",
        "severity": "error",
        "message": "what happens",
        "help": "what to do",
        "filename": os.path.abspath("src/train.py"),
        "cell": None,
        "location": {"row": 5, "column": 16},
        "end_location": {"row": 5, "column": 33},
        "fix": {
            "applicability": "unsafe",
            "message": "mend it",
            "edits": [
                {"content": "x * 0", "location": {"row": 5, "column": 16}, "end_location": {"row": 5, "column": 33}}
            ],
        },
        "related": [
            {
                "filename": os.path.abspath("src/net.py"),
                "cell": None,
                "location": {"row": 1, "column": 1},
                "end_location": {"row": 1, "column": 2},
                "message": "called here",
            }
        ],
    }


def test_no_finding_is_an_empty_list() -> None:
    assert json.loads(render("json", outcome())) == []


def test_standard_input_keeps_its_name() -> None:
    nameless = Finding("GL001", "syntax-error", Severity.ERROR, "m", Span("-", 1, 1, 1, 1))
    assert json.loads(render("json", outcome(nameless)))[0]["filename"] == "-"


def test_a_format_is_there_by_being_there() -> None:
    assert {"text", "concise", "json"} <= set(formats())
    assert not [name for name in formats() if name.startswith("_")]
