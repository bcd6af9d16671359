"""Ways out of a process after which no more Python runs: the report is written before them."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gradlint.trace import ranks

_WAYS = ("_exit", "abort", "execv", "execve")  # the other `os.exec…` call these

Report = Callable[[str], bool]


@contextlib.contextmanager
def watched(report: Report) -> Iterator[None]:
    """Within, `os._exit`, SIGTERM and the like call `report` first; not in a forked process, whose
    report it is not.
    """
    home = os.getpid()
    put = {}
    for name in _WAYS:
        original = getattr(os, name)
        put[name] = (original, _reporting(name, original, report, home))
        setattr(os, name, put[name][1])
    try:
        with _terminable(report, home):
            yield
    finally:
        for name, (original, ours) in put.items():
            if getattr(os, name) is ours:
                setattr(os, name, original)


@contextlib.contextmanager
def _terminable(report: Report, home: int) -> Iterator[None]:
    """SIGTERM ends the process at once, as it does alone: no `finally` of the program's runs.

    Unless the program handles it: who asks what is done about it is told that nothing is. Ranks
    have another way.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if (
        not is_main
        or ranks.rank() is not None
        or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield
        return

    def end(number: int, _frame: object) -> None:
        ask.install(number, signal.SIG_DFL)
        try:
            if os.getpid() == home:
                report("SIGTERM")
        finally:
            os.kill(os.getpid(), number)

    ask = _Signals(end)
    ask.install(signal.SIGTERM, end)
    module: Any = signal
    module.getsignal, module.signal = ask.asked, ask.set
    try:
        yield
    finally:
        module.getsignal, module.signal = ask.getsignal, ask.install
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


class _Signals:
    """`signal.getsignal` and `signal.signal` that do not know of a handler of ours."""

    def __init__(self, ours: Callable[..., Any]) -> None:
        self.ours = ours
        self.getsignal, self.install = signal.getsignal, signal.signal

    def asked(self, number: int) -> Any:
        """What `signal.getsignal` says."""
        return self._told(self.getsignal(number))

    def set(self, number: int, handler: Any) -> Any:
        """What `signal.signal` does."""
        return self._told(self.install(number, handler))

    def _told(self, handler: Any) -> Any:
        return signal.SIG_DFL if handler is self.ours else handler


def _reporting(
    name: str, original: Callable[..., Any], report: Report, home: int
) -> Callable[..., Any]:
    @functools.wraps(original)
    def leave(*args: Any, **kwargs: Any) -> Any:
        if os.getpid() == home:
            fails = report(f"os.{name}")
            if fails and name == "_exit" and args == (0,):
                args = (1,)
        return original(*args, **kwargs)

    return leave
