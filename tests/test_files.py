"""Which files are checked, which can matter, and how bytes become a tree."""

import pathlib
import subprocess
import time

import pytest

from gradlint.finding import Span
from gradlint.ignore import Patterns
from gradlint.settings import Settings
from gradlint.source.files import discover
from gradlint.source.lines import split_lines
from gradlint.source.parse import Source, SyntaxFault, decode, parse
from gradlint.source.screen import can_matter, gist, module_name, screen


def tree(root: pathlib.Path, *files: str, **texts: str) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


def found(root: pathlib.Path, *paths: str, **settings: object) -> list[str]:
    """What is found under `paths` in `root`, as paths in `root`."""
    values = Settings(root, **settings)  # type: ignore[arg-type]
    files = discover([root / path for path in paths or (".",)], lambda folder: values).files
    return [file.relative_to(root).as_posix() for file in files]


def test_python_files_are_found_in_order_and_once(tmp_path: pathlib.Path) -> None:
    tree(tmp_path, "b.py", "a/z.py", "a/b/c.py", "a/notes.txt", "a/stub.pyi")
    assert found(tmp_path, ".", "a", "b.py") == ["a/b/c.py", "a/z.py", "b.py"]


def test_a_file_that_is_named_is_taken_whatever_its_name(tmp_path: pathlib.Path) -> None:
    tree(tmp_path, "train", ".venv/x.py")
    assert found(tmp_path, "train", ".venv/x.py") == [".venv/x.py", "train"]


def test_installed_packages_and_environments_are_left_out(tmp_path: pathlib.Path) -> None:
    tree(
        tmp_path,
        "a.py",
        ".venv/lib/b.py",
        "env/site-packages/c.py",
        ".git/d.py",
        "node_modules/e.py",
    )
    assert found(tmp_path) == ["a.py"]


def test_a_folder_that_is_left_out_is_checked_when_asked_for(tmp_path: pathlib.Path) -> None:
    tree(tmp_path, "site-packages/pkg/a.py", "site-packages/pkg/node_modules/b.py")
    assert found(tmp_path, "site-packages") == ["site-packages/pkg/a.py"]
    assert found(tmp_path, "site-packages/pkg") == ["site-packages/pkg/a.py"]


def test_exclude_patterns_are_those_of_a_gitignore(tmp_path: pathlib.Path) -> None:
    tree(tmp_path, "a.py", "gen/a.py", "src/gen/b.py", "src/c.py", "src/d_pb2.py")
    assert found(tmp_path, extend_exclude=("/gen", "*_pb2.py")) == [
        "a.py",
        "src/c.py",
        "src/gen/b.py",
    ]


def test_force_exclude_leaves_out_a_named_file(tmp_path: pathlib.Path) -> None:
    tree(tmp_path, "a.py", "gen/b.py")
    assert found(tmp_path, "a.py", "gen/b.py", extend_exclude=("gen",), force_exclude=True) == [
        "a.py"
    ]


