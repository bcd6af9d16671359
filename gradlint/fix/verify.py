"""`gradlint verify`: the fixes are made in a copy, both programs are run and watched, and what they did is compared."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from gradlint.config import Selection, settings_finder
from gradlint.errors import UserError
from gradlint.fix.apply import Repaired, Task, repair
from gradlint.source.files import discover

_LEFT_OUT = {".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"}
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Ran:
    """What a watched run did."""

    raised: str
    steps: int
    findings: tuple[str, ...]
    unreached: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether the program came to its end and nothing was found."""
        return not self.raised and not self.findings


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--steps", type=click.IntRange(min=1), help="Stop both runs after this many optimizer steps.")
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SCRIPT [ARG]...")
def verify(words: tuple[str, ...], steps: int | None) -> int:
    """Mend a copy of the program, run both, and show side by side what they did.

    Leaves with 0 only if the mended program comes to its end and nothing is found in its run.
    """
    root = pathlib.Path.cwd()
    if not (root / words[0]).is_file():
        raise UserError(f"{words[0]}: no such file")
    with tempfile.TemporaryDirectory(prefix="gradlint-") as scratch:
        copies = [pathlib.Path(scratch).resolve() / name for name in ("before", "after")]
        for copy in copies:
            _mirror(root, copy)
        repaired = _mend(copies[1])
        before, after = (_run(copy, words, steps) for copy in copies)
    click.echo(_page(before, after, repaired), nl=False)
    return 0 if after.is_clean else 1


def _mirror(root: pathlib.Path, copy: pathlib.Path) -> None:
    """A copy of the programs under `root`; everything else is linked, for it can be large."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        here = copy / pathlib.Path(folder).relative_to(root)
        here.mkdir(parents=True, exist_ok=True)
        for name in files:
            source = pathlib.Path(folder) / name
            if name.endswith(".py"):
                (here / name).write_bytes(source.read_bytes())
            else:
                (here / name).symlink_to(source)


def _mend(folder: pathlib.Path) -> Repaired:
    """Applies all fixes to the programs in a folder."""
    settings_for = settings_finder(lambda settings: settings.overridden(Selection(), (), {}))
    files = discover([folder], settings_for).files
    repaired = repair(Task(files, settings_for, settings_for(folder), unsafe=True))
    for path, content in repaired.contents.items():
        path.write_bytes(content)
    return repaired


def _run(folder: pathlib.Path, words: Sequence[str], steps: int | None) -> Ran:
    """Runs the program in `folder` under `gradlint trace`; its output goes to standard error."""
    report = folder.with_suffix(".json")
    limit = [] if steps is None else ["--steps", str(steps)]
    command = [sys.executable, "-m", "gradlint", "trace", "--output-format", "json", "--output-file", str(report)]
    done = subprocess.run([*command, *limit, *words], cwd=folder, stdout=sys.stderr, check=False)
    if not report.is_file() or not report.stat().st_size:
        raise UserError(f"{words[0]}: the run left no report (exit code {done.returncode})")
    told = json.loads(report.read_text(encoding="utf-8"))
    findings = [each for each in told["findings"] if each["severity"] != "note"]
    return Ran(
        told["ended"],
        told["steps"],
        tuple(f"{each['code']} {_place(each, folder)}" for each in findings),
        tuple(sorted({name for each in told["findings"] for name in each["unreached"]})),
    )


def _place(found: dict[str, object], folder: pathlib.Path) -> str:
    path, location = pathlib.Path(str(found["filename"])), found["location"]
    assert isinstance(location, dict)
    shown = path.relative_to(folder) if path.is_relative_to(folder) else path
    return f"{shown}:{location['row']}"


def _page(before: Ran, after: Ran, repaired: Repaired) -> str:
    return "".join(f"{line}\n" for line in _rows(before, after, repaired))


def _rows(before: Ran, after: Ran, repaired: Repaired) -> Iterator[str]:
    rows = [
        ("", "before", "after"),
        ("the program", before.raised or "ends", after.raised or "ends"),
        ("optimizer steps", str(before.steps), str(after.steps)),
        ("without a gradient", _listed(before.unreached), _listed(after.unreached)),
        ("findings of the run", _listed(before.findings), _listed(after.findings)),
    ]
    yield f"Fixed: {repaired.fixed}."
    for name, one, other in rows:
        yield f"{name:20} {_shortened(one):{_WIDTH}} {_shortened(other)}".rstrip()


def _shortened(text: str) -> str:
    return text if len(text) < _WIDTH else f"{text[: _WIDTH - 2]}…"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more if names else "none"
