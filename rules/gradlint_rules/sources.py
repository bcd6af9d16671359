"""Fixes of `torch.autograd.grad` that is asked for the gradient of what the output was not computed
from: of another shape of what it was, or of a copy of the network.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.finding import Edit, Finding
from gradlint.operations import Trait, has
from gradlint.rule import FixSource, NoFixError
from gradlint.tape import Fact, Module, Parameter, ancestors
from gradlint_rules.uncut import values_of

_SHAPES = ("view", "reshape")  # of what autograd gives, `view` may be refused


def twin(fact: Fact) -> dict[str, str]:
    """What the network is called whose parameter is asked for, and what that which was run: one is
    a copy of the other.
    """
    asked = fact.value.parameter if fact.value is not None else None
    if asked is None or fact.source is None:
        return {}
    for value in ancestors(fact.source):
        own = value.parameter
        if own is not None and (own.copy_of is asked or asked.copy_of is own):
            names = {"asked": _root(asked), "run": _root(own)}
            return names if all(map(str.isidentifier, names.values())) else {}
    return {}


def _root(parameter: Parameter) -> str:
    module: Module | None = parameter.module
    return module.path.partition(".")[0] if module is not None else ""


def of_what_was_run(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The gradient of what the output was computed from."""
    call = source.expression(finding.at)
    if not isinstance(call, ast.Call):
        raise NoFixError("no call")
    named = [word.value for word in call.keywords if word.arg == "inputs"]
    inputs = [*named, *call.args[1:2]]
    if not inputs:
        raise NoFixError("what is asked for is out of view")
    if "run" in finding.hints:
        return tuple(_renamed(inputs[0], finding, source))
    return _reshaped(call, inputs[0], source)


def _renamed(inputs: ast.expr, finding: Finding, source: FixSource) -> Iterator[Edit]:
    """The network that was run in the place of its copy."""
    for node in ast.walk(inputs):
        if isinstance(node, ast.Name) and node.id == finding.hints["asked"]:
            yield source.replace(node, finding.hints["run"])


def _reshaped(call: ast.Call, inputs: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """The gradient of `x`, given the shape of `flat = x.flatten(1)`, in the place of that of
    `flat`.
    """
    asked = inputs.elts[0] if isinstance(inputs, ast.List | ast.Tuple) else inputs
    if isinstance(asked, ast.Subscript | ast.Call):
        return _of_the_whole(call, asked, source)
    values = values_of(asked, source, call)
    if not isinstance(asked, ast.Name) or len(values) != 1:
        raise NoFixError("what is asked for was not made once")
    shaped = values[0]
    base = _shaped(shaped, source)
    statement = source.statement(call)
    result = _result(statement, call)
    shape = source.text(shaped)
    names = [n for n in ast.walk(shaped) if isinstance(n, ast.Name) and n.id == base.id]
    start = shaped.col_offset
    if shaped.lineno != (shaped.end_lineno or shaped.lineno):
        raise NoFixError("it is written on several lines")
    for name in sorted(names, key=lambda each: each.col_offset, reverse=True):
        at = name.col_offset - start
        shape = shape[:at] + result + shape[at + len(base.id) :]
    for word in _SHAPES:
        shape = shape.replace(f"{result}.{word}(", f"{result}.reshape(")
    return (source.replace(asked, base.id), *source.after(statement, f"{result} = {shape}"))


def _of_the_whole(call: ast.Call, part: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """`grad(loss, w[i])[0]` as `grad(loss, w)[0][i]`."""
    whole: ast.expr = part
    while True:
        match whole:
            case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(value=value)) if (
                isinstance(whole, ast.Subscript) or _is_of_its_own_shape(whole, source)
            ):
                whole = value
            case _:
                break
    gradient = next(source.around(call))
    if not isinstance(gradient, ast.Subscript) or not isinstance(whole, ast.Name | ast.Attribute):
        raise NoFixError("no part of a tensor, or the gradient is not taken out of the result")
    text = source.text(whole)
    return (
        source.replace(part, text),
        source.behind_text(gradient, source.text(part).removeprefix(text)),
    )


def _is_of_its_own_shape(node: ast.expr, source: FixSource) -> bool:
    """Whether a method gives a tensor another shape: the same numbers, each once."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name = node.func.attr
    is_method = not source.called(node.func).startswith("torch.")
    return is_method and has(name, Trait.REARRANGES) and not has(name, Trait.EXPANDS)


def _shaped(node: ast.expr, source: FixSource) -> ast.Name:
    """The tensor that is given another shape, of the same numbers in the same order or another."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if not has(name, Trait.REARRANGES) or has(name, Trait.EXPANDS):
            break
        is_function = source.called(node.func).startswith("torch.")
        node = node.args[0] if is_function and node.args else node.func.value
    if not isinstance(node, ast.Name):
        raise NoFixError("it is more than another shape")
    return node


def _result(statement: ast.stmt, call: ast.Call) -> str:
    """The name that the gradient is bound to."""
    match statement:
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name(id=name)]) | ast.List(elts=[ast.Name(id=name)])],
            value=value,
        ) if value is call:
            return name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=value)) if (
            value is call
        ):
            return name
    raise NoFixError("the gradient has no name of its own")
