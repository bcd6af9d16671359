"""What was looked at is counted: `--coverage FILE`, and the sums of `--statistics`."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Sequence
from typing import Any

import pytest
from commandline import Run

from gradlint import parallel
from gradlint.analysis import analyze

SCRIPT = """\
import sys
import torch
from torch import nn

net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters())
for x in torch.randn(8, 4, 2):
    loss = net(x).mean()
    if "--double" in sys.argv:
        loss = 2 * loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def unused(model, x):
    raise NotImplementedError
    model(x).sum().backward()
"""
PART = """\
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        y = x.exp()
        y += 1
        return y


class Loose(nn.Module):
    def forward(self, x):
        y = x.exp()
        y += 1
        raise NotImplementedError
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "part.py").write_text(PART)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _coverage(run: Run, *options: str) -> Any:
    run("check", "--coverage", "coverage.json", *options)
    return json.loads(pathlib.Path("coverage.json").read_text())


def test_steps_losses_branches_and_parts_are_counted(folder: pathlib.Path, run: Run) -> None:
    assert _coverage(run, "--no-cache") == {
        "backwards": {"written": 2, "reached": 1, "missed": ["train.py:18"]},
        "losses": {"reached": 1, "to_known_parameters": 1},
        "steps": {"behind_a_loss": 1, "losses_in_loops": 1, "in_a_second_round": 1},
        "branches": {"met": 1, "both_sides": 1},
        "entries": {"programs": 2, "parts": 2},
        "parts": {"with_hazard": 2, "entered": 1},
    }


def test_it_is_the_same_from_the_cache_and_from_several_processes(
    folder: pathlib.Path, run: Run
) -> None:
    alone = _coverage(run, "--no-cache", "--jobs", "1")
    ways: Sequence[Sequence[str]] = (
        ["--jobs", "2", "--no-cache"],
        ["--cache-dir", "kept"],
        ["--cache-dir", "kept"],
    )
    assert [_coverage(run, *way) for way in ways] == [alone] * 3


def test_an_edit_above_moves_what_was_seen(folder: pathlib.Path, run: Run) -> None:
    _coverage(run, "--cache-dir", "kept")
    (folder / "train.py").write_text("import math\n" + SCRIPT)
    assert _coverage(run, "--cache-dir", "kept") == _coverage(run, "--no-cache")


def test_what_an_assumed_driver_does_is_no_loss(folder: pathlib.Path, run: Run) -> None:
    (folder / "train.py").unlink()
    assert _coverage(run, "--no-cache")["losses"] == {"reached": 0, "to_known_parameters": 0}


def test_a_model_out_of_view_has_no_known_parameters(folder: pathlib.Path, run: Run) -> None:
    (folder / "train.py").write_text(SCRIPT.replace("nn.Linear(2, 1)", "unseen.model()"))
    found = _coverage(run, "--no-cache")
    assert found["losses"] == {"reached": 1, "to_known_parameters": 0}
    assert found["steps"]["behind_a_loss"] == 1


def test_statistics_has_the_sums(folder: pathlib.Path, run: Run) -> None:
    lines = run("check", "--no-cache", "--statistics").out.splitlines()
    assert "     1 of 2 training steps reached" in lines
    assert "     1 of 2 parts run to their end" in lines


def test_a_step_that_was_missed_has_its_reason(folder: pathlib.Path, run: Run) -> None:
    assert (
        "no path leads here: none got through the function at line 16\n"
        in run("check", "--gaps").err
    )


def test_it_says_nothing_beside_what_changes_files(folder: pathlib.Path, run: Run) -> None:
    assert run("check", "--coverage", "coverage.json", "--fix").code == 2
    assert not (folder / "coverage.json").exists()


def test_a_file_that_a_later_batch_imports_is_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(parallel, "SIZE", 1)  # each folder is a batch
    learns = tmp_path / "agents" / "learns.py"
    runs = tmp_path / "runs" / "runs.py"
    for path, text in (
        (learns, "import torch\n\n\ndef learn(net, x):\n    net(x).sum().backward()\n"),
        (runs, "from agents.learns import learn\n\nlearn(print, print)\n"),
    ):
        path.parent.mkdir()
        path.write_text(text)
    (tmp_path / "pyproject.toml").write_text("")
    found = analyze([learns, runs], select=lambda _: True)
    assert found.coverage.written == 1
