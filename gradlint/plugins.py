"""The packages of rules that installed distributions offer under the entry point
`gradlint.rules`.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from types import ModuleType

from gradlint.errors import UserError

_GROUP = "gradlint.rules"


def installed() -> Iterator[ModuleType]:
    """Those packages; raises `UserError` where one cannot be loaded."""
    if any(map(_offers_rules, sys.path)):
        # takes longer than all else that a check imports from Python's library
        from importlib import metadata

        for point in metadata.entry_points(group=_GROUP):
            try:
                yield point.load()
            except ImportError as error:
                source = point.dist.name if point.dist else point.value
                raise UserError(f"the rules of {source} cannot be loaded: {error}") from None


def _offers_rules(folder: str) -> bool:
    """Whether a distribution installed in `folder` names a plugin; what is in an archive is not
    looked into.
    """
    if os.path.isfile(folder):
        return True
    for file in glob.iglob("*-info/entry_points.txt", root_dir=folder or os.curdir):
        with open(os.path.join(folder, file), "rb") as stream:
            if _GROUP.encode() in stream.read():
                return True
    return False
