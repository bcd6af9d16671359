"""The files for pre-commit, GitHub and GitLab say what these ask for, and their commands do what
they should.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from typing import Any

import pytest
from check_jsonschema import main as check_jsonschema  # type: ignore[import-untyped]
from click.testing import CliRunner
from ruamel.yaml import YAML

import gradlint

ROOT = pathlib.Path(__file__).parents[1]
ACTION, TEMPLATE, HOOKS = (
    ROOT / "action.yml",
    ROOT / "templates/gradlint.gitlab-ci.yml",
    ROOT / ".pre-commit-hooks.yaml",
)
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
SCRIPT = """\
import torch
from helper import loss_of

loss_of(torch.nn.Linear(2, 1)(torch.randn(3, 2))).backward()
"""
HELPER = "def loss_of(y):\n    return y.detach().mean()\n"


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "a project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    (folder / "helper.py").write_text(HELPER)
    (folder / "broken.py").write_text("x = (\n")
    (folder / "click.py").write_text("raise SystemExit('what is checked was imported')\n")
    return folder


def loaded(file: pathlib.Path) -> Any:
    return YAML(typ="safe").load(file.read_text(encoding="utf-8"))


def valid(kind: str, *arguments: str) -> None:
    """Holds a file against a schema that check-jsonschema brings along."""
    result = CliRunner().invoke(
        check_jsonschema, ["--builtin-schema", f"vendor.{kind}", *arguments]
    )
    assert result.exit_code == 0, result.output


def run(
    command: Sequence[str], cwd: pathlib.Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GRADLINT", "FORCE_COLOR"))
    }
    return subprocess.run(
        command, cwd=cwd, env={**kept, **variables}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True,
        check=False, timeout=120,
    )  # fmt: skip


def test_the_files_hold_against_the_schemas_of_those_who_read_them() -> None:
    valid("github-actions", str(ACTION))
    valid("gitlab-ci", "--data-transform", "gitlab-ci", str(TEMPLATE))


@pytest.mark.parametrize("kind", ["github-workflows", "gitlab-ci"])
def test_the_examples_of_the_page_hold_against_the_schemas(
    tmp_path: pathlib.Path, kind: str
) -> None:
    heading = {"github-workflows": "GitHub", "gitlab-ci": "GitLab"}[kind]
    example = re.search(rf"## {heading}\n```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    (tmp_path / "example.yml").write_text(example[1])
    valid(kind, str(tmp_path / "example.yml"))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_of_ours_holds_against_the_schema_and_asks_for_little(
    file: pathlib.Path,
) -> None:
    valid("github-workflows", str(file))
    workflow = loaded(file)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in job.get("steps", ()):
            # no name of a branch or tag is pasted into a script
            assert "${{" not in step.get("run", "")


def test_only_a_tag_is_published() -> None:
    jobs = loaded(ROOT / ".github/workflows/release.yml")["jobs"]
    leaves = [job for job in jobs.values() if "id-token" in job.get("permissions", {})]
    assert len(leaves) == 2
    assert all(job["if"] == "github.ref_type == 'tag' && !inputs.dry" for job in leaves)


def test_a_release_is_that_of_its_tag_and_told_in_the_changelog() -> None:
    tool = runpy.run_path(str(ROOT / "tools/release.py"))
    assert list(tool["faults"](None)) == []
    assert any("the version" in each for each in tool["faults"]("v99.0.0"))
    told = re.search(
        rf"^## {re.escape(gradlint.__version__)}\b",
        (ROOT / "CHANGELOG.md").read_text(),
        re.MULTILINE,
    )
    assert len(list(tool["faults"](f"v{gradlint.__version__}"))) == (told is None)
    name, program, said = tool["example"]()
    assert name.endswith(".py")
    assert "import torch" in program
    assert re.search(r"\[GL\d+\]", said)


def test_a_schema_refuses_what_is_wrong(tmp_path: pathlib.Path) -> None:
    (tmp_path / "action.yml").write_text(
        ACTION.read_text().replace("using: composite", "using: magic")
    )
    with pytest.raises(AssertionError, match="magic"):
        valid("github-actions", str(tmp_path / "action.yml"))


def test_the_hook_runs_on_what_changed_and_on_who_imports_it(project: pathlib.Path) -> None:
    (hook,) = loaded(HOOKS)
    assert (hook["id"], hook["language"], hook["types_or"]) == (
        "gradlint",
        "python",
        ["python", "jupyter"],
    )
    name, *words = shlex.split(hook["entry"])
    assert name == "gradlint"
    program = f"import sys; from gradlint.cli import main; main({words!r} + sys.argv[1:])"
    command = [sys.executable, "-P", "-X", "importtime", "-c", program]
    ran = run([*command, "helper.py"], project)
    assert ran.returncode == 1
    assert "--> helper.py:2:12" in ran.stdout  # as train.py, which did not change, imports it
    assert "broken.py" not in ran.stdout
    assert not re.search(r"\| +(torch|numpy)$", ran.stderr, re.MULTILINE)
    (project / "pyproject.toml").write_text("[tool.gradlint]\nextend-exclude = ['broken.py']\n")
    assert run([*command, "broken.py"], project).returncode == 0


def test_an_installation_brings_no_torch() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not any(re.match(r"(torch|numpy)\b(?!-)", each) for each in project["dependencies"])


def steps() -> dict[str, Any]:
    return {step.get("name", step.get("id")): step for step in loaded(ACTION)["runs"]["steps"]}


def act(project: pathlib.Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Runs the action's own step as GitHub would, with this installation in the place of the one it
    makes.
    """
    step = steps()["Run gradlint"]
    given = {
        name: each.get("default", "") for name, each in loaded(ACTION)["inputs"].items()
    } | inputs
    variables = {name: _filled(value, given) for name, value in step["env"].items()}
    surroundings = {"RUNNER_TEMP": "/nowhere", "GITHUB_STEP_SUMMARY": ""}
    variables |= {name: inputs.get(name, value) for name, value in surroundings.items()}
    return run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        project,
        **variables,
    )


