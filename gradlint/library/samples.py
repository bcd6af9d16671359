"""Samples: `__getitem__` of a dataset of the program, run for an index of which nothing is known.

Each part of what it returns is a fact `sample` on the tape. Its `text` is the name of the tensor;
its `detail` is the part (`1`, `1.boxes`, `label`), then what it is on this path: `zero` and `made`
are written down here (at `at`), `counted` is reckoned from such numbers, a size, or a bound of a
slice, `mark`, `true` and `false` are no label that could be real, or one that losses ignore, `read`
comes from elsewhere. Behind that stands `=1` where it is known to be this number, or filled with
it, however it came there. A fact `sample-shows` stands where a condition is asked of the items that
a part (`detail`) consists of. While a sample is taken, a lookup with a default, and a `try`, can go
both ways.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret import conditions
from gradlint.interpret.lineage import is_a
from gradlint.interpret.registry import enters
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library import shows
from gradlint.library.data import DATASET
from gradlint.library.python import records
from gradlint.program import parts
from gradlint.source.blocks import walk
from gradlint.tape import Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

MAX_DEPTH = 3  # of a sample
_IGNORED = (-100, 255)  # what losses ignore: by default, and by custom in segmentation
_SIZE = re.compile(r"(min|max)\(|len\(|.*\.(size|numel)\(|.*\.shape\[")
_Marks = frozenset[object]


@enters
def take(m: Machine, made: Abstract, name: str, called: Abstract, call: Call) -> bool:
    """Takes one sample of a dataset."""
    if (
        name != "__getitem__"
        or not isinstance(made, Instance)
        or not _is_dataset(made)
        or not isinstance(called, Bound)
    ):
        return False
    function = called.function
    if not isinstance(function, Function):
        return False
    m.state["sampling"] = True
    m.state["ignored-labels"] = _ignored(m, function)
    result = m.invoke(called, [m.unknown("index", data=True, type="number")], call)
    for part, value, _ in _leaves(result, "", 0):
        for decision in shows.decisions(m, value):
            m.emit(tape.Fact(at=decision.at, what="sample-shows", detail=part))
    written, lengths = _names(function), _lengths(function)
    for part, detail, at, name in _parts(m, result, function.node.code.span(function.node.at)):
        said = "counted" if written.get(part) in lengths else detail
        m.emit(
            tape.Fact(
                at=at, what="sample", detail=f"{part} {said}", text=name or written.get(part, "")
            )
        )
    return True


def _lengths(function: Function) -> set[str]:
    """The names by which something is cut: `motion[start : start + length]`."""
    slices = (node for node in walk(function.node.source) if isinstance(node, ast.Slice))
    bounds = (bound for each in slices for bound in (each.lower, each.upper) if bound is not None)
    return {node.id for bound in bounds for node in ast.walk(bound) if isinstance(node, ast.Name)}


def _names(function: Function) -> dict[str, str]:
    """How the parts of a tuple are called that is returned, `return image, weights`, where that is
    one.
    """
    returned = (node.value for node in walk(function.node.source) if isinstance(node, ast.Return))
    tuples = [value.elts for value in returned if isinstance(value, ast.Tuple)]
    names = {
        tuple(part.id if isinstance(part, ast.Name) else "" for part in parts) for parts in tuples
    }
    return {str(place): name for place, name in enumerate(names.pop())} if len(names) == 1 else {}


def _is_dataset(made: Instance) -> bool:
    return (
        any(is_a(base, DATASET) or base.endswith("Dataset") for base in made.cls.libraries())
        or made.cls.has_unknown_base
    )


def _ignored(m: Machine, function: Function) -> _Marks:
    """The labels that losses ignore: those of custom, and what stands behind `ignore_index=` in the
    dataset's file.
    """
    module = function.scope.module
    if module.source is None or not m.session.program.mentions(module, "ignore_index"):
        return frozenset(_IGNORED)
    m.session.program.dependencies.ask(module, parts.WHOLE)
    given = [node.value for node in walk(module.source.tree) if _is_ignore_index(node)]
    written = [value.value for value in given if isinstance(value, ast.Constant)]
    named = [_named(m, module, value) for value in given]
    return frozenset(
        (*_IGNORED, *written, *(value.value for value in named if isinstance(value, Const)))
    )


def _named(m: Machine, module: Frame, node: ast.AST) -> Abstract | None:
    """What a name of a module stands for, or an attribute of a class, or an
    object, that it names: `Settings.VOID`.
    """
    match node:
        case ast.Name(id=name):
            return m.session.program.bind(m, module, name)
        case ast.Attribute(value=owner, attr=name):
            found = _named(m, module, owner)
            if isinstance(found, Instance) and name in found.attrs:
                return found.attrs[name]
            cls = found.cls if isinstance(found, Instance) else found
            return m.session.member_of(cls, name) if isinstance(cls, Class) else None
    return None


def _is_ignore_index(node: ast.AST) -> TypeGuard[ast.keyword]:
    return isinstance(node, ast.keyword) and node.arg == "ignore_index"


def can_be_missing(m: Machine, key: object, mapping: Abstract, call: Call) -> bool:
    """Whether a lookup with a default finds nothing, while a sample is taken."""
    if not m.state.get("sampling"):
        return False
    missing = Unknown(
        m.symbol(mapping).derive(("missing", key), call.frame.text(call.node)),
        data=True,
        type="bool",
    )
    return conditions.decide(m, missing, call.node, call.frame, default=False)


def _parts(m: Machine, result: Abstract, at: Span) -> Iterator[tuple[str, str, Span, str]]:
    """Each part of a sample: which it is, what it is on this path, where and by which name."""
    for part, value, field in _leaves(result, "", 0):
        own = value.node.name if isinstance(value, Tensor) else ""
        said, place = _described(m, value, at)
        number = _filled_with(value)
        yield part, said if number is None else f"{said}={number:g}", place, field or own


def _leaves(
    value: Abstract, name: str, depth: int, field: str = ""
) -> Iterator[tuple[str, Abstract, str]]:
    """The parts of a sample that are no collections of others, each with the field that it is."""
    within = _within(value) if depth < MAX_DEPTH else None
    if within is None:
        yield name or "0", value, field
        return
    for key, item, called in within:
        yield from _leaves(item, f"{name}.{key}" if name else key, depth + 1, called)


def _within(value: Abstract) -> list[tuple[str, Abstract, str]] | None:
    """The places or keys of what a sample is made of, what lies there, and the name of the field
    that it is.
    """
    match value:
        case Sequence(kind="tuple"):
            return [(str(place), item, "") for place, item in enumerate(value.items)]
        case Mapping():
            return [(str(key), item, "") for key, item in value.items.items()]
        case Instance() | Object() if records.is_named_tuple(value):
            return [
                (str(place), item, field)
                for place, (field, item) in enumerate(records.parts(value).items())
            ]
        case Instance() if records.is_made_of_fields(value.cls):
            return [
                (field, value.attrs[field], "")
                for field in records.fields(value.cls)
                if field in value.attrs
            ]
    return None


def _described(m: Machine, value: Abstract, at: Span) -> tuple[str, Span]:
    """What a part of a sample is, and where it is written."""
    ignored: _Marks = m.state["ignored-labels"]
    match value:
        case Const() if id(value) in m.state.get("found constants", ()):  # codes[name]
            return "read", at
        case Const() if value.at is not None:
            return _of_number(value.value, ignored), value.at
        case Const() if isinstance(value.value, int):
            return "counted", at
        case Unknown(type="number") if _SIZE.match(value.symbol.text):
            return "counted", at
        case Sequence() if value.kind == "list" and value.items and _is_known(value):
            numbers = list(_numbers(value))
            if numbers and all(isinstance(number, Const) for number in numbers):
                return _of_numbers(numbers, ignored), value.at or at
        case Tensor() if value.node.kind is Kind.CONSTANT:
            written = m.state.get("written-out", {}).get(id(value.node))
            if written is not None:
                return _described(m, written, at)
            return _of_tensor(m, value.node, ignored), _origin(value.node).at
        case Tensor() if _is_ticked(value.node):
            return "mark", at
        case Tensor() if constants := _constants(value.node):
            return _common({_of_tensor(m, part, ignored) for part in constants}), constants[0].at
    return "read", at


def _filled_with(value: Abstract) -> float | None:
    """The number that a part of a sample is, or that all of it is: of `[1] * len(boxes)`,
    `torch.ones(3)`.
    """
    if isinstance(value, Tensor):
        number = value.node.number
        return number if isinstance(number, int | float) else None
    if isinstance(value, Sequence) and value.open and value.rest is None:
        return None
    numbers = [item.value for item in _numbers(value) if isinstance(item, Const)]
    is_known = isinstance(value, Const | Sequence) and len(numbers) == len(list(_numbers(value)))
    if not is_known or len(set(numbers)) != 1 or not isinstance(numbers[0], int | float):
        return None
    return numbers[0]


def _is_known(listed: Sequence) -> bool:
    """Whether it is written down what stands in a list, however long it is: `[0] * missing`."""
    return not listed.open or isinstance(listed.rest, Const)


def _is_ticked(node: Value) -> bool:
    """Whether only numbers of the program were written into zeros, `label[present] = 1`: a zero
    says absent.
    """
    while node.op.rpartition(".")[2] in ("__setitem__", "view", "part") and len(node.inputs) == 1:
        node = node.inputs[0]
    return node.kind is Kind.CONSTANT and "zeros" in node.op


def _constants(node: Value) -> list[Value]:
    """The constants that a tensor is put together of, nearest first; none where there is anything
    else in it.

    masks = torch.stack([ones[:4], torch.cat([ones, zeros])])

    What is picked from a table of several numbers is read there: `classes[name]`.
    """
    found: list[Value] = []
    pending, seen = [(node, True)], set[tuple[int, bool]]()
    for value, is_whole in pending:
        if (id(value), is_whole) in seen:
            continue
        seen.add((id(value), is_whole))
        if value.kind is Kind.CONSTANT and (is_whole or value.number is not None):
            found.append(value)
        elif value.kind is not Kind.CONSTANT and value.inputs:
            is_joined = is_whole and value.op.rpartition(".")[2] in ("stack", "cat")
            pending += [(source, is_joined) for source in value.inputs]
        else:
            return []
    return found


def _numbers(value: Abstract) -> Iterator[Abstract]:
    if isinstance(value, Sequence):
        for item in value.items:
            yield from _numbers(item)
    else:
        yield value


def _of_numbers(numbers: list[Any], ignored: _Marks) -> str:
    return _common({_of_number(number.value, ignored) for number in numbers})


def _common(said: set[str]) -> str:
    """What something is whose parts are these."""
    if len(said) == 1:
        return said.pop()
    return "mark" if said & {"mark", "true", "false"} else "made"


def _of_number(number: object, ignored: _Marks) -> str:
    if isinstance(number, bool):
        return "true" if number else "false"
    if not isinstance(number, int | float) or number in ignored:
        return "mark"
    return "mark" if number < 0 or math.isnan(number) else "zero" if number == 0 else "made"


def _of_tensor(m: Machine, node: Value, ignored: _Marks) -> str:
    if "empty" in node.op or (
        not node.inputs and any(_is_zero(m, size) for _, size in node.arguments)
    ):
        return "mark"  # of no elements
    if node.number is not None:
        return _of_number(node.number, ignored)
    return "zero" if "zeros" in node.op else "made"


def _is_zero(m: Machine, size: object) -> bool:
    """Whether a size is zero on this path: `boxes = torch.zeros((n, 4))`, where `if n:` did not
    hold.
    """
    if not isinstance(size, Symbol):
        return size == 0
    holds, size = m.oracle.facts.known, size.asked
    return holds(Test(size, "true")) is False or holds(Test(size, "<=", 0)) is True


def _origin(node: Value) -> Value:
    """The constant that a constant tensor was made from."""
    while node.inputs and node.inputs[0].kind is Kind.CONSTANT:
        node = node.inputs[0]
    return node
