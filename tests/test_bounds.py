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
