"""Programs of several files: what the interpreter says of their `result` is what Python gives, as
far as it says anything.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from test_library_python import shown
from test_python_programs import agrees, unsaid

from gradlint import library
from gradlint.interpret.machine import Machine
from gradlint.interpret.paths import Oracle
from gradlint.interpret.scopes import Frame
from gradlint.interpret.session import Session
from gradlint.program.modules import Program

TREES = {
    "names imported": {
        "main.py": "import a, b as c\nfrom a import x as y, f\nresult = (a.x, c.z, y, f(2), a.f(3))",
        "a.py": "x = 1\ndef f(n):\n    return x + n",
        "b.py": "from a import x\nz = x * 10",
    },
    "everything imported": {
        "main.py": "from a import *\nresult = (x, f(), z, hidden())",
        "a.py": "from b import *\nx = 1\n_y = 2\ndef f():\n    return _y\ndef hidden():\n"
        "    return _own()\ndef _own():\n    return 'own'",
        "b.py": "z = 3",
    },
    "a package": {
        "main.py": "import pkg\nfrom pkg import core, deep\nfrom pkg.deep.leaf import up, same\n"
        "result = (pkg.f(1), core.f(2), pkg.util.g(), up(), same, deep.NAME)",
        "pkg/__init__.py": "from . import util\nfrom .core import f",
        "pkg/core.py": "from .util import g\ndef f(n):\n    return g() + n",
        "pkg/util.py": "def g():\n    return 100",
        "pkg/deep/__init__.py": "NAME = 'deep'",
        "pkg/deep/leaf.py": "from ..core import f\nfrom .. import util\n"
        "from . import NAME as same\ndef up():\n"
        "    return f(util.g())",
    },
    "a module with dots": {
        "main.py": "import pkg.sub.leaf\nimport pkg.sub.leaf as leaf\n"
        "result = (pkg.sub.leaf.x, leaf.x, pkg.sub.y)",
        "pkg/__init__.py": "",
        "pkg/sub/__init__.py": "y = 2",
        "pkg/sub/leaf.py": "x = 1",
    },
    "a folder without a file of its own": {
        "main.py": "from space.leaf import x\nresult = x",
        "space/leaf.py": "x = 4",
    },
    "a module that is written to": {
        "main.py": "import a\nbefore = a.f()\na.n = 5\nresult = (before, a.f(), a.n)\na.count()\n"
        "result += (a.n,)",
        "a.py": "n = 1\ndef f():\n    return n\ndef count():\n    global n\n    n += 1",
    },
    "modules that import each other": {
        "main.py": "import a\nresult = (a.f(3), a.b.g(0))",
        "a.py": "import b\ndef f(n):\n    return b.g(n - 1) if n else 'a'",
        "b.py": "def g(n):\n    import a\n    return a.f(n - 1) if n else 'b'",
    },
    "what may be missing": {
        "main.py": "try:\n    from a import fast as run\nexcept ImportError:\n"
        "    from a import slow as run\ntry:\n    import a\nexcept ImportError:\n"
        "    a = None\nresult = (a.slow(), a is None)",
        "a.py": "def slow():\n    return 'slow'",
    },
    "what is defined under a condition": {
        "main.py": "from a import f, g, h\nresult = (f(), g(), h)",
        "a.py": "import sys\nif sys.version_info >= (3, 0):\n    def f():\n        return 'new'\n"
        "else:\n    def f():\n        return 'old'\ntry:\n    g = f\nfinally:\n    pass\n"
        "with open('/dev/null') as null:\n    h = g()",
    },
    "a module that is a script as well": {
        "main.py": "import a\nresult = (a.x, a.__name__)",
        "a.py": "x = 1\nif __name__ == '__main__':\n    x = 2",
    },
    "names that need each other": {
        "main.py": "import a\nfrom a import z\nresult = (z, a.f(), a.y)",
        "a.py": "def f():\n    return x + g()\nz = len('abc')\nx = z * 2\ny, w = x + 1, x\n"
        "def g():\n"
        "    return w",
    },
    "what is registered in another file": {
        "main.py": "from a import TABLE, register, make\nimport b\n"
        "result = (sorted(TABLE), make('one'), make('two'))",
        "a.py": "TABLE = {}\ndef register(name):\n    def put(f):\n        TABLE[name] = f\n"
        "        return f\n    return put\ndef make(name):\n    return TABLE[name]()\n"
        "@register('one')\ndef one():\n    return 1\nTABLE['three'] = one",
        "b.py": "from a import register\n@register('two')\ndef two():\n    return 2",
    },
    "classes of other files": {
        "main.py": "from b import B\nimport a\nb = B(2)\nresult = (b.f(), isinstance(b, a.A), "
        "B.kind, "
        "a.A.made, type(b).__name__)",
        "a.py": "class A:\n    kind = 'a'\n    made = 0\n    def __init__(self, n):\n"
        "        self.n = n\n        A.made += 1\n    def f(self):\n"
        "        return self.n + self.more()\n    def more(self):\n        return 0",
        "b.py": "import a\nclass B(a.A):\n    kind = 'b'\n    def more(self):\n"
        "        return 10 + super().more()",
    },
    "imported where it is needed": {
        "main.py": "def f():\n    from a import x\n    import b\n    return x, b.y\nclass C:\n"
        "    from a import x\n    def g(self):\n        return self.x\n"
        "result = (f(), C().g(), C.x)",
        "a.py": "x = 1",
        "b.py": "y = 2",
    },
    "imported for types alone": {
        "main.py": "from __future__ import annotations\nfrom typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from a import A\nfrom a import make\ndef f(x: A) -> A:\n"
        "    return x\nresult = f(make(3)).n",
        "a.py": "class A:\n    def __init__(self, n):\n        self.n = n\ndef make(n) -> 'A':\n"
        "    return A(n)",
    },
    "shared between files": {
        "main.py": "import a, b\nb.register('x', 1)\na.items.append(3)\n"
        "result = (a.table, b.table is a.table, b.items, a.items)",
        "a.py": "table = {}\nitems = [2]",
        "b.py": "from a import table, items\ndef register(name, value):\n    table[name] = value",
    },
    "beside a module of the standard library": {
        "main.py": "import json\nimport queue_\nfrom collections import OrderedDict\n"
        "result = (queue_.x, isinstance(OrderedDict(), dict), json.__name__)",
        "queue_.py": "import queue\nx = 5",
    },
}
# Of how many values in a result nothing is said:
UNSAID: dict[str, int] = {}


def said(main: Path) -> object:
    """What the first path through a script leaves as `result`."""
    library.load()
    program = Program(lambda path: _read(path) if path.is_file() else None)
    found = program.source(main)
    assert found is not None
    machine = Machine("main", Oracle(frozenset(), {}), Session(program))
    frame = Frame(found.code, {})
    machine.frames.append(frame)
    machine.execute(found.statements, frame)
    return shown(frame.locals.get("result"))


def _read(path: Path) -> tuple[str, ast.Module]:
    text = path.read_text()
    return text, ast.parse(text)


def true(main: Path) -> object:
    """What Python gives."""
    script = (
        "import runpy, sys; sys.path.insert(0, sys.argv[1]); "
        "print(repr(runpy.run_path(sys.argv[2])['result']))"
    )
    command = [sys.executable, "-B", "-c", script, str(main.parent), str(main)]
    run = subprocess.run(
        command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    return ast.literal_eval(run.stdout)


@pytest.mark.parametrize("name", TREES)
def test_what_is_said_of_a_tree_is_what_python_gives(name: str, tmp_path: Path) -> None:
    for file, text in TREES[name].items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    given = said(tmp_path / "main.py")
    assert given is not ...
    assert agrees(given, true(tmp_path / "main.py")), given
    assert unsaid(given) <= UNSAID.get(name, 0)
