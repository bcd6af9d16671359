"""Fixes that put the device in the place of `"cuda"`: which name has it here, and how autocast and
scalers are told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.naming import device_for
from gradlint_rules.order import called_name, names_of

_OLD_ARGUMENTS = {
    "autocast": ("enabled", "dtype", "cache_enabled"),
    "GradScaler": ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"),
}
_NEW = {"autocast": "torch.autocast", "GradScaler": "torch.amp.GradScaler"}
# Since when torch has what in `torch.amp`; `torch.autocast` is older than `torch.amp.autocast`,
# which is the same.
_SINCE = {"autocast": (1, 12), "GradScaler": (2, 3), "custom_fwd": (2, 4), "custom_bwd": (2, 4)}
_AUTOCAST_SINCE = (1, 10)


def told_the_device(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """An autocast or scaler for CUDA as one for the device, enabled where that is CUDA."""
    call = source.expression(finding.at)
    if not isinstance(call, ast.Call):
        raise NoFixError("not called")
    for outer in source.around(call):
        if isinstance(outer, ast.FunctionDef) and call in outer.decorator_list:
            return _within(call, outer, source)
        if isinstance(outer, ast.stmt):
            break
    if source.called(call.func) == "functools.partial" and call.args:
        return _held(call, device_for(finding, call, source).type, source)
    return _told(call, device_for(finding, call, source).type, source)


def _held(partial: ast.Call, type_: str, source: FixSource) -> tuple[Edit, ...]:
    """A partial of an autocast or scaler, told the device in the same way."""
    held = _held_by(partial)
    name, imports = source.reference(_new(_kind(held, source), source))
    given = f"{name}, {_arguments(held, type_, source)}"
    return (source.replace(partial, f"{source.text(partial.func)}({given})"), *imports)


def switched_off_there(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`autocast("cuda", enabled=False)` as that of the region around it, or of a tensor that is
    cast in it.
    """
    call = source.expression(finding.at)
    regions = [outer for outer in source.around(call) if isinstance(outer, ast.With)]
    if not isinstance(call, ast.Call) or not regions:
        raise NoFixError("no region of its own")
    region, *outer = regions
    named = [keyword.value for keyword in call.keywords if keyword.arg == "device_type"]
    devices = named or call.args[:1]
    around = _device_of_autocast(
        [each for each in outer if source.scope(each) is source.scope(call)], source
    )
    if around is not None and devices:
        return (source.replace(devices[0], around),)
    cast = _cast_in(region, source)
    if cast is None or not devices:
        raise NoFixError("no tensor is cast there")
    return (source.replace(devices[0], f"{cast}.device.type"),)


def _device_of_autocast(regions: Sequence[ast.With], source: FixSource) -> str | None:
    """The device that the innermost autocast among some regions is for, as it is written there."""
    entered = (item.context_expr for each in regions for item in each.items)
    calls = (each for each in entered if isinstance(each, ast.Call) and each.args)
    return next(
        (source.text(each.args[0]) for each in calls if called_name(each) == "autocast"), None
    )


def _cast_in(region: ast.With, source: FixSource) -> str | None:
    """The first tensor that is cast by `.float()` in a region, and is bound before it."""
    given = _bound_before(region, source)
    methods = [node.func for node in ast.walk(region) if isinstance(node, ast.Call)]
    cast = [
        each.value for each in methods if isinstance(each, ast.Attribute) and each.attr == "float"
    ]
    return next((each.id for each in cast if isinstance(each, ast.Name) and each.id in given), None)


def _bound_before(statement: ast.stmt, source: FixSource) -> set[str]:
    """The arguments of a function, and what it binds before a statement."""
    scope = source.scope(statement)
    given = [] if isinstance(scope, ast.Module) else [*scope.args.args, *scope.args.kwonlyargs]
    block = source.block(statement)
    return {argument.arg for argument in given} | {
        name for earlier in block[: block.index(statement)] for name in names_of(earlier, ast.Store)
    }


