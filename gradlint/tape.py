"""The tape: what a program did with tensors, as the interpreter or the recorder wrote it down and
the rules read it.

*Values* form a graph. Each knows the operation that made it, the values it was computed from,
where, whether autograd records it, and if not, why (its *cut*). *Events* stand in the order in
which they happened. A tape is one path through one entry; a traced run is one tape.
"""

from __future__ import annotations

import enum
import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar, cast

from gradlint.dataclass import dataclass
from gradlint.finding import Span


class Cut(enum.Enum):
    """Why a value computed from something with a gradient carries none."""

    DETACH = "detach"  # .detach(), .data: same storage, no graph
    # .item(), .tolist(), .numpy(), float(x), torch.tensor(x): copied out of the graph
    COPY = "copy"
    GRAD_MODE = "grad-mode"  # computed while grad mode was off
    NON_DIFFERENTIABLE = "non-differentiable"  # argmax, comparisons, integer casts
    FROZEN = "frozen"  # a leaf whose requires_grad was switched off
    CONSTANT = "constant"  # made from nothing: torch.tensor(0.0), zeros, a Python number
    CHECKPOINT = "checkpoint"  # reentrant checkpoint whose inputs need no gradient
    COLLECTIVE = "collective"  # dist.all_gather


class Kind(enum.Enum):
    """What sort of value this is."""

    OPERATION = "operation"
    PARAMETER = "parameter"  # a parameter (or, for an unknown module, all of its parameters)
    # made to require grad by the program: requires_grad_(), torch.tensor(requires_grad=True)
    LEAF = "leaf"
    CONSTANT = "constant"
    DATA = "data"  # from outside, known to carry no gradient: a batch, a buffer
    UNKNOWN = "unknown"  # from outside, assumed to carry gradient


class DType(enum.Enum):
    """As much of a dtype as decides whether there is a gradient."""

    FLOAT = "float"
    DOUBLE = "double"
    HALF = "half"
    BFLOAT = "bfloat"
    INTEGER = "integer"
    BOOL = "bool"
    UNKNOWN = "unknown"

    @property
    def is_differentiable(self) -> bool:
        return self not in (DType.INTEGER, DType.BOOL)


# on a copy that can be its input, or show its memory, as what is not known decides
MAY_SHARE = "may-share"
CAST = "cast"  # on what holds the same numbers in a dtype that has no gradient
# on the leaf of something unknown: a library's function, which is no module
OF_A_FUNCTION = "of-a-function"
FRAMEWORK = "framework"  # the device of an autocast region that a framework chooses
HANDED = "handed"  # what a part is given, and is no result of it: a metric, the output of a model
# from a distribution whose samples are functions of its parameters: it is never exactly zero
DRAWN = "drawn"
# on what each access to an attribute computes: a write into it is lost
COMPUTED_ANEW = "computed-anew"
UNSEEN = "unseen"  # it was an operation behind this that saved it
WRITTEN = "written"  # how a hook uses the gradient that it is given
EVERY = "*"  # all items of a list, in the place of what an optimizer refuses
# on the leaf of something unknown: it is handed no tensor, and can give data
GIVEN_NOTHING = "given-nothing"
# facts of what torch ends the program for
REFUSED = (
    "flag-refused",
    "unmet-input",
    "autograd-in-transform",
    "not-parameters",
    "exhausted",
)
# on what something unknown gives that is called with different literals: it can be of a part
TOLD_APART = "told-apart"


@dataclass(eq=False, slots=True)
class Write:
    """One modification of a storage in place."""

    op: str
    at: Span
    stack: tuple[Span, ...]
    version: int  # the storage's version after it
    counted: bool  # False through .data or a NumPy alias: autograd does not see it
    order: int  # number of events on the tape when it happened
    by: tuple[Value, ...] = ()  # what it was computed with: the mask of `weight.data *= mask`
    # known to be computed from what was there: `clamp_(0, 1)`, and not `fill_(1)`
    maps: bool = False


