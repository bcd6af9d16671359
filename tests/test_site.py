"""The documentation: its site builds without a warning, and what its pages show is what happens."""

import pathlib
import re
import subprocess
import sys

import pytest
from commandline import Run
from truth import observe

from gradlint import config
from gradlint.rule import rules

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"training.md": "test_training_docs.py", "api.md": "test_api.py", "pytest.md": "test_pytest_plugin.py"}
# What a page takes as given, and how its programs end where that is what it shows.
GIVEN = {
    "fixes.md": "from gradlint.finding import Finding, Fix\nfrom gradlint.rule import FixSource\n",
    "settings.md": "import torch\n\nvalue = torch.ones(1)\n",
    "tape.md": "import torch\n\nencoder, x = torch.nn.Linear(3, 2), torch.ones(3)\n",
}
ENDS = {"index.md": "RuntimeError: element 0", "tape.md": "RuntimeError: element 0"}
NO_GRADIENT = "of tensors does not require grad and does not have a grad_fn"


def programs(page: str) -> str:
    """The Python of a page, in order; what is included from another file is tested there."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return "\n".join(block for block in PROGRAM.findall(text) if "--8<--" not in block)


PAGES = sorted(page.name for page in DOCS.glob("*.md") if programs(page.name))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of the site, built as strictly as mkdocs can."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return folder


def test_the_page_that_a_finding_links_to_is_there(site: pathlib.Path) -> None:
    for rule in rules().values():
        page = site / "rules" / rule.url.rpartition("/")[2] / "index.html"
        assert f"<title>{rule.name} ({rule.code})" in page.read_text(encoding="utf-8")
    listed = (site / "rules" / "index.html").read_text(encoding="utf-8")
    assert all(rule.code in listed for rule in rules().values())


def test_what_a_page_includes_is_there(site: pathlib.Path) -> None:
    assert "Every step, on any path, whose gradients were not clipped" in (
        site / "plugins" / "index.html"
    ).read_text(encoding="utf-8")  # fmt: skip


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_the_programs_of_a_page_run(page: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(GIVEN.get(page, "") + programs(page), encoding="utf-8")
    ended = observe(tmp_path).exception
    if page in ENDS:
        assert ended == f"{ENDS[page]} {NO_GRADIENT}"
    else:
        assert ended == ""


def test_pages_that_are_tested_elsewhere_are_tested_there() -> None:
    for page, test in ELSEWHERE.items():
        assert page in PAGES
        assert f'"{page}"' in (ROOT / "tests" / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_page_shows_what_gradlint_says(
    run: Run, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    ((name, program, said),) = re.findall(
        r"<!-- example: (\S+) -->\n```python\n(.*?)```\n.*?```console\n\$ gradlint check \1\n(.*?)```", text, re.DOTALL
    )
    (tmp_path / name).write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ran = run("check", "--no-cache", name)
    assert (ran.code, ran.out) == (1, said)


def test_every_setting_has_its_row() -> None:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)) == config.keys()
