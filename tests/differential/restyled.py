"""More ways to write a program otherwise: another style of the same statements."""

from __future__ import annotations

import ast

from differential.rewrites import (
    REWRITES,
    Called,
    blocks,
    holds,
    insert,
    leaves,
    parameters_of,
    read,
    rewrite,
    scope_of,
    statements,
    stored,
    training_loop,
)

ALL = REWRITES  # those of both files
_HEADS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
_PLAIN = """
import functools
def plain(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        return function(*args, **kwargs)
    return run
"""


class _Attributes(ast.NodeTransformer):
    """Puts attributes of an object in the place of names."""

    def __init__(self, owner: str, names: set[str]) -> None:
        self.owner, self.names = owner, names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return (
            ast.Attribute(ast.Name(self.owner, ast.Load()), node.id, node.ctx)
            if node.id in self.names
            else node
        )


def counts(tree: ast.AST, name: str) -> int:
    """How often a name is bound anywhere."""
    return sum(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        for n in ast.walk(tree)
    )


@rewrite
def rounds_in_a_method(tree: ast.Module) -> ast.Module | None:
    """The training loop is a method of a class, whose attributes are what it reads."""
    found = training_loop(tree)
    if found is None:
        return None
    block, loop = found
    scope = scope_of(tree, loop)
    leaving = (ast.Return, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal, ast.NamedExpr)
    if block is not scope.body or holds([loop], *leaving, ast.Lambda, *_HEADS):
        return None
    rest = [each for each in scope.body if each is not loop]
    before = stored([each for each in rest if not isinstance(each, _HEADS)]) | parameters_of(scope)
    if (
        stored([loop]) & (before | read(rest))
        or "self" in before
        or holds(rest, ast.Global, ast.Nonlocal)
    ):
        return None
    given = sorted(read([loop]) & before)
    if not given or "rounds" in given:  # which is the method here
        return None
    start = f"    def __init__(self, {', '.join(given)}):\n        pass"
    (made,) = statements(f"class Trainer:\n{start}\n    def rounds(self):\n        pass")
    assert isinstance(made, ast.ClassDef)
    first, method = made.body
    assert isinstance(first, ast.FunctionDef)
    assert isinstance(method, ast.FunctionDef)
    first.body = statements("\n".join(f"self.{name} = {name}" for name in given))
    method.body = [_Attributes("self", set(given)).visit(loop)]
    block[block.index(loop)] = statements(f"Trainer({', '.join(given)}).rounds()")[0]
    insert(tree, made)
    return tree


@rewrite
def numbers_in_a_dataclass(tree: ast.Module) -> ast.Module | None:
    """Numbers that the module names are fields of one object."""
    taken = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
    moved: dict[str, ast.Assign] = {}
    for each in tree.body:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant):
            target = each.targets[0]
            is_number = isinstance(each.value.value, int | float)
            if (
                isinstance(target, ast.Name)
                and is_number
                and counts(tree, target.id) == 1
                and target.id not in taken
            ):
                moved[target.id] = each
    if not moved or holds(tree.body, ast.Global):
        return None
    kept = [each for each in tree.body if each not in moved.values()]
    tree.body = [_Attributes("settings", set(moved)).visit(each) for each in kept]
    fields = "\n".join(
        f"    {name}: float = {ast.unparse(each.value)}" for name, each in moved.items()
    )
    insert(
        tree,
        *statements(
            f"import dataclasses\n@dataclasses.dataclass\nclass Of:\n{fields}\nsettings = Of()"
        ),
    )
    return tree


@rewrite
def contexts_on_a_stack(tree: ast.Module) -> ast.Module | None:
    """`with` enters its contexts by an `ExitStack`."""
    changed = False
    for block in list(blocks(tree)):
        for each in [each for each in block if isinstance(each, ast.With)]:
            entered: list[ast.stmt] = []
            for item in each.items:
                enter = ast.Attribute(ast.Name("stack", ast.Load()), "enter_context", ast.Load())
                call = ast.Call(enter, [item.context_expr], [])
                entered.append(
                    ast.Assign([item.optional_vars], call) if item.optional_vars else ast.Expr(call)
                )
            (made,) = statements("with contextlib.ExitStack() as stack:\n    pass")
            assert isinstance(made, ast.With)
            made.body = [*entered, *each.body]
            block[block.index(each)] = made
            changed = True
    insert(tree, *statements("import contextlib"))
    return tree if changed else None


@rewrite
def goes_on_early(tree: ast.Module) -> ast.Module | None:
    """What a loop does at last under a condition comes behind a `continue` for where it does not
    hold.
    """
    changed = False
    for loop in [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]:
        last = loop.body[-1]
        if isinstance(last, ast.If) and not last.orelse:
            loop.body[-1:] = [
                ast.If(ast.UnaryOp(ast.Not(), last.test), [ast.Continue()], []),
                *last.body,
            ]
            changed = True
    return tree if changed else None


