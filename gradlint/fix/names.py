"""How to write a dotted name in a file, with the import that it takes where there is none yet."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gradlint.rule import NoFixError
from gradlint.source.imported import imported

_APART = ("torch.distributed.nn.functional",)  # modules that torch does not import by itself


def written(name: str, tree: ast.Module, near: Collection[str]) -> tuple[str, str]:
    """How to write the dotted `name`, and the import line that this takes ("" where there is one
    already).
    """
    known = _at_the_top(tree)
    apart = next((each for each in _APART if name.startswith(f"{each}.")), "")
    found = (full for full in known if name == full or name.startswith(f"{full}."))
    best = max((full for full in found if full.startswith(apart)), key=len, default="")
    if best:
        return known[best] + name[len(best) :], ""
    if apart:
        return name, f"import {apart}"
    top = _top(name)
    if top in near:
        raise NoFixError(f"`{top}` means something else here")
    return name, f"import {top}"


def import_anchor(tree: ast.Module) -> tuple[ast.stmt | None, bool]:
    """The statement that a new `import torch` stands beside, and whether it comes behind it."""
    tops = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in tops:
        if (
            isinstance(node, ast.ImportFrom)
            and node.level == 0
            and _top(node.module or "") == "torch"
        ):
            return node, False
    if tops:
        return tops[-1], True
    if tree.body and is_docstring(tree.body[0]):
        return tree.body[0], True
    return (tree.body[0], False) if tree.body else (None, False)


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a string and nothing else."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def bound(node: ast.AST) -> Iterator[str]:
    """Every name that is used or bound in `node`, of arguments, functions and imports too."""
    for each in ast.walk(node):
        match each:
            case ast.Name(id=name) | ast.arg(arg=name):
                yield name
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or _top(name)
            case ast.ExceptHandler(name=str(name)):
                yield name


def _at_the_top(tree: ast.Module) -> dict[str, str]:
    """The written name of everything that the module's own imports bind: `{"torch.nn": "nn"}`."""
    tops = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return {
        full: name for name, full in imported(ast.Module(body=list(tops), type_ignores=[])).items()
    }


def _top(name: str) -> str:
    return name.partition(".")[0]
