"""The lines of a program, and its columns in characters, as Python counts them."""

from __future__ import annotations

import re

# what Python takes for a line; str.splitlines breaks at \f, too
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def split_lines(text: str) -> tuple[str, ...]:
    """The lines of a program as Python counts them, without their ends."""
    lines = (
        [line.rstrip("\r\n") for line in LINE.findall(text)] if "\r" in text else text.split("\n")
    )
    return tuple(lines[:-1] if len(lines) > 1 and not lines[-1] else lines)


def characters(text: str, offset: int) -> int:
    """How many characters of a line stand before an offset in bytes, as Python's parser counts
    columns.
    """
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))
