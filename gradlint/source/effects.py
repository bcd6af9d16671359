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
_FILLS = frozenset(["append", "appendleft", "extend", "insert", "add", "update", "setdefault"])
# where a path begins that goes on with a method of the object's class
SUPER, TYPE = ("super()", "type()")
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
            if touches := _TOUCHES.get(type(node)):
                found |= touches(node)
        return found

    @property
    def trains(self) -> bool:
        """Whether it calls a method that is a part of a training step."""
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
    return (
        path_of(part)
        for part in walk(node)
        if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)
    )


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
        if name in _FILLS or name == "clear":
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


def _touches_by_assignment(node: ast.Assign | ast.Return) -> May:
    return _of_comparison(node.value)


def _touches_by_update(node: ast.AugAssign) -> May:
    return May.WRITE | (May.SPOIL if isinstance(node.op, _QUOTIENTS) else May(0))


def _touches_by_item(node: ast.Subscript) -> May:
    return _of_comparison(node.slice) if isinstance(node.ctx, ast.Load) else May.WRITE | May.KEEP


def _touches_by_attribute(node: ast.Attribute) -> May:
    if isinstance(node.ctx, ast.Load):
        return May(0)
    return (
        May.CUT | May.LEAF
        if node.attr in _FLAGS
        else May.KEEP
        if isinstance(node.value, ast.Attribute)
        else May(0)
    )


def _touches_by_operator(node: ast.BinOp) -> May:
    own = May.SPOIL if isinstance(node.op, _QUOTIENTS) else May(0)
    return own | _of_comparison(node.left) | _of_comparison(node.right)


def _touches_by_call(node: ast.Call) -> May:
    found = May(0)
    for each in node.keywords:
        found |= _BY_KEYWORD.get(each.arg or "", May(0)) | _of_comparison(each.value)
    for argument in node.args:
        found |= _of_comparison(argument)
    match node.func:
        case ast.Attribute(attr=name, value=owner):
            is_written = name.endswith("_") and not name.endswith("__") and last(owner) != "init"
            found |= _of_comparison(owner) | (May.WRITE if is_written else May(0))
            found |= May.KEEP if name in _FILLS else May(0)
            is_function = name == "apply" and path_of(owner) != ("self",)  # MyFunction.apply(x)
            return found | (May.CUT if is_function else May(0))
        case ast.Name(id=name):
            return found | (
                May.KEEP if name in _CONTAINERS and (node.args or node.keywords) else May(0)
            )
    return found


def _touches_by_items(node: ast.List | ast.Tuple | ast.Dict | ast.Set) -> May:
    items = node.values if isinstance(node, ast.Dict) else node.elts
    return May.KEEP if any(isinstance(each, ast.Call) for each in items) else May(0)


def _touches_by_loop(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> May:
    item = node.value if isinstance(node, ast.DictComp) else node.elt
    return May.KEEP if isinstance(item, ast.Call) else May(0)


def _of_comparison(node: ast.AST | None) -> May:
    """What is computed from where a comparison holds gets no gradient from there; what a branch
    asks is no value.
    """
    is_value = isinstance(node, ast.Compare) and not all(
        isinstance(op, _NO_TENSOR) for op in node.ops
    )
    return May.CUT if is_value else May(0)


_QUOTIENTS = (ast.Div, ast.Pow)
_NO_TENSOR = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_FLAGS = frozenset(["requires_grad", "data"])
_BY_KEYWORD = {"out": May.WRITE, "inplace": May.WRITE, "requires_grad": May.CUT | May.LEAF}
_CONTAINERS = frozenset(
    ["list", "tuple", "dict", "set", "setattr", "deque", "OrderedDict", "defaultdict"]
)
_TOUCHES: dict[type[ast.AST], Callable[[Any], May]] = {
    ast.Assign: _touches_by_assignment,
    ast.Return: _touches_by_assignment,
    ast.AugAssign: _touches_by_update,
    ast.Subscript: _touches_by_item,
    ast.Attribute: _touches_by_attribute,
    ast.BinOp: _touches_by_operator,
    ast.Call: _touches_by_call,
    ast.List: _touches_by_items,
    ast.Tuple: _touches_by_items,
    ast.Set: _touches_by_items,
    ast.Dict: _touches_by_items,
    ast.ListComp: _touches_by_loop,
    ast.SetComp: _touches_by_loop,
    ast.GeneratorExp: _touches_by_loop,
    ast.DictComp: _touches_by_loop,
}


def last(node: ast.AST | None) -> str:
    """The name of a variable, or of an attribute of whatever it is; "" of anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


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
