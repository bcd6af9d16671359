"""What a name can be bound to while a program is interpreted: some ten kinds of abstract value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.interpret.symbols import Symbol, Test
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.scopes import Frame


class Abstract:
    """An abstract value."""

    __slots__ = ()


MOST_ITEMS = 1_000  # of a sequence that are known; what is behind them is left open
MOST_BITS = 4_096  # of an integer that is computed with
MOST_CHARACTERS = 1 << 16  # of a string that is computed


def is_small(*values: object) -> bool:
    """Whether constants of these sizes, put together or multiplied, are still worth having."""
    numbers = letters = 0
    for value in values:
        if isinstance(value, int):
            numbers += value.bit_length()
        elif isinstance(value, str | bytes):
            letters += len(value)
    return numbers <= MOST_BITS and letters <= MOST_CHARACTERS


@dataclass(eq=False, slots=True)
class Const(Abstract):
    """A Python constant. `at` is where it is written; `written` stands there, where it is taken for
    a smaller one.
    """

    value: Any
    at: Span | None = None
    written: int | None = None

    def __repr__(self) -> str:
        return f"Const({self.value!r})"


NONE, TRUE, FALSE = Const(None), Const(True), Const(False)


@dataclass(eq=False, slots=True)
class Unknown(Abstract):
    """Something unknown. `data`: known to carry no gradient. `origin`: the value that it was copied
    from.
    """

    symbol: Symbol
    data: bool = False
    origin: tape.Value | None = None
    type: str = ""  # "number", "bool", "str", "array", "tensor", "module"; "" where unknown
    test: Test | None = None


@dataclass(eq=False, slots=True)
class Tensor(Abstract):
    """A tensor object: its node on the tape changes when it is written in place."""

    node: tape.Value
    base: Tensor | None = None  # of a view: the tensor whose memory it shows
    grad: Abstract | None = None
    attrs: dict[str, Abstract] = field(default_factory=dict)
    detached: bool = False  # shares memory with a graph that it is not part of
    uncounted: bool = False  # made by .data: autograd does not see writes through it
    # made by .data or detach(): an inference tensor is written through it (torch 2.13)
    own_versions: bool = False
    memory_before: tuple[tape.Storage, ...] = ()  # `x.data = new`: what it had until then


@dataclass(eq=False, slots=True)
class Sequence(Abstract):
    """A list, tuple, set, deque or generator with known items; `open` where there can be more of
    `rest`.

    No more than `MOST_ITEMS` are known: a list that is added to itself again and again would fill
    the memory.
    """

    kind: str
    items: list[Abstract]
    open: bool = False
    rest: Abstract | None = None
    consumed: Span | None = None  # of a generator: where it was used up
    at: Span | None = None
    most: int | None = None  # of a bounded deque
    window: bool = False  # the next few items of a stream, which others follow
    left_out: int = 0  # how many more there are of a list that stands for a longer one

    def __post_init__(self) -> None:
        if self.kind == "set" and len(self.items) > 1:
            self.items = list({member(item): item for item in reversed(self.items)}.values())[::-1]
        if len(self.items) > MOST_ITEMS:
            self.items, self.open = self.items[:MOST_ITEMS], True

    def extend(self, items: Iterable[Abstract]) -> None:
        """Adds items, as far as they are kept."""
        room = MOST_ITEMS - len(self.items)
        more = list(items)
        self.items.extend(more[:room])
        self.open = self.open or len(more) > room


def member(value: Abstract) -> object:
    """What a set knows an item by."""
    is_known = isinstance(value, Const) and not isinstance(value.value, slice)
    if not is_known:
        return ("object", id(value))
    return ("constant", value.value)  # type: ignore[attr-defined]


@dataclass(eq=False, slots=True)
class Mapping(Abstract):
    """A dict with constant keys; `open` where there can be others."""

    items: dict[Any, Abstract]
    open: bool = False
    factory: Abstract | None = None  # of a defaultdict
    at: Span | None = None
    symbol: Symbol | None = None
    of: Instance | None = None  # whose `__dict__` it is
    rest: Abstract | None = None  # what stands for the values that are not known

    def put(self, more: Mapping) -> None:
        """Puts the entries of another one in; a module whose `__dict__` this is does not register
        them.
        """
        self.items.update(more.items)
        if self.of is not None:
            others: frozenset[object] = self.of.state.get("unregistered", frozenset())
            self.of.state["unregistered"] = others.union(more.items)


def range_length(start: int, stop: int, step: int) -> int:
    """How many numbers a range has; Python's own `len` refuses very long ones."""
    return max(0, (stop - start + step - (1 if step > 0 else -1)) // step)


@dataclass(eq=False, slots=True)
class Range(Abstract):
    """`range(start, stop, step)`, any of them unknown."""

    start: Abstract
    stop: Abstract
    step: Abstract


@dataclass(eq=False, slots=True)
class Function(Abstract):
    """A function of the program."""

    node: ir.Function
    scope: Frame
    defaults: dict[str, Abstract]
    owner: Class | None = None
    attrs: dict[str, Abstract] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.node.name

    def __repr__(self) -> str:
        return f"Function({self.name}, {self.node.at})"


@dataclass(eq=False, slots=True)
class Builtin(Abstract):
    """A function of the library's model made on the fly: a wrapper, a partial, a method of an
    abstract value.
    """

    name: str
    run: Callable[[Any, Any], Abstract]
    wraps: Abstract | None = None
    receiver: Abstract | None = None  # of a method


@dataclass(eq=False, slots=True)
class Bound(Abstract):
    """A method and the object that it was taken from."""

    function: Abstract
    receiver: Abstract


def _class_key(entry: Class | Lib | Unknown) -> object:
    return entry.name if isinstance(entry, Lib) else id(entry)


def _derived_first(order: list[Class | Lib | Unknown]) -> list[Class | Lib | Unknown]:
    """A lineage with each class of a library behind those of its libraries that are derived from
    it.
    """
    from gradlint.interpret.lineage import is_a

    libraries = [entry for entry in order if isinstance(entry, Lib)]
    for base in libraries:
        derived = [
            order.index(entry)
            for entry in libraries
            if entry is not base and is_a(entry.name, base.name)
        ]
        if derived and max(derived) > order.index(base):
            order.remove(base)
            order.insert(max(derived), base)
    return order


@dataclass(eq=False, slots=True)
class Class(Abstract):
    """A class of the program."""

    name: str
    bases: list[Abstract]
    namespace: dict[str, Abstract]
    node: ir.Class
    annotations: dict[str, tuple[Abstract | None, ir.Node]] = field(default_factory=dict)
    dataclass: bool = False
    order: list[Class | Lib | Unknown] = field(default_factory=list)

    def lineage(self) -> list[Class | Lib | Unknown]:
        """The class, then its bases, depth first, each at its last place, and a library's class
        behind those that are derived from it: Python's order but for rare diamonds.
        """
        if not self.order:
            found: list[Class | Lib | Unknown] = [self]
            for base in self.bases:
                if isinstance(base, Class):
                    found.extend(base.lineage())
                elif isinstance(base, Lib | Unknown):
                    found.append(base)
            last = {_class_key(entry): position for position, entry in enumerate(found)}
            order = [
                entry for position, entry in enumerate(found) if last[_class_key(entry)] == position
            ]
            self.order = _derived_first(order)
        return self.order

    def libraries(self) -> Iterator[str]:
        """The names of the library classes that it inherits from."""
        return (entry.name for entry in self.lineage() if isinstance(entry, Lib))

    @property
    def has_unknown_base(self) -> bool:
        return any(isinstance(entry, Unknown) for entry in self.lineage())

    def __repr__(self) -> str:
        return f"Class({self.name}, {self.node.at})"


@dataclass(eq=False, slots=True)
class Instance(Abstract):
    """An object of a class of the program."""

    cls: Class
    attrs: dict[str, Abstract] = field(default_factory=dict)
    module: tape.Module | None = None  # where it is a torch module
    state: dict[str, Any] = field(default_factory=dict)  # what a library base class keeps
    symbol: Symbol | None = None
    at: Span | None = None

    def __repr__(self) -> str:
        return f"Instance({self.cls.name}, {self.at})"


@dataclass(eq=False, slots=True)
class Object(Abstract):
    """An object of a library class: `torch.nn.Linear(…)`, an optimizer, a context manager."""

    cls: str
    at: Span
    state: dict[str, Any] = field(default_factory=dict)
    attrs: dict[str, Abstract] = field(default_factory=dict)
    module: tape.Module | None = None

    def __repr__(self) -> str:
        return f"Object({self.cls}, {self.at})"


@dataclass(frozen=True, slots=True)
class Lib(Abstract):
    """A name of a library: `torch.nn.functional.relu`. A module, class, function or constant of
    it.
    """

    name: str


@dataclass(eq=False, slots=True)
class Package(Abstract):
    """A module of the program."""

    name: str
    scope: Frame

    def __repr__(self) -> str:
        return f"Package({self.name})"


@dataclass(eq=False, slots=True)
class Super(Abstract):
    """`super()`: attributes are looked up behind `owner` in the lineage of the receiver."""

    receiver: Abstract
    owner: Class


@dataclass(slots=True)
class Call:
    """One call of a library function or method, as its handler sees it."""

    name: str
    args: list[Abstract]
    kwargs: dict[str, Abstract]
    node: ir.Node
    frame: Frame
    open: bool = False  # there may be further arguments (*unknown, **unknown)
    partial: Call | None = None  # that of `functools.partial` which put it together
    rest: Abstract | None = None  # what hands further arguments on by name: `**rest`

    def get(self, position: int | None, name: str) -> Abstract | None:
        """The argument at `position` or called `name`; None where it was not given."""
        if position is not None and position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name)

    def constant(self, position: int | None, name: str, default: Any = None) -> Any:
        """The Python constant given for an argument; `default` where none was given or it is not
        known.
        """
        given = self.get(position, name)
        return given.value if isinstance(given, Const) else default

    @property
    def called(self) -> str:
        """The function's own name: `eval` of `model.eval()`, and of `quiet()` after
        `quiet = model.eval`.
        """
        return self.name.rpartition(".")[2]

    @property
    def values(self) -> list[Abstract]:
        return [*self.args, *self.kwargs.values()]


def function_of(called: Abstract | None) -> Function | None:
    """The function of the program behind a method, below `@staticmethod` and decorators such as
    `@once_differentiable`.
    """
    while called is not None and not isinstance(called, Function):
        match called:
            case Builtin(wraps=inner) | Bound(function=inner):
                called = inner
            case Object() if isinstance(inner := called.state.get("function"), Abstract):
                called = inner
            case _:
                return None
    return called
