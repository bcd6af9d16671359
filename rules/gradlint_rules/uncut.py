"""Fixes that put a route together again: the cut taken out of the source, whatever sort of cut it
is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gradlint.finding import Applicability, Edit, Finding, Fix
from gradlint.rule import FixSource, NoFixError
from gradlint.tape import Value
from gradlint_rules.order import names_of

_DROPPED = {"detach", "detach_", "item", "tolist", "requires_grad_"}
_DROPPING = {"torch.detach", "torch.Tensor.detach", "torch.detach_", "torch.Tensor.detach_"}
_PASSED_ON = {"float", "int", "numpy.asarray", "numpy.array"}
_COPIES = {"tensor", "as_tensor", "FloatTensor", "Tensor", "DoubleTensor", "HalfTensor", "Variable"}
_LISTS = (ast.List, ast.ListComp, ast.Tuple)
_OUT_OF_TORCH = {"numpy", "tolist", "cpu", "item"}
_MATHS = {"exp", "log", "sqrt", "tanh", "sin", "cos", "log1p", "expm1", "floor", "ceil"}
# arguments of `torch.autograd.grad` by position: `outputs`, `inputs`, `grad_outputs`
_UP_TO_OUTPUTS = 3
_STEPS = {"round", "floor", "ceil", "trunc", "sign", "sgn"}
_TO_WHOLE = {"long", "int", "short", "char", "byte", "bool", "to", "type"}
_TO_FLOAT = {"float", "double", "half", "bfloat16", "to", "type", "type_as"}
_LAZY = (
    ast.Lambda,
    ast.ListComp,
    ast.GeneratorExp,
    ast.DictComp,
    ast.SetComp,
    ast.IfExp,
    ast.BoolOp,
)
_SETS_MODE = "torch.set_grad_enabled"
_OFF = {
    "torch.no_grad",
    "torch.inference_mode",
    "torch.autograd.no_grad",
    "torch.autograd.inference_mode",
}


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
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in _DROPPED:
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
    """Whether a call makes a tensor of what it copies: `torch.tensor(…)`."""
    owner, _, name = source.called(node.func).rpartition(".")
    return name in _COPIES and owner.partition(".")[0] == "torch"


def _without_call(node: ast.Call, value: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    outer = next(source.around(node))
    if (copy := _back_from_numpy(node, source)) is not None:
        return _passed_on(copy, value, source)
    if isinstance(outer, ast.Attribute) and outer.attr in _OUT_OF_TORCH:
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


def _back_from_numpy(node: ast.Call, source: FixSource) -> ast.Call | None:
    """The call that makes a tensor of `x.detach().cpu().numpy()` again, where `node` is
    `x.detach()`.
    """
    inner: ast.AST = node
    for outer in source.around(node):
        match outer:
            case (
                ast.Attribute(attr="cpu" | "numpy")
                | ast.Call(func=ast.Attribute(attr="cpu" | "numpy"), args=[])
            ):
                inner = outer
            case ast.Call(args=[argument], keywords=[]) if argument is inner and inner is not node:
                is_array = (
                    isinstance(inner, ast.Call) and source.called(outer.func) == "torch.from_numpy"
                )
                return outer if is_array or is_copy(outer, source) else None
            case _:
                return None
    return None


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
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for assigned in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for target, value in _bound(assigned, node.value)
            if source.text(target) == text
        ]
        if found:
            return [value for value in found if source.text(value) != text]
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


def straight_through(node: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """`x.round()` as `x + (x.round() - x).detach()`: the same value, with the gradient of `x`."""
    match node:
        case ast.Call(keywords=words) if rounded := [
            word for word in words if word.arg == "rounding_mode"
        ]:
            return _rounded_through(node, rounded[0], source)
        case ast.Call(func=ast.Attribute(attr=name, value=value), args=args) if name in _STEPS:
            inner = args[0] if source.called(node.func).startswith("torch.") and args else value
        case _:
            raise NoFixError("no step that can be passed straight through")
    return _passed_through(node, inner, source)


def _passed_through(node: ast.expr, inner: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """The value of `node`, with the gradient of `inner`, which stands in it."""
    outer = next(source.around(node))
    statement = source.statement(node)
    if isinstance(inner, ast.Name):
        return (source.replace(node, _through(inner.id, source.text(node))),)
    whole = isinstance(outer, ast.Return | ast.Assign | ast.AugAssign)
    if not whole and not _is_evaluated_once(node, statement, source):
        return (source.replace(node, source.text(inner)),)
    smooth = source.fresh("smooth", node)
    text = source.text(node).replace(source.text(inner), smooth, 1)
    head = source.before(statement, f"{smooth} = {_bare(inner, source)}")
    return (*head, source.replace(node, _through(smooth, text)))


def _bare(node: ast.expr, source: FixSource) -> str:
    """The source of an expression without the parentheses around it, where it stands on one
    line.
    """
    text = source.text(node)
    while (
        text.startswith("(")
        and "\n" not in text
        and not isinstance(node, ast.Tuple | ast.GeneratorExp)
    ):
        try:
            inner = ast.parse(text[1:-1].strip(), mode="eval").body
        except SyntaxError:
            return text
        if ast.dump(inner) != ast.dump(node):
            return text
        text = text[1:-1].strip()
    return text


def _rounded_through(node: ast.Call, rounded: ast.keyword, source: FixSource) -> tuple[Edit, ...]:
    """`torch.div(x, n, rounding_mode="floor")` as the quotient, and its rounding passed straight
    through.
    """
    statement = source.statement(node)
    whole = isinstance(next(source.around(node)), ast.Return | ast.Assign | ast.AugAssign)
    if not isinstance(rounded.value, ast.Constant) or not (
        whole or _is_evaluated_once(node, statement, source)
    ):
        return (source.remove_argument(node, rounded),)
    given = [source.text(each) for each in [*node.args, *node.keywords] if each is not rounded]
    smooth = source.fresh("smooth", node)
    quotient = f"{smooth} = {source.text(node.func)}({', '.join(given)})"
    steps = _through(smooth, f"{smooth}.{rounded.value.value!s}()")
    return (*source.before(statement, quotient), source.replace(node, steps))


def _through(name: str, text: str) -> str:
    return f"{name} + ({text} - {name}).detach()"


def _is_evaluated_once(node: ast.expr, statement: ast.stmt, source: FixSource) -> bool:
    """Whether an expression is evaluated once, and first, when its statement runs."""
    outers = []
    for outer in source.around(node):
        if outer is statement:
            break
        outers.append(outer)
    if any(isinstance(outer, _LAZY) for outer in outers):
        return False
    return isinstance(statement, ast.Assign | ast.Return | ast.AugAssign)


def grad_mode_on(node: ast.expr, source: FixSource, lines: Iterable[int] = ()) -> tuple[Edit, ...]:
    """Takes away what switches grad mode off: the decorator, or the `with` around what `lines`
    compute.
    """
    for outer in source.around(node):
        match outer:
            case (
                ast.FunctionDef(decorator_list=[*decorators])
                | ast.AsyncFunctionDef(decorator_list=[*decorators])
            ):
                if node in decorators:
                    return source.remove_decorator(node)
                break
            case ast.Call(func=ast.Attribute(attr="enter_context"), args=[given]) if given is node:
                statement = source.statement(node)
                if isinstance(statement, ast.Expr) and statement.value is outer:
                    return source.remove(statement)
                break
            case ast.With(items=items) if any(item.context_expr is node for item in items):
                return _unwrapped(outer, node, set(lines), source)
            case ast.Expr(value=ast.Call(func=func, args=[ast.Constant(value=False)]) as call) if (
                call is node
            ):
                if source.called(func) == _SETS_MODE:
                    return _left_on(outer, source)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                return _without_named(name, set(lines), source)
    raise NoFixError("neither a decorator nor a `with`")


def _left_on(statement: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    """Takes away `torch.set_grad_enabled(False)`, and what switches grad mode on again in the same
    block.
    """
    block = source.block(statement)
    gone = [statement]
    for each in block[block.index(statement) + 1 :]:
        match each:
            case ast.Expr(value=ast.Call(func=func, args=[ast.Constant(value=True)])):
                if source.called(func) == _SETS_MODE:
                    gone.append(each)
                    break
    return tuple(edit for each in gone for edit in source.remove(each))


def _without_named(name: str, lines: set[int], source: FixSource) -> tuple[Edit, ...]:
    """Takes what computes the loss out of the one `with` that enters a context by its name."""
    found = [
        (node, item.context_expr)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.context_expr, ast.Name) and item.context_expr.id == name
        if any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)
    ]
    if len(found) != 1:
        raise NoFixError("where it is entered is not in view")
    ((compound, context),) = found
    return source.unwrap(compound, context, _meant(compound.body, lines, is_off=True))


def _unwrapped(
    compound: ast.With, context: ast.expr, lines: set[int], source: FixSource
) -> tuple[Edit, ...]:
    """Takes what computes the loss out of a `with`; where that wraps a function, maybe the
    decorator that does so.
    """
    entered = {
        name for item in compound.items if item.context_expr is context for name in _bound_by(item)
    }
    if any(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in entered
        for n in ast.walk(source.tree)
    ):
        raise NoFixError("what it is entered as is used")
    yielding = [
        each
        for each in compound.body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Yield)
    ]
    if yielding:
        return source.unwrap(compound, context, yielding)
    if not _is_wrapper(compound.body):
        return source.unwrap(
            compound, context, _meant(compound.body, lines, is_grad_mode(context, source))
        )
    functions = [outer for outer in source.around(compound) if isinstance(outer, ast.FunctionDef)]
    decorated = [
        (node, decorator)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
        if functions and isinstance(decorator, ast.Name) and decorator.id == functions[-1].name
    ]
    if len(functions) > 1 and not _uses(functions[-1].name, source):  # other files use it
        return source.unwrap(compound, context)
    if len(functions) > 1 and len(decorated) == 1 and _uses(functions[-1].name, source) == 1:
        return source.unwrap(compound, context)
    meant = [
        d
        for node, d in decorated
        if any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)
    ]
    if len(meant) != 1:
        raise NoFixError("what the wrapper is used on is not in view")
    return source.remove_decorator(meant[0])


def _bound_by(item: ast.withitem) -> set[str]:
    return names_of(item.optional_vars, ast.Store) if item.optional_vars is not None else set()


def _uses(name: str, source: FixSource) -> int:
    return sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(source.tree))


def _meant(body: Sequence[ast.stmt], lines: set[int], is_off: bool) -> list[ast.stmt]:
    """What of a body is to run with grad mode on: from the first of these lines to the last, and
    what follows.

    Where the context does nothing but switch grad mode off, what only measures the results, which
    it reads, stays.
    """
    places = [
        at
        for at, each in enumerate(body)
        if any(each.lineno <= n <= (each.end_lineno or 0) for n in lines)
    ]
    if not places:
        return []
    meant = body[places[0] : places[-1] + 1]
    results = {name for each in meant for name in names_of(each, ast.Store)}
    following = body[places[-1] + 1 :]
    return [
        *meant,
        *(each for each in following if not is_off or not results & names_of(each, ast.Load)),
    ]


def _is_wrapper(body: Sequence[ast.stmt]) -> bool:
    """Whether a body runs whatever it is given: it yields, or calls with `*args`."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    return any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Starred) for node in nodes)


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


def is_grad_mode(node: ast.expr, source: FixSource) -> bool:
    """Whether an expression is what switches grad mode off."""
    return source.called(node.func if isinstance(node, ast.Call) else node) in _OFF


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
        case ast.Call(func=ast.Attribute(attr=name)) if name in _STEPS:
            return straight_through(node, source)
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name in _TO_WHOLE:
            return _passed_through(_cast_back(node, source), value, source)
    return uncut(node, source)


def _cast_back(node: ast.Call, source: FixSource) -> ast.Call:
    """`x.long().to(x.dtype)` around the `x.long()` in it, which is a step as `x.trunc()` is."""
    outer, *_ = around = list(source.around(node))
    match outer:
        case ast.Attribute(attr=name, value=value) if (
            value is node and name in _TO_FLOAT and len(around) > 1
        ):
            if isinstance(around[1], ast.Call) and around[1].func is outer:
                return around[1]
    raise NoFixError("it stays a whole number")


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
