"""Ways to write a program otherwise that change nothing of what it does.

Each takes the tree of a module, which it may change, and gives the module's new tree; None where
there is nothing to write otherwise, or where it would not be the same program any more.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

Rewrite = Callable[[ast.Module], ast.Module | None]
REWRITES: dict[str, Rewrite] = {}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop")
_OF_TENSORS = {
    "mean",
    "sum",
    "sqrt",
    "log",
    "exp",
    "clamp",
    "pow",
    "abs",
    "sigmoid",
    "relu",
    "detach",
    "argmax",
}
_OF_TENSORS |= {
    "softmax",
    "log_softmax",
    "square",
    "norm",
    "std",
    "var",
    "flatten",
    "matmul",
    "unsqueeze",
    "transpose",
}
_OF_TENSORS |= {
    "clone",
    "masked_fill",
    "tanh",
    "floor",
    "sign",
    "cumsum",
    "gather",
    "logsumexp",
    "reshape",
}

_BY_HAND = """
was_on = torch.is_grad_enabled()
torch.set_grad_enabled(False)
try:
    pass
finally:
    torch.set_grad_enabled(was_on)
"""


def rewrite(function: Rewrite) -> Rewrite:
    """Registers a way to write a program otherwise."""
    REWRITES[function.__name__] = function
    return function


def statements(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every block of statements of a program."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def stored(nodes: list[ast.stmt]) -> set[str]:
    """The names that statements bind in their own scope."""
    found: set[str] = set()
    pending: list[ast.AST] = list(nodes)
    for node in pending:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if not isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            pending += ast.iter_child_nodes(node)
    return found


def read(nodes: list[ast.stmt]) -> set[str]:
    """The names that statements read, those that they add to among them."""
    found: set[str] = set()
    for node in itertools.chain.from_iterable(map(ast.walk, nodes)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def holds(nodes: list[ast.stmt], *kinds: type[ast.AST]) -> bool:
    return any(isinstance(node, kinds) for each in nodes for node in ast.walk(each))


def insert(tree: ast.Module, *made: ast.stmt) -> None:
    """Puts statements behind the imports."""
    heads = (ast.Import, ast.ImportFrom)
    last = max(
        (place for place, each in enumerate(tree.body) if isinstance(each, heads)), default=-1
    )
    tree.body[last + 1 : last + 1] = made


def training_loop(tree: ast.Module) -> tuple[list[ast.stmt], ast.For] | None:
    """The first `for` that back-propagates in its own body, and the block that it stands in."""
    for block in blocks(tree):
        for each in block:
            if isinstance(each, ast.For) and not each.orelse and _trains(each):
                return block, each
    return None


def _trains(loop: ast.For) -> bool:
    inner = [
        node
        for node in ast.walk(loop)
        if isinstance(node, ast.For | ast.While) and node is not loop
    ]
    return _back_propagates(loop) and not any(map(_back_propagates, inner))


def _back_propagates(node: ast.AST) -> bool:
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(isinstance(called, ast.Attribute) and called.attr == "backward" for called in calls)


def leaves(body: list[ast.stmt]) -> bool:
    """Whether statements leave the loop that they are the body of, or go on to its next round."""
    pending: list[ast.AST] = list(body)
    for node in pending:
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom | ast.Break | ast.Continue):
            return True
        if not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)
    return False


def scope_of(tree: ast.Module, statement: ast.stmt) -> ast.Module | ast.FunctionDef:
    """The innermost function around a statement, or the module."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [node for node in functions if any(each is statement for each in ast.walk(node))]
    return around[-1] if around else tree  # a walk comes to what is further in later


def parameters_of(scope: ast.Module | ast.FunctionDef) -> set[str]:
    """The names of what a function is given."""
    if isinstance(scope, ast.Module):
        return set()
    given = scope.args
    return {
        each.arg
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
        if each
    }


class Called(ast.NodeTransformer):
    """Puts what `change` makes of a call in its place, from the inside out."""

    def __init__(self, change: Callable[[ast.Call], ast.expr]) -> None:
        self.change = change

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return self.change(node)


