"""Running the program as Python would: `__main__`, `sys.argv`, `sys.path`, exceptions and exit
codes are its own.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import io
import linecache
import os
import pathlib
import signal
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gradlint.errors import UserError
from gradlint.source import document
from gradlint.trace import frames, ranks


@dataclass(frozen=True, slots=True)
class Program:
    """What is to be run: the code, and what `__main__` is to look like."""

    name: str
    code: types.CodeType
    file: str
    spec: importlib.machinery.ModuleSpec | None
    path: str
    argv: tuple[str, ...]
    names: Mapping[str, object] = field(default_factory=dict)  # that `__main__` has from the start


@dataclass(frozen=True, slots=True)
class Ending:
    """How the program ended: its exit code, and the name of an exception that it did not catch."""

    code: int
    raised: str = ""
    signal: int | None = None


class Terminated(BaseException):
    """`torchrun` asked this rank to end, since another one failed."""


def script(path: str, arguments: Sequence[str]) -> Program:
    """The program `python SCRIPT ARG ...`."""
    file = os.path.abspath(path)
    try:
        content = pathlib.Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    frames.adopt(file)
    if path.endswith(document.NOTEBOOK):
        content = _cells(path, file, content)
    return Program(
        path,
        _compiled(content, file),
        file,
        None,
        os.path.dirname(os.path.realpath(file)),
        (path, *arguments),
    )


def _cells(path: str, file: str, content: bytes) -> bytes:
    """The code cells of a notebook as one program, as `gradlint check` reads it: magics are
    comments.
    """
    text = document.decode(file, content)
    if not isinstance(text, str):
        raise UserError(f"{path}: {text.message}")
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return text.encode()


def module(name: str, arguments: Sequence[str]) -> Program:
    """The program `python -m MODULE ARG ...`."""
    sys.path.insert(0, os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        raise UserError(f"-m {name}: {error}") from None
    finally:
        del sys.path[0]
    if (
        spec is None
        or spec.origin is None
        or not isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    ):
        raise UserError(f"-m {name}: no such module written in Python")
    code = spec.loader.get_code(spec.name)
    assert code is not None
    frames.adopt(_package_folder(spec))
    return Program(name, code, spec.origin, spec, os.getcwd(), (spec.origin, *arguments))


def _package_folder(spec: importlib.machinery.ModuleSpec) -> str:
    depth = spec.name.count(".")
    return (
        str(pathlib.Path(spec.origin or "").parents[max(0, depth - 1)])
        if depth
        else str(pathlib.Path(spec.origin or "").parent)
    )


def _compiled(content: bytes, file: str) -> types.CodeType:
    try:
        return compile(content, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None


def _main(program: Program) -> types.ModuleType:
    """The module that the program knows as `__main__`; it stays, for what is pickled or asked for
    at exit.
    """
    main = types.ModuleType("__main__")
    loader = (
        program.spec.loader
        if program.spec
        else importlib.machinery.SourceFileLoader("__main__", program.file)
    )
    vars(main).update(
        __file__=program.file, __builtins__=builtins, __spec__=program.spec, __loader__=loader,
        __annotations__={}, __cached__=None,
        __package__=program.spec.parent if program.spec else None, **program.names,
    )  # fmt: skip
    return main


def run(program: Program) -> Ending:
    """Run the program to its end, and show an exception as Python would."""
    ending = _run(program)
    _wait_for_threads()
    return ending


def _run(program: Program) -> Ending:
    main = _main(program)
    sys.modules["__main__"] = main
    if isinstance(sys.stdout, io.TextIOWrapper):
        # as Python has it; our own command line had changed that
        sys.stdout.reconfigure(errors="strict")
    sys.argv[:] = program.argv
    sys.path[0] = program.path
    try:
        with _terminable():
            exec(program.code, vars(main))
    except UserError:
        raise
    except SystemExit as stop:
        return Ending(_exit_code(stop.code))
    except KeyboardInterrupt as error:
        _show(error)
        return Ending(128 + signal.SIGINT, "KeyboardInterrupt", signal.SIGINT)
    except Terminated:
        return Ending(128 + signal.SIGTERM, "SIGTERM", signal.SIGTERM)
    except BaseException as error:
        return Ending(_show(error), f"{type(error).__name__}: {error}")
    return Ending(0)


RUNS = _run.__code__  # its frame stands where Python itself begins a program


def _wait_for_threads() -> None:
    """Python ends when the last thread does that is no daemon; until then there is something to
    watch.
    """
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """A rank that is told to end still reports, unless the program handles the signal itself."""
    if ranks.rank() is None or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _exit_code(code: object) -> int:
    """What `sys.exit(code)` leaves with; anything but a number is printed."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> int:
    """Show an exception by the program's own hook, if it has one; gives the exit code."""
    sys.stdout.flush()
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        each.__traceback__ = _without_ours(each.__traceback__)
        each = each.__cause__ or each.__context__
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as stop:
        return _exit_code(stop.code)
    except BaseException as broken:  # what Python itself does and prints then
        broken.__traceback__, broken.__context__ = _without_ours(broken.__traceback__), None
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(broken), broken, broken.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)
    return 1


def _without_ours(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback as it would be if nobody watched."""
    steps: list[types.TracebackType] = []
    while trace is not None:
        steps.append(trace)
        trace = trace.tb_next
    rest: types.TracebackType | None = None
    for each in frames.unwatched(reversed(steps), lambda step: step.tb_frame.f_code):
        rest = types.TracebackType(rest, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return rest
