"""What the parameters of an entry are that no caller in view passes: unknown, of the type that
their annotations and defaults name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradlint.interpret import annotated, calls, conditions
from gradlint.interpret.cases import is_a_case
from gradlint.interpret.lineage import canonical
from gradlint.interpret.registry import TYPES
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    Abstract,
    Class,
    Const,
    Function,
    Lib,
    Object,
    Sequence,
    Unknown,
)
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame
    from gradlint.interpret.session import Session

_LOADERS = ("loader", "dataset", "batches", "dataiter", "data_iter")
_FIELDS = {"bool": "bool", "int": "number", "float": "number", "str": "str"}
_TENSOR = "Tensor"
_MODULE = "torch.nn.Module"


class Parameters:
    """The parameters of one entry: shared by its paths."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._parameters: dict[tuple[int, str], Symbol] = {}
        # classes that annotations take for objects
        self.blocks: dict[Symbol, tuple[list[Class], ir.Node, Frame]] = {}
        # what parameters are that callers leave out, where that is written
        self.settings: dict[Symbol, Abstract] = {}
        # of the program, of which parameters are by their annotations
        self.classes: dict[Symbol, Class] = {}

    def given(self, m: Machine, function: Function, parameter: ir.Parameter) -> Abstract:
        """What a parameter is that no caller is seen to pass: unknown, of the type that its
        annotation names.
        """
        key = (id(function.node), parameter.name)
        if key not in self._parameters:
            self._parameters[key] = Symbol(parameter.name)
            if isinstance(parameter.default, ir.Literal):
                self.settings[self._parameters[key]] = Const(parameter.default.value)
        symbol = self._parameters[key]
        if m.oracle.prepares:
            m.state.setdefault("made with", set()).add(symbol)
        typed = self._annotated(m, function, parameter, symbol)
        if typed is not None:
            return typed
        name = parameter.name.lower()
        is_data = any(word in name for word in _LOADERS) or is_a_case(function.node, parameter.name)
        return Unknown(symbol, data=is_data)

    def is_given(self, symbol: Symbol) -> bool:
        """Whether it is a parameter that no caller is seen to pass, or a plain part of one:
        `config.amp`.
        """
        while symbol.source is not None:
            if not isinstance(symbol.key, tuple) or symbol.key[0] not in ("attribute", "item"):
                return False
            symbol = symbol.source
        return symbol in self._parameters.values()

    def _annotated(
        self, m: Machine, function: Function, parameter: ir.Parameter, symbol: Symbol
    ) -> Abstract | None:
        if parameter.annotation is None or isinstance(parameter.annotation, ir.Literal):
            return None
        written = _besides_none(parameter.annotation)
        if self.session.contract and (classes := annotated.classes(m, written, function.scope)):
            return _one_of(m, classes, symbol, written, function.scope)
        if self.session.contract and m.oracle.prepares and symbol not in self.blocks:
            named = annotated.classes(m, written, function.scope, within=True)
            self.blocks[symbol] = (
                [cls for cls in named if calls.is_module(cls)],
                written,
                function.scope,
            )
        if self.session.contract and _makes_a_module(function):
            layer = annotated.of_list(m, written, function.scope)
            if layer is not None and self._is_module(m, layer, function):
                return self._layers(symbol, "list")
        items = annotated.of_tuple(m, written, function.scope)
        if items:
            own = [
                symbol.derive(("item", position), f"{symbol.text}[{position}]")
                for position in range(len(items))
            ]
            typed = [
                self._typed(m, function, parameter, *each) for each in zip(items, own, strict=True)
            ]
            known = [each or Unknown(item) for each, item in zip(typed, own, strict=True)]
            return (
                Sequence("tuple", known)
                if any(isinstance(each, Object) for each in typed)
                else None
            )
        made = self._typed(m, function, parameter, written, symbol)
        is_plain = isinstance(made, Unknown) and made.type in (*_FIELDS.values(), "tensor")
        return made if is_plain or written is parameter.annotation else None

    def rest_of(self, m: Machine, function: Function, parameter: ir.Parameter) -> Sequence | None:
        """What the constructor of a part is given by `*layers`: more than is known; of layers, if
        an annotation says that, two. None where the call is of the program.
        """
        is_unknown = bool(self.session.contract) and m.oracle.prepares and not m.running
        if not is_unknown or not _makes_a_module(function):
            return None
        key = (id(function.node), parameter.name)
        symbol = self._parameters.setdefault(key, Symbol(parameter.name))
        written = parameter.annotation
        if written is not None and self._is_module(m, written, function):
            return self._layers(symbol, "tuple")
        return Sequence("tuple", [], True)

    def _is_module(self, m: Machine, written: ir.Node, function: Function) -> bool:
        """Whether an annotation names a class of modules."""
        named = m.evaluate(written, function.scope)
        if isinstance(named, Class):
            return calls.is_module(named)
        return isinstance(named, Lib) and canonical(named.name) == _MODULE

    def _layers(self, symbol: Symbol, kind: str) -> Sequence:
        """Some modules, of which two stand for all."""
        own = (symbol.derive(("item", n), f"{symbol.text}[{n}]") for n in range(2))
        return Sequence(kind, [Unknown(each, type="module") for each in own], True)

    def _typed(
        self,
        m: Machine,
        function: Function,
        parameter: ir.Parameter,
        written: ir.Node,
        symbol: Symbol,
    ) -> Abstract | None:
        annotation = m.evaluate(written, function.scope)
        if isinstance(annotation, Class):
            self.classes[symbol] = annotation
        maker = TYPES.get(canonical(annotation.name)) if isinstance(annotation, Lib) else None
        return maker(m, symbol, function, parameter) if maker is not None else None

    def called_as(self, m: Machine, symbol: Symbol) -> Class | None:
        """The class that a constructor is given where it calls what its annotation says to be an
        object of it.

        `block: Union[Basic, Bottleneck]` of `self.layer = block(width)`: timm's way to write
        `type[…]`
        """
        if not m.oracle.prepares or symbol not in self.blocks:
            return None
        classes, written, scope = self.blocks[symbol]
        return _one_of(m, classes, symbol, written, scope) if classes else None

    def kind_of_field(self, owner: Symbol, name: str) -> str:
        """What the class of a parameter says that an attribute is: a number, a bool or a string; ""
        for others.
        """
        found = (_FIELDS.get(said) for said in self._annotations(owner, name))
        return next((kind for kind in found if kind is not None), "")

    def is_tensor_field(self, owner: Symbol, name: str) -> bool:
        """Whether the class of a parameter says that an attribute is a tensor: `state.h`, of
        `class State(NamedTuple)`.
        """
        return next(self._annotations(owner, name), "") == _TENSOR

    def _annotations(self, owner: Symbol, name: str) -> Iterator[str]:
        """What the class of a parameter, and those above it, annotate an attribute with."""
        cls = self.classes.get(owner)
        for each in cls.lineage() if cls is not None else ():
            if isinstance(each, Class) and (said := _annotation_of(each, name)):
                yield said


