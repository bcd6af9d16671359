"""Who calls a part, in the files that are in view: whether all of them do so with grad mode off.

    vocoder = Vocoder(config).eval()

    @torch.inference_mode()
    def speak(text):
        return vocoder(text)        # the only use of it: nobody trains a Vocoder

A use that is not understood is one that may train.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from gradlint.dataclass import dataclass
from gradlint.source.blocks import walk

_UNGRADED = ("no_grad", "inference_mode")
# of a module: what is done with it to train it
_TRAINS = frozenset(["parameters", "named_parameters", "train"])
_BACKWARD_HOOKS = frozenset(
    [
        "register_hook",
        "register_backward_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ]
)
_FORWARD = "forward"
_DEPTH = 3  # of functions that call functions
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def are_ungraded(name: str, trees: Sequence[ast.Module]) -> bool:
    """Whether a function, or the objects of a class, are called in these files, and with grad mode
    off each time.
    """
    files = [_Tree(tree, _parents(tree)) for tree in trees]
    is_class = any(
        isinstance(each, ast.ClassDef) and each.name == name for tree in trees for each in tree.body
    )
    return _are_ungraded(name, files, _DEPTH, is_class=is_class)


def is_ungraded(node: ast.expr) -> bool:
    """Whether an expression names what switches grad mode off."""
    return any(name in ast.unparse(node) for name in _UNGRADED)


@dataclass(frozen=True, slots=True)
class _Tree:
    """A file, and what each node of it stands in."""

    tree: ast.Module
    parents: dict[int, ast.AST]

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, inner ones first."""
        while (outer := self.parents.get(id(node))) is not None:
            yield outer
            node = outer


def _parents(tree: ast.Module) -> dict[int, ast.AST]:
    return {id(inner): node for node in ast.walk(tree) for inner in ast.iter_child_nodes(node)}


def _are_ungraded(name: str, trees: Sequence[_Tree], depth: int, *, is_class: bool = False) -> bool:
    is_called = False
    for each in trees:
        for use in _loads(name, each.tree):
            kind = _made(use, each, trees, depth) if is_class else _kind(use, each, trees, depth)
            if kind is None:
                return False
            is_called |= kind
    return is_called


def _loads(name: str, tree: ast.AST) -> Iterator[ast.expr]:
    """The places where a name, or an attribute of that name, is read."""
    for node in walk(tree):
        match node:
            case ast.Name(id=found, ctx=ast.Load()) | ast.Attribute(attr=found, ctx=ast.Load()) if (
                found == name
            ):
                yield node


def _kind(use: ast.expr, file: _Tree, trees: Sequence[_Tree], depth: int) -> bool | None:
    """Whether a use calls it with grad mode off (True), does nothing with it (False), or may train
    it (None).
    """
    outer = file.parents.get(id(use))
    match outer:
        case ast.Call(func=function) if function is use:
            return True if _is_off_here(outer, file, trees, depth) else None
        case ast.Attribute(attr="forward"):
            return True if _is_off_here(outer, file, trees, depth) else None
        case ast.Attribute(attr=name):
            return None if name in _TRAINS else False
        case ast.arg() | ast.AnnAssign() | ast.Subscript():
            return False  # an annotation
        case ast.Assign(value=value, targets=[ast.Name(id=name)]) if value is use:
            return _under_another_name(name, outer, file, trees, depth)
        case ast.IfExp(body=body, orelse=orelse) if use in (body, orelse):
            return _kind(outer, file, trees, depth)
    if isinstance(outer, ast.Dict) and depth:
        return _in_table(outer, file, trees, depth)
    is_asked = (
        isinstance(outer, ast.Call)
        and isinstance(outer.func, ast.Name)
        and outer.func.id == "isinstance"
    )
    return False if is_asked else None


def _under_another_name(
    name: str, binding: ast.Assign, file: _Tree, trees: Sequence[_Tree], depth: int
) -> bool | None:
    """As `_kind`, of a function that a local name stands for: what is done with that name.

    update = fused_update if … else plain_update
    """
    function = next((each for each in file.around(binding) if isinstance(each, _Function)), None)
    if function is None:
        return None
    uses = {_kind(use, file, trees, depth) for use in _loads(name, function)}
    return None if None in uses else any(uses)


def _in_table(table: ast.Dict, file: _Tree, trees: Sequence[_Tree], depth: int) -> bool | None:
    """As `_kind`, of what stands in a table: what is done with what the table gives,
    `RULES[type(layer)](…)`.
    """
    match file.parents.get(id(table)):
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            uses = {
                _looked_up(use, each, trees, depth - 1)
                for each in trees
                for use in _loads(name, each.tree)
            }
            return None if None in uses else any(uses)
    return None


def _looked_up(use: ast.expr, file: _Tree, trees: Sequence[_Tree], depth: int) -> bool | None:
    match outer := file.parents.get(id(use)):
        case ast.Subscript():
            call = file.parents.get(id(outer))
            if not isinstance(call, ast.Call) or call.func is not outer:
                return None
            return True if _is_off_here(call, file, trees, depth) else None
        case ast.Compare() | ast.Attribute(attr="keys"):
            return False
    return None


def _made(use: ast.expr, file: _Tree, trees: Sequence[_Tree], depth: int) -> bool | None:
    """As `_kind`, of a class: what is done with an object that it makes,
    `self.model = Model(…).eval()`.
    """
    call = file.parents.get(id(use))
    if not isinstance(call, ast.Call) or call.func is not use:
        return _kind(use, file, trees, depth)
    value: ast.AST = call
    for outer in file.around(call):
        match outer:
            case ast.Attribute(attr=name) if name not in _TRAINS and name != _FORWARD:
                value = outer
            case ast.Call(func=function) if function is value and isinstance(value, ast.Attribute):
                value = outer
            case ast.Call(func=function) if function is value:
                return True if _is_off_here(outer, file, trees, depth) else None
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]) if depth:
                return True if _are_ungraded(name, trees, depth - 1) else None
            case _:
                return None
    return None


def _is_off_here(node: ast.AST, file: _Tree, trees: Sequence[_Tree], depth: int) -> bool:
    """Whether grad mode is off where a node stands: by a `with`, by a decorator, or by all that
    call the function.
    """
    for outer in file.around(node):
        if isinstance(outer, ast.With | ast.AsyncWith) and any(
            is_ungraded(item.context_expr) for item in outer.items
        ):
            return True
        if isinstance(outer, _Function):
            if any(map(is_ungraded, outer.decorator_list)):
                return True
            if _is_backward_hook(outer.name, trees):
                return True
            is_plain = isinstance(file.parents.get(id(outer)), ast.Module)
            return is_plain and depth > 0 and _are_ungraded(outer.name, trees, depth - 1)
    return False


def _is_backward_hook(name: str, trees: Sequence[_Tree]) -> bool:
    """Whether all that is done with a function is that it is given to a hook of the backward, which
    runs with grad mode off.
    """
    uses = [_is_hooked(use, each) for each in trees for use in _loads(name, each.tree)]
    return bool(uses) and all(uses)


def _is_hooked(use: ast.expr, file: _Tree) -> bool:
    match file.parents.get(id(use)):
        case ast.Call(func=ast.Attribute(attr=name), args=[hook]):
            return hook is use and name in _BACKWARD_HOOKS
    return False
