"""What the code of a part may do that a rule could report, by its may-effects: whether the part is
worth entering.

    y += x                      # May.WRITE
    x = x.round()               # May.CUT
    x = torch.sqrt(x)           # May.SPOIL
    self.heads = [nn.Linear(4, 4) for _ in range(n)]    # May.KEEP

How code is written is read by `source/effects.py`, what an operation of torch does is looked up. A
hazard decides what is run, never what is reported.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator, Sequence
from typing import Protocol

from gradlint import memo
from gradlint.library.effects import Effect, lookup, singular
from gradlint.library.layer_effects import is_loss_function, parameters
from gradlint.source import effects
from gradlint.tape import May

ANY = May.WRITE | May.CUT | May.SPOIL | May.KEEP | May.LEAF
_MODES = frozenset(["no_grad", "inference_mode", "set_grad_enabled", "enable_grad", "autocast"])
# of numbers that may be a tensor's
_COPIES = frozenset(["tensor", "new_tensor", "from_numpy", "frombuffer"])
_CUTS = (
    _MODES | _COPIES | {"requires_grad", "requires_grad_", "checkpoint", "checkpoint_sequential"}
)
# of an autograd.Function
_FUNCTIONS = frozenset(["save_for_backward", "mark_dirty", "setup_context"])
_BACKWARD = "backward"  # that it defines, of whatever it saves: it can be called without `apply`
_MEANS = frozenset(["mean", "nanmean"])
_KEEPS = frozenset(["register_parameter", "add_module"])
_LEAVES = frozenset(
    ["Parameter", "parameters", "named_parameters", "requires_grad", "requires_grad_", "data"]
)
_LIBRARIES = sys.stdlib_module_names | {"torch"}


class Definition(Protocol):
    """A function of a file: the names that lead to it, its tree, and the names in it."""

    path: tuple[str, ...]
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def called(self) -> frozenset[str]: ...


def may(block: ast.AST, wanted: May, tree: ast.Module) -> bool:
    """Whether a block of a file may have one of these effects by itself."""
    torch, _ = _imports(tree)
    for found in effects.of([block]):
        if found.on_tensors & wanted:
            return True
        own = (torch[name] for name in found.names if name in torch)
        if any(_of_name(name) & wanted for name in (*own, *found.attributes)):
            return True
        if wanted & May.CUT and any(map(_is_in_vain, found.does.calls)):
            return True
    return False


def _is_in_vain(call: effects.Call) -> bool:
    """Whether a method is called for what it does that changes nothing: `x.clamp(-1, 1)`."""
    return call.is_statement and call.is_method and _changes_nothing(call.name)


@functools.cache
def _changes_nothing(name: str) -> bool:
    effect = lookup(name)
    return effect is not None and not effect.in_place and not effect.escapes


def may_reach(
    start: Sequence[Definition], definitions: Sequence[Definition], wanted: May, tree: ast.Module
) -> bool:
    """Whether some functions of a file may have one of these effects, or what they name there or
    import.

    What another file of the project does is not known here, and so it may do anything.
    """
    project = imported(tree)
    reached = _reached(start, definitions)
    return any(
        not project.isdisjoint(each.called)
        or (wanted & May.CUT and each.path[-1] == _BACKWARD)
        or may(each.node, wanted, tree)
        for each in reached
    )


def _reached(
    start: Sequence[Definition], definitions: Sequence[Definition]
) -> Iterator[Definition]:
    pending, seen = list(start), {each.path for each in start}
    for each in pending:
        yield each
        for other in definitions:
            if other.path not in seen and (
                other.path[-1] in each.called or other.path[0] in each.called
            ):
                seen.add(other.path)
                pending.append(other)


@functools.cache
def _of_name(name: str) -> May:
    """What the operation, layer or context of torch may do that is called by this name."""
    found = May.SPOIL if name in singular() | _MEANS or is_loss_function(name) else May(0)
    if name in _CUTS or name in _FUNCTIONS:
        found |= May.CUT
    if name in _KEEPS:
        found |= May.KEEP
    if name in _LEAVES or name in parameters():
        found |= May.LEAF
    effect = lookup(name)
    if effect is not None and _cuts(effect):
        found |= May.CUT
    return found


def _cuts(effect: Effect) -> bool:
    """Whether nothing comes back to the input of an operation."""
    return effect.zero_gradient or not (effect.differentiable or effect.describes or effect.creates)


@memo.of_programs
def _imports(tree: ast.Module) -> tuple[dict[str, str], frozenset[str]]:
    """The names that a file imports from torch, each with what it is called there, and those of its
    project.
    """
    torch: dict[str, str] = {}
    project: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                if _is_of_the_project(node, alias):
                    project.add(name)
                else:
                    torch[name] = alias.name.rpartition(".")[2]
    return torch, frozenset(project)


def _is_of_the_project(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    """Whether an import can be of a file of the project."""
    if isinstance(node, ast.ImportFrom) and node.level:
        return True
    module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
    return module.partition(".")[0] not in _LIBRARIES


def imported(tree: ast.Module) -> frozenset[str]:
    """The names that a file imports, but for those of Python's own modules and of torch."""
    return _imports(tree)[1]


@memo.of_programs
def _origins(tree: ast.Module) -> tuple[tuple[str, str], ...]:
    """The names that a file imports, each with the package that it comes from."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and not node.level:
            found += [(each.asname or each.name, node.module or "") for each in node.names]
        elif isinstance(node, ast.Import):
            found += [
                (each.asname or each.name.partition(".")[0], each.name) for each in node.names
            ]
    return tuple((name, module.partition(".")[0]) for name, module in found)


def imported_from(package: str, tree: ast.Module) -> frozenset[str]:
    """The names that a file imports from a package."""
    return frozenset(name for name, origin in _origins(tree) if origin == package)
