"""Ways out of a process after which no more Python runs: the report is written before them."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

_WAYS = ("_exit", "abort", "execv", "execve")  # the other `os.exec…` call these

Report = Callable[[str], bool]


@contextlib.contextmanager
def watched(report: Report) -> Iterator[None]:
    """Within, `os._exit` and its like call `report` first; in a forked process, whose report it is not, they do not."""
    home = os.getpid()
    put = {}
    for name in _WAYS:
        original = getattr(os, name)
        put[name] = (original, _reporting(name, original, report, home))
        setattr(os, name, put[name][1])
    try:
        yield
    finally:
        for name, (original, ours) in put.items():
            if getattr(os, name) is ours:
                setattr(os, name, original)


def _reporting(name: str, original: Callable[..., Any], report: Report, home: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def leave(*args: Any, **kwargs: Any) -> Any:
        if os.getpid() == home:
            fails = report(f"os.{name}")
            if fails and name == "_exit" and args == (0,):
                args = (1,)
        return original(*args, **kwargs)

    return leave
