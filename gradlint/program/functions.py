"""Plain functions of tensors that are worth entering: they choose around an operation that is not
defined everywhere, or write in place.

    def ratio(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(b > 0, a / b, torch.zeros_like(a))

A hazard decides what is run, never what is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from gradlint.library.effects import singular
from gradlint.program import forwards, hazards
from gradlint.program.losses import Definition, Part
from gradlint.source.blocks import walk
from gradlint.tape import May

_CHOICES = frozenset(
    ["where", "masked_fill", "masked_fill_", "nan_to_num", "isnan", "isinf", "isfinite"]
)
_BOUNDS = frozenset(["clamp", "clamp_", "clip", "clip_"])
_OFF = frozenset(["no_grad", "inference_mode"])
_TENSOR = "Tensor"
_TORCH, _OPTIMIZERS = "torch", "torch.optim"
_BY_NAME = frozenset(["dict", "Dict", "OrderedDict", "Mapping"])  # what maps names to tensors
_NO_OPERATIONS = frozenset(["nn", "optim", _TENSOR])  # that a file imports from torch
_OF_OBJECTS = frozenset(["__init__", "__call__", "forward"])  # what runs them is the object


def speaks_of_choices(text: str) -> bool:
    """Whether a file can hold such a function, by its text alone."""
    return "torch" in text and any(name in text for name in _CHOICES | _BOUNDS)


def choosing(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Part]:
    """The functions and methods that say of a parameter that it is a tensor, and hold a choice and
    what it is made around; those of tensors that bound what is not defined beyond.
    """
    torch = hazards.imported_from(_TORCH, tree)
    for each in definitions:
        is_called = each.path[-1] not in _OF_OBJECTS and len(each.path) <= 2
        is_function = is_called and isinstance(each.node, ast.FunctionDef)
        chooses = is_function and _takes_tensor(each.node) and _chooses(each)
        if chooses or (is_function and _bounds(each) and _is_of_tensors(each, torch)):
            yield Part(each.path, each.line)


def overwriting(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Part]:
    """The functions of tensors, and methods of modules, that write into what they compute with."""
    torch = hazards.imported_from(_TORCH, tree)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    known = hazards.imported(tree)
    for each in definitions:
        is_other = each.path[-1] not in _OF_OBJECTS and isinstance(each.node, ast.FunctionDef)
        if not (is_other and each.called.isdisjoint(_OFF)):
            continue
        owner = classes.get(each.path[0]) if len(each.path) == 2 else None
        if owner is None:
            computes = len(each.path) == 1 and _is_of_tensors(each, torch)
        else:
            computes = forwards.is_module(owner, classes, known)
        if computes and hazards.may(each.node, May.WRITE, tree):
            yield Part(each.path, each.line)


def making(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Part]:
    """The functions and methods that make an optimizer; of a constructor, the class."""
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == _OPTIMIZERS
        for alias in node.names
    }
    for each in definitions:
        entered = each.path[:1] if each.path[-1] == "__init__" else each.path
        is_shallow = len(each.path) <= 2
        if is_shallow and any(_makes_optimizer(node, imported) for node in walk(each.node)):
            yield Part(entered, each.line)


def _makes_optimizer(node: ast.AST, imported: Collection[str]) -> bool:
    """`torch.optim.SGD(…)`, `optim.SGD(…)`, `SGD(…)`."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in imported
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner))):
            return owner == _OPTIMIZERS.rpartition(".")[2]
    return False


def _chooses(definition: Definition) -> bool:
    named = definition.called
    if named.isdisjoint(_CHOICES) or not named.isdisjoint(_OFF):
        return False
    return not named.isdisjoint(singular()) or any(map(_is_quotient, walk(definition.node)))


def _bounds(definition: Definition) -> bool:
    """`torch.acos(x.clamp(-1, 1))`"""
    named = definition.called
    return (
        not named.isdisjoint(_BOUNDS)
        and named.isdisjoint(_OFF)
        and not named.isdisjoint(singular())
    )


def _is_quotient(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Pow)


def _is_of_tensors(definition: Definition, torch: frozenset[str]) -> bool:
    """Whether a function is given a tensor, by its annotations; where it has none, whether it has
    torch compute.

    What takes the tensors of a model by their names converts them.
    """
    takes = (*definition.node.args.posonlyargs, *definition.node.args.args)
    said = [each.annotation for each in takes if each.annotation is not None]
    if said:
        return any(_TENSOR in ast.unparse(each) and not _is_by_name(each) for each in said)
    return bool(takes) and not definition.called.isdisjoint(torch - _NO_OPERATIONS)


def _is_by_name(annotation: ast.expr) -> bool:
    """Whether what is annotated holds tensors by their names: `dict[str, Tensor]`."""
    nodes = ast.walk(annotation)
    named = (getattr(node, "id", getattr(node, "attr", "")) for node in nodes)
    return not _BY_NAME.isdisjoint(named)


def _takes_tensor(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    taken = (*function.args.posonlyargs, *function.args.args)
    return any(
        each.annotation is not None and _TENSOR in ast.unparse(each.annotation) for each in taken
    )
