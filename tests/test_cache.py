"""Results kept from run to run: never others than without, and never in the way."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from commandline import Ran, Run

import gradlint
from gradlint import cache, parallel

TRAIN = """\
import torch
from helper import loss_of

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(8, 4, 2):
    loss = loss_of(model(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
GOOD = "def loss_of(y):\n    return y.mean()\n"
BAD = "def loss_of(y):\n    return y.detach().mean()\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "helper.py").write_text(GOOD)
    return tmp_path


def _check(run: Run, *arguments: str) -> Ran:
    return run("check", "--output-format", "concise", *arguments)


def test_a_change_in_an_imported_file_is_seen(folder: pathlib.Path, run: Run) -> None:
    assert _check(run, "train.py").code == 0
    (folder / "helper.py").write_text(BAD)
    changed = _check(run, "train.py")
    assert changed.code == 1
    assert changed.out == _check(run, "train.py", "--no-cache").out == _check(run, "train.py").out
    (folder / "helper.py").write_text(GOOD)
    assert _check(run, "train.py").code == 0


def test_a_file_that_an_import_now_finds_is_seen(folder: pathlib.Path, run: Run) -> None:
    (folder / "helper.py").unlink()
    assert _check(run).code == 0
    (folder / "helper.py").write_text(BAD)
    assert _check(run).code == 1


def test_a_program_mended_in_memory_is_another_than_the_one_on_disk(
    folder: pathlib.Path, run: Run
) -> None:
    (folder / "helper.py").write_text(BAD)
    shown = run("check", "--diff", "--unsafe-fixes", "helper.py", "train.py")
    assert shown.code == 1
    assert (
        shown.out
        == run("check", "--diff", "--unsafe-fixes", "--no-cache", "helper.py", "train.py").out
    )
    assert _check(run, "helper.py", "train.py").code == 1
    assert run("check", "--fix", "--unsafe-fixes", "helper.py", "train.py").code == 0
    assert (folder / "helper.py").read_text() == GOOD
    assert _check(run, "helper.py", "train.py").code == 0


def test_a_file_that_becomes_a_module_of_a_package_is_analysed_anew(
    folder: pathlib.Path, run: Run
) -> None:
    package = folder / "package"
    package.mkdir()
    (package / "a.py").write_text(
        "import torch\nregister()\nx = torch.zeros(3, requires_grad=True)\nx += 1\n"
    )
    said = _check(run, "package").out
    (package / "__init__.py").write_text("")
    assert "GL202" in said
    assert "GL202" not in _check(run, "package", "--no-cache").out
    assert "GL202" not in _check(run, "package").out


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"a": 1}', b"\xff\x00", b'{"/x.py": ["", [], [[["f"], 1]]]}']
)
def test_a_corrupt_cache_is_ignored(folder: pathlib.Path, run: Run, content: bytes) -> None:
    (folder / "helper.py").write_text(BAD)
    before = _check(run)
    (kept,) = (folder / ".gradlint_cache").glob("*.json")
    kept.write_bytes(content)
    after = _check(run)
    assert (after.code, after.out, after.err) == (before.code, before.out, before.err)


