"""Modules whose `forward` is worth entering with no trainer in view: those that hold what a rule could report.

    class Block(nn.Module):
        def forward(self, x):
            y = self.act(x)
            y += x              # a write in place: a hazard
            return y

A hazard decides what is run, never what is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from gradlint.program.losses import Definition

_MODULES = ("Module", "ModuleList", "ModuleDict", "Sequential")
_FORWARD = "forward"
_WRITES = r"[a-z0-9]_\(|[-+*/|&^@%]=|\]\s*=[^=]|inplace\s*=|out\s*="
_SINGULAR = r"sqrt|log|norm\(|\*\*|pow|/|acos|asin|atan2|cdist|softmax|where|masked_fill|nan|std\(|var\(|mean\("
_GRADIENTS = r"no_grad|inference_mode|set_grad|requires_grad|\.data\b|detach|Parameter\(|\.apply\(|checkpoint|autograd"
_HELD = r"=\s*[\[({]|append\(|dict\(|list\(|setattr|add_module|register"
_HAZARD = re.compile("|".join((_WRITES, _SINGULAR, _GRADIENTS, _HELD)))


def speaks_of_modules(text: str) -> bool:
    """Whether a file can hold a module whose `forward` is worth entering, by its text alone."""
    return "def forward(" in text and "torch" in text and _HAZARD.search(text) is not None


def forwards(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Definition]:
    """The `forward` methods of the modules of a file that are worth entering."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    by_name: dict[str, list[Definition]] = {}
    for each in definitions:
        by_name.setdefault(each.path[-1], []).append(each)
    for each in definitions:
        if len(each.path) == 2 and each.path[1] == _FORWARD and _takes_something(each.node):
            owner = classes.get(each.path[0])
            if owner is not None and is_module(owner, classes) and _has_hazard(owner, classes, definitions):
                yield each


def _takes_something(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method computes from what it is given; what is given nothing makes data, and trains nothing."""
    given = function.args
    return len(given.posonlyargs) + len(given.args) > 1 or bool(given.vararg or given.kwonlyargs)


def is_module(cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Whether a class is derived from `nn.Module`, as far as its file says; a layer of a library is one, too."""
    seen, pending = {cls.name}, [cls]
    for each in pending:
        for base in each.bases:
            name = ast.unparse(base).rpartition(".")[2]
            if name in classes and name not in seen:
                seen.add(name)
                pending.append(classes[name])
            elif name.endswith(_MODULES) or ast.unparse(base).startswith(("nn.", "torch.nn.")):
                return True
    return False


def _has_hazard(cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef], definitions: Sequence[Definition]) -> bool:
    """Whether one of its methods, or of what these name in the file, holds a hazard."""
    own = [each for each in definitions if each.path[0] == cls.name]
    seen = {each.path for each in own}
    for each in own:
        if _HAZARD.search(each.text):
            return True
        for other in definitions:
            if other.path not in seen and (other.path[-1] in each.called or other.path[0] in each.called):
                seen.add(other.path)
                own.append(other)
    return False
