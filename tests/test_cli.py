"""The commands as users meet them: options, exit codes, complaints."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from commandline import Run

from gradlint import __version__, analyzer

BROKEN = "def f(:\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_clean_folder_exits_with_0(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text("x = 1\n")
    ran = run("check")
    assert (ran.code, ran.out, ran.err) == (0, "Nothing found in 1 file.\n", "")


def test_a_finding_exits_with_1_and_the_other_files_are_checked(
    folder: pathlib.Path, run: Run
) -> None:
    (folder / "a.py").write_text(BROKEN)
    (folder / "b.py").write_text("def g(:\n")
    ran = run("check", ".", "--output-format", "concise")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "a.py:1:7: error[GL001] invalid syntax",
        "b.py:1:7: error[GL001] invalid syntax",
        "Found 2 errors in 2 files.",
    ]


def test_a_file_that_cannot_be_read_is_a_finding(folder: pathlib.Path, run: Run) -> None:
    (folder / "gone.py").symlink_to(folder / "nowhere")
    ran = run("check", "gone.py", "--output-format", "concise")
    assert ran.code == 1
    assert "gone.py:1:1: error[GL001] the file cannot be read: No such file or directory" in ran.out


def test_a_link_that_leads_nowhere_is_no_file_of_a_folder(folder: pathlib.Path, run: Run) -> None:
    (folder / "train.py").write_text("x = 1\n")
    # how Emacs marks a file with unsaved changes
    (folder / ".#train.py").symlink_to("me@host.123:99")
    ran = run("check", ".")
    assert (ran.code, ran.out) == (0, "Nothing found in 1 file.\n")


@pytest.mark.parametrize("codec", ["rot13", "hex", "zlib", "punycode", "undefined"])
def test_a_file_in_no_encoding_of_text_is_a_finding_and_the_others_are_checked(
    folder: pathlib.Path, run: Run, codec: str
) -> None:
    (folder / "a.py").write_text(f"# -*- coding: {codec} -*-\nimport torch\n")
    (folder / "b.py").write_text(BROKEN)
    ran = run("check", ".", "--output-format", "concise")
    assert ran.code == 1
    assert [line.split(" ")[0:2] for line in ran.out.splitlines()[:2]] == [
        ["a.py:1:1:", "error[GL001]"],
        ["b.py:1:7:", "error[GL001]"],
    ]


def test_gradlint_alone_prints_its_help(run: Run) -> None:
    alone, asked = run(), run("--help")
    assert (alone.code, alone.err) == (0, "")
    assert alone.out == asked.out
    assert "check" in alone.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("chek",), "no such command 'chek'; did you mean 'check'?"),
        (("help",), "no such command 'help'; `gradlint --help` is meant"),
        (("explain", "GL101"), "no such command 'explain'; `gradlint rule` is meant"),
        (("check", "--selct", "GL0"), "no such option '--selct'; did you mean '--select'?"),
        (
            ("check", "--select", "GL0001"),
            "--select: no rule has the code 'GL0001'; did you mean 'GL001'?",
        ),
        (("check", "--output-format", "jsom"), "did you mean 'json'?"),
        (
            ("check", "--fail-on", "warn"),
            "--fail-on: must be one of note, warning, error, never, not 'warn'",
        ),
        (("check", "--jobs", "0"), "--jobs"),
        (("check", "trian.py"), "trian.py: no such file or folder; did you mean 'train.py'?"),
        (("check", "empty"), "nothing to check: no Python file under empty"),
        (
            ("check", "--output-file", "no/such/folder"),
            "--output-file: no/such/folder cannot be written",
        ),
        (("rule", "GL0001"), "no rule has the code or name 'GL0001'; did you mean 'GL001'?"),
    ],
)
def test_what_cannot_be_done_exits_with_2_and_one_clear_line(
    folder: pathlib.Path, run: Run, arguments: tuple[str, ...], complaint: str
) -> None:
    (folder / "train.py").write_text("x = 1\n")
    (folder / "empty").mkdir()
    ran = run(*arguments)
    assert ran.code == 2
    assert complaint in ran.err
    assert ran.err.startswith("gradlint: ")
    assert ran.err.count("\n") == 1
    assert ran.out == ""


def test_a_bad_setting_exits_with_2(folder: pathlib.Path, run: Run) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nselct = []\n")
    (folder / "a.py").write_text("")
    ran = run("check")
    assert ran.code == 2
    assert (
        ran.err == "gradlint: pyproject.toml: [tool.gradlint] has no setting 'selct'; did you mean "
        "'select'?\n"
    )


def test_standard_input_is_checked_under_the_name_it_is_given(
    folder: pathlib.Path, run: Run
) -> None:
    ran = run(
        "check", "-", "--stdin-filename", "src/train.py", "--output-format", "concise", stdin=BROKEN
    )
    assert ran.code == 1
    assert ran.out.startswith("src/train.py:1:7: error[GL001]")
    assert run("check", "-", stdin="x = 1\n").code == 0


def test_standard_input_obeys_the_settings_of_its_name(folder: pathlib.Path, run: Run) -> None:
    (folder / "pyproject.toml").write_text(
        "[tool.gradlint.per-file-ignores]\n'tests/' = ['GL001']\n"
    )
    assert run("check", "-", "--stdin-filename", "tests/test_a.py", stdin=BROKEN).code == 0
    assert run("check", "-", "--stdin-filename", "src/a.py", stdin=BROKEN).code == 1


def test_suppressions_are_heard(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text("def f(:  # gradlint: ignore[GL001] a template\n")
    assert run("check").code == 0
    (folder / "a.py").write_text("x = 1  # gradlint: ignore[GL001]\n")
    assert "warning[GL002]" in run("check").out


def test_what_is_found_from_a_file_that_is_not_checked_is_not_called_unused(
    folder: pathlib.Path, run: Run
) -> None:
    package = folder / "net"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "losses.py").write_text(
        "def far(x, y):\n    return (x.detach() - y).mean()  # gradlint: ignore[GL102] why\n"
    )
    script = (
        "import torch\nfrom net.losses import far\nm = torch.nn.Linear(2, 1)\n"
        "far(m(torch.ones(2)), 1).backward()\n"
    )
    (folder / "train.py").write_text(script)
    assert run("check").code == 0
    assert run("check", "net/losses.py").code == 0
    (folder / "train.py").write_text(script.replace("net.losses", "net.others"))
    assert "warning[GL002]" in run("check", "net/losses.py").out
    (folder / "train.py").write_text(script)
    (package / "losses.py").write_text(
        "def far(x, y):\n    return (x - y).mean()  # gradlint: ignore[GL102] why\n"
    )
    assert "warning[GL002]" in run("check").out


def test_rules_can_be_chosen(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text("x = 1  # gradlint: ignore[GL001] # noqa: GL998\n")
    assert [each["code"] for each in json.loads(run("check", "--output-format", "json").out)] == [
        "GL002",
        "GL003",
    ]
    only = run("check", "--select", "GL003,GL001", "--output-format", "json")
    assert [each["code"] for each in json.loads(only.out)] == ["GL003"]
    assert json.loads(run("check", "--ignore", "GL00", "--output-format", "json").out) == []


def test_severities_decide_what_is_shown_and_what_fails(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text("x = 1  # noqa: GL998\n")
    assert run("check").code == 1
    assert run("check", "--fail-on", "error").code == 0
    assert run("check", "--fail-on", "never").code == 0
    hidden = run("check", "--min-severity", "error")
    assert (hidden.code, hidden.out) == (0, "Nothing found in 1 file.\n")


def test_the_report_can_go_to_a_file(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text(BROKEN)
    ran = run("check", "--output-file", "report.txt")
    assert (ran.code, ran.out) == (1, "")
    assert "error[GL001]" in (folder / "report.txt").read_text()


def test_force_exclude_says_that_it_left_everything_out(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text(BROKEN)
    ran = run("check", "a.py", "--exclude", "a.py", "--force-exclude")
    assert ran.code == 0
    assert "nothing to check" in ran.err


BRANCHES = (
    """\
