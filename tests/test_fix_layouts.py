"""Fixes keep every byte that they need not change: line ends, tabs, encodings, comments, pages,
strings.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest
from mended import sides

from gradlint.config import settings_finder
from gradlint.fix.apply import Task, repair
from gradlint.settings import Selection

# One for each sort of edit: replacing, inserting before a one-line suite, moving, wrapping, moving
# many lines, calling.
NAMES = (
    "GL101 in one line with others",
    "GL501 before a one-line suite",
    "GL502 between the backward and the step",
    "GL202 an update by hand",
    "GL509 clipped after the step",
    "GL514 a list of layers",
)
STRINGS = '''\
text = f"é {len(NAMES := 'ab'):>{len('é' * 4)}} {f'{1 if data_of else {2: 3}[2]!r}'}"; data_of = """
\tfor x in y:  # no comment
  optimizer.zero_grad()
"""
'''
Change = Callable[[str], bytes]


def crlf(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()


def old_mac(text: str) -> bytes:
    return text.replace("\n", "\r").encode()


def tabs(text: str) -> bytes:
    return text.replace("    ", "\t").encode()


def two_spaces(text: str) -> bytes:
    return text.replace("    ", "  ").encode()


def byte_order_mark(text: str) -> bytes:
    return text.encode("utf-8-sig")


def latin(text: str) -> bytes:
    return f"#!/usr/bin/env python\n# -*- coding: latin-1 -*-\n# été\n{text}".encode("latin-1")


def form_feeds(text: str) -> bytes:
    return (
        text.replace("import torch\n", "import torch\n\f\n", 1)
        .replace("\nfor ", "\n\ffor ", 1)
        .encode()
    )


def comments(text: str) -> bytes:
    lines = text.splitlines()
    return "".join(
        f"{line}  # é\n" if line and "#" not in line else f"{line}\n" for line in lines
    ).encode()


def without_last_end(text: str) -> bytes:
    return f"{text}print('é')".encode()


def continued(text: str) -> bytes:
    return text.replace("loss = ", "loss \\\n        = ").encode()


def with_strings(text: str) -> bytes:
    return text.replace(
        "torch.manual_seed(0)\n", f"data_of = 1\n{STRINGS}torch.manual_seed(0)\n", 1
    ).encode()


CHANGES: tuple[Change, ...] = (
    crlf, old_mac, tabs, two_spaces, byte_order_mark, latin, form_feeds, comments,
    without_last_end, continued,
    with_strings,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_only_what_is_mended_changes(name: str, change: Change, tmp_path: pathlib.Path) -> None:
    before, after = map(change, sides(name))
    if change is comments:
        after = _with_comments_of(before, after)
    path = tmp_path / "train.py"
    path.write_bytes(before)
    settings_for = settings_finder(
        lambda settings: settings.overridden(Selection((name[:5],), (), ()), (), {})
    )
    repaired = repair(Task([path], settings_for, settings_for(tmp_path), unsafe=True))
    assert repaired.contents[path] == after
    assert repaired.originals[path] == before


def _with_comments_of(before: bytes, after: bytes) -> bytes:
    """The mended text, in which lines that are new carry no comment."""
    old = {line.strip() for line in before.splitlines()}
    lines = after.decode().splitlines(keepends=True)
    return "".join(
        line
        if line.strip().encode() in old or _is_changed(line, before.decode())
        else line.replace("  # é", "")
        for line in lines
    ).encode()


def _is_changed(line: str, before: str) -> bool:
    """Whether a line was mended in place, and is not new."""
    return (
        line.partition("=")[0] in (other.partition("=")[0] for other in before.splitlines())
        and "=" in line
    )


WATCHED = """
import sys
from gradlint.cli import main
try:
    main()
except SystemExit:
    print("libcst" in sys.modules)
"""


@pytest.mark.parametrize(
    ("name", "is_needed"),
    [("GL514 a list of layers", False), ("GL509 clipped after the step", True)],
)
def test_libcst_is_imported_only_where_statements_change(
    name: str, is_needed: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(sides(name)[0])
    words = ["check", "--no-cache", "--diff", "--unsafe-fixes", "--jobs", "1", str(path)]
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *words], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == str(is_needed)
