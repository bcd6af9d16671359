"""What optimizers and clips refuse to take for parameters: modules, generators in a list, pairs
with names.

Each is a fact `not-parameters`, with its place in the argument: `1/2 params *` is every item of
`params` of the second of two groups.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret.lineage import is_a
from gradlint.interpret.machine import Raised
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
from gradlint.library.structure import is_module

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

Path = tuple[str, ...]  # to an item: indices, each with the number of items, and keys of groups
_PARAMETERS = "torch.nn.ParameterList"  # whose items are parameters


def refuse(m: Machine, given: Abstract | None, call: Call, keyword: str, *, groups: bool) -> None:
    """Raises where torch does. An optimizer takes `groups` of parameters, and pairs with names; a
    clip does not.
    """
    found = list(_misfits(m, given, (), groups=groups)) if given is not None else []
    if not found:
        return
    at, where = call.frame.span(call.node), _argument(call, keyword)
    for words, path in found:
        inner = ((where, " ".join(path)),)
        m.emit(
            tape.Fact(
                at=where, what="not-parameters", detail=words, text=call.called, related=inner
            )
        )
    error = "TypeError" if groups else "AttributeError"
    raise Raised(Object(f"builtins.{error}", at), at)


def _argument(call: Call, keyword: str) -> Span:
    """Where the argument stands, or else the call; what `functools.partial` puts first stands
    there.
    """
    first = call.partial
    if first is not None and isinstance(first.node, ir.Call) and len(first.node.args) > 1:
        return first.frame.span(first.node.args[1])
    if not isinstance(call.node, ir.Call):
        return call.frame.span(call.node)
    written = [
        *call.node.args[:1],
        *(node for name, node in call.node.kwargs if name == keyword),
        call.node,
    ]
    return call.frame.span(written[0])


def _misfits(
    m: Machine, given: Abstract, path: Path, *, groups: bool
) -> Iterator[tuple[str, Path]]:
    """What is refused, in words, and its place in what is given; nothing where nothing is known to
    be.
    """
    if isinstance(given, Bound | Builtin | Function):
        yield "a method that is not called", path
    elif _is_no_list(m, given):
        yield "a module", path
    elif isinstance(given, Sequence):
        found = [
            list(_misfits_of_item(m, item, (*path, f"{at}/{len(given.items)}"), groups=groups))
            for at, item in enumerate(given.items)
        ]
        sorts = {
            words if len(place) == len(path) + 1 else ""
            for inner in found
            for words, place in inner
        }
        if len(sorts) == 1 and "" not in sorts and all(found):
            yield sorts.pop(), (*path, tape.EVERY)
        else:
            yield from itertools.chain(*found)


def _misfits_of_item(
    m: Machine, item: Abstract, path: Path, *, groups: bool
) -> Iterator[tuple[str, Path]]:
    if isinstance(item, Mapping):
        inner = item.items.get("params")
        if groups and inner is not None:
            yield from _misfits(m, inner, (*path, "params"), groups=False)
    elif words := _misfit(item, groups=groups):
        yield words, path


def _misfit(item: Abstract, *, groups: bool) -> str:
    """What is refused of an item of a list, in words; "" for what is not."""
    if is_module(item):
        return "modules in a list"
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
        return not (
            is_own or given.cls.has_unknown_base or any(is_a(base, _PARAMETERS) for base in bases)
        )
    return isinstance(given, Object) and not is_a(given.cls, _PARAMETERS)