def _forged(folder: pathlib.Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the records of the only cache there is, in order of their files."""
    (kept,) = (folder / ".gradlint_cache").glob("*.json")
    records, *rest = json.loads(kept.read_text())
    change(records)
    kept.write_text(json.dumps([records, *rest]))


SECRET = "the line of a file that nobody asked for"


@pytest.mark.parametrize("imported", [False, True])
@pytest.mark.parametrize("where", ["finding", "related", "gap", "fault"])
def test_a_record_that_names_a_file_outside_is_dropped(
    folder: pathlib.Path,
    run: Run,
    tmp_path_factory: pytest.TempPathFactory,
    where: str,
    imported: bool,
) -> None:
    (folder / "helper.py").write_text(BAD)
    before = run("check", "--gaps")
    secret = tmp_path_factory.mktemp("home") / "secret.txt"
    secret.write_text(f"{SECRET}\n")

    def change(records: dict[str, Any]) -> None:
        record = records[str(folder / "train.py")]
        place = [str(secret), 1, 1, 1, 5]
        _, _, _, _, ((finding, *_), gaps, *_) = record[2][0]
        if where == "finding":
            finding[4] = place
        elif where == "related":
            finding[6].append([place, "see"])
        elif where == "gap":
            gaps.append(["call", place, "see"])
        else:
            record[3] = [place, "invalid syntax", ""]
        if imported:
            record[1].append([str(secret), -1, str(secret)])

    _forged(folder, change)
    after = run("check", "--gaps")
    assert SECRET not in after.out + after.err
    assert (after.code, after.out, after.err) == (before.code, before.out, before.err)
    assert run("check", "--gaps").out == before.out


def test_what_is_kept_of_imported_files_is_no_forgery(
    folder: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "loss").mkdir()
    (folder / "loss" / "far.py").write_text(BAD)
    (folder / "helper.py").write_text("from loss.far import loss_of\n")
    before = run("check", "train.py")
    assert "loss/far.py:2:12" in before.out
    monkeypatch.setattr(parallel, "spread", None)  # by which all is analysed that is not kept
    assert run("check", "train.py").out == before.out


def test_what_a_killed_run_has_left_of_a_cache_goes(folder: pathlib.Path, run: Run) -> None:
    _check(run)
    old, new = (folder / ".gradlint_cache" / name for name in ("a.part", "b.part"))
    for file in (old, new):
        file.write_text("")
    os.utime(old, (0, 0))
    (folder / "helper.py").write_text(BAD)
    _check(run)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_link_is_neither_followed_nor_removed(folder: pathlib.Path, run: Run) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    (folder / ".gradlint_cache").symlink_to(elsewhere)
    assert _check(run, "train.py").code == 0
    assert not list(elsewhere.iterdir())
    assert run("clean").code == 2
    assert elsewhere.is_dir()


def test_the_cache_is_hidden_from_git_and_can_be_cleaned(folder: pathlib.Path, run: Run) -> None:
    assert run("clean").out.startswith("Nothing kept")
    _check(run)
    assert (folder / ".gradlint_cache" / ".gitignore").read_text().endswith("*\n")
    assert run("clean").code == 0
    assert not (folder / ".gradlint_cache").exists()


@pytest.mark.parametrize(("bound", "value", "left"), [("MOST_FILES", 2, 2), ("MOST_BYTES", 1, 1)])
def test_a_cache_that_has_grown_too_large_loses_what_is_oldest(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, left: int
) -> None:
    monkeypatch.setattr(cache, bound, value)
    kept: list[pathlib.Path] = []
    for number, files in enumerate([["train.py"], ["helper.py"], ["train.py", "helper.py"]]):
        gradlint.check(files, cache=folder / "kept")
        (newest,) = set((folder / "kept").glob("*.json")) - set(kept)
        os.utime(newest, (number, number))
        kept.append(newest)
    assert [file for file in kept if file.exists()] == kept[-left:]


def test_what_gradlint_did_not_make_is_not_cleaned(folder: pathlib.Path, run: Run) -> None:
    (folder / "mine").mkdir()
    assert run("clean", "--cache-dir", "mine").code == 2
    assert (folder / "mine").is_dir()


def test_no_cache_leaves_nothing_behind(folder: pathlib.Path, run: Run) -> None:
    _check(run, "--no-cache")
    assert not (folder / ".gradlint_cache").exists()


def test_findings_are_the_same_on_one_core_and_on_two_and_in_any_order(
    folder: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "SIZE", 1)
    (folder / "helper.py").write_text(BAD)
    for name in ("a", "b", "c"):
        (folder / name).mkdir()
        (folder / name / "train.py").write_text(TRAIN)
        (folder / name / "helper.py").write_text(BAD)
    one = _check(run, "--jobs", "1", "--no-cache", "a", "b", "c", ".")
    assert one.code == 1
    assert one.out == _check(run, "--jobs", "2", "--no-cache", ".", "c", "a", "b").out
    assert (
        one.out
        == _check(run, "--jobs", "2", "c", "b", "a", ".").out
        == _check(run, "--jobs", "1").out
    )


def _dies(part: parallel.Batch, given: str) -> str:
    if any(path.name == given for path in part):
        os._exit(1)
    return " ".join(path.name for path in part)


def test_a_process_that_dies_costs_only_the_file_that_killed_it() -> None:
    parts = [tuple(pathlib.Path(name) for name in names) for names in (("a", "b", "c"), ("d", "e"))]
    work = parallel.Work(_dies, lambda part: "b")
    results = {
        path.name: result for part, result in parallel.spread(work, parts, 2) for path in part
    }
    assert results.pop("b") is None
    assert set(results) == {"a", "c", "d", "e"}
    assert None not in results.values()


ENDLESS = """\
import os, pathlib, signal
from gradlint import parallel

def wait(part, given):
    os.write(1, b"begun")
    signal.pause()

if __name__ == "__main__":
    parts = [(pathlib.Path("a"),), (pathlib.Path("b"),)]
    list(parallel.spread(parallel.Work(wait, str), parts, 2))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_killed_run_leaves_no_process_behind(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run.py").write_text(ENDLESS)
    with subprocess.Popen([sys.executable, "run.py"], cwd=tmp_path, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.read(10) == b"begun" * 2
        run.kill()
        run.communicate(timeout=60)  # the pipe ends when the last process that holds it does


def test_batches_keep_folders_together_and_do_not_depend_on_the_order() -> None:
    paths = [pathlib.Path(folder) / f"{number}.py" for folder in "ab" for number in range(3)]
    sizes = dict.fromkeys(paths, parallel.SIZE // 2)
    assert parallel.batches(sizes) == [tuple(paths[:3]), tuple(paths[3:])]
    assert parallel.batches(dict(reversed(sizes.items()))) == parallel.batches(sizes)


def test_nothing_is_kept_among_files_that_gradlint_did_not_make(
    folder: pathlib.Path, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "helper.py").write_text(BAD)
    mine = folder / "mine"
    mine.mkdir()
    for number in range(80):  # more than a cache keeps
        (mine / f"{number}.json").write_text("{}")
    ran = _check(run, "--cache-dir", "mine")
    assert ran.code == 1
    assert "was not made by gradlint" in caplog.text
    assert len(list(mine.iterdir())) == 80


@pytest.mark.parametrize("content", ["[" * 100_000, '{"/x.py": ' * 20_000])
def test_a_cache_that_is_nested_too_deeply_is_ignored(
    folder: pathlib.Path, run: Run, content: str
) -> None:
    (folder / "helper.py").write_text(BAD)
    before = _check(run)
    (kept,) = (folder / ".gradlint_cache").glob("*.json")
    kept.write_text(content)
    assert _check(run).out == before.out


def test_a_pipe_in_the_place_of_a_cache_is_not_waited_for(folder: pathlib.Path, run: Run) -> None:
    (folder / "helper.py").write_text(BAD)
    before = _check(run)
    (kept,) = (folder / ".gradlint_cache").glob("*.json")
    kept.unlink()
    os.mkfifo(kept)
    assert _check(run).out == before.out


def _fresh(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A check in a process of its own, whose log nobody listens to."""
    command = [
        sys.executable,
        "-m",
        "gradlint",
        "check",
        "--output-format",
        "concise",
        *arguments,
        ".",
    ]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def test_a_cache_that_cannot_be_written_is_told_and_costs_no_finding(folder: pathlib.Path) -> None:
    (folder / "helper.py").write_text(BAD)
    (folder / "file").write_text("")
    # whoever runs this, nothing can be made below a file
    ran = _fresh(folder, "--cache-dir", "file/cache")
    assert (ran.returncode, ran.stdout.count("GL102")) == (1, 1)
    assert (
        ran.stderr == f"gradlint: nothing is kept in {folder / 'file' / 'cache'}: Not a directory\n"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to this user")
def test_a_cache_of_someone_else_is_told_and_costs_no_finding(folder: pathlib.Path) -> None:
    (folder / "helper.py").write_text(BAD)
    cache = folder / ".gradlint_cache"
    cache.mkdir()
    (cache / ".gitignore").write_text("# made by gradlint\n*\n")
    cache.chmod(0o555)
    ran = _fresh(folder)
    cache.chmod(0o755)
    assert (ran.returncode, ran.stdout.count("GL102")) == (1, 1)
    assert "Permission denied" in ran.stderr


def test_runs_at_the_same_time_share_a_cache_and_say_the_same(folder: pathlib.Path) -> None:
    (folder / "helper.py").write_text(BAD)
    for number in range(6):
        (folder / f"train{number}.py").write_text(TRAIN)
    command = [
        sys.executable,
        "-m",
        "gradlint",
        "check",
        "--jobs",
        "1",
        "--output-format",
        "concise",
        ".",
    ]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )

    for _ in range(2):  # the first ones make the cache, the second ones read it
        running = [start() for _ in range(4)]
        said = {(*process.communicate(), process.returncode) for process in running}
        assert len(said) == 1, said
        ((out, err, code),) = said
        assert (out.count(b"GL102"), err, code) == (1, b"", 1)
    assert not list((folder / ".gradlint_cache").glob("*.part"))
