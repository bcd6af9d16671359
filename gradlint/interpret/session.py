"""What the paths of one entry share: the program, symbols, loops, gaps, what they have come to."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import (
    paths,
)
from gradlint.interpret.gaps import Gap
from gradlint.interpret.lineage import canonical
from gradlint.interpret.machine import MAX_STEPS, Machine
from gradlint.interpret.parameters import Parameters
from gradlint.interpret.paths import Restart
from gradlint.interpret.registry import FUNCTIONS
from gradlint.interpret.rounds import Rounds
from gradlint.interpret.scopes import Frame
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Class, Function, Lib, Unknown
from gradlint.ir import nodes as ir
from gradlint.program import fields, hazards, ranks, summaries
from gradlint.program.modules import Program

if TYPE_CHECKING:
    from gradlint.interpret.settling import Question

RESTARTS = 8  # of one entry
MOST_STEPS = 40_000  # of one entry, on all of its paths: some half a second
MOST_PASSED_OVER = 6  # calls in an entry that take too many steps, and others that raise
MOST_PASSING_OVER = 3 * MOST_STEPS  # of an entry, until it is begun again without such a call
# What code that is shown without its imports means: no other reading of these lets it run.
_CUSTOMARY = {
    "torch": "torch",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "np": "numpy",
    "tqdm": "tqdm.tqdm",
}
_TRAINS = tape.May.STEP | tape.May.CLEAR | tape.May.BACKWARD | tape.May.HOLD


class Session:
    """One entry: shared by its paths."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.gaps: set[Gap] = set()
        self.executed: set[Any] = set()
        # the calls of `backward` that were run, by file and line
        self.reached: set[tuple[str, int]] = set()
        self.modules: dict[Symbol, tape.Module] = {}
        self.stars: list[str] = []
        self.loops = Rounds(self)
        self.parameters = Parameters(self)
        self.restarts = 0
        self.steps = 0
        self.repeated = 0  # those of paths that were begun again, with what they have shown
        self.prepared = 0  # the steps of constructors among them, of the objects of entries
        self.first = 0  # the steps of the first path, constructor apart
        self.settled = 0  # of these, those of the paths that rules have asked for
        self.settling: set[paths.Plan] = set()  # by which these went
        # functions that the analysis has ended in, and by what kind of gap
        self.passed_over: dict[ir.Node, str] = {}
        # of each path that an exception has ended, what it has ended
        self.raised: list[list[Function]] = []
        self.elsewhere: fields.Elsewhere | None = None  # what methods do that it does not lead to
        self.misses: Callable[[], frozenset[str] | None] = lambda: None
        self.may_train = True  # for all that is said where the entry stands
        self.contract = ""  # of a part
        self.entered: ir.Code | None = None  # the file of a part
        self.driver: tuple[ir.Code, list[ir.Node]] | None = None  # of a part: what calls it
        self.most = MAX_STEPS  # on one path that comes to training
        self.has_trained = False  # a path has come to a part of a training step
        self.lost = 0  # paths that exceptions have ended, from the first on
        # answers have kept a path from it, which can be turned round
        self.looks_for_training = False
        self.has_learned = False  # a path has come to a backward or a step
        self.visited: dict[paths.Site, paths.Visited] = {}  # the branches that its paths have met
        # whether rules said nothing, since sides that were not run may do what they ask for
        self.leaves_open = False
        self.questions: list[Question] = []  # what rules could not be told
        # whether a path has come to the end of the `__init__` that makes the entry's object
        self.makes = False
        self.unmade: list[tape.Tape] = []  # those of paths on which that raises
        self.made: set[str] = set()  # the attributes that the object had then, on any path
        self._constants: dict[object, Symbol] = {}
        self._libraries: dict[str, Symbol] = {}
        # where an unknown key is one of a dict's
        self._sites: dict[tuple[ir.Node, object], ir.Node] = {}

    # symbols

    def constant_symbol(self, value: object) -> Symbol:
        kind = type(value)
        key = (kind, value if kind in (str, int, bool) else repr(value))
        known = self._constants.get(key)
        if known is None:
            known = self._constants[key] = Symbol(repr(value))
        return known

    def is_constant(self, symbol: Symbol) -> bool:
        """Whether it stands for a constant that is written in the program, or for a name of a
        library.
        """
        return symbol in self._constants.values()

    def site(self, node: ir.Node, word: object) -> ir.Node:
        """The branch at which it is asked whether the key of a look-up is some word."""
        return self._sites.setdefault((node, word), ir.Literal(node.at, word))

    def is_of_library(self, symbol: Symbol) -> bool:
        """Whether it stands for a function or class of a library."""
        return self._libraries.get(symbol.text) is symbol

    def library_symbol(self, name: str) -> Symbol:
        if name not in self._libraries:
            self._libraries[name] = Symbol(name)
        return self._libraries[name]

    # names

    def is_builtin(self, name: str) -> bool:
        return hasattr(builtins, name)

    def missing(self, frame: Frame, name: str) -> Abstract:
        """A name that nothing in sight binds."""
        for module in self.stars:
            if f"{module}.{name}" in FUNCTIONS:
                return Lib(f"{module}.{name}")
        if name in _CUSTOMARY and not self.stars:
            return Lib(_CUSTOMARY[name])
        return Unknown(self.library_symbol(f"{frame.code.path}:{name}").derive("name", name))

    def member_of(self, cls: Class, name: str) -> Abstract | None:
        """A member of the program's part of a class's lineage."""
        for entry in cls.lineage():
            if isinstance(entry, Class) and name in entry.namespace:
                return entry.namespace[name]
        return None

    def may_do(self, block: ast.AST, wanted: tape.May, tree: ast.Module) -> bool:
        """Whether a block of a file may have one of these effects on tensors."""
        return hazards.may(block, wanted, tree)

    def has_model(self, name: str) -> bool:
        return canonical(name) in FUNCTIONS

    # loops

    def passes_over(self, m: Machine, running: Iterable[Function]) -> None:
        """A path has ended for its steps, before any training: the outermost call that cannot train
        is not run again.

        `rows = transfers(names)`, three loops over names: what they come to is not known, and the
        path goes on.
        """
        if self.may_train and not self.contract and not m.has_trained():
            self._pass_over(reversed(list(running)), "steps")

    def gets_past(self) -> None:
        """Exceptions have ended paths, and none has trained: the innermost call that cannot train
        is not run again.

        `def get_model(self): raise NotImplementedError`: there are subclasses out of view.
        """
        if self.has_learned or not self.may_train or self.contract:
            return
        for running in self.raised:
            self._pass_over(running, "raises")

    def _pass_over(self, running: Iterable[Function], kind: str) -> None:
        if (
            sum(each == kind for each in self.passed_over.values()) == MOST_PASSED_OVER
            or self.steps > MOST_PASSING_OVER
        ):
            return
        for function in running:
            if not self._may_train(function.node, kind):
                self.passed_over[function.node] = kind
                raise Restart

    def rank(self, at: paths.Branching, side: bool | None = None) -> int:
        """How soon the sides of a branch, or one, are worth taking, by what they may do: 0 is
        first.
        """
        source = self.program.source(Path(at.file))
        return paths.LEAST if source is None else ranks.rank(source.tree, at.test.at, side)

    def may_lead_to(self, seen: paths.Visited, holds: bool, may: tape.May) -> bool:
        """Whether a side of a branch may have one of these effects, in what it calls, too."""
        return summaries.may_of_side(
            self.program, seen.at.file, seen.at.test.at, holds, may, in_try=seen.in_try
        )

    def _may_train(self, node: ir.Function, kind: str) -> bool:
        """Whether a function must be run; one that raises on all paths is not, unless a backward
        stands in it.
        """
        if kind == "raises":
            return self.is_written(node.source, node.code.path, tape.May.BACKWARD)
        return summaries.may(self.program, [node.source], _TRAINS)

    def is_written(self, node: ast.AST, file: str, wanted: tape.May) -> bool:
        """Whether an event with one of these effects stands in a statement, or in what it calls in
        its own file.
        """
        return summaries.is_written(self.program, node, file, wanted)

    def restart(self) -> None:
        """Runs the entry again, from its first path on, a few times at most."""
        self.restarts += 1
        if self.restarts <= RESTARTS:
            raise Restart
