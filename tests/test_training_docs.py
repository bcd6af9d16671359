"""The examples of docs/training.md are true."""

import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
import torch

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs" / "training.md"


def test_the_examples_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    torch.set_num_threads(1)
    page = PAGE.read_text(encoding="utf-8")
    session: dict[str, Any] = {"__name__": "example"}
    for block in re.finditer(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        lines_above = page.count("\n", 0, block.start(1))
        exec(compile("\n" * lines_above + block[1], str(PAGE), "exec"), session)
    shown = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert capsys.readouterr().err.startswith(shown[0])


def test_the_loop_is_importable_without_the_rest() -> None:
    """Only the package itself may be loaded of gradlint, nothing that checks or traces."""
    script = (
        "import sys, gradlint.training; print(*sorted(name for name in sys.modules if "
        "name.startswith('gradlint')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {name for name in ran.stdout.split() if not name.startswith("gradlint.training")} == {
        "gradlint"
    }
