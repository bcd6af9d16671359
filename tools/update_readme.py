"""Writes what gradlint says into the examples of the README and of the first page:
`python tools/update_readme.py`.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
PAGES = ("README.md", "docs/index.md")
EXAMPLE = re.compile(
    r"(<!-- example: (\S+) -->\n```python\n(.*?)```\n.*?```console\n\$ gradlint check "
    r"\2\n)(.*?)(?=```)",
    re.DOTALL,
)


def _with_report(example: re.Match[str]) -> str:
    """The example with what gradlint says of its program."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, example[2]).write_text(example[3], encoding="utf-8")
        command = [sys.executable, "-m", "gradlint", "check", "--no-cache", example[2]]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return f"{example[1]}{ran.stdout}"


if __name__ == "__main__":
    for name in PAGES:
        page = ROOT / name
        page.write_text(
            EXAMPLE.sub(_with_report, page.read_text(encoding="utf-8")), encoding="utf-8"
        )