def _told(call: ast.Call, type_: str, source: FixSource) -> tuple[Edit, ...]:
    name, imports = source.reference(_new(_kind(call, source), source))
    return (source.replace(call, f"{name}({_arguments(call, type_, source)})"), *imports)


def _within(call: ast.Call, function: ast.FunctionDef, source: FixSource) -> tuple[Edit, ...]:
    """A decorator as a `with` around the body, where the first argument says which device it is."""
    arguments = [
        argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")
    ]
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not arguments or not body:
        raise NoFixError("no argument has a device")
    name, imports = source.reference(_new(_kind(call, source), source))
    header = f"with {name}({_arguments(call, f'{arguments[0]}.device.type', source)}):"
    return (*source.remove_decorator(call), *source.wrap(body, header), *imports)


def _new(kind: str, source: FixSource) -> str:
    """What takes the device as an argument, in every torch that the project supports."""
    if not source.allows_torch(*(_AUTOCAST_SINCE if kind == "autocast" else _SINCE[kind])):
        raise NoFixError("the project supports a torch that does not have it")
    return _NEW[kind]


def _home(names: Iterable[str], source: FixSource) -> str:
    """The module from which all these names can be taken in every torch that the project
    supports.
    """
    meant = set(names)
    if all(source.allows_torch(*_SINCE[name]) for name in meant):
        return "torch.amp"
    if meant == {"autocast"} and source.allows_torch(*_AUTOCAST_SINCE):
        return "torch"
    raise NoFixError("the project supports a torch that does not have it")


def _kind(call: ast.Call, source: FixSource) -> str:
    name = source.called(call.func).rpartition(".")[2] or called_name(call)
    if name not in _NEW:
        raise NoFixError("neither an autocast nor a scaler")
    return name


def _arguments(call: ast.Call, type_: str, source: FixSource) -> str:
    """The arguments for another device: the type first, then what there was, enabled on CUDA
    alone.
    """
    keywords = {keyword.arg or "**": source.text(keyword.value) for keyword in call.keywords}
    is_told = (
        call.args
        or "device_type" in keywords
        or "device" in keywords
        or "cuda.amp" in source.called(call.func)
    )
    if "**" in keywords and not ("enabled" in keywords and is_told):
        raise NoFixError("what is unpacked here can say the device, or whether it is enabled")
    keywords.pop("device_type", None)
    keywords.pop("device", None)
    if "cuda.amp" in source.called(call.func):
        named = zip(_OLD_ARGUMENTS[_kind(call, source)], call.args, strict=False)
        keywords = {name: source.text(argument) for name, argument in named} | keywords
        rest: list[str] = []
    else:
        rest = [source.text(argument) for argument in call.args[1:]]
    is_cuda = f'{type_} == "cuda"'
    enabled = keywords.pop("enabled", "True")
    both = f"({enabled}) and {is_cuda}" if " " in enabled else f"{enabled} and {is_cuda}"
    keywords["enabled"] = is_cuda if enabled == "True" else both
    given = [
        f"**{value}" if name == "**" else f"{name}={value}" for name, value in keywords.items()
    ]
    return ", ".join([type_, *rest, *given])


def put_on_device(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`.cuda()` as `.to(device)`, and `"cuda"` as the device."""
    node = source.expression(finding.at)
    device = device_for(finding, node, source).text
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Attribute(attr="cuda", value=value) as func) if (
                source.called(func) != "torch.cuda"
            ):
                rest = "".join(f", {source.text(keyword)}" for keyword in each.keywords)
                return (source.replace(each, f"{source.operand(value)}.to({device}{rest})"),)
            case ast.Call(func=func, args=[ast.Constant(value=str()), *_]) if (
                source.called(func) == "torch.device"
            ):
                return (source.replace(each, device),)
    for each in ast.walk(node):
        match each:
            case ast.Constant(value=str() as text) if text.partition(":")[0] == "cuda":
                return (source.replace(each, device),)
    raise NoFixError("no device is named")


def up_to_date(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`torch.cuda.amp.autocast()` as `torch.amp.autocast("cuda")`, and so for all that an import
    brings in.
    """
    node = source.expression(finding.at)
    func = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Call) and node.args and source.called(func) == "functools.partial":
        node, func = _held_by(node), node.args[0]
    old = source.called(func)
    device, _, name = old.removeprefix("torch.").partition(".amp.")
    name = name.rpartition(".")[2]  # also `torch.cuda.amp.autocast_mode.autocast`
    if isinstance(func, ast.Name):
        return _imported_anew(func.id, source)
    if name not in _SINCE:
        raise NoFixError("it is called by a name that does not say what it is")
    new, imports = source.reference(f"{_home([name], source)}.{name}")
    return (*_renewed(node, new, device, name, source), *imports)


