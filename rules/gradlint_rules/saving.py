"""Fixes of `ctx.x = x`: saved for the backward, and unpacked there."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.functions import class_method
from gradlint_rules.order import calls_of, names_of


def saved_for_backward(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`ctx.x = x` as a part of `ctx.save_for_backward(…)`, unpacked in the backward."""
    kept = source.statement(finding.at)
    match kept:
        case ast.Assign(
            targets=[ast.Attribute(attr=attribute, value=ast.Name(id=ctx))],
            value=ast.Tuple(elts=elements),
        ) if elements and all(isinstance(each, ast.Name) for each in elements):
            return _saved_together(kept, ctx, attribute, elements, source)
        case ast.Assign(
            targets=[ast.Attribute(attr=attribute, value=ast.Name(id=ctx))], value=ast.Name(id=name)
        ):
            backward = class_method("backward", kept, source)
            saving = next(calls_of(source.scope(kept), "save_for_backward"), None)
            if saving is None:
                edits = [source.rewrite(kept, f"{ctx}.save_for_backward({name})")]
            else:
                edits = [*source.remove(kept), source.add_argument(saving, name)]
            return (*edits, *_unpacked(backward, attribute, saving is None, source))
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            return _saved_apart(kept, source.expression(finding.at), targets, values, source)
    raise NoFixError("no plain name is kept")


def _saved_apart(
    kept: ast.Assign,
    wanted: ast.expr,
    targets: Sequence[ast.expr],
    values: Sequence[ast.expr],
    source: FixSource,
) -> tuple[Edit, ...]:
    """One of those that `ctx.x, ctx.y = x, y` sets, saved; the others are set as before."""
    pairs = list(zip(targets, values, strict=False))
    match [pair for pair in pairs if wanted in pair]:
        case [(ast.Attribute(attr=attribute, value=ast.Name(id=ctx)), ast.Name(id=name))]:
            pass
        case _:
            raise NoFixError("no plain name is kept")
    if len(targets) != len(values):
        raise NoFixError("what is set to what is not said one by one")
    others = [[source.text(each) for each in pair] for pair in pairs if wanted not in pair]
    sides = [", ".join(side) for side in zip(*others, strict=True)]
    lines = [" = ".join(sides)] if others else []
    saving = next(calls_of(source.scope(kept), "save_for_backward"), None)
    saved = () if saving is None else (source.add_argument(saving, name),)
    lines += [f"{ctx}.save_for_backward({name})"] if saving is None else []
    written = source.instead(kept, *lines) if lines else source.remove(kept)
    backward = class_method("backward", kept, source)
    return (*written, *saved, *_unpacked(backward, attribute, saving is None, source))


def _saved_together(
    kept: ast.stmt, ctx: str, attribute: str, elements: Sequence[ast.expr], source: FixSource
) -> tuple[Edit, ...]:
    """A tuple that is kept as an attribute saved as all that the forward saves, and read as
    such.
    """
    if next(calls_of(source.scope(kept), "save_for_backward"), None) is not None:
        raise NoFixError("the forward saves other tensors, too")
    backward = class_method("backward", kept, source)
    own = backward.args.args[0].arg
    reads = [
        n
        for n in ast.walk(backward)
        if isinstance(n, ast.Attribute) and source.text(n) == f"{own}.{attribute}"
    ]
    saved = source.rewrite(
        kept, f"{ctx}.save_for_backward({', '.join(map(source.text, elements))})"
    )
    return (saved, *(source.replace_name(read, "saved_tensors") for read in reads))


def _unpacked(
    backward: ast.FunctionDef, attribute: str, is_first: bool, source: FixSource
) -> list[Edit]:
    ctx = backward.args.args[0].arg
    reads = [
        n
        for n in ast.walk(backward)
        if isinstance(n, ast.Attribute) and source.text(n) == f"{ctx}.{attribute}"
    ]
    rebound = [
        s
        for s in backward.body
        if isinstance(s, ast.Assign) and any(s.value is read for read in reads)
    ]
    name = source.text(rebound[0].targets[0]) if rebound else attribute
    if not rebound and name in names_of(backward, ast.Store):
        raise NoFixError("the name means something else in the backward")
    edits = [edit for statement in rebound for edit in source.remove(statement)]
    edits += [
        source.replace(read, name) for read in reads if not any(s.value is read for s in rebound)
    ]
    if is_first:
        return [*edits, *source.first(backward.body, f"({name},) = {ctx}.saved_tensors")]
    for statement in backward.body:
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value):
                if source.text(value) == f"{ctx}.saved_tensors":
                    names = ", ".join([*map(source.text, elements), name])
                    return [*edits, source.rewrite(statement, f"{names} = {ctx}.saved_tensors")]
    raise NoFixError("what is saved is not unpacked")
