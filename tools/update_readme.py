"""Writes what gradlint says into the example of the README: `python tools/update_readme.py`."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLE = re.compile(r"(?<=```console\n\$ gradlint )(.*?)\n.*?(?=```\n<!-- end -->)", re.DOTALL)


def _shown(example: re.Match[str]) -> str:
    command = [sys.executable, "-m", "gradlint", *example[1].split()]
    return f"{example[1]}\n{subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout}"


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(EXAMPLE.sub(_shown, readme.read_text(encoding="utf-8")), encoding="utf-8")
