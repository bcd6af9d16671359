"""Constructors of modules that are worth running by themselves: those that do more to parameters
than to make them.

    class Gate(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(width)) * 0.1    # no leaf, and no parameter

A hazard decides what is run, never what is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.program import hazards
from gradlint.program.forwards import is_module
from gradlint.program.losses import Definition
from gradlint.tape import May

_INIT = "__init__"


@dataclass(frozen=True, slots=True)
class Constructor:
    """A constructor: the class that it makes objects of, and the line where it is defined."""

    path: tuple[str, ...]
    line: int


def constructors(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Constructor]:
    """The constructors of the modules of a file that hold a hazard."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for each in definitions:
        if len(each.path) == 2 and each.path[1] == _INIT and hazards.may(each.node, May.LEAF, tree):
            owner = classes.get(each.path[0])
            if owner is not None and is_module(owner, classes):
                yield Constructor(each.path[:1], each.line)