def _held_by(partial: ast.Call) -> ast.Call:
    """The call that a partial holds the beginning of, without what is given to it later."""
    held = ast.Call(partial.args[0], partial.args[1:], partial.keywords)
    if not held.args and not held.keywords:
        raise NoFixError("the partial holds no argument before which the device can be named")
    return ast.copy_location(held, partial)


def _renewed(
    node: ast.expr, new: str, device: str, name: str, source: FixSource
) -> tuple[Edit, ...]:
    key = "device_type=" if name.startswith("custom_") else ""
    if not isinstance(node, ast.Call):
        if node not in getattr(next(source.around(node)), "decorator_list", ()):
            raise NoFixError("neither called nor a decorator")
        return (source.replace(node, f'{new}({key}"{device}")'),)
    edits = [] if not new else [source.replace(node.func, new)]
    words = _OLD_ARGUMENTS["autocast"] if name == "autocast" else ("",) * len(node.args)
    heads = [f"{word}=" if word else "" for word in words[: len(node.args)]]
    first: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    if not first:
        return (*edits, source.add_argument(node, f'{key}"{device}"'))
    told: list[tuple[ast.expr | ast.keyword, str]] = list(zip(node.args, heads, strict=True)) or [
        (first[0], "")
    ]
    edits += [
        source.before_text(argument, (f'{key}"{device}", ' if argument is first[0] else "") + head)
        for argument, head in told
        if head or argument is first[0]
    ]
    return tuple(edits)


def _imported_anew(name: str, source: FixSource) -> tuple[Edit, ...]:
    """The import from the old place made one from the new, with all uses of what it brings in."""
    for statement in ast.walk(source.tree):
        match statement:
            case ast.ImportFrom(
                module="torch.cuda.amp" | "torch.cpu.amp" as module, names=names, level=0
            ):
                bound = {alias.asname or alias.name: alias.name for alias in names}
                if name in bound and _is_bound_twice(bound, statement, source):
                    raise NoFixError("the name stands for a fallback, too")
                if name in bound and all(
                    each in (*_NEW, "custom_fwd", "custom_bwd") for each in bound.values()
                ):
                    device, home = module.split(".")[1], _home(bound.values(), source)
                    edits = [
                        source.rewrite(statement, source.text(statement).replace(module, home, 1))
                    ]
                    return (*edits, *_uses(bound, device, source))
    raise NoFixError("no import of it alone")


def _is_bound_twice(bound: dict[str, str], statement: ast.stmt, source: FixSource) -> bool:
    """Whether one of these names is bound by something else than this import, too."""
    for node in ast.walk(source.tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.Name(id=name, ctx=ast.Store())
            ):
                if name in bound:
                    return True
            case ast.ImportFrom(names=names) if node is not statement:
                if any((alias.asname or alias.name) in bound for alias in names):
                    return True
    return False


def _uses(bound: dict[str, str], device: str, source: FixSource) -> Iterator[Edit]:
    called = {id(node.func): node for node in ast.walk(source.tree) if isinstance(node, ast.Call)}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id in bound and isinstance(node.ctx, ast.Load):
            call = called.get(id(node))
            yield from _renewed(
                call or node, "" if call else node.id, device, bound[node.id], source
            )
