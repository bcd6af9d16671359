"""Train mode and eval mode: of which modules, and whether anything in them differs between the two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.values import Abstract, Builtin, Call, Class, Const, Function, Instance, Object, Unknown
from gradlint.library.effects import LayerEffect
from gradlint.library.modules import CONTAINERS, is_module, modules, parts

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_BY_HAND = ("training", "dropout")  # in the source of a module: it asks for the mode itself
_WITH_DROPOUT = ("Transformer", "RReLU", "MultiheadAttention")


def tell_mode(m: Machine, module: Instance | Object, training: bool | None, call: Call) -> None:
    """The events of a change of mode: of the module, and of the modules that it wraps without being their parent."""
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
    """Whether a module computes otherwise in train mode than in eval mode, as far as it is known."""
    return any(_differs(part) for _, part in modules(module))


def _differs(part: Abstract) -> bool:
    if any(isinstance(inner, Unknown) for _, inner in parts(part)):
        return True
    if isinstance(part, Object):
        return _is_layer_that_differs(part)
    if isinstance(part, Instance):
        return part.cls.has_unknown_base or any(word in source for source in _sources(part) for word in _BY_HAND)
    return True


def _is_layer_that_differs(layer: Object) -> bool:
    effect, name = layer.state.get("effect"), layer.cls.rpartition(".")[2]
    if isinstance(effect, LayerEffect):
        return bool(effect.training) or name.startswith(_WITH_DROPOUT) or _has_dropout(layer)
    return layer.cls not in CONTAINERS and not any(is_module(inner) for _, inner in parts(layer))


def _has_dropout(layer: Object) -> bool:
    """`nn.LSTM(…, dropout=0.1)`."""
    given = layer.state.get("arguments", {}).get("dropout")
    return given is not None and not (isinstance(given, Const) and not given.value)


def _sources(instance: Instance) -> Iterator[str]:
    """The source of the methods of an object's class."""
    for cls in instance.cls.lineage():
        for member in cls.namespace.values() if isinstance(cls, Class) else ():
            while isinstance(member, Builtin) and member.wraps is not None:
                member = member.wraps
            if isinstance(member, Function):
                yield member.node.code.whole(member.node.at)
