"""Warnings: each is about the line that it would be about if nobody watched.

Filters ask for that line, and so does what tells a warning from one that was shown. Python counts
our frames like any others, and a warning of torch's own that comes out of C++ is about the
innermost frame, which is that of our mode.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from gradlint.trace.frames import OURS, running, unwatched
from gradlint.trace.session import Session

_OF_IMPORTS = ("importlib", "_bootstrap")  # both in the name of the file, as CPython asks


def install(session: Session) -> None:
    """Put the probe in its place; compilers know `warnings.warn`, which goes back for them."""
    session.attention.before_compiling.append(session.replace(warnings, "warn", _warn))
    session.replace(warnings, "_showwarnmsg", _show)
    # they come to `_show`, which finds their line
    warnings.filterwarnings("always", module=r"gradlint\.trace\.")
    filters: Any = warnings.filters  # a list, which `catch_warnings` puts others in the place of
    ours = filters[0]
    session.on_end.append(lambda: filters.remove(ours) if ours in filters else None)


def _warn(original: Callable[..., None]) -> Callable[..., None]:
    def warn(
        message: str | Warning,
        category: type[Warning] | None = None,
        stacklevel: int = 1,
        source: object = None,
        **kwargs: Any,
    ) -> None:
        added = 1 + _ours_within(sys._getframe(1), stacklevel)
        original(message, category, stacklevel + added, source, **kwargs)

    return warn


def _ours_within(caller: FrameType, stacklevel: int) -> int:
    """How many frames that are there because we watch lie between one and that which it wants to
    speak of.
    """
    if stacklevel <= 1:
        return 0
    counted = list(_counted(caller))
    meant = next(itertools.islice(unwatched(counted, _code), stacklevel - 1, None), None)
    return counted.index(meant) + 1 - stacklevel if meant is not None else 0


def _show(
    original: Callable[[warnings.WarningMessage], None],
) -> Callable[[warnings.WarningMessage], None]:
    def show(told: warnings.WarningMessage) -> None:
        if told.filename.startswith(OURS):
            _tell_again(told)
        else:
            original(told)

    return show


def _tell_again(told: warnings.WarningMessage) -> None:
    """Warn of the line that called what we stand in for, if the program's filters let it."""
    here = (told.filename, told.lineno)
    called = _counted(sys._getframe())
    within = list(
        itertools.dropwhile(lambda each: (each.f_code.co_filename, each.f_lineno) != here, called)
    )
    for ours in within[:1]:
        # where the program's filters tell a line of ours once
        ours.f_globals.get("__warningregistry__", {}).clear()
    meant = next(unwatched(within, _code), None)
    if meant is not None:
        names = meant.f_globals
        registry = names.setdefault("__warningregistry__", {})
        at = meant.f_code.co_filename, meant.f_lineno, names.get("__name__", "<string>")
        warnings.warn_explicit(told.message, told.category, *at, registry, source=told.source)


def _counted(frame: FrameType) -> Iterator[FrameType]:
    """The frames that `stacklevel` counts: not those of the machinery of imports."""
    return (
        each
        for each in running(frame)
        if not all(word in each.f_code.co_filename for word in _OF_IMPORTS)
    )


def _code(frame: FrameType) -> CodeType:
    return frame.f_code
