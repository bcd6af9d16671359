"""Programs edited line by line between runs that keep their results: what these say is what a run
without says.
"""

import ast
import os
import pathlib
import random
import shutil

import pytest

from gradlint import analyzer, checker, config
from gradlint.interpret.running import run_entry
from gradlint.interpret.session import Session
from gradlint.program.entries import Entry
from gradlint.program.modules import Program
from gradlint.source.files import discover
from gradlint.tape import Tape

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
FOLDERS = sorted(
    folder
    for kind in ("before", "after")
    for folder in FIXTURES.glob(f"*/*/{kind}")
    if sum(1 for _ in folder.rglob("*.py")) > 1
)
EDITS = int(os.environ.get("GRADLINT_EDITS", "2"))  # of each program, one upon the other
SEED = os.environ.get("GRADLINT_SEED", "")


def edited(text: str, rng: random.Random) -> str:
    """A program with one statement dropped, doubled, moved down, or with a word of it changed;
    parseable or not.
    """
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    lines = text.splitlines(keepends=True)
    chosen = rng.choice(statements)
    first, last = chosen.lineno - 1, chosen.end_lineno or chosen.lineno
    whole, indent = lines[first:last], " " * chosen.col_offset
    names = [node.id for node in ast.walk(chosen) if isinstance(node, ast.Name)] or ["self"]
    attributes = [node.attr for node in ast.walk(chosen) if isinstance(node, ast.Attribute)] or [
        "loss"
    ]
    replaced, by = rng.choice(
        [(rng.choice(names), "x"), (rng.choice(attributes), "detach"), ("1", "2")]
    )
    instead = rng.choice([
        [f"{indent}pass\n"],
        [*whole, *whole],
        [f"{indent}# a comment\n", "\n", *whole],
        [line.replace(replaced, by) for line in whole],
    ])  # fmt: skip
    return "".join([*lines[:first], *instead, *lines[last:]])


def told(folder: pathlib.Path, cache: pathlib.Path | None) -> object:
    """What is found in a program, where the analysis gave up, and which functions each entry ran
    through.
    """
    settings_for = config.settings_finder(lambda settings: settings)
    checked = checker.check(
        discover([folder], settings_for).files, settings_for, given={}, cache=cache
    )
    runs = {
        (path.name, entry): result.executed
        for path, record in checked.kept.records.items()
        for entry, result in (record.results or {}).items()
    }
    return checked.findings, checked.gaps, runs


@pytest.mark.parametrize("source", FOLDERS, ids=lambda folder: str(folder.relative_to(FIXTURES)))
def test_what_is_kept_of_an_edited_program_is_what_a_new_run_says(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    rng = random.Random(f"{source.relative_to(FIXTURES)}{SEED}")
    folder, cache = tmp_path / "program", tmp_path / "kept"
    shutil.copytree(source, folder)
    files = sorted(folder.rglob("*.py"))
    assert told(folder, cache) == told(folder, None)
    for _ in range(EDITS):
        file = rng.choice([each for each in files if each.read_text(encoding="utf-8").strip()])
        text = file.read_text(encoding="utf-8")
        file.write_text(edited(text, rng), encoding="utf-8")
        assert told(folder, cache) == told(folder, None), (
            f"{file}\n{text}\n---\n{file.read_text(encoding='utf-8')}"
        )
        try:
            ast.parse(file.read_text(encoding="utf-8"))
        except SyntaxError:
            file.write_text(text, encoding="utf-8")
            assert told(folder, cache) == told(folder, None)


TRAIN = """\
import torch
from losses import mean_of

def train(model, optimizer, batches):
    for x in batches:
        optimizer.zero_grad()
        mean_of(model(x)).backward()
        optimizer.step()
"""
LOSSES = """\
def shown(loss):
    print(loss)

def mean_of(y):
    return y.mean()
"""


@pytest.mark.parametrize(
    ("old", "new", "runs"),
    [
        ("print(loss)", "print(loss)\n    print()", 0),
        ("def shown", "# what follows is for people\ndef shown", 0),
        ("y.mean()", "y.sum()", 1),
        ("def mean_of", "def mean", 1),
        ("y.mean()", "y.mean(", 1),
    ],
)
def test_an_edit_costs_the_entries_that_come_to_what_was_edited(
    old: str, new: str, runs: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, cache = tmp_path / "program", tmp_path / "kept"
    run: list[Entry] = []
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "losses.py").write_text(LOSSES)
    told(folder, cache)

    def counted(program: Program, path: pathlib.Path, entry: Entry, session: Session) -> list[Tape]:
        run.append(entry)
        return run_entry(program, path, entry, session)

    monkeypatch.setattr(analyzer, "run_entry", counted)
    (folder / "losses.py").write_text(LOSSES.replace(old, new))
    kept = told(folder, cache)
    assert len(run) == runs
    assert kept == told(folder, None)
    run.clear()
    told(folder, cache)
    assert run == []
