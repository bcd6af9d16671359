"""Functions and classes that are losses by their name, or that compare what they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from gradlint import evidence
from gradlint.dataclass import dataclass
from gradlint.operations import Trait, has
from gradlint.program.callers import is_ungraded
from gradlint.source.blocks import walk

_METHODS = ("forward", "__call__")
_NO_METHODS = frozenset(["staticmethod", "classmethod", "property", "cached_property"])


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
    """A function that is entered by itself: the names that lead to it, and the line that stands for
    it.
    """

    path: tuple[str, ...]
    line: int


def speaks_of_losses(text: str) -> bool:
    """Whether a file can hold a loss, by its text alone."""
    return "torch" in text and evidence.mentions_losses(text)


def losses(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Part]:
    """The losses of a file: functions, and classes by the method that computes what they are called
    for.
    """
    by_class = methods(definitions)
    for each in definitions:
        is_loss = (
            len(each.path) == 1
            and evidence.is_loss(each.path[0])
            and _has_shape(each.node, is_plain=True)
        )
        if is_loss:
            yield Part(each.path, each.line)
    for name, own in by_class.items():
        if evidence.is_loss(name):
            yield from _computing(name, own, by_class, tree)


def methods(definitions: Sequence[Definition]) -> dict[str, dict[str, Definition]]:
    """The methods of each class of a file, by their names."""
    found: dict[str, dict[str, Definition]] = {}
    for each in definitions:
        if len(each.path) == 2:
            found.setdefault(each.path[0], {})[each.path[1]] = each
    return found


def _computing(
    name: str,
    own: Mapping[str, Definition],
    by_class: Mapping[str, Mapping[str, Definition]],
    tree: ast.Module,
) -> Iterator[Part]:
    """What computes the loss of a class: its own method, or that of a base in the file, which calls
    its own.

    A static `forward` is that of a `torch.autograd.Function`, whose `backward` says what gradient
    there is.
    """
    for method in _METHODS:
        if method in own:
            if _has_shape(own[method].node, is_plain=False) and not _is_static(own[method].node):
                yield Part((name, method), own[method].line)
            return
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    bases = [ast.unparse(base) for base in classes[name].bases] if name in classes else []
    for base in bases:
        for method in _METHODS:
            inherited = by_class.get(base, {}).get(method)
            first = next((each for called, each in own.items() if called != "__init__"), None)
            if (
                inherited is not None
                and first is not None
                and _has_shape(inherited.node, is_plain=False)
            ):
                yield Part((name, method), first.line)
                return


def of_methods(tree: ast.Module, definitions: Sequence[Definition]) -> Iterator[Part]:
    """The methods of classes that are losses by their names, and compute one from what they are
    given: `loss`, `critic_loss`; and those that a class inherits and fills in.
    """
    by_class = methods(definitions)
    for name, own in by_class.items():
        for each in own.values():
            if _is_loss_method(each):
                yield Part(each.path, each.line)
        yield from _filled_in(name, own, by_class, tree)


def _is_loss_method(method: Definition) -> bool:
    is_own = not any(map(_is_no_method, method.node.decorator_list))
    return evidence.is_loss(method.path[-1]) and is_own and _has_shape(method.node, is_plain=False)


def _filled_in(
    name: str,
    own: Mapping[str, Definition],
    by_class: Mapping[str, Mapping[str, Definition]],
    tree: ast.Module,
) -> Iterator[Part]:
    """The losses that a class inherits from one of its file, and that call a method of its own:
    that one stands for them.
    """
    overridden = set(own)
    for base in above(name, tree):
        inherited = by_class.get(base, {})
        for method, each in inherited.items():
            if method in overridden or not _is_loss_method(each):
                continue
            filled = next((found for called, found in own.items() if called in each.called), None)
            if filled is not None:
                yield Part((name, method), filled.line)
        overridden |= inherited.keys()


def above(name: str, tree: ast.Module) -> Iterator[str]:
    """The classes of the file that a class inherits from, the nearest first."""
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    pending, seen = [name], {name}
    for each in pending:
        for base in map(ast.unparse, classes[each].bases if each in classes else ()):
            if base not in seen:
                seen.add(base)
                pending.append(base)
                yield base


def _is_no_method(decorator: ast.expr) -> bool:
    """Whether what it decorates is no method of an object: `@property`, `@classmethod`."""
    return isinstance(decorator, ast.Name) and decorator.id in _NO_METHODS


def _is_static(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list
    )


def comparisons(definitions: Sequence[Definition]) -> Iterator[Part]:
    """The classes of a file whose `forward` makes one number of two things that it is given, and
    says of no metric.

        class Distance(nn.Module):
            def forward(self, points, scan):
                return (points - scan).pow(2).mean()

    A name decides what is run here, and never what is reported.
    """
    for name, own in methods(definitions).items():
        forward = own.get("forward")
        if forward is None or evidence.is_loss(name) or evidence.is_around_losses(name):
            continue
        compares = len(_required(forward.node)) > 1 and _has_shape(forward.node, is_plain=False)
        called = frozenset[str]().union(*(each.called for each in own.values()))
        helpers = [each for each in definitions if len(each.path) == 1 and each.path[0] in called]
        reduces = any(_reduces(each.node) for each in (*own.values(), *helpers))
        if (
            compares
            and reduces
            and _gives_one(forward.node)
            and not _gives_ungraded(forward.node, own, helpers)
        ):
            yield Part(forward.path, forward.line)


def _required(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The parameters of a method, behind the first, that it must be given."""
    taken = [*function.args.posonlyargs, *function.args.args]
    return [each.arg for each in taken[1 : len(taken) - len(function.args.defaults)]]


