"""Programs in a newer Python than the one that runs gradlint: libcst reads them, and its tree is
Python's own.
"""

from __future__ import annotations

import ast
import json
import pathlib
import sys
import sysconfig

import libcst
import pytest
from commandline import Run
from mended import HEAD
from newer_trees import TEXTS, WRITTEN, written
from readers import difference, drawn, trees

from gradlint.source import concrete
from gradlint.source.comments import comments
from gradlint.source.parse import Source, SyntaxFault, expression, parse

HEADER = "".join(line[1:] + "\n" for line in HEAD.splitlines())
DETACHED = HEADER + "loss = model(data[0][0]).detach().sum()\nloss.backward()\n"
NEWER = {
    "type parameters (3.12)": "def first[T](xs: list[T]) -> T:\n    return xs[0]\n"
    "type Batch = list[torch.Tensor]\n",
    "defaults of type parameters (3.13)": "class Box[T = int, *Ts = *tuple[int], **P = [int]]:\n"
    "    pass\n",
    "quotes within an f-string (3.12)": 'lr = {"lr": 0.1}\nprint(f"lr {lr["lr"]:{"."}3f}")\n',
    "lines within an f-string (3.12)": "lr = 1\nprint(f'{\n    lr  # the rate\n}')\n",
    "a t-string (3.14)": 'name = "a"\nmessage = t"model {name!r:>{10}} {name=} é"\n',
    "exceptions without parentheses (3.14)": "try:\n    pass\nexcept ValueError, RuntimeError:\n"
    "    raise\n",
    "an unpacking comprehension (3.15)": "xs = [*ys for ys in [[1], [2]]]\n"
    "d = {**e for e in [{1: 2}]}\n",
    "a lazy import (3.15)": "lazy import json\nlazy from os import path\n",
}
ODD = {
    "parentheses": "((a)).b((c))[((d))] = (((e, f),), (g), ()) = (yield), ((h))\n(i)\n",
    "tuples": "a = 1,\nb = 1, 2 ,\nfor c, in d, e: pass\nx[1, 2:3 , ::4, ...,]\nx[ : ]\nx[*a]\n"
    "x[a, :\n]\nx[a, 1:(b) \n]\nx[a, ::  ]\n"
    "return_ = *a, b\n",
    "semicolons": "if a: b; c ;\nclass D: e; f\ntry: g;\nfinally: h ; \n",
    "generators": "f  ( a for a in b )\nf((a for a in b))\n(f # c\n"
    "(a for a in b if c if d for e in f))\n",
    "strings": "u'a' 'b'\nb'a' b'\\x00'\n'a' f'{b}' 'c' rf'\\d{e}\\{f}'\nf''\n"
    "f'\\{a}{{}} \\N{EM DASH} {b!r:>{c}.{d}}{e = !s}{f=}'\n"
    "f'''a\"{b}\nc'''\n",
    "characters": "é = 'ü', f'{é}', ｘ\nclass ñ(é, ü=1): pass\n",
    "parameters": "def f(a, /, b: int = 1, *c: str, d, e=2, **f: (3)) -> (None): pass\n"
    "lambda *, a=1, **b: (a)\n",
    "calls": "f(*a, b, c=1, **d)\nclass A(*b, metaclass=c, **d): pass\n",
    "decorators": "@(a)\n@b.c(1)\n# between\nasync def f(): await (g); return\n",
    "chains": "a and b and (c and d) and e or f or g\na < b <= c is not d not in e\n-a ** -b\n"
    "not (not c)\n",
    "clauses": "if a:\n  b\nelif c: d\nelse:\n  e\nwhile a: break\nelse: continue_\n"
    "for a in b: continue\nelse: c;\n",
    "handlers": "try: a\nexcept: b\ntry: a\nexcept (b): c\nelse: d\nfinally: e\ntry: a\n"
    "except* b as c: d\n",
    "contexts": "with (a, b): pass\nwith (a, b) as c: pass\nwith (a as b, c,): pass\n"
    "async def f():\n  async with a: pass\n",
    "imports": "import a.b as c , d\nfrom . import (e as f,)\nfrom ...g.h import *\n"
    "from .. import i;\n",
    "statements": "del (a), b[0]\ndel (a, b)\ndel c,\nassert a , b\nraise a from (b)\nraise\n"
    "x: int\n"
    "x.y: (int) = 1\n",
    "scopes": "def f():\n  global a , b\n  def g():\n    nonlocal c\n    yield from (c)\n"
    "    return (yield)\n",
    "patterns": "match a, b:\n  case (1): pass\n  case [b, *_] | (c, d) | e.f: pass\n"
    "  case {'a': 1, **r} if s: pass\n"
    "  case G(h, i=j) as k: pass\n  case -1 + 2j | None | 'a' 'b': pass\n"
    "  case l, * m , : pass\n  case _: pass;\n",
    "white space": "if a:\n\tb \\\n\t  . c\n\x0c\nd\n# end",
    "line ends": "a = '''b\r\nc'''\r\nif d:\r\n    e = f'''g\r\n{h}'''\r\n",
    "nothing": "",
}


