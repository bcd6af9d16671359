"""The batches that a driver calls a part with, and what the part is between them."""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import memo, tape
from gradlint.interpret import owned, tensors
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Class,
    Const,
    Instance,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.operations import canonical
from gradlint.source.blocks import walk
from gradlint.tape import Kind, Storage, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


# what puts values into parts of a tensor as they are
_PUTS = frozenset(["index_copy", "index_put", "scatter", "setitem"])


def as_given(arguments: Iterable[Abstract]) -> list[tuple[Abstract, Value | None]]:
    """What a part is called with, each with the tensor that it is before anything is done to it."""
    return [
        (each, copy.copy(each.node) if isinstance(each, Tensor) else None) for each in arguments
    ]


class Batches:
    """The batches that a module is called with, and what the module was before the last of them."""

    def __init__(self, owner: Abstract, given: Iterable[tuple[Abstract, Value | None]]) -> None:
        self.owner = owner
        self.given = given
        # the computed values that the constructor has put into the module
        self._made: list[Value] | None = None
        self._before: list[object] = []

    def another(self, m: Machine, call: Call) -> Abstract:
        """Has what is given be of another batch: nothing that was done to the tensors of one before
        is done to these.

        What a module keeps of a batch is put back by whoever calls it; but nobody puts back a
        buffer, unless a method of the module is there to empty it.
        """
        if self._made is None:
            self._made = owned.computed(self.owner)
        else:
            self._renew(m, self._made)
        _give_anew(m, self.given, call)
        self._before = owned.state(m, self.owner)
        return NONE

    def _renew(self, m: Machine, made: list[Value]) -> None:
        """Has what the module keeps of a batch be something unknown."""
        known = set(map(id, made))
        for each in owned.modules(self.owner):
            kept = _kept_buffers(each)
            for name, value in each.attrs.items():
                if name in kept or getattr(value, "module", None) is not None:
                    continue  # a module in it is looked at by itself
                if any(id(node) not in known for node in owned.computed(value)):
                    each.attrs[name] = Unknown(
                        m.symbol(each).derive(("renewed", name), f"self.{name}"), data=True
                    )

    def keeps_state(self, m: Machine, _: Call) -> Abstract:
        """Whether a batch has changed what the module is, so that the next one can show something
        new.
        """
        self._report_buffers(m)
        now = owned.state(m, self.owner)
        is_same = len(now) == len(self._before) and all(map(operator.is_, now, self._before))
        return Const(not is_same)

    def _report_buffers(self, m: Machine) -> None:
        """Writes down each buffer that holds the graph of more than one batch."""
        loop = m.sinks[-1].iteration[0][0] if m.sinks and m.sinks[-1].iteration else None
        for each in owned.modules(self.owner):
            for name in sorted(_kept_buffers(each)):
                value = each.attrs.get(name)
                node = value.node if isinstance(value, Tensor) else None
                if node is None or not node.records or _is_a_store(node):
                    continue
                if _is_of_batches(node, loop):
                    m.emit(tape.Kept(at=node.at, value=node, how="buffer", text=name))


def _kept_buffers(module: Instance) -> set[str]:
    """The buffers of a module that nothing in it is there to empty."""
    buffers: set[str] = module.state.get("buffers", set())
    emptied: set[str] = module.state.get("emptied", set())
    left = buffers - emptied
    return left - _let_go(module.cls) if left else left


def _let_go(cls: Class) -> set[str]:
    """The attributes that a method other than the constructor sets to None: `self.cache = None`."""
    found: set[str] = set()
    for base in cls.lineage():
        for each in base.node.body if isinstance(base, Class) else ():
            if isinstance(each, ir.Function) and each.name != "__init__":
                found |= _set_to_none(each.source)
    return found


@memo.of_programs
def _set_to_none(method: ast.AST) -> set[str]:
    assigned = (node for node in walk(method) if isinstance(node, ast.Assign))
    emptied = (each for each in assigned if _is_none(each.value))
    targets = (target for each in emptied for target in each.targets)
    return {
        target.attr
        for target in targets
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    }


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_a_store(buffer: Value) -> bool:
    """Whether arguments alone are put into parts of a buffer, as they are: a cache of keys, which
    fills while something is generated, where nothing is recorded.
    """
    memory = buffer.storage
    if memory is None or not memory.writes:
        return False
    put = [value for write in memory.writes for value in write.by]
    return (
        all(canonical(write.op) in _PUTS for write in memory.writes)
        and not any(value.storage is memory for value in tape.ancestors(*put))
        and not any(leaf.kind is Kind.PARAMETER for leaf in tape.leaves(buffer))
    )


def _is_of_batches(node: Value, loop: int | None) -> bool:
    """Whether several rounds of the driver's loop are in the graph of what a module keeps.

    What is computed from a parameter has a graph; of what is given, only a tensor surely has one.
    """
    below = list(tape.graph(node))
    made = (each for each in below if each.kind is Kind.OPERATION)
    rounds = {number for each in made for owner, number in each.iteration if owner == loop}
    given = (each for each in below if each.kind is Kind.UNKNOWN)
    is_trained = any(each.kind is Kind.PARAMETER and each.requires_grad for each in below)
    return len(rounds) > 1 and (is_trained or all(tape.TENSOR in each.flags for each in given))


def identify(m: Machine, value: Unknown, call: Call) -> None:
    """Has a tensor be one that questions can be about."""
    node = tensors.node_of(m, value, call.node, call.frame)
    if node is not None:
        m.identify(node, value.symbol)


def _give_anew(m: Machine, given: Iterable[tuple[Abstract, Value | None]], call: Call) -> None:
    """Has what a part is called with be of another batch."""
    for value, node in given:
        if isinstance(value, Tensor) and node is not None:
            value.node = copy.copy(node)
            value.node.storage = Storage()
    symbols = [value.symbol for value, _ in given if isinstance(value, Unknown)]
    for symbol in symbols:
        m.tensors.pop(symbol, None)
        m.nodes.pop(symbol, None)
        symbols += symbol.derived.values()
    for value, _ in given:
        if isinstance(value, Unknown) and value.type == "tensor":
            identify(m, value, call)