def _filled(value: str, inputs: dict[str, str]) -> str:
    if "steps.python" in value:
        return sys.executable
    named = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)
    assert named is not None
    return inputs[named[1]]


def test_the_action_annotates_and_fails(project: pathlib.Path) -> None:
    ran = act(project, paths="train.py\n", **{"sarif-file": "out.sarif"})
    assert ran.returncode == 1
    (line,) = ran.stdout.splitlines()
    assert line.startswith("::error title=gradlint (GL102 detached-loss),file=helper.py,line=2")
    (result,) = json.loads((project / "out.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "GL102"


def test_the_action_takes_arguments_as_they_are(project: pathlib.Path) -> None:
    (project / "two words $(touch pwned).py").write_text("x = (\n")
    ran = act(
        project, paths="two words $(touch pwned).py\nbroken.py", arguments="--select\nGL001\n"
    )
    assert [line.partition(",file=")[2].partition(",")[0] for line in ran.stdout.splitlines()] == [
        "broken.py", "two words $(touch pwned).py"
    ]  # fmt: skip
    assert not (project / "pwned").exists()
    assert act(project, arguments="--fail-on\nnever").returncode == 0
    assert act(project, arguments="--selct\nGL001").returncode == 2


GH = """\
#!/usr/bin/env bash
case " $* " in
    *" --jq "*) cat comments ;;
    *) printf '%s\\n' "$@" > called; sed 's/^/body: /' "$RUNNER_TEMP/gradlint.md.comment" >> called ;;
esac
"""


def commented(project: pathlib.Path, runner: pathlib.Path, before: str) -> str:
    """What the action's step calls of GitHub's command, where these comments of ours stand."""
    (project / "comments").write_text(before)
    (project / "called").unlink(missing_ok=True)
    (runner / "gh").write_text(GH)
    (runner / "gh").chmod(0o755)
    step = steps()["Comment"]
    variables = {
        "RUNNER_TEMP": str(runner),
        "GITHUB_REPOSITORY": "a/b",
        "NUMBER": "7",
        "GH_TOKEN": "secret",
    }
    path = f"{runner}{os.pathsep}{os.environ['PATH']}"
    ran = run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        project,
        PATH=path,
        **variables,
    )
    assert ran.returncode == 0, ran.stderr
    return (project / "called").read_text() if (project / "called").exists() else ""


def test_the_action_sums_up_and_comments_once(
    project: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    runner = tmp_path / "runner"
    runner.mkdir()
    assert commented(project, runner, "") == ""  # gradlint did not run
    summary = runner / "summary"
    ran = act(project, paths="train.py", RUNNER_TEMP=str(runner), GITHUB_STEP_SUMMARY=str(summary))
    assert ran.returncode == 1
    assert "[GL102 detached-loss](" in summary.read_text()
    first = commented(project, runner, "")
    assert "POST\nrepos/a/b/issues/7/comments\n" in first
    assert "body: <!-- gradlint -->\nbody: ### gradlint: Found 1 error in 1 file" in first
    assert "PATCH\nrepos/a/b/issues/comments/12\n" in commented(project, runner, "12\n34\n")
    (runner / "gradlint.md").write_text("### gradlint: Nothing found in 1 file\n")
    assert commented(project, runner, "") == ""
    assert "Nothing found" in commented(project, runner, "12\n")


def test_no_input_is_pasted_into_a_script() -> None:
    assert all("${{" not in step.get("run", "") for step in steps().values())


def test_the_jobs_of_gitlab_report_and_fail(project: pathlib.Path) -> None:
    job = loaded(TEMPLATE)["gradlint"]
    environment, install, report, check = job["script"]
    assert "venv" in environment
    assert install.endswith('install --quiet "$GRADLINT_PACKAGE"')
    command = f"{shlex.quote(sys.executable)} -P -m gradlint check "
    ours = [line.replace("/tmp/gradlint/bin/gradlint check ", command) for line in (report, check)]
    variables = job["variables"] | {
        "GRADLINT_PATHS": "train.py helper.py",
        "GRADLINT_ARGUMENTS": "--select GL1",
    }
    first, second = (run(["bash", "-ec", line], project, **variables) for line in ours)
    assert (first.returncode, second.returncode) == (0, 1)
    (found,) = json.loads((project / "gl-code-quality-report.json").read_text())
    assert (found["check_name"], found["location"]["path"]) == ("GL102", "helper.py")
    assert job["artifacts"]["reports"]["codequality"] == "$GRADLINT_REPORT"
