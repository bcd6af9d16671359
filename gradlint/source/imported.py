"""What the names of a file stand for by its imports.

import torch as t          # imported: {"t": "torch"}
t.no_grad()                # dotted: "torch.no_grad"
"""

from __future__ import annotations

import ast


def imported(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: `{"F": "torch.nn.functional", "nn": "torch.nn"}`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found |= {name.asname: name.name for name in names if name.asname}
                tops = (name.name.partition(".")[0] for name in names if not name.asname)
                found |= {top: top for top in tops}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found |= {name.asname or name.name: f"{module}.{name.name}" for name in names}
    return found


def dotted(node: ast.AST, known: dict[str, str]) -> str:
    """`torch.no_grad` for what is written `t.no_grad` after `import torch as t`; "" for what is no
    dotted name.
    """
    match node:
        case ast.Name(id=name):
            return known.get(name, name)
        case ast.Attribute(value=value, attr=attr):
            owner = dotted(value, known)
            return f"{owner}.{attr}" if owner else ""
    return ""