def _returned(function: ast.AST) -> Iterator[ast.expr]:
    return (
        node.value
        for node in walk(function)
        if isinstance(node, ast.Return) and node.value is not None
    )


def _gives_one(function: ast.AST) -> bool:
    """Whether it returns one thing, and no tuple or dict."""
    return not any(
        isinstance(value, ast.Tuple | ast.List | ast.Dict) for value in _returned(function)
    )


def _gives_ungraded(
    function: ast.AST, own: Mapping[str, Definition], helpers: Sequence[Definition]
) -> bool:
    """Whether it returns what a method, or a function of its file, gives that runs with grad mode
    off: `return self.transcribe(waves)`.
    """
    called = [node.func for node in _returned(function) if isinstance(node, ast.Call)]
    names = {each.id for each in called if isinstance(each, ast.Name)}
    methods = [each for each in helpers if each.path[0] in names]
    methods += [
        own[each.attr] for each in called if isinstance(each, ast.Attribute) and each.attr in own
    ]
    return any(
        is_ungraded(decorator) for method in methods for decorator in method.node.decorator_list
    )


def _reduces(function: ast.AST) -> bool:
    """Whether it sums or averages over all axes, or asks a loss of torch for one number."""
    return any(map(_is_reduction, walk(function)))


def _is_reduction(node: ast.AST) -> bool:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="torch"), attr="mean" | "sum"),
            args=[_],
            keywords=[],
        ):
            return True
        case ast.Call(func=ast.Attribute(attr="mean" | "sum"), args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Attribute(attr=called), args=[_, _, *_], keywords=keywords):
            is_whole = all(keyword.arg != "reduction" for keyword in keywords)
            return is_whole and has(f"torch.{called}", Trait.LOSSES)
    return False


def _has_shape(function: ast.FunctionDef | ast.AsyncFunctionDef, *, is_plain: bool) -> bool:
    """Whether it computes one thing from what it is given, with grad mode as it finds it."""
    if isinstance(function, ast.AsyncFunctionDef):
        return False
    taken = [*function.args.posonlyargs, *function.args.args]
    if len(taken) < (1 if is_plain else 2) or any(map(is_ungraded, function.decorator_list)):
        return False
    nodes = [node for statement in function.body for node in _own(statement)]
    returned = [node for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    if not returned or any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes):
        return False
    covered = [
        node
        for node in nodes
        if isinstance(node, ast.With) and any(map(_enters_ungraded, node.items))
    ]
    return not any(inner in returned for block in covered for inner in walk(block))


def _own(statement: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, but for those of functions within."""
    yield statement
    if not isinstance(
        statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
    ):
        for inner in ast.iter_child_nodes(statement):
            yield from _own(inner)


def _enters_ungraded(item: ast.withitem) -> bool:
    return is_ungraded(item.context_expr)


def is_looked_up(function: ast.AST, name: str) -> bool:
    """Whether something is no tensor but a dict of them, or an object, by what a function asks of
    it.
    """
    for node in walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=str())) if (
                owner == name
            ):
                return True
            case ast.Attribute(
                value=ast.Name(id=owner), attr="items" | "keys" | "values" | "get"
            ) if owner == name:
                return True
    return False


def subtracted(function: ast.AST) -> frozenset[str]:
    """The names that a function holds against one that a prediction is compared with:
    `forecast - target`.
    """
    found: set[str] = set()
    for node in walk(function):
        match node:
            case ast.BinOp(op=ast.Sub(), left=ast.Name(id=one), right=ast.Name(id=other)):
                compared = evidence.is_compared_with(one), evidence.is_compared_with(other)
                found |= {
                    name for name, beside in ((one, compared[1]), (other, compared[0])) if beside
                }
    return frozenset(found)


def held_against(function: ast.AST) -> frozenset[str]:
    """The names that losses of torch take second, as what a prediction is compared with:
    `mse_loss(share, wanted)`. None where a `detach()` or a `no_grad` says which of the two learns.
    """
    if any(map(_cuts, walk(function))):
        return frozenset()
    found: set[str] = set()
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Attribute(attr=called), args=[first, ast.Name(id=name), *_]):
                is_other = not (isinstance(first, ast.Name) and first.id == name)
                if is_other and has(f"torch.{called}", Trait.LOSSES):
                    found.add(name)
    return frozenset(found)


def _cuts(node: ast.AST) -> bool:
    """Whether it ends a route on purpose."""
    match node:
        case ast.Attribute(attr="detach"):
            return True
        case ast.With(items=items):
            return any(map(_enters_ungraded, items))
    return False


def called_names(function: ast.AST) -> frozenset[str]:
    """The names that a function calls: a parameter among them is no tensor."""
    functions = (node.func for node in walk(function) if isinstance(node, ast.Call))
    return frozenset(each.id for each in functions if isinstance(each, ast.Name))
