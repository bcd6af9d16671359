"""Modules whose `forward` is worth entering with no trainer in view: those that hold what a rule
could report.

    class Block(nn.Module):
        def forward(self, x):
            y = self.act(x)
            y += x              # a write in place: a hazard
            return y

A hazard decides what is run, never what is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence

from gradlint.program import hazards, losses
from gradlint.program.losses import Definition, Part
from gradlint.tape import May

_MODULES = ("Module", "ModuleList", "ModuleDict", "Sequential")
_FORWARD, _MAKER = "forward", "__init__"
_OF_METRICS = frozenset(["update", "compute"])


def speaks_of_modules(text: str) -> bool:
    """Whether a file can hold a module whose `forward` is worth entering, by its text alone."""
    return "torch" in text and ("def forward(" in text or "class " in text)


def forwards(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Part]:
    """The `forward` methods of the modules of a file that are worth entering, and those that a
    class inherits.
    """
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    by_class: dict[str, dict[str, Definition]] = {}
    for each in definitions:
        if len(each.path) == 2 and each.path[0] in classes:
            by_class.setdefault(each.path[0], {})[each.path[1]] = each
    for name, methods in by_class.items():
        if not is_module(classes[name], classes, hazards.imported(tree)):
            continue
        own = methods.get(_FORWARD)
        if own is None:
            yield from _inherited(name, methods, definitions, tree)
        elif _can_train(methods, tree) and _has_hazard(name, definitions, tree):
            yield Part(own.path, own.node.lineno)


def _inherited(
    name: str,
    methods: Mapping[str, Definition],
    definitions: Sequence[Definition],
    tree: ast.Module,
) -> Iterator[Part]:
    """The `forward` that a class inherits, where one of its own methods leads to a hazard, or is
    called by one that does: that method stands for it.

    That of a metric, which is updated and computed, measures.
    """
    if methods.keys() & _OF_METRICS:
        return
    others = [each for each in methods.values() if each.path[1] != _MAKER]
    filled = _called_by_inherited(name, definitions, tree) if others else frozenset()
    first = next(
        (
            each
            for each in others
            if each.path[1] in filled or hazards.may_reach([each], definitions, hazards.ANY, tree)
        ),
        None,
    )
    if first is not None:
        yield Part((name, _FORWARD), first.node.lineno)


def _called_by_inherited(
    name: str, definitions: Sequence[Definition], tree: ast.Module
) -> frozenset[str]:
    """What the `forward` that a class inherits from one of its file calls, where that may do
    something that a rule could report.
    """
    for base in losses.above(name, tree):
        forward = next((each for each in definitions if each.path == (base, _FORWARD)), None)
        if forward is not None:
            does = hazards.may_reach([forward], definitions, hazards.ANY, tree)
            return forward.called if does else frozenset()
    return frozenset()


def _can_train(methods: Mapping[str, Definition], tree: ast.Module) -> bool:
    """Whether a `forward` computes from what it is given, or its class makes parameters; any other
    makes data, and trains nothing.
    """
    maker = methods.get(_MAKER)
    return _takes_something(methods[_FORWARD].node) or (
        maker is not None and hazards.may(maker.node, May.LEAF, tree)
    )


def _takes_something(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    given = function.args
    return len(given.posonlyargs) + len(given.args) > 1 or bool(given.vararg or given.kwonlyargs)


def is_module(
    cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef], imported: Collection[str] = frozenset()
) -> bool:
    """Whether a class is derived from `nn.Module`, as far as its file says; a layer of a library is
    one, too.

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
                name.endswith(_MODULES)
                or whole.startswith(("nn.", "torch.nn."))
                or whole.partition(".")[0] in imported
            ):
                return True
    return False


def _has_hazard(name: str, definitions: Sequence[Definition], tree: ast.Module) -> bool:
    """Whether one of the methods of a class, or of what these name in the file, holds a hazard."""
    own = [each for each in definitions if each.path[0] == name]
    return hazards.may_reach(own, definitions, hazards.ANY, tree)
