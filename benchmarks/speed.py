"""How fast gradlint is, beside others, on packages from PyPI:
`python benchmarks/speed.py trl accelerate`.

Downloads the source of each package, then runs, one after the other and several times over:
gradlint without a cache, gradlint with nothing changed, torch-preflight, torchfix, ruff, and
`libcst.parse_module` on all files. Prints medians of CPU and wall time, peak memory of the largest
process, ratios of CPU to gradlint's, and how time grows with lines. What is not installed is left
out.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

PARSES = """
import pathlib, sys
import libcst
for path in pathlib.Path(sys.argv[1]).rglob("*.py"):
    try:
        libcst.parse_module(path.read_bytes())
    except (libcst.ParserSyntaxError, UnicodeDecodeError, RecursionError) as error:
        print(path, type(error).__name__)
"""


@dataclass(frozen=True)
class Run:
    """What one run of a command took: seconds of CPU and of wall time, and MiB."""

    cpu: float
    wall: float
    memory: float


def measured(command: list[str]) -> Run:
    """Runs a command with its output thrown away; the memory is that of the largest process of
    it.
    """
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=-3, stderr=-3)\n"
    code += "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_maxrss)"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code, *command],
        capture_output=True,
        text=True,
        check=True,
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(cpu, wall, int(told.stdout) / 1024)


def median(command: list[str], times: int) -> Run:
    """The medians of several runs."""
    runs = [measured(command) for _ in range(times)]
    return Run(
        *(statistics.median(getattr(run, key) for run in runs) for key in ("cpu", "wall", "memory"))
    )


def download(package: str, folder: Path) -> None:
    """The source of a package, from PyPI: its sdist, or else its wheel."""
    into = folder / "downloads" / package
    for kind in (["--no-binary", ":all:"], ["--only-binary", ":all:"]):
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            *kind,
            "-d",
            str(into),
            package,
        ]
        if subprocess.run(command, check=False).returncode == 0:
            break
    for file in into.iterdir():
        if file.suffix in (".whl", ".zip"):
            zipfile.ZipFile(file).extractall(folder / "sources" / package)
        else:
            with tarfile.open(file) as archive:
                archive.extractall(folder / "sources" / package, filter="data")


def commands(target: Path, cache: Path) -> dict[str, list[str]]:
    """What is compared, by name."""
    gradlint = [sys.executable, "-m", "gradlint", "check", str(target)]
    found = {
        "gradlint, cold": [*gradlint, "--no-cache"],
        "gradlint, warm": [*gradlint, "--cache-dir", str(cache)],
    }
    if importlib.util.find_spec("libcst"):
        found["libcst.parse_module"] = [sys.executable, "-c", PARSES, str(target)]
    beside = {
        "torch-preflight": ["torch-preflight", "check", str(target)],
        "torchfix": ["torchfix", "--select", "ALL", str(target)],
        "ruff": ["ruff", "check", "--no-cache", "--select", "ALL", str(target)],
    }
    where = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for name, (program, *arguments) in beside.items():
        if path := shutil.which(program, path=where):
            found[name] = [path, *arguments]
    return found


def lines_under(folder: Path) -> int:
    """The lines of all Python files."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*.py"))


def compare(target: Path, cache: Path, times: int) -> None:
    """Prints one line for each command."""
    print(f"{lines_under(target):,} lines in {sum(1 for _ in target.rglob('*.py')):,} files")
    base: float | None = None
    for name, command in commands(target, cache).items():
        if name == "gradlint, warm":
            measured(command)  # fills the cache
        run = median(command, times)
        base = base or run.cpu
        print(
            f"{name:20} {run.cpu:8.2f} s CPU {run.wall:8.2f} s wall {run.memory:6.0f} MiB "
            f"{run.cpu / base:8.2f}x"
        )


def grow(package: Path, folder: Path, times: int) -> None:
    """Prints what 1, 2, 4 and 8 copies of a package take."""
    for copies in (1, 2, 4, 8):
        target = folder / f"copies-{copies}"
        for number in range(copies):
            shutil.copytree(package, target / f"copy{number}")
        run = median(commands(target, folder)["gradlint, cold"], times)
        print(
            f"{copies}x {lines_under(target):9,} lines {run.cpu:8.2f} s CPU {run.memory:6.0f} MiB"
        )


def main() -> None:
    """Downloads, runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", help="names on PyPI")
    parser.add_argument(
        "--source", type=Path, help="measure this folder instead of packages from PyPI"
    )
    parser.add_argument(
        "--times", type=int, default=3, help="runs of each command; medians are printed"
    )
    parser.add_argument(
        "--growth",
        action="store_true",
        help="print how time grows with copies of the first package",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for package in options.packages:
            download(package, folder)
        target = options.source or folder / "sources"
        compare(target, folder / "cache", options.times)
        if options.growth:
            grow(target if options.source else target / options.packages[0], folder, options.times)


if __name__ == "__main__":
    main()
