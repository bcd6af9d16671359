"""Fixes of autograd functions and of distributed training."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from gradlint.finding import Edit, Finding, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.anchors import gate_of
from gradlint_rules.order import called_name, calls_of, nested, related_statement
from gradlint_rules.uncut import values_of


def class_method(name: str, near: ast.AST, source: FixSource) -> ast.FunctionDef:
    """The method of this name of the class around a node."""
    whole = next((outer for outer in source.around(near) if isinstance(outer, ast.ClassDef)), None)
    for statement in whole.body if whole else ():
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement
    raise NoFixError(f"no {name}")


def as_many_gradients(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`None` for the inputs that the backward has no gradient for, and a tuple in the place of a
    list.
    """
    statement = source.statement(finding.at)
    if isinstance(statement, ast.FunctionDef):
        return _returned(statement, source)
    if not isinstance(statement, ast.Return) or statement.value is None:
        raise NoFixError("nothing is returned")
    value = statement.value
    made = values_of(value, source, value) if isinstance(value, ast.Name) else []
    if any(isinstance(each, ast.List | ast.ListComp) for each in made):
        return (source.replace(value, f"tuple({source.text(value)})"),)
    if isinstance(value, ast.List):
        inner = source.text(value)[1:-1].strip().rstrip(",")
        return (source.replace(value, f"({inner})" if len(value.elts) > 1 else f"({inner},)"),)
    forward = class_method("forward", statement, source).args
    if forward.vararg or forward.kwarg:
        raise NoFixError("the number of inputs is open")
    given = value.elts if isinstance(value, ast.Tuple) else [value]
    inputs = [argument.arg for argument in forward.args[1:]]
    match value:
        case ast.Call(func=ast.Name(id="tuple"), args=[listed]) if len(inputs) > int(
            finding.hints["given"]
        ):
            missing = ", ".join(["None"] * (len(inputs) - int(finding.hints["given"])))
            return (source.replace(value, f"(*{source.operand(listed)}, {missing})"),)
    if len(given) > len(inputs) > 1 and not any(isinstance(each, ast.Starred) for each in given):
        return (source.replace(value, ", ".join(map(source.text, given[: len(inputs)]))),)
    if len(given) >= len(inputs):
        raise NoFixError("there are more gradients than inputs")
    if any(isinstance(each, ast.Starred) for each in given):
        return (
            source.behind_text(given[-1], ", None" * (len(inputs) - int(finding.hints["given"]))),
        )
    slots = _slots(statement, given, inputs, source)
    edits = []
    for slot, left, gradient in zip(slots, (-1, *slots), given, strict=False):
        if slot - left > 1:
            edits.append(source.before_text(gradient, "None, " * (slot - left - 1)))
    behind = len(inputs) - slots[-1] - 1
    return (*edits, source.behind_text(given[-1], ", None" * behind)) if behind else tuple(edits)


def _returned(backward: ast.FunctionDef, source: FixSource) -> tuple[Edit, ...]:
    """What a backward computes last returned as the gradient of the first input."""
    inputs = class_method("forward", backward, source).args.args[1:]
    match backward.body[-1]:
        case ast.Assign(targets=[ast.Name(id=name)]) if inputs:
            return source.after(
                backward.body[-1], f"return {', '.join([name, *['None'] * (len(inputs) - 1)])}"
            )
    raise NoFixError("what it computes has no name")


def _slots(
    statement: ast.Return, given: Sequence[ast.expr], inputs: Sequence[str], source: FixSource
) -> tuple[int, ...]:
    """Of which input each value that a backward returns is the gradient; the last ones have none
    where nothing tells.

    Another return with a value for every input tells it, and a test of `needs_input_grad` around
    this one.
    """
    texts = [ast.unparse(each) for each in given]
    whole = _whole_return(source.scope(statement), len(inputs))
    needless = _needless(statement, source)
    fitting = [
        slots
        for slots in itertools.combinations(range(len(inputs)), len(given))
        if all(
            text in ("None", whole[slot]) or text not in whole
            for text, slot in zip(texts, slots, strict=True)
        )
        and not any(
            slot in needless and text != "None" for text, slot in zip(texts, slots, strict=True)
        )
    ]
    if not fitting:
        raise NoFixError("the returns contradict each other")
    if len(fitting) > 1 and _saved(inputs[len(given) :], statement, source):
        raise NoFixError("which of the inputs has no gradient is not said")
    return fitting[0]


