"""What the README shows is what happens."""

import os
import pathlib
import re
import runpy
from xml.etree import ElementTree

import pytest
from commandline import Run

from gradlint.rule import rules

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOOLS = ROOT / "tools"


def test_the_pictured_report_is_what_gradlint_says(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = runpy.run_path(str(TOOLS / "pictures.py"))
    monkeypatch.chdir(tool["EXAMPLE"])
    monkeypatch.setenv("FORCE_COLOR", "1")
    said = run(*tool["COMMAND"]).out
    drawn = (tool["IMAGES"] / "report.svg").read_text(encoding="utf-8")
    assert drawn == tool["picture"](tool["shown"](said)), "python tools/pictures.py draws it"
    ElementTree.fromstring(drawn)


def test_a_picture_has_the_lines_and_colours_of_the_terminal() -> None:
    picture = runpy.run_path(str(TOOLS / "pictures.py"))["picture"]
    drawn = ElementTree.fromstring(picture("\x1b[1;31merror\x1b[0m: a<b\n" + "word " * 30))
    texts = [element for element in drawn.iter() if element.tag.endswith("}text")]
    assert ["".join(text.itertext()) for text in texts] == [
        "error: a<b",
        ("word " * 20)[:-1],
        "word " * 10,
    ]
    assert texts[0][0].attrib == {"font-weight": "bold", "fill": "#ff7b72"}


def test_the_readme_can_be_read_anywhere() -> None:
    """PyPI and mirrors know no relative links; a picture that is linked is there."""
    links = re.findall(r"\]\((.*?)\)", README)
    assert all(link.startswith("https://") for link in links)
    site = "https://torch-gradlint.readthedocs.io/images/"
    pictures = [link.removeprefix(site) for link in links if link.startswith(site)]
    assert len(pictures) == 2
    assert all((ROOT / "docs/images" / name).is_file() for name in pictures)
    assert "# expect:" not in README


def test_the_table_of_the_readme_knows_all_rules() -> None:
    told = set()
    for row in re.findall(r"^\| (GL.*?) \|", README, re.MULTILINE):
        first, last = (
            int(word[2:]) for word in (re.findall(r"GL\d+", row)[index] for index in (0, -1))
        )
        told |= {f"GL{number:03}" for number in range(first, last + 1)}
    assert {
        code for code in rules() if not code.startswith("GL0") and code.startswith("GL")
    } == told


@pytest.mark.parametrize("name", ["run", "test"])
def test_the_readme_has_the_commands_for_a_fresh_machine(name: str) -> None:
    assert len(re.findall(rf"<!-- {name} -->\n```sh\n.*?\n```", README, re.DOTALL)) == 1


def test_the_gallery_shows_each_bug_with_what_is_said_and_its_repair() -> None:
    tool = runpy.run_path(str(TOOLS / "gallery.py"))
    page = tool["page"]()
    sections = page.split("\n## ")[1:]
    assert len(sections) == len(list(tool["CASES"].iterdir()))
    for section in sections:
        assert re.search(r" (?:error|warning) \[GL\d+\]\(rules/[\w-]+\.md\): ", section)
        assert re.search(r"^[-+](?!--|\+\+)", section, re.MULTILINE)
        assert not re.search(r"# (?:expect|ok|miss|noise): ", section)


def test_the_manual_page_is_that_of_the_commands() -> None:
    tool = runpy.run_path(str(TOOLS / "man_page.py"))
    page = tool["PAGE"].read_text(encoding="utf-8")
    assert page == tool["page"](), "python tools/man_page.py writes it"
    assert all(
        line[:1] != "'" and (line[:1] != "." or re.match(r"\.[A-Z]+", line))
        for line in page.splitlines()
    )


def test_ci_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_settings_shown_are_the_settings_there_are(tmp_path: pathlib.Path) -> None:
    from gradlint import config

    (table,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
    settings = config.settings_finder(lambda found: found)(tmp_path)
    assert not settings.selects("GL109")
    assert set(re.findall(r"^([a-z-]+) =", table, re.MULTILINE)) == config.keys()
