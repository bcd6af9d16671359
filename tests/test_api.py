"""The Python API does what the commands do, is typed, and is imported when it is used."""

from __future__ import annotations

import inspect
import json
import pathlib
import re
import subprocess
import sys

import pytest

import gradlint

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
TRAIN = """\
import sys
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=float(sys.argv[1]))


def train(batches):
    for x in batches:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
    return "done"


if __name__ == "__main__":
    train(torch.randn(4, 3, 2))
"""
CALLS = """\
import dataclasses, json, sys
import gradlint
sys.argv.append("0.1")
import torch, broken, train

def told(traced):
    return [[str(each.at) + " " + each.code for each in traced.findings], traced.steps, traced.error, traced.value]

batches = torch.randn(4, 3, 2)
results = [
    told(gradlint.trace(train.train, batches)),
    told(gradlint.trace(train.train, batches, steps=2)),
    told(gradlint.trace(train.train, batches, ignore=["GL5"])),
    told(gradlint.trace(broken.fail)),
    told(gradlint.trace("train.py", 0.1, ignore="GL501")),
    told(gradlint.trace("train.py", "x")),
]
print("RESULTS" + json.dumps(results))
"""
WITHOUT_TORCH = """
import sys

sys.modules["torch"] = None
import gradlint
from gradlint.cli import main

try:
    gradlint.trace(print)
except gradlint.UserError as error:
    print(error)
sys.stderr = sys.stdout
try:
    main(["trace", "train.py"])
except SystemExit as error:
    print(error.code)
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def python(folder: pathlib.Path, program: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
        text=True,
        check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_findings_are_those_of_the_command(folder: pathlib.Path) -> None:
    (found,) = gradlint.check()
    assert isinstance(found, gradlint.Finding)
    assert (found.code, str(found.at), found.severity) == (
        "GL501",
        "train.py:11:9",
        gradlint.Severity.ERROR,
    )
    assert found.fix is not None
    assert found.fix.applicability is gradlint.Applicability.SAFE
    assert gradlint.check(folder / "train.py")[0].message == found.message
    assert gradlint.check(["train.py"], select="GL5", min_severity="error") == [found]


def test_arguments_outweigh_settings(folder: pathlib.Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nignore = ['GL501']\n")
    assert gradlint.check() == []
    assert len(gradlint.check(extend_select=["GL501"])) == 1
    assert gradlint.check(extend_select=["GL501"], exclude=["train.py"]) == []
    (folder / "a.md").write_text("```python\nx = 1  # gradlint: ignore[GL101]\n```\n")
    (found,) = gradlint.check(extend_include=["*.md"], cache=folder / "kept")
    assert (found.code, str(found.at)) == ("GL002", "a.md:2:8")
    assert list((folder / "kept").glob("*.json"))


def test_a_word_by_itself_is_one_word(folder: pathlib.Path) -> None:
    (folder / "a.md").write_text("```python\nx = 1  # gradlint: ignore[GL101]\n```\n")
    assert [each.code for each in gradlint.check(exclude="tests/*")] == ["GL501"]
    assert gradlint.check(exclude="train.*") == []
    assert sorted(each.code for each in gradlint.check(extend_include="*.md")) == ["GL002", "GL501"]
    assert [
        each.code for each in gradlint.check("a.md", extend_include="*.md", extend_select="GL002")
    ] == ["GL002"]


def test_what_cannot_be_done_is_a_users_error(folder: pathlib.Path) -> None:
    with pytest.raises(
        gradlint.UserError, match=r"trian.py: no such file or folder; did you mean 'train.py'\?"
    ):
        gradlint.check("trian.py")
    with pytest.raises(gradlint.UserError, match="no rule has the code 'GL0001'"):
        gradlint.check(select=["GL0001"])
    with pytest.raises(gradlint.UserError, match=r"trian\.py: no such file"):
        gradlint.trace("trian.py")


def test_functions_and_scripts_are_traced(folder: pathlib.Path) -> None:
    (folder / "broken.py").write_text(
        "import torch\n\n\ndef fail():\n    torch.zeros(()).backward()\n"
    )
    whole, two, ignored, failed, script, misused = json.loads(
        python(folder, CALLS).partition("RESULTS")[2]
    )
    assert whole == [["train.py:11:9 GL501"], 4, "", "done"]
    assert two == [["train.py:11:9 GL501"], 2, "", None]
    assert ignored == [[], 4, "", "done"]
    assert failed[0] == ["broken.py:5:5 GL101"]
    assert failed[2].startswith("RuntimeError: element 0 of tensors does not require grad")
    assert script == [[], 4, "", None]
    assert misused == [[], 0, "ValueError: could not convert string to float: 'x'", None]


def test_without_torch_a_trace_says_what_to_install(folder: pathlib.Path) -> None:
    told = python(folder, WITHOUT_TORCH).splitlines()
    assert told[0].startswith(
        "a trace runs the program, and there is no torch here: install gradlint where "
    )
    assert told[1:] == [f"gradlint: {told[0]}", "2"]


def test_an_import_brings_in_nothing(folder: pathlib.Path) -> None:
    program = (
        "import sys; before = set(sys.modules); import gradlint; print(*sorted(set(sys.modules) "
        "- before))"
    )
    assert [
        name
        for name in python(folder, program).split()
        if name.partition(".")[0] not in sys.stdlib_module_names
    ] == ["gradlint"]
    program = "import gradlint, sys; gradlint.check('train.py'); print('torch' in sys.modules)"
    assert python(folder, program) == "False\n"


def test_every_public_name_is_there_and_documented() -> None:
    for name in gradlint.__all__:
        assert getattr(gradlint, name) is not None
        assert name in PAGE or name in ("Edit", "Related", "__version__")
    with pytest.raises(AttributeError, match="has no attribute 'chek'"):
        gradlint.chek  # type: ignore[attr-defined] # noqa: B018
    assert dir(gradlint) == sorted(gradlint.__all__)


@pytest.mark.parametrize("name", ["check", "trace"])
def test_the_page_names_every_parameter(name: str) -> None:
    from gradlint import api

    block = re.search(rf"def {name}\((.*?)\) ->", PAGE, re.DOTALL)
    assert block is not None
    documented = re.findall(r"^\s*(?:\*)?(\w+)[=,]", block[1], re.MULTILINE)
    assert documented == list(inspect.signature(getattr(api, name)).parameters)


def test_the_examples_of_the_page_run(folder: pathlib.Path) -> None:
    blocks = [
        text
        for text in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
        if "import gradlint" in text
    ]
    assert len(blocks) == 2
    check, trace = blocks
    (folder / "example.py").write_text(trace)  # what is traced has a file
    out = python(folder, check.replace("GL1", "GL5"))
    assert out.startswith("train.py:11:9 GL501 `loss.backward()` adds to gradients")
    python(folder, "import runpy; runpy.run_path('example.py')")
