"""The fix of `ctx.save_for_backward(x, size)` of a number: kept as `ctx.size` instead."""

from __future__ import annotations

import ast

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError


def kept_beside(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """What is no tensor as an attribute of `ctx`, read by that name in the backward."""
    given = source.expression(finding.at)
    saving = next((outer for outer in source.around(given) if isinstance(outer, ast.Call)), None)
    if (
        not isinstance(given, ast.Name)
        or saving is None
        or not isinstance(saving.func, ast.Attribute)
        or given not in saving.args
        or len(saving.args) < 2
    ):
        raise NoFixError("what is saved has no name, or nothing else is saved")
    place = saving.args.index(given)
    unpacked, targets, context = _unpacked(given, len(saving.args), source)
    ctx, own = source.text(saving.func.value), source.text(context)
    left = [source.text(each) for each in targets if each is not targets[place]]
    names = f"({left[0]},)" if len(left) == 1 else ", ".join(left)
    return (
        source.remove_argument(saving, given),
        *source.after(source.statement(given), f"{ctx}.{given.id} = {given.id}"),
        *source.instead(
            unpacked,
            f"{names} = {own}.saved_tensors",
            f"{source.text(targets[place])} = {own}.{given.id}",
        ),
    )


def _unpacked(
    given: ast.AST, number: int, source: FixSource
) -> tuple[ast.Assign, list[ast.expr], ast.expr]:
    """The statement of the backward that unpacks as much as the forward saves, with the names that
    it binds, and its `ctx`.
    """
    owner = next((outer for outer in source.around(given) if isinstance(outer, ast.ClassDef)), None)
    for node in ast.walk(owner) if owner is not None else ():
        match node:
            case ast.Assign(
                targets=[ast.Tuple(elts=parts)],
                value=ast.Attribute(value=context, attr="saved_tensors"),
            ) if len(parts) == number:
                return node, parts, context
    raise NoFixError("what is saved is not unpacked at once")
