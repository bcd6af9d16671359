"""Which class a value is of: isinstance, issubclass, type."""

from __future__ import annotations

import collections
import collections.abc
import functools
import importlib
import types
import typing
from typing import TYPE_CHECKING

from gradlint.interpret import conditions
from gradlint.interpret.attributes import class_of
from gradlint.interpret.lineage import canonical, is_a
from gradlint.interpret.registry import function
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Range,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.layer_effects import layer
from gradlint.library.python.results import fresh, text
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_SEQUENCES = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": collections.deque,
    "generator": types.GeneratorType,
}  # fmt: skip
_HOMES = ("builtins", "collections", "collections.abc", "numbers", "types", "typing")
_PROTOCOLS = (collections.abc.Iterable, collections.abc.Sized, collections.abc.Hashable, object)
_TYPES: dict[str, tuple[type, ...]] = {"number": (int, float), "bool": (bool,), "str": (str,)}
_NAMES = {"array": "numpy.ndarray", "tensor": "torch.Tensor", "module": "torch.nn.Module"}


@function("builtins.isinstance")
def isinstance_(m: Machine, call: Call) -> Abstract:
    """`isinstance(x, cls)`."""
    if len(call.args) != 2:
        return fresh(m, call, "bool")
    return belongs(m, call.args[0], call.args[1], text(call))


def belongs(m: Machine, value: Abstract, classes: Abstract, text: str) -> Abstract:
    """Whether `value` is of one of these classes."""
    wanted = list(_flatten(classes, set()))
    answers = [False if _is_of_another(m, value, cls) else _is_one(value, cls) for cls in wanted]
    if True in answers or _exhausted(value, wanted):
        return TRUE
    if wanted and all(answer is False for answer in answers):
        return FALSE
    open_ = tuple(cls for cls, answer in zip(wanted, answers, strict=True) if answer is None)
    operand = tuple(cls.name if isinstance(cls, Lib) else m.symbol(cls) for cls in open_)
    return conditions.boolean(
        m, Test(m.symbol(value), "isa", operand[0] if len(operand) == 1 else operand), text
    )


def _is_of_another(m: Machine, value: Abstract, cls: Abstract) -> bool:
    """Whether it is known to be of a class of torch beside which it cannot be of this one: an
    optimizer is of one.
    """
    if (
        not isinstance(value, Unknown | Object)  # `optimizer: torch.optim.Optimizer`
        or not isinstance(cls, Lib)
        or not _has_apart(canonical(cls.name))
    ):
        return False
    symbol = m.symbol(value)
    known = (
        test
        for test, holds in m.oracle.facts.truth.items()
        if holds and test[:2] == (symbol, "isa")
    )
    return any(
        _are_apart(canonical(cls.name), canonical(other))
        for *_, other in known
        if isinstance(other, str)
    )


def _are_apart(one: str, other: str) -> bool:
    """Whether two classes of torch are optimizers or layers, neither of which is derived from the
    other.
    """
    if is_a(one, other) or is_a(other, one):
        return False
    shorts = sorted(name.rpartition(".")[2] for name in (one, other))
    if shorts[1].startswith(shorts[0]):  # AdamW is an Adam since torch 2.7
        return False
    return all(_is_kind(name, "torch.optim") for name in (one, other)) or all(
        layer(name) for name in (one, other)
    )


@functools.cache
def _has_apart(name: str) -> bool:
    """Whether there are classes of torch beside which nothing is of this one."""
    return _is_kind(name, "torch.optim") or bool(layer(name))


def _is_kind(name: str, home: str) -> bool:
    package, _, short = name.rpartition(".")
    return package == home and short[:1].isupper()


def _flatten(classes: Abstract, seen: set[int]) -> typing.Iterator[Abstract]:
    if isinstance(classes, Sequence):
        entries = [] if id(classes) in seen else classes.items
        seen.add(id(classes))
        for entry in entries:
            yield from _flatten(entry, seen)
    else:
        yield classes


def _exhausted(value: Abstract, classes: list[Abstract]) -> bool:
    """Whether every type that an unknown value can have is among `classes`: a number is an int or a
    float.
    """
    if not isinstance(value, Unknown) or value.type not in _TYPES:
        return False
    return all(any(_under(kind, cls) for cls in classes) for kind in _TYPES[value.type])


def _under(kind: type, cls: Abstract) -> bool:
    known = python_class(cls.name) if isinstance(cls, Lib) else None
    return known is not None and issubclass(kind, known)


@functools.cache
def python_class(name: str) -> type | None:
    """The class of Python's own that `name` stands for."""
    if name == "builtins.NoneType":
        return types.NoneType
    home, _, member = name.rpartition(".")
    found = getattr(importlib.import_module(home), member, None) if home in _HOMES else None
    found = typing.get_origin(found) or found
    return found if isinstance(found, type) else None


def _is_one(value: Abstract, cls: Abstract) -> bool | None:
    """Whether `value` is an instance of the one class `cls`."""
    if isinstance(cls, Class):
        return _of_program(value, cls)
    if not isinstance(cls, Lib):
        return None
    kind = python_class(cls.name)
    known = python_type(value)
    if known is not None:
        return _known_kind(known, kind, cls.name)
    match value:
        case Tensor():
            return _tensor_is(value, cls.name, kind)
        case Instance():
            return _instance_is(value, cls.name, kind)
        case Object():
            return _object_is(value, cls.name, kind)
        case Class():
            return kind is not None and issubclass(type, kind)
        case Lib() if layer(canonical(value.name)):  # norm_layer=nn.LayerNorm
            return kind is not None and issubclass(type, kind)
        case Unknown():
            return _unknown_is(value, cls.name, kind)
    return None