@rewrite
def turned_round(tree: ast.Module) -> ast.Module | None:
    """Of `if` and `else`, the other comes first."""
    changed = False
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.If) and node.orelse]:
        if not isinstance(node.orelse[0], ast.If):
            node.test, node.body, node.orelse = (
                ast.UnaryOp(ast.Not(), node.test),
                node.orelse,
                node.body,
            )
            changed = True
    return tree if changed else None


@rewrite
def matched(tree: ast.Module) -> ast.Module | None:
    """`if x == 1` is `match x: case 1`."""
    changed = False
    for block in list(blocks(tree)):
        for each in [each for each in block if isinstance(each, ast.If)]:
            test = each.test
            if (
                not isinstance(test, ast.Compare)
                or len(test.ops) != 1
                or not isinstance(test.ops[0], ast.Eq)
            ):
                continue
            (value,) = test.comparators
            is_plain = isinstance(value, ast.Constant) and type(value.value) in (int, str)
            if is_plain and ast.unparse(test.left) != "__name__":
                cases = [ast.match_case(ast.MatchValue(value), None, each.body)]
                cases += [ast.match_case(ast.MatchAs(), None, each.orelse)] if each.orelse else []
                block[block.index(each)] = ast.Match(test.left, cases)
                changed = True
    return tree if changed else None


@rewrite
def partial_functions(tree: ast.Module) -> ast.Module | None:
    """`F.cross_entropy(x, y, reduction="sum")` is called with what it is told by name
    beforehand.
    """
    changed = []

    def change(call: ast.Call) -> ast.expr:
        if not isinstance(call.func, ast.Attribute) or not all(
            keyword.arg for keyword in call.keywords
        ):
            return call
        if ast.unparse(call.func.value) not in ("F", "nn.functional", "torch.nn.functional"):
            return call
        changed.append(call)
        partial = ast.Attribute(ast.Name("functools", ast.Load()), "partial", ast.Load())
        return ast.Call(ast.Call(partial, [call.func], call.keywords), call.args, [])

    made = Called(change).visit(tree)
    assert isinstance(made, ast.Module)
    insert(made, *statements("import functools"))
    return made if changed else None


@rewrite
def decorated(tree: ast.Module) -> ast.Module | None:
    """Each function of the module is behind a wrapper that hands everything on."""
    functions = [
        each for each in tree.body if isinstance(each, ast.FunctionDef) and not each.decorator_list
    ]
    plain = [each for each in functions if not holds(each.body, ast.Yield, ast.YieldFrom)]
    for each in plain:
        each.decorator_list = [ast.Name("plain", ast.Load())]
    insert(tree, *statements(_PLAIN))
    return tree if plain else None


@rewrite
def counted_by_while(tree: ast.Module) -> ast.Module | None:
    """`for epoch in range(n)` is a `while` with a counter."""
    changed = False
    for block in list(blocks(tree)):
        for each in [
            each
            for each in block
            if isinstance(each, ast.For) and not each.orelse and not leaves(each.body)
        ]:
            target, over = each.target, each.iter
            if (
                not isinstance(target, ast.Name)
                or not isinstance(over, ast.Call)
                or counts(tree, target.id) > 1
            ):
                continue
            bound = (
                over.args[0] if ast.unparse(over.func) == "range" and len(over.args) == 1 else None
            )
            if isinstance(bound, ast.Name | ast.Constant) and not read([ast.Expr(bound)]) & stored(
                each.body
            ):
                first, loop, last = statements(
                    f"{target.id} = 0\nwhile {target.id} < 0:\n    pass\n{target.id} += 1"
                )
                assert isinstance(loop, ast.While)
                assert isinstance(loop.test, ast.Compare)
                loop.test.comparators, loop.body = [bound], [*each.body, last]
                at = block.index(each)
                block[at : at + 1] = [first, loop]
                changed = True
    return tree if changed else None


@rewrite
def in_a_main(tree: ast.Module) -> ast.Module | None:
    """What the module does is done by a function, which it calls where it is the program."""
    rest = [each for each in tree.body if not isinstance(each, _HEADS)]
    kept = [each for each in tree.body if isinstance(each, _HEADS)]
    made = [each for each in kept if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    if (
        len(rest) < 3
        or stored(rest) & read(list(made))
        or "__name__" in read(rest)
        or "main" in stored(tree.body)
    ):
        return None
    if holds(tree.body, ast.Global):
        return None
    main, call = statements("def main():\n    pass\nif __name__ == '__main__':\n    main()")
    assert isinstance(main, ast.FunctionDef)
    main.body = rest
    tree.body = [*kept, main, call]
    return tree
