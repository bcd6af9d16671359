"""What the source of one function says of a value: by which names what one expression gives is used
in another.

The order of the statements and their conditions do not matter: a name that is bound anywhere to
what is computed from a value carries it everywhere. Asked only of two places that have both run:
what code may do, which the summaries of `source/effects.py` say, is no question here.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from types import CodeType

from gradlint.trace.frames import Frame
from gradlint.trace.loops import iterates
from gradlint.trace.source import extent, function, module, once, position

_IMPORTS = ast.Import | ast.ImportFrom


@once
def carriers(code: CodeType, origin: int, use: int) -> frozenset[str]:
    """The words in the expression at `use` that carry what the one at `origin` gives; '' for that
    itself.
    """
    body = function(code)
    if body is None or origin == use:
        return frozenset()
    source, target = (_evaluated(body, code, instruction) for instruction in (origin, use))
    if not source or not target:
        return frozenset()
    carrying = _carrying(_bound(body, code), source.__contains__)
    inside = [node for each in target for node in ast.walk(each)]
    words = carrying & {_word(node) for node in inside}
    return words | {""} if any(node in source for node in inside) else words


@once
def divides(code: CodeType, origin: int, use: int) -> bool:
    """Whether something is divided by what the expression at `origin` gives, and the quotient is
    used at `use`.
    """
    body = function(code)
    if body is None:
        return False
    source, target = (_evaluated(body, code, instruction) for instruction in (origin, use))
    bindings = _bound(body, code)
    carrying = _carrying(bindings, source.__contains__)

    def carries(expression: ast.AST) -> bool:
        return any(node in source or _word(node) in carrying for node in ast.walk(expression))

    def is_quotient(node: ast.AST) -> bool:
        match node:
            case ast.BinOp(left=above, op=ast.Div(), right=below):
                return carries(below) and not carries(above)
        return False

    quotients = _carrying(bindings, is_quotient)
    inside = [node for each in target for node in ast.walk(each)]
    return any(is_quotient(node) or _word(node) in quotients for node in inside)


@functools.cache
def _imported(path: str) -> frozenset[str]:
    """The names that a file imports: `torch.tensor(numbers)` puts nothing into `torch`."""
    imports = (
        node for node in ast.walk(module(path) or ast.Module([], [])) if isinstance(node, _IMPORTS)
    )
    return frozenset(
        name.asname or name.name.partition(".")[0] for node in imports for name in node.names
    )


def _evaluated(body: ast.AST, code: CodeType, instruction: int) -> tuple[ast.AST, ...]:
    """What is evaluated at an instruction: the expression there.

    In Python 3.11 what gets the next item has the position of the whole `for`, and what enters a
    context manager that of the whole `with`: no part of the block is evaluated there.
    """
    at = position(Frame(0, code, instruction))
    node = next((node for node in ast.walk(body) if extent(node) == at), None)
    match node:
        case None:
            return ()
        case ast.For(iter=iterable) | ast.AsyncFor(iter=iterable):
            return (iterable,)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return tuple(item.context_expr for item in items)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() if iterates(code, instruction):
            return tuple(generator.iter for generator in node.generators)
    return (node,)


def _bound(body: ast.AST, code: CodeType) -> list[tuple[str, ast.AST]]:
    """The names that a function binds, but for modules, each with what it is bound to."""
    modules = _imported(code.co_filename)
    return [each for node in ast.walk(body) for each in _bindings(node) if each[0] not in modules]


def _carrying(
    bindings: Sequence[tuple[str, ast.AST]], is_source: Callable[[ast.AST], bool]
) -> frozenset[str]:
    """The names and attributes that hold what is computed from a source."""
    found: set[str] = set()
    grows = True
    while grows:
        grows = False
        for word, value in bindings:
            if word not in found and any(
                is_source(node) or _word(node) in found for node in ast.walk(value)
            ):
                found.add(word)
                grows = True
    return frozenset(found)


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that a node binds, each with what it is bound to."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((word, value) for target in targets for word in _words(target))
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
        ):
            yield from ((word, value) for word in _words(target))
        case ast.Call(func=ast.Attribute(value=receiver), args=args):  # losses.append(loss.item())
            yield from ((word, argument) for argument in args for word in _words(receiver))


def _words(target: ast.AST) -> Iterator[str]:
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _words(part)
        case ast.Starred(value=inner) | ast.Subscript(value=inner):
            yield from _words(inner)
        case ast.Name() | ast.Attribute():
            yield _word(target)


def _word(node: ast.AST) -> str:
    """A name, or an attribute with what it belongs to; '' for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute():
            return ast.unparse(node)
    return ""