@dataclass(eq=False, slots=True)
class Storage:
    """Memory that tensors share. `version` counts the writes that autograd sees; `writes` has all
    of them.
    """

    writes: list[Write] = field(default_factory=list)
    version: int = 0


@dataclass(eq=False, slots=True)
class Module:
    """A module, known or not: a name to show, and what it is part of.

    `unseen`: it was made out of view; `is_container`: it is a plain `nn.Sequential`, `ModuleList`
    or `ModuleDict`.
    """

    name: str
    parent: Module | None = None
    unseen: bool = False
    is_container: bool = False

    @property
    def path(self) -> str:
        """`model.encoder.0`: the names from the outermost module to this one."""
        return self.name if self.parent is None else f"{self.parent.path}.{self.name}"

    def is_within(self, other: Module) -> bool:
        module: Module | None = self
        while module is not None:
            if module is other:
                return True
            module = module.parent
        return False


@dataclass(eq=False, slots=True)
class Parameter:
    """The identity of a parameter through all the values it has. For a library layer, one stands
    for all of its own.
    """

    name: str
    module: Module | None
    at: Span
    copy_of: Parameter | None = None  # what it was deep-copied from
    stack: tuple[Span, ...] = ()  # the calls that led to where it is made
    number: int = 0  # how many the same line, called in the same way, made before

    @property
    def identity(self) -> tuple[Span, tuple[Span, ...], int, str]:
        """What tells it from others on every path: one function can make several networks."""
        return self.at, self.stack, self.number, self.path

    @property
    def path(self) -> str:
        return (
            self.name
            if self.module is None
            else f"{self.module.path}.{self.name}"
            if self.name
            else self.module.path
        )


@dataclass(frozen=True, slots=True)
class Saved:
    """A tensor that an operation keeps for its backward: which, in which storage, at which
    version.
    """

    value: Value
    storage: Storage
    version: int
    order: int  # number of writes (counted or not) that the storage had seen
    role: str  # "input", "other", "result"


@dataclass(eq=False, slots=True)
class Value:
    """One node of the graph: a tensor at one moment, or a Python number or array that came from
    one.

    `requires_grad` is what torch would say; `cut` says why it is False although an input had it
    True (or why the value is a constant). `assumed` marks a gradient that is believed, not known
    (an unknown call, a parameter of the function that no caller is seen to pass).
    """

    op: str
    kind: Kind
    inputs: tuple[Value, ...]
    at: Span
    stack: tuple[Span, ...] = ()
    requires_grad: bool = False
    assumed: bool = False
    cut: Cut | None = None
    cut_at: Span | None = None  # what turned grad mode off, or froze the leaf
    cut_stack: tuple[Span, ...] = ()
    dtype: DType = DType.UNKNOWN
    in_torch: bool = True  # False: a Python number, list or NumPy array
    parameter: Parameter | None = None
    storage: Storage | None = None
    saves: tuple[Saved, ...] = ()
    zero_gradient: bool = False  # its derivative is zero wherever it exists
    missing_derivative: bool = False  # autograd records it, and its backward raises
    # "reentrant" or "non-reentrant": computed inside activation checkpointing
    checkpointed: str = ""
    autocast: str | None = None  # device type of the autocast region it was computed in
    inference: bool = False  # an inference tensor
    inference_at: Span | None = None  # the `inference_mode` that it was made under
    number: object | None = None  # what a constant is, where known
    # of a division or product: the other number, or what identifies it
    factor: object | None = None
    # what it was given, by position (the tensor counts) or name
    arguments: tuple[tuple[int | str, object], ...] = ()
    # of what a layer of an nn.Sequential gave: where that layer is made
    layer_at: Span | None = None
    layer: str = ""  # and its path, where a run shows it
    text: str = ""  # the source of the expression, shortened
    name: str = ""  # the variable or attribute it was first bound to
    # of a constant: the local names with gradient where it was made
    around: tuple[tuple[str, Value], ...] = ()
    flags: frozenset[str] = frozenset()  # facts for single rules ("softmax", "sum-reduction", ...)
    order: int = 0  # number of events on the tape when it was made
    iteration: tuple[tuple[int, int], ...] = ()  # (loop, round) pairs around it, outermost first

    def argument(self, *keys: int | str) -> object:
        """What was given at the position or by the name that comes first among `keys`: a constant,
        a tensor, or what identifies something unknown; None where nothing (or None) was given.
        """
        return next((given for key in keys for name, given in self.arguments if name == key), None)

    @property
    def is_leaf(self) -> bool:
        return self.kind is not Kind.OPERATION

    @property
    def records(self) -> bool:
        """Whether autograd recorded an operation here (torch: `grad_fn is not None`)."""
        return self.requires_grad and self.kind in (Kind.OPERATION, Kind.UNKNOWN)

    @property
    def title(self) -> str:
        """How a message names this value."""
        return self.name or self.text or self.op


