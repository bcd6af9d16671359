"""`match` as the `if`s that it stands for: a pattern is a condition on the subject and binds its
names on the way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

SUBJECT = "<subject>"  # what the subject is bound to: no name of a program
_Node = TypeVar("_Node", bound=ast.AST)
_WHOLE = {
    "bool",
    "bytearray",
    "bytes",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "set",
    "str",
    "tuple",
}


def as_ifs(node: ast.Match) -> list[ast.stmt]:
    """The statements that do what a `match` does."""
    first: list[ast.stmt] = []
    subject = node.subject
    if not isinstance(subject, ast.Name):
        bound = ast.copy_location(ast.Name(SUBJECT, ast.Store()), subject)
        first.append(ast.copy_location(ast.Assign([bound], subject), subject))
        subject = ast.copy_location(ast.Name(SUBJECT, ast.Load()), subject)
    rest: list[ast.stmt] = []
    for case in reversed(node.cases):
        tests = _tests(case.pattern, subject)
        if tests:
            tests = [_said(_all(tests, case.pattern))]
        tests += [case.guard] if case.guard else []
        rest = [_if(_all(tests, case.pattern), case, rest, node)] if tests else case.body
    return [*first, *rest]


def _if(test: ast.expr, case: ast.match_case, rest: list[ast.stmt], node: ast.Match) -> ast.stmt:
    """An `if` that reaches to the end of the `match`."""
    made = _at(case.pattern, ast.If(test, case.body, rest))
    made.end_lineno, made.end_col_offset = node.end_lineno, node.end_col_offset
    return made


def _said(test: ast.expr) -> ast.expr:
    """The condition of a whole pattern, quoted with its keyword."""
    if test.col_offset >= len("case "):
        test.col_offset -= len("case ")
    return test


def _tests(pattern: ast.pattern, subject: ast.expr) -> list[ast.expr]:
    """What has to hold for a pattern, each of it a condition."""
    find: Callable[[Any, ast.expr], list[ast.expr]] = _KINDS.get(type(pattern), _unlisted)
    return find(pattern, subject)


def _unlisted(pattern: Any, subject: ast.expr) -> list[ast.expr]:
    """A pattern of a later Python, in the place of a condition: whether it holds is not known."""
    return [pattern]


def _value(pattern: ast.MatchValue, subject: ast.expr) -> list[ast.expr]:
    return [_at(pattern, ast.Compare(subject, [ast.Eq()], [pattern.value]))]


def _singleton(pattern: ast.MatchSingleton, subject: ast.expr) -> list[ast.expr]:
    return [
        _at(pattern, ast.Compare(subject, [ast.Is()], [_at(pattern, ast.Constant(pattern.value))]))
    ]


def _as(pattern: ast.MatchAs, subject: ast.expr) -> list[ast.expr]:
    tests = _tests(pattern.pattern, subject) if pattern.pattern is not None else []
    return [*tests, _binding(pattern, pattern.name, subject)] if pattern.name is not None else tests


def _or(pattern: ast.MatchOr, subject: ast.expr) -> list[ast.expr]:
    values = [_all(_tests(one, subject), one) for one in pattern.patterns]
    return [_at(pattern, ast.BoolOp(ast.Or(), values))]


def _class(pattern: ast.MatchClass, subject: ast.expr) -> list[ast.expr]:
    tests: list[ast.expr] = [_call(pattern, "isinstance", subject, pattern.cls)]
    is_whole = isinstance(pattern.cls, ast.Name) and pattern.cls.id in _WHOLE
    for number, inner in enumerate(pattern.patterns):
        names = _at(pattern, ast.Attribute(pattern.cls, "__match_args__", ast.Load()))
        part = (
            subject if is_whole else _call(inner, "getattr", subject, _item(inner, names, number))
        )
        tests += _tests(inner, part)
    for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        tests += _tests(inner, _at(inner, ast.Attribute(subject, name, ast.Load())))
    return tests


def _sequence(pattern: ast.MatchSequence, subject: ast.expr) -> list[ast.expr]:
    star = next(
        (n for n, inner in enumerate(pattern.patterns) if isinstance(inner, ast.MatchStar)), None
    )
    count = len(pattern.patterns)
    comparison, least = (ast.Eq(), count) if star is None else (ast.GtE(), count - 1)
    length = _call(pattern, "len", subject)
    long_enough = _at(
        pattern, ast.Compare(length, [comparison], [_at(pattern, ast.Constant(least))])
    )
    tests = [_call(pattern, "isinstance", subject, _classes(pattern, "list", "tuple")), long_enough]
    for number, inner in enumerate(pattern.patterns):
        if isinstance(inner, ast.MatchStar):
            upper = _at(inner, ast.Constant(number + 1 - count)) if number + 1 < count else None
            between = _at(inner, ast.Slice(_at(inner, ast.Constant(number)), upper))
            part = _call(inner, "list", _at(inner, ast.Subscript(subject, between, ast.Load())))
            tests += [_binding(inner, inner.name, part)] if inner.name is not None else []
        else:
            place = number if star is None or number < star else number - count
            tests += _tests(inner, _item(inner, subject, place))
    return tests


def _mapping(pattern: ast.MatchMapping, subject: ast.expr) -> list[ast.expr]:
    tests = [_call(pattern, "isinstance", subject, _classes(pattern, "dict"))]
    for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
        tests.append(_at(key, ast.Compare(key, [ast.In()], [subject])))
        tests += _tests(inner, _at(inner, ast.Subscript(subject, key, ast.Load())))
    if pattern.rest is not None:
        tests.append(_binding(pattern, pattern.rest, _others(pattern, subject)))
    return tests


def _others(pattern: ast.MatchMapping, subject: ast.expr) -> ast.expr:
    """The entries that a pattern does not name."""
    key = _at(pattern, ast.Name("<key>", ast.Load()))
    named = _at(pattern, ast.Tuple(pattern.keys, ast.Load()))
    is_other = _at(pattern, ast.Compare(key, [ast.NotIn()], [named]))
    clause = ast.comprehension(_at(pattern, ast.Name("<key>", ast.Store())), subject, [is_other], 0)
    entry = _at(pattern, ast.Subscript(subject, key, ast.Load()))
    return _at(pattern, ast.DictComp(key, entry, [clause]))


_KINDS: dict[type[ast.pattern], Callable[[Any, ast.expr], list[ast.expr]]] = {
    ast.MatchValue: _value, ast.MatchSingleton: _singleton, ast.MatchAs: _as, ast.MatchOr: _or,
    ast.MatchClass: _class, ast.MatchSequence: _sequence, ast.MatchMapping: _mapping,
}  # fmt: skip


def _at(place: ast.AST, node: _Node) -> _Node:
    return ast.copy_location(node, place)


def _all(tests: list[ast.expr], place: ast.pattern) -> ast.expr:
    if not tests:
        return _at(place, ast.Constant(True))
    return tests[0] if len(tests) == 1 else _at(place, ast.BoolOp(ast.And(), tests))


def _call(place: ast.AST, name: str, *args: ast.expr) -> ast.expr:
    function = _at(place, ast.Name(name, ast.Load()))
    return _at(place, ast.Call(function, list(args), []))


def _classes(place: ast.AST, *names: str) -> ast.expr:
    return _at(
        place, ast.Tuple([_at(place, ast.Name(name, ast.Load())) for name in names], ast.Load())
    )


def _item(place: ast.AST, owner: ast.expr, number: int) -> ast.expr:
    return _at(place, ast.Subscript(owner, _at(place, ast.Constant(number)), ast.Load()))


def _binding(place: ast.AST, name: str, value: ast.expr) -> ast.expr:
    """Binds a name, and holds whatever it is bound to."""
    target = _at(place, ast.Name(name, ast.Store()))
    named = _at(place, ast.NamedExpr(target, value))
    return _at(place, ast.Tuple([named], ast.Load()))
