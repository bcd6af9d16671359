"""`gradlint verify` and `check --fix --verify`: the program is run before and after, and that
decides.
"""

from __future__ import annotations

import json
import os
import pathlib
import textwrap

import pytest
from commandline import Run

from gradlint.cache import Cache
from gradlint.checker import Checked
from gradlint.config import settings_finder
from gradlint.fix.apply import Repaired
from gradlint.fix.mirror import mirror
from gradlint.fix.scripts import scripts_of
from gradlint.fix.verify import Comparison, Ran
from gradlint.texts import Texts

FROM = "from losses import loss_of\n"
TRAIN = """\
import sys
import torch
from losses import loss_of

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    logits = model(torch.randn(2, 4))
    loss = loss_of(logits, step != 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOSSES = """\
import torch

def loss_of(logits, valid):
    if not valid:
        return torch.tensor(0.0)
    return logits.square().sum()
"""
MENDED = LOSSES.replace("torch.tensor(0.0)", "0.0 * logits.sum()")


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    (folder / "losses.py").write_text(LOSSES, encoding="utf-8")
    return folder


def test_both_programs_are_run_and_shown_side_by_side(folder: pathlib.Path, run: Run) -> None:
    ran = run("verify", "train.py", "4")
    rows = {line[:20].strip(): line[20:] for line in ran.out.splitlines()}
    assert ran.code == 0, ran
    assert "Fixed: 1 (GL101)." in ran.out
    assert rows["the program"].split() == [*rows["the program"].split()[:-1], "ends"]
    assert "does not require grad" in rows["the program"]
    assert rows["optimizer steps"].split() == ["2", "4"]
    assert rows["with a gradient"].split() == ["2", "of", "2", "2", "of", "2"]
    assert rows["findings of the run"].split() == ["GL101", "losses.py:5", "none"]
    assert "All 3 losses of the first run are the same in the second." in ran.out
    assert (folder / "losses.py").read_text(encoding="utf-8") == LOSSES


def test_fixes_are_written_once_the_mended_program_runs_clean(
    folder: pathlib.Path, run: Run
) -> None:
    ran = run("check", "--fix", "--verify", "--run", "train.py 3", "--no-cache")
    assert ran.code == 0, ran
    assert (folder / "losses.py").read_text(encoding="utf-8") == MENDED
    assert sorted(os.listdir(folder)) == ["losses.py", "train.py"]


def test_nothing_is_written_where_the_mended_program_does_not_end(
    folder: pathlib.Path, run: Run
) -> None:
    (folder / "train.py").write_text(
        TRAIN + "if sys.argv[2:]:\n    raise SystemError", encoding="utf-8"
    )
    ran = run("check", "--fix", "--verify", "--run", "train.py 4 x")
    assert ran.code == 1, ran
    assert "nothing is written" in ran.err
    assert "SystemError" in ran.err
    assert (folder / "losses.py").read_text(encoding="utf-8") == LOSSES


def ran(
    *losses: float, raised: str = "", findings: tuple[str, ...] = (), before_bug: int | None = None
) -> Ran:
    return Ran(
        raised,
        len(losses),
        findings,
        {"model.weight": True},
        losses,
        before_bug,
        frozenset(["GL101"]),
    )


def compared(before: Ran, after: Ran, code: str = "GL101") -> Comparison:
    nothing = Checked(
        (), (), (), Texts({}), (), settings_finder(lambda each: each), frozenset(), Cache()
    )
    return Comparison(before, after, Repaired(nothing, {}, {}, 1, frozenset([code])))


@pytest.mark.parametrize(
    ("before", "after", "code", "holds"),
    [
        (ran(1, 2, 3), ran(1, 2, 3), "GL101", True),
        (ran(1, 2, raised="E: e"), ran(1, 2, 3), "GL101", False),
        (ran(1, 2, 0, raised="E: e", before_bug=2), ran(1, 2, 0, 4), "GL101", True),
        (ran(1, 2, 3, before_bug=2), ran(1, 2, 9), "GL101", True),
        (ran(1, 2, 3, before_bug=2), ran(1, 9, 9), "GL101", False),
        (ran(1, 2, 3, before_bug=2), ran(1), "GL101", False),
        (ran(1, 2, 3), ran(1, 2, 9), "GL101", False),
        (ran(1, 2, 3), ran(1, 2, 9), "GL702", True),
        (ran(1, float("nan")), ran(1, float("nan")), "GL101", True),
        (ran(1.0, 2.0), ran(1.0, 2.0000001), "GL101", True),
        (ran(1), ran(1, raised="E: e"), "GL101", False),
        (ran(1), ran(1, findings=("GL102 a.py:1",)), "GL101", False),
        (ran(), ran(), "GL101", True),
    ],
)
def test_a_mended_program_is_right_where_it_is_clean_and_the_losses_agree_until_the_bug(
    before: Ran, after: Ran, code: str, holds: bool
) -> None:
    assert compared(before, after, code).holds is holds


def test_a_loss_that_a_fix_changes_without_a_bug_is_named(tmp_path: pathlib.Path) -> None:
    page = compared(ran(1, 2, 3, before_bug=3), ran(1, 5, 3)).page()
    assert "The losses differ from backward 2 on, where no bug has struck" in page


def test_a_copy_has_programs_links_and_folders_but_no_environment(tmp_path: pathlib.Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    for name in ("project/src/empty", "project/.git", "project/env", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (root / "env" / "pyvenv.cfg").touch()
    (root / "src" / "a.py").write_text("x = 1\n")
    (root / "b.py").symlink_to(root / "src" / "a.py")
    (root / "data").symlink_to(outside)
    (root / "broken").symlink_to(root / "nothing")
    with (root / "large.bin").open("wb") as file:
        file.truncate((64 << 20) + 1)
    made = mirror(root, tmp_path / "scratch" / "copy")
    assert sorted(os.listdir(made.folder)) == ["b.py", "broken", "data", "large.bin", "src"]
    assert made.linked == ("large.bin",)
    assert (made.folder / "src" / "empty").is_dir()
    assert not (made.folder / "src" / "a.py").is_symlink()
    assert (made.folder / "b.py").resolve() == made.folder / "src" / "a.py"
    assert (made.folder / "data").resolve() == outside


def test_a_copy_within_the_folder_does_not_copy_itself(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "scratch").mkdir()
    made = mirror(tmp_path, tmp_path / "scratch" / "copy")
    assert os.listdir(made.folder) == ["a.py"]


def test_the_scripts_are_those_that_reach_what_was_mended(folder: pathlib.Path) -> None:
    (folder / "other.py").write_text("print(1)\n")
    (folder / "library.py").write_text("import losses\n")
    (folder / "main.py").write_text(
        "from library import losses\nif __name__ == '__main__':\n    print(losses)\n"
    )
    (folder / "late.py").write_text(
        "import sys\nif sys.argv[1:]:\n    try:\n        pass\n    finally:\n"
        "        import library\n"
        "elif sys.flags.debug:\n    def f():\n        from library import losses\nprint(1)\n"
    )
    files = sorted(path.relative_to(folder) for path in folder.glob("*.py"))
    found = scripts_of(files, [folder / "losses.py"], Texts({}))
    assert [str(path) for path in found] == ["late.py", "main.py", "train.py"]


def test_scripts_are_told_by_the_texts_that_were_checked(folder: pathlib.Path) -> None:
    files = [pathlib.Path(name) for name in ("losses.py", "notes.ipynb", "train.py")]
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [{"cell_type": "code", "source": TRAIN}],
    }
    (folder / "notes.ipynb").write_text(json.dumps(notebook))
    assert scripts_of(files, [pathlib.Path("losses.py")], Texts({})) == [files[2]]
    assert scripts_of(files, [pathlib.Path("losses.py")], Texts({"train.py": b"print(1)\n"})) == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("verify", "nothing.py"), "no such file"),
        (("verify", "../outside.py"), "stands out of"),
        (("check", "--verify"), "goes with --fix"),
        (("check", "--diff", "--verify"), "goes with --fix"),
        (("check", "--fix", "--run", "train.py"), "goes with --verify"),
        (("check", "--fix", "--verify", "losses.py"), "no script here runs what was mended"),
    ],
)
def test_what_cannot_be_verified_is_said(
    folder: pathlib.Path, run: Run, words: tuple[str, ...], complaint: str
) -> None:
    (folder.parent / "outside.py").touch()
    (folder / "losses.py").write_text(
        "def f():\n" + textwrap.indent(LOSSES + TRAIN.replace(FROM, ""), "    ")
    )
    ran = run(*words)
    assert ran.code == 2
    assert complaint in ran.err
