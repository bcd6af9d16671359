"""Fixes that put a route together again: cuts and copies taken out of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from gradlint.finding import Applicability, Edit, Finding, Fix
from gradlint.operations import Trait, has
from gradlint.rule import FixSource, NoFixError
from gradlint.tape import Value
from gradlint_rules.modes import grad_mode_on, is_grad_mode
from gradlint_rules.order import called_name
from gradlint_rules.rounding import cast_back, passed_through, straight_through

DROPPED = {"detach", "detach_", "item", "tolist", "requires_grad_"}
_DROPPING = {"torch.detach", "torch.Tensor.detach", "torch.detach_", "torch.Tensor.detach_"}
_PASSED_ON = {"float", "int", "numpy.asarray", "numpy.array"}
_LISTS = (ast.List, ast.ListComp, ast.Tuple)
_MATHS = {"exp", "log", "sqrt", "tanh", "sin", "cos", "log1p", "expm1", "floor", "ceil"}
# arguments of `torch.autograd.grad` by position: `outputs`, `inputs`, `grad_outputs`
_UP_TO_OUTPUTS = 3


def uncut(node: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """The edits that let the gradient through at `node`: a detaching, a copying, or a tensor made
    of copies.
    """
    match node:
        case ast.Attribute(attr="data", value=value, ctx=ast.Load()):
            return _passed_on(node, value, source)
        case ast.Call() if source.called(node.func) == "torch.autograd.grad":
            return (_with_graph(node, source),)
        case ast.Call(func=func) if source.called(func) in _DROPPING:
            return _passed_on(node, _first_argument(node), source)
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in DROPPED:
            return _without_call(node, value, source)
        case ast.Call(func=func, args=[ast.expr() as argument, *_]) if (
            source.called(func) in _PASSED_ON
        ):
            return _passed_on(node, argument, source)
        case ast.Call(func=func, args=[ast.expr() as argument]) if is_copy(node, source):
            return _uncopied(node, argument, source)
        case ast.Call(func=ast.Attribute(attr=name) as func, args=[ast.expr() as argument]) if (
            name in _MATHS
        ):
            if source.called(func) == f"math.{name}":
                return (source.replace(node, f"{source.operand(argument)}.{name}()"),)
    raise NoFixError("no cut that can be taken out")


def _first_argument(call: ast.Call) -> ast.expr:
    """What `torch.detach(x)` and `torch.detach(input=x)` are given."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if len(given) != 1:
        raise NoFixError("it is given more than a tensor")
    return given[0]


