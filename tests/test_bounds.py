"""What a program can make `check` do is bounded, in steps and not in seconds; where a bound is met, a gap says so."""

from __future__ import annotations

import pathlib

from bombs import programs
from commandline import bounded

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
