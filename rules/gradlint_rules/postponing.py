"""Fixes of optimizers that are made before their model is changed: made later, or handed what is
new.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradlint.finding import Edit
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import names_of


def handed_over_by(
    caller: ast.stmt, made: ast.stmt, change: ast.stmt, source: FixSource
) -> tuple[Edit, ...] | None:
    """What a method has added to its object, handed over behind `model.grow()`; None where it is
    not so.
    """
    match caller, made, change:
        case (
            ast.Expr(value=ast.Call(func=ast.Attribute(attr=method, value=owner))),
            ast.Assign(targets=[ast.Name() | ast.Attribute() as optimizer]),
            ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]),
        ):
            new = f"{source.text(owner)}.{name}"
        case (
            ast.Expr(value=ast.Call(func=ast.Attribute(attr=method, value=owner))),
            ast.Assign(targets=[ast.Name() | ast.Attribute() as optimizer]),
            ast.Expr(
                ast.Call(
                    func=ast.Attribute(
                        attr="append", value=ast.Attribute(value=ast.Name(id="self"), attr=name)
                    )
                )
            ),
        ):
            new = f"{source.text(owner)}.{name}[-1]"
        case _:
            return None
    if getattr(source.scope(change), "name", "") != method or not _is_seen(
        optimizer, made, caller, source
    ):
        return None
    return source.after(
        caller, f'{source.text(optimizer)}.add_param_group({{"params": {new}.parameters()}})'
    )


def made_of(made: ast.stmt, change: ast.stmt, source: FixSource) -> Sequence[ast.stmt]:
    """The statement that makes an optimizer and those up to `change` that only make something of
    it.
    """
    block = source.block(made)
    if not block.index(made) < block.index(change) or not isinstance(
        made, ast.Assign | ast.AnnAssign
    ):
        raise NoFixError("the optimizer is made elsewhere")
    moved, texts = [made], _bound_by(made, source)
    for other in block[block.index(made) + 1 : block.index(change) + 1]:
        reads = {
            source.text(node)
            for node in ast.walk(other)
            if isinstance(node, ast.Name | ast.Attribute)
        }
        if not texts & reads:
            continue
        if other is change or not isinstance(other, ast.Assign | ast.AnnAssign):
            raise NoFixError("the optimizer is used before the model is changed")
        moved.append(other)
        texts |= _bound_by(other, source)
    stored = {
        name
        for each in block[block.index(made) : block.index(change) + 1]
        if each not in moved
        for name in names_of(each, ast.Store)
    }
    loaded = {name for each in moved for name in names_of(each, ast.Load)}
    if (stored & loaded) - _changed_in(change):
        raise NoFixError("what the optimizer is made of is bound anew")
    return moved


def _changed_in(change: ast.stmt) -> set[str]:
    """The names that the change of the model binds: the model itself."""
    return names_of(change, ast.Store)


def _bound_by(statement: ast.stmt, source: FixSource) -> set[str]:
    """The names and attributes that an assignment binds."""
    targets = (
        statement.targets
        if isinstance(statement, ast.Assign)
        else [getattr(statement, "target", statement)]
    )
    parts = (
        part
        for target in targets
        for part in (target.elts if isinstance(target, ast.Tuple) else [target])
    )
    return {source.text(part) for part in parts}


def handed_over(made: ast.stmt, change: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    """`optimizer.add_param_group(…)` behind the change, where both are seen, or are attributes of
    one object.
    """
    match made, change:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as optimizer]), ast.Assign(
            targets=[ast.Attribute() | ast.Subscript() as new], value=ast.Call()
        ) if _is_seen(optimizer, made, change, source):
            group = f'{{"params": {source.text(new)}.parameters()}}'
            return source.after(change, f"{source.text(optimizer)}.add_param_group({group})")
    raise NoFixError("the optimizer has no name where the model is changed")


def _is_seen(
    optimizer: ast.Name | ast.Attribute, made: ast.stmt, change: ast.stmt, source: FixSource
) -> bool:
    """Whether what names the optimizer means the same where the model is changed."""
    scope = source.scope(change)
    if isinstance(optimizer, ast.Name):
        return source.scope(made) is scope
    given = (
        [] if isinstance(scope, ast.Module) else [argument.arg for argument in scope.args.args[:1]]
    )
    return isinstance(optimizer.value, ast.Name) and [optimizer.value.id] == given
