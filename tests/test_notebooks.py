"""Notebooks are checked as one program, reported by cell and line, and mended in place."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import pytest
from commandline import Run
from hypothesis import example, given
from hypothesis import strategies as st

from gradlint.source import document, notebook
from gradlint.source.magics import commented, hidden, revealed
from gradlint.source.parse import Source, SyntaxFault, parse
from gradlint.source.places import Program

SETUP = (
    "import torch\nmodel = torch.nn.Linear(4, 3)\noptimizer = "
    "torch.optim.SGD(model.parameters(), lr=0.1)"
)
LOOP = """\
for valid in (True, False):
    logits = model(torch.randn(2, 4))
    loss = logits.sum() if valid else torch.tensor(0.0)  # é
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()"""
FIXED = "0.0 * logits.sum()"
MARK = "@0@"


def cell(source: str | Sequence[str], kind: str = "code", **more: Any) -> dict[str, Any]:
    lines = source.splitlines(keepends=True) if isinstance(source, str) else source
    made = {"cell_type": kind, "metadata": {"tags": ["keep"]}, "source": lines, **more}
    return made | (
        {"outputs": [{"data": {"text/plain": ["5e-1"]}}], "execution_count": 3}
        if kind == "code"
        else {}
    )


def written(
    *cells: str | dict[str, Any], indent: int | None = 1, ascii_only: bool = False, **more: Any
) -> bytes:
    found = [cell(each) if isinstance(each, str) else each for each in cells]
    content = {
        "nbformat_minor": 5,
        "metadata": {"z": 1e-05, "a": 2},
        "cells": found,
        "nbformat": 4,
        **more,
    }
    return (json.dumps(content, indent=indent, ensure_ascii=ascii_only) + "\n").encode()


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def concise(run: Run, *arguments: str) -> list[str]:
    return run("check", "--output-format", "concise", *arguments).out.splitlines()[:-1]


def mended_by_sarif(content: bytes, run: Run) -> bytes:
    """The file as one makes it who knows nothing but SARIF."""
    text = content.decode()
    starts = [0, *(place + 1 for place, character in enumerate(text) if character == "\n")]
    (result,) = json.loads(run("check", "--output-format", "sarif").out)["runs"][0]["results"]
    for replacement in reversed(result["fixes"][0]["artifactChanges"][0]["replacements"]):
        at = replacement["deletedRegion"]
        first = starts[at["startLine"] - 1] + at["startColumn"] - 1
        last = starts[at["endLine"] - 1] + at["endColumn"] - 1
        text = text[:first] + replacement["insertedContent"]["text"] + text[last:]
    return text.encode()


def test_a_finding_names_its_cell_and_the_line_in_it(folder: pathlib.Path, run: Run) -> None:
    (folder / "nb.ipynb").write_bytes(
        written(cell("# A title", "markdown"), "%matplotlib inline\n" + SETUP, LOOP)
    )
    ran = run("check")
    assert ran.code == 1
    assert " --> nb.ipynb:cell 3:3:39\n" in ran.out
    assert "3 |     loss = logits.sum() if valid else torch.tensor(0.0)  # é\n" in ran.out
    assert concise(run)[0].startswith("nb.ipynb:cell 3:3:39: error[GL101] ")


STEP = """\
optimizer.zero_grad()
loss = torch.nn.functional.mse_loss(model(torch.randn(2, 4)), torch.zeros(2, 3))
loss.backward()
optimizer.step()"""


def test_a_loss_that_a_cell_shows_is_used(folder: pathlib.Path, run: Run) -> None:
    first = "loss = torch.nn.functional.mse_loss(model(torch.ones(2, 4)), torch.zeros(2, 3))"
    (folder / "nb.ipynb").write_bytes(written(SETUP + "\n" + STEP, first, STEP))
    assert [line.partition(" `")[0] for line in concise(run)] == [
        "nb.ipynb:cell 2:1:8: warning[GL111]"
    ]
    (folder / "nb.ipynb").write_bytes(written(SETUP + "\n" + STEP, first + "\nloss", STEP))
    assert concise(run) == []


def test_the_page_shows_what_gradlint_says(folder: pathlib.Path, run: Run) -> None:
    page = (pathlib.Path(__file__).parents[1] / "docs/notebooks.md").read_text(encoding="utf-8")
    (said,) = re.findall(
        r"```console\n\$ gradlint check --output-format concise\n(.*?)```", page, re.DOTALL
    )
    (folder / "nb.ipynb").write_bytes(written(cell("# A title", "markdown"), SETUP, LOOP))
    assert run("check", "--output-format", "concise").out == said


def test_json_has_the_cell_and_rows_that_count_in_it(folder: pathlib.Path, run: Run) -> None:
    (folder / "nb.ipynb").write_bytes(written(SETUP, LOOP))
    (found,) = json.loads(run("check", "--output-format", "json").out)
    assert (found["cell"], found["location"]) == (2, {"row": 3, "column": 39})
    assert found["related"][0]["cell"] == 2
    (edit,) = found["fix"]["edits"]
    assert (edit["content"], edit["location"]["row"]) == (FIXED, 3)


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_formats_without_cells_get_the_line_of_the_file(
    folder: pathlib.Path, run: Run, indent: int | None
) -> None:
    content = written(SETUP, LOOP, indent=indent)
    (folder / "nb.ipynb").write_bytes(content)
    row = next(
        number
        for number, line in enumerate(content.splitlines(), 1)
        if b"torch.tensor(0.0)" in line
    )
    github = run("check", "--output-format", "github").out
    assert f"file=nb.ipynb,line={row},endLine={row}::cell 2, line 3: " in github
    (result,) = json.loads(run("check", "--output-format", "sarif").out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == row
    (quality,) = json.loads(run("check", "--output-format", "gitlab").out)
    assert quality["location"]["positions"]["begin"]["line"] == row


@pytest.mark.parametrize("indent", [None, 1, 2])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("source", [LOOP.splitlines(keepends=True), LOOP])
def test_a_fix_changes_one_line_of_one_cell_and_no_other_byte(
    folder: pathlib.Path, run: Run, indent: int | None, ascii_only: bool, source: str | list[str]
) -> None:
    content = written(
        "%%time\n" + SETUP, cell(source, "markdown"), cell(source),
        indent=indent, ascii_only=ascii_only,
    )  # fmt: skip
    file = folder / "nb.ipynb"
    file.write_bytes(content)
    by_sarif = mended_by_sarif(content, run)
    assert run("check", "--fix").code == 0
    assert file.read_bytes() == by_sarif
    head, tail = content.rsplit(b"torch.tensor(0.0)", 1)
    assert file.read_bytes() == head + FIXED.encode() + tail


def test_lines_that_a_fix_adds_go_into_the_cell(folder: pathlib.Path, run: Run) -> None:
    loop = (
        "for x in torch.randn(8, 2, 4):\n    %time\n    model(x).mean().backward()\n"
        "    optimizer.step()"
    )
    content = written(SETUP, loop, "print(1)")
    (folder / "nb.ipynb").write_bytes(content)
    assert [line.split()[0] for line in concise(run)] == ["nb.ipynb:cell"]
    by_sarif = mended_by_sarif(content, run)
    assert run("check", "--fix", "--unsafe-fixes").code == 0
    assert (folder / "nb.ipynb").read_bytes() == by_sarif
    before, after = (
        json.loads(each)["cells"] for each in (content, (folder / "nb.ipynb").read_bytes())
    )
    assert [each == other for each, other in zip(before, after, strict=True)] == [True, False, True]
    assert "    optimizer.zero_grad()\n" in after[1]["source"]
    assert "    %time\n" in after[1]["source"]


def test_a_diff_is_one_of_the_file(folder: pathlib.Path, run: Run) -> None:
    (folder / "nb.ipynb").write_bytes(written(SETUP, LOOP))
    out = run("check", "--diff").out
    assert f'+    "    loss = logits.sum() if valid else {FIXED}  # é\\n",\n' in out
    assert len([line for line in out.splitlines() if line.startswith(("+ ", "- "))]) == 2


def test_suppressions_are_heard_and_written(folder: pathlib.Path, run: Run) -> None:
    (folder / "nb.ipynb").write_bytes(written(SETUP, LOOP))
    assert run("check", "--add-ignore", "for now").code == 0
    (_, changed) = json.loads((folder / "nb.ipynb").read_bytes())["cells"]
    assert changed["source"][2].endswith("# é  # gradlint: ignore[GL101] for now\n")
    assert run("check").code == 0
    (folder / "nb.ipynb").write_bytes(written("x = 1", "x = 2  # gradlint: ignore[GL101]"))
    assert concise(run)[0].startswith("nb.ipynb:cell 2:1:8: warning[GL002]")
    (folder / "nb.ipynb").write_bytes(written("# gradlint: skip-file", SETUP, LOOP))
    assert run("check").code == 0


def test_a_baseline_holds_although_cells_are_put_before(folder: pathlib.Path, run: Run) -> None:
    (folder / "nb.ipynb").write_bytes(written(SETUP, LOOP))
    run("check", "--write-baseline", "base.json")
    assert run("check", "--baseline", "base.json").code == 0
    (folder / "nb.ipynb").write_bytes(written("import math", SETUP, "print()", LOOP))
    assert run("check", "--baseline", "base.json").code == 0


def test_results_are_kept_until_a_cell_or_what_it_imports_changes(
    folder: pathlib.Path, run: Run
) -> None:
    loop = "from helper import loss_of\nloss_of(model(torch.randn(2, 4))).backward()"
    (folder / "nb.ipynb").write_bytes(written(SETUP, loop))
    (folder / "helper.py").write_text("def loss_of(y):\n    return y.mean()\n")
    assert concise(run) == concise(run) == []
    (folder / "helper.py").write_text("def loss_of(y):\n    return y.detach().mean()\n")
    (found,) = concise(run)
    assert found.startswith("helper.py:2:12: error[GL102]")
    assert concise(run) == [found]
    (folder / "nb.ipynb").write_bytes(written(SETUP, "x = 1"))
    assert concise(run) == []


def test_standard_input_is_a_notebook_if_its_name_is_one(run: Run) -> None:
    stdin = written(SETUP, LOOP).decode()
    ran = run(
        "check", "-", "--stdin-filename", "nb.ipynb", "--output-format", "concise", stdin=stdin
    )
    assert ran.out.startswith("nb.ipynb:cell 2:3:39: error[GL101]")
    fixed = run("check", "-", "--fix", "--stdin-filename", "nb.ipynb", stdin=stdin).out
    assert fixed == stdin.replace("torch.tensor(0.0)", FIXED)


@pytest.mark.parametrize(
    ("second", "place"),
    [
        ("x = (1,\n", "1:5"),
        ("def f(:\n    pass", "1:7"),
        ("for x in y:\n    %time\nelse", "3:5"),
        ("x = '''", "1:5"),
        ("x = 1 \\", "1:8"),
        ("x\ny = a\0b", "2:6"),
        ("x\ny = '\ud800'", "2:6"),
    ],
)
def test_a_cell_that_is_not_python_is_reported_where_it_is(
    folder: pathlib.Path, run: Run, second: str, place: str
) -> None:
    (folder / "nb.ipynb").write_bytes(written(SETUP, second, LOOP, ascii_only=True))
    (found,) = concise(run)
    assert found.startswith(f"nb.ipynb:cell 2:{place}: error[GL001]")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "1:1: error[GL001] not a notebook: Expecting value"),
        (b'{\n"a": }', "2:6: error[GL001] not a notebook: Expecting value"),
        (b"\xff\xfe", "1:1: error[GL001] not a notebook: it is not valid utf-8"),
        (b"[]", "1:1: error[GL001] not a notebook: it names no version of the format"),
        (
            b'{"nbformat": 2}',
            "1:1: error[GL001] not a notebook: version 2 of the format is not read",
        ),
        (
            b'{"nbformat": 4, "cells": {}}',
            "1:1: error[GL001] not a notebook: it has no list of cells",
        ),
        (
            b'{"nbformat": 3, "worksheets": 1}',
            "1:1: error[GL001] not a notebook: it has no list of worksheets",
        ),
        (
            b'{"nbformat": 4, "cells": [{"cell_type": "code"}]}',
            "1:1: error[GL001] not a notebook: cell 1 has no text",
        ),
        (b"[" * 100_000, "1:1: error[GL001] not a notebook: maximum recursion depth exceeded"),
    ],
)
def test_what_is_no_notebook_is_a_finding(
    folder: pathlib.Path, run: Run, content: bytes, complaint: str
) -> None:
    (folder / "nb.ipynb").write_bytes(content)
    (found,) = concise(run)
    assert found.startswith(f"nb.ipynb:{complaint}")
    for name in ("text", "sarif", "github", "gitlab", "junit", "json"):
        assert run("check", "--output-format", name).code == 1


def test_version_3_is_read_and_mended(folder: pathlib.Path, run: Run) -> None:
    cells = [{"cell_type": "code", "language": "python", "input": each} for each in (SETUP, LOOP)]
    content = json.dumps(
        {"nbformat": 3, "worksheets": [{"cells": cells[:1]}, {"cells": cells[1:]}]}
    )
    (folder / "nb.ipynb").write_text(content)
    assert concise(run)[0].startswith("nb.ipynb:cell 2:3:39: error[GL101]")
    assert run("check", "--fix").code == 0
    assert (folder / "nb.ipynb").read_text() == content.replace("torch.tensor(0.0)", FIXED)


@pytest.mark.parametrize(
    "metadata",
    [{"kernelspec": {"language": "R"}}, {"language_info": {"name": "julia"}}, {"kernelspec": 1}],
)
def test_other_languages_are_left_alone(
    folder: pathlib.Path, run: Run, metadata: dict[str, Any]
) -> None:
    cells = ["x = 1"] if metadata == {"kernelspec": 1} else ["x <- c(1,"]
    (folder / "nb.ipynb").write_bytes(written(*cells, metadata=metadata))
    assert run("check").code == 0


def test_checkpoints_of_jupyter_are_not_looked_at(folder: pathlib.Path, run: Run) -> None:
    (folder / ".ipynb_checkpoints").mkdir()
    (folder / ".ipynb_checkpoints" / "nb.ipynb").write_bytes(written(SETUP, LOOP))
    (folder / "a.py").write_text("x = 1\n")
    assert run("check").out == "Nothing found in 1 file.\n"


def test_a_script_with_cells_is_python(folder: pathlib.Path, run: Run) -> None:
    (folder / "nb.py").write_text(
        f"# %%\n{SETUP}\n\n# %% [markdown]\n# text\n\n# %%\n{LOOP}\n", encoding="utf-8"
    )
    assert concise(run)[0].startswith("nb.py:12:39: error[GL101]")


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%matplotlib inline", "pass"),
        ("if x:\n    !pip install y", "if x:\n    pass"),
        ("!pip install a \\\n    b", "pass\n"),
        ("files = !ls 'x", "files = get_ipython()"),
        ("a, b = %timeit -o f()", "a, b = get_ipython()"),
        ("model?", "pass"),
        ("?model", "pass"),
        ("torch.nn.Linear??", "pass"),
        ("pip install torch", "pass"),
        ("%%bash\nls 'x", "\n"),
        ("%%html\n<b>'", "\n"),
        ("\n%%time\nx = 1", "\n\nx = 1"),
        ("%%capture out\n\n%%bash\nls 'x", "\n\n\n"),
        ("%%time\n%%capture\nx = 1", "\n\nx = 1"),
        ("await x\nx!r", "await x\nx!r"),
        ("x = '''\n%s\n!a\n'''", "x = '''\n%s\n!a\n'''"),
        ("y = (x\n%z)", "y = (x\n%z)"),
        ("def f(:\n    pass", "def f(:\n    pass"),
        ("ls = 1\nls", "ls = 1\nls"),
        ("", ""),
    ],
)
def test_magics_are_hidden_where_they_stand(source: str, python: str) -> None:
    shown = hidden(source, MARK)
    without = "\n".join(line.partition("#")[0].rstrip() for line in shown.split("\n"))
    assert without == python
    assert revealed(shown, MARK) == source


@given(st.text(alphabet="x=%!? \\\n\r\t'\"#([:.\u2028\x0c\0é"))
def test_whatever_is_hidden_comes_back(source: str) -> None:
    assert revealed(hidden(source, MARK), MARK) == source
    assert revealed(commented(source, MARK), MARK) == source


@example(['%\\\r?"'])  # the second line is hidden before the first, which goes on in it
@example(["=\r?\\\r?"])  # a line that is hidden goes on in one that would be
@example(["\\\r"])  # with the end of line that the program has behind a cell, Python reads it
@given(st.lists(st.text(alphabet="x=1%!?@0#cel \\\n\r'\"(é"), max_size=4))
def test_a_notebook_is_its_program_and_back(sources: list[str]) -> None:
    content = written(*sources)
    program = notebook.program("nb.ipynb", content)
    assert isinstance(program, Program)
    assert notebook.updated(content, program.text) == content
    broken = [isinstance(parse("", hidden(each, MARK) + "\n"), SyntaxFault) for each in sources]
    assert isinstance(parse("", program.text), Source) is not any(broken)


def test_an_edit_over_the_border_of_cells_is_refused() -> None:
    program = notebook.program("nb.ipynb", written("x = 1", "y = 2"))
    assert isinstance(program, Program)
    assert program.text == "#@0@ cell 1\nx = 1\n#@0@ cell 2\ny = 2\n"
    assert document.can_take("nb.ipynb", program.text, program.text.replace("x = 1", "x = 3"))
    assert not document.can_take(
        "nb.ipynb", program.text, program.text.replace("x = 1\n#@0@ cell 2\n", "")
    )
    indented = program.text.replace("x = 1\n#", "if x:\n    x = 1\n    #").replace(
        "y = 2", "    y = 2"
    )
    assert not document.can_take("nb.ipynb", program.text, indented)
    split = program.text.replace("x = 1", "x = (1,").replace("y = 2", ")")
    assert isinstance(parse("", split), Source)
    assert not document.can_take("nb.ipynb", program.text, split)


def test_the_byte_order_mark_and_line_ends_stay(folder: pathlib.Path, run: Run) -> None:
    content = b"\xef\xbb\xbf" + written(SETUP, LOOP.replace("\n", "\r\n"), indent=2).replace(
        b"\n", b"\r\n"
    )
    (folder / "nb.ipynb").write_bytes(content)
    assert run("check", "--fix").code == 0
    assert (folder / "nb.ipynb").read_bytes() == content.replace(
        b"torch.tensor(0.0)", FIXED.encode()
    )


def test_what_a_cell_displays_is_not_thrown_away(folder: pathlib.Path, run: Run) -> None:
    shown = "x = torch.randn(4)\nx.view(2, 2)"
    (folder / "nb.ipynb").write_bytes(
        written("import torch", shown, "x.detach()  # the end\n\n", "x.requires_grad")
    )
    assert run("check").code == 0
    (folder / "nb.ipynb").write_bytes(
        written("import torch", f"{shown}\nx.detach()", f"{shown}\nprint(1)")
    )
    assert [line.partition(" ")[2].partition("] ")[0] + "]" for line in concise(run)] == [
        "2:2:1: warning[GL206]",
        "3:2:1: warning[GL206]",
    ]
