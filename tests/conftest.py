"""What tests share."""

import io
import os
import sys
from typing import Any

import pytest
from commandline import Ran, Run

from gradlint.cli import main

if "GRADLINT_TEST_CUDA" not in os.environ:
    # what the programs of the tests do was found out on a CPU
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`, a worker that has nothing left to do takes tests from another one's list."""
    from xdist.scheduler import WorkStealingScheduling  # type: ignore[import-untyped]

    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None