@dataclass(eq=False, slots=True)
class Optimizer:
    """An optimizer and the parameters it holds. `complete` is False where some of them are
    unknown.
    """

    name: str
    cls: str
    at: Span
    parameters: list[Value] = field(default_factory=list)
    complete: bool = True
    escapes: bool = False  # it is handed to code that is not in view
    stepped_elsewhere: bool = False  # by methods of its owner that were not run
    stack: tuple[Span, ...] = ()  # the calls that led to where it is made
    # number of events on the tape when it was made; None where that was not seen
    order: int | None = None
    # how many the same line, called in the same way, made before: `[SGD(…) for layer in layers]`
    number: int = 0
    unscales: bool = False  # by itself, where a scaler steps it: `fused=True`
    # until which event it held what instead
    earlier: list[tuple[int, list[Value]]] = field(default_factory=list)

    @property
    def identity(self) -> tuple[Span, tuple[Span, ...], str, int]:
        """What tells it from others on every path: one function can make several, and so can one
        line of a loop.
        """
        return self.at, self.stack, self.name, self.number

    def held_at(self, order: int) -> list[Value]:
        """What it holds when the event of this number happens: groups can be added later."""
        return next((held for until, held in self.earlier if order < until), self.parameters)

    def holds(self, parameter: Parameter) -> bool:
        for value in self.parameters:
            held = value.parameter
            if held is parameter:
                return True
            if (
                held is not None
                and not held.name
                and held.module
                and parameter.module
                and parameter.module.is_within(held.module)
            ):
                return True
        return False


@dataclass(eq=False, slots=True)
class Scaler:
    """A GradScaler. `enabled` is None where the source does not say."""

    name: str
    at: Span
    enabled: bool | None = True


