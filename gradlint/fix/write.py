"""Writing a mended file: at once or not at all, with its mode kept, and only over what was read."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile

from gradlint.errors import UserError


def replace_file(path: pathlib.Path, original: bytes, content: bytes, root: pathlib.Path) -> None:
    """Puts `content` in the place of `original`; a user's error says why a file is left as it was."""
    target = path.resolve()
    if target != pathlib.Path(os.path.abspath(path)) and not target.is_relative_to(root.resolve()):
        raise UserError(f"{path}: left as it was: it is a link to {target}, out of {root}")
    try:
        if target.read_bytes() != original:
            raise UserError(f"{path}: left as it was: it has changed since it was read")
        if not os.access(target, os.W_OK):
            raise UserError(f"{path}: left as it was: it is not writable")
        _replace(target, content)
    except OSError as error:
        raise UserError(f"{path}: left as it was: {error.strerror}") from None


def _replace(target: pathlib.Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(target, name)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
