"""What a program can make `check` do is bounded, in steps and not in seconds; where a bound is met, a gap says so."""

from __future__ import annotations

import pathlib

import pytest
from bombs import programs
from commandline import bounded

from gradlint import analysis, analyzer
from gradlint.interpret import paths, session
from gradlint.room import roomy

SECONDS = 300  # of CPU; they take some thirty together


def test_short_programs_of_endless_work_are_checked_to_their_end_or_leave_a_named_gap(tmp_path: pathlib.Path) -> None:
    for name, text in programs().items():
        (tmp_path / f"{name}.py").write_text(text)
    command = ["check", "--no-cache", "--jobs", "1", "--gaps", "--select", "GL102", "--output-format", "concise", "."]
    ran = bounded(tmp_path, *command, seconds=SECONDS)
    assert ran.returncode == 1, ran.stderr
    assert "gap[internal]" not in ran.stderr
    found = {line.partition(":")[0] for line in ran.stdout.splitlines() if "error[GL102]" in line}
    left = {line.partition(":")[0] for line in ran.stderr.splitlines() if "gap[" in line}
    assert {f"{name}.py" for name in programs()} <= found | left
    assert len(found) > len(programs()) * 0.8


def test_star_imports_of_star_imports_are_searched_once_each(tmp_path: pathlib.Path) -> None:
    modules = 30  # each imports all names of all that follow: there are 2 ** 28 ways from the first to the last
    for number in range(modules):
        stars = (f"from m{later} import *\n" for later in range(number + 1, modules))
        (tmp_path / f"m{number}.py").write_text("".join(stars) or "def final(loss):\n    return loss.detach()\n")
    (tmp_path / "train.py").write_text(
        "import torch\nfrom m0 import *\n\n"
        "model = torch.nn.Linear(2, 1)\n"
        "loss = final(model(torch.ones(1, 2)).sum() + nowhere)\nloss.backward()\n"
    )
    command = ["check", "--no-cache", "--jobs", "1", "--select", "GL102", "--output-format", "concise", "."]
    ran = bounded(tmp_path, *command, seconds=60)
    assert "m29.py:2:12: error[GL102]" in ran.stdout, ran.stderr


BRANCHED = """\
import sys
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
names = []
{branches}
for number in range(8):
    optimizer.zero_grad()
    output = model(torch.rand(4, 3))
    if len(sys.argv) > 99:
        output = output.detach()
    loss = output.square().mean()
    loss.backward()
    optimizer.step()
"""
BRANCH = "if len(sys.argv) > {n}:\n    names.append('run {n}')"


def checked(folder: pathlib.Path) -> tuple[int, list[str], list[str]]:
    """The number of paths of the program, the codes of what is found in it, and its gaps."""
    program = folder / "train.py"
    program.write_text(BRANCHED.format(branches="\n".join(BRANCH.format(n=n) for n in range(1, 15))))
    found = analysis.analyze([program], select=lambda _: True)
    run = sum(1 for _ in analyzer.tapes_of(program))
    return run, [finding.code for finding in found.findings], [gap.kind for gap in found.gaps]


def test_branches_that_do_not_speak_of_training_cost_no_more_than_enough(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_of_them, codes, gaps = checked(tmp_path)
    assert (codes, gaps) == (["GL102"], [])
    monkeypatch.setattr(paths, "ENOUGH", (paths.ENOUGH[0], 0, 0, 0, 0))
    few, codes, gaps = checked(tmp_path)
    assert (few, codes, gaps) == (2, ["GL102"], ["paths"])
    assert all_of_them > few


MADE_LATE = """\
import torch
from torch import nn

def network(kind):
    sizes = {'small': 8, 'large': 64}
    if 'small' in kind:
        return nn.Linear(4, 1)
    for known in sizes:
        if known in kind:
            return nn.Sequential(nn.Linear(4, sizes[known]), nn.ReLU(), nn.Linear(sizes[known], 1))
    raise ValueError(kind)

class Trainer:
    def __init__(self, kind):
        self.net = network(kind)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.every = 6

    def fit(self, loader):
        for number, (x, y) in enumerate(loader):
            loss = (self.net(x) - y).pow(2).mean() / self.every
            loss.backward()
            if (number + 1) % self.every == 0:
                self.optimizer.step()
"""


def test_a_method_is_entered_again_where_its_object_was_made_only_before_the_restart(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "train.py"
    program.write_text(MADE_LATE)
    assert [each.code for each in analysis.analyze([program], select=lambda _: True).findings] == ["GL501", "GL504"]
    monkeypatch.setattr(session, "MOST_UNTRAINED", 50)
    assert [each.code for each in analysis.analyze([program], select=lambda _: True).findings] == ["GL501", "GL504"]


@roomy
def _calls_from(depth: int) -> int:
    """How often the system was asked for memory while calls were made at every depth up to this one."""
    resource = pytest.importorskip("resource")

    def go_down(left: int) -> None:
        for _ in range(20):
            go_back()
        if left:
            go_down(left - 1)

    def go_back() -> None:
        return None

    go_down(depth)  # what is needed once is there now
    before: int = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    go_down(depth)
    after: int = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return after - before


def test_nested_calls_take_no_memory_from_the_system_wherever_they_are_made() -> None:
    assert _calls_from(500) < 20  # without room some hundred