def test_gitignore_is_heard_as_git_hears_it(tmp_path: pathlib.Path) -> None:
    tree(
        tmp_path,
        "a.py",
        "out/b.py",
        "src/c.py",
        "src/gen_d.py",
        "src/keep/gen_e.py",
        "src/deep/out/f.py",
        "x/y/z.py",
    )
    (tmp_path / ".gitignore").write_text("out/\n/x/y\n# a comment\n")
    (tmp_path / "src" / ".gitignore").write_text("gen_*.py\n")
    (tmp_path / "src" / "keep" / ".gitignore").write_text("!gen_e.py\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "*.py"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    assert found(tmp_path) == sorted(listed) == ["a.py", "src/c.py", "src/keep/gen_e.py"]
    assert found(tmp_path, "src") == ["src/c.py", "src/keep/gen_e.py"]


def test_gitignore_can_be_switched_off(tmp_path: pathlib.Path) -> None:
    tree(tmp_path, "a.py")
    (tmp_path / ".gitignore").write_text("*.py\n")
    assert found(tmp_path) == []
    assert found(tmp_path, respect_gitignore=False) == ["a.py"]


PATHS = (
    "a", "ab", "b.py", "d/a", "d/b.py", "d/e/a", "d/e/ab", "d/e/f/b.py", "e/[x]", "e/-", "e/a b",
    "e/x ", "e/!c",
    "e/#c",
)  # fmt: skip
PATTERNS = (
    "a", "a*", "*b", "?", "d/", "d/*", "/a", "/d/**", "d/**/b.py", "**/e", "**/e/a", "d/**/**/a",
    "d/e/", "*.py/",
    "**", "/**", "***", "d**a", "d/*/a", "*/**//**", "[ab]", "[!a]", "[^a]*", "[a-c]*", "[c-a]",
    "[]-]", "[[x]x]",
    "[[:alpha:]]", "[[:nothing:]]a", "[a", "e/[[]x[]]", "\\a", "e/\\!c", "e/\\#c", "a\\", "x\\ ",
    "x ", "a b  ",
    "#c", "!c", "\\!c", "/", "//", "d//e", "",
)  # fmt: skip


@pytest.mark.parametrize("taken_back", ["", "!a", "!d/e/", "!b.py"])
def test_each_pattern_means_what_it_means_to_git(tmp_path: pathlib.Path, taken_back: str) -> None:
    tree(tmp_path, *PATHS)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for pattern in PATTERNS:
        (tmp_path / ".git/info/exclude").write_text(f"{pattern}\n{taken_back}\n")
        command = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout
        patterns = Patterns.valid([pattern, taken_back])
        assert {path for path in PATHS if not patterns.leaves_out(path)} == set(
            listed.split("\0")
        ) - {""}, pattern


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("**/a/" * 40 + "b", "a/" * 500 + "c"),
        ("**/*a*a*a*/" * 20 + "b", ("a" * 50 + "/") * 60 + "c"),
        ("*?" * 100 + "b", "a" * 250),
        ("*[a-c]" * 100 + "d", "abc" * 80),
    ],
)
def test_a_pattern_of_many_stars_takes_no_time(pattern: str, path: str) -> None:
    began = time.process_time()
    assert not Patterns.of([pattern]).leaves_out(path)
    assert time.process_time() - began < 5  # seconds, of which some hundredths are taken


def test_a_folder_taken_back_by_its_own_gitignore_is_taken_back_with_all_in_it(
    tmp_path: pathlib.Path,
) -> None:
    tree(tmp_path, ".git/HEAD", "gen_a/x.py", "src/gen_a/y.py")
    (tmp_path / ".gitignore").write_text("gen_*\n")
    (tmp_path / "src" / ".gitignore").write_text("!gen_a/\n")
    assert found(tmp_path) == ["src/gen_a/y.py"]


def test_a_circle_of_links_ends(tmp_path: pathlib.Path) -> None:
    tree(tmp_path, "a/b.py")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    assert found(tmp_path) == ["a/b.py"]


def test_a_file_and_a_link_to_it_are_one_file(tmp_path: pathlib.Path) -> None:
    tree(tmp_path, "a.py")
    (tmp_path / "b.py").symlink_to(tmp_path / "a.py")
    assert found(tmp_path) == ["a.py"]


@pytest.mark.parametrize(
    "program",
    [
        b"loss.backward()",
        b"import torch\nloss = model(x)\n",
        b"import lightning as L\nclass M(L.LightningModule): pass\n",
        b"from transformers import Trainer\n",
        b"def step(self):\n    self.opt.zero_grad()\n",
        b"import torch.nn as nn\nclass Net(nn.Module): pass\n",
        b"import torch\nx.cuda()\n",
        b"import torch\ntotal += x.item()\n",
        b"import paddle, torch\nloss.backward()\n",
        b"class F(Function):\n    def forward(ctx, x): ctx.save_for_backward(x)\n",
    ],
)
def test_a_program_that_trains_passes_the_screen(program: bytes) -> None:
    assert can_matter(program)