def codes(run: Run, path: pathlib.Path) -> list[str]:
    return [
        each["code"]
        for each in json.loads(run("check", "--no-cache", "--output-format", "json", str(path)).out)
    ]


# the tree


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_the_tree_of_libcst_is_that_of_python(text: str) -> None:
    python = parse("train.py", text)
    assert isinstance(python, Source)
    assert difference(text, python.tree) == ""


@pytest.mark.parametrize("text", NEWER.values(), ids=NEWER)
def test_the_tree_of_newer_syntax_is_that_of_a_newer_python(text: str) -> None:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        assert isinstance(concrete.parse(text), ast.Module)
    else:
        assert difference(text, tree) == ""


@pytest.mark.parametrize(
    ("text", "wanted"), [*zip(TEXTS, WRITTEN.read_text("utf-8").splitlines(), strict=True)]
)
def test_the_tree_of_newer_syntax_is_that_of_python_3_15(text: str, wanted: str) -> None:
    assert written(concrete.parse(text)) == wanted


def test_both_readers_give_the_same_tree_of_files_of_the_standard_library() -> None:
    """A few of them, others for each change of theirs; `benchmarks/readers.py` compares thousands.

    libcst does not read all of them: `(name): bool = True`.
    """
    files = pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")
    small = [
        path for path in files if "site-packages" not in path.parts and path.stat().st_size < 12_000
    ]
    found, unread = {}, []
    for path, text, tree in trees(drawn(small, 40)):
        try:
            found[path] = difference(text, tree)
        except libcst.ParserSyntaxError:
            unread.append(path)
    assert {path: found[path] for path in found if found[path]} == {}
    assert len(unread) <= 2, unread


# what is found


@pytest.mark.parametrize("body", NEWER.values(), ids=NEWER)
def test_a_program_in_a_newer_python_is_checked(
    body: str, tmp_path: pathlib.Path, run: Run
) -> None:
    path = tmp_path / "train.py"
    path.write_text(body + DETACHED)
    (found,) = json.loads(run("check", "--no-cache", "--output-format", "json", str(path)).out)
    lines = (body + DETACHED).split("\n")
    assert (found["code"], found["location"]) == ("GL102", {"row": len(lines) - 2, "column": 8})


@pytest.mark.parametrize(
    "body", ["xs = [x async for x in g()]\n", "try:\n    pass\nexcept* ValueError:\n    pass\n"]
)
def test_a_program_in_the_syntax_of_the_oldest_python_is_checked(
    body: str, tmp_path: pathlib.Path, run: Run
) -> None:
    path = tmp_path / "train.py"
    path.write_text(DETACHED + (f"async def f():\n    {body}" if "async" in body else body))
    assert codes(run, path) == ["GL102"]


def test_what_newer_syntax_means_is_followed(tmp_path: pathlib.Path, run: Run) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        HEADER
        + "kept = []\n"
        + "layers = torch.nn.ModuleList([*[torch.nn.Linear(3, 3)] for _ in range(2)])\n"
        + "more = {**{name: layer} for name, layer in layers.named_children()}\n"
        + "for x, y in data:\n"
        + "    optimizer.zero_grad()\n"
        + "    loss = F.cross_entropy(model(x), y)\n"
        + "    loss.backward()\n"
        + "    optimizer.step()\n"
        + '    kept.append(t"{loss}")\n'
    )
    assert codes(run, path) == ["GL508"]
    assert "0 gaps" in run("check", "--no-cache", "--gaps", str(path)).err


def test_comments_suppress_in_newer_syntax(tmp_path: pathlib.Path, run: Run) -> None:
    head = (
        'mark = {"#": 1}\nprint(f"{mark["#"]} # gradlint: ignore[GL101]")\nprint(t"{mark["#"]}")\n'
    )
    path = tmp_path / "train.py"
    path.write_text(
        head + DETACHED.replace("sum()\n", "sum()  # gradlint: ignore[GL102] on purpose\n")
    )
    assert codes(run, path) == []


@pytest.mark.parametrize(
    "text",
    [
        'f"{a["#"]} # b"  # c\n',
        "f'{\n    a  # b\n}'  # c\n",
        't"{a["# b"]}"  # c\n',
        'f"}} {a:{b["# }}"]}}"  # c\n',
    ],
)
def test_comments_are_told_from_strings_in_newer_strings(text: str) -> None:
    assert [each.text for each in comments(text)][-1] == "# c"
    assert len(comments(text)) == 1 + text.startswith("f'")


