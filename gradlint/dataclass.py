"""`@dataclass` of the standard library, and for type checkers nothing else, made in half of the time.

The standard library writes and compiles the source of each method, seven for a frozen class, and a check imports more
than a hundred such classes. Here one `__repr__` serves them all, and that nothing assigns to a frozen instance is left
to the type checker: the class is made sooner, and so is each of its instances.
"""

from __future__ import annotations

import dataclasses
import reprlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, eq: bool = True, **options: bool):
        """What `dataclasses.dataclass` makes of a class under these options, but for the guard of a frozen one."""

        def decorate(cls: type) -> type:
            cls.__doc__ = cls.__doc__ or cls.__name__  # a class without would be given its signature, at some cost
            made = dataclasses.dataclass(repr=False, eq=eq, unsafe_hash=frozen and eq, **options)(cls)
            if "__repr__" not in vars(cls):
                made.__repr__ = _shown
            return made

        return decorate


@reprlib.recursive_repr()
def _shown(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