@rewrite
def round_in_a_function(tree: ast.Module) -> ast.Module | None:
    """The body of the training loop is a function of the module, which is given what it reads."""
    found = training_loop(tree)
    if found is None:
        return None
    loop = found[1]
    scope = scope_of(tree, loop)
    nested = (ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.NamedExpr, *_SCOPES)
    if leaves(loop.body) or holds(loop.body, *nested) or _is_nested(tree, scope):
        return None
    bound = stored(loop.body)
    outside = [each for each in ast.walk(scope) if isinstance(each, ast.Name)]
    inside = {id(node) for each in loop.body for node in ast.walk(each)}
    others = {each.id for each in outside if id(each) not in inside}
    early = {
        each.id for each in outside if id(each) not in inside and isinstance(each.ctx, ast.Store)
    }
    early |= parameters_of(scope)
    own = (
        early
        if isinstance(scope, ast.FunctionDef)
        else early - read([each for each in tree.body if each is not loop])
    )
    given = sorted(read(loop.body) & (own | (early & bound)))
    back = sorted(bound & (others | set(given)))
    if any(not _binds_always(loop.body, name) and name not in given for name in back):
        return None
    call = f"one_round({', '.join(given)})"
    (made,) = statements(
        f"def one_round({', '.join(given)}):\n    return {', '.join(back) or 'None'}"
    )
    assert isinstance(made, ast.FunctionDef)
    made.body = [*loop.body, *made.body]
    loop.body = statements(f"{', '.join(back)} = {call}" if back else call)
    insert(tree, made)
    return tree


def _is_nested(tree: ast.Module, scope: ast.Module | ast.FunctionDef) -> bool:
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node is not scope
    ]
    return any(each is scope for node in functions for each in ast.walk(node))


def _binds_always(body: list[ast.stmt], name: str) -> bool:
    return any(
        isinstance(each, ast.Assign | ast.AugAssign | ast.With) and name in stored([each])
        for each in body
    )


@rewrite
def round_in_a_callback(tree: ast.Module) -> ast.Module | None:
    """That function is the only one in a list of callbacks."""
    made = round_in_a_function(tree)
    if made is None:
        return None
    for loop in [node for node in ast.walk(made) if isinstance(node, ast.For)]:
        only = loop.body[0]
        call = (
            only.value if isinstance(only, ast.Assign | ast.Expr) and len(loop.body) == 1 else None
        )
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "one_round":
            call.func = ast.Name("callback", ast.Load())
            loop.body = [
                ast.For(
                    ast.Name("callback", ast.Store()),
                    ast.Name("CALLBACKS", ast.Load()),
                    loop.body,
                    [],
                )
            ]
    at = next(
        place for place, each in enumerate(made.body) if getattr(each, "name", "") == "one_round"
    )
    made.body[at + 1 : at + 1] = statements("CALLBACKS = [one_round]")
    return made


@rewrite
def drained_iterator(tree: ast.Module) -> ast.Module | None:
    """The training loop takes its batches by `next` until it raises."""
    found = training_loop(tree)
    if found is None:
        return None
    block, loop = found
    text = (
        "waiting = iter(_)\nwhile True:\n    try:\n        _ = next(waiting)\n"
        "    except StopIteration:\n        break"
    )
    first, drains = statements(text)
    assert isinstance(first, ast.Assign)
    assert isinstance(first.value, ast.Call)
    first.value.args = [loop.iter]
    assert isinstance(drains, ast.While)
    taken = next(node for node in ast.walk(drains) if isinstance(node, ast.Assign))
    taken.targets = [loop.target]
    drains.body += loop.body
    at = block.index(loop)
    block[at : at + 1] = [first, drains]
    return tree


@rewrite
def batches_from_a_generator(tree: ast.Module) -> ast.Module | None:
    """A generator hands the batches on."""
    found = training_loop(tree)
    if found is None:
        return None
    loop = found[1]
    loop.iter = ast.Call(ast.Name("handed_on", ast.Load()), [loop.iter], [])
    insert(tree, *statements("def handed_on(source):\n    for each in source:\n        yield each"))
    return tree


