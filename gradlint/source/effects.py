"""What a block of code does by itself, read from its syntax tree: the one summary that all who ask are answered by.

    self.seen += 1              # changes ("self", "seen"): How.MORE
    self.waiting.append(loss)   # changes ("self", "waiting"): How.FILLED
    loss.backward()             # May.BACKWARD, and calls ("loss", "backward")
    run(optimizer.step)         # gives "step" away

Functions, classes and loops in a block have summaries of their own: each is read once, whoever asks. What a
block does through the functions that it calls is for those who can find them: `program/summaries.py` goes by
their names, `interpret/cycles.py` by what they are.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Any

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.source.blocks import walk
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
_BESIDE = {"update": May.SCALE, "no_sync": May.SYNC}  # what belongs to a step of some programs, or to something else
STAGES = frozenset(["training_step", "training_step_end", "accumulate"])  # of frameworks: a step is taken in them
LEARNS = frozenset(["fit", "learn"])  # methods by which the trainer of a library does all of it
_SETS = May.BIND | May.CLEAR  # setattr(parameter, "grad", None)
_BUILTINS = {"exec": May.ANYTHING, "eval": May.ANYTHING, "setattr": _SETS, "delattr": _SETS}
_FILLS = frozenset(["append", "appendleft", "extend", "insert", "add", "update", "setdefault"])
SUPER, TYPE = "super()", "type()"  # where a path begins that goes on with a method of the object's class
Key = tuple[object]  # of an item: `state["count"]` is ("state", ("count",))
Path = tuple[str | Key, ...]  # of a name, and of attributes and items below it; () of what has none


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
    """A call by a name: `optimizer.step()` has the path ("optimizer", "step"), `make().step()` has none."""

    name: str
    path: Path
    args: tuple[Path, ...]
    keywords: tuple[tuple[str, Path], ...]
    is_method: bool
    is_given: bool  # an object of the program: what it is called of, or an argument
    is_statement: bool  # its result is thrown away: it is called for what it does


@dataclass(frozen=True, slots=True)
class Summary:
    """What a block does by itself, less the functions, classes and loops in it (`inner`)."""

    effects: May
    calls: tuple[Call, ...]
    written: tuple[tuple[Path, How], ...]
    bound: tuple[tuple[Path, ast.expr], ...]  # what is assigned, and the value
    names: frozenset[str]  # of variables
    attributes: frozenset[str]
    reads: frozenset[tuple[str, str]]  # attributes of variables: ("self", "model")
    given: frozenset[str]  # the last names of what is a value by itself: an argument, an item, what is returned
    at_hand: May  # the events that it names, called or not
    inner: tuple[ast.AST, ...]

    @property
    def mentions(self) -> frozenset[str]:
        """The names and attributes in it."""
        return self.names | self.attributes

    @property
    def trains(self) -> bool:
        """Whether it calls a method that is a part of a training step."""
        names = (call.name for call in self.calls if call.is_method)
        return any(name in STAGES or EVENTS.get(name, May(0)) & ~May.HOLD for name in names)


def of(block: Iterable[ast.AST], *, functions: bool = True) -> Iterator[Summary]:
    """The summaries of a block: its own, and those of the loops in it, and of the functions and classes."""
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


def path_of(node: ast.AST | None) -> Path:
    """How something is reached from a name; () where it is made on the way."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=owner, attr=name):
            above = path_of(owner)
            return (*above, name) if above else ()
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
            above = path_of(owner)
            return (*above, (key,)) if above else ()
        case ast.Call(func=ast.Name(id="super")):
            return (SUPER,)
        case ast.Call(func=ast.Name(id="type")):
            return (TYPE,)
    return ()


def paths_in(node: ast.AST) -> Iterator[Path]:
    """The paths of all that is read in an expression."""
    return (path_of(part) for part in walk(node) if isinstance(part, ast.Name | ast.Attribute | ast.Subscript))


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CLOSED = (*_SCOPES, *LOOPS)


class _Reading:
    """What was read of a block so far."""

    def __init__(self) -> None:
        self.effects, self.at_hand = May(0), May(0)
        self.calls: list[Call] = []
        self.statements: set[ast.AST] = set()  # calls whose results are thrown away
        self.written: dict[tuple[Path, How], None] = {}  # in their order
        self.bound: list[tuple[Path, ast.expr]] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.reads: set[tuple[str, str]] = set()
        self.given: set[str] = set()
        self.inner: list[ast.AST] = []

    def gives(self, values: Iterable[ast.AST | None]) -> None:
        self.given |= {name for value in values if (name := last(value))}

    def writes(self, target: ast.AST, how: How) -> None:
        self.effects |= May.BIND
        self.written[path_of(target), how] = None


