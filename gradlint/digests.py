"""Digests of what files contain: a result of an earlier run holds as long as they are the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

from gradlint.source import document


def content_of(path: Path) -> str:
    """What stands for the content of the file; "" where it cannot be read."""
    try:
        return digest(document.read(path))
    except OSError:
        return ""


def digest(content: bytes) -> str:
    """What stands for this content."""
    return hashlib.sha256(content).hexdigest()


def digest_of_text(text: str) -> str:
    """What stands for a file that holds this text in UTF-8."""
    return digest(text.encode(errors="surrogatepass"))
