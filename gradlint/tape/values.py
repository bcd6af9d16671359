"""Values: the nodes of the graph, and the storages, modules and optimizers that hold them."""

from __future__ import annotations

import enum
from dataclasses import field

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
# on what a list was copied into: it is on the CPU, wherever its numbers were
OF_A_LIST = "of-a-list"
CAST = "cast"  # on what holds the same numbers in a dtype that has no gradient
# on the leaf of something unknown: a library's function, which is no module
OF_A_FUNCTION = "of-a-function"
FRAMEWORK = "framework"  # the device of an autocast region that a framework chooses
# what a part is given and a model has computed before: nothing of the part is behind it
PREDICTED = "predicted"
# what a part is given beside its first tensor: an adjacency, a mask, and queries and keys as well
BESIDE = "beside"
# on something unknown that is used as only a tensor can be, or is said to be one
TENSOR = "tensor"
HANDED = "handed"  # what a part is given, and is no result of it: a metric, the output of a model
# from a distribution whose samples are functions of its parameters: it is never exactly zero
DRAWN = "drawn"
# on what each access to an attribute computes: a write into it is lost
COMPUTED_ANEW = "computed-anew"
UNSEEN = "unseen"  # it was an operation behind this that saved it
WRITTEN = "written"  # how a hook uses the gradient that it is given
# on what a function gives whose `backward` only raises: it is there for inference
REFUSES = "refuses"
# on what an autograd function gives back as it was given to it
AS_GIVEN = "as-given"
EVERY = "*"  # all items of a list, in the place of what an optimizer refuses
# on the leaf of something unknown: it is handed no tensor, and can give data
GIVEN_NOTHING = "given-nothing"
# on the leaf of something unknown that was called, and is not seen to be a module otherwise
MERELY_CALLED = "merely-called"
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
# on rows of a table that is not trained: no gradient goes to the integers that chose them
LOOKUP = "lookup"


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
    # the indices that lead from the whole memory to what is written; none: all of it
    extent: tuple[object, ...] = ()


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

    `unseen`: it was made out of view, and its name is all of its path; `is_container`: it is a
    plain `nn.Sequential`, `ModuleList` or `ModuleDict`; `made_of`: what the code out of view that
    made it was given. It can be one of these, or hold them: `wrap(model)`.
    """

    name: str
    parent: Module | None = None
    unseen: bool = False
    is_container: bool = False
    made_of: tuple[Module, ...] = ()

    @property
    def path(self) -> str:
        """`model.encoder.0`: the names from the outermost module to this one."""
        if self.parent is None or self.unseen:
            return self.name
        return f"{self.parent.path}.{self.name}"

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
    # for whose gradients alone it is kept; none: for any
    needed_by: tuple[Value, ...] = ()


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
    number: object | None = None  # what a constant is, or a parameter begins with, where known
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
    def is_made_leaf(self) -> bool:
        """Whether a graph ends here, whatever the numbers were computed from."""
        return self.kind in (Kind.LEAF, Kind.PARAMETER)

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
