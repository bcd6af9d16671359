"""Contract L, of a loss: what it gives is back-propagated, as a trainer would do it."""

from collections.abc import Callable
from typing import Any


def drive(part: Callable[..., Any], minimised: Callable[[Any], list[Any]], **given: Any) -> None:
    """Calls a loss with what is given it, and back-propagates that of its results which is minimised."""
    minimised(part(**given))[0].backward()
