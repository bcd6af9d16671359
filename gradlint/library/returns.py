"""What the `backward` of a custom function gives back, as its source says: how many gradients, in a
tuple or not.

Read from the return statements and not by running them: what a gradient is does not matter, only
that it is one. Where the source leaves open how many there are, nothing is said. What an expression
is made of is no effect of code: the summaries of `source/effects.py` do not say it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint.dataclass import dataclass
from gradlint.interpret import decorators
from gradlint.interpret.values import Function
from gradlint.ir import nodes as ir
from gradlint.ir.lower import body
from gradlint.ir.walk import within
from gradlint.library.effects import lookup

if TYPE_CHECKING:
    from gradlint.interpret.scopes import Frame

_TENSORS_ONLY = frozenset(["-", "/", "//", "@", "**", "%"])
_CALLABLE = frozenset(["zeros_like", "ones_like", "full_like", "empty_like", "rand_like"])
_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Fault:
    """A return statement that gives other gradients than the inputs take."""

    at: ir.Position
    kind: str  # "fewer", "more", "list", "nothing"
    given: int


def faults(backward: Function, inputs: int) -> Iterator[Fault]:
    """The return statements of `backward` that do not fit this many inputs of `forward`."""
    statements = body(backward.node)
    reader = _Reader(backward, statements)
    returns = list(_returns(statements))
    if (
        not returns
        and statements
        and not any(isinstance(node, ir.Raise | ir.Yield) for node in within(statements))
    ):
        yield Fault(_head(backward.node), "nothing" if inputs == 1 else "fewer", 1)
    is_conditional = gives(backward)  # `return grad if ctx.needs_input_grad[0] else None`
    for node in returns:
        for value in reader.alternatives(node.value):
            fault = reader.fault(node, value, inputs)
            if fault is not None and not (fault.kind == "nothing" and is_conditional):
                yield fault


def gives(function: Function) -> bool:
    """Whether a function can give something else than None."""
    values = (node.value for node in _returns(body(function.node)))
    return any(
        not (value is None or (isinstance(value, ir.Literal) and value.value is None))
        for value in values
    )


def refuses(function: Function) -> bool:
    """Whether a function raises on every way through it: `raise NotImplementedError`."""
    statements = body(function.node)
    # what stands behind the raise is no way out
    is_left = any(_returns(statements)) or any(
        isinstance(node, ir.Yield) for node in within(statements)
    )
    return not is_left and any(isinstance(node, ir.Raise) for node in statements)


def _returns(block: list[ir.Node]) -> Iterator[ir.Return]:
    """The return statements of a block, but for those behind one that always leaves it."""
    for node in block:
        match node:
            case ir.Return():
                yield node
                return
            case ir.Raise() | ir.Jump():
                return
            case ir.If():
                yield from _returns(node.then)
                yield from _returns(node.otherwise)
            case ir.For() | ir.While():
                yield from _returns(node.body)
                yield from _returns(node.otherwise)
            case ir.With():
                yield from _returns(node.body)
            case ir.Try():
                handlers = [handler.body for handler in node.handlers]
                for part in (node.body, *handlers, node.otherwise, node.finally_):
                    yield from _returns(part)


def nothing_for(backward: Function, number: int) -> ir.Position | None:
    """Where `backward` returns `None` as the gradient of this input, if each of its returns does
    so.
    """
    statements = body(backward.node)
    reader = _Reader(backward, statements)
    returns = list(_returns(statements))
    given = [value for node in returns for value in reader.alternatives(node.value)]
    return returns[0].at if given and all(_is_none(value, number) for value in given) else None


def something_for(backward: Function, number: int, inputs: int) -> bool:
    """Whether each return of `backward` gives a gradient for this one of the inputs: `None` only
    where a condition leaves a name at it.
    """
    statements = body(backward.node)
    reader = _Reader(backward, statements)
    given = [value for node in _returns(statements) for value in reader.alternatives(node.value)]
    return bool(given) and all(_is_something(reader, value, number, inputs) for value in given)


def _is_something(reader: _Reader, value: ir.Node | None, number: int, inputs: int) -> bool:
    if not isinstance(value, ir.Display):
        return inputs == 1 and not reader.is_nothing(value)
    is_plain = not any(isinstance(item, ir.Star) for item in value.items)
    return len(value.items) == inputs and is_plain and not reader.is_nothing(value.items[number])


def _named(scope: Frame, name: str) -> Function | None:
    """The function of the program that a name stands for, where a function is written; below a
    wrapper that hands on what it gives, and else without decorators.
    """
    frame: Frame | None = scope
    while frame is not None:
        if name in frame.locals:
            found = frame.locals[name]
            if not isinstance(found, Function):
                return None
            return decorators.handed_to(found) or (None if found.node.decorators else found)
        frame = frame.parent
    return None


def _is_none(value: ir.Node | None, number: int) -> bool:
    items = value.items if isinstance(value, ir.Display) else []
    is_plain = number < len(items) and not any(isinstance(item, ir.Star) for item in items)
    item = items[number] if is_plain else None
    return isinstance(item, ir.Literal) and item.value is None


def _head(function: ir.Function) -> ir.Position:
    line, column, _, _ = function.at
    return line, column, line, column + len("def ") + len(function.name)


def _is_written_list(value: ir.Node | None) -> bool:
    return isinstance(value, ir.Display | ir.Comprehension) and value.kind == "list"


class _Reader:
    """The names of one function, and what its expressions surely are."""

    def __init__(self, function: Function, statements: list[ir.Node]) -> None:
        positional = [
            parameter.name
            for parameter in function.node.parameters
            if parameter.kind == "positional"
        ]
        self.gradients = frozenset(positional[1:])
        self.scope = function.scope
        self.assigned: dict[str, list[ir.Node | None]] = {}
        # the names of lists that a method changes, once for each change
        self.filled: list[str] = []
        for node in within(statements):
            self._note(node)

    def _note(self, node: ir.Node) -> None:
        match node:
            case ir.Assign():
                for target in node.targets:
                    self._bind(target, node.value)
            case ir.Augment(target=ir.Name()):
                self._bind(node.target, node.value if node.op != "+" else None)
            case ir.For() | ir.With() if node.target is not None:
                self._bind(node.target, None)
            case ir.Walrus():
                self._bind(node.target, node.value)
            case ir.Call(
                function=ir.Attribute(
                    target=ir.Name() as owner, name="append" | "extend" | "insert" | "pop"
                )
            ):
                self._bind(owner, None)
                self.filled.append(owner.id)

    def _bind(self, target: ir.Node, value: ir.Node | None) -> None:
        if isinstance(target, ir.Name):
            self.assigned.setdefault(target.id, []).append(value)
        elif isinstance(target, ir.Display):
            saved = isinstance(value, ir.Attribute) and value.name == "saved_tensors"
            for part in target.items:
                self._bind(part, value if saved else None)
        elif isinstance(target, ir.Star):
            self._bind(target.value, None)
        elif isinstance(target, ir.Subscript) and isinstance(target.index, ir.Slice):
            self._bind(target.target, None)

    def is_nothing(self, value: ir.Node | None) -> bool:
        """Whether an expression is None, or a name that is never anything else."""
        known = self.assigned.get(value.id, []) if isinstance(value, ir.Name) else []
        if known:
            return all(each is not None and self.is_nothing(each) for each in known)
        return value is None or (isinstance(value, ir.Literal) and value.value is None)

    def alternatives(self, value: ir.Node | None) -> list[ir.Node | None]:
        """What a returned expression can be, through conditions and a name that is assigned
        once.
        """
        for _ in range(_DEPTH):
            match value:
                case ir.Name() if len(known := self.assigned.get(value.id, [])) == 1 and isinstance(
                    known[0], ir.Display
                ):
                    value = known[0]
                case ir.Conditional():
                    return [*self.alternatives(value.then), *self.alternatives(value.otherwise)]
                case _:
                    break
        items = (
            None if isinstance(value, ir.Display) and value.kind == "list" else self._items(value)
        )
        return [value if value is None or items is None else ir.Display(value.at, "tuple", items)]

    def _items(self, value: ir.Node | None, depth: int = 0) -> list[ir.Node] | None:
        """The items of `(*grads, None)` or `(grad,) + (None,) * 3`; None where it is not known how
        many there are.

        A list with a name, `grads = [None] * 3`, is filled place by place: of what it holds nothing
        is known.
        """
        if depth > _DEPTH:
            return None
        parts: list[list[ir.Node] | None] = [None]
        match value:
            case ir.Display():
                parts = [
                    self._items(p.value, depth + 1) if isinstance(p, ir.Star) else [p]
                    for p in value.items
                ]
            case ir.Binary(op="+"):
                parts = [self._items(side, depth + 1) for side in (value.left, value.right)]
            case ir.Binary(op="*", right=ir.Literal(value=int(times))):
                parts = [self._items(value.left, depth + 1)] * times
            case ir.Call(function=ir.Name(id="tuple"), args=[kept], kwargs=[]):
                parts = [self._items(kept, depth + 1)]
            case ir.Comprehension(kind="generator" | "list", clauses=[(_, iterable, [])]):
                items = self._items(iterable, depth + 1)
                parts = [items if items is None else [value.element for _ in items]]
            case ir.Call(function=ir.Name(id=name)):
                length = self._length_of(name)
                parts = [None if length is None else [value for _ in range(length)]]
            case ir.Name() if len(known := self.assigned.get(value.id, [])) == 1:
                items = self._items(known[0], depth + 1)
                is_tuple = isinstance(known[0], ir.Display) and known[0].kind == "tuple"
                parts = [items if items is None or is_tuple else [value for _ in items]]
        return None if None in parts else [item for part in parts for item in part or []]

    def _length_of(self, name: str) -> int | None:
        """How many values a function of the program gives: each of its returns writes a tuple of as
        many.
        """
        known = None if name in self.assigned else _named(self.scope, name)
        if known is None or known.node.is_generator:
            return None
        returns = [node for node in within(body(known.node)) if isinstance(node, ir.Return)]
        given = [node.value for node in returns]
        lengths = {len(v.items) for v in given if isinstance(v, ir.Display) and v.kind == "tuple"}
        plain = all(
            isinstance(v, ir.Display) and not any(isinstance(i, ir.Star) for i in v.items)
            for v in given
        )
        return lengths.pop() if len(lengths) == 1 and plain else None

    def fault(self, node: ir.Return, value: ir.Node | None, inputs: int) -> Fault | None:
        """What is wrong with returning `value` for this many inputs; None where nothing is, or it
        is not known.
        """
        if value is None or isinstance(value, ir.Literal):
            return Fault(node.at, "nothing" if inputs == 1 else "fewer", 1)
        if isinstance(value, ir.Display) and not any(
            isinstance(item, ir.Star) for item in value.items
        ):
            if value.kind == "list":
                return Fault(node.at, "list", len(value.items))
            if any(map(_is_written_list, value.items)):
                return Fault(node.at, "list", 0)
            if len(value.items) < inputs:
                return Fault(node.at, "fewer", len(value.items))
            more = any(self.is_tensor(item) for item in value.items[inputs:])
            return Fault(node.at, "more", len(value.items)) if more else None
        if self._is_list(value):
            return Fault(node.at, "list", 0)
        return Fault(node.at, "fewer", 1) if inputs > 1 and self.is_tensor(value) else None

    def _is_list(self, value: ir.Node | None) -> bool:
        """Whether an expression surely is a list: a comprehension, or `grads = []` that is filled
        item by item.
        """
        if isinstance(value, ir.Name):
            known = self.assigned.get(value.id, [])
            made = [each for each in known if each is not None]
            only_filled = len(known) - len(made) == self.filled.count(value.id)
            return bool(made) and only_filled and all(map(self._is_list, made))
        return _is_written_list(value)

    def is_tensor(self, value: ir.Node | None, depth: int = 0) -> bool:
        """Whether an expression surely is one tensor."""
        if depth > _DEPTH:
            return False
        match value:
            case ir.Name():
                known = self.assigned.get(value.id)
                if known is None:
                    return value.id in self.gradients
                return all(_is_saved(part) or self.is_tensor(part, depth + 1) for part in known)
            case ir.Binary(op=op):
                parts = (value.left, value.right)
                return op in _TENSORS_ONLY or any(self.is_tensor(part, depth + 1) for part in parts)
            case ir.Unary():
                return self.is_tensor(value.operand, depth + 1)
            case ir.Conditional():
                return self.is_tensor(value.then, depth + 1) and self.is_tensor(
                    value.otherwise, depth + 1
                )
            case ir.Call(function=ir.Attribute(target=target, name=name)):
                of_torch = isinstance(target, ir.Name) and target.id in ("torch", "F")
                return _gives_tensor(name) and (of_torch or self.is_tensor(target, depth + 1))
        return False


def _is_saved(value: ir.Node | None) -> bool:
    return isinstance(value, ir.Attribute) and value.name == "saved_tensors"


def _gives_tensor(name: str) -> bool:
    effect = lookup(name)
    if name in _CALLABLE:
        return True
    several = name in ("split", "chunk", "unbind", "tensor_split", "meshgrid", "broadcast_tensors")
    return effect is not None and effect.outputs is None and not effect.escapes and not several
