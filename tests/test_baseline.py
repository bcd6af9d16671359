"""Baselines and written suppressions: taking gradlint into a project that has findings."""

import json
import os
import pathlib

import pytest
from commandline import Run

OLD = "x = 1  # noqa: GL998\n"
NEW = "y = 1  # noqa: GL997\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(OLD)
    return tmp_path


def test_what_is_in_the_baseline_is_not_reported(folder: pathlib.Path, run: Run) -> None:
    assert run("check", "--write-baseline", "base.json").code == 0
    assert run("check", "--baseline", "base.json").out == "Nothing found in 1 file.\n"
    (folder / "a.py").write_text("\n\n" + NEW + OLD)
    ran = run("check", "--baseline", "base.json", "--output-format", "concise")
    assert ran.code == 1
    assert ran.out.startswith("a.py:3:8: warning[GL003]")
    assert "Found 1 warning" in ran.out


def test_a_second_copy_of_a_known_finding_is_new(folder: pathlib.Path, run: Run) -> None:
    run("check", "--write-baseline", "base.json")
    (folder / "a.py").write_text(OLD + OLD)
    assert run("check", "--baseline", "base.json").code == 1


def test_the_baseline_can_be_a_setting_and_holds_from_any_folder(
    folder: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nbaseline = 'base.json'\n")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.py").write_text(NEW)
    run("check", "--write-baseline", "base.json")
    assert run("check").code == 0
    monkeypatch.chdir(folder / "sub")
    assert run("check").code == 0


def test_what_vanished_is_pruned_and_what_was_not_checked_stays(
    folder: pathlib.Path, run: Run
) -> None:
    (folder / "b.py").write_text(NEW)
    assert (
        run("check", "--write-baseline", "base.json").out
        == "base.json: 2 in the baseline, 0 gone.\n"
    )
    (folder / "a.py").write_text("x = 1\n")
    assert (
        run("check", "a.py", "--write-baseline", "base.json").out
        == "base.json: 1 in the baseline, 1 gone.\n"
    )
    assert [
        entry["path"] for entry in json.loads((folder / "base.json").read_text())["findings"]
    ] == ["b.py"]
    (folder / "b.py").unlink()
    assert (
        run("check", "a.py", "--write-baseline", "base.json").out
        == "base.json: 0 in the baseline, 1 gone.\n"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "cannot be read: No such file"),
        ("[]", "is not a baseline"),
        ("{}", "is not a baseline"),
        ('{"version": 9}', "version 9"),
    ],
)
def test_a_baseline_that_is_none_exits_with_2(
    folder: pathlib.Path, run: Run, text: str | None, complaint: str
) -> None:
    if text is not None:
        (folder / "base.json").write_text(text)
    ran = run("check", "--baseline", "base.json")
    assert ran.code == 2
    assert f"base.json: {'the baseline ' if text is None else ''}" in ran.err
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (OLD, "x = 1  # noqa: GL998  # gradlint: ignore[GL003] known\n"),
        (
            "x = 1  # noqa: GL998\r\ny = 2\r\n",
            "x = 1  # noqa: GL998  # gradlint: ignore[GL003] known\r\ny = 2\r\n",
        ),
        (
            "x = 1  # gradlint: ignore[GL998] typo\n",
            "x = 1  # gradlint: ignore[GL998, GL003] typo\n",
        ),
        ("x = 'é'  # noqa: GL998", "x = 'é'  # noqa: GL998  # gradlint: ignore[GL003] known"),
    ],
)
def test_suppressions_are_written_and_then_hold(
    folder: pathlib.Path, run: Run, before: str, after: str
) -> None:
    (folder / "a.py").write_bytes(before.encode())
    os.chmod(folder / "a.py", 0o755)
    ran = run("check", "--add-ignore", "known")
    assert (ran.code, ran.out) == (0, "Suppressed: 1.\n")
    assert (folder / "a.py").read_bytes() == after.encode()
    assert (folder / "a.py").stat().st_mode & 0o777 == 0o755
    assert run("check").code == 0


def test_a_file_that_does_not_parse_is_left_as_it_is(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text("def f(:\n")
    ran = run("check", "--add-ignore", "known")
    assert ran.code == 1
    assert "GL001 is left" in ran.err
    assert (folder / "a.py").read_text() == "def f(:\n"


def test_a_reason_is_asked_for(folder: pathlib.Path, run: Run) -> None:
    assert run("check", "--add-ignore", "  ").code == 2
