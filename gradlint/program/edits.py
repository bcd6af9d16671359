"""What is left of the parts of a file that was edited."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gradlint.program import parts, texts
from gradlint.program.modules import Program
from gradlint.source import document, parse

if TYPE_CHECKING:
    from collections.abc import Mapping as Mapping_


def edited(path: Path, before: Mapping_[str, parts.Text], text: str | None) -> parts.Edited:
    """What is left of the parts of a file that has this text, or is read from disk."""
    content = document.decode(str(path), document.read(path)) if text is None else text
    parsed = parse.parse(str(path), content) if isinstance(content, str) else content
    read = (parsed.text, parsed.tree) if isinstance(parsed, parse.Source) else None
    return texts.edited(before, Program(lambda _: read).source(path))