def python_type(value: Abstract) -> type | None:
    """The type that Python gives a value, where it is one of Python's own."""
    match value:
        case Const():
            return type(value.value)
        case Sequence():
            return _SEQUENCES.get(value.kind)
        case Mapping():
            return collections.defaultdict if value.factory is not None else dict
        case Range():
            return range
        case Function() | Builtin():
            return types.FunctionType
        case Bound():
            return types.MethodType
    return None


def _known_kind(known: type, kind: type | None, name: str) -> bool | None:
    if kind is not None:
        return issubclass(known, kind) or (
            None if known is dict and issubclass(kind, dict) else False
        )
    return (
        None if (name == "torch.Size" and known is tuple) or not name.partition(".")[2] else False
    )


def _of_program(value: Abstract, cls: Class) -> bool | None:
    if isinstance(value, Instance):
        return True if cls in value.cls.lineage() else None if value.cls.has_unknown_base else False
    if isinstance(value, Unknown):
        return False if value.type not in ("", "object", "module") else None
    return None if isinstance(value, Lib) else False


def _tensor_is(value: Tensor, name: str, kind: type | None) -> bool | None:
    if kind is not None:
        return kind in _PROTOCOLS
    if name == "torch.Tensor":
        return True
    if name in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        return (
            None
            if value.node.kind in (Kind.UNKNOWN, Kind.LEAF)
            else value.node.kind is Kind.PARAMETER
        )
    return None if name.startswith("torch.") and name.endswith("Tensor") else False


def _instance_is(value: Instance, name: str, kind: type | None) -> bool | None:
    if any(is_a(base, name) for base in value.cls.libraries()) or kind is object:
        return True
    if value.cls.has_unknown_base or name.startswith(("collections.abc.", "typing.")):
        return None
    return None if any(_is_open(base, name) for base in value.cls.libraries()) else False


def _is_open(base: str, name: str) -> bool:
    """Whether a library's class may inherit from another of the same library, where that is not
    torch.
    """
    package = base.partition(".")[0]
    return package == name.partition(".")[0] and package not in _HOMES and package != "torch"


def _object_is(value: Object, name: str, kind: type | None) -> bool | None:
    if is_a(value.cls, name) or kind is object:
        return True
    if is_a(name, value.cls) or name.startswith(("collections.abc.", "typing.")):
        return None
    return None if _is_open(value.cls, name) else False


def _unknown_is(value: Unknown, name: str, kind: type | None) -> bool | None:
    if value.type in _TYPES:
        answers = {kind is not None and issubclass(one, kind) for one in _TYPES[value.type]}
        return answers.pop() if len(answers) == 1 else None
    own = _NAMES.get(value.type)
    if own is None:
        return None
    if name == own:
        return True
    if kind is not None:
        # `x.tolist()`
        return None if kind in _PROTOCOLS or (kind is list and value.type == "array") else False
    return (
        None
        if name.partition(".")[0] == own.partition(".")[0] and name not in _NAMES.values()
        else False
    )


@function("builtins.issubclass")
def issubclass_(m: Machine, call: Call) -> Abstract:
    """`issubclass(a, b)`."""
    if len(call.args) != 2:
        return fresh(m, call, "bool")
    derived, bases = call.args
    answers = [is_subclass(derived, base) for base in _flatten(bases, set())]
    if True in answers or all(answer is False for answer in answers):
        return TRUE if True in answers else FALSE
    return conditions.boolean(
        m, Test(m.symbol(derived), "subclass of", m.symbol(bases)), text(call)
    )


def is_subclass(derived: Abstract, base: Abstract) -> bool | None:
    """Whether one class is another or derived from it; None where that is not known."""
    if isinstance(derived, Class):
        if base in derived.lineage():
            return True
        if isinstance(base, Lib) and any(is_a(name, base.name) for name in derived.libraries()):
            return True
        if isinstance(base, Lib) and base.name == "builtins.object":
            return True
        if derived.has_unknown_base or (
            isinstance(base, Lib) and any(_is_open(name, base.name) for name in derived.libraries())
        ):
            return None
        return False
    if isinstance(derived, Lib) and isinstance(base, Lib):
        return is_a(derived.name, base.name) or None
    return None


@function("builtins.type")
def type_(m: Machine, call: Call) -> Abstract:
    """`type(x)`."""
    value = call.args[0] if len(call.args) == 1 else NONE
    if len(call.args) != 1:
        return m.unknown(text(call))
    if isinstance(value, Instance | Object) and (known_class := class_of(value)) is not None:
        return known_class
    if isinstance(value, Tensor) and value.node.kind is Kind.PARAMETER:
        return Lib("torch.nn.Parameter")
    if _is_one(value, Lib("torch.Tensor")):
        return Lib("torch.Tensor")
    known = python_type(value)
    if known is not None:
        home = known.__module__ if known.__module__ in _HOMES else "builtins"
        return Lib(f"{home}.{known.__name__}")
    return Unknown(m.symbol(value).derive("type", text(call)), data=True, type="object")