@dataclass(eq=False, slots=True)
class Scheduler:
    """A learning-rate scheduler and the optimizer that it steers, where known."""

    name: str
    at: Span
    optimizer: Optimizer | None
    cls: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A branch that this path took: the condition as the user wrote it, and whether it held."""

    text: str
    holds: bool
    at: Span
    # the innermost loop around it whose rounds can each answer it otherwise
    loop: int | None = None
    round: int = 0
    about: tuple[Value, ...] = ()  # the tensors that were asked: `mask` of `mask.sum().item() == 0`
    whole: Span | None = None  # the statement that it is the condition of
    by_chance: bool = False  # what is asked was drawn: `random.random() < 0.5`
    # the tensors that are not zero, by the answer: `x` where `x > 0` holds
    not_zero: tuple[Value, ...] = ()
    once: bool = False  # for all samples of a dataset: in no loop, before one was taken
    # an option of the command line, or a flag that callers out of view hand in
    is_setting: bool = False
    # a number is a multiple of another, by the answer: `len(loader) % n == 0` holds
    even: bool = False
    # what the object of a part is made with answers it, in all of its calls alike
    made_with: bool = False
    by_default: bool = False  # that is the answer of the default of what it is made with
    is_bounded: bool = False  # a tensor is held against a bound that no tensor gave: `norm > limit`

    def __str__(self) -> str:
        return f"`{self.text}` is {'true' if self.holds else 'false'}"


@dataclass(eq=False, slots=True, kw_only=True)
class Event:
    """Something that happened, where, and in which rounds of which loops."""

    at: Span
    stack: tuple[Span, ...] = ()
    iteration: tuple[tuple[int, int], ...] = ()
    order: int = 0  # its position on the tape
    # the source of the expression, shortened; of what is assumed, the name of the part
    text: str = ""
    assumed: bool = False  # nobody in view does it: the driver of a contract did

    def is_within(self, other: Event) -> bool:
        """Whether it happens in the call and the round of another event, or in what is called
        there.
        """
        calls, rounds = len(other.stack), len(other.iteration)
        return self.stack[:calls] == other.stack and self.iteration[:rounds] == other.iteration


@dataclass(eq=False, slots=True, kw_only=True)
class Backward(Event):
    """A loss sink. `value` is what the gradient is asked of."""

    value: Value
    # what the program calls it, where a call of a library's is handed it: `fabric.backward(loss)`
    loss: str = ""
    sink: str = "backward"  # "backward", "autograd.grad", "training_step", "compute_loss", ...
    scaler: Scaler | None = None
    autocast: str | None = None
    retain_graph: bool = False
    create_graph: bool = False
    inputs: tuple[Value, ...] | None = None  # autograd.grad(loss, inputs)
    guarded: bool = False  # by `if loss.requires_grad:` or an equal condition
    caught: bool = False  # in a `try` that swallows what torch raises
    by_framework: bool = False  # the framework clears, scales, steps
    # of the loss; nearly every rule asks for them, or for the graph
    _ancestors: tuple[Value, ...] = ()
    _graph: tuple[Value, ...] = ()
    _leaves: tuple[Value, ...] | None = None

    @property
    def ancestors(self) -> tuple[Value, ...]:
        """The loss and everything it was computed from."""
        self._ancestors = self._ancestors or tuple(ancestors(self.value))
        return self._ancestors

    @property
    def graph(self) -> tuple[Value, ...]:
        """What requires grad of it, as far as leaves: what a backward runs through that is asked
        for no inputs.
        """
        self._graph = self._graph or tuple(graph(self.value))
        return self._graph

    @property
    def leaves(self) -> tuple[Value, ...]:
        """Where that ends: parameters, leaves, and values assumed to carry gradient."""
        if self._leaves is None:
            self._leaves = tuple(value for value in self.graph if value.is_leaf)
        return self._leaves


@dataclass(eq=False, slots=True, kw_only=True)
class ZeroGrad(Event):
    """Gradients cleared: of an optimizer, or of parameters."""

    optimizer: Optimizer | None
    parameters: tuple[Value, ...] = ()
    complete: bool = True  # False: some of the parameters are unknown
    to_none: bool = True  # False: to zeros, which an optimizer still steps on


# they read nothing of a gradient
GLANCES = frozenset(["zero_", "detach_", "requires_grad_", "grad_fn"])


@dataclass(eq=False, slots=True, kw_only=True)
class Clip(Event):
    """Gradients clipped (or, with `reads_only`, read) for these parameters."""

    parameters: tuple[Value, ...] = ()
    reads_only: bool = False
    exhausted: bool = False
    # a run has shown that code of a library reads them, and not the program's
    by_library: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class OptimizerMade(Event):
    """An optimizer was made; not one that an object had before its method was entered."""

    optimizer: Optimizer


@dataclass(eq=False, slots=True, kw_only=True)
class OptimizerStep(Event):
    """`optimizer.step()`, or `scaler.step(optimizer)` where `scaler` is given."""

    optimizer: Optimizer
    scaler: Scaler | None = None
    closure: bool = False
    starved: bool = False  # a run has shown that nothing of what the optimizer holds has a gradient


@dataclass(eq=False, slots=True, kw_only=True)
class Unscale(Event):
    """`scaler.unscale_(optimizer)`."""

    scaler: Scaler
    optimizer: Optimizer | None


@dataclass(eq=False, slots=True, kw_only=True)
class ScalerUpdate(Event):
    """`scaler.update()`."""

    scaler: Scaler


@dataclass(eq=False, slots=True, kw_only=True)
class SchedulerStep(Event):
    """`scheduler.step()`."""

    scheduler: Scheduler


@dataclass(eq=False, slots=True, kw_only=True)
class GradMode(Event):
    """Grad mode entered or left. `by_call`: a bare call that nothing restores by itself."""

    enabled: bool
    by_call: bool = False
    inference: bool = False
    entered: bool = True


@dataclass(eq=False, slots=True, kw_only=True)
class Autocast(Event):
    """An autocast region entered or left; `device` and `enabled` are None where unknown."""

    device: str | None
    enabled: bool | None
    entered: bool


@dataclass(eq=False, slots=True, kw_only=True)
class TrainMode(Event):
    """`module.train(training)`, None where unknown; `matters`: something in the module differs
    between the modes.
    """

    module: Module | None
    training: bool | None
    matters: bool = True


@dataclass(eq=False, slots=True, kw_only=True)
class ModuleCall(Event):
    """A module was called; `result` is what it gave."""

    module: Module
    result: Value | None
    trainable: bool = True
    # the calls of modules' methods that led here, outermost first
    within: tuple[tuple[Span, Module], ...] = ()


@dataclass(eq=False, slots=True, kw_only=True)
class InPlace(Event):
    """A tensor was written in place: `before` became `after`."""

    before: Value
    after: Value
    write: Write
    raises: str = ""  # "leaf": torch refuses at once; "inference"; "out"


@dataclass(eq=False, slots=True, kw_only=True)
class Kept(Event):
    """A value with gradient was put where it outlives the iteration."""

    value: Value
    # "append", "window" (what a bounded deque has not yet forgotten), "sum", "total"
    # (`sum(steps)`), "state"
    how: str


@dataclass(eq=False, slots=True, kw_only=True)
class Iteration(Event):
    """A round of a loop begins (`begins`) or ends."""

    loop: int
    round: int
    begins: bool
    # "data", "for", "while", "window" (the next few items of a stream); "" where unknown
    over: str = ""
    last: bool = False
    is_sized: bool = False  # it runs over a list or a tuple
    # the loop searches: `while`, or a `break` or `return` in it, can end it before its time
    ends_early: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class Fact(Event):
    """A fact that one rule asks for: `what` names it, the rest says more. One table of names:
    docs/tape.md.
    """

    what: str
    value: Value | None = None
    # where `value` is a parameter that gets values: what they come from; or one beside it
    source: Value | None = None
    module: Module | None = None
    related: tuple[tuple[Span, str], ...] = ()
    detail: str = ""
    # of a branch: the statement that it decides; None where it decides what follows, too
    scope: Span | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class End(Event):
    """The program (or the entry) ended; `raised` names an exception that ended it."""

    raised: str = ""


_Kind = TypeVar("_Kind", bound=Event)
_OF_OPTIMIZERS = (OptimizerStep, ZeroGrad)


class May(enum.Flag):
    """What code that was not run may do: the side of a branch that no path took."""

    STEP = enum.auto()  # an optimizer steps
    CLEAR = enum.auto()  # gradients are cleared, or set
    BACKWARD = enum.auto()
    CLIP = enum.auto()  # gradients are clipped, or unscaled
    HOLD = enum.auto()  # an optimizer is made, or given parameters
    BIND = enum.auto()  # a name, an attribute or an item gets another value: a loss one more term
    READ = enum.auto()  # gradients are read: to update parameters by hand, or to measure them
    SCALE = enum.auto()  # a scaler is updated
    SYNC = enum.auto()  # gradient synchronisation between ranks is switched off or on
    LEAVE = enum.auto()  # what follows is not come to: `return`, `continue`, `raise`
    WRITE = enum.auto()  # a tensor is written in place
    # a tensor is detached, copied or frozen, or computed where nothing is recorded
    CUT = enum.auto()
    SPOIL = enum.auto()  # a gradient is not finite: of a quotient, a root, the mean of nothing
    KEEP = enum.auto()  # layers or parameters are put where a module does not register them
    LEAF = enum.auto()  # a parameter is made, frozen or replaced, or something is computed of it
    TRAINING = STEP | CLEAR | BACKWARD | CLIP | HOLD | BIND | READ | SCALE | SYNC | LEAVE
    ANYTHING = TRAINING | WRITE | CUT | SPOIL | KEEP | LEAF


def _nothing(_: May, __: int) -> bool:
    return False


@dataclass(eq=False, slots=True)
class Tape:
    """One path through one entry, or one traced run."""

    entry: str
    traced: bool = False
    events: list[Event] = field(default_factory=list)
    decisions: tuple[Decision, ...] = ()
    complete: bool = True  # False: the analysis gave up on this path; see the gaps
    # whether code that no path has run may do something, since an event
    unrun: Callable[[May, int], bool] = _nothing
    # those met, with how many events were before it last
    branches: dict[object, int] = field(default_factory=dict)
    # what rules have worked out about it, once it is whole
    answers: dict[object, Any] = field(default_factory=dict)
    _kinds: defaultdict[type[Event] | str, list[Event]] = field(
        default_factory=functools.partial(defaultdict, list)
    )
    _merged: dict[tuple[type[Event] | str, ...], Sequence[Event]] = field(default_factory=dict)
    _optimizers: dict[int, Optimizer] = field(default_factory=dict)
    _searched: int = 0  # how many of the events these are of

    def write(self, event: Event) -> None:
        event.order = len(self.events)
        self.events.append(event)

    def of(self, kind: type[_Kind]) -> Sequence[_Kind]:
        """The events of one kind, in order."""
        return cast("Sequence[_Kind]", self._by_kind().get(kind, ()))

    def facts(self, name: str, *others: str) -> Sequence[Fact]:
        """The facts of these names, in order."""
        found = self.among(name, *others) if others else self._by_kind().get(name, ())
        return cast("Sequence[Fact]", found)

    def among(self, *kinds: type[Event] | str) -> Sequence[Event]:
        """The events of these kinds, and the facts of these names, in order."""
        known = self._by_kind()
        if kinds not in self._merged:
            found = [events for kind in kinds if (events := known.get(kind))]
            self._merged[kinds] = sorted(itertools.chain.from_iterable(found), key=_order)
        return self._merged[kinds]

    def backwards(self) -> Iterator[Backward]:
        return iter(self.of(Backward))

    def optimizers(self) -> list[Optimizer]:
        """Every optimizer that stepped or cleared, in order of first use."""
        self._by_kind()
        return list(self._optimizers.values())

    def _by_kind(self) -> Mapping[type[Event] | str, Sequence[Event]]:
        """What there is of each kind: nearly every rule asks for some, and most events are of no
        rule.
        """
        if self._searched < len(self.events):
            self._search()
        return self._kinds

    def _search(self) -> None:
        for event in itertools.islice(self.events, self._searched, None):
            self._kinds[type(event)].append(event)
            if isinstance(event, Fact):
                self._kinds[event.what].append(event)
            elif isinstance(event, _OF_OPTIMIZERS) and event.optimizer:
                self._optimizers.setdefault(id(event.optimizer), event.optimizer)
        self._searched = len(self.events)
        self._merged.clear()


_order = operator.attrgetter("order")


def ancestors(*values: Value) -> Iterator[Value]:
    """Values and everything they were computed from, recorded or not; nearest first, each once."""
    pending = (
        list({id(value): value for value in values}.values()) if len(values) > 1 else list(values)
    )
    seen = set(map(id, pending))
    for current in pending:
        yield current
        for source in current.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def as_far_as_leaves(value: Value) -> Iterator[Value]:
    """The ancestors of a value, but for what its leaves were made of:
    `gathered.detach().requires_grad_()`.
    """
    seen, pending = {id(value)}, [value]
    for current in pending:
        yield current
        for source in () if current.kind is Kind.LEAF and current.requires_grad else current.inputs:
            if id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def graph(value: Value) -> Iterator[Value]:
    """The part of the ancestors that a backward from `value` visits: what requires grad, as far as
    leaves.
    """
    seen, pending = {id(value)}, [value] if value.requires_grad else []
    for current in pending:
        yield current
        for source in () if current.kind is Kind.LEAF else current.inputs:
            if source.requires_grad and id(source) not in seen:
                seen.add(id(source))
                pending.append(source)


def leaves(value: Value) -> Iterator[Value]:
    """What a backward from `value` reaches: parameters, leaves, and values assumed to carry
    gradient.
    """
    return (found for found in graph(value) if found.is_leaf)


def sure(values: Sequence[Value], optimizers: Sequence[Optimizer]) -> list[Value]:
    """Those of the values of a graph whose gradient is more than assumed of something unknown.

    A parameter or leaf is below them; what an unknown callable computes with is one where an
    optimizer holds it, or may hold it (that of a library's function, or of what is handed no
    tensor, as a buffer that is sampled, where there is nothing else). Where a graph has none of
    these, something unknown must carry its gradient, and sure is what hangs on it whichever it is.
    """
    trained = [value for value in values if value.kind in (Kind.PARAMETER, Kind.LEAF)]
    firm = _known_to_train(trained, optimizers)
    if not firm and not (optimizers and all(optimizer.complete for optimizer in optimizers)):
        firm = [
            value for value in trained if not value.flags & {OF_A_FUNCTION, GIVEN_NOTHING}
        ] or trained
    if firm:
        return above(values, {id(value) for value in firm})
    found = list(values)
    for unknown in [value for value in values if value.kind is Kind.UNKNOWN] + trained:
        found = above(found, {id(unknown)})
    return found


def _known_to_train(values: list[Value], optimizers: Sequence[Optimizer]) -> list[Value]:
    if not any(value.assumed for value in values):
        return values
    held = {
        id(p)
        for p in (value.parameter for value in values)
        if p and any(each.holds(p) for each in optimizers)
    }
    return [value for value in values if not value.assumed or id(value.parameter) in held]


def above(values: Sequence[Value], wanted: Iterable[int]) -> list[Value]:
    """Those of `values` that were computed from one of the wanted, which are given by id."""
    users = users_among(values)
    found: set[int] = set()
    pending = list(wanted)
    while pending:
        for user in users.get(pending.pop(), []):
            if id(user) not in found:
                found.add(id(user))
                pending.append(id(user))
    return [value for value in values if id(value) in found]


def users_among(values: Iterable[Value]) -> dict[int, list[Value]]:
    """Which of `values` were computed from what, given by id, directly."""
    users: dict[int, list[Value]] = {}
    for value in values:
        for source in value.inputs:
            users.setdefault(id(source), []).append(value)
    return users


def cuts(value: Value) -> list[Value]:
    """The first cut after the parameters on every route into `value` that carries no gradient, in
    source order.

    A cut is a value without gradient, some input of which has one: below it the route is whole. A
    frozen leaf is a cut by itself. Constants are not cuts: see `constants`.
    """
    found = []
    for current in ancestors(value):
        if current.requires_grad:
            continue
        if current.cut is Cut.FROZEN or (
            current.cut not in (None, Cut.CONSTANT) and any(i.requires_grad for i in current.inputs)
        ):
            found.append(current)
    return sorted(found, key=lambda cut: (cut.at, cut.op))


def constants(value: Value) -> list[Value]:
    """The fresh constants among the ancestors of `value`, in source order."""
    found = [current for current in ancestors(value) if current.kind is Kind.CONSTANT]
    return sorted(found, key=lambda constant: (constant.at, constant.op))
