"""What no path came to is said: a report's last line, `--gaps` and JSON name the training steps
that were missed.
"""

from __future__ import annotations

import json
import pathlib

import pytest
from commandline import Run

SCRIPT = """import torch

def train(model, batches):
    raise NotImplementedError("use train_fast")
    for x in batches:
        model(x).mean().backward()

model = torch.nn.Linear(2, 1)
model(torch.ones(1, 2)).sum().backward()
"""
LONG = (
    "import torch\n"
    + "".join(f"v{n} = {n}\n" for n in range(45_000))
    + "torch.ones(2, requires_grad=True).sum().backward()\n"
)


@pytest.fixture
def script(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_last_line_names_the_steps_that_were_not_reached(
    script: pathlib.Path, run: Run
) -> None:
    done = run("check", "--no-cache", "train.py")
    assert (
        done.out == "Nothing found in 1 file (1 training step); 1 training step was not reached "
        "(train.py:6).\n"
    )
    assert done.code == 0


def test_a_step_of_a_notebook_is_named_by_its_cell(script: pathlib.Path, run: Run) -> None:
    cell: dict[str, object] = {
        "cell_type": "code",
        "metadata": {},
        "source": SCRIPT,
        "execution_count": None,
        "outputs": [],
    }
    page = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (script / "page.ipynb").write_text(json.dumps(page))
    assert (
        "1 training step was not reached (page.ipynb:cell 1:6)"
        in run("check", "--no-cache", "page.ipynb").out
    )


def test_json_has_a_note_for_each(script: pathlib.Path, run: Run) -> None:
    done = run("check", "--no-cache", "--output-format", "json", "train.py")
    (note,) = json.loads(done.out)
    assert (note["code"], note["severity"], note["location"]["row"]) == ("GL004", "note", 6)


def test_gaps_have_the_reason(script: pathlib.Path, run: Run) -> None:
    done = run("check", "--no-cache", "--gaps", "train.py")
    assert "train.py:6:1: gap[unreached] no path leads here" in done.err


def test_what_the_cache_replays_says_the_same(script: pathlib.Path, run: Run) -> None:
    first, second = (run("check", "--cache-dir", "kept", "train.py").out for _ in range(2))
    assert first == second
    assert "1 training step was not reached (train.py:6)" in first


def test_an_edit_above_moves_the_step_along(script: pathlib.Path, run: Run) -> None:
    run("check", "--cache-dir", "kept", "train.py")
    (script / "train.py").write_text("import math\n" + SCRIPT)
    done = run("check", "--cache-dir", "kept", "train.py")
    assert "1 training step was not reached (train.py:7)" in done.out


def test_a_budget_that_ends_an_analysis_is_not_silent(
    tmp_path: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(LONG)
    monkeypatch.chdir(tmp_path)
    done = run("check", "--no-cache", "train.py")
    assert (
        done.out == "Nothing found in 1 file; 1 training step was not reached (train.py:45002).\n"
    )
