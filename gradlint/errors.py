"""Errors that are the user's fault: one line on standard error and exit code 2, no traceback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

NEEDS_TORCH = (
    "a trace runs the program, and there is no torch here: install gradlint where the "
    "program runs, "
    "or pip install 'torch-gradlint[trace]'"
)


class UserError(Exception):
    """Something asked for that cannot be done; its text is one clear line, and the exit code is
    2.
    """


@contextlib.contextmanager
def needing(*modules: str, told: str) -> Iterator[None]:
    """Makes it the user's error if one of these modules, which not every installation has, is not
    there to import.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in modules:
            raise
        raise UserError(told) from None
