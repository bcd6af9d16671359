"""Mended files are written whole or not at all, whatever happens meanwhile, and nothing else is
written.
"""

from __future__ import annotations

import errno
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from commandline import Run

from gradlint import checker, output

BROKEN = """\
import torch

model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for valid in (True, False):
    logits = model(torch.randn(2, 4))
    loss = logits.sum() if valid else torch.tensor(0.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FIXED = BROKEN.replace("torch.tensor(0.0)", "0.0 * logits.sum()")
NAMES = ("a.py", "b.py", "c.py")
KILLS = 200

# Ends the process, as no handler can prevent, when the file with this number is about to be put in
# place.
KILLED = """
import os, signal, sys

def hook(event, arguments):
    global left
    if event == "os.rename" and str(arguments[1]).endswith(".py"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

left = int(sys.argv.pop(1))
sys.addaudithook(hook)
from gradlint.cli import main
main()
"""
# Kills, at random times, processes that do nothing but write files, and looks at the files after
# each.
WRITERS = """
import os, pathlib, random, signal, sys, time
from gradlint.output import replace_file

kills, names = int(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]
contents = [bytes([letter]) * (1 << 16) for letter in b"on"]
for file in names:
    file.write_bytes(contents[0])
    file.chmod(0o640)

def write_for_ever():
    while True:
        for file in names:
            old = file.read_bytes()
            replace_file(file, old, contents[old == contents[0]], pathlib.Path.cwd())

for _ in range(kills):
    child = os.fork()
    if child == 0:
        write_for_ever()
    time.sleep(random.random() * 0.005)
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert {file.read_bytes() for file in names} <= set(contents)
    assert {file.stat().st_mode & 0o777 for file in names} == {0o640}
print(kills, "killed")
"""
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
from gradlint.cli import main
main()
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "pyproject.toml").write_text("[tool.gradlint]\n")
    for name in NAMES:
        (folder / name).write_text(BROKEN)
    return folder


def texts(folder: pathlib.Path) -> list[str]:
    return [(folder / name).read_text() for name in NAMES]


def gradlint(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_writer_killed_at_any_moment_leaves_every_file_whole(folder: pathlib.Path) -> None:
    ran = gradlint(WRITERS, str(KILLS), *NAMES)
    assert (ran.returncode, ran.stdout) == (0, f"{KILLS} killed\n"), ran


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no signals")
@pytest.mark.parametrize("number", [1, 2])
def test_fixes_killed_between_two_files_leave_each_old_or_new(
    folder: pathlib.Path, number: int
) -> None:
    killed = gradlint(KILLED, str(number), "check", "--fix", "--no-cache", "--jobs", "1", ".")
    assert killed.returncode == -9, killed
    assert texts(folder) == [FIXED] * (number - 1) + [BROKEN] * (len(NAMES) - number + 1)
    (left,) = set(os.listdir(folder)) - {*NAMES, "pyproject.toml"}
    assert left.startswith(f".{NAMES[number - 1]}.gradlint-")
    assert gradlint(KILLED, "0", "check", "--fix", "--no-cache", "--jobs", "1", ".").returncode == 0
    assert texts(folder) == [FIXED] * len(NAMES)
    assert set(os.listdir(folder)) == {*NAMES, "pyproject.toml"}


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell which processes run")
def test_only_what_nobody_writes_any_more_is_removed(folder: pathlib.Path) -> None:
    kept = {
        f".a.py.gradlint-{os.getpid()}-0123abcd",
        ".a.py.gradlint-0-0123abcd",
        ".a.py.gradlint-99-x",
        "a.py.bak",
    }
    for name in {*kept, ".a.py.gradlint-999999999-0123abcd"}:
        (folder / name).write_text("")
    output.remove_leftovers([folder, folder / "nowhere"])
    assert set(os.listdir(folder)) - {*NAMES, "pyproject.toml"} == kept


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no limits")
def test_a_full_disk_is_reported_and_changes_nothing(folder: pathlib.Path) -> None:
    ran = gradlint(LIMITED, "check", "--fix", "--jobs", "1", ".")
    assert ran.returncode == 2, ran
    assert ran.stderr.count(f"left as it was: {os.strerror(errno.EFBIG)}") == len(NAMES)
    assert texts(folder) == [BROKEN] * len(NAMES)
    assert {*os.listdir(folder)} <= {*NAMES, "pyproject.toml", ".gradlint_cache"}


def test_a_file_that_cannot_be_written_is_reported_and_the_others_are_mended(
    folder: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = output.replace

    def replace(target: pathlib.Path, content: bytes) -> None:
        if target.name == "b.py":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        original(target, content)

    monkeypatch.setattr(output, "replace", replace)
    ran = run("check", "--fix", "--no-cache", ".")
    assert ran.code == 2
    assert f"b.py: left as it was: {os.strerror(errno.EROFS)}" in ran.err
    assert texts(folder) == [FIXED, BROKEN, FIXED]


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write everywhere"
)
def test_a_tree_that_is_read_only_is_left_as_it_was(folder: pathlib.Path, run: Run) -> None:
    folder.chmod(0o555)
    try:
        ran = run("check", "--fix", ".")
    finally:
        folder.chmod(0o755)
    assert ran.code == 2
    assert ran.err.count("left as it was") == len(NAMES)
    assert texts(folder) == [BROKEN] * len(NAMES)


def test_a_file_that_changes_while_it_is_checked_is_left_as_it_is(
    folder: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*arguments: Any, **options: Any) -> checker.Checked:
        found = checker.check(*arguments, **options)
        (folder / "a.py").write_text("# mine\n" + BROKEN)
        return found

    monkeypatch.setattr("gradlint.fix.apply.check", check)
    ran = run("check", "--fix", "--no-cache", "--jobs", "1", ".")
    assert ran.code == 2
    assert "a.py: left as it was: it has changed since it was read" in ran.err
    assert texts(folder) == ["# mine\n" + BROKEN, FIXED, FIXED]


def test_links_within_the_tree_stay_links_and_those_out_of_it_are_not_followed(
    folder: pathlib.Path, tmp_path: pathlib.Path, run: Run
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "d.py").write_text(BROKEN)
    (folder / "package").symlink_to(outside)
    (folder / "d.py").symlink_to(outside / "d.py")
    (folder / "e.py").symlink_to(folder / "a.py")
    ran = run("check", "--fix", ".", "e.py", "package/d.py")
    assert ran.code == 2
    assert "left as it was: it is a link" in ran.err
    assert (outside / "d.py").read_text() == BROKEN
    assert (folder / "d.py").is_symlink()
    assert (folder / "e.py").is_symlink()
    assert texts(folder) == [FIXED] * len(NAMES)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the superuser gives files away"
)
def test_the_owner_of_a_file_stays(folder: pathlib.Path, run: Run) -> None:
    os.chown(folder / "a.py", 12345, 12346)
    (folder / "a.py").chmod(0o600)
    run("check", "--fix", "--no-cache", "a.py")
    found = (folder / "a.py").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (12345, 12346, 0o600)
