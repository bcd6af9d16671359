"""May-effect summaries: what code can do to gradients, optimizers and losses, read from its syntax tree.

    else:
        advance(optimizer)      # advance() calls optimizer.step(): May.STEP

A summary over-approximates. A call can mean every function of its name in the files that the
program has read; what is out of view can do anything to what it is given. So a summary can
silence a claim that something happens on no path, and never supports a finding.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.interpret.registry import FUNCTIONS, METHODS
from gradlint.library.effects import lookup
from gradlint.program import parts
from gradlint.source.blocks import walk
from gradlint.tape import May

if TYPE_CHECKING:
    from gradlint.program.modules import Program

# The methods of PyTorch, and of what wraps it, that are the events of a training step.
_METHODS = {
    "step": May.STEP,
    "zero_grad": May.CLEAR,
    "backward": May.BACKWARD,
    "manual_backward": May.BACKWARD,
    "scale_loss": May.BACKWARD,
    "grad": May.BACKWARD,
    "add_param_group": May.HOLD,
    "fit": May.ANYTHING,
    "learn": May.ANYTHING,
}
_SETS = May.BIND | May.CLEAR  # setattr(parameter, "grad", None)
_BUILTINS = {"exec": May.ANYTHING, "eval": May.ANYTHING, "setattr": _SETS, "delattr": _SETS}
_CALLED_WITH_CLASS = frozenset(["__init__", "__call__", "__enter__", "__exit__"])
_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
_EXITS = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_Place = tuple[int, int, int, int]
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class _Summary:
    """The effects of some code by itself, and the names of what it calls, each with what that may do out of view."""

    effects: May
    calls: frozenset[tuple[str, May]]


@dataclass(frozen=True, slots=True)
class _Sides:
    """What runs where a test holds and where it does not, as far as its own statement says."""

    then: tuple[ast.AST, ...]
    otherwise: tuple[ast.AST, ...]
    around: ast.AST  # the function, or the module: what can follow a side

    def of(self, holds: bool) -> tuple[ast.AST, ...]:
        """The code that only this answer leads to; what follows, too, where the other answer leaves the block."""
        own, other = (self.then, self.otherwise) if holds else (self.otherwise, self.then)
        leaves = any(isinstance(each, _EXITS) for each in other)
        return (*own, self.around) if leaves else own


def may(program: Program, block: Iterable[ast.AST], effects: May) -> bool:
    """Whether running the block, and what it calls, can have one of these effects."""
    seen: set[str] = set()
    pending = [_summary(node) for node in block]
    while pending:
        found = pending.pop()
        if found.effects & effects:
            return True
        for name, unseen in found.calls:
            functions = list(_functions(program, name))
            if not functions and unseen & effects:
                return True
            if name not in seen:
                seen.add(name)
                pending += map(_summary, functions)
    return False


def may_of_side(program: Program, file: str, test: _Place, holds: bool, effects: May) -> bool:
    """Whether what an answer of the test at a place leads to can have one of these effects.

    A test that no branch of the syntax asks (`model.train(flag)`) decides on a value.
    """
    source = program.source(Path(file))
    found = _sides(source.tree).get(test) if source is not None else None
    return bool(effects & May.BIND) if found is None else may(program, found.of(holds), effects)


def _functions(program: Program, name: str) -> Iterator[_Function]:
    """The functions of this name in the files that the program has read; those of a class by its name."""
    for source in list(program.sources.values()):
        if source is not None and name in source.code.text:
            program.asked.add((source.code.path, parts.WHOLE))
            yield from _defined(source.tree).get(name, ())


@memo.of_programs
def _defined(tree: ast.Module) -> dict[str, list[_Function]]:
    found: dict[str, list[_Function]] = {}
    for node in walk(tree):
        if isinstance(node, _Function):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            run = (each for each in node.body if isinstance(each, _Function) and each.name in _CALLED_WITH_CLASS)
            found.setdefault(node.name, []).extend(run)
    return found


@memo.of_programs
def _sides(tree: ast.Module) -> dict[_Place, _Sides]:
    found: dict[_Place, _Sides] = {}
    for test, sides in _branches(tree, tree):
        found.setdefault(test, sides)
    return found


def _branches(node: ast.AST, around: ast.AST) -> Iterator[tuple[_Place, _Sides]]:
    """Every branch below a node, by the place of its test; a branch comes before those in its test."""
    pending: list[tuple[ast.AST, ast.AST]] = [(node, around)]
    while pending:
        node, around = pending.pop()
        inner = node if isinstance(node, _BLOCKS) else around
        pending += [(child, inner) for child in ast.iter_child_nodes(node)]
        match node:
            case ast.If():
                yield from _tested(node.test, _Sides(tuple(node.body), tuple(node.orelse), inner))
            case ast.IfExp():
                yield from _tested(node.test, _Sides((node.body,), (node.orelse,), inner))
            case ast.comprehension():
                for test in node.ifs:
                    yield _place(test), _Sides((inner,), (), inner)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield _place(left), _Sides((right,), (right,), inner)


def _tested(test: ast.expr, sides: _Sides) -> Iterator[tuple[_Place, _Sides]]:
    """A test and its sides; a part of it (`a` of `a and not b`) can lead to either."""
    yield _place(test), sides
    either = (test, *sides.then, *sides.otherwise)
    parts = (part for part in ast.walk(test) if isinstance(part, ast.expr) and part is not test)
    yield from ((_place(part), _Sides(either, either, sides.around)) for part in parts)


def _place(node: ast.expr) -> _Place:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


@memo.of_programs
def _summary(node: ast.AST) -> _Summary:
    effects, calls = May(0), set[tuple[str, May]]()
    for part in walk(node):
        match part:
            case ast.Attribute(attr="grad", ctx=ast.Store() | ast.Del()):
                effects |= May.CLEAR | May.BIND
            case ast.Name(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                effects |= May.BIND
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Yield() | ast.YieldFrom():
                effects |= May.BIND
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                effects |= May.BIND
            case ast.Call(func=ast.Attribute(value=receiver, attr=name)) if _writes_gradient(receiver, name):
                effects |= May.CLEAR
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))) if _is_of_library(name):
                effects |= May.BIND  # its result is thrown away: it is called for what it does
            case ast.Call():
                known = _of_call(part)
                effects |= known if isinstance(known, May) else May(0)
                if isinstance(known, tuple):
                    calls.add(known)
    return _Summary(effects, frozenset(calls))


def _of_call(call: ast.Call) -> May | tuple[str, May]:
    """What a call does, where that is known by its name; else the name, and what it may do out of view."""
    match call.func:
        case ast.Attribute(attr=name, value=receiver):
            if name in _METHODS:
                return _METHODS[name]
            given = _is_thing(receiver)
        case ast.Name(id=name):
            if hasattr(builtins, name):
                return _BUILTINS.get(name, May(0))
            given = False
        case _:
            return May.ANYTHING
    if _is_of_library(name):
        return name, May(0)
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    return name, May.ANYTHING if given or any(map(_is_thing, arguments)) else May(0)


def _writes_gradient(receiver: ast.expr, method: str) -> bool:
    """`p.grad.zero_()`, `p.grad.data.copy_(...)`"""
    named = (part.attr for part in ast.walk(receiver) if isinstance(part, ast.Attribute))
    return method.endswith("_") and "grad" in named


def _is_thing(node: ast.expr) -> bool:
    """Whether an expression can be an object that the program holds, and not a number or a text made for a call."""
    match node:
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Starred() | ast.Lambda():
            return True
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return any(map(_is_thing, items))
        case ast.Dict(values=items):
            return any(map(_is_thing, items))
    return False


def _is_of_library(name: str) -> bool:
    return name in _library() or lookup(name) is not None


@functools.cache
def _library() -> frozenset[str]:
    """The names of the functions and methods of libraries whose behaviour is modelled."""
    return frozenset([name for _, name in METHODS] + [name.rpartition(".")[2] for name in FUNCTIONS])
