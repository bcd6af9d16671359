"""Trees that are odd or hostile: `check` reads what can be read, says what cannot, runs nothing and
writes nothing.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
from commandline import Run, bounded
from oddities import GOOD, LINKS, PASSED_BY, READ, READ_NAMES, REFUSED, plant

SECONDS = 240  # of CPU, where a dozen are taken: an endless one is stopped


def check(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`gradlint check` in a process of its own, as a user of the folder would run it."""
    return bounded(folder, "check", "--jobs", "1", *arguments, seconds=SECONDS)


def said(ran: subprocess.CompletedProcess[str]) -> dict[str, list[tuple[str, str]]]:
    """The codes and messages of a JSON report, by file."""
    found: dict[str, list[tuple[str, str]]] = {}
    for each in json.loads(ran.stdout):
        found.setdefault(each["filename"], []).append((each["code"], each["message"]))
    return found


def everything(root: pathlib.Path) -> dict[str, tuple[int, int]]:
    """All that there is below a folder, with size and time of change."""
    paths = [
        os.path.join(folder, name)
        for folder, folders, files in os.walk(os.fsencode(root))
        for name in folders + files
    ]
    states = {path: os.lstat(path) for path in paths}
    return {os.fsdecode(path): (state.st_size, state.st_mtime_ns) for path, state in states.items()}


def test_an_odd_tree_is_read_as_far_as_it_can_be_and_nothing_is_written(
    tmp_path: pathlib.Path,
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    plant(tree)
    before = everything(tmp_path)
    ran = check(tree, "--gaps", "--select", "GL1,GL001", "--output-format", "json", "--no-cache")
    assert ran.returncode == 1, ran.stderr
    assert "gap[internal]" not in ran.stderr
    found = said(ran)
    names = [*READ, *(os.fsdecode(raw) for raw in READ_NAMES)]
    shown = {name.rpartition("/tree/")[2]: codes for name, codes in found.items()}
    assert {name: [code for code, _ in shown.get(name, [])] for name in names} == {
        name: ["GL102"] for name in names
    }
    assert {name for name, (_, why) in REFUSED.items() if not _refuses(shown[name], why)} == set()
    assert not shown.keys() & {*LINKS, *PASSED_BY, "pipe.py"}
    assert everything(tmp_path) == before


def _refuses(codes: list[tuple[str, str]], why: str) -> bool:
    return len(codes) == 1 and codes[0][0] == "GL001" and why in codes[0][1]


@pytest.mark.parametrize("name", ["device.py", "pipe.py", "to-pipe.py"])
def test_what_is_no_regular_file_is_refused_where_it_is_named(
    tmp_path: pathlib.Path, name: str
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "to-pipe.py").symlink_to("pipe.py")
    (tmp_path / "device.py").symlink_to("/dev/zero")
    (tmp_path / "good.py").write_bytes(GOOD)
    ran = check(tmp_path, "--no-cache", "--output-format", "json", name, "good.py")
    assert {
        file.rpartition("/")[2]: [code for code, _ in codes] for file, codes in said(ran).items()
    } == {
        name: ["GL001"],
        "good.py": ["GL102"],
    }


def test_a_pipe_beside_an_imported_module_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_bytes(
        b"from registry import TASKS\n" + GOOD + b"print(TASKS['a'])\n"
    )
    (tmp_path / "registry.py").write_text("TASKS = {}\ndef register(name):\n    TASKS[name] = 1\n")
    os.mkfifo(tmp_path / "task.py")
    assert check(tmp_path, "--no-cache", ".").returncode == 1


HOSTILE = (
    "conftest.py", "setup.py", "sitecustomize.py", "usercustomize.py", "torch.py", "gradlint.py",
    "click.py", "ast.py",
    "json.py", "__init__.py", "__main__.py", "gradlint_rules.py", "helper.py",
)  # fmt: skip


def _trap(marker: pathlib.Path) -> bytes:
    """A module that leaves a mark wherever it is run or imported."""
    lines = (
        f"open({str(marker)!r}, 'a').write('ran')\nclass Meta(type):\n    pass\n"
        "import os; os._exit(3)\n"
    )
    return GOOD.replace(b"import torch\n", b"import torch, helper\n") + lines.encode()


def test_no_code_of_the_project_is_run(tmp_path: pathlib.Path) -> None:
    tree, marker = tmp_path / "tree", tmp_path / "marker"
    tree.mkdir()
    for name in HOSTILE:
        (tree / name).write_bytes(_trap(marker))
    (tree / "package.pth").write_text(f"import os; open({str(marker)!r}, 'w').write('ran')\n")
    cell = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": 1,
        "source": _trap(marker).decode(),
    }
    magics = dict(
        cell, source=f"!touch {marker}\n%run setup.py\nget_ipython().system('touch {marker}')\n"
    )
    notebook = {"cells": [cell, magics], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tree / "book.ipynb").write_text(json.dumps(notebook))
    before = everything(tree)
    script = pathlib.Path(sys.executable).with_name("gradlint")
    ran = subprocess.run(
        [script, "check", "--no-cache", "--output-format", "json", "."], cwd=tree,
        capture_output=True, text=True,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    files = {file.rpartition("/")[2] for file in said(ran)}
    assert set(HOSTILE) <= files
    assert not marker.exists()
    assert everything(tree) == before


CONFIGURATIONS = {
    "nested": "a = " + "[" * 5000 + "]" * 5000,
    "integer": "[tool.gradlint]\nselect = " + "9" * 5000,
    "number": "[tool.gradlint]\nselect = 3",
    "table": "[tool]\ngradlint = 3",
    "list-of-lists": "[tool.gradlint]\nselect = [[]]",
    "wrong-kind": "[tool.gradlint]\nfail-on = { a = 1 }",
    "pattern": '[tool.gradlint]\nexclude = ["!", "\\\\"]',
    "pattern-by-file": '[tool.gradlint.per-file-ignores]\n"!" = ["GL1"]',
    "unknown-key": "[tool.gradlint]\nplugins = ['os.system']",
    "not-toml": "\0\0",
    "date": "a = 2020-99-99",
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_settings_that_cannot_be_are_refused_with_the_file_and_the_reason(
    tmp_path: pathlib.Path, name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.py").write_bytes(GOOD)
    (tmp_path / "pyproject.toml").write_text(CONFIGURATIONS[name])
    ran = run("check", "--no-cache", ".")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("gradlint: pyproject.toml: ")
    assert len(ran.err) < 1000


def test_a_large_settings_file_is_read(tmp_path: pathlib.Path) -> None:
    (tmp_path / "good.py").write_bytes(GOOD)
    rows = "".join(f'"{number}.py" = ["GL1"]\n' for number in range(3_000))
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.gradlint.per-file-ignores]\n{rows}\n[tool.other]\nx = '{'a' * 5_000_000}'\n"
    )
    assert check(tmp_path, "--no-cache", ".").returncode == 1
