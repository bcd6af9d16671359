"""What a change touches: who imports it, and what is new since a commit."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
from commandline import Run

from gradlint.importers import importers

SCRIPT = (
    "import torch\nfrom helper import loss_of\n\nloss_of(torch.nn.Linear(2, 1)(torch.randn(3, "
    "2))).backward()\n"
)
WHOLE, CUT = (
    "def loss_of(y):\n    return y.mean()\n",
    "def loss_of(y):\n    return y.detach().mean()\n",
)
OLD = "import torch\n\nloss = torch.zeros(3).sum()\nloss.backward()\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def git(*words: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *settings, *words], check=True, capture_output=True)


@pytest.fixture
def repository(folder: pathlib.Path) -> pathlib.Path:
    """A commit with a script that is sound, its helper, and another that is not."""
    write(folder, {"train.py": SCRIPT, "helper.py": WHOLE, "old.py": OLD})
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    return folder


def write(folder: pathlib.Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def found(run: Run, *options: str) -> list[str]:
    """The places and codes that a check tells."""
    said = run("check", "--no-cache", "--quiet", "--output-format", "concise", *options).out
    return [
        line.partition("]")[0].replace(" error[", " ").replace(" warning[", " ")
        for line in said.splitlines()
    ]


def test_who_imports_a_file_is_found_by_any_way(folder: pathlib.Path) -> None:
    write(folder, {
        "helper.py": "", "direct.py": "import helper\n",
        "behind.py": "def f():\n    from direct import x\n",
        "package/__init__.py": "", "package/losses.py": "",
        "package/relative.py": "from . import losses\n",
        "package/named.py": "from .losses import a\n", "user.py": "import package.losses as l\n",
        "dynamic.py": "import importlib\nimportlib.import_module('helper')\n",
        "stranger.py": "import helpers\n",
        "other/helper.py": "", "other/own.py": "import helper\n",
        "speaks.py": "from os import path  # helper\n",
        "broken.py": "import helper\nx = (\n",
    })  # fmt: skip
    files = sorted(pathlib.Path().rglob("*.py"))

    def who(name: str) -> list[str]:
        return [each.as_posix() for each in importers([pathlib.Path(name)], files)]

    assert who("helper.py") == ["behind.py", "broken.py", "direct.py", "dynamic.py"]
    assert who("other/helper.py") == ["broken.py", "dynamic.py", "other/own.py"]
    assert who("package/losses.py") == ["package/named.py", "package/relative.py", "user.py"]
    assert who("package/__init__.py") == ["package/relative.py", "user.py"]
    assert who("direct.py") == ["behind.py"]
    assert who("user.py") == []


def test_a_cut_in_a_helper_is_found_where_it_is_imported(
    repository: pathlib.Path, run: Run
) -> None:
    write(repository, {"helper.py": CUT})
    assert found(run, "helper.py") == []
    assert found(run, "helper.py", "--importers") == ["helper.py:2:12: GL102"]
    assert found(run, "train.py", "--importers", "--exclude", "train.py", "--force-exclude") == []


def test_only_what_is_new_is_told(repository: pathlib.Path, run: Run) -> None:
    assert found(run, "--diff-base", "HEAD") == []
    write(
        repository,
        {"helper.py": "import math\n" + CUT, "old.py": "import math\n" + OLD, "new.py": OLD},
    )
    assert found(run) == ["helper.py:3:12: GL102", "new.py:3:8: GL101", "old.py:4:8: GL101"]
    assert found(run, "--diff-base", "HEAD") == ["helper.py:3:12: GL102", "new.py:3:8: GL101"]
    assert run("check", "--diff-base", "HEAD", "old.py").code == 0
    git("mv", "old.py", "renamed.py")
    assert found(run, "--diff-base", "HEAD") == ["helper.py:3:12: GL102", "new.py:3:8: GL101"]


def test_a_second_finding_of_a_line_that_was_there_is_new(
    repository: pathlib.Path, run: Run
) -> None:
    function = "def {}():\n    loss = torch.zeros(3).sum()\n    loss.backward()\n"
    write(repository, {"old.py": "import torch\n" + function.format("a")})
    git("commit", "-a", "-m", "two")
    write(repository, {"old.py": "import torch\n" + function.format("a") + function.format("b")})
    assert found(run, "--diff-base", "HEAD", "old.py") == ["old.py:6:12: GL101"]


def test_the_base_is_where_the_branch_began(repository: pathlib.Path, run: Run) -> None:
    git("checkout", "-b", "work")
    write(repository, {"new.py": OLD})
    git("add", ".")
    git("commit", "-m", "two")
    git("checkout", "main")
    git("rm", "old.py")
    git("commit", "-m", "three")
    git("checkout", "work")
    assert found(run, "--diff-base", "main") == ["new.py:3:8: GL101"]


def test_the_settings_are_those_of_now(repository: pathlib.Path, run: Run) -> None:
    write(
        repository,
        {"pyproject.toml": "[tool.gradlint]\nselect = ['GL1']\nmin-severity = 'error'\n"},
    )
    assert found(run, "--diff-base", "HEAD") == []
    (repository / "inner").mkdir()
    write(repository, {"inner/pyproject.toml": "[tool.gradlint]\n", "inner/a.py": OLD})
    assert found(run, "--diff-base", "HEAD") == ["inner/a.py:3:8: GL101"]


def test_a_base_is_found_from_a_folder_and_in_a_hook(
    repository: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository, {"inner/pyproject.toml": "[tool.gradlint]\n", "inner/a.py": OLD})
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.chdir(repository / "inner")
    assert found(run, "--diff-base", "HEAD", "..") == ["../inner/a.py:3:8: GL101"]


def test_what_git_does_not_know_is_told(repository: pathlib.Path, run: Run) -> None:
    ran = run("check", "--diff-base", "nowhere")
    assert (ran.code, ran.err) == (2, "gradlint: --diff-base: git knows no commit 'nowhere'\n")
    assert run("check", "--diff-base", "--output=x").code == 2
    assert run("check", "--diff-base", "HEAD", "--fix").code == 2


def test_a_base_takes_a_repository(
    folder: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    write(folder, {"old.py": OLD})
    assert (
        f"--diff-base: {folder} is in no git repository" in run("check", "--diff-base", "HEAD").err
    )
