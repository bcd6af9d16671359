"""The fix of one rule is run over a tree, by us and by libcst's own tool."""

from __future__ import annotations

import pathlib

import libcst.tool
import pytest
from commandline import Run

from gradlint.codemods import fixes
from gradlint.rule import rules

HEAD = (
    "import torch\n\nmodel = torch.nn.Linear(2, 1)\n"
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
)
DETACHED = (
    HEAD + "loss = model(torch.ones(4, 2)).detach().mean()\nloss.backward()\noptimizer.step()\n"
)
MENDED = DETACHED.replace(".detach()", "")
SCALER = HEAD + "scaler = torch.cuda.amp.GradScaler()\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(DETACHED)
    (tmp_path / "b.py").write_text("import b\n" + DETACHED)
    (tmp_path / "amp.py").write_text(SCALER)
    return tmp_path


@pytest.mark.parametrize("name", ["GL102", "detached-loss"])
def test_only_the_fix_of_the_rule_is_run(folder: pathlib.Path, run: Run, name: str) -> None:
    ran = run("codemod", name, "--unsafe-fixes", "--jobs", "1", ".")
    assert (folder / "a.py").read_text() == MENDED
    assert (folder / "amp.py").read_text() == SCALER
    assert (ran.code, ran.err.splitlines()) == (
        0,
        ["GL102 on 3 files:", " - mended 2 findings in 2 files"],
    )


def test_what_is_left_is_counted(folder: pathlib.Path, run: Run) -> None:
    (folder / "broken.py").write_text("def f(:\n")
    ran = run("codemod", "GL102", "--jobs", "1", ".")
    assert (folder / "a.py").read_text() == DETACHED
    assert ran.err.splitlines() == [
        "GL102 on 4 files:",
        " - mended 0 findings in 0 files",
        " - left 2 findings that --unsafe-fixes mends",
        " - could not read 1 file",
    ]


def test_a_diff_changes_nothing(folder: pathlib.Path, run: Run) -> None:
    ran = run("codemod", "GL102", "--unsafe-fixes", "--diff", "--jobs", "1", "a.py")
    assert (folder / "a.py").read_text() == DETACHED
    assert "+loss = model(torch.ones(4, 2)).mean()\n" in ran.out
    assert (ran.code, ran.err.splitlines()[1]) == (1, " - would mend 1 finding in 1 file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("GL1022", "."), "no rule has the code or name 'GL1022'; did you mean 'GL102'?"),
        (
            ("GL109", "."),
            "GL109 (partial-detach) has no fix: `gradlint rule GL109` says what to do",
        ),
        (("GL102",), "Missing argument 'PATH...'"),
    ],
)
def test_what_cannot_be_run_is_said(
    folder: pathlib.Path, run: Run, arguments: tuple[str, ...], message: str
) -> None:
    ran = run("codemod", *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_each_rule_with_a_fix_is_a_command_of_libcst() -> None:
    found = {name for name in dir(fixes) if name.startswith("GL")}
    assert found == {rule.code for rule in rules().values() if rule.fix is not None}


def test_libcst_runs_our_fixes(folder: pathlib.Path) -> None:
    name = "gradlint.codemods.fixes.GL102"
    options = ("--unsafe-fixes", "--no-format", "--hide-progress", "--jobs", "1")
    assert libcst.tool.main("libcst.tool", ["codemod", "-x", name, *options, "a.py", "amp.py"]) == 0
    assert (folder / "a.py").read_text() == MENDED
    assert (folder / "amp.py").read_text() == SCALER


def test_libcst_lists_our_fixes(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".libcst.codemod.yaml").write_text('modules:\n- "gradlint.codemods"\n')
    assert libcst.tool.main("libcst.tool", ["list"]) == 0
    assert (
        "fixes.GL102 - Every route from the parameters to the loss is cut"
        in capsys.readouterr().out
    )
