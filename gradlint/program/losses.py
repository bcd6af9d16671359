"""Functions that are losses by their name and shape, and that hold what can take the gradient from one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from gradlint.dataclass import dataclass
from gradlint.source.blocks import walk

_NAMED = frozenset(["loss", "losses", "criterion", "objective"])
_MEASURES = [
    "val",
    "valid",
    "validation",
    "eval",
    "evaluate",
    "test",
    "metric",
    "metrics",
    "accuracy",
    "meter",
    "history",
]
_SHOWS = ["plot", "show", "print", "log", "format", "record", "save", "load", "name", "names", "parse", "curve"]
_WEIGHS = ["make", "build", "create", "weight", "weights", "average", "avg", "running", "update", "reduce", "scale"]
_OF_OTHERS = frozenset([*_MEASURES, *_SHOWS, *_WEIGHS])  # words of functions around losses
_METHODS = ("forward", "__call__")
_CUTS: tuple[str, ...] = (
    "detach",
    ".data",
    ".item(",
    "no_grad",
    "inference_mode",
    "numpy",
    "tolist",
    "float(",
    "int(",
    "tensor(",
)
_CUTS += ("as_tensor", "arg", "round", "floor", "ceil", "sign(", "hist", "bincount", "one_hot", "nonzero", "unique")
_CUTS += ("multinomial", "sample(", "zeros", "ones(", "full(", "requires_grad", ".long(", ".bool(", ".int(", "topk")
_CUTS += ("sort(", "Variable(", "==", "//")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_UNGRADED = ("no_grad", "inference_mode")


class Definition(Protocol):
    """A function of a file: where it stands, its tree and text, and the names in it."""

    path: tuple[str, ...]
    node: ast.FunctionDef | ast.AsyncFunctionDef
    text: str

    @property
    def line(self) -> int: ...

    @property
    def called(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Part:
    """A function that is entered by itself: the names that lead to it, and the line that stands for it."""

    path: tuple[str, ...]
    line: int


def speaks_of_losses(text: str) -> bool:
    """Whether a file can hold a loss and what cuts it, by its text alone."""
    lowered = text.lower()
    return "torch" in text and any(word in lowered for word in _NAMED) and any(cut in text for cut in _CUTS)


def losses(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Definition]:
    """The losses among the functions of a file that are worth entering."""
    named = [each for each in definitions if _is_loss(each)]
    if not named:
        return
    by_name: dict[str, list[Definition]] = {}
    for each in definitions:
        by_name.setdefault(each.path[-1], []).append(each)
    for each in named:
        if _can_be_cut(each, by_name) and not _is_measured(
            each.path[-1] if len(each.path) == 1 else each.path[0], tree
        ):
            yield each


def words(name: str) -> frozenset[str]:
    """The words of a name, in lower case: of `FocalLoss`, `focal_loss`."""
    return frozenset(word.lower() for word in _WORD.findall(name))


def _is_loss(definition: Definition) -> bool:
    node, path = definition.node, definition.path
    if isinstance(node, ast.AsyncFunctionDef) or not (len(path) == 1 or (len(path) == 2 and path[1] in _METHODS)):
        return False
    said = words(path[0])
    is_named = not said.isdisjoint(_NAMED) and said.isdisjoint(_OF_OTHERS) and not path[0].startswith("test")
    return is_named and _has_shape(node, len(path) == 1)


def _has_shape(function: ast.FunctionDef, is_plain: bool) -> bool:
    """Whether it computes one thing from what it is given, with grad mode as it finds it."""
    taken = [*function.args.posonlyargs, *function.args.args]
    if len(taken) < (1 if is_plain else 2) or any(map(_is_ungraded, function.decorator_list)):
        return False
    nodes = [node for statement in function.body for node in _own(statement)]
    returned = [node for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    if not returned or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
        return False
    covered = [node for node in nodes if isinstance(node, ast.With) and any(map(_enters_ungraded, node.items))]
    return not any(inner in returned for block in covered for inner in walk(block))


def _own(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, but for those of functions within."""
    yield statement
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        for inner in ast.iter_child_nodes(statement):
            yield from _own(inner)


def _is_ungraded(node: ast.expr) -> bool:
    return any(name in ast.unparse(node) for name in _UNGRADED)


def _enters_ungraded(item: ast.withitem) -> bool:
    return _is_ungraded(item.context_expr)


def _can_be_cut(definition: Definition, by_name: Mapping[str, Sequence[Definition]]) -> bool:
    """Whether its text, or that of what it calls in its file, holds what can take a gradient away."""
    seen, pending = {definition.path}, [definition]
    for each in pending:
        if any(cut in each.text for cut in _CUTS):
            return True
        for name in each.called & by_name.keys():
            fresh = [other for other in by_name[name] if other.path not in seen]
            seen.update(other.path for other in fresh)
            pending += fresh
    return False


def _is_measured(name: str, tree: ast.Module) -> bool:
    """Whether all that use it in its file do so with grad mode off."""
    inside = {id(node) for block in walk(tree) if _covers(block) for node in _named(walk(block), name)}
    uses = list(_named(walk(tree), name))
    return bool(uses) and all(id(node) in inside for node in uses)


def _named(nodes: Iterable[ast.AST], name: str) -> Iterator[ast.AST]:
    return (node for node in nodes if isinstance(node, ast.Name) and node.id == name)


def _covers(node: ast.AST) -> bool:
    """Whether grad mode is off in all of a function or a `with`."""
    if isinstance(node, ast.With):
        return any(map(_enters_ungraded, node.items))
    return isinstance(node, ast.FunctionDef) and any(map(_is_ungraded, node.decorator_list))


_GIVEN = frozenset(
    ["target", "targets", "tgt", "label", "labels", "gt", "gts", "truth", "true", "reference", "y", "ys"]
)
_GIVEN |= {"mask", "masks", "weight", "weights", "valid", "length", "lengths", "index", "indices", "ids", "annotations"}
_PREDICTED = frozenset(["pred", "preds", "predicted", "prediction", "predictions", "logit", "logits", "hat"])
_PREDICTED |= {"out", "output", "outputs", "score", "scores", "probs", "probabilities"}


def is_given(name: str) -> bool:
    """Whether a parameter of a loss is what a prediction is held against, or weighed by, going by its name."""
    said = words(name)
    return not said.isdisjoint(_GIVEN) and said.isdisjoint(_PREDICTED)


def is_looked_up(function: ast.AST, name: str) -> bool:
    """Whether something is no tensor but a dict of them, or an object, by what a function asks of it."""
    for node in walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str())) if owner == name:
                return True
            case ast.Attribute(value=ast.Name(id=owner), attr="items" | "keys" | "values" | "get") if owner == name:
                return True
    return False


def called_names(function: ast.AST) -> frozenset[str]:
    """The names that a function calls: a parameter among them is no tensor."""
    functions = (node.func for node in walk(function) if isinstance(node, ast.Call))
    return frozenset(each.id for each in functions if isinstance(each, ast.Name))