def _makes_a_module(function: Function) -> bool:
    """Whether a function is the constructor of a module."""
    owner = function.owner
    return function.name == "__init__" and isinstance(owner, Class) and calls.is_module(owner)


def _besides_none(annotation: ir.Node) -> ir.Node:
    """What something is that can also be None: `int` of `Optional[int]` and of `int | None`."""
    match annotation:
        case ir.Subscript(
            target=ir.Name(id="Optional") | ir.Attribute(name="Optional"), index=inner
        ):
            return inner
        case ir.Binary(op="|", left=inner, right=ir.Literal(value=None)):
            return inner
        case ir.Binary(op="|", left=ir.Literal(value=None), right=inner):
            return inner
    return annotation


def _annotation_of(cls: Class, name: str) -> str:
    """The name that a class annotates an attribute with: of `std: float = 0.02`, float; of
    `h: torch.Tensor`, Tensor.
    """
    for statement in cls.node.body:
        match statement:
            case ir.Declare(name=found, annotation=said) if found == name:
                return _last_name(said)
            case ir.Assign(targets=[ir.Name(id=found)], annotation=said) if found == name:
                return _last_name(said)
    return ""


def _last_name(annotation: ir.Node | None) -> str:
    match annotation:
        case ir.Name(id=name) | ir.Attribute(name=name):
            return name
    return ""


def _one_of(m: Machine, classes: list[Class], symbol: Symbol, node: ir.Node, frame: Frame) -> Class:
    """The class of the program that a part is given, by its annotation; each of several on a path
    of its own.
    """
    *others, last = classes
    for number, cls in enumerate(others):
        is_it = Unknown(symbol.derive(("class", number), cls.name), data=True, type="bool")
        known = len(m.oracle.decisions)
        holds = conditions.decide(m, is_it, node, frame)
        made = m.oracle.decisions[known:]
        m.oracle.decisions[known:] = [
            replace(each, text=f"{symbol.text} is {cls.name}") for each in made
        ]
        if holds:
            return cls
    return last
