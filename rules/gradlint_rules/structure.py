"""Fixes of what a module and an optimizer hold: containers, leaves, generators of parameters,
frozen attributes.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from gradlint.finding import Edit, Finding
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.uncut import values_of

_LAZY = {"parameters", "named_parameters", "filter", "map", "chain"}


def as_list(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The generator of parameters, where it is bound to a name, as a list."""
    used = source.statement(finding.at)
    names = [node for node in ast.walk(used) if isinstance(node, ast.Name | ast.Attribute)]
    for value in (value for name in names for value in values_of(name, source, used)):
        match value:
            case ast.GeneratorExp():
                return (source.replace(value, f"[{source.text(value).strip()[1:-1]}]"),)
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called)):
                if called in _LAZY:
                    return _listed(value, source)
    spent = source.expression(finding.at)
    given = [each for call in ast.walk(spent) for each in _arguments(call)]
    # a function of the program's gives the generator
    candidates = [spent, *(name for name in names if any(name is each for each in given))]
    for name in (each for each in candidates if isinstance(each, ast.Name)):
        match values_of(name, source, used):
            case [ast.Call() as made]:
                return _listed(made, source)
    raise NoFixError("the generator is bound to no name here")


def _listed(value: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    return (source.replace(value, f"list({source.text(value)})"),)


def _arguments(node: ast.AST) -> list[ast.expr]:
    return node.args if isinstance(node, ast.Call) else []


def as_parameter(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`self.x = torch.tensor(…, requires_grad=True)` as a parameter; nothing for what is written
    otherwise.
    """
    match source.statement(finding.at):
        case ast.Assign(targets=[ast.Attribute()], value=ast.Call() as made):
            for keyword in made.keywords:
                if keyword.arg == "requires_grad" and source.text(keyword.value) == "True":
                    parameter, imports = source.reference("torch.nn.Parameter")
                    return (
                        source.before_text(made, f"{parameter}("),
                        source.remove_argument(made, keyword),
                        source.behind_text(made, ")"),
                        *imports,
                    )
    return ()


def registered(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """A plain container as one that the module knows of."""
    statement = source.statement(finding.at)
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        raise NoFixError("no assignment")
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    held, _, by = finding.hints.get("kind", "").partition(" by ")
    if by:
        return _held_beside(statement, target, held, by, source)
    kind = "Parameter" if _holds_parameters(source.text(target), statement, source) else "Module"
    return tuple(_registered(statement.value, kind, source, finding.hints.get("kind")))


def _held_beside(
    statement: ast.stmt, target: ast.expr, held: str, by: str, source: FixSource
) -> tuple[Edit, ...]:
    """A list that the module knows of beside a dict by other keys than texts, or beside a
    record.
    """
    if not isinstance(target, ast.Attribute):
        raise NoFixError("no attribute")
    beside = f"{source.text(target)}_{held}"
    if any(
        isinstance(each, ast.Attribute) and source.text(each) == beside
        for each in ast.walk(source.tree)
    ):
        raise NoFixError("the name is taken")
    name, imports = source.reference(f"torch.nn.{held[:-1].capitalize()}List")
    text = source.text(target)
    fields = ", ".join(f"{text}.{field}" for field in by.partition(": ")[2].split())
    items = f"[{fields}]" if fields else f"{text}.values()"
    return (*source.after(statement, f"{beside} = {name}({items})"), *imports)


def _registered(
    value: ast.expr, kind: str, source: FixSource, container: str | None
) -> Iterator[Edit]:
    is_display = isinstance(value, ast.List | ast.Tuple | ast.ListComp | ast.Dict | ast.DictComp)
    is_dict = isinstance(value, ast.Dict | ast.DictComp) if is_display else container == "dict"
    if container == "records":
        raise NoFixError("it holds records, which are no modules")
    if not is_display and not container:
        raise NoFixError("neither a list nor a dict by text")
    if isinstance(value, ast.Call) and source.called(value.func).rpartition(".")[2][:1].isupper():
        raise NoFixError("a record, which has its own names")
    if is_display and is_dict and container != "dict" and not _has_texts_for_keys(value):
        raise NoFixError("a key that is no text")
    inner = [element for element in _elements(value) if isinstance(element, ast.List | ast.Tuple)]
    if any(isinstance(element, ast.Dict) for element in _elements(value)) or any(
        not _is_flat(each) for each in inner
    ):
        raise NoFixError("containers in a container")
    name, imports = source.reference(f"torch.nn.{kind}{'Dict' if is_dict else 'List'}")
    is_empty = isinstance(value, ast.List | ast.Dict) and not source.text(value)[1:-1].strip()
    if inner:
        listed, more = source.reference(f"torch.nn.{kind}List")
        yield from (source.replace(each, f"{listed}({source.text(each)})") for each in inner)
        yield from (source.before_text(value, f"{name}("), source.behind_text(value, ")"))
        yield from dict.fromkeys((*imports, *more))
        return
    yield source.replace(value, f"{name}({'' if is_empty else source.text(value)})")
    yield from imports


def _is_flat(value: ast.List | ast.Tuple) -> bool:
    """Whether a display holds calls alone, and some."""
    return bool(value.elts) and all(isinstance(each, ast.Call) for each in value.elts)


def _elements(value: ast.expr) -> list[ast.expr]:
    """What a display or comprehension puts into its container."""
    match value:
        case ast.List() | ast.Tuple():
            return value.elts
        case ast.ListComp():
            return [value.elt]
        case ast.Dict():
            return value.values
        case ast.DictComp(value=ast.expr() as item):
            # without one, it unpacks other dicts (PEP 798)
            return [item]
    return []


def _has_texts_for_keys(value: ast.expr) -> bool:
    """Whether all keys of a dict are written as texts, and there are some."""
    match value:
        case ast.Dict(keys=keys):
            return bool(keys) and all(map(_is_text, keys))
        case ast.DictComp(key=key):
            return _is_text(key)
    return False


def _is_text(key: ast.expr | None) -> bool:
    return isinstance(key, ast.JoinedStr) or (
        isinstance(key, ast.Constant) and isinstance(key.value, str)
    )


def _holds_parameters(text: str, statement: ast.stmt, source: FixSource) -> bool:
    """Whether parameters and not modules are put into a container, as far as the class shows."""
    whole = next(
        (outer for outer in source.around(statement) if isinstance(outer, ast.ClassDef)),
        source.tree,
    )
    put = [
        node for node in ast.walk(whole) if isinstance(node, ast.stmt) and not hasattr(node, "body")
    ]
    meant = [
        node
        for node in put
        if any(source.text(each) == text for each in ast.walk(node) if _is_place(each))
    ]
    calls = [
        each
        for node in (statement, *meant)
        for each in ast.walk(node)
        if isinstance(each, ast.Call)
    ]
    return any(source.called(call.func).rpartition(".")[2] == "Parameter" for call in calls)


def _is_place(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute | ast.Name)


def made_leaf(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The result of an operation on a leaf made the leaf."""
    node = source.expression(finding.at)
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=inner, args=[content, *_]) as made)):
            if source.called(inner).rpartition(".")[2] == "Parameter":
                end = source.text(node)[len(source.text(made)) :] + _own_memory(node)
                return (
                    source.replace(node, f"{source.text(inner)}({source.operand(content)}{end})"),
                )
    match node:
        case (
            ast.BinOp(
                left=ast.Call(func=inner, args=[content], keywords=words) as made, right=other
            )
            | ast.BinOp(
                left=other, right=ast.Call(func=inner, args=[content], keywords=words) as made
            )
        ) if source.called(inner).rpartition(".")[2] == "Parameter" and not _requires(
            other, source
        ):
            computed = source.text(node).replace(source.text(made), source.operand(content), 1)
            given = ", ".join([computed, *map(source.text, words)])
            return (source.replace(node, f"{source.text(inner)}({given})"),)
    for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg == "requires_grad":
                whole = _all_of(node, source)
                return (
                    source.remove_argument(call, keyword),
                    *_followed_by(whole, f"{_own_memory(whole)}.requires_grad_()", source),
                )
    match node:
        case ast.Call(func=ast.Attribute(attr="requires_grad_", value=result)):
            return (source.behind_text(result, ".detach()"),)
    text = source.operand(node)
    match source.statement(node):
        case ast.Assign(targets=[ast.Attribute()], value=value) if value is node:
            # a module takes a parameter there
            parameter, imports = source.reference("torch.nn.Parameter")
            return (source.replace(node, f"{parameter}({text}.detach())"), *imports)
    return (source.replace(node, f"{text}.detach().requires_grad_()"),)


