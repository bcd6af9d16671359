"""Which statements of a module set a mode of torch for the whole program: an import of the module
runs them.

Module names are bound as they are looked up, so `torch.set_grad_enabled(False)` at the top of a
module, which binds none, would not be run by an import.
"""

from __future__ import annotations

import ast

from gradlint import memo
from gradlint.source.blocks import statements

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@memo.of_programs
def settings(tree: ast.Module) -> tuple[ast.stmt, ...]:
    """The statements `torch.set_…(…)` of a module that hold when it has been imported: nothing in
    it sets it again.
    """
    top = ast.Module([each for each in tree.body if not isinstance(each, _DEFINITIONS)], [])
    last: dict[str, ast.Expr] = {}
    for node in statements(top):
        match node:
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name))
            ):
                if name.startswith("set_"):
                    last[name] = node
    return tuple(each for each in top.body if each in last.values())
