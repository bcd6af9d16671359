"""What an expression is bound to, and the names of the arguments of a call."""

from __future__ import annotations

import ast
from types import CodeType
from typing import TypeGuard

from gradlint.evidence import is_loss_variable
from gradlint.trace.frames import Frame, Place
from gradlint.trace.source import extent, function, is_returned, once, position, source_file


@once
def name(code: CodeType, instruction: int) -> str:
    """The variable or attribute that the expression is bound to, or ''."""
    return source_file(code.co_filename).names.get(position(Frame(0, code, instruction)), "")


@once
def arguments(code: CodeType, instruction: int) -> tuple[str, ...]:
    """The names that the call at an instruction is given, by position; '' for what is no name, or
    no one tensor.
    """
    at = position(Frame(0, code, instruction))
    body = function(code) or ast.Module([], [])
    call = next(
        (node for node in ast.walk(body) if isinstance(node, ast.Call) and extent(node) == at), None
    )
    given = [
        each.elts[0] if _is_single(each) else each
        for each in (call.args if call is not None else ())
    ]
    return tuple(
        ast.unparse(each) if isinstance(each, ast.Name | ast.Attribute) else "" for each in given
    )


def _is_single(node: ast.expr) -> TypeGuard[ast.List | ast.Tuple]:
    return isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1


def loss_name(place: Place) -> str:
    """The variable that the expression is bound to, where its name says that it is a loss, or ''.

    What a function returns is bound where it was called.
    """
    for frame in place:
        bound = name(frame.code, frame.instruction)
        if bound or not is_returned(frame.code, frame.instruction):
            return bound if is_loss_variable(bound.rpartition(".")[2]) else ""
    return ""
