"""Markdown is checked on request: each block of Python by itself, with its places in the page."""

from __future__ import annotations

import pathlib

import pytest
from commandline import Run

from gradlint.source.markdown import blocks

PAGE = """\
# A page

- an item
  ```python
  import torch
  loss = torch.tensor(0.0)  # é
  loss.backward()
  ```

```py title="train.py"
import torch
model = torch.nn.Linear(2, 1)
for valid in (True, False):
    y = model(torch.randn(2))
    (y.sum() if valid else torch.tensor(0.0)).backward()
```

```sh
import torch; torch.tensor(0.0).backward()
```

```python
>>> loss.backward()
```
"""
PLACES = ["page.md:6:10: error[GL101]", "page.md:15:28: error[GL101]"]


@pytest.fixture
def page(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    return path


def places(run: Run, *arguments: str) -> list[str]:
    lines = run("check", "--output-format", "concise", *arguments).out.splitlines()[:-1]
    return [" ".join(line.split()[:2]) for line in lines]


def test_a_page_that_is_named_is_checked(page: pathlib.Path, run: Run) -> None:
    assert places(run, "page.md") == PLACES


def test_pages_in_folders_are_checked_on_request(page: pathlib.Path, run: Run) -> None:
    page.with_name("a.py").write_text("x = 1\n")
    assert places(run) == []
    assert places(run, "--extend-include", "*.md") == PLACES
    page.with_name("pyproject.toml").write_text('[tool.gradlint]\nextend-include = ["*.md"]\n')
    assert places(run) == PLACES
    assert places(run) == PLACES


def test_the_page_is_quoted(page: pathlib.Path, run: Run) -> None:
    out = run("check", "page.md").out
    assert "6 |   loss = torch.tensor(0.0)  # é\n  |          ^^^^^^^^^^^^^^^^^\n" in out


def test_blocks_do_not_know_of_each_other(page: pathlib.Path, run: Run) -> None:
    once = (
        "```python\nimport torch\nloss = torch.nn.Linear(2, 1)(torch.randn(2)).sum()\n"
        "loss.backward()\n```\n"
    )
    page.write_text(once + "\nor:\n\n```python\nloss.backward()\n```\n")
    assert places(run, "page.md") == []
    page.write_text(once.replace("\n```\n", "\nloss.backward()\n```\n"))
    assert places(run, "page.md") == ["page.md:5:1: error[GL507]"]


def test_blocks_are_mended_in_the_page(page: pathlib.Path, run: Run) -> None:
    run("check", "--fix", "page.md")
    assert page.read_text(encoding="utf-8") == PAGE.replace(
        "else torch.tensor(0.0)", "else 0.0 * y.sum()"
    )


def test_suppressions_are_heard_and_written(page: pathlib.Path, run: Run) -> None:
    assert run("check", "page.md", "--add-ignore", "shows the bug").code == 0
    text = page.read_text(encoding="utf-8")
    assert "  loss = torch.tensor(0.0)  # é  # gradlint: ignore[GL101] shows the bug\n" in text
    assert places(run, "page.md") == []


def test_per_file_ignores_and_baselines_name_the_page(page: pathlib.Path, run: Run) -> None:
    run("check", "page.md", "--write-baseline", "base.json")
    page.write_text("One more line.\n\n" + PAGE, encoding="utf-8")
    assert run("check", "page.md", "--baseline", "base.json").code == 0
    assert (
        ":"
        not in page.with_name("base.json").read_text().partition('"path": "')[2].partition('"')[0]
    )
    page.with_name("pyproject.toml").write_text(
        '[tool.gradlint.per-file-ignores]\n"*.md" = ["GL1"]\n'
    )
    assert run("check", "page.md").code == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```python\nx\n```\n", ["x\n"]),
        ("~~~ py\nx\n~~~~\n", ["x\n"]),
        ("````python\n```\nx = 1\n", []),
        ("````python\n'''\n```\n'''\n````\n", ["'''\n```\n'''\n"]),
        ("```{code-cell} ipython3\nx\n```\n", ["x\n"]),
        ("``` {.python .numberLines}\nx\n```\n", ["x\n"]),
        ("```pycon\nx\n```\n", []),
        ("```\nx\n```\n", []),
        ("   ```python\n   if x:\n       y\n   ```\n", ["if x:\n    y\n"]),
        ("  ```python\n x\n  ```\n", []),
        ("```python\nx\n", ["x\n"]),
        ("```python\r\nx\r\n```\r\n", ["x\r\n"]),
        ("```sh\n```python\n```\nx\n", []),
    ],
)
def test_blocks_are_what_markdown_takes_for_them(text: str, found: list[str]) -> None:
    assert [block.text for block in blocks(text)] == found
