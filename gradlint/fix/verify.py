"""`gradlint verify`: the fixes are made in a copy, both programs are run and watched, and what they
did is compared.
"""

from __future__ import annotations

import itertools
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from gradlint.config import settings_finder
from gradlint.dataclass import dataclass
from gradlint.errors import UserError
from gradlint.fix.apply import Repaired, Task, repair
from gradlint.fix.mirror import Mirror, mirror
from gradlint.report._place import listed
from gradlint.report._traced import traced_report
from gradlint.settings import Selection
from gradlint.source.files import discover

SEED = 0  # both runs draw the same random numbers, unless the program seeds them itself
SAME = 1e-4  # how far two losses may differ, relatively: the order of a sum is not always the same
_WIDTH = 60
# As an installed command starts: with no folder of the project on the path from which gradlint is
# imported.
_START = """
import os, sys
sys.path[: not sys.path[0]] = [os.path.dirname(sys.executable)]
from gradlint.cli import main
main()
"""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a watched run did."""

    raised: str
    steps: int
    findings: tuple[str, ...]
    gradients: Mapping[str, bool]
    losses: tuple[float, ...]
    # how many of the losses come before the first step at which a bug struck; None: none did
    before_bug: int | None
    codes: frozenset[str]  # what a run can show

    @property
    def starved(self) -> tuple[str, ...]:
        """The parameters that never got a gradient."""
        return tuple(name for name, trained in self.gradients.items() if not trained)

    @property
    def is_clean(self) -> bool:
        """Whether the program came to its end and nothing was found."""
        return not self.raised and not self.findings


@dataclass(frozen=True, slots=True)
class Comparison:
    """A program and what the fixes made of it, after both were run."""

    before: Ran
    after: Ran
    repaired: Repaired

    @property
    def holds(self) -> bool:
        """Whether the mended run is clean, and the losses are the same where the bug did not
        strike.
        """
        return self.after.is_clean and self._same_losses >= self._losses_to_keep

    @property
    def _same_losses(self) -> int:
        pairs = itertools.takewhile(
            lambda pair: _is_same(*pair), zip(self.before.losses, self.after.losses, strict=False)
        )
        return sum(1 for _ in pairs)

    @property
    def _losses_to_keep(self) -> int:
        """How many losses the fixes ought to have left as they were."""
        if self.before.before_bug is not None:
            return self.before.before_bug
        unseen = self.repaired.codes - self.before.codes
        return 0 if unseen else max(len(self.before.losses), len(self.after.losses))

    def page(self) -> str:
        """Side by side what the two runs did."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        before, after = self.before, self.after
        rows = [
            ("", "before", "after"),
            ("the program", before.raised or "ends", after.raised or "ends"),
            ("optimizer steps", str(before.steps), str(after.steps)),
            ("with a gradient", _share(before), _share(after)),
            ("without a gradient", _some(before.starved), _some(after.starved)),
            ("findings of the run", _some(before.findings), _some(after.findings)),
            ("losses", _numbers(before.losses), _numbers(after.losses)),
        ]
        codes = f" ({', '.join(sorted(self.repaired.codes))})" if self.repaired.codes else ""
        yield f"Fixed: {self.repaired.fixed}{codes}."
        for name, one, other in rows:
            yield f"{name:20} {_shortened(one):{_WIDTH}} {_shortened(other)}".rstrip()
        yield self._about_losses()

    def _about_losses(self) -> str:
        same, kept, all_before = self._same_losses, self._losses_to_keep, len(self.before.losses)
        if same == all_before == len(self.after.losses):
            return f"All {same} losses are the same." if same else "Neither run computed a loss."
        if same < kept:
            return (
                f"The losses differ from backward {same + 1} on, where no bug has struck: a fix "
                "changes something else."
            )
        if same == all_before:
            return f"All {same} losses of the first run are the same in the second."
        return f"The losses differ from backward {same + 1} on" + (
            ", where the bug strikes." if kept else "."
        )


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--steps", type=click.IntRange(min=1), help="Stop both runs after this many optimizer steps."
)
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SCRIPT [ARG]...")
def verify(words: tuple[str, ...], steps: int | None) -> int:
    """Mend a copy of the program, run both, and show side by side what they did.

    Leaves with 0 only if the mended program comes to its end, nothing is found in its run, and the
    losses are the same where the bug did not strike.
    """
    settings_for = settings_finder(lambda settings: settings.overridden(Selection(), (), {}))
    settings = settings_for(pathlib.Path.cwd())
    root = root_of(settings.root)
    script_in(root, words[0])
    files = discover([root], settings_for).files
    compared = compare(root, repair(Task(files, settings_for, settings, unsafe=True)), words, steps)
    click.echo(compared.page(), nl=False)
    return int(not compared.holds)


