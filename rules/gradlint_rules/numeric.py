"""Fixes of losses whose gradient is not finite, and of activations that a loss applies itself."""

from __future__ import annotations

import ast

from gradlint.finding import Edit, Finding, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import called_name, names_of
from gradlint_rules.uncut import values_of

_EPS = "1e-12"
_ACTIVATIONS = ("torch.nn.Softmax", "torch.nn.Sigmoid")
_HARMLESS = {
    "acos": "0.0",
    "asin": "0.0",
    "atanh": "0.0",
    "arccos": "0.0",
    "arcsin": "0.0",
    "acosh": "2.0",
}
_WITH_LOGITS = {
    "BCELoss": "BCEWithLogitsLoss", "binary_cross_entropy": "binary_cross_entropy_with_logits",
    "NLLLoss": "CrossEntropyLoss", "nll_loss": "cross_entropy",
}  # fmt: skip

# Losses whose mean divides by as many elements as the target has:
_BY_ELEMENT = {f"torch.nn.functional.{name}_loss" for name in ("mse", "l1", "smooth_l1", "huber")}
_BY_ELEMENT |= {
    f"torch.nn.functional.binary_cross_entropy{suffix}" for suffix in ("", "_with_logits")
}


def argument_of(call: ast.Call, source: FixSource) -> ast.expr:
    """The tensor that a function or method is applied to."""
    if isinstance(call.func, ast.Attribute) and not source.called(call.func).startswith(
        ("torch.", "math.")
    ):
        return call.func.value
    if not call.args:
        raise NoFixError("applied to nothing")
    return call.args[0]


