"""Names of what libraries define: which are aliases, and which class inherits from which.

canonical("torch.cuda.amp.GradScaler")              # "torch.amp.GradScaler"
is_a("torch.optim.AdamW", "torch.optim.Optimizer")  # True
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Lookup = TypeVar("Lookup", bound=Callable[..., Any])
PARENTS: dict[str, str] = {}
ALIASES: dict[str, str] = {}
_LOOKUPS: list[Any] = []  # functions that keep what they have found in the tables


def put(table: dict[Any, Any], key: object, entry: object) -> None:
    """Adds an entry to a table; a second one under the same key is a mistake of ours."""
    if key in table:
        raise ValueError(f"{key} is registered twice")
    table[key] = entry
    for lookup in _LOOKUPS:
        lookup.cache_clear()


def of_tables(find: Lookup) -> Lookup:
    """Keeps what a function finds in the tables until one of them gets another entry."""
    cached = functools.cache(find)
    _LOOKUPS.append(cached)
    return cast("Lookup", cached)


def parent(cls: str, base: str) -> None:
    """Declares that the library class `cls` inherits from `base`."""
    put(PARENTS, cls, base)


def alias(name: str, canonical: str) -> None:
    """Declares that `name` is another name of `canonical`, for what is below it too."""
    put(ALIASES, name, canonical)


@of_tables
def canonical(name: str) -> str:
    """The canonical name behind aliases such as `torch.cuda.amp.autocast_mode`."""
    while True:
        found = ALIASES.get(name)
        if found is None:
            head, _, tail = name.rpartition(".")
            while head and head not in ALIASES:
                head, _, middle = head.rpartition(".")
                tail = f"{middle}.{tail}"
            if not head:
                return name
            found = f"{ALIASES[head]}.{tail}"
        name = found


_FAMILIES = (
    ("torch.optim.lr_scheduler.", "torch.optim.lr_scheduler.LRScheduler"),
    ("torch.optim.", "torch.optim.Optimizer"),
    ("torch.distributions.", "torch.distributions.Distribution"),
    ("torch.nn.", "torch.nn.Module"),
)


@of_tables
def bases(cls: str) -> tuple[str, ...]:
    """The library class `cls`, then what it inherits from."""
    current: str | None = cls
    found: dict[str, None] = {}
    while current and current not in found:
        found[current] = None
        current = PARENTS.get(current) or _family(current)
    return tuple(found)


def _family(cls: str) -> str | None:
    last = cls.rpartition(".")[2]
    if last[:1].isupper():
        for prefix, base in _FAMILIES:
            if cls.startswith(prefix) and cls != base and cls.count(".") == prefix.count("."):
                return base
    return None


@of_tables
def is_a(cls: str, base: str) -> bool:
    """Whether the library class `cls` is `base` or inherits from it."""
    return canonical(base) in bases(canonical(cls))