def _with_graph(call: ast.Call, source: FixSource) -> Edit:
    """Gradients with a graph of their own, which keeps the first one."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if len(call.args) > _UP_TO_OUTPUTS or None in given or _is_false(given.get("retain_graph")):
        raise NoFixError("its arguments leave no room for `create_graph=True`")
    if "create_graph" in given:
        return source.replace(given["create_graph"], "True")
    return source.add_argument(call, "create_graph=True")


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def is_copy(node: ast.Call, source: FixSource) -> bool:
    """Whether a call makes a tensor of what it copies: `torch.tensor(…)`, `x.new_tensor(…)`."""
    owner, _, name = source.called(node.func).rpartition(".")
    if isinstance(node.func, ast.Attribute) and node.func.attr == "new_tensor":
        return True  # a method, of whatever tensor
    return has(name, Trait.OF_NUMBERS) and owner.partition(".")[0] == "torch"


def _without_call(node: ast.Call, value: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    outer = next(source.around(node))
    if (copy := _back_in_torch(node, source)) is not None:
        return _in_place_of(copy, value, source)
    if _leaves_torch(node, source):
        raise NoFixError("what follows needs values out of the graph")
    copying = _copying(node, source)
    if copying is not None and outer is copying:
        return _uncopied(copying, node, source)
    if copying is not None:
        stack, imports = source.reference("torch.stack")
        words = [
            keyword
            for keyword in copying.keywords
            if keyword.arg in ("device", "dtype", "requires_grad")
        ]
        gone = [source.remove_argument(copying, keyword) for keyword in words]
        kept = source.replace(node, source.text(value))
        return (source.replace(copying.func, stack), *gone, kept, *imports)
    if isinstance(outer, ast.Expr):
        return source.remove(outer)
    return _passed_on(node, value, source)


def _leaves_torch(node: ast.Call, source: FixSource) -> bool:
    """Whether what follows takes values out: `x.detach().cpu().numpy()`; `x.detach().cpu()` by
    itself is a tensor still.
    """
    around = source.around(node)
    outer = next(around)
    while isinstance(outer, ast.Attribute) and outer.attr == "cpu":
        next(around)  # its call
        outer = next(around)
    return isinstance(outer, ast.Attribute) and (
        outer.attr == "cpu" or has(outer.attr, Trait.LEAVES_TORCH)
    )


def _back_in_torch(node: ast.Call, source: FixSource) -> ast.Call | None:
    """The call that makes a tensor of `x.detach().cpu().numpy()` or of `x.tolist()` again, where
    `node` is `x.detach()` or `x.tolist()`.
    """
    inner: ast.AST = node
    for outer in source.around(node):
        match outer:
            case (
                ast.Attribute(attr="cpu" | "numpy" | "tolist")
                | ast.Call(func=ast.Attribute(attr="cpu" | "numpy" | "tolist"), args=[])
            ):
                inner = outer
            case ast.Call(args=[argument], keywords=words) if argument is inner:
                is_array = source.called(outer.func) == "torch.from_numpy"
                is_left = isinstance(inner, ast.Call) and called_name(inner) in ("numpy", "tolist")
                is_plain = {word.arg for word in words} <= {"dtype", "device"}
                is_back = is_left and is_plain and (is_array or is_copy(outer, source))
                return outer if is_back else None
            case _:
                return None
    return None


def _in_place_of(copy: ast.Call, value: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """What was copied in the place of its copy, in the dtype that this is given."""
    for word in copy.keywords:
        if word.arg == "dtype":
            content = f"{source.operand(value)}.to({source.text(word.value)})"
            return (source.replace(copy, content),)
    return _passed_on(copy, value, source)


def _copying(number: ast.expr, source: FixSource) -> ast.Call | None:
    """The call that copies a number into a tensor, by itself or as an item of a list that is
    written there.
    """
    for outer in source.around(number):
        if isinstance(outer, ast.Call):
            return outer if len(outer.args) == 1 and is_copy(outer, source) else None
        is_item = isinstance(outer, ast.ListComp) and outer.elt is number
        if not is_item and not isinstance(outer, ast.List | ast.Tuple):
            return None
    return None


def _passed_on(node: ast.expr, value: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """`value` in the place of `node`; where that leaves `x = x`, the statement goes."""
    outer = next(source.around(node))
    if isinstance(outer, ast.Assign) and [source.text(target) for target in outer.targets] == [
        source.text(value)
    ]:
        return source.remove(outer)
    return (source.replace(node, source.text(value)),)


def _uncopied(node: ast.Call, argument: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """`torch.tensor(terms)` as `torch.stack(terms)`, and `torch.tensor(x)` as `x`."""
    if not _is_list(argument, source, node) and not _is_old_list(node, argument, source):
        return _as_tensor(node, argument, source)
    elements = argument.elts if isinstance(argument, ast.List | ast.Tuple) else []
    if any(isinstance(element, (*_LISTS, ast.Constant)) for element in elements):
        raise NoFixError("not a list of tensors")
    stack, imports = source.reference("torch.stack")
    keywords = [
        keyword for keyword in node.keywords if keyword.arg in ("device", "dtype", "requires_grad")
    ]
    if len(keywords) == len(node.keywords) and _is_plain(node, argument, source):
        return (source.replace(node, f"{stack}({source.text(argument)})"), *imports)
    return (
        source.replace(node.func, stack),
        *(source.remove_argument(node, each) for each in keywords),
        *imports,
    )


def _as_tensor(node: ast.Call, argument: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """What was copied in the place of the copy, without the `.item()` in it or where it is named:
    no number is left.
    """
    if isinstance(argument, ast.Call) and source.called(argument.func).startswith("numpy."):
        raise NoFixError("NumPy computes it, of numbers that have no gradient")
    text = source.text(argument)
    for call, value in _numbers(argument):
        text = text.replace(source.text(call), source.text(value))
    if text != source.text(argument):
        outer = next(source.around(node))
        if isinstance(outer, ast.Assign) and [source.text(target) for target in outer.targets] == [
            text
        ]:
            return source.remove(outer)
        return (source.replace(node, text),)
    named = [number for value in values_of(argument, source, node) for number in _numbers(value)]
    if not named and source.called(node.func) == "torch.as_tensor":
        raise NoFixError(
            "what `torch.as_tensor` copies is no tensor: its numbers left the graph elsewhere"
        )
    edits = [source.replace(call, source.text(value)) for call, value in named]
    return (*_passed_on(node, argument, source), *edits)


def _numbers(node: ast.expr) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Each `x.item()` in an expression, and its `x`."""
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Attribute(attr="item", value=value), args=[]):
                yield each, value


def _is_plain(node: ast.Call, argument: ast.expr, source: FixSource) -> bool:
    """Whether a call holds no comment and stands on one line, so that it can be written anew."""
    return "\n" not in source.text(node) and "#" not in source.text(node)


def _is_list(argument: ast.expr, source: FixSource, near: ast.AST) -> bool:
    """Whether an argument is a list of tensors: as it is written, or as the name was made."""
    if isinstance(argument, _LISTS):
        return True
    if isinstance(argument, ast.Subscript) and isinstance(argument.slice, ast.Slice):
        return _is_list(argument.value, source, near)
    if isinstance(argument, ast.Call):
        return source.called(argument.func) in ("list", "tuple", "sorted", "zip", "map")
    values = values_of(argument, source, near)
    if any(
        isinstance(value, ast.Call) and source.called(value.func) == "collections.deque"
        for value in values
    ):
        raise NoFixError("`torch.stack` takes no deque")
    return _is_appended_to(argument, source) or any(
        _is_list(value, source, near) for value in values
    )


