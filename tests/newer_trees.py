"""Programs in newer Pythons, and the trees that Python 3.15 gives of them.

`python3.15 tests/newer_trees.py > tests/newer_trees.txt` writes these anew; any Python can compare
them.
"""

from __future__ import annotations

import ast
import pathlib

WRITTEN = pathlib.Path(__file__).with_suffix(".txt")
# fields that older Pythons do not list
_ADDED = {"type_params": [], "is_lazy": 0, "default_value": None}
TEXTS = (
    "def first[T](xs: list[T]) -> T:\n    return xs[0]\n",
    "type Batch[T: int = str, *Ts = *a, **P = [b]] = list[T]\n",
    "class A[T: (int, str), **P](B):\n    async def f[U](self): pass\n",
    'f"lr {lr["lr"]:{"."}3f} {lr!r:>{a}} {x = } {{}} {y=!s}é{z}"\n',
    "f'{\n    lr  # the rate\n}'\n",
    't"model {name!r:>{10}} {name=} é{b}"\nt""\n',
    "rt\"\\d{(a)  }{ b . c :x}\"\nt'''a\n{b}'''\n",
    't"{a}{b = !s:>{c}}{ d }{(yield)}"\n',
    "try: pass\nexcept A, B:\n    raise\nexcept (C, D) as e: pass\n",
    "try: a\nexcept* A, B.c: d\n",
    "[*ys for ys in z]\n{**e for e in z if e}\n{*a.b for a in c}\n(*a for a in b)\n",
    "lazy import json\nlazy from os import path as p, q\nlazy import a.b.c as d; x = 1\n"
    "lazy = 1\nimport e\n",
)


def written(node: object) -> str:
    """A node with its places and fields, the same from every Python."""
    if isinstance(node, list):
        return f"[{', '.join(map(written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    names = dict.fromkeys([*node._fields, *_ADDED])
    fields = {name: getattr(node, name, None) for name in names}
    told = (
        f"{name}={written(value)}"
        for name, value in sorted(fields.items())
        if value or value is False
    )
    place = [vars(node).get(name) for name in node._attributes]
    return f"{type(node).__name__}{place if place else ''}({', '.join(told)})"


if __name__ == "__main__":
    for text in TEXTS:
        print(written(ast.parse(text)))
