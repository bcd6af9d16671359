"""Names: what each is bound to, in its scope and those around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.tables import EVALUATE, handles
from gradlint.interpret.values import (
    Abstract,
    Lib,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame


@handles(EVALUATE, ir.Name)
def name(m: Machine, node: ir.Name, frame: Frame) -> Abstract:
    if frame.source is None:  # most are local, and so nothing to be bound or asked for
        found = frame.locals.get(node.id)
        if found is not None:
            return found
    return lookup_name(m, node.id, frame)


def lookup_name(m: Machine, name: str, frame: Frame) -> Abstract:
    """What a name is bound to: in this scope, those around it, the module (which is executed as far
    as needed).
    """
    scope: Frame | None = frame
    while scope is not None:
        bound = scope.locals.get(name)
        if bound is not None and (scope is frame or not scope.is_class):
            if scope.source is not None:
                m.session.program.dependencies.ask(scope, name)
            return bound
        if scope.parent is None:
            found = m.session.program.bind(m, scope, name)
            if found is not None:
                return found
        scope = scope.parent
    return (
        Lib(f"builtins.{name}")
        if m.session.is_builtin(name)
        else m.session.missing(frame.module, name)
    )