def test_a_program_in_a_newer_python_is_mended(tmp_path: pathlib.Path, run: Run) -> None:
    body = 'print(f"{"a"}")  # kept\ntype T = int\n'
    path = tmp_path / "train.py"
    path.write_text(body + DETACHED)
    run("check", "--no-cache", "--fix", "--unsafe-fixes", str(path))
    assert path.read_text() == body + DETACHED.replace(".detach()", "")


def test_a_program_in_a_newer_python_takes_suppressions(tmp_path: pathlib.Path, run: Run) -> None:
    path = tmp_path / "train.py"
    path.write_text('print(f"{"a"}")\n' + DETACHED)
    run("check", "--no-cache", "--add-ignore", "on purpose", str(path))
    assert "sum()  # gradlint: ignore[GL102] on purpose\n" in path.read_text()


def test_cells_of_a_notebook_in_a_newer_python_are_checked(
    tmp_path: pathlib.Path, run: Run
) -> None:
    cells = [
        '%matplotlib inline\nx = f"{"a"}"\n!ls\ny = """\n%time\n"""\n',
        DETACHED + "type T = int",
    ]
    notebook = {"nbformat": 4, "cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    path = tmp_path / "nb.ipynb"
    path.write_text(json.dumps(notebook))
    found = run("check", "--no-cache", "--output-format", "concise", str(path)).out
    assert f"nb.ipynb:cell 2:{DETACHED.count(chr(10)) - 1}:8: error[GL102]" in found
    run("check", "--no-cache", "--fix", "--unsafe-fixes", str(path))
    mended = [cell["source"] for cell in json.loads(path.read_text())["cells"]]
    assert mended == [cells[0], cells[1].replace(".detach()", "")]


# what neither reads


def fault(text: str) -> SyntaxFault:
    found = parse("train.py", text)
    assert isinstance(found, SyntaxFault)
    return found


def test_a_fault_behind_newer_syntax_is_reported_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = fault(
        "type T = int\nlazy import json\n\n\nclass A:\n    def f(self):\n        return 1 +\n"
        "\nx = 1\n"
    )
    assert (found.at.line, found.at.column, found.message) == (7, 9, "invalid syntax")
    assert "; the file is for a newer one: a lazy import (Python 3.15)" in found.help


def test_a_fault_says_which_python_gradlint_runs_on() -> None:
    assert (
        fault("x = 5 5\n").help
        == f"gradlint runs on Python {sys.version_info[0]}.{sys.version_info[1]}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "print 'x'\n", "x = (1,\n", "f() = 1\n", "def f(a=1, b): pass\n", "f(a=1, b)\n",
        "x = 'abc\n", "x = $\n",
        "if x:\n  a\n b\n", "x = '\\N{no such}'\n", "b'é'\n", "'a' b'b'\n", "a <> b\n",
        "x = 0777\n", "f'{}'\n",
        "raise E, 'x'\n", "type T = int\n1 = 2\n", "type T = '\\N{no such}'\n",
        "type T = " + "9" * 5000 + "\n",
    ],
)  # fmt: skip
def test_what_no_python_reads_stays_a_fault(text: str) -> None:
    assert fault(text).message


def test_an_expression_in_newer_syntax_is_read() -> None:
    assert ast.unparse(expression('(f"{a["b"]}")')).startswith("f")
    with pytest.raises(SyntaxError):
        expression("a b")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000 + ")" * 5_000,
        "not " * 20_000 + "a",
        "a" + ".b" * 20_000,
        "match a:\n    case " + "[" * 40 + "]" * 40 + ": pass",
        "if a: pass\n" + "elif a: pass\n" * 20_000,
    ],
    ids=["brackets", "negations", "attributes", "patterns", "clauses"],
)
def test_what_would_take_libcst_too_long_is_not_given_to_it(text: str) -> None:
    assert isinstance(concrete.read(f"type T = int\n{text}\n"), concrete.Refused)


def test_a_panic_of_the_parser_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """What pyo3 makes of a panic."""

    def panic(_: str) -> None:
        raise PanicException("unreachable")

    monkeypatch.setattr("libcst.parse_module", panic)
    assert concrete.read("type T = int\n") == concrete.Refused(None)


def test_a_node_that_libcst_will_have_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("gradlint.source.concrete.statements._Statements._TypeAlias")
    assert concrete.read("type T = int\n") == concrete.Refused(None)


def test_a_source_of_this_python_is_not_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concrete, "read", pytest.fail)
    assert isinstance(parse("train.py", DETACHED), Source)
