"""A progress bar, if tqdm is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec


@contextmanager
def progress_bar(
    title: str, total: int | None, done: int, *, shown: bool
) -> Iterator[Callable[[str], None]]:
    """A bar of `total` steps of which `done` are made; what it gives is called after each step with
    a text to show.
    """
    if not shown or find_spec("tqdm") is None:
        yield lambda _text: None
        return
    with import_module("tqdm").tqdm(desc=title, total=total, initial=done, unit="step") as bar:

        def show(text: str) -> None:
            bar.set_postfix_str(text, refresh=False)
            bar.update()

        yield show
