"""`@dataclass` of the standard library, and for type checkers nothing else, made in half of the
time.

The standard library writes and compiles the source of each method, seven for a frozen class, and a
check imports more than a hundred such classes. Here one `__repr__` serves them all, `__eq__` and
`__hash__` are compiled when they are first called, and that nothing assigns to a frozen instance is
left to the type checker: the class is made sooner, and so is each of its instances.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, eq: bool = True, **options: bool):
        """What `dataclasses.dataclass` makes of a class under these options, but for the guard of a
        frozen one.
        """

        def decorate(cls: type) -> type:
            # a class without would be given its signature, at some cost
            cls.__doc__ = cls.__doc__ or cls.__name__
            made = dataclasses.dataclass(repr=False, eq=options.get("order", False), **options)(cls)
            if eq:
                made.__eq__ = vars(made).get("__eq__") or _later(made, "__eq__", _EQUAL)
                made.__hash__ = _later(made, "__hash__", _HASH) if frozen else None
            if "__repr__" not in vars(cls):
                made.__repr__ = _shown
            return made

        return decorate


_EQUAL = (
    "lambda one, other: {one} == {other} if other.__class__ is one.__class__ else NotImplemented"
)
_HASH = "lambda one: hash({one})"


def _later(made: type, name: str, source: str) -> Callable[..., Any]:
    """A method that is compiled when it is first called; `{one}` stands for what is compared of an
    instance.
    """

    def first(*given: object) -> Any:
        compared = [field.name for field in dataclasses.fields(made) if field.compare]
        values = {
            each: f"({' '.join(f'{each}.{field},' for field in compared)})"
            for each in ("one", "other")
        }
        method = eval(source.format(**values))
        setattr(made, name, method)
        return method(*given)

    return first


@reprlib.recursive_repr()
def _shown(self: Any) -> str:
    shown = (
        f"{field.name}={getattr(self, field.name)!r}"
        for field in dataclasses.fields(self)
        if field.repr
    )
    return f"{type(self).__qualname__}({', '.join(shown)})"
