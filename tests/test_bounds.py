"""What a program can make `check` do is bounded, in steps and not in seconds; where a bound is met, a gap says so."""

from __future__ import annotations

import pathlib
import resource
import subprocess
import sys

from bombs import programs

MEMORY = 4 << 30  # bytes; the largest of these programs takes a fortieth
SECONDS = 300  # of CPU; they take some thirty together


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def test_short_programs_of_endless_work_are_checked_to_their_end_or_leave_a_named_gap(tmp_path: pathlib.Path) -> None:
    for name, text in programs().items():
        (tmp_path / f"{name}.py").write_text(text)
    command = ["check", "--no-cache", "--jobs", "1", "--gaps", "--select", "GL102", "--output-format", "concise", "."]
    ran = subprocess.run(
        [sys.executable, "-m", "gradlint", *command], cwd=tmp_path, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, preexec_fn=_limited, check=False,
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert "gap[internal]" not in ran.stderr
    found = {line.partition(":")[0] for line in ran.stdout.splitlines() if "error[GL102]" in line}
    left = {line.partition(":")[0] for line in ran.stderr.splitlines() if "gap[" in line}
    assert {f"{name}.py" for name in programs()} <= found | left
    assert len(found) > len(programs()) * 0.8
