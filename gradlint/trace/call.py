"""A traced part of this process: what runs in a `with`, or one call of a function."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass

from gradlint.finding import Finding
from gradlint.source.files import SettingsFor
from gradlint.trace import probes, source
from gradlint.trace.assemble import Assembler
from gradlint.trace.findings import findings, located
from gradlint.trace.launch import Ending
from gradlint.trace.report import Report, as_json, merged
from gradlint.trace.session import Level, Session, Stop
from gradlint.trace.text import as_text


@dataclass(frozen=True, slots=True)
class Called:
    """What a part came to: its result, the exception that ended it or "", the optimizer steps, and
    what was found.
    """

    value: object
    error: str
    steps: int
    findings: tuple[Finding, ...]
    text: str


class Watch:
    """Watches this process from `begin` to `end`."""

    def __init__(self, settings_for: SettingsFor, *, level: Level, steps: int | None) -> None:
        self.settings_for = settings_for
        self.session = Session(level, steps=steps)

    def begin(self) -> None:
        """Begin to watch."""
        source.begin()
        probes.install(self.session)
        self.session.names.find_modules()
        self.session.start()

    def end(self, raised: BaseException | None, name: str, value: object = None) -> Called:
        """Stop watching; says what was seen. `raised` ended it, where that is no end that was asked
        for.
        """
        self.session.close()
        error = (
            ""
            if raised is None or isinstance(raised, Stop)
            else f"{type(raised).__name__}: {raised}"
        )
        assembler = Assembler(self.session, name)
        tape = assembler.run(error)
        settings = self.settings_for(pathlib.Path.cwd())
        told = tuple(map(located, findings(tape, assembler.steps, settings)))
        report = Report(tape, told, self.session, Ending(0, error), assembler.steps, settings.root)
        found = tuple(each.finding for each in told)
        return Called(
            value,
            error,
            self.session.step,
            found,
            as_text(report, merged({0: as_json(report)}), verbose=False),
        )

    @staticmethod
    def is_asked_for(raised: BaseException | None) -> bool:
        """Whether what ended it is the end that `steps` asks for."""
        return isinstance(raised, Stop)


def call(
    function: Callable[[], object], settings_for: SettingsFor, *, level: Level, steps: int | None
) -> Called:
    """Call `function` and watch it; an exception of its own ends it and is part of what is told."""
    watch = Watch(settings_for, level=level, steps=steps)
    value: object = None
    raised: BaseException | None = None
    watch.begin()
    try:
        value = function()
    except (Stop, Exception) as error:
        raised = error
    except BaseException:
        watch.session.close()
        raise
    return watch.end(raised, "call", value)