def _whole_return(scope: ast.AST, count: int) -> list[str]:
    """What a return with a value for each input gives, in the same backward."""
    for node in ast.walk(scope):
        if (
            isinstance(node, ast.Return)
            and isinstance(node.value, ast.Tuple)
            and len(node.value.elts) == count
        ):
            return [ast.unparse(each) for each in node.value.elts]
    return [""] * count


def _needless(statement: ast.stmt, source: FixSource) -> set[int]:
    """The inputs that need no gradient where `if not ctx.needs_input_grad[0]:` stands around a
    statement.
    """
    found: set[int] = set()
    for outer in source.around(statement):
        match outer:
            case ast.If(
                test=ast.UnaryOp(op=ast.Not(), operand=ast.Subscript(value=asked, slice=number)),
                body=body,
            ):
                is_inside = any(part is statement for each in body for part in ast.walk(each))
                is_asked = is_inside and "needs_input_grad" in source.text(asked)
                if is_asked and isinstance(number, ast.Constant) and isinstance(number.value, int):
                    found.add(number.value)
    return found


def _saved(inputs: Sequence[str], statement: ast.stmt, source: FixSource) -> bool:
    """Whether the forward saves one of these inputs, as it does where they have a gradient."""
    saving = calls_of(class_method("forward", statement, source), "save_for_backward")
    return any(
        isinstance(each, ast.Name) and each.id in inputs for call in saving for each in call.args
    )


