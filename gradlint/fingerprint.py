"""Names for findings that survive what happens around them: lines that shift, and spaces that
change.
"""

from __future__ import annotations

import collections
import hashlib
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from gradlint.finding import Finding, Span

Lines = Callable[[Span], Sequence[str]]


def relative(path: str, root: pathlib.Path) -> str:
    """`path` from `root` with forward slashes, wherever the command was run; a path outside stays
    absolute.
    """
    absolute = pathlib.Path(os.path.abspath(path))
    return (
        absolute.relative_to(root).as_posix()
        if absolute.is_relative_to(root)
        else absolute.as_posix()
    )


def fingerprints(
    findings: Iterable[Finding], lines: Lines, root: pathlib.Path
) -> Mapping[Finding, str]:
    """A fingerprint for each finding: its code, its file and the text that it stands on, but not
    where that stands.

    Of findings that have all this in common, the first in the file is told from the second.
    """
    seen: collections.Counter[tuple[str, str, str]] = collections.Counter()
    names: dict[Finding, str] = {}
    for finding in findings:
        text = " ".join(
            " ".join(lines(finding.at)[finding.at.line - 1 : finding.at.last_line]).split()
        )
        identity = (finding.code, relative(finding.at.path, root), text)
        seen[identity] += 1
        names[finding] = name(*identity, seen[identity])
    return names


def name(code: str, path: str, text: str, number: int) -> str:
    """The fingerprint of the finding of this number among those of a rule on one text of a file."""
    identity = "\0".join((code, path, text, str(number)))
    return hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()[:16]
