"""What tests share."""

import io
import os
import pathlib
import shutil
import sys
import tempfile
from typing import Any

import pytest
from commandline import Ran, Run
from truth import RUNS

from gradlint.cli import main

if "GRADLINT_TEST_CUDA" not in os.environ:
    # what the programs of the tests do was found out on a CPU
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


_LISTED = pathlib.Path(__file__).with_name("fast.txt").read_text().splitlines()
FAST = {file: words for file, *words in map(str.split, _LISTED) if file != "#"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands in `fast.txt`."""
    for item in items:
        words = FAST.get(item.path.name)
        if words is not None and all(word in item.name for word in words):
            item.add_marker("fast")


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    """With `-m fast`, read no other file: some import torch."""
    is_test = collection_path.suffix == ".py"
    is_left = is_test and config.option.markexpr == "fast" and collection_path.name not in FAST
    return True if is_left else None


@pytest.fixture(autouse=True)
def plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a shell or a CI service sets for colours and widths says nothing about the tests."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a gradlint command in this process."""

    def run_command(*arguments: str, stdin: str | None = None) -> Ran:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert isinstance(left.value.code, int)
        return Ran(left.value.code, *capsys.readouterr())

    return run_command


def pytest_configure(config: pytest.Config) -> None:
    """Several tests look at the same run of a program: what it did is kept for the session."""
    if RUNS not in os.environ:
        os.environ[RUNS] = folder = tempfile.mkdtemp()
        config.add_cleanup(lambda: shutil.rmtree(folder))
        config.add_cleanup(lambda: os.environ.__delitem__(RUNS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`, a worker that has nothing left to do takes tests from another one's list."""
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None
