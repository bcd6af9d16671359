"""A hook of mkdocs: the gallery, made at each build from programs that the tests run, before and
after their repair.
"""

from __future__ import annotations

import difflib
import pathlib
import re
import tomllib
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from gradlint.rule import rules

CASES = pathlib.Path(__file__).parents[1] / "fixtures" / "mission"
PAGE = "gallery.md"
_MARK = re.compile(r"  # (?:expect|ok|miss|noise): .*")
_SAID = re.compile(
    r"(?P<file>\S+?):(?P<line>\d+):\d+-\S+ (?P<code>[A-Z]+\d+) (?P<severity>\w+): (?P<message>.*)"
)
_TOP = """\
# Gallery

Bugs as they stand in real training code, rebuilt as small programs: what happens, what gradlint
says without running them, and the repair. The tests run every one of them with torch, before and
after.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the page."""
    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    """The gallery, one section a program."""
    return (
        "\n".join([_TOP, *(line for case in sorted(CASES.iterdir()) for line in _section(case))])
        + "\n"
    )


def _section(case: pathlib.Path) -> Iterator[str]:
    """What happens, where it stands, what is said of it and how it was mended."""
    about = tomllib.loads((case / "case.toml").read_text(encoding="utf-8"))
    title, before = about["title"], about["before"]
    said = [found for line in _lines(case / "said.txt") if (found := _SAID.fullmatch(line))]
    yield f"## {title[:1].upper()}{title[1:]}\n"
    happens = "raises" if before["outcome"] == "raises" else "warns"
    yield f"PyTorch {happens}: *{before['message']}*. gradlint says, of these lines:\n"
    for found in (each for each in said if each["severity"] != "note"):
        rule = rules()[found["code"]]
        line = _plain(case / "before" / found["file"])[int(found["line"]) - 1]
        yield f"```python\n{line.strip()}\n```\n"
        place, link = f"`{found['file']}:{found['line']}`", f"[{rule.code}](rules/{rule.name}.md)"
        yield f"{place} {found['severity']} {link}: {found['message']}\n"
    yield "The program, and its repair:\n"
    yield "```diff"
    for file in sorted((case / "before").glob("*.py")):
        old, new = _plain(file), _plain(case / "after" / file.name)
        context = max(len(old), len(new)) if old != new else 0
        yield from (
            line.rstrip("\n")
            for line in difflib.unified_diff(old, new, file.name, file.name, "", "", context, "")
        )
    yield "```\n"


def _lines(file: pathlib.Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _plain(file: pathlib.Path) -> list[str]:
    """The lines of a program without the marks of the tests."""
    return [_MARK.sub("", line) for line in _lines(file)]