def root_of(project: pathlib.Path) -> pathlib.Path:
    """The folder to copy: that of the project around the current folder, or else the current
    folder.
    """
    here = pathlib.Path.cwd().resolve()
    return project.resolve() if here.is_relative_to(project.resolve()) else here


def script_in(root: pathlib.Path, script: str) -> pathlib.Path:
    """A script by its path within `root`, where the copies have it, too."""
    path = pathlib.Path(os.path.abspath(script))
    path = path.parent.resolve() / path.name
    if not path.is_file():
        raise UserError(f"{script}: no such file")
    if not path.is_relative_to(root):
        raise UserError(f"{script}: stands out of {root}, which is what is copied")
    return path.relative_to(root)


def compare(
    root: pathlib.Path, repaired: Repaired, words: Sequence[str], steps: int | None = None
) -> Comparison:
    """Runs the program `words` in a copy of `root` as it is, and in one with the fixes."""
    script = script_in(root, words[0])
    contents = {script_in(root, str(path)): content for path, content in repaired.contents.items()}
    with tempfile.TemporaryDirectory(prefix="gradlint-") as scratch:
        copies = [
            _mirrored(root, pathlib.Path(scratch).resolve() / name) for name in ("before", "after")
        ]
        if copies[0].linked:
            some = ", ".join(copies[0].linked[:2]) + (
                " and others" if len(copies[0].linked) > 2 else ""
            )
            click.echo(
                f"gradlint: linked, not copied, so that writes reach the original: {some}", err=True
            )
        for path, content in contents.items():
            target = copies[1].folder / path
            target.unlink()  # it can be a link
            target.write_bytes(content)
        before, after = (
            _run(root, copy, [str(copy.folder / script), *words[1:]], steps) for copy in copies
        )
    return Comparison(before, after, repaired)


def _mirrored(root: pathlib.Path, copy: pathlib.Path) -> Mirror:
    try:
        return mirror(root, copy)
    except OSError as error:
        raise UserError(f"{root} cannot be copied: {error.strerror}: {error.filename}") from None


def _run(root: pathlib.Path, copy: Mirror, words: Sequence[str], steps: int | None) -> Ran:
    """Runs the program in a copy under `gradlint trace`; its output goes to standard error."""
    report = copy.folder.with_suffix(".json")
    limit = [] if steps is None else ["--steps", str(steps)]
    here = copy.folder / pathlib.Path.cwd().resolve().relative_to(root)
    told = traced_report(
        ["--values", "--seed", str(SEED), *limit], words, report, start=("-c", _START),
        cwd=here, env=_environment(root, copy.folder), stdin=subprocess.DEVNULL, stdout=2,
    )  # fmt: skip
    return _ran(told, copy.folder)


def _environment(root: pathlib.Path, copy: pathlib.Path) -> dict[str, str]:
    """What the run gets: modules of the project come from the copy, hashes are the same in both
    runs.
    """
    paths = [pathlib.Path(entry).resolve() for entry in sys.path if entry]
    inside = [str(copy / path.relative_to(root)) for path in paths if path.is_relative_to(root)]
    given = [
        str(pathlib.Path(e).resolve())
        for e in os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if e
    ]
    kept = [entry for entry in given if not pathlib.Path(entry).is_relative_to(root)]
    found = {"PYTHONHASHSEED": str(SEED), **os.environ}
    return {**found, "PYTHONPATH": os.pathsep.join([*inside, *kept])}


def _ran(told: Mapping[str, Any], folder: pathlib.Path) -> Ran:
    losses = [(each["step"], each["value"]) for each in told["losses"]]
    struck = told["struck"]
    return Ran(
        told["ended"],
        told["steps"],
        tuple(
            f"{each['code']} {_place(each, folder)}"
            for each in told["findings"]
            if each["severity"] != "note"
        ),
        told["gradients"],
        tuple(value for _, value in losses),
        None if struck is None else sum(step < struck for step, _ in losses),
        frozenset(told["codes"]),
    )


def _place(found: Mapping[str, Any], folder: pathlib.Path) -> str:
    path = pathlib.Path(found["filename"])
    shown = path.relative_to(folder) if path.is_relative_to(folder) else path
    return f"{shown}:{found['location']['row']}"


def _is_same(one: float, other: float) -> bool:
    return (
        one == other
        or (math.isnan(one) and math.isnan(other))
        or math.isclose(one, other, rel_tol=SAME)
    )


def _some(names: Sequence[str]) -> str:
    return listed(names, 2) or "none"


def _share(ran: Ran) -> str:
    return f"{sum(ran.gradients.values())} of {len(ran.gradients)}"


def _numbers(losses: Sequence[float]) -> str:
    shown = [f"{loss:.4g}" for loss in losses]
    return ", ".join(shown if len(shown) < 5 else [*shown[:2], "…", *shown[-2:]]) or "none"


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) < _WIDTH else f"{text[: _WIDTH - 2]}…"
