"""What optimizers and clips refuse to take for parameters: modules, generators in a list, pairs with names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import is_a
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Builtin,
    Call,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.library.modules import is_module

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PARAMETERS = "torch.nn.ParameterList"  # whose items are parameters


def refuse(m: Machine, given: Abstract | None, call: Call, *, groups: bool) -> None:
    """Raises where torch does. An optimizer takes `groups` of parameters, and pairs with names; a clip does not."""
    found = _misfit(m, given, groups=groups) if given is not None else ""
    if not found:
        return
    at, args = call.frame.span(call.node), call.node.args if isinstance(call.node, ir.Call) else []
    where = call.frame.span(args[0]) if args else at
    m.emit(tape.Fact(at=where, what="not-parameters", detail=found, text=call.called))
    error = "TypeError" if groups else "AttributeError"
    raise Raised(Object(f"builtins.{error}", at), at)


def _misfit(m: Machine, given: Abstract, *, groups: bool) -> str:
    """What is refused, in words; "" where nothing is known to be."""
    if isinstance(given, Bound | Builtin | Function):
        return "a method that is not called"
    if _is_no_list(m, given):
        return "a module"
    if not isinstance(given, Sequence):
        return ""
    return next((found for item in given.items if (found := _misfit_item(m, item, groups=groups))), "")


def _misfit_item(m: Machine, item: Abstract, *, groups: bool) -> str:
    if is_module(item):
        return "modules in a list"
    if isinstance(item, Mapping):
        inner = item.items.get("params")
        return _misfit(m, inner, groups=False) if groups and inner is not None else ""
    if not isinstance(item, Sequence):
        return ""
    if item.kind == "generator":
        return "a generator in a list"
    match item.items:
        case [Const(), Tensor()]:
            return "" if groups else "pairs of names and parameters"
    return "a list in a list" if item.kind == "list" and item.items else ""


def _is_no_list(m: Machine, given: Abstract) -> bool:
    """Whether it is a module that does not give parameters where it is iterated over."""
    if not is_module(given):
        return False
    if isinstance(given, Instance):
        bases = given.cls.libraries()
        is_own = m.session.member_of(given.cls, "__iter__") is not None
        return not (is_own or given.cls.has_unknown_base or any(is_a(base, _PARAMETERS) for base in bases))
    return isinstance(given, Object) and not is_a(given.cls, _PARAMETERS)
