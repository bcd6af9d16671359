"""The probes: one file for each sort of thing that is watched besides operations. Each has
`install(session)`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.trace.session import Session


def install(session: Session) -> None:
    """Put every probe in its place; one that torch's version does not let in is named as something
    not seen.
    """
    for found in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        probe = importlib.import_module(f"{__name__}.{found.name}")
        try:
            probe.install(session)
        except (AttributeError, KeyError, ImportError) as error:
            session.blind.setdefault(
                f"this version of torch has no {error}: {found.name} is not watched"
            )
