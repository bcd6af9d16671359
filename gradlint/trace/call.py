"""One traced call of a function, in this process: what `gradlint trace` does with a script."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass

from gradlint.finding import Finding
from gradlint.source.files import SettingsFor
from gradlint.trace import probes, source
from gradlint.trace.assemble import Assembler
from gradlint.trace.findings import findings
from gradlint.trace.session import Level, Session, Stop


@dataclass(frozen=True, slots=True)
class Called:
    """What a call came to: its result, the exception that ended it or "", the optimizer steps, and what was found."""

    value: object
    error: str
    steps: int
    findings: tuple[Finding, ...]


def call(function: Callable[[], object], settings_for: SettingsFor, *, level: Level, steps: int | None) -> Called:
    """Call `function` and watch it; an exception of its own ends it and is part of what is told."""
    source.begin()
    session = Session(level, steps=steps)
    value, error = None, ""
    probes.install(session)
    session.start()
    try:
        value = function()
    except Stop:
        pass
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    finally:
        session.close()
    assembler = Assembler(session, "call")
    tape = assembler.run(error)
    told = findings(tape, assembler.steps, settings_for(pathlib.Path.cwd()))
    return Called(value, error, session.step, tuple(each.finding for each in told))
