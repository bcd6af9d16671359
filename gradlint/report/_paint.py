"""Colours and links of a terminal, or plain text."""

from __future__ import annotations

from gradlint.dataclass import dataclass

_CODES = {"bold": "1", "red": "1;31", "yellow": "1;33", "blue": "1;34", "cyan": "1;36"}


@dataclass(frozen=True, slots=True)
class Paint:
    """Paints where the reader is a terminal; elsewhere text stays as it is."""

    on: bool

    def __call__(self, text: str, color: str) -> str:
        return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if self.on and text else text

    def link(self, text: str, url: str) -> str:
        """`text` as a hyperlink (OSC 8)."""
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if self.on else text
