"""The IR, read as text."""

import ast

from ir_text import text

from gradlint.ir import lower
from gradlint.ir.nodes import Code


def ir_of(source: str) -> str:
    return text(lower.module(ast.parse(source), Code("program.py", source)))


def test_spellings_that_mean_the_same_lower_to_the_same_nodes() -> None:
    assert (
        ir_of("with a, b:\n    c()").count("With")
        == ir_of("with a:\n    with b:\n        c()").count("With")
        == 2
    )
    assert "Literal value=-1" in ir_of("x = -1")
    assert "Unary" not in ir_of("x = -1")


def test_functions_show_their_bodies_and_decorators() -> None:
    shown = ir_of("@no_grad\ndef f(x, *rest, y=1):\n    return x")
    assert "Function name='f'" in shown
    assert "decorators: 1:1 Name id='no_grad'" in shown
    assert "body: 3:4 Return" in shown
    assert shown.count("Parameter") == 3


def test_docstrings_and_passes_leave_nothing() -> None:
    assert ir_of('"""Documentation."""\npass\n') == ""


def test_every_statement_of_the_grammar_lowers() -> None:
    source = """
import os.path as p, sys
from . import a as b
from .c import *
x: int = 1
y: str
x += 1
del x
async def f():
    async with a() as b:
        async for c in d:
            await e
    return [i async for i in g if i]
class C(B, metaclass=M):
    z = {**a, 'k': 1}
try:
    raise E from None
except (A, B) as error:
    pass
else:
    x
finally:
    x
while (n := f()):
    break
else:
    continue_ = f"{n:>{w}} {n!r}"
match x:
    case [1, *rest] if rest: ...
    case {"k": v, **more}: ...
    case C(q=1) | None: ...
lambda a, /, b, *, c=2, **d: (yield)
global_ = not a < b <= c and d or ~e
s[1:2, ..., ::3]
assert x, y
"""
    shown = ir_of(source)
    for kind in (
        "Import ",
        "ImportFrom",
        "Declare",
        "Augment",
        "Delete",
        "Class",
        "Try",
        "While",
        "Walrus",
        "Slice",
        "Assert",
    ):
        assert kind in shown
