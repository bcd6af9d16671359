"""Hooks that run once a gradient was added up, `register_post_accumulate_grad_hook`: they are given
the parameter. And those that run with a backward of a module, `register_full_backward_hook`.

What a hook does with its argument is read from its source. Each place that takes the parameter for
its gradient is a fact `parameter-for-gradient`, where no place reads the gradient of the argument
or hands the argument on:

    def collect(g):
        master.grad.add_(g / 4)     # adds the parameter up
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.registry import FUNCTIONS, method, notify
from gradlint.interpret.scopes import GradState
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Builtin,
    Call,
    Function,
    Instance,
    Object,
    Tensor,
)
from gradlint.library.effects import lookup
from gradlint.operations import Trait, has
from gradlint.source import reach
from gradlint.source.blocks import walk

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

# functions that take it for no tensor
_KEYS = frozenset(["id", "isinstance", "hash", "print", "len"])
_DISTRIBUTED = "torch.distributed."
READ = "read"
_KEPT = "kept"  # one number of it, which goes nowhere else
_REDUCED = (Trait.SUMS, Trait.MEANS, Trait.REDUCES, Trait.EXTREMES)
# where a hook takes its argument for the gradient, and what it does with it
Mistake = tuple[ast.expr | ast.stmt, str]


@method("torch.Tensor", "register_post_accumulate_grad_hook")
def register(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    if tensor.node.parameter is not None:
        m.emit(tape.Fact(at=call.frame.span(call.node), what="parameter-hooked", value=tensor.node))
    hook = call.get(0, "hook")
    function, given = _with_given(hook)
    if isinstance(function, Function):
        name = argument(function.node.source, given)
        registered = ((call.frame.span(call.node), "registered"),)
        for node, how in mistaken(function.node.source, given):
            at = function.node.code.span(
                (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            )
            m.emit(
                tape.Fact(
                    at=at,
                    what="parameter-for-gradient",
                    value=tensor.node,
                    detail=how,
                    text=name,
                    related=registered,
                )
            )
    if isinstance(function, Function) and tensor.node.parameter is not None:
        m.state.setdefault("gradient-hooks", {}).setdefault(tensor.node.parameter, []).append(
            (tensor, hook)
        )
    else:
        notify("data call", m, m.symbol(tensor), call)
    return m.unknown("hook", data=True)


def _with_given(hook: Abstract | None) -> tuple[Abstract | None, int]:
    """The function of a hook, below decorators and partials, and how many arguments it is given
    before its own: the object of a method, what a partial holds.
    """
    match hook:
        case Builtin(wraps=inner) if inner is not None:
            return _with_given(inner)
        case Bound():
            function, given = _with_given(hook.function)
            return function, given + 1
        case Object(cls="functools.partial") if not hook.state["open"]:
            function, given = _with_given(hook.state["func"])
            return function, given + len(hook.state["args"])
    return hook, 0


def run(m: Machine, sink: tape.Backward, call: Call) -> None:
    """Runs the hooks of the parameters that a backward has given gradients to, and of modules that
    hold some of these.
    """
    hooks, of_modules = m.state.get("gradient-hooks", {}), m.state.get("backward-hooks", [])
    if not (hooks or of_modules) or sink.sink == "autograd.grad":
        return
    reached = {leaf.parameter for leaf in sink.leaves}
    before = m.grad
    if not sink.create_graph:  # a backward runs them with grad mode off
        m.grad = GradState(False, before.inference, call.frame.span(call.node), m.where)
    try:
        for parameter, registered in list(hooks.items()):
            for tensor, hook in registered if parameter in reached else ():
                m.invoke(hook, [tensor], call)
        for module, hook in list(of_modules):
            if isinstance(module, Instance) and _is_reached(module, reached):
                gradients = [m.unknown(name, data=True) for name in ("grad_input", "grad_output")]
                m.invoke(hook, [module, *gradients], call)
    finally:
        m.grad = before


def _is_reached(module: Instance, reached: AbstractSet[tape.Parameter | None]) -> bool:
    """Whether a module holds one of these parameters."""
    own = module.module
    holders = (each.module for each in reached if each is not None)
    return own is not None and any(held is not None and held.is_within(own) for held in holders)


def mistaken(function: ast.AST, given: int) -> list[Mistake]:
    """Where a hook takes its argument, behind those `given` before, for the gradient; nothing where
    it may read the gradient of that.
    """
    name = argument(function, given)
    parents = {id(inner): node for node in walk(function) for inner in ast.iter_child_nodes(node)}
    uses = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == name]
    found: list[Mistake] = []
    for use in uses if name else ():
        mistaken = _taken(use, parents)
        if mistaken is None:
            return []
        found += mistaken
    others = [each for each in found if each[1] != _KEPT]
    return others or [(node, READ) for node, _ in found]


def argument(function: ast.AST, given: int) -> str:
    """The name of what a hook is handed, behind the arguments that it is given before."""
    if not isinstance(function, ast.FunctionDef | ast.Lambda):
        return ""
    taken = [*function.args.posonlyargs, *function.args.args][given:]
    return taken[0].arg if taken else ""


def _taken(use: ast.Name, parents: dict[int, ast.AST]) -> list[Mistake] | None:
    """Where a use takes the parameter for a gradient; nowhere, where it asks what it is like; None
    of any other use.
    """
    above = parents.get(id(use))
    if isinstance(above, ast.AugAssign) and above.target is use:
        return [(above, tape.WRITTEN)]  # g *= 0.5
    if not isinstance(use.ctx, ast.Load):
        return None
    value: ast.AST = use
    is_new = False  # what was computed from it shares no memory with it
    reduced: ast.expr | None = None  # a sum, a mean or a norm of it
    for outer in _around(use, parents):
        match outer:
            case ast.Attribute(attr=name):
                effect = lookup(name)
                if name in ("shape", "dtype", "device", "ndim") or (
                    effect is not None and effect.describes
                ):
                    return []
                if effect is None:
                    return None
                is_new |= not (effect.view or effect.itself or effect.unchanged)
                value = outer
            case ast.Call(func=called) if called is value:
                if isinstance(called, ast.Attribute) and called.attr.endswith("_"):
                    return [(outer, tape.WRITTEN)]
                reduced = reduced or (outer if _is_reduction(called) else None)
                value = outer
            case ast.Call(func=ast.Name(id=name)) if name in _KEYS:
                return []
            case ast.Call(func=ast.Attribute(attr=name, value=owner)) if name.endswith(
                "_"
            ) and _is_itself(owner, use):
                return [(outer, tape.WRITTEN)]  # g.sub_(g.mean())
            case ast.Call(func=ast.Attribute(attr=name, value=owner)) if name.endswith(
                "_"
            ) and _is_gradient(owner):
                return [(outer, READ)]
            case ast.Call(func=called) if f"{_DISTRIBUTED}{reach.last(called)}" in FUNCTIONS:
                return [(outer, tape.WRITTEN)]
            case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id="torch"))) if (
                lookup(name) is not None
            ):
                reduced = reduced or (outer if _is_reduction(outer.func) else None)
                value = outer
            case ast.BinOp() | ast.UnaryOp():
                value, is_new = outer, True
            case ast.Return() | ast.Lambda():
                return None if value is use else [(value, READ)]  # type: ignore[list-item]
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target) if _is_gradient(
                target
            ):
                return [(outer, READ)]
            case _ if reduced is not None:
                return [(reduced, _KEPT)]  # a number of it is kept, logged, compared
            case _:
                return [] if is_new else None
    return None


def _is_reduction(called: ast.AST) -> bool:
    return isinstance(called, ast.Attribute) and has(f"torch.{called.attr}", *_REDUCED)


def _around(node: ast.AST, parents: dict[int, ast.AST]) -> Iterator[ast.AST]:
    while (outer := parents.get(id(node))) is not None:
        yield outer
        node = outer


def _is_itself(node: ast.AST, use: ast.Name) -> bool:
    """Whether it is what the hook is handed, or the `data` of it."""
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return isinstance(node, ast.Name) and node.id == use.id


def _is_gradient(node: ast.AST) -> bool:
    """Whether it is the gradient of something: `master.grad`."""
    return isinstance(node, ast.Attribute) and node.attr == "grad"