def _requires(node: ast.expr, source: FixSource) -> bool:
    """Whether another leaf is made in an expression."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    words = {keyword.arg for call in calls for keyword in call.keywords}
    return "requires_grad" in words or any(
        source.called(each.func).endswith("Parameter") for each in calls
    )


def _all_of(node: ast.expr, source: FixSource) -> ast.expr:
    """What is computed from the result of an expression in one statement: `(x * s).to(device)`."""
    whole = node
    for outer in source.around(node):
        match outer:
            case ast.Attribute(value=inner) | ast.Call(func=inner) | ast.UnaryOp(operand=inner):
                if inner is not whole:
                    break
            case ast.BinOp():
                pass
            case _:
                break
        whole = outer
    return whole


def _own_memory(node: ast.expr) -> str:
    """`.clone()` behind what has many elements in one place of memory: no optimizer writes it."""
    match node:
        case ast.Call(func=ast.Attribute(attr="expand" | "expand_as" | "broadcast_to")):
            return ".clone()"
    return ""


def _followed_by(node: ast.expr, content: str, source: FixSource) -> tuple[Edit, ...]:
    """`content` behind an expression, which is put in parentheses where it needs them for that."""
    if source.operand(node) == source.text(node):
        return (source.behind_text(node, content),)
    return (source.before_text(node, "("), source.behind_text(node, f"){content}"))


def frozen(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`module.requires_grad = x` as a call, and a misspelt attribute as it is meant."""
    statement = source.statement(finding.at)
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Attribute(attr="data") as data)]
        ) | ast.Expr(ast.Call(func=ast.Attribute(value=ast.Attribute(attr="data") as data))):
            return (source.replace(data, source.text(data.value)),)
        case ast.Assign(targets=[ast.Attribute(attr="requires_grad", value=module)], value=value):
            return (
                source.rewrite(
                    statement, f"{source.text(module)}.requires_grad_({source.text(value)})"
                ),
            )
        case ast.Assign(targets=[ast.Attribute(attr=name) as target]):
            if difflib.get_close_matches(name, ["requires_grad"], cutoff=0.7):
                return (source.replace_name(target, "requires_grad"),)
        case ast.Expr(
            ast.Compare(
                left=ast.Attribute(attr="requires_grad") as flag,
                ops=[ast.Eq()],
                comparators=[meant],
            )
        ):
            return (source.rewrite(statement, f"{source.text(flag)} = {source.text(meant)}"),)
    raise NoFixError("what is meant is not clear")


def without_frozen(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`model.parameters()`, which an optimizer is given after a freezing, as those that are to be
    trained.
    """
    lines = {int(line) for line in finding.hints.get("optimizers", "").split()}
    edits: list[Edit] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and node.lineno in lines and node.args:
            given = node.args[0]
            match given:
                case ast.Call(func=ast.Attribute(attr="parameters"), args=[], keywords=[]):
                    text = f"[p for p in {source.text(given)} if p.requires_grad]"
                    edits.append(source.replace(given, text))
    return tuple(edits)
