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
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence

from gradlint import memo
from gradlint.program.losses import Definition, Part

_MODULES = ("Module", "ModuleList", "ModuleDict", "Sequential")
_FORWARD, _MAKER = "forward", "__init__"
_OF_METRICS = frozenset(["update", "compute"])
_LIBRARIES = sys.stdlib_module_names | {"torch"}
WRITES = r"[a-z0-9]_\(|[-+*/|&^@%]=|\]\s*=[^=]|inplace\s*=|out\s*="
_SINGULAR = r"sqrt|log|norm\(|\*\*|pow|/|acos|asin|atan2|cdist|softmax|where|masked_fill|nan|std\(|var\(|mean\("
_GRADIENTS = r"no_grad|inference_mode|set_grad|requires_grad|\.data\b|detach|Parameter\(|\.apply\(|checkpoint|autograd"
_HELD = r"=\s*[\[({]|append\(|dict\(|list\(|setattr|add_module|register"
_COPIED = (
    r"round|floor|ceil|trunc|sign\(|\.(?:long|int|bool|item|tolist|numpy)\(|torch\.tensor\(|arg(?:max|min)|one_hot"
)
_HAZARD = re.compile("|".join((WRITES, _SINGULAR, _GRADIENTS, _HELD, _COPIED)))


def speaks_of_modules(text: str) -> bool:
    """Whether a file can hold a module whose `forward` is worth entering, by its text alone."""
    has_modules = "def forward(" in text or "class " in text
    return has_modules and "torch" in text and _HAZARD.search(text) is not None


def forwards(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Part]:
    """The `forward` methods of the modules of a file that are worth entering, and those that a class inherits."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    by_class: dict[str, dict[str, Definition]] = {}
    for each in definitions:
        if len(each.path) == 2 and each.path[0] in classes:
            by_class.setdefault(each.path[0], {})[each.path[1]] = each
    for name, methods in by_class.items():
        if not is_module(classes[name], classes, _imported(tree)):
            continue
        own = methods.get(_FORWARD)
        if own is None:
            yield from _inherited(name, methods)
        elif _takes_something(own.node) and _has_hazard(classes[name], definitions):
            yield Part(own.path, own.node.lineno)


def _inherited(name: str, methods: Mapping[str, Definition]) -> Iterator[Part]:
    """The `forward` that a class inherits, where one of its own methods holds a hazard: that method leads to it.

    That of a metric, which is updated and then computed, measures.
    """
    if methods.keys() >= _OF_METRICS:
        return
    first = next((each for each in methods.values() if _HAZARD.search(each.text) and each.path[1] != _MAKER), None)
    if first is not None:
        yield Part((name, _FORWARD), first.node.lineno)


def _takes_something(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method computes from what it is given; what is given nothing makes data, and trains nothing."""
    given = function.args
    return len(given.posonlyargs) + len(given.args) > 1 or bool(given.vararg or given.kwonlyargs)


def is_module(cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef], imported: Collection[str] = frozenset()) -> bool:
    """Whether a class is derived from `nn.Module`, as far as its file says; a layer of a library is one, too.

    A base that is imported can be one.
    """
    seen, pending = {cls.name}, [cls]
    for each in pending:
        for base in each.bases:
            whole = ast.unparse(base)
            name = whole.rpartition(".")[2]
            if name in classes:
                if name not in seen:
                    seen.add(name)
                    pending.append(classes[name])
            elif (
                name.endswith(_MODULES) or whole.startswith(("nn.", "torch.nn.")) or whole.partition(".")[0] in imported
            ):
                return True
    return False


@memo.of_programs
def _imported(tree: ast.Module) -> frozenset[str]:
    """The names that a file imports, but for those of Python's own modules and of torch."""
    return frozenset(
        alias.asname or alias.name.partition(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if _is_of_the_project(node, alias)
    )


def _is_of_the_project(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    """Whether an import can be of a file of the project."""
    if isinstance(node, ast.ImportFrom) and node.level:
        return True
    module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
    return module.partition(".")[0] not in _LIBRARIES


def _has_hazard(cls: ast.ClassDef, definitions: Sequence[Definition]) -> bool:
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