@memo.of_programs
def own(block: ast.AST) -> Summary:
    """What a block does by itself, less the functions, classes and loops in it."""
    reading = _Reading()
    for node in walk(block, _CLOSED):
        if node is not block and isinstance(node, _CLOSED):
            reading.inner.append(node)
        elif read := _READS.get(type(node)):
            read(reading, node)
    return Summary(
        reading.effects,
        tuple(reading.calls),
        tuple(reading.written),
        tuple(reading.bound),
        frozenset(reading.names),
        frozenset(reading.attributes),
        frozenset(reading.reads),
        frozenset(reading.given),
        reading.at_hand,
        tuple(reading.inner),
    )


def _name(reading: _Reading, node: ast.Name) -> None:
    reading.names.add(node.id)
    reading.at_hand |= EVENTS.get(node.id, May(0)) & ~May.STEP  # a variable of this name is a number
    if not isinstance(node.ctx, ast.Load):
        reading.writes(node, How.BOUND)


def _attribute(reading: _Reading, node: ast.Attribute) -> None:
    reading.attributes.add(node.attr)
    reading.at_hand |= EVENTS.get(node.attr, May(0))
    if isinstance(node.ctx, ast.Load):
        owner = path_of(node.value)
        if len(owner) == 1:
            reading.reads.add((str(owner[0]), node.attr))
        if node.attr == "grad" and last(node.value) == "autograd":
            reading.at_hand |= May.BACKWARD
        elif node.attr == "grad":
            reading.effects |= May.READ
    else:
        reading.writes(node, How.BOUND)
        if node.attr == "grad":
            reading.effects |= May.CLEAR


def _subscript(reading: _Reading, node: ast.Subscript) -> None:
    if isinstance(node.ctx, ast.Load):
        return
    is_all = isinstance(node.slice, ast.Slice) and node.slice.lower is node.slice.upper is None
    reading.writes(node.value, How.EMPTIED if is_all and isinstance(node.ctx, ast.Del) else How.ITEM)


def _assign(reading: _Reading, node: ast.Assign) -> None:
    reading.bound += [(path_of(target), node.value) for target in node.targets]
    reading.gives([node.value])


def _annotated(reading: _Reading, node: ast.AnnAssign) -> None:
    reading.bound += [(path_of(node.target), node.value)] if node.value is not None else []
    reading.gives([node.value])


def _augmented(reading: _Reading, node: ast.AugAssign) -> None:
    how = {ast.Add: How.MORE, ast.Sub: How.LESS}.get(type(node.op))
    if how is not None:
        reading.written[path_of(node.target), how] = None


def _statement(reading: _Reading, node: ast.Expr) -> None:
    reading.statements.add(node.value)


def _called(reading: _Reading, node: ast.Call) -> None:
    values = [*node.args, *(keyword.value for keyword in node.keywords)]
    reading.gives(values)
    method = node.func if isinstance(node.func, ast.Attribute) else None
    name = last(node.func)
    if method is None and name and hasattr(builtins, name):
        reading.effects |= _BUILTINS.get(name, May(0))
        return
    if method is None and not name:
        reading.effects |= May.ANYTHING  # table[key](batch)
        return
    if method is not None:
        reading.effects |= _of_method(method)
        if name in _FILLS or name == "clear":
            how = How.EMPTIED if name == "clear" else How.FILLED
            reading.written[path_of(method.value), how] = None
    given = [*values, method.value] if method is not None else values
    call = Call(
        name,
        path_of(node.func),
        tuple(map(path_of, node.args)),
        tuple((each.arg, path_of(each.value)) for each in node.keywords if each.arg is not None),
        method is not None,
        any(map(_is_thing, given)),
        node in reading.statements,
    )
    reading.calls.append(call)


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


def _returned(reading: _Reading, node: ast.Return) -> None:
    reading.gives([node.value])
    if node.value is not None and not isinstance(node.value, ast.Constant):
        reading.effects |= May.BIND


def _yields(reading: _Reading, node: ast.Yield | ast.YieldFrom) -> None:
    reading.gives([node.value])
    reading.effects |= May.BIND


def _walrus(reading: _Reading, node: ast.NamedExpr) -> None:
    reading.gives([node.value])


def _items(reading: _Reading, node: ast.List | ast.Tuple | ast.Set) -> None:
    reading.gives(node.elts)


def _values(reading: _Reading, node: ast.Dict | ast.BoolOp) -> None:
    reading.gives(node.values)


def _lambda(reading: _Reading, node: ast.Lambda) -> None:
    reading.gives([node.body])


def _either(reading: _Reading, node: ast.IfExp) -> None:
    reading.gives([node.body, node.orelse])


_READS: dict[type[ast.AST], Callable[[_Reading, Any], None]] = {
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


def last(node: ast.AST | None) -> str:
    """The name of a variable, or of an attribute of whatever it is; "" of anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_thing(node: ast.expr) -> bool:
    """Whether an expression can be an object that the program holds, and not a number or a text made for a call."""
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