@rewrite
def epoch_in_a_closure(tree: ast.Module) -> ast.Module | None:
    """The training loop is a function within the one that it stands in."""
    found = training_loop(tree)
    scope = scope_of(tree, found[1]) if found is not None else tree
    if found is None or isinstance(scope, ast.Module):
        return None
    block, loop = found
    leaving = (ast.Return, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)
    if holds([loop], *leaving) or holds(scope.body, ast.Global, ast.Nonlocal):
        return None
    inside = {id(node) for node in ast.walk(loop)}
    names = [
        node for node in ast.walk(scope) if isinstance(node, ast.Name) and id(node) not in inside
    ]
    comprehensions = (node for node in ast.walk(scope) if isinstance(node, _COMPREHENSIONS))
    own = {id(node) for each in comprehensions for node in ast.walk(each)}
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store) and id(node) not in own}
    early = bound & stored(scope.body) | parameters_of(scope)
    shared = sorted(stored([loop]) & early)
    if stored([loop]) & {node.id for node in names} - set(shared):
        return None
    made, call = statements("def one_epoch():\n    pass\none_epoch()")
    assert isinstance(made, ast.FunctionDef)
    made.body = [*([ast.Nonlocal(shared)] if shared else []), loop]
    at = block.index(loop)
    block[at : at + 1] = [made, call]
    return tree


