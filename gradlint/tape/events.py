"""Events: what happened on a path, where, and in which rounds of which loops."""

from __future__ import annotations

from gradlint.dataclass import dataclass
from gradlint.finding import Span
from gradlint.tape.lineage import ancestors, graph
from gradlint.tape.values import Module, Optimizer, Scaler, Scheduler, Value, Write


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
    # that is the answer of the default of what it is made with, or of what an option's text says of
    # another: `name.startswith(args.frozen)`
    by_default: bool = False
    # what is asked is computed from what the program writes down alone, and once: it has one answer
    is_written: bool = False
    # or from numbers that a test draws, and once: what a run shows the next one shows again
    is_drawn_once: bool = False
    is_bounded: bool = False  # a tensor is held against a bound that no tensor gave: `norm > limit`
    is_refused: bool = False  # the other answer ends the program, or the function, by an exception

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
class Handed(Event):
    """Code out of view is given an optimizer, which it can step: `xm.optimizer_step(optimizer)`."""

    optimizer: Optimizer


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
    # "leaf": torch refuses at once; "views": one of several that were made together; "inference";
    # "out"
    raises: str = ""


@dataclass(eq=False, slots=True, kw_only=True)
class Kept(Event):
    """A value with gradient was put where it outlives the iteration."""

    value: Value
    # "append", "window" (what a bounded deque has not yet forgotten), "sum", "total"
    # (`sum(steps)`), "state", "buffer" (of a module, the batches of which it holds)
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
