"""One traced run from start to end: launch, watch, judge, report, leave with the right exit
code.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import os
import pathlib
import random
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TextIO

import torch

from gradlint import config, output
from gradlint.finding import Finding
from gradlint.rule import rules
from gradlint.settings import Selection
from gradlint.source.files import SettingsFor
from gradlint.trace import exits, frames, launch, probes, source
from gradlint.trace.assemble import Assembler
from gradlint.trace.confirm import confirm
from gradlint.trace.findings import findings, located, located_finding
from gradlint.trace.part import Part
from gradlint.trace.records import Driven
from gradlint.trace.report import LINES, Report, write
from gradlint.trace.scalars import Log
from gradlint.trace.session import Session


def _program(words: Sequence[str], options: dict[str, Any], part: Part | None) -> launch.Program:
    if part is not None:
        return part.program()
    return (
        launch.module(options["module"], words)
        if options["module"]
        else launch.script(words[0], words[1:])
    )


def run(words: Sequence[str], options: dict[str, Any]) -> int:
    """Run the program and report; gives the exit code."""
    part = Part(options["part"], options["given"]) if options["part"] else None
    program = _program(words, options, part)
    settings_for = _settings_finder(options)
    rules()  # those of plugins are found as they are now: the program gets another `sys.path`
    source.begin()
    with _report_stream(options) as stream:
        session = Session(options["level"], steps=options["steps"])
        session.timeline.kept = options["values"] or options["html"] is not None
        session.timeline.wanted = session.timeline.kept or options["log"] is not None
        if options["log"] is not None:
            Log(options["log"].absolute(), session)
        if options["seed"] is not None:
            _seed(options["seed"])
        if part is not None:
            part.session = session
        probes.install(session)
        session.start()
        home, folder = os.getpid(), os.getcwd()

        verdicts: list[bool] = []

        def report(ending: launch.Ending) -> bool:
            """Stop watching and write the report, once; gives whether a finding is bad enough to
            fail.
            """
            if not verdicts:
                session.close()
                with contextlib.chdir(folder), _without_collection():
                    driven = part.driven if part is not None else None
                    verdicts.append(
                        _report(session, program, ending, settings_for, options, stream, driven)
                    )
            return verdicts[0]

        with exits.watched(lambda way: report(launch.Ending(0, way))):
            ending = launch.run(program)
        if os.getpid() != home:
            return ending.code  # a process that the program forked came out here
        fails = report(ending)
    if ending.signal is not None:
        _leave_by(ending.signal)
    return ending.code or int(fails)


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Next to nothing that a report makes is garbage, and looking for some takes a third of its
    time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _seed(number: int) -> None:
    """Lets every run of a program draw the same random numbers, unless it seeds them itself."""
    random.seed(number)
    torch.manual_seed(number)
    with contextlib.suppress(ImportError):
        numpy = importlib.import_module("numpy")
        numpy.random.seed(number)


def _settings_finder(options: dict[str, Any]) -> SettingsFor:
    selection = Selection(
        config.split_codes(options["select"]) or None, (), config.split_codes(options["ignore"])
    )
    values = {"fail_on": config.parse_threshold(options["fail_on"])} if options["fail_on"] else {}
    return config.settings_finder(lambda settings: settings.overridden(selection, (), values))


@contextlib.contextmanager
def _report_stream(options: dict[str, Any]) -> Iterator[TextIO]:
    """Where the report goes. A document takes standard output for itself: the program's own goes to
    standard error.
    """
    if options["output_file"] is not None:
        with output.destination(options["output_file"], pathlib.Path.cwd()).open(
            "w", encoding="utf-8", errors="backslashreplace"
        ) as stream:
            yield stream
    elif options["output_format"] not in LINES:
        sys.stdout.flush()
        with os.fdopen(os.dup(1), "w", encoding="utf-8") as stream:
            os.dup2(2, 1)
            _reopen_output()
            yield stream
    else:
        sys.stderr.flush()
        own = os.dup(2)  # the program may close its standard error, or put another in its place
        with os.fdopen(own, "w", encoding="utf-8", errors="backslashreplace") as stream:
            yield stream


def _reopen_output() -> None:
    """Gives `sys.stdout` anew: Python asked its file at the start whether it can seek, and it is
    another file now.
    """
    old = sys.stdout
    if isinstance(old, io.TextIOWrapper):
        new = open(1, "w", encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        new.reconfigure(line_buffering=new.line_buffering or old.write_through)
        sys.stdout = sys.__stdout__ = new  # type: ignore[misc]


def _report(
    session: Session,
    program: launch.Program,
    ending: launch.Ending,
    settings_for: SettingsFor,
    options: dict[str, Any],
    stream: TextIO,
    driven: Driven | None,
) -> bool:
    """Write the report; gives whether a finding is bad enough to fail."""
    settings = settings_for(pathlib.Path.cwd())
    assembler = Assembler(session, program.name, driven)
    tape = assembler.run(ending.raised)
    told = findings(
        tape, assembler.steps, settings, driven.contract if driven is not None else None
    )
    found = [each.finding for each in told]
    static = _static(settings_for) if options["confirm"] else ()
    confirmations = confirm(
        [each for each in static if driven is None or _is_of(driven, each)], found, tape
    )
    confirmations = [replace(each, finding=located_finding(each.finding)) for each in confirmations]
    write(
        Report(
            tape,
            tuple(map(located, told)),
            session,
            ending,
            assembler.steps,
            settings.root,
            tuple(confirmations),
        ),
        options,
        stream,
    )
    return bool(settings.fails(found))


def _static(settings_for: SettingsFor) -> Sequence[Finding]:
    """What `gradlint check` says of the files that ran."""
    from gradlint import checker  # much, and only `--confirm` asks for it

    files = [pathlib.Path(source.shown(file)) for file in frames.users_files()]
    return checker.check(files, settings_for, jobs=1, given={}).findings


def _is_of(driven: Driven, finding: Finding) -> bool:
    """Whether a finding is about a part."""
    first, last = driven.lines
    places = (finding.at, *(related.at for related in finding.related))
    return any(at.path == source.shown(driven.file) and first <= at.line <= last for at in places)


def _leave_by(number: int) -> None:
    """Leave as Python does after a signal that nothing handled, so that whoever started us sees
    it.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
