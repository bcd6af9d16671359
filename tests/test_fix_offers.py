"""What is offered was tried: each fix of a report, made alone, leaves a program without its finding
and no other.
"""

from __future__ import annotations

import ast
import collections
import json
import pathlib
import re
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from commandline import Run
from programs import Program, cases

from gradlint import digests
from gradlint.checker import Checked
from gradlint.finding import Applicability, Finding, Fix
from gradlint.fix import offers
from gradlint.fix.trial import Change, changed
from gradlint.rule import FixSource, rules

# of the fixtures one in so many, by what they hold: another one when one of them is edited
SHARE = 16
OWN = pathlib.Path(__file__).parents[1] / "fixtures" / "own"


def reported(run: Run, *paths: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        run("check", "--no-cache", "--output-format", "json", *paths).out
    )
    return found


def words(found: list[dict[str, Any]]) -> collections.Counter[tuple[str, str]]:
    """What is wrong, wherever it stands."""
    return collections.Counter(
        (each["code"], re.sub(r"\d+", "", each["message"]))
        for each in found
        if each["severity"] != "note"
    )


def made(found: dict[str, Any]) -> None:
    """Makes the fix of a finding in its file, as an editor that reads the report would."""
    file = pathlib.Path(found["filename"])
    lines = file.read_text(encoding="utf-8").split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    text = "\n".join(lines)
    edits = [(_offset(starts, each["location"]), _offset(starts, each["end_location"]),
        each["content"])
             for each in found["fix"]["edits"]]  # fmt: skip
    for start, end, content in sorted(edits, reverse=True):
        text = text[:start] + content + text[end:]
    file.write_text(text, encoding="utf-8")


def _offset(starts: list[int], place: dict[str, int]) -> int:
    return starts[place["row"] - 1] + place["column"] - 1


def holds(
    run: Run, folder: pathlib.Path, found: list[dict[str, Any]], each: dict[str, Any]
) -> None:
    """Asserts that a fix does what was promised."""
    file = pathlib.Path(each["filename"])
    before = file.read_text(encoding="utf-8")
    made(each)
    ast.parse(file.read_text(encoding="utf-8"))
    after = reported(run, str(folder))
    file.write_text(before, encoding="utf-8")
    gone = words(found) - words(after)
    assert words(after) - words(found) == collections.Counter()
    assert words([each]) <= gone


def sampled() -> list[Program]:
    return [program for case in cases() for program in case.programs() if _is_chosen(program)]


def _is_chosen(program: Program) -> bool:
    content = b"".join(path.read_bytes() for path in program.files())
    return int(digests.digest(content), 16) % SHARE == 0


@pytest.mark.parametrize("program", sampled(), ids=lambda program: program.name)
def test_a_fix_that_a_report_offers_mends_and_spoils_nothing(
    program: Program, tmp_path: pathlib.Path, run: Run
) -> None:
    folder = tmp_path / "program"
    shutil.copytree(program.folder, folder)
    found = reported(run, str(folder))
    for each in found:
        if each["fix"] is not None:
            holds(run, folder, found, each)


def spoiling(line: int, content: str) -> Callable[[Finding, FixSource], Fix]:
    """A rule's fix that replaces the statement of its finding by `content` where that is on this
    line.
    """

    def fix(finding: Finding, source: FixSource) -> Fix:
        statement = source.statement_on(finding.at.line)
        text = (
            content
            if finding.at.line == line
            else source.text(statement).replace("cuda.amp", "amp")
        )
        return Fix("Mend it", Applicability.SAFE, (source.rewrite(statement, text),))

    return fix


UNNAMED = """\
import torch


class Runner:
    def __init__(self, precise):
        self.context = None if precise else torch.cpu.amp.autocast


runner = Runner(False)
with runner.context(dtype=torch.bfloat16):
    print(torch.rand(2, 2) @ torch.rand(2, 2))
"""


def test_what_is_called_by_another_name_is_told_and_not_mended(
    tmp_path: pathlib.Path, run: Run
) -> None:
    (tmp_path / "train.py").write_text(UNNAMED)
    found = reported(run, str(tmp_path))
    assert [(each["code"], each["fix"]) for each in found] == [("GL402", None)]