@pytest.mark.parametrize(
    "program",
    [
        b"",
        b"import os\nprint(os.getcwd())\n",
        b"import torch\n__version__ = '1'\n",
        b"from mxnet import autograd\nloss.backward()\n",
    ],
)
def test_a_program_that_cannot_matter_does_not_pass_the_screen(program: bytes) -> None:
    assert not can_matter(program)


def screened(contents: dict[str, bytes]) -> tuple[str, ...]:
    modules = frozenset(map(module_name, contents))
    return screen({path: gist(content, modules) for path, content in contents.items()})


def test_whoever_imports_or_is_imported_by_a_file_that_matters_matters() -> None:
    contents = {
        "engine.py": b"from history import keep\ndef fit(loss): loss.backward()",
        "history.py": b"import deque_of\ndef keep(loss): LOSSES.append(loss)",
        "deque_of.py": b"",
        "pkg/__init__.py": b"from engine import fit",
        "main.py": b"import pkg\npkg.fit(0.0)",
        "docs.py": b"'''How engine works'''",
        "other.py": b"import os",
        "mx.py": b"from mxnet import autograd\nimport engine\ndef fit(loss): loss.backward()",
    }
    assert screened(contents) == (
        "engine.py",
        "history.py",
        "deque_of.py",
        "pkg/__init__.py",
        "main.py",
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xef\xbb\xbfx = '\xc3\xa9'\n", "x = 'é'\n"),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (b"x = 1\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
        (b"", ""),
    ],
)
def test_bytes_are_read_as_python_reads_them(content: bytes, text: str) -> None:
    assert decode("a.py", content) == text
    assert isinstance(parse("a.py", text), Source)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"x = 1\ny = '\xff'\n", 2, "not valid utf-8: invalid start byte"),
        (b"# coding: klingon\n", 1, "unknown encoding"),
        (b"# coding: rot13\n", 1, "rot13 is not a text encoding"),
        (b"# coding: undefined\n", 1, "not valid undefined"),
        (b"x = 1\ndef f(:\n", 2, "invalid syntax"),
        (b"x = '\x00'\n", 1, "null bytes"),
        (b"x = (\n", 1, "never closed"),
        (b"print 'python 2'\n", 1, "Missing parentheses"),
        (b"(" * 3000 + b")" * 3000, 1, "too many nested parentheses"),
        (b"-" * 100000 + b"1", 1, ""),
    ],
)
def test_what_is_not_python_is_a_fault_with_a_place(
    content: bytes, line: int, message: str
) -> None:
    text = decode("a.py", content)
    fault = parse("a.py", text) if isinstance(text, str) else text
    assert isinstance(fault, SyntaxFault)
    assert fault.at.line == line
    assert message in fault.message


def test_lines_are_pythons_lines() -> None:
    text = "a = 1\x0c\r\nb = '\u2028'\rc = 3"
    assert split_lines(text) == ("a = 1\x0c", "b = '\u2028'", "c = 3")
    source = parse("a.py", text)
    assert isinstance(source, Source)
    assert [node.lineno for node in source.tree.body] == [1, 2, 3]


def test_columns_count_characters() -> None:
    source = parse("a.py", "é, x = f('日本'), y\n")
    assert isinstance(source, Source)
    (assign,) = source.tree.body
    assert source.span(assign) == Span("a.py", 1, 1, 1, 18)


FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"


def test_the_screen_loses_no_finding_of_the_fixtures() -> None:
    contents = {str(path): path.read_bytes() for path in FIXTURES.rglob("*.py")}
    expecting = {path for path, content in contents.items() if b"# expect: " in content}
    assert expecting
    assert expecting <= set(screened(contents))
