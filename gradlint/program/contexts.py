"""Statements that can leave a context of torch unentered, wherever they stand: what is wrong there
needs no caller.

    with torch.no_grad: …
    with torch.no_grad() and torch.autocast("cuda"): …
    torch.no_grad()
    @contextmanager
    def off():
        yield torch.no_grad()

A name decides what is run here, never what is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.source.blocks import statements, walk

_CONTEXTS = frozenset(["no_grad", "enable_grad", "inference_mode", "autocast"])
_MANAGER = "contextmanager"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Suspect:
    """A statement, or a function that yields: where it stands, by the names of what is around
    it.
    """

    path: tuple[str, ...]
    line: int
    node: ast.stmt
    around: tuple[ast.stmt, ...] = ()  # functions and classes, outer ones first


def speaks_of_contexts(text: str) -> bool:
    """Whether a file can leave a context unentered, by its text alone."""
    return any(name in text for name in _CONTEXTS)


def unentered(tree: ast.Module) -> Iterator[Suspect]:
    """The statements of a file that can leave a context unentered."""
    yield from (each for each in _statements(tree.body, ()) if _is_suspect(each.node))


def yielding(tree: ast.Module) -> Iterator[Suspect]:
    """The context managers of a file that yield a context to callers who do not name it."""
    for each in _statements(tree.body, ()):
        node = each.node
        can_yield = (
            isinstance(node, ast.FunctionDef) and _is_at_hand(each) and _yields_context(node)
        )
        if isinstance(node, ast.FunctionDef) and can_yield and not _is_named(node.name, tree):
            yield Suspect((*each.path, node.name), each.line, node)


def alone(suspect: Suspect) -> list[ast.stmt]:
    """The statement without what it holds, behind the imports of the functions around it."""
    inside = [node for each in _functions(suspect) for node in statements(each)]
    imports: list[ast.stmt] = [
        node for node in inside if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return [*imports, _bare(suspect.node)]


def bound_around(suspect: Suspect) -> frozenset[str]:
    """The names that the functions around a statement bind, otherwise than by an import."""
    return frozenset(name for each in _functions(suspect) for name in _bound(each))


def _functions(suspect: Suspect) -> list[_Function]:
    return [each for each in suspect.around if isinstance(each, _Function)]


def _statements(body: list[ast.stmt], around: tuple[ast.stmt, ...]) -> Iterator[Suspect]:
    """All statements of a block, with what they stand in."""
    path = tuple(each.name for each in around if isinstance(each, ast.ClassDef | _Function))
    for statement in body:
        yield Suspect(path, statement.lineno, statement, around)
        is_scope = isinstance(statement, ast.ClassDef | _Function)
        inner = (*around, statement) if is_scope else around
        for block in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, block, []), inner)
        for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _statements(handler.body, inner)


def _is_suspect(statement: ast.stmt) -> bool:
    match statement:
        case ast.With(items=items):
            return any(_is_odd(item.context_expr) for item in items)
        case ast.Expr(value=ast.Call(func=function)):
            return _last(function) in _CONTEXTS
    return False


def _is_odd(context: ast.expr) -> bool:
    """Whether what a `with` enters is the name of a context, or one of several that `and` chooses
    from.
    """
    if isinstance(context, ast.BoolOp):
        return any(
            isinstance(each, ast.Call) and _last(each.func) in _CONTEXTS for each in context.values
        )
    return _last(context) in _CONTEXTS


def _last(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _is_at_hand(suspect: Suspect) -> bool:
    """Whether a function is one of the module, or a method of a class of it: others are made by a
    call.
    """
    classes = [each for each in suspect.around if isinstance(each, ast.ClassDef)]
    return len(classes) == len(suspect.around) <= 1


def _yields_context(function: ast.FunctionDef) -> bool:
    if not any(_last(each) == _MANAGER for each in function.decorator_list):
        return False
    yielded = [
        node.value
        for node in walk(function)
        if isinstance(node, ast.Yield) and node.value is not None
    ]
    return any(
        _last(node.func) in _CONTEXTS
        for each in yielded
        for node in walk(each)
        if isinstance(node, ast.Call)
    )


def _is_named(manager: str, tree: ast.Module) -> bool:
    """Whether a `with` of the file gives a name to what a context manager yields: it can be entered
    then.
    """
    items = (
        item
        for node in statements(tree)
        if isinstance(node, ast.With | ast.AsyncWith)
        for item in node.items
    )
    named = (item.context_expr for item in items if item.optional_vars is not None)
    return any(isinstance(each, ast.Call) and _last(each.func) == manager for each in named)


def _bound(function: _Function) -> Iterator[str]:
    arguments = function.args
    given = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    yield from (each.arg for each in given if each is not None)
    for node in walk(function):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name


def _bare(statement: ast.stmt) -> ast.stmt:
    """The statement without what it holds."""
    if not isinstance(statement, ast.With):
        return statement
    nothing = ast.copy_location(ast.Pass(), statement)
    return ast.copy_location(ast.With(statement.items, [nothing]), statement)
