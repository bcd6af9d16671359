"""Metrics: classes that are derived from one of a library, whose `update` is called between forward
and backward.

    from torchmetrics import Metric

    class Overlap(Metric):
        def update(self, preds, target):
            preds.clamp_(0, 1)          # what the loss has saved

A hazard decides what is run, never what is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.program import hazards
from gradlint.program.losses import Definition, Part
from gradlint.tape import May

_METRIC, _UPDATE = "Metric", "update"


def updates(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Part]:
    """The `update` methods of the metrics of a file that write in place, as do the functions beside
    them.
    """
    found = _metrics(tree)
    for each in definitions:
        if len(each.path) == 2 and each.path[1] == _UPDATE and each.path[0] in found:
            beside = [each, *(other for other in definitions if other.path[-1] in each.called)]
            if any(hazards.may(other.node, May.WRITE, tree) for other in beside):
                yield Part(each.path, each.line)


def _metrics(tree: ast.Module) -> frozenset[str]:
    """The classes of a file that are derived from `Metric` of a library, directly or by one
    another.
    """
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    known = {
        name.asname or name.name for node in imports for name in node.names if name.name == _METRIC
    }
    found: set[str] = set()
    for cls in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        if any(_is_metric(base, known | found) for base in cls.bases):
            found.add(cls.name)
    return frozenset(found)


def _is_metric(base: ast.expr, known: set[str]) -> bool:
    match base:
        case ast.Name(id=name):
            return name in known
        case ast.Attribute(attr=name):
            return name == _METRIC
    return False
