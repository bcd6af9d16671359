"""The programs of pages about errors, ways to work and real bugs: gradlint and torch say of each
what the page says.
"""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import re
import warnings
from dataclasses import dataclass

import pytest
from commandline import Run

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"<!-- program: ([^\n]*) -->\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FOLDERS = ("errors", "ways")


@dataclass(frozen=True)
class Told:
    """A program of a page: the codes that it is said to bring, and whether it raises what the page
    is about.
    """

    page: pathlib.Path
    text: str
    codes: frozenset[str]
    words: frozenset[str]

    @property
    def title(self) -> str:
        return self.page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def programs() -> list[Told]:
    found: list[Told] = []
    for folder in FOLDERS:
        for page in sorted((DOCS / folder).glob("*.md")):
            for marker, text in BLOCK.findall(page.read_text(encoding="utf-8")):
                words = frozenset(marker.split())
                found.append(
                    Told(
                        page,
                        text,
                        frozenset(word for word in words if word.startswith("GL")),
                        words,
                    )
                )
    return found


PROGRAMS = programs()


def test_every_page_has_a_program_that_breaks_and_one_that_does_not() -> None:
    for folder in FOLDERS:
        for page in (DOCS / folder).glob("*.md"):
            told = [each for each in PROGRAMS if each.page == page]
            if page.name != "index.md":
                assert any(each.codes for each in told), page
                assert any(not each.codes for each in told), page
            assert page.read_text(encoding="utf-8").count("```python") == len(told), page


def test_gradlint_says_what_the_page_says(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {f"p{number}.py": each for number, each in enumerate(PROGRAMS)}
    for name, each in names.items():
        (tmp_path / name).write_text(each.text)
    said = run(
        "check", "--no-cache", "--min-severity", "warning", "--output-format", "json", "."
    ).out
    found: dict[str, set[str]] = {name: set() for name in names}
    for each in json.loads(said):
        if each["code"] != "GL004":
            found[pathlib.Path(each["filename"]).name].add(each["code"])
    wrong = {
        f"{each.page.name}: {name}": (sorted(each.codes), sorted(found[name]))
        for name, each in names.items()
        if each.codes != found[name]
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "told",
    [each for each in PROGRAMS if "check-only" not in each.words],
    ids=lambda told: told.page.stem,
)
def test_torch_says_what_the_page_says(told: Told) -> None:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if "raises" in told.words:
            with pytest.raises(RuntimeError, match=re.escape(told.title)):
                exec(compile(told.text, told.page.name, "exec"), {"__name__": "__main__"})
        else:
            may_raise = not told.words.isdisjoint(("may-raise", "raises-other"))
            with contextlib.suppress(RuntimeError) if may_raise else contextlib.nullcontext():
                exec(compile(told.text, told.page.name, "exec"), {"__name__": "__main__"})
