"""How often Python's garbage collector looks for reference cycles: seldom, as an analysis makes
few.
"""

from __future__ import annotations

import gc

MOST = 3_000_000  # objects that were made and not freed since the last search: some 300 MiB


def collect_seldom() -> None:
    """Has the next search come when there is enough to be found; its time goes by all that was made
    since the last.
    """
    gc.set_threshold(MOST, *gc.get_threshold()[1:])
