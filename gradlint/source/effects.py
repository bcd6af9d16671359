"""What a block of code does by itself, read from its syntax tree: the one summary that all who ask
are answered by.

    self.seen += 1              # changes ("self", "seen"): How.MORE
    self.waiting.append(loss)   # changes ("self", "waiting"): How.FILLED
    loss.backward()             # May.BACKWARD, and calls ("loss", "backward")
    run(optimizer.step)         # gives "step" away

Functions, classes and loops in a block have summaries of their own: each is read once, whoever
asks. What a block does through the functions that it calls is for those who can find them:
`program/summaries.py` goes by their names, `interpret/cycles.py` by what they are.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from enum import Enum, auto
from typing import Any

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.source.blocks import walk
from gradlint.source.reach import Path, last, path_of
from gradlint.source.touches import FILLS, TOUCHES
from gradlint.tape import May

# The methods of PyTorch, and of what wraps it, that are the events of a training step.
EVENTS = {
    "step": May.STEP,
    "zero_grad": May.CLEAR,
    "backward": May.BACKWARD,
    "manual_backward": May.BACKWARD,
    "scale_loss": May.BACKWARD,
    "unscale_": May.CLIP,
    "clip_grad_norm_": May.CLIP,
    "clip_grad_value_": May.CLIP,
    "add_param_group": May.HOLD,
}
# What belongs to a step of some programs, or to something else.
_BESIDE = {"update": May.SCALE, "no_sync": May.SYNC, "accumulate": May.SYNC}
# of frameworks: a step is taken in them
STAGES = frozenset(["training_step", "training_step_end", "accumulate"])
LEARNS = frozenset(["fit", "learn"])  # methods by which the trainer of a library does all of it
_SETS = May.BIND | May.CLEAR  # setattr(parameter, "grad", None)
_BUILTINS = {"exec": May.ANYTHING, "eval": May.ANYTHING, "setattr": _SETS, "delattr": _SETS}


class How(Enum):
    """How a place is written."""

    BOUND = auto()  # to another value; deleted
    ITEM = auto()  # an item of it is bound
    MORE = auto()  # +=
    LESS = auto()  # -=
    FILLED = auto()  # self.seen.append(x)
    EMPTIED = auto()  # self.seen.clear(), del self.seen[:]


@dataclass(frozen=True, slots=True)
class Call:
    """A call by a name: `optimizer.step()` has the path ("optimizer", "step"), `make().step()` has
    none.
    """

    name: str
    path: Path
    args: tuple[Path, ...]
    keywords: tuple[tuple[str, Path], ...]
    is_method: bool
    is_given: bool  # an object of the program: what it is called of, or an argument
    is_statement: bool  # its result is thrown away: it is called for what it does


@dataclass(eq=False)
class Summary:
    """What a block does by itself, less the functions, classes and loops in it (`inner`).

    The names in it are there at once. What it does with them is read when somebody asks.
    """

    nodes: Sequence[ast.AST]
    inner: Sequence[ast.AST]
    names: frozenset[str]  # of variables
    attributes: frozenset[str]

    @property
    def mentions(self) -> frozenset[str]:
        """The names and attributes in it."""
        return self.names | self.attributes

    @functools.cached_property
    def at_hand(self) -> May:
        """The events that it names, called or not."""
        found = May.BACKWARD if any(map(_is_grad, self.nodes)) else May(0)
        for name in EVENTS.keys() & self.attributes:
            found |= EVENTS[name]
        for name in EVENTS.keys() & self.names:
            found |= EVENTS[name] & ~May.STEP  # a variable of this name is a number
        return found

    @functools.cached_property
    def does(self) -> Deeds:
        """What it does with what it names."""
        found = Deeds()
        for node in self.nodes:
            if read := _READS.get(type(node)):
                read(found, node)
        return found

    @functools.cached_property
    def on_tensors(self) -> May:
        """What it may do to tensors and layers by how it is written, whatever the functions that it
        calls do.
        """
        found = May(0)
        for node in self.nodes:
            if touches := TOUCHES.get(type(node)):
                found |= touches(node)
        return found

    @property
    def trains(self) -> bool:
        """Whether it calls a method that is a part of a training step, or has a backward at hand:
        `run = loss.backward`.
        """
        if any(EVENTS[name] & May.BACKWARD for name in EVENTS.keys() & self.attributes):
            return True
        names = (call.name for call in self.does.calls if call.is_method)
        return any(name in STAGES or EVENTS.get(name, May(0)) & ~May.HOLD for name in names)


@dataclass(eq=False, slots=True)
class Deeds:
    """What a block does by itself with what it names."""

    effects: May = May(0)
    calls: list[Call] = field(default_factory=list)
    written: dict[tuple[Path, How], None] = field(default_factory=dict)  # in the order of the text
    # what is assigned, and the value
    bound: list[tuple[Path, ast.expr]] = field(default_factory=list)
    # attributes of variables: ("self", "model")
    reads: set[tuple[str, str]] = field(default_factory=set)
    # the last names of what is passed on: arguments, items, results
    given: set[str] = field(default_factory=set)
    statements: set[ast.AST] = field(default_factory=set)  # calls whose results are thrown away

    def gives(self, values: Iterable[ast.AST | None]) -> None:
        """Values are passed on."""
        self.given |= {name for value in values if (name := last(value))}

    def writes(self, target: ast.AST, how: How) -> None:
        """Something gets another value."""
        self.effects |= May.BIND
        self.written[path_of(target), how] = None


def of(block: Iterable[ast.AST], *, functions: bool = True) -> Iterator[Summary]:
    """The summaries of a block: its own, and those of the loops in it, and of the functions and
    classes.
    """
    closed = () if functions else _SCOPES
    pending = [node for node in block if not isinstance(node, closed)]
    for node in pending:
        found = own(node)
        yield found
        pending += [each for each in found.inner if not isinstance(each, closed)]


def body(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Sequence[ast.AST]:
    """What is run when a function is called."""
    return [function.body] if isinstance(function, ast.Lambda) else function.body


def mentions(block: Iterable[ast.AST]) -> frozenset[str]:
    """Every name and attribute in a block."""
    return frozenset(name for found in of(block) for name in found.mentions)


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CLOSED = frozenset([*_SCOPES, *LOOPS])


@memo.of_programs
def own(block: ast.AST) -> Summary:
    """What a block does by itself, less the functions, classes and loops in it."""
    nodes = list(walk(block, _CLOSED))
    inner = [node for node in nodes if type(node) in _CLOSED and node is not block]
    names = frozenset([node.id for node in nodes if isinstance(node, ast.Name)])
    return Summary(
        nodes,
        inner,
        names,
        frozenset([node.attr for node in nodes if isinstance(node, ast.Attribute)]),
    )


def _is_grad(node: ast.AST) -> bool:
    """`autograd.grad`, or its import by name."""
    match node:
        case ast.Attribute(attr="grad", value=owner):
            return last(owner) == "autograd"
        case ast.ImportFrom(module="torch.autograd", names=names):
            return any(each.name == "grad" for each in names)
    return False


def _name(found: Deeds, node: ast.Name) -> None:
    if not isinstance(node.ctx, ast.Load):
        found.writes(node, How.BOUND)


def _attribute(found: Deeds, node: ast.Attribute) -> None:
    if isinstance(node.ctx, ast.Load):
        owner = path_of(node.value)
        if len(owner) == 1:
            found.reads.add((str(owner[0]), node.attr))
        if node.attr == "grad" and last(node.value) != "autograd":
            found.effects |= May.READ
    else:
        found.writes(node, How.BOUND)
        if node.attr == "grad":
            found.effects |= May.CLEAR


def _subscript(found: Deeds, node: ast.Subscript) -> None:
    if isinstance(node.ctx, ast.Load):
        return
    is_all = isinstance(node.slice, ast.Slice) and node.slice.lower is node.slice.upper is None
    found.writes(node.value, How.EMPTIED if is_all and isinstance(node.ctx, ast.Del) else How.ITEM)


def _assign(found: Deeds, node: ast.Assign) -> None:
    found.bound += [(path_of(target), node.value) for target in node.targets]
    found.gives([node.value])


def _annotated(found: Deeds, node: ast.AnnAssign) -> None:
    found.bound += [(path_of(node.target), node.value)] if node.value is not None else []
    found.gives([node.value])


def _augmented(found: Deeds, node: ast.AugAssign) -> None:
    how = {ast.Add: How.MORE, ast.Sub: How.LESS}.get(type(node.op))
    if how is not None:
        found.written[path_of(node.target), how] = None


def _statement(found: Deeds, node: ast.Expr) -> None:
    found.statements.add(node.value)


def _called(found: Deeds, node: ast.Call) -> None:
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    found.gives(values)
    method = node.func if isinstance(node.func, ast.Attribute) else None
    name = last(node.func)
    if method is None and name and hasattr(builtins, name):
        found.effects |= _BUILTINS.get(name, May(0))
        return
    if method is None and not name:
        found.effects |= May.ANYTHING  # table[key](batch)
        return
    if method is not None:
        found.effects |= _of_method(method)
        if name in FILLS or name == "clear":
            how = How.EMPTIED if name == "clear" else How.FILLED
            found.written[path_of(method.value), how] = None
    given = [*values, method.value] if method is not None else values
    call = Call(
        name,
        path_of(node.func),
        tuple(map(path_of, node.args)),
        tuple((each.arg, path_of(each.value)) for each in node.keywords if each.arg is not None),
        method is not None,
        any(map(_is_thing, given)),
        node in found.statements,
    )
    found.calls.append(call)


def _of_method(method: ast.Attribute) -> May:
    """What a call of a method does, going by its name and what it is called of."""
    if method.attr in LEARNS:
        return May.ANYTHING
    if method.attr == "grad":
        return May.BACKWARD
    named = (part.attr for part in ast.walk(method.value) if isinstance(part, ast.Attribute))
    if method.attr.endswith("_") and "grad" in named:  # p.grad.zero_()
        return May.CLEAR
    return EVENTS.get(method.attr, May(0)) | _BESIDE.get(method.attr, May(0))


def _returned(found: Deeds, node: ast.Return) -> None:
    found.gives([node.value])
    if node.value is not None and not isinstance(node.value, ast.Constant):
        found.effects |= May.BIND


def _yields(found: Deeds, node: ast.Yield | ast.YieldFrom) -> None:
    found.gives([node.value])
    found.effects |= May.BIND


def _walrus(found: Deeds, node: ast.NamedExpr) -> None:
    found.gives([node.value])


def _items(found: Deeds, node: ast.List | ast.Tuple | ast.Set) -> None:
    found.gives(node.elts)


def _values(found: Deeds, node: ast.Dict | ast.BoolOp) -> None:
    found.gives(node.values)


def _lambda(found: Deeds, node: ast.Lambda) -> None:
    found.gives([node.body])


def _either(found: Deeds, node: ast.IfExp) -> None:
    found.gives([node.body, node.orelse])


_READS: dict[type[ast.AST], Callable[[Deeds, Any], None]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.Expr: _statement,
    ast.Call: _called,
    ast.Return: _returned,
    ast.Yield: _yields,
    ast.YieldFrom: _yields,
    ast.AnnAssign: _annotated,
    ast.NamedExpr: _walrus,
    ast.List: _items,
    ast.Tuple: _items,
    ast.Set: _items,
    ast.Dict: _values,
    ast.BoolOp: _values,
    ast.IfExp: _either,
    ast.Lambda: _lambda,
}


def _is_thing(node: ast.expr) -> bool:
    """Whether an expression can be an object that the program holds, and not a number or a text
    made for a call.
    """
    match node:
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Starred() | ast.Lambda():
            return True
        case ast.Call(func=ast.Attribute(value=receiver)):  # `model.parameters()`
            return _is_thing(receiver)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return any(map(_is_thing, items))
        case ast.Dict(values=items):
            return any(map(_is_thing, items))
    return False
