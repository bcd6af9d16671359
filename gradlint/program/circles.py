"""The circles in which scopes and classes hold each other, taken apart once nobody needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.scopes import Frame
from gradlint.interpret.values import (
    Class,
    Function,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def stands_in(cls: Class, frame: Frame) -> bool:
    """Whether it is a class of the file of `frame`, by its methods."""
    return any(
        isinstance(member, Function) and member.scope is frame for member in cls.namespace.values()
    )


def cut(frames: Iterable[Frame], classes: Iterable[Class]) -> None:
    """Takes apart the circles in which scopes, the classes in them, functions and methods hold each
    other.
    """
    for cls in classes:
        cls.namespace.clear()
        cls.order.clear()
    for frame in frames:
        frame.locals.clear()
