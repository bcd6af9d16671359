"""The fix of parameters that two optimizers hold: one of them is given the rest alone."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradlint.dataclass import dataclass
from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.uncut import values_of


@dataclass(frozen=True, slots=True)
class _Terms:
    """What parameters are put together from: `a` and `b` of `[*a, *b]`, `chain(a, b)` and
    `list(a) + list(b)`.
    """

    whole: ast.expr
    parts: tuple[ast.expr, ...]
    joined: bool = False  # by `+`


def left_to_one(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The second optimizer without those of its parts that the first one is made of, too; the
    first without them, where the second has no others.
    """
    terms = _terms(_parameters(source.expression(finding.at), source), source)
    for related in finding.related:
        if related.at.path != finding.at.path or related.at == finding.at:
            continue
        made = source.expression(related.at)
        if not isinstance(made, ast.Call):
            continue
        others = _terms(_parameters(made, source), source)
        for own, other in ((terms, others), (others, terms)):
            held = {_text(part, source) for part in other.parts}
            shared = [part for part in own.parts if _text(part, source) in held]
            if shared and len(shared) < len(own.parts):
                return _without(own, shared, source)
    raise NoFixError("what both hold is no part of what one of them is given")


def _parameters(call: ast.expr, source: FixSource) -> ast.expr:
    """The parameters that an optimizer is given, where a name that nothing else reads stands for
    them: what it is.
    """
    if not isinstance(call, ast.Call):
        raise NoFixError("no optimizer is made there")
    named = [word.value for word in call.keywords if word.arg == "params"]
    for given in [*named, *call.args[:1]]:
        values = values_of(given, source, call) if isinstance(given, ast.Name) else []
        reads = (
            node
            for node in ast.walk(source.scope(call))
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        )
        if len(values) == 1 and sum(node.id == source.text(given) for node in reads) == 1:
            return values[0]
        return given
    raise NoFixError("what it is given is out of view")


def _terms(given: ast.expr, source: FixSource) -> _Terms:
    match given:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return _Terms(given, tuple(parts))
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _Terms(given, (*_terms(left, source).parts, right), joined=True)
        case ast.Call(func=func, args=[inner]) if source.called(func) in ("list", "tuple"):
            found = _terms(inner, source)
            return found if len(found.parts) > 1 else _Terms(given, (given,))
        case ast.Call(func=func, args=parts) if source.called(func) == "itertools.chain":
            return _Terms(given, tuple(parts))
    return _Terms(given, (given,))


def _text(part: ast.expr, source: FixSource) -> str:
    """How a part is written, without what only makes a list of it or puts options beside it."""
    match part:
        case ast.Starred(value=value):
            return _text(value, source)
        case ast.Call(func=func, args=[inner]) if source.called(func) in ("list", "tuple"):
            return _text(inner, source)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "params":
                    return _text(value, source)
    return source.text(part)


def _without(terms: _Terms, shared: Sequence[ast.expr], source: FixSource) -> tuple[Edit, ...]:
    rest = [part for part in terms.parts if part not in shared]
    is_list = isinstance(terms.whole, ast.List | ast.Tuple)
    if len(rest) == 1 and (isinstance(rest[0], ast.Starred) or not is_list):
        only = rest[0].value if isinstance(rest[0], ast.Starred) else rest[0]
        return (source.replace(terms.whole, source.text(only)),)
    if terms.joined:
        return (source.replace(terms.whole, " + ".join(map(source.text, rest))),)
    texts = ", ".join(map(source.text, rest))
    match terms.whole:
        case ast.Call(func=func):
            return (source.replace(terms.whole, f"{source.text(func)}({texts})"),)
        case ast.Tuple():
            return (source.replace(terms.whole, f"({texts},)"),)
    return (source.replace(terms.whole, f"[{texts}]"),)
