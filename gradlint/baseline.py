"""Baselines: the findings that a project has for now, of which a check reports only new ones."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradlint.errors import UserError
from gradlint.finding import Finding
from gradlint.fingerprint import relative

_VERSION = 1


def read(file: pathlib.Path) -> Mapping[str, Mapping[str, str]]:
    """The findings that the baseline `file` holds, by fingerprint."""
    try:
        content: Any = json.loads(file.read_text(encoding="utf-8"))
        if content["version"] != _VERSION:
            raise UserError(
                f"{file}: a baseline of version {content['version']}; this gradlint reads "
                f"{_VERSION}"
            )
        return {str(entry["fingerprint"]): entry for entry in content["findings"]}
    except OSError as error:
        raise UserError(f"{file}: the baseline cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{file}: is not a baseline; `--write-baseline` makes one") from None


def without(
    findings: Sequence[Finding], names: Mapping[Finding, str], known: Iterable[str]
) -> tuple[Finding, ...]:
    """The findings that are not in the baseline."""
    accepted = frozenset(known)
    return tuple(finding for finding in findings if names[finding] not in accepted)


def write(
    file: pathlib.Path,
    names: Mapping[Finding, str],
    checked: Iterable[pathlib.Path],
    root: pathlib.Path,
) -> tuple[int, int]:
    """Write these findings as the baseline; how many it holds, and how many of the former one are
    gone.

    What the former baseline holds of files that were not checked this time stays, as long as these
    exist.
    """
    from gradlint import output

    former = read(file) if file.exists() else {}
    paths = {relative(str(path), root) for path in checked}
    kept = {name: entry for name, entry in former.items() if _stays(entry["path"], paths, root)}
    entries = kept | {
        name: {
            "fingerprint": name,
            "code": each.code,
            "path": relative(each.at.path, root),
            "message": each.message,
        }
        for each, name in names.items()
    }
    ordered = sorted(
        entries.values(), key=lambda entry: (entry["path"], entry["code"], entry["fingerprint"])
    )
    content = json.dumps({"version": _VERSION, "findings": ordered}, indent=2) + "\n"
    try:
        output.replace(
            output.destination(file, root).resolve(), content.encode(errors="backslashreplace")
        )
    except OSError as error:
        raise UserError(f"{file}: the baseline cannot be written: {error.strerror}") from None
    return len(entries), len(former.keys() - entries.keys())


def _stays(path: str, checked: set[str], root: pathlib.Path) -> bool:
    return path not in checked and (root / path).exists()
