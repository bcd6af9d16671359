"""Train mode and eval mode: of which modules, and whether anything in them differs between the
two.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from gradlint import memo, tape
from gradlint.interpret.values import (
    Abstract,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Object,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.chance import is_nothing
from gradlint.library.layer_effects import LayerEffect
from gradlint.library.structure import CONTAINERS, is_module, modules, parts

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_MODE = "training"  # the attribute by which a module asks for its mode itself
_WITH_DROPOUT = ("Transformer", "RReLU", "MultiheadAttention")


def note_mode(m: Machine, module: Instance | Object, training: bool | None, call: Call) -> None:
    """The events of a change of mode: of the module, and of the modules that it wraps without being
    their parent.
    """
    matters = differs(module)
    told: list[tape.Module] = []
    for own in _within(m, module):
        if own is not None and not any(own.is_within(other) for other in told):
            told.append(own)
            at, text = call.frame.span(call.node), call.frame.text(call.node)
            m.emit(tape.TrainMode(at=at, module=own, training=training, matters=matters, text=text))


def _within(m: Machine, module: Instance | Object) -> Iterator[tape.Module | None]:
    """A module and those in it, also what is out of view there and was used already."""
    for _, part in modules(module):
        if isinstance(part, Instance | Object):
            yield part.module
        for _, inner in parts(part):
            own = m.leaves.get(inner.symbol) if isinstance(inner, Unknown) else None
            if own is not None and own.parameter is not None:
                yield own.parameter.module


def differs(module: Abstract) -> bool:
    """Whether a module computes otherwise in train mode than in eval mode, as far as it is
    known.
    """
    return any(_differs(part) for _, part in modules(module))


def _differs(part: Abstract) -> bool:
    if any(isinstance(inner, Unknown) for _, inner in parts(part)):
        return True
    if isinstance(part, Object):
        return _is_layer_that_differs(part)
    if isinstance(part, Instance):
        return part.cls.has_unknown_base or any(
            not _are_off(part, beside) for beside in _questions(part)
        )
    return True


def _is_layer_that_differs(layer: Object) -> bool:
    effect, name = layer.state.get("effect"), layer.cls.rpartition(".")[2]
    if isinstance(effect, LayerEffect):
        differs = bool(effect.training) and not leaves_alone(layer, "p")
        return differs or name.startswith(_WITH_DROPOUT) or _has_dropout(layer)
    return layer.cls not in CONTAINERS and not any(is_module(inner) for _, inner in parts(layer))


def _has_dropout(layer: Object) -> bool:
    """`nn.LSTM(…, dropout=0.1)`."""
    given = layer.state.get("arguments", {}).get("dropout")
    return given is not None and not (isinstance(given, Const) and not given.value)


def _are_off(module: Instance, settings: frozenset[str]) -> bool:
    """Whether a setting of a module is off, of those without which it does not ask for its mode."""
    given = (module.attrs.get(name) for name in settings)
    return any(isinstance(setting, Const) and not setting.value for setting in given)


def _questions(module: Instance) -> Iterator[frozenset[str]]:
    """The places where a module asks for its mode, each by the settings of its own that stand
    beside it.
    """
    for cls in module.cls.lineage():
        for member in cls.namespace.values() if isinstance(cls, Class) else ():
            while isinstance(member, Builtin) and member.wraps is not None:
                member = member.wraps
            if isinstance(member, Function):
                yield from _asked(member.node)


@memo.of_programs
def _asked(function: ir.Function) -> tuple[frozenset[str], ...]:
    """`if self.checkpointed and self.training:` asks for the mode beside one setting."""
    found: list[frozenset[str]] = []
    waiting: list[tuple[ast.AST, frozenset[str]]] = [(function.source, frozenset())]
    while waiting:
        node, beside = waiting.pop()
        if (
            isinstance(node, ast.Attribute)
            and node.attr == _MODE
            and isinstance(node.ctx, ast.Load)
        ):
            found.append(beside)
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            beside |= {each.attr for each in node.values if _is_of_self(each)}
        waiting.extend((inner, beside) for inner in ast.iter_child_nodes(node))
    return tuple(found)


def _is_of_self(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def leaves_alone(layer: Instance | Object, share: str) -> bool:
    """`nn.Dropout(0.0)`: it leaves all as it is."""
    given = _share(layer, share)
    return isinstance(given, Const) and given.value == 0


def lets_through(m: Machine, layer: Instance | Object, effect: LayerEffect) -> bool:
    """Whether a layer of dropout gives what it is given: in evaluation, or as most are made."""
    given = _share(layer, "p")
    return effect.training == "dropout" and (
        layer.state.get("training") is False or (given is not None and is_nothing(m, given))
    )


def _share(layer: Instance | Object, share: str) -> Abstract | None:
    return layer.attrs.get(share) or layer.state.get("arguments", {}).get(share)
