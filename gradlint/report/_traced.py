"""The report of a traced run that has a process of its own."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from gradlint.errors import UserError


def traced_report(
    options: Sequence[str], words: Sequence[str], report: pathlib.Path, *,
    start: Sequence[str] = ("-m", "gradlint"), **process: Any,
) -> dict[str, Any]:  # fmt: skip
    """What `gradlint trace` tells of the program `words`, through the file `report`; Python starts
    it by `start`.
    """
    command = [
        sys.executable,
        *start,
        "trace",
        "--output-format=json",
        f"--output-file={report}",
        *options,
        *words,
    ]
    ran = subprocess.run(command, check=False, **process)
    if not report.is_file() or not report.stat().st_size:
        raise UserError(f"{words[0]}: the run left no report (exit code {ran.returncode})")
    told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return told
