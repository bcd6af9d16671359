"""Programs of which every function is worth entering."""

from __future__ import annotations

import ast
import warnings


def everywhere(text: str | bytes) -> str:
    """The program with a backward at the end of each of its functions, and at its own: `check`
    enters all of them.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of literals that Python will refuse one day
        tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body.append(ast.parse("loss.backward()").body[0])
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
