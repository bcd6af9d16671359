"""The documentation: its site builds without a warning, and what its pages show is what happens."""

import json
import pathlib
import re
import runpy
import subprocess
import sys

import browser
import pytest
from commandline import Run
from truth import observe

from gradlint import config
from gradlint.rule import rules

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = {
    "training.md": "test_training_docs.py",
    "api.md": "test_api.py",
    "pytest.md": "test_pytest_plugin.py",
}
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
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return folder


def test_the_page_that_a_finding_links_to_is_there(site: pathlib.Path) -> None:
    for rule in rules().values():
        page = site / "rules" / rule.url.rpartition("/")[2] / "index.html"
        assert f"<title>{rule.name} ({rule.code})" in page.read_text(encoding="utf-8")
    listed = (site / "rules" / "index.html").read_text(encoding="utf-8")
    assert all(rule.code in listed for rule in rules().values())


READER = """
<script type="module">
const program = document.getElementById("program");
const until = async (holds) => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 50));
};
const status = () => document.getElementById("status").textContent;
const findings = () => Array.from(document.querySelectorAll("#findings li"), (row) => row.innerText);
await until(() => /finding|loaded:/.test(status()));
const marked = document.querySelector("#lines [class]:not([class=''])")?.innerText;
const said = {status: status(), first: findings(), text: program.value, marked};
if (!/loaded:/.test(status())) {
  location.hash = "rule=GL101";
  await until(() => findings()[0]?.includes("GL101"));
  document.getElementById("fix").click();
  await until(() => status().startsWith("0 findings"));
  said.mended = program.value;
  program.value = "x = (\\n";
  program.dispatchEvent(new Event("input"));
  await until(() => findings()[0]?.includes("GL001"));
  said.broken = findings();
  document.getElementById("share").click();
  await until(() => location.hash.startsWith("#program="));
  said.link = location.hash;
  program.value = "";
  dispatchEvent(new HashChangeEvent("hashchange"));
  await until(() => program.value !== "");
  said.again = program.value;
}
await fetch("/told", {method: "POST", body: JSON.stringify(said)});
</script>
"""


def test_the_playground_checks_a_program_in_the_browser(
    site: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if browser.BROWSER is None or not (site / "playground" / "pyodide").is_dir():
        pytest.skip("the playground needs a browser, and `npm ci` in tools/browser")
    with browser.served(site, READER) as (address, posted):
        said = browser.told(f"{address}/playground/#rule=GL103", posted, tmp_path, seconds=150)
    examples = {
        each["code"]: each["program"]
        for each in json.loads((site / "playground/examples.json").read_text())
    }
    assert said["text"] == examples["GL103"]
    assert said["status"].startswith("1 finding"), said
    assert "GL103" in said["first"][0]
    assert f"line {said['marked']}: GL103" in said["first"][0]
    monkeypatch.setattr(sys, "path", list(sys.path))
    check = runpy.run_path(str(DOCS / "playground" / "check.py"))["check"]
    assert said["mended"] == json.loads(check(examples["GL101"]))["mended"] != examples["GL101"]
    assert "'(' was never closed" in said["broken"][0]
    assert said["again"] == "x = (\n"


def test_each_rule_can_be_tried(site: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Its page leads to its example, which is a program in which it finds something."""
    examples = json.loads((site / "playground/examples.json").read_text(encoding="utf-8"))
    assert {each["code"] for each in examples} >= {
        code for code in rules() if re.match(r"GL[1-9]", code)
    }
    for each in examples:
        page = (site / "rules" / each["name"] / "index.html").read_text(encoding="utf-8")
        assert f'href="../../playground/#rule={each["code"]}"' in page
        assert "# expect" not in each["program"]


def test_the_playground_finds_what_check_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    check = runpy.run_path(str(DOCS / "playground" / "check.py"))["check"]
    text = "for x in torch.randn(9, 3):\n    model(x).mean().backward()\n    optimizer.step()\n"
    top = (
        "import torch\nmodel = torch.nn.Linear(3, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    )
    found = json.loads(check(top + text))
    assert [(each["code"], each["location"]["row"]) for each in found["findings"]] == [("GL501", 5)]
    assert found["mended"] == top + text.replace(":\n", ":\n    optimizer.zero_grad()\n")
    assert json.loads(check(found["mended"])) == {
        "findings": [],
        "mended": None,
        "error": None,
        "all_fixes": True,
    }
    assert [each["code"] for each in json.loads(check("x = (\n"))["findings"]] == ["GL001"]


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
        r"<!-- example: (\S+) -->\n```python\n(.*?)```\n.*?```console\n\$ gradlint check "
        r"\1\n(.*?)```",
        text,
        re.DOTALL,
    )
    (tmp_path / name).write_text(program, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    ran = run("check", "--no-cache", name)
    assert (ran.code, ran.out) == (1, said)


def test_every_setting_has_its_row() -> None:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)) == config.keys()
