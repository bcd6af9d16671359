"""The extension for VS Code: what it declares is there, and its own tests pass where Node and its
packages are.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[1]
EXTENSION = ROOT / "editors" / "vscode"
PACKAGE = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
SOURCE = "".join(
    file.read_text(encoding="utf-8") for file in sorted((EXTENSION / "src").glob("*.ts"))
)


def test_the_commands_and_settings_that_are_declared_are_those_of_the_source_and_of_its_page() -> (
    None
):
    page = (EXTENSION / "README.md").read_text(encoding="utf-8")
    commands = {each["command"]: each for each in PACKAGE["contributes"]["commands"]}
    assert {
        f"gradlint.{name}" for name in re.findall(r'register\("(\w+)"', SOURCE)
    } == commands.keys()
    assert {f"gradlint: {each['title']}" for each in commands.values()} == set(
        re.findall(r"\| \*(.*?)\* \|", page)
    )
    settings = PACKAGE["contributes"]["configuration"]["properties"]
    assert {
        f"gradlint.{name}" for name in re.findall(r'setting\("([\w.]+)"', SOURCE)
    } == settings.keys()
    assert set(re.findall(r"^\| `(gradlint\.[\w.]+)` \|", page, re.MULTILINE)) == settings.keys()


def test_the_lock_names_no_registry() -> None:
    """Whoever installs it asks the registry that he has set."""
    locked = json.loads((EXTENSION / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert all("resolved" not in package for package in locked.values())
    assert all(package.get("integrity") for name, package in locked.items() if name)


def test_its_own_tests_pass() -> None:
    if shutil.which("npm") is None or not (EXTENSION / "node_modules").is_dir():
        pytest.skip("the extension needs Node, and `npm ci` in editors/vscode")
    ran = subprocess.run(
        ["npm", "test"], cwd=EXTENSION, capture_output=True, text=True, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"^# pass [1-9]", ran.stdout, re.MULTILINE)