def _is_appended_to(argument: ast.expr, source: FixSource) -> bool:
    """Whether what the name stands for is appended to somewhere."""
    text = source.text(argument)
    appended = (
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr == "append"
    )
    return any(source.text(node.value) == text for node in appended)


def _is_old_list(node: ast.Call, argument: ast.expr, source: FixSource) -> bool:
    """Whether one of the old constructors, which are given lists, is given a name that is bound out
    of view.
    """
    is_old = source.called(node.func).rpartition(".")[2].endswith("Tensor")
    return is_old and isinstance(argument, ast.Name) and not values_of(argument, source, node)


def values_of(name: ast.expr, source: FixSource, near: ast.AST) -> list[ast.expr]:
    """What is assigned to a plain name, or to an attribute of `self`, in the function around `near`
    or in the file.
    """
    return values_bound_to(source.text(name), source, near)


def values_bound_to(text: str, source: FixSource, near: ast.AST) -> list[ast.expr]:
    """What is assigned to what is written so, in the function around `near` or in the file."""
    for whole in (source.scope(near), source.tree):
        found = [
            value
            for node in ast.walk(whole)
            for target, value in bindings(node)
            if source.text(target) == text
        ]
        if found:
            return [value for value in found if source.text(value) != text]
    return []


def bindings(node: ast.AST) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What an assignment puts into what; nothing for another node."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return [pair for target in targets for pair in _bound(target, value)]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _bound(target, value)
    return []


def _bound(target: ast.expr, value: ast.expr) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What an assignment puts into what: one for one, where both sides are written as tuples, or
    column by column.
    """
    match target, value:
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            return zip(targets, values, strict=True)
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=[ast.Starred()]):
            return [(each, value) for each in targets]
        case ast.Tuple(elts=targets), ast.Call(
            func=ast.Name(id="map"), args=[ast.Name(id="list" | "tuple"), _]
        ):
            return [(each, value) for each in targets]
    return [(target, value)]


def computed_from(values: Iterable[Value], among: Iterable[Value]) -> list[Value]:
    """These values and what was computed from them, of those `among` which they are."""
    users: dict[int, list[Value]] = {}
    for user in among:
        for source in user.inputs:
            users.setdefault(id(source), []).append(user)
    found = {id(value): value for value in values}
    pending = list(found.values())
    for value in pending:
        fresh = [user for user in users.get(id(value), ()) if id(user) not in found]
        found |= {id(user): user for user in fresh}
        pending += fresh
    return pending


def mend_cut(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The edits for a cut of any sort: grad mode, a sample, a step without slope, a detaching, a
    copying.
    """
    node = source.expression(finding.at)
    if is_grad_mode(node, source):
        return grad_mode_on(node, source, map(int, finding.hints.get("lines", "").split()))
    match node:
        case ast.Call(func=ast.Attribute(attr="sample")):
            return resampled(node, source, finding.hints)
        case ast.Call(func=ast.Attribute(attr=name)) if has(name, Trait.ROUNDS):
            return straight_through(node, source)
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if _can_be_whole(name):
            return passed_through(cast_back(node, source), value, source)
    return uncut(node, source)


def _can_be_whole(name: str) -> bool:
    """Whether a method of this name can give integers: `x.long()`, `x.to(torch.int64)`."""
    return name in ("to", "type") or has(name, Trait.TO_INTEGERS)


def hint_of_sample(value: Value) -> dict[str, str]:
    """What `resampled` goes by: whether it is drawn from a distribution that has no `rsample`."""
    return {"rsample": "none"} if "no-rsample" in value.flags else {}


def resampled(node: ast.expr, source: FixSource, hints: Mapping[str, str]) -> tuple[Edit, ...]:
    """`.sample()` as `.rsample()`."""
    if "rsample" in hints:
        raise NoFixError("torch has no `rsample` for this distribution")
    match node:
        case ast.Call(func=ast.Attribute(attr="sample", value=value) as func):
            return (source.replace(func, f"{source.operand(value)}.rsample"),)
    raise NoFixError("not a sample")


def as_it_is(node: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """`nn.Parameter(x)` and `Variable(x, requires_grad=True)` as `x`; nothing for what is
    neither.
    """
    match node:
        case ast.Call(func=func, args=[ast.expr() as argument, *_]):
            if source.called(func).rpartition(".")[2] in ("Parameter", "Variable"):
                return (source.replace(node, source.text(argument)),)
    return ()


def unsafe(message: str, edits: tuple[Edit, ...]) -> Fix:
    """A fix that changes more than the bug."""
    return Fix(message, Applicability.UNSAFE, edits)


def safe(message: str, edits: tuple[Edit, ...]) -> Fix:
    """A fix that changes nothing but the bug."""
    return Fix(message, Applicability.SAFE, edits)
