"""Warnings of the loop, at the line that called it."""

from __future__ import annotations

import os
import sys
import warnings

_HERE = os.path.dirname(__file__)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns about the nearest line outside of this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == _HERE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
