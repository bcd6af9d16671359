"""Builds what is published and tries it: `python tools/release.py` (`--tag v0.1.0` holds it against
a tag, too).

The wheel is built from the source distribution, as PyPI's users get it. Both are checked by twine,
and the wheel is installed in a fresh environment, where the command has to find what the README
says it finds. Needs `build` and `twine`. Nothing is published here: the workflow `release.yml` does
that with the files that this leaves in `dist/`.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
DIST = ROOT / "dist"
_EXAMPLE = re.compile(
    r"<!-- example: (\S+) -->\n```python\n(.*?)```\n.*?\$ gradlint check \1\n(.*?)```", re.DOTALL
)
_VERSION = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)


def main() -> None:
    """Build, check and try; leaves with what is wrong."""
    options = argparse.ArgumentParser(description="Build what is published, and try it.")
    options.add_argument("--tag", help="The tag that is released.")
    tag = options.parse_args().tag
    if wrong := list(faults(tag)):
        sys.exit("\n".join(wrong))
    wheel = build(DIST)
    with tempfile.TemporaryDirectory(prefix="gradlint-release-") as folder:
        attempt(wheel, pathlib.Path(folder))
    print(f"{wheel.name} does what the README says")


def version() -> str:
    """The version in the source."""
    found = _VERSION.search(_text("gradlint/__init__.py"))
    assert found is not None
    return found[1]


def faults(tag: str | None) -> Iterator[str]:
    """What keeps a tag from being released: another version, or one that the changelog does not
    tell of.
    """
    if tag is None:
        return
    if tag != f"v{version()}":
        yield f"the tag is {tag}, and the version in gradlint/__init__.py {version()}"
    if not re.search(rf"^## {re.escape(version())}\b", _text("CHANGELOG.md"), re.MULTILINE):
        yield f"CHANGELOG.md has no section {version()}"


def build(folder: pathlib.Path) -> pathlib.Path:
    """The wheel, with the source distribution beside it in an empty `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    (source,) = folder.glob("*.tar.gz")
    _run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source))
    return wheel


def attempt(wheel: pathlib.Path, folder: pathlib.Path) -> None:
    """Install the wheel where nothing else is, and run the README's example."""
    venv.create(folder / "environment", with_pip=True)
    commands = folder / "environment" / ("Scripts" if sys.platform == "win32" else "bin")
    _run(str(commands / "python"), "-m", "pip", "install", "--quiet", str(wheel))
    gradlint = str(commands / "gradlint")
    _expect([gradlint, "--version"], folder, 0, f"gradlint {version()}\n")
    name, program, said = example()
    (folder / name).write_text(program, encoding="utf-8")
    _expect([gradlint, "check", "--no-cache", name], folder, 1, said)


def example() -> tuple[str, str, str]:
    """The README's first program: its name, its text, and what is said of it."""
    found = _EXAMPLE.search(_text("README.md"))
    assert found is not None
    return found[1], found[2], found[3]


def _expect(command: list[str], folder: pathlib.Path, code: int, said: str) -> None:
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if (ran.returncode, ran.stdout) != (code, said):
        told = f"{' '.join(command)}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
        sys.exit(f"{told}\ninstead of {code}\n{said}")


def _run(*command: str) -> None:
    print("+", *command, flush=True)
    subprocess.run(command, check=True)


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
