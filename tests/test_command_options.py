"""Options that say what would be checked, bring settings, complete words, and watch."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
from typing import cast

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from commandline import Run

from gradlint import cli, completion, config, watch

BROKEN = "def f(:\n"
SCRIPT = """\
import torch
from helper import loss_of

loss_of(torch.nn.Linear(2, 1)(torch.randn(3, 2))).backward()
"""
WHOLE, CUT = (
    "def loss_of(y):\n    return y.mean()\n",
    "def loss_of(y):\n    return y.detach().mean()\n",
)


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(CUT)
    return tmp_path


def test_the_files_that_would_be_checked_are_listed(folder: pathlib.Path, run: Run) -> None:
    ran = run("check", "--show-files", "--exclude", "helper.py")
    assert (ran.code, ran.out, ran.err) == (0, "train.py\n", "")


def test_notes_of_what_autograd_handles_are_shown_where_they_are_selected(
    folder: pathlib.Path, run: Run
) -> None:
    (folder / "train.py").write_text(
        "import torch\n\ny = torch.nn.Linear(2, 1)(torch.randn(3, 2))\ny += 1\n"
        "y.mean().backward()\n"
    )
    assert "GL205" not in run("check", "train.py").out
    assert "GL205" in run("check", "train.py", "--select", "ALL").out
    assert "GL205" in run("check", "train.py", "--extend-select", "GL2").out
    assert "GL205" in run("check", "train.py", "--output-format", "json").out
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nselect = ['ALL']\n")
    assert "GL205" in run("check", "train.py").out


def test_the_settings_that_are_shown_bring_themselves_about(folder: pathlib.Path, run: Run) -> None:
    (folder / "pyproject.toml").write_text(
        "[tool.gradlint]\nselect = ['GL1']\nignore = ['GL109']\nfail-on = 'never'\n"
        "baseline = 'base.json'\n"
        "extend-exclude = ['a\"b']\nper-file-ignores = {'tests/' = ['GL106']}\n"
        "required-version = '>=0.1'\n"
    )
    said = run("check", "--show-settings", "train.py").out
    assert "GL109" not in said
    assert 'per-file-ignores = {"tests/" = ["GL106"]}\n' in said
    before = config.settings_finder(lambda each: each)(folder)
    (folder / "pyproject.toml").write_text(said)
    after = config.settings_finder(lambda each: each)(folder)
    assert config.shown(after) == config.shown(before)
    assert (after.exclude, after.baseline, after.fail_on) == (
        before.exclude,
        before.baseline,
        before.fail_on,
    )


def test_a_setting_of_the_command_line_outweighs_the_file_and_options_outweigh_it(
    folder: pathlib.Path, run: Run
) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nfail-on = 'never'\n")
    assert run("check").code == 0
    assert run("check", "--config", "fail-on=error").code == 1
    assert run("check", "--config", "fail-on = 'error'", "--fail-on", "never").code == 0
    assert (
        run("check", "--config", 'ignore=["GL102"]').out
        == "Nothing found in 2 files (1 training step).\n"
    )
    assert run("check", "--isolated").code == 1


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("fail-on", "gradlint: --config: must be KEY=VALUE, not 'fail-on'\n"),
        ("fial-on=error", "gradlint: --config has no setting 'fial-on'; did you mean 'fail-on'?\n"),
        ("select=GL1", "gradlint: --config select: must be a list of strings, not 'GL1'\n"),
        ("required-version=<0.1",
            "gradlint: --config required-version: this is gradlint 0.1.0, and '<0.1' is asked"),
        ("required-version=new",
            "gradlint: --config required-version: must say versions as requirements do"),
    ],
)  # fmt: skip
def test_a_bad_setting_of_the_command_line_is_told(
    folder: pathlib.Path, run: Run, word: str, complaint: str
) -> None:
    ran = run("check", "--config", word)
    assert ran.code == 2
    assert ran.err.startswith(complaint)


def test_a_project_can_ask_for_a_version(folder: pathlib.Path, run: Run) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nrequired-version = '>=99'\n")
    ran = run("check")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "gradlint: pyproject.toml: [tool.gradlint] required-version: this is gradlint 0.1.0, "
        "and '>=99' is asked for\n"
    )
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nrequired-version = '0.1.0'\n")
    assert run("check").code == 1


def test_who_wants_quiet_gets_findings_and_nothing_else(folder: pathlib.Path, run: Run) -> None:
    ran = run("check", "-q", "--output-format", "concise")
    (line,) = ran.out.splitlines()
    assert line.startswith("helper.py:2:12: error[GL102] ")
    assert "Found" not in run("check", "--quiet").out
    (folder / "helper.py").write_text(WHOLE)
    ran = run("check", "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert run("check", "--fix", "--quiet").err == ""


def test_colours_can_be_asked_for(
    folder: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[" in run("check", "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" not in run("check", "--color", "never").out


def test_a_folder_whose_files_are_all_left_out_is_no_mistake(
    folder: pathlib.Path, run: Run
) -> None:
    ran = run("check", ".", "--exclude", "*.py")
    assert (ran.code, ran.out) == (0, "")
    assert (
        ran.err == "gradlint: nothing to check: no Python file under . (2 left out by settings or "
        ".gitignore)\n"
    )


def test_a_report_says_what_was_run(folder: pathlib.Path, run: Run) -> None:
    assert run("check").out.splitlines()[-1] == "Found 1 error in 2 files (1 training step)."
    said = run("check", "--statistics").out
    assert "     1 entries: 1 programs, 0 parts\n     1 of 1 training steps reached\n" in said


def test_rules_are_told_as_json(run: Run) -> None:
    one = json.loads(run("rule", "GL102", "--output-format", "json").out)
    assert (one["code"], one["name"], one["severity"]) == ("GL102", "detached-loss", "error")
    assert one["explanation"].startswith("# detached-loss (GL102)\n")
    assert one in json.loads(run("rule", "--output-format", "json").out)
    assert run("rule", "GL0001", "--output-format", "json").code == 2


def completed(*words: str) -> list[str]:
    """What a shell offers for the last of these words."""
    shell = ShellComplete(cast("click.Command", cli.gradlint), {}, "gradlint", completion.VARIABLE)
    found: list[CompletionItem] = shell.get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found]


def test_values_of_options_are_completed() -> None:
    assert completed("check", "--output-format", "js") == ["json", "jsonl"]
    assert completed("check", "--fail-on", "n") == ["note", "never"]
    assert completed("check", "--min-severity", "n") == ["note"]
    assert completed("check", "--select", "gl101,GL10") == [
        f"gl101,GL10{number}" for number in range(1, 10)
    ]
    assert completed("check", "--color", "a") == ["auto", "always"]
    assert completed("rule", "detached") == ["detached-loss"]
    assert completed("trace", "--select", "GL60") == ["GL601", "GL602"]
    assert completed("trace", "--fail-on", "n") == ["note", "never"]
    assert completed("rule", "GL60") == ["GL601", "GL602"]
    assert completed("ch") == ["check"]
    assert completed("completion", "z") == ["zsh"]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_script_of_a_shell_is_printed(run: Run, shell: str) -> None:
    said = run("completion", shell).out
    assert f"{completion.VARIABLE}={shell}_complete" in said


def test_bash_completes_a_format(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "gradlint").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gradlint "$@"\n')
    (tmp_path / "gradlint").chmod(0o755)
    script = run("completion", "bash").out
    asked = (
        f"{script}\nCOMP_WORDS=(gradlint check --output-format sa) COMP_CWORD=3\n"
        '_gradlint_completion gradlint sa --output-format; echo "${COMPREPLY[@]}"\n'
    )
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ran = subprocess.run(
        ["bash", "-c", asked], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.stdout == "sarif\n", ran.stderr


def test_a_watch_checks_again_what_a_change_touches(
    folder: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "helper.py").write_text(WHOLE)
    ignoring = "[tool.gradlint]\nignore = ['GL102']\n"
    moves = iter([("helper.py", CUT), ("new.py", BROKEN), ("pyproject.toml", ignoring)])

    def next_move() -> None:
        move = next(moves, None)
        if move is None:
            raise KeyboardInterrupt
        time.sleep(0.01)
        (folder / move[0]).write_text(move[1])

    monkeypatch.setattr(watch, "wait", next_move)
    ran = run("check", "--watch", "--output-format", "concise", "--jobs", "1")
    assert ran.code == 0
    assert [line for line in ran.out.splitlines() if line[0] in "NF"] == [
        "Nothing found in 2 files (1 training step).",
        "Found 1 error in 2 files (1 training step).",
        "Found 2 errors in 3 files (1 training step).",
        "Found 1 error in 3 files (1 training step).",
    ]


@pytest.mark.parametrize("option", ["--fix", "--diff", "--write-baseline=b.json"])
def test_a_watch_changes_nothing(folder: pathlib.Path, run: Run, option: str) -> None:
    assert run("check", "--watch", option).code == 2