def harmless_elsewhere(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """What is undefined where it is not chosen, computed of harmless values there."""
    choice = source.expression(finding.at)
    if not isinstance(choice, ast.Call):
        raise NoFixError("no choice")
    condition, is_first = _condition(choice, finding, source)
    operation = _undefined(choice, finding, source)
    if _function(operation, source) is not _function(choice, source):
        raise NoFixError("the names of the condition are not those of where it is computed")
    if isinstance(operation, ast.BinOp):
        argument = operation.right if isinstance(operation.op, ast.Div) else operation.left
        harmless = "1.0"
    elif isinstance(operation, ast.Call):
        argument, harmless = (
            argument_of(operation, source),
            _HARMLESS.get(called_name(operation), "1.0"),
        )
    else:
        raise NoFixError("no operation")
    computing = source.statement(operation)
    if computing is not source.statement(choice) and names_of(computing, ast.Store) & names_of(
        choice.args[0], ast.Load
    ):
        raise NoFixError("the condition is about the result")
    where, imports = source.reference("torch.where")
    chosen = [source.text(argument), harmless] if is_first else [harmless, source.text(argument)]
    return (source.replace(argument, f"{where}({condition}, {', '.join(chosen)})"), *imports)


def _function(node: ast.AST, source: FixSource) -> ast.AST:
    """The function or lambda around a node, else the file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return next(
        (outer for outer in source.around(node) if isinstance(outer, functions)), source.tree
    )


def _condition(choice: ast.Call, finding: Finding, source: FixSource) -> tuple[str, bool]:
    """The condition of a choice, and whether what is undefined is what is chosen where it holds."""
    if called_name(choice) == "masked_fill" and choice.args:
        return source.text(choice.args[0]), False
    if called_name(choice) != "where" or len(choice.args) != 3:
        raise NoFixError("no choice of three")
    first, _, third = choice.args
    try:
        operation = _undefined(choice, finding, source)
    except NoFixError:
        return source.text(first), True
    in_third = any(node is operation for node in ast.walk(third))
    statement = source.statement(operation)
    names = map(source.text, statement.targets) if isinstance(statement, ast.Assign) else ()
    return source.text(first), not (in_third or source.text(third) in names)


def _undefined(choice: ast.Call, finding: Finding, source: FixSource) -> ast.expr:
    for related in finding.related:
        if related.role is Role.COMPUTED and related.at.path == finding.at.path:
            return source.expression(related.at)
    raise NoFixError("the operation is not in view")


def with_epsilon(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """A root taken of a little more."""
    node = source.expression(finding.at)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return (source.replace(node.left, f"({source.text(node.left)} + {_EPS})"),)
    if not isinstance(node, ast.Call) or called_name(node) not in ("sqrt", "sqrt_", "pow", "rsqrt"):
        raise NoFixError("no root")
    argument = argument_of(node, source)
    if (bound := _bound_at_zero(argument, source)) is not None:
        return (source.replace(bound, _EPS),)
    return (source.replace(argument, f"{source.text(argument)} + {_EPS}"),)


def _bound_at_zero(argument: ast.expr, source: FixSource) -> ast.expr | None:
    """The zero of `x.clamp(min=0.0)`: a root of a little more has no gradient below it."""
    if not isinstance(argument, ast.Call) or called_name(argument) not in ("clamp", "clamp_min"):
        return None
    given = argument.args
    if source.called(argument.func).startswith("torch."):
        given = given[1:]
    least = [*given[:1], *(word.value for word in argument.keywords if word.arg == "min")]
    match least:
        case [ast.Constant(value=0) as bound]:
            return bound
    return None


def _count(chosen: ast.expr, source: FixSource) -> str:
    """How many elements were chosen, of which a mask alone knows only the rows; at least one."""
    return f"max({source.text(chosen)}.numel(), 1)"


def at_least_one(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """A mean over what a mask selects divided by at least one."""
    node = source.expression(finding.at)
    match node:
        case ast.BinOp(op=ast.Div(), right=right):
            return (source.replace(right, f"{source.operand(right)}.clamp(min=1)"),)
        case ast.Call(
            func=ast.Attribute(attr="mean", value=ast.Subscript() as chosen), args=[], keywords=[]
        ):
            return (
                source.replace(node, f"{source.text(chosen)}.sum() / {_count(chosen, source)}"),
            )
        case ast.Call(func=loss, args=[computed, ast.Subscript() as chosen], keywords=[]):
            if source.called(loss) in _BY_ELEMENT:
                summed = (
                    f"{source.text(loss)}({source.text(computed)}, {source.text(chosen)}, "
                    'reduction="sum")'
                )
                return (source.replace(node, f"{summed} / {_count(chosen, source)}"),)
    raise NoFixError("no mean over a mask")


def logarithm_at_once(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`log(softmax(x))` as `log_softmax(x)`, and `log(sigmoid(x))` as `logsigmoid(x)`."""
    log = source.expression(finding.at)
    activation = _activation(log, finding, source)
    if (shown := _picked(log, activation, source)) is not None:
        return _logarithm_of_picked(log, activation, shown, source)
    argument = argument_of(activation, source)
    name = called_name(activation).lower()
    sign = _sign(log, activation, source)
    if "sigmoid" in name:
        function, rest = "torch.nn.functional.logsigmoid", ""
    elif "softmax" in name and not sign:
        function, rest = "torch.log_softmax", _rest(activation, argument, source)
    else:
        raise NoFixError("neither softmax nor sigmoid")
    new, imports = source.reference(function)
    if any(node is activation for node in ast.walk(log)) or isinstance(
        argument, ast.Name | ast.Attribute
    ):
        inner = source.operand(argument) if sign else source.text(argument)
        return (source.replace(log, f"{new}({sign}{inner}{rest})"), *imports)
    logits = source.fresh("logits", log)
    head = source.before(source.statement(activation), f"{logits} = {source.text(argument)}")
    return (
        *head,
        source.replace(argument, logits),
        source.replace(log, f"{new}({sign}{logits}{rest})"),
        *imports,
    )


def logarithm_of_a_little(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`log(x)` as `log(x.clamp(min=…))`, where what `x` was computed from stands elsewhere."""
    log = source.expression(finding.at)
    if not isinstance(log, ast.Call) or called_name(log) not in ("log", "log2", "log10"):
        raise NoFixError("no logarithm of something near zero")
    argument = argument_of(log, source)
    return (source.replace(argument, f"{source.operand(argument)}.clamp(min={_EPS})"),)


def _picked(log: ast.expr, activation: ast.Call, source: FixSource) -> ast.expr | None:
    """What `log` is taken of where that picks numbers of an activation:
    `x.softmax(1)[rows, labels]`, also by name.
    """
    if not isinstance(log, ast.Call) or called_name(log) != "log":
        return None
    taken = argument_of(log, source)
    found = [taken, *values_of(taken, source, log)] if isinstance(taken, ast.Name) else [taken]
    node = shown = found[-1]
    while isinstance(node, ast.Subscript) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ):
        if node is activation:
            return shown if shown is not activation and len(found) <= 2 else None
        called = node if isinstance(node, ast.Subscript) else node.func
        node = called.value  # type: ignore[attr-defined]
    return None


def _logarithm_of_picked(
    log: ast.expr, activation: ast.Call, shown: ast.expr, source: FixSource
) -> tuple[Edit, ...]:
    """The logarithm of a softmax, of which the same is picked then."""
    if "softmax" not in called_name(activation).lower():
        raise NoFixError("no softmax")
    stored = {
        name
        for each in ast.walk(source.scope(log))
        if isinstance(each, ast.stmt) and shown.lineno < each.lineno < log.lineno
        for name in names_of(each, ast.Store)
    }
    if stored & names_of(shown, ast.Load):
        raise NoFixError("what it is picked by has changed since")
    argument = argument_of(activation, source)
    new, imports = source.reference("torch.log_softmax")
    logarithm = f"{new}({source.text(argument)}{_rest(activation, argument, source)})"
    text, whole = source.text(activation), source.text(shown)
    return (source.replace(log, whole.replace(text, logarithm, 1)), *imports)


def _sign(log: ast.expr, activation: ast.Call, source: FixSource) -> str:
    """`-` for the logarithm of one minus an activation, "" for that of the activation; no other can
    be mended.
    """
    if not isinstance(log, ast.Call) or called_name(log) not in ("log", "log1p"):
        raise NoFixError("no natural logarithm")
    taken = argument_of(log, source)
    is_negated = called_name(log) == "log1p"
    match taken:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Sub(), right=right) if not is_negated:
            is_negated, taken = True, right
        case ast.UnaryOp(op=ast.USub(), operand=operand) if is_negated:
            taken = operand
        case _ if is_negated:
            raise NoFixError("the logarithm of one plus an activation")
    if taken is not activation and values_of(taken, source, log) != [activation]:
        raise NoFixError("the logarithm of something else")
    return "-" if is_negated else ""


def _activation(log: ast.expr, finding: Finding, source: FixSource) -> ast.Call:
    """The softmax or sigmoid whose logarithm is taken, in the same expression or before."""
    candidates: list[ast.expr] = [
        node for node in ast.walk(log) if isinstance(node, ast.Call) and node is not log
    ]
    for related in finding.related:
        if related.role is Role.COMPUTED and related.at.path == finding.at.path:
            candidates.append(source.expression(related.at))
    for node in candidates:
        if isinstance(node, ast.Call) and called_name(node).lower() in ("softmax", "sigmoid"):
            return node
    raise NoFixError("the activation is not in view")


def _rest(activation: ast.Call, argument: ast.expr, source: FixSource) -> str:
    """The other arguments of a softmax, with a comma before them."""
    others = [*(each for each in activation.args if each is not argument), *activation.keywords]
    if not others:
        raise NoFixError("the dimension is not in view")
    return "".join(f", {source.text(each)}" for each in others)


def activated_once(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """An activation that the loss applies itself taken away, or a loss that applies what is
    missing.
    """
    takes = finding.hints.get("takes")
    for at in (
        finding.at,
        *(related.at for related in finding.related if related.at.path == finding.at.path),
    ):
        try:
            node = source.expression(at)
        except NoFixError:
            continue
        if (
            isinstance(node, ast.Call)
            and (layers := _layers_with(node, source))
            and takes != "probabilities"
        ):
            if takes == "log-probabilities" and isinstance(node.func, ast.Attribute):
                return (source.replace_name(node.func, "LogSoftmax"),)
            return (source.remove_argument(layers, node),)
        if isinstance(node, ast.Call) and _is_activation(node, source) and takes != "probabilities":
            if takes == "log-probabilities":
                return (_in_logarithms(node, source),)
            return (source.replace(node, source.text(_operand_of(node, source))),)
    return _other_loss(finding, source)


def _is_activation(node: ast.Call, source: FixSource) -> bool:
    """Whether it calls one of the activations, or a layer that was made as one: `self.act(x)`."""
    if called_name(node).lower() in ("softmax", "sigmoid"):
        return True
    made = values_of(node.func, source, node) if isinstance(node.func, ast.Attribute) else []
    return bool(made) and all(
        isinstance(each, ast.Call) and source.called(each.func) in _ACTIVATIONS for each in made
    )


def _layers_with(node: ast.Call, source: FixSource) -> ast.Call | None:
    """The `nn.Sequential(…)` of which an activation is the last layer."""
    outer = next(source.around(node))
    is_layer = source.called(node.func) in _ACTIVATIONS
    if (
        is_layer
        and isinstance(outer, ast.Call)
        and outer.args[-1:] == [node]
        and len(outer.args) > 1
    ):
        return outer
    return None


def _in_logarithms(node: ast.Call, source: FixSource) -> Edit:
    """`softmax` as `log_softmax`; a layer that does no more than this as one of `LogSoftmax`."""
    layers = [node.func] if isinstance(node.func, ast.Call) else values_of(node.func, source, node)
    if (
        not layers
        and isinstance(node.func, ast.Attribute)
        and source.text(node.func.value) != "self"
    ):
        return source.replace_name(node.func, "log_softmax")
    uses = [
        each
        for each in ast.walk(source.tree)
        if isinstance(each, ast.Call) and source.text(each.func) == source.text(node.func)
    ]
    match layers:
        case [ast.Call(func=ast.Attribute(attr="Softmax") as layer)] if len(uses) == 1:
            return source.replace_name(layer, "LogSoftmax")
    raise NoFixError("the softmax is made elsewhere, or used twice")


def _operand_of(node: ast.Call, source: FixSource) -> ast.expr:
    """What an activation is applied to: a module's argument, where it is a module."""
    is_module = isinstance(node.func, ast.Attribute) and source.text(node.func.value) in (
        "self",
        "F",
        "nn.functional",
    )
    return node.args[0] if is_module and node.args else argument_of(node, source)


def _other_loss(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    call = source.expression(finding.at)
    if not isinstance(call, ast.Call):
        raise NoFixError("no loss is called")
    made = [
        call,
        *(value for value in values_of(call.func, source, call) if isinstance(value, ast.Call)),
    ]
    for each in made:
        name = called_name(each)
        if name in _WITH_LOGITS and isinstance(each.func, ast.Attribute):
            return (source.replace_name(each.func, _WITH_LOGITS[name]),)
    raise NoFixError("the loss is made elsewhere")