import torch
def train(model, optimizer, batch, flags):
    loss = model(batch).mean()
"""
    + "".join(
        f"    if flags.with_{number}:\n        loss = loss + {number} * loss\n"
        for number in range(60)
    )
    + """\
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)


def test_paths_that_the_budget_leaves_out_are_a_gap(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text(BRANCHES)
    assert "a.py:2:1: gap[paths] train\n" in run("check", "--no-cache", "--gaps").err


@pytest.mark.parametrize("options", [
    ["--unsafe-fixes"], ["--fix", "--write-baseline", "b.json"],
    ["--write-baseline", "b.json", "--add-ignore", "why"],
    ["--diff", "--gaps"], ["--statistics", "--output-format", "sarif"],
    ["--fix", "--add-ignore", "why"],
])  # fmt: skip
def test_options_that_would_do_nothing_beside_others_are_refused(
    folder: pathlib.Path, run: Run, options: list[str]
) -> None:
    (folder / "a.py").write_text("x = 1\n")
    ran = run("check", *options)
    assert (ran.code, ran.out) == (2, "")
    assert not (folder / "b.json").exists()


PART = (
    "from torch import nn\nclass Block(nn.Module):\n    def forward(self, x):\n"
    "        y = x.exp()\n        "
)


def test_parts_are_left_out_by_an_option_or_by_settings(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text(f"{PART}y += 1\n        return y\n")
    (folder / "b.py").write_text(f"{PART}y += 1\n        return y\n")

    def found(*options: str) -> list[str]:
        said = run("check", "--output-format", "concise", *options).out.splitlines()
        return [line.partition(":")[0] for line in said if "GL201" in line]

    assert found() == ["a.py", "b.py"]
    assert found("--no-parts") == []
    assert found() == ["a.py", "b.py"]
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nexclude-parts = ['a.py']\n")
    assert found() == ["b.py"]
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nparts = false\n")
    assert found() == []


def test_a_part_that_was_given_up_is_a_gap(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text(f"{PART}y += 1\n        raise TypeError\n")
    assert "a.py:3:1: gap[part] Block.forward: every path raises\n" in run("check", "--gaps").err
    assert "0 gaps in all" in run("check", "--gaps", "--no-parts").err


def test_gaps_are_counted_on_standard_error(folder: pathlib.Path, run: Run) -> None:
    (folder / "a.py").write_text("x = 1\n")
    assert run("check", "--gaps").err.endswith("0 gaps in all\n")


@pytest.mark.parametrize("name", ["GL001", "gl001", "syntax-error"])
def test_the_page_of_a_rule_is_printed(run: Run, name: str) -> None:
    assert run("rule", name).out.startswith("# syntax-error (GL001)\n")


def test_all_rules_are_listed(run: Run) -> None:
    lines = run("rule").out.splitlines()
    assert "GL002  warning  unused-suppression" in lines
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("environment", "colored"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_are_for_terminals(
    folder: pathlib.Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    colored: bool,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (folder / "a.py").write_text(BROKEN)
    assert ("\x1b[" in run("check").out) == colored


def test_the_command_and_the_module_say_the_version() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "gradlint", "--version"], capture_output=True, text=True, check=True
    )
    assert ran.stdout == f"gradlint {__version__}\n"


def test_a_reader_who_leaves_early_sees_no_traceback(folder: pathlib.Path) -> None:
    for number in range(300):
        (folder / f"broken_{number}.py").write_text(BROKEN)
    script = f"{sys.executable} -m gradlint check | head -n 1"
    ran = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={**os.environ}, check=True
    )
    assert ran.stderr == ""


NO_ROUTE = """\
import torch
from torch import nn
from losses import loss_of

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = loss_of(model(torch.randn(4, 2)))
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""
CUTS = "def loss_of(output):\n    return output.detach().mean()\n"


def test_a_finding_in_an_imported_file_is_reported_where_it_is(
    folder: pathlib.Path, run: Run
) -> None:
    (folder / "train.py").write_text(NO_ROUTE)
    (folder / "losses.py").write_text(CUTS)
    ran = run("check", "--output-format", "concise")
    assert ran.code == 1
    assert ran.out.startswith("losses.py:2:")
    assert "error[GL102]" in ran.out


def test_a_finding_in_an_imported_file_obeys_the_comments_there(
    folder: pathlib.Path, run: Run
) -> None:
    (folder / "train.py").write_text(NO_ROUTE)
    (folder / "losses.py").write_text(
        CUTS.replace("mean()", "mean()  # gradlint: ignore[GL102] frozen on purpose")
    )
    assert run("check").code == 0


@pytest.mark.parametrize("option", ["--no-cache", "--fix"])
def test_what_a_bug_of_gradlint_hides_is_told(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run: Run, option: str
) -> None:
    (folder / "train.py").write_text("import torch\n\ntorch.zeros(3).sum().backward()\n")
    assert run("check", option, "train.py").code == 1
    monkeypatch.setattr(analyzer, "run_entry", lambda *given: 1 / 0)
    (folder / "train.py").write_text("import torch\n\ntorch.ones(3).sum().backward()\n")
    ran = run("check", option, "train.py")
    assert ran.code == 0
    assert "a bug in gradlint kept it from analysing 1 place" in ran.err
    assert "gap[internal]" in run("check", "--no-cache", "--gaps", "train.py").err
