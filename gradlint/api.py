"""gradlint for programs: `gradlint.check` and `gradlint.trace`, which do what the commands of these
names do.
"""

from __future__ import annotations

import functools
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from gradlint.config import parse_codes, parse_severity, settings_finder
from gradlint.dataclass import dataclass
from gradlint.errors import NEEDS_TORCH, UserError, needing
from gradlint.finding import Finding
from gradlint.report._object import finding_of
from gradlint.report._traced import traced_report
from gradlint.settings import Selection
from gradlint.source.files import SettingsFor, discover, nearest

if TYPE_CHECKING:
    from gradlint.trace.call import Called, Watch

Level = Literal["auto", "watch", "record"]
Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Traced:
    """What a traced run came to."""

    findings: list[Finding]
    steps: int  # that the optimizers took
    error: str  # the exception that ended the program, as `RuntimeError: ...`; "" where none did
    value: object = None  # what a function gave back


class Tracing:
    """What autograd does while the `with` of this runs: `findings`, `steps` and `error` are there
    behind it.

    `print` shows the report of the command. An exception goes on, but for the end that `steps` asks
    for.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._called: Called | None = None

    def __enter__(self) -> Tracing:
        self._watch.begin()
        return self

    def __exit__(self, _kind: object, raised: BaseException | None, _trace: object) -> bool:
        self._called = self._watch.end(raised, "with gradlint.trace()")
        return self._watch.is_asked_for(raised)

    def _finished(self) -> Called:
        if self._called is None:
            raise UserError("what a trace has found is known behind its `with`")
        return self._called

    @property
    def findings(self) -> list[Finding]:
        """What was found, the worst first."""
        return list(self._finished().findings)

    @property
    def steps(self) -> int:
        """The steps that the optimizers took."""
        return self._finished().steps

    @property
    def error(self) -> str:
        """The exception that ended it, as `RuntimeError: ...`; "" where none did."""
        return self._finished().error

    def __str__(self) -> str:
        return self._finished().text


def check(
    paths: Path | Iterable[Path] = ".",
    *,
    select: Iterable[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    exclude: Iterable[str] = (),
    extend_include: Iterable[str] = (),
    min_severity: Literal["note", "warning", "error"] | None = None,
    jobs: int = 1,
    cache: Path | None = None,
) -> list[Finding]:
    """What is wrong in the files under `paths`, in order of files and lines, each with its fix
    where there is one.

    The settings of the nearest `pyproject.toml` hold, and the arguments outweigh them as the
    options of the command do. `cache` is a folder that keeps results from one call to the next.
    Raises UserError for what cannot be done.
    """
    from gradlint import checker
    from gradlint.fix.offers import offered

    values = {} if min_severity is None else {"min_severity": parse_severity(min_severity)}
    selection = Selection(
        None if select is None else _codes(select), _codes(extend_select), _codes(ignore)
    )
    settings_for = settings_finder(
        lambda settings: settings.overridden(
            selection, _words(exclude), values, _words(extend_include)
        )
    )
    files = discover(
        _existing([paths] if isinstance(paths, str | os.PathLike) else paths), settings_for
    ).files
    folder = None if cache is None else pathlib.Path(cache).absolute()
    checked = checker.check(files, settings_for, given={}, jobs=jobs, cache=folder)
    settings = settings_for(pathlib.Path.cwd())
    return list(checked.outcome(settings, findings=offered(checked, settings, jobs)).findings)


@overload
def trace(
    *,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    level: Level = "auto",
    steps: int | None = None,
) -> Tracing: ...
@overload
def trace(
    program: Path | Callable[..., object],
    *arguments: Any,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    level: Level = "auto",
    steps: int | None = None,
) -> Traced: ...
def trace(
    program: Path | Callable[..., object] | None = None,
    *arguments: Any,
    select: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    level: Level = "auto",
    steps: int | None = None,
) -> Traced | Tracing:
    """What autograd did while `program` ran: a script, in a process of its own, or a function, in
    this one.

    `arguments` are the words of the script's command line, or what the function is called with.
    `steps` ends the run after so many optimizer steps. An exception of the program is told in the
    result. Without a program it is for a `with`, and about what runs inside. Needs torch.
    """
    chosen, ignored = None if select is None else _codes(select), _codes(ignore)
    if isinstance(program, str | os.PathLike):
        options = [
            f"--level={level}",
            *(f"--steps={each}" for each in (steps,) if each is not None),
        ]
        options += [f"--select={code}" for code in chosen or ()] + [
            f"--ignore={code}" for code in ignored
        ]
        return _run(program, [str(word) for word in arguments], options)
    with needing("torch", told=NEEDS_TORCH):
        from gradlint.trace.call import Watch, call
    if program is None:
        return Tracing(Watch(_settings_for(chosen, ignored), level=level, steps=steps))
    called = call(
        functools.partial(program, *arguments),
        _settings_for(chosen, ignored),
        level=level,
        steps=steps,
    )
    return Traced(list(called.findings), called.steps, called.error, called.value)


def _words(given: Iterable[str]) -> tuple[str, ...]:
    """What an argument names; a word by itself is one."""
    return (given,) if isinstance(given, str) else tuple(given)


def _codes(given: Iterable[str]) -> tuple[str, ...]:
    return parse_codes(_words(given))


def _settings_for(select: tuple[str, ...] | None, ignore: tuple[str, ...]) -> SettingsFor:
    return settings_finder(
        lambda settings: settings.overridden(Selection(select, (), ignore), (), {})
    )


def _existing(paths: Iterable[Path]) -> list[pathlib.Path]:
    found = [pathlib.Path(path) for path in paths]
    for path in found:
        if not os.path.lexists(path):
            raise UserError(f"{path}: no such file or folder{nearest(str(path))}")
    return found


def _run(script: Path, words: Sequence[str], options: Sequence[str]) -> Traced:
    if not pathlib.Path(script).is_file():
        raise UserError(f"{script}: no such file{nearest(str(script))}")
    with tempfile.TemporaryDirectory(prefix="gradlint-") as folder:
        told = traced_report(
            options, [os.fspath(script), *words], pathlib.Path(folder) / "report.json"
        )
    return Traced([finding_of(each) for each in told["findings"]], told["steps"], told["ended"])
