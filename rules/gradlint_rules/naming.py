"""The name of the device that a program has chosen, where a fix writes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import calls_of, related_statement
from gradlint_rules.uncut import values_bound_to, values_of


@dataclass(frozen=True, slots=True)
class Device:
    """How the device is written here, and how its type (`"cuda"`)."""

    text: str
    type: str


def device_for(finding: Finding, node: ast.AST, source: FixSource) -> Device:
    """The device that the program has chosen, by a name that is bound where `node` stands."""
    for target, value in _chosen(finding, source):
        if _is_bound(target, node, source):
            return _typed(target, value, source)
    scope = source.scope(node)
    arguments = [] if isinstance(scope, ast.Module) else [*scope.args.args, *scope.args.kwonlyargs]
    for argument in arguments:
        if argument.arg == "device":
            is_device = (
                argument.annotation is not None
                and source.called(argument.annotation) == "torch.device"
            )
            return Device("device", "device.type" if is_device else _type_of("device", source))
    if arguments and arguments[0].arg == "self" and _assigns("self.device", node, source):
        given = values_bound_to("self.device", source, node)
        is_device = bool(given) and all(_is_device(value, source) for value in given)
        return Device(
            "self.device", "self.device.type" if is_device else _type_of("self.device", source)
        )
    if beside := finding.hints.get("beside"):
        return Device(f"{beside}.device", f"{beside}.device.type")
    raise NoFixError("the device has no name here")


def _type_of(text: str, source: FixSource) -> str:
    """The type of what may be a device or its name."""
    return f"{source.reference('torch.device')[0]}({text}).type"


def _is_type(value: ast.expr, source: FixSource) -> bool:
    """Whether a value is the type of a device, as a text: `"cuda"`, but not `"cuda:0"`."""
    match value:
        case ast.Constant(value=str() as name):
            return ":" not in name
        case ast.IfExp(body=one, orelse=other):
            return _is_type(one, source) and _is_type(other, source)
        case ast.Name():
            values = values_of(value, source, value)
            return bool(values) and all(_is_type(each, source) for each in values)
    return False


def _is_device(value: ast.expr, source: FixSource) -> bool:
    """Whether a value is a device, and not its name: made so, that of a tensor, or an argument
    annotated as one.
    """
    match value:
        case ast.Call(func=func):
            return source.called(func) == "torch.device"
        case ast.Attribute(attr="device", value=ast.Call(func=ast.Name(id="next"))):
            # of the first parameter
            return True
        case ast.Name(id=name):
            scope = source.scope(value)
            given = (
                [] if isinstance(scope, ast.Module) else [*scope.args.args, *scope.args.kwonlyargs]
            )
            said = [each.annotation for each in given if each.arg == name]
            if said:
                return said[0] is not None and source.called(said[0]) == "torch.device"
            values = values_of(value, source, value)
            return bool(values) and all(_is_device(each, source) for each in values)
        case ast.Attribute(value=ast.Name(id="self")):
            values = values_of(value, source, value)
            return bool(values) and all(_is_device(each, source) for each in values)
    return False


def _chosen(finding: Finding, source: FixSource) -> Iterator[tuple[str, ast.expr]]:
    """The names that the device is given where it is chosen, and in the statements that pass it
    on.
    """
    try:
        chosen = related_statement(finding, Role.DEVICE, source)
    except NoFixError:
        return
    for call in calls_of(chosen, "to"):
        if call.args and isinstance(call.args[0], ast.Name | ast.Attribute):
            yield source.text(call.args[0]), call.args[0]
    if (
        isinstance(chosen, ast.Assign)
        and len(chosen.targets) == 1
        and not any(True for _ in calls_of(chosen, "to"))
    ):
        text = source.text(chosen.targets[0])
        yield text, chosen.value
        for other in ast.walk(source.tree):
            match other:
                case ast.Assign(targets=[ast.Attribute() as target], value=ast.Name(id=name)) if (
                    name == text
                ):
                    yield source.text(target), chosen.value


def _is_bound(text: str, node: ast.AST, source: FixSource) -> bool:
    """Whether a name has its value where `node` stands: its own function's, an argument, the
    module's, or of `self`.
    """
    scope = source.scope(node)
    if text.startswith("self."):
        return (
            not isinstance(scope, ast.Module)
            and bool(scope.args.args)
            and scope.args.args[0].arg == "self"
        )
    text = text.partition(".")[0]  # the `args` of `args.device`
    if not text.isidentifier():
        return False
    if not isinstance(scope, ast.Module) and text in {
        arg.arg for arg in (*scope.args.args, *scope.args.kwonlyargs)
    }:
        return True
    line = getattr(node, "lineno", 0)
    here = _stores(text, source, scope)
    top = [
        each
        for each in _stores(text, source, source.tree)
        if isinstance(source.scope(each), ast.Module)
    ]
    return any(each.lineno < line for each in here) if here else bool(top)


def _stores(text: str, source: FixSource, scope: ast.AST) -> list[ast.Name]:
    stores = [
        node
        for node in ast.walk(scope)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return [node for node in stores if node.id == text and source.scope(node) is scope]


def _assigns(text: str, node: ast.AST, source: FixSource) -> bool:
    """Whether the class around `node` assigns this attribute."""
    whole = next((outer for outer in source.around(node) if isinstance(outer, ast.ClassDef)), None)
    targets = (
        t
        for each in ast.walk(whole or source.tree)
        if isinstance(each, ast.Assign)
        for t in each.targets
    )
    return any(source.text(target) == text for target in targets)


def _typed(text: str, value: ast.expr, source: FixSource) -> Device:
    if _is_type(value, source):
        return Device(text, text)
    return Device(text, f"{text}.type" if _is_device(value, source) else _type_of(text, source))