THREE = """\
import torch

first = torch.cuda.amp.GradScaler()
second = torch.cuda.amp.GradScaler()
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.rand(5, 2, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
third = torch.cuda.amp.GradScaler()
"""
BAD = {
    "leaves its finding": "second = torch.cuda.amp.GradScaler(init_scale=2.0)",
    "brings another about": "second = torch.rand(2, 3).sum().backward()",
    "makes no program": "second = (",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_of_many_fixes_only_the_bad_one_is_not_offered(
    content: str, tmp_path: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules()["GL402"].module, "fix", spoiling(4, content))
    (tmp_path / "train.py").write_text(THREE)
    found = reported(run, str(tmp_path))
    assert [
        (each["location"]["row"], each["fix"] is not None)
        for each in found
        if each["code"] == "GL402"
    ] == [
        (3, True),
        (4, False),
        (12, True),
    ]
    run("check", "--no-cache", "--fix", str(tmp_path))
    mended = THREE.replace("first = torch.cuda.amp", "first = torch.amp")
    assert (tmp_path / "train.py").read_text() == mended.replace(
        "third = torch.cuda.amp", "third = torch.amp"
    )


def test_what_a_trial_has_shown_is_kept_until_something_changes(
    tmp_path: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials: list[Change] = []

    def counted(checked: Checked, contents: Mapping[pathlib.Path, bytes], *given: Any) -> Change:
        trials.append(changed(checked, contents, *given))
        return trials[-1]

    monkeypatch.setattr(offers, "changed", counted)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import helper\n" + THREE)
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("import torch\n")

    def tried(form: str = "json") -> int:
        trials.clear()
        run("check", "--output-format", form, ".")
        return len(trials)

    assert [tried("text"), tried("concise"), tried(), tried()] == [0, 0, 1, 0]
    (tmp_path / "other.py").write_text("import torch, os\n")
    assert tried() == 0
    (tmp_path / "helper.py").write_text("x = 2\n")
    assert [tried(), tried()] == [1, 0]
    (tmp_path / "train.py").write_text(THREE)
    assert [tried("github"), tried("sarif"), tried("jsonl")] == [0, 1, 0]


def test_a_safe_fix_that_drops_a_comment_is_unsafe(tmp_path: pathlib.Path, run: Run) -> None:
    zero = "torch.tensor(\n        0.0,  # a zero\n    )"
    text = THREE[: THREE.index("first")] + (
        "model = torch.nn.Linear(4, 3)\n"
        "for x in torch.rand(5, 2, 4):\n"
        "    out = model(x)\n"
        f"    loss = out.mean() if x.sum() > 4 else {zero}\n"
        "    loss.backward()\n"
    )
    (tmp_path / "train.py").write_text(text)
    (found,) = (each for each in reported(run, str(tmp_path)) if each["code"] == "GL101")
    assert found["fix"]["applicability"] == "unsafe"
    run("check", "--no-cache", "--select", "GL101", "--fix", str(tmp_path))
    assert (tmp_path / "train.py").read_text() == text
    (tmp_path / "train.py").write_text(text.replace("  # a zero", ""))
    (found,) = (each for each in reported(run, str(tmp_path)) if each["code"] == "GL101")
    assert found["fix"]["applicability"] == "safe"


def test_a_fix_of_a_caller_in_another_file_is_made_and_not_told_as_one_of_this_file(
    run: Run, tmp_path: pathlib.Path
) -> None:
    shutil.copytree(OWN / "GL403-helper-of-another-file" / "before", tmp_path, dirs_exist_ok=True)
    (found,) = reported(run, str(tmp_path))
    assert (pathlib.Path(found["filename"]).name, found["fix"]) == ("utils.py", None)
    helper, caller = tmp_path / "utils.py", tmp_path / "train.py"
    texts = helper.read_text(), caller.read_text()
    run("check", "--no-cache", "--fix", str(helper))
    assert texts == (helper.read_text(), caller.read_text())
    run("check", "--no-cache", "--fix", str(tmp_path))
    assert helper.read_text() == texts[0]
    line = "            clip_gradients(model.parameters(), 0.5)\n"
    unscaled = f"            scaler.unscale_(optimizer)\n{line}"
    assert caller.read_text() == texts[1].replace(line, unscaled)


CLIPPED = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for i, x in enumerate(torch.randn(8, 2, 4)):
    scaler.scale(model(x).mean() / 4).backward()
{}    if (i + 1) % 4 == 0:
{}        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
"""
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"


@pytest.mark.parametrize(
    ("program", "added"),
    [
        (CLIPPED.format("", f"        {CLIP}"), ["        scaler.unscale_(optimizer)"]),
        (CLIPPED.format(f"    {CLIP}", ""), []),  # there it would raise in the second round
    ],
)
def test_gradients_are_unscaled_once_in_a_window_whichever_rules_are_selected(
    program: str, added: list[str], run: Run, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(program)
    shown = run("check", "--no-cache", "--select", "GL403", "--diff", str(path)).out
    lines = [line[1:] for line in shown.splitlines() if re.match(r"\+(?!\+\+)", line)]
    assert lines == added
