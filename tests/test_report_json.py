"""The JSON reports."""

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from commandline import Run

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


ROOT = pathlib.Path(__file__).parents[1]
SCHEMA = json.loads((ROOT / "gradlint/schemas/findings-1.json").read_text(encoding="utf-8"))


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
                {
                    "content": "x * 0",
                    "cell": None,
                    "location": {"row": 5, "column": 16},
                    "end_location": {"row": 5, "column": 33},
                }
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


def shape(found: object, said: Mapping[str, Any]) -> None:
    """Holds every field of an object against those that the schema names: a field more is a gap of
    the schema.
    """
    while "$ref" in said:
        said = SCHEMA["$defs"][said["$ref"].rpartition("/")[2]]
    if isinstance(found, dict):
        named = said.get("properties") or SCHEMA["$defs"]["fix"]["properties"]
        assert found.keys() == named.keys()
        for key, value in found.items():
            shape(value, named[key])
    for each in found if isinstance(found, list) else ():
        shape(each, said["items"])


def test_what_is_said_of_a_finding_is_what_the_schema_says() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    found = json.loads(render("json", outcome(FINDING)))
    shape(found, SCHEMA)
    wrong = [
        {**found[0], "severity": "fatal"},
        {**found[0], "location": {"row": 0, "column": 1}},
        {"code": "GL001"},
    ]
    for each in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([each], SCHEMA)


def test_reports_hold_against_the_schema(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cut = (
        "import torch\nloss = torch.nn.Linear(2, 1)(torch.ones(2)).detach().sum()\n"
        "loss.backward()\n"
    )
    cell: dict[str, Any] = {
        "cell_type": "code",
        "metadata": {},
        "source": cut,
        "execution_count": None,
        "outputs": [],
    }
    page = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "page.ipynb").write_text(json.dumps(page))
    (tmp_path / "broken.py").write_text("x = (\n")
    (tmp_path / "missed.py").write_text(
        "def train(loss):\n    raise ValueError\n    loss.backward()\n"
    )
    folders = [
        str(ROOT / "fixtures/mission" / name)
        for name in ("GL101-empty-mask-zero-loss", "GL103-rollout-and-rewards")
    ]
    for arguments in (
        ("check", ".", *folders),
        ("check", "-"),
        ("check", "missed.py", "--no-parts"),
    ):
        found = json.loads(run(*arguments, "--no-cache", "--output-format", "json", stdin=cut).out)
        assert found
        jsonschema.validate(found, SCHEMA)
        if len(arguments) > 3:
            assert {"GL001", "GL004", "GL101", "GL102", "GL103"} <= {each["code"] for each in found}
            assert {bool(each["fix"]) for each in found} == {True, False}
            assert {each["cell"] for each in found} == {None, 1}
    lines = run("check", "page.ipynb", "--no-cache", "--output-format", "jsonl").out.splitlines()
    jsonschema.validate(list(map(json.loads, lines)), SCHEMA)