def marked_dirty(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`ctx.mark_dirty(x)` before an input is written."""
    statement = source.statement(finding.at)
    forward = source.scope(statement)
    if isinstance(forward, ast.Module) or len(forward.args.args) < 2:
        raise NoFixError("no forward")
    ctx, *inputs = [argument.arg for argument in forward.args.args]
    used = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id in inputs]
    written = [n.id for n in sorted(used, key=lambda n: (n.lineno, n.col_offset))]
    if not written or next(calls_of(forward, "mark_dirty"), None):
        raise NoFixError("no input is written by its name")
    return source.before(statement, f"{ctx}.mark_dirty({written[0]})")


def applied(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`Fn()(x)` and `Fn.forward(ctx, x)` as `Fn.apply(x)`."""
    call = source.expression(finding.at)
    match call:
        case ast.Call(func=ast.Call(func=function, args=[], keywords=[]) as made):
            return (source.replace(made, f"{source.text(function)}.apply"),)
        case ast.Call(func=ast.Attribute(attr="forward", value=ast.Name()) as forward):
            edits = (source.replace_name(forward, "apply"),)
            return (
                (*edits, source.remove_argument(call, call.args[0]))
                if _is_given_ctx(call, source)
                else edits
            )
        case ast.Call(func=ast.Name(id=name) as func) if _is_class(name, source):
            return (source.replace(func, f"{name}.apply"),)
        case ast.Call(func=func):
            for value in values_of(func, source, call):
                if isinstance(value, ast.Call) and not value.args and not value.keywords:
                    return (source.replace(value, f"{source.text(value.func)}.apply"),)
    handed_on = _handed_on(finding.hints.get("function", ""), source)
    if len(handed_on) == 1:
        return (source.replace(handed_on[0], f"{source.text(handed_on[0])}.apply"),)
    raise NoFixError("not called as a function")


def _handed_on(name: str, source: FixSource) -> list[ast.Name]:
    """Where a class is handed on by its name: to a call, as a default, in a container or under
    another name.
    """
    uses = [
        node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == name
    ]
    return [
        node
        for node in uses
        if isinstance(node.ctx, ast.Load) and _is_value(node, next(source.around(node)))
    ]


def _is_value(node: ast.Name, outer: ast.AST) -> bool:
    match outer:
        case ast.Call(args=args):
            return node in args and called_name(outer) not in ("isinstance", "issubclass")
        case (
            ast.arguments()
            | ast.keyword()
            | ast.Dict()
            | ast.List()
            | ast.Tuple()
            | ast.Assign()
            | ast.AnnAssign()
        ):
            return True
    return False


def _is_class(name: str, source: FixSource) -> bool:
    return any(
        isinstance(each, ast.ClassDef) and each.name == name for each in ast.walk(source.tree)
    )


def _is_given_ctx(call: ast.Call, source: FixSource) -> bool:
    """Whether the first argument stands for the context: by its looks, or because `forward` takes
    no more.
    """
    match call:
        case ast.Call(args=[ast.Constant() | ast.Name(id="ctx"), *_]):
            return True
        case ast.Call(args=[_, *_], func=ast.Attribute(value=ast.Name(id=name))):
            own = [
                each
                for each in ast.walk(source.tree)
                if isinstance(each, ast.ClassDef) and each.name == name
            ]
            methods = {
                each.name: each.args
                for cls in own
                for each in cls.body
                if isinstance(each, ast.FunctionDef)
            }
            if "forward" not in methods or "setup_context" in methods:
                return False
            needed = len(methods["forward"].args) - len(methods["forward"].defaults)
            return len(call.args) + len(call.keywords) >= needed
    return False


def through_the_wrapper(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`ddp.module(x)` as `ddp(x)`."""
    call = source.expression(finding.at)
    match call:
        case ast.Call(func=ast.Attribute(attr="module", value=wrapper) as func):
            return (source.replace(func, source.text(wrapper)),)
        case ast.Call(
            func=ast.Attribute(attr=name, value=ast.Attribute(attr="module", value=wrapper)) as func
        ) if _is_all_of_forward(name, source):
            return (source.replace(func, source.text(wrapper)),)
    raise NoFixError("the module is not called by itself")


def _is_all_of_forward(method: str, source: FixSource) -> bool:
    """Whether a class of the file has a method of this name to which `forward` hands on what it is
    given, and does nothing else; no other class has one.
    """
    owners = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(each, ast.FunctionDef) and each.name == method for each in node.body)
    ]
    forwards = [
        each
        for owner in owners
        for each in owner.body
        if isinstance(each, ast.FunctionDef) and each.name == "forward"
    ]
    if len(owners) != 1 or len(forwards) != 1:
        return False
    own = [argument.arg for argument in forwards[0].args.args]
    body = forwards[0].body[ast.get_docstring(forwards[0]) is not None :]
    match body:
        case [ast.Return(value=ast.Call(func=func, args=given, keywords=[]))]:
            return [source.text(func), *map(source.text, given)] == [f"{own[0]}.{method}", *own[1:]]
    return False


def own_shard_put_back(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """The rank's own shard, which has a graph, put among those that were gathered."""
    call = source.expression(finding.at)
    match call:
        case ast.Call(args=[ast.Name(id=shards), own, *_]) if called_name(call) == "all_gather":
            while (
                isinstance(own, ast.Call) and isinstance(own.func, ast.Attribute) and not own.args
            ):
                own = own.func.value
            rank, imports = source.reference("torch.distributed.get_rank")
            return (
                *source.after(source.statement(call), f"{shards}[{rank}()] = {source.text(own)}"),
                *imports,
            )
    raise NoFixError("nothing is gathered into a list")


def reduced_with_gradient(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`all_reduce(x)`, which changes `x` in place, as `x = all_reduce(x)` of what has a
    backward.
    """
    call = source.expression(finding.at)
    statement = source.statement(call)
    match call:
        case ast.Call(func=func, args=[ast.Name(id=name), *_]) if isinstance(statement, ast.Expr):
            is_later = any(keyword.arg == "async_op" for keyword in call.keywords)
            if statement.value is call and called_name(call) == "all_reduce" and not is_later:
                function, imports = source.reference("torch.distributed.nn.functional.all_reduce")
                return (
                    source.before_text(statement, f"{name} = "),
                    source.replace(func, function),
                    *imports,
                )
    raise NoFixError("nothing is reduced in place by itself")


def synchronised_with_the_step(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """`no_sync` decided by the condition of the step."""
    step = related_statement(finding, Role.STEP, source)
    steps = source.text(gate_of(step, source).test)
    near = source.statement(finding.at)
    if source.scope(near) is not source.scope(step):
        raise NoFixError("the step stands in another function")
    for node in ast.walk(source.scope(near)):
        if isinstance(node, ast.IfExp):
            if "no_sync" in source.text(node.orelse):
                return (source.replace(node.test, steps),)
            if "no_sync" in source.text(node.body):
                return (source.replace(node.test, f"not ({steps})"),)
    for outer in nested(near, source):
        if isinstance(outer, ast.If) and outer is not gate_of(step, source):
            text = "".join(source.text(each) for each in outer.body)
            return (source.replace(outer.test, f"not ({steps})" if "no_sync" in text else steps),)
    raise NoFixError("what decides is not in view")