@rewrite
def numbers_in_a_class(tree: ast.Module) -> ast.Module | None:
    """Numbers that the module names are attributes of a class."""
    names = [
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    taken = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    moved: dict[str, ast.stmt] = {}
    for each in tree.body:
        if (
            isinstance(each, ast.Assign)
            and isinstance(each.value, ast.Constant)
            and isinstance(each.targets[0], ast.Name)
        ):
            name = each.targets[0].id
            if (
                names.count(name) == 1
                and name not in taken
                and isinstance(each.value.value, int | float)
            ):
                moved[name] = each
    if not moved or holds(tree.body, ast.Global):
        return None

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return (
                ast.Attribute(ast.Name("Settings", ast.Load()), node.id, node.ctx)
                if node.id in moved
                else node
            )

    tree.body = [Renamed().visit(each) for each in tree.body if each not in moved.values()]
    (made,) = statements("class Settings:\n    pass")
    assert isinstance(made, ast.ClassDef)
    made.body = list(moved.values())
    insert(tree, made)
    return tree


@rewrite
def parts_by_name(tree: ast.Module) -> ast.Module | None:
    """What a call is given that is computed there has a name of its own first."""
    numbers = itertools.count()
    lazy = (ast.Lambda, ast.Await, ast.Yield, ast.Starred, ast.NamedExpr, *_COMPREHENSIONS)
    for block in list(blocks(tree)):
        for each in list(block):
            call = each.value if isinstance(each, ast.Assign | ast.Return | ast.Expr) else None
            if (
                not isinstance(call, ast.Call)
                or holds([each], *lazy)
                or ast.unparse(call.func) in ("super", "print")
            ):
                continue
            for place, given in enumerate(call.args):
                if isinstance(given, ast.Call | ast.BinOp):
                    name = f"part_{next(numbers)}"
                    block.insert(
                        block.index(each), ast.Assign([ast.Name(name, ast.Store())], given)
                    )
                    call.args[place] = ast.Name(name, ast.Load())
    return tree if next(numbers) else None


@rewrite
def functions_for_methods(tree: ast.Module) -> ast.Module | None:
    """`x.mean()` is `torch.mean(x)`."""
    if "import torch" not in map(ast.unparse, tree.body):
        return None

    def change(call: ast.Call) -> ast.expr:
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in _OF_TENSORS:
            return call
        if not isinstance(function.value, ast.Call | ast.BinOp | ast.Name) or _is_a_module(
            function.value
        ):
            return call
        named = ast.Attribute(ast.Name("torch", ast.Load()), function.attr, ast.Load())
        return ast.Call(named, [function.value, *call.args], call.keywords)

    before = ast.dump(tree)
    made = Called(change).visit(tree)
    assert isinstance(made, ast.Module)
    return made if ast.dump(made) != before else None


def _is_a_module(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in (
        "torch",
        "F",
        "nn",
        "np",
        "math",
        "dist",
        "self",
    )


@rewrite
def starred_arguments(tree: ast.Module) -> ast.Module | None:
    """`f(a, b)` is `f(*(a, b))`."""
    plain = (
        "super",
        "print",
        "isinstance",
        "getattr",
        "hasattr",
        "setattr",
        "range",
        "max",
        "min",
        "zip",
    )

    def change(call: ast.Call) -> ast.expr:
        if (
            len(call.args) > 1
            and ast.unparse(call.func) not in plain
            and not holds([ast.Expr(call)], ast.Starred)
        ):
            call.args = [ast.Starred(ast.Tuple(call.args, ast.Load()), ast.Load())]
        return call

    made = Called(change).visit(tree)
    assert isinstance(made, ast.Module)
    return made


@rewrite
def appended_items(tree: ast.Module) -> ast.Module | None:
    """A list that a comprehension makes is filled by a loop."""
    changed = False
    for block in list(blocks(tree)):
        for each in list(block):
            made = each.value if isinstance(each, ast.Assign) else None
            if (
                not isinstance(made, ast.ListComp)
                or len(made.generators) > 1
                or not isinstance(each, ast.Assign)
            ):
                continue
            source, target = made.generators[0], each.targets[0]
            if not isinstance(target, ast.Name) or target.id in read([each]) or block is tree.body:
                continue
            first, last = statements(f"{target.id} = []\n{target.id}.append(_)")
            assert isinstance(last, ast.Expr)
            assert isinstance(last.value, ast.Call)
            last.value.args = [made.elt]
            body: list[ast.stmt] = [last]
            for condition in reversed(source.ifs):
                body = [ast.If(condition, body, [])]
            at = block.index(each)
            block[at : at + 1] = [first, ast.For(source.target, source.iter, body, [])]
            changed = True
    return tree if changed else None


@rewrite
def methods_by_name(tree: ast.Module) -> ast.Module | None:
    """`optimizer.step` has a name before it is called."""
    numbers = itertools.count()
    for block in list(blocks(tree)):
        for each in list(block):
            call = each.value if isinstance(each, ast.Expr) else None
            function = call.func if isinstance(call, ast.Call) else None
            if not isinstance(call, ast.Call) or not isinstance(function, ast.Attribute):
                continue
            if function.attr in ("step", "backward", "zero_grad"):
                name = f"act_{next(numbers)}"
                block.insert(block.index(each), ast.Assign([ast.Name(name, ast.Store())], function))
                call.func = ast.Name(name, ast.Load())
    return tree if next(numbers) else None


@rewrite
def optimizers_from_a_function(tree: ast.Module) -> ast.Module | None:
    """A function that is given its class makes the optimizer."""
    changed = []

    def change(call: ast.Call) -> ast.expr:
        if ast.unparse(call.func).rpartition(".")[2] not in _OPTIMIZERS or not isinstance(
            call.func, ast.Attribute
        ):
            return call
        changed.append(call)
        return ast.Call(ast.Name("made_of", ast.Load()), [call.func, *call.args], call.keywords)

    made = Called(change).visit(tree)
    assert isinstance(made, ast.Module)
    insert(made, *statements("def made_of(cls, *args, **kwargs):\n    return cls(*args, **kwargs)"))
    return made if changed else None


@rewrite
def grad_mode_by_hand(tree: ast.Module) -> ast.Module | None:
    """`with torch.no_grad():` is a switch that is put back at last."""
    if "import torch" not in map(ast.unparse, tree.body):
        return None
    changed = False
    for block in list(blocks(tree)):
        for each in list(block):
            if isinstance(each, ast.With) and list(map(ast.unparse, each.items)) == [
                "torch.no_grad()"
            ]:
                *switch, attempt = statements(_BY_HAND)
                assert isinstance(attempt, ast.Try)
                attempt.body = each.body
                at = block.index(each)
                block[at : at + 1] = [*switch, attempt]
                changed = True
    return tree if changed else None
