"""Files that gradlint writes: whole or not at all, and never through a link that leads out of the
project.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import secrets
import shutil
from collections.abc import Iterable

from gradlint.errors import UserError

_LEFT = re.compile(r"\..+\.gradlint-([1-9][0-9]*)-[0-9a-f]{8}")


def write(path: pathlib.Path, text: str, root: pathlib.Path) -> None:
    """Writes a report to `path`, be that a file, a pipe or a device; a user's error says why it
    cannot be.
    """
    target = destination(path, root)
    try:
        target.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def destination(path: pathlib.Path, root: pathlib.Path) -> pathlib.Path:
    """`path`, if it does not lead out of the project at `root` in which it stands."""
    named = pathlib.Path(os.path.abspath(path))
    if named.is_relative_to(root) and not named.resolve().is_relative_to(root.resolve()):
        raise UserError(
            f"{path} cannot be written: it is a link to {named.resolve()}, out of {root}"
        )
    return path


def replace_file(path: pathlib.Path, original: bytes, content: bytes, root: pathlib.Path) -> None:
    """Puts `content` in the place of `original`; a user's error says why a file is left as it
    was.
    """
    target = path.resolve()
    if target != pathlib.Path(os.path.abspath(path)) and not target.is_relative_to(root.resolve()):
        raise UserError(f"{path}: left as it was: it is a link to {target}, out of {root}")
    try:
        if target.read_bytes() != original:
            raise UserError(f"{path}: left as it was: it has changed since it was read")
        if not os.access(target, os.W_OK):
            raise UserError(f"{path}: left as it was: it is not writable")
        replace(target, content)
    except OSError as error:
        raise UserError(f"{path}: left as it was: {error.strerror}") from None


def remove_leftovers(folders: Iterable[pathlib.Path]) -> None:
    """Removes what runs that were killed have left of files that they were about to put in place of
    others.
    """
    for folder in folders:
        with contextlib.suppress(OSError):  # what cannot be removed stays
            for name in os.listdir(folder):
                left = _LEFT.fullmatch(name)
                if left and not _is_running(int(left[1])):
                    os.unlink(folder / name)


def _is_running(process: int) -> bool:
    """Whether there is a process of this number; where that cannot be told, there is."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _keep_owner(target: pathlib.Path, name: pathlib.Path) -> None:
    """Gives a new file to the owner of the old one, where the two differ and the system has
    owners.
    """
    old, new = target.stat(), name.stat()
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) and hasattr(os, "chown"):
        # who may write a file need not be who may give one away
        with contextlib.suppress(PermissionError):
            os.chown(name, old.st_uid, old.st_gid)


def replace(target: pathlib.Path, content: bytes) -> None:
    """Puts a file with this content at `target`, at once, with the mode of the one that was
    there.
    """
    name = target.with_name(f".{target.name}.gradlint-{os.getpid()}-{secrets.token_hex(4)}")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            _keep_owner(target, name)
            shutil.copymode(target, name)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
