"""Where the analysis enters a file: as a script, and at the functions from which a loss sink can be
reached.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from gradlint.contracts import contracts
from gradlint.coverage import Loss, Written
from gradlint.dataclass import dataclass
from gradlint.program.imports import in_package
from gradlint.source import effects
from gradlint.source.parse import Source
from gradlint.tape import May

# what makes a function worth entering, and those that call it
_ENTERED = May.BACKWARD | May.CLEAR | May.CLIP
_EVENTS = frozenset(name for name, may in effects.EVENTS.items() if may & _ENTERED)
# what is wrong with them shows in the function that makes them
MAKERS = frozenset(["autocast", "GradScaler"])
_NOT_CALLERS = frozenset(["forward"])  # who calls a `forward` that runs a backward is no trainer
SAMPLE = "__getitem__"  # of a dataset: what it returns is looked at
# methods whose result a framework back-propagates
HOOKS = frozenset(["training_step", "compute_loss"])
_LIBRARY_TRAINERS = effects.LEARNS | {"train"}  # what trainers of libraries are asked for
_NAMED = MAKERS | HOOKS
# contracts: others are of objects
_OF_METHODS = frozenset(["method", "function", "overwriting", "setup"])
_DEFINED = _NAMED | _EVENTS
_TRIGGER_NAMES = tuple(sorted([*_EVENTS, *_NAMED, "autograd"]))
_CALL_PATTERNS = tuple(f".{name}(" for name in sorted(_LIBRARY_TRAINERS))


@dataclass(frozen=True, slots=True)
class Entry:
    """One place to start from: the script itself (`function` is empty), or a function or method by
    its path.
    """

    function: tuple[str, ...]
    line: int
    # for all that its file says; else it infers, makes a sample, or enters a context
    trains: bool = True
    contract: str = ""  # of a part: what is assumed of the world around it

    @property
    def name(self) -> str:
        return ".".join(self.function) or "<script>"

    @property
    def part(self) -> str:
        """What the user calls a part: a function, the class whose objects are called, or a
        method.
        """
        if self.contract in _OF_METHODS or not self.function:
            return self.name
        return self.function[0] if len(self.function) == 2 else self.function[-1]


@dataclass(eq=False)
class _Definition:
    """A function: `called` are the names in it, looked for where its text holds what is asked
    for.
    """

    path: tuple[str, ...]
    node: ast.FunctionDef | ast.AsyncFunctionDef
    text: str
    stands_alone: bool = False  # worth entering, but no reason to enter its callers
    _called: frozenset[str] | None = None  # once it was asked for

    @property
    def line(self) -> int:
        return self.node.lineno

    @property
    def called(self) -> frozenset[str]:
        """The names that stand in the function."""
        if self._called is None:
            self._called = effects.mentions([self.node])
        return self._called

    def says(self, names: frozenset[str]) -> bool:
        return _holds(self.text, names) and not self.called.isdisjoint(names)

    def triggers(self) -> bool:
        """Whether an event of a training step stands in it."""
        has_words = _holds(self.text, (*_EVENTS, "autograd"))
        return has_words and any(found.at_hand & _ENTERED for found in effects.of([self.node]))

    @property
    def name(self) -> str:
        """What those call it who run it; an `__init__` by its class."""
        *around, own = self.path
        return around[-1] if around and own == "__init__" else own


def speaks_of_training(source: Source) -> bool:
    """Whether the code of a file names a part of a training step, or what has a library do it."""
    return _holds(source.text, (*_TRIGGER_NAMES, *_CALL_PATTERNS)) and any(
        map(_speaks, effects.of([source.tree]))
    )


def _holds(text: str, words: Iterable[str]) -> bool:
    """Whether one of some words stands anywhere in a text: sooner told than by a pattern."""
    return any(word in text for word in words)


def _speaks(found: effects.Summary) -> bool:
    defined = (
        each.name
        for each in found.inner
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    if (
        found.at_hand & _ENTERED
        or not _NAMED.isdisjoint(found.mentions)
        or not _DEFINED.isdisjoint(defined)
    ):
        return True
    if _LIBRARY_TRAINERS.isdisjoint(found.attributes):
        return False
    return any(call.is_method and call.name in _LIBRARY_TRAINERS for call in found.does.calls)


def is_test(path: Path, entry: Entry) -> bool:
    """Whether an entry is what pytest or unittest runs."""
    return bool(entry.function) and entry.function[-1].startswith("test") and "test" in path.name


def is_of_tests(path: Path) -> bool:
    """Whether pytest takes a file for one of tests, by its default pattern."""
    return (
        path.name.startswith("test_")
        or path.name.endswith("_test.py")
        or path.name == "conftest.py"
    )


def is_script(tree: ast.Module) -> bool:
    """Whether running the file does something: a main guard, or calls and loops at its top."""
    return _is_guarded(tree) or any(map(_acts, tree.body))


def _is_entered(source: Source) -> bool:
    """Whether a file is run from its top; what a module of a package does there, without training,
    registers it.
    """
    if "__name__" in source.text and _is_guarded(source.tree):
        return True
    return any(map(_acts, source.tree.body)) and (
        _holds(source.text, _TRIGGER_NAMES) or not in_package(source.path)
    )


def _is_guarded(tree: ast.Module) -> bool:
    return any(isinstance(each, ast.If) and "__name__" in ast.dump(each.test) for each in tree.body)


def _acts(statement: ast.stmt) -> bool:
    calls = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return calls or isinstance(statement, ast.For | ast.While | ast.With)


def _trains_on_top(tree: ast.Module, reaching: list[_Definition]) -> bool:
    """Whether what a file assigns at its top comes out of a call of what trains:
    `history = train(model)`.
    """
    names = {definition.name for definition in reaching}
    values = [
        each.value
        for each in tree.body
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value
    ]
    if not names:
        return False
    calls = (call for found in effects.of(values) for call in found.does.calls)
    return any(name in names for call in calls for name in (call.name, *call.path))


def entries(source: Source) -> list[Entry]:
    """The entries of a file: the script first, then functions that reach a trigger, callers before
    what they call.
    """
    tree = source.tree
    has_triggers = _holds(source.text, _TRIGGER_NAMES)
    is_of_torch = "torch" in source.text or has_triggers
    known = list(_definitions(source, tree.body, ())) if is_of_torch else []
    definitions = known if has_triggers else []
    reaching = _reaching(definitions)
    is_entered = _is_entered(source) or _trains_on_top(tree, reaching)
    found = [Entry((), 1, speaks_of_training(source))] if is_entered else []
    reached = [Entry(d.path, d.node.lineno) for d in _callers_first(reaching)]
    alone = [d for d in definitions if d not in reaching and (d.stands_alone or d.says(MAKERS))]
    alone.sort(key=lambda d: d.name == "compute_loss")  # a trainer's `training_step` calls it
    reached += [Entry(d.path, d.node.lineno, d.stands_alone) for d in alone]
    samples = _samples(tree) if "Dataset" in source.text else ()
    taken = {entry.function for entry in reached}
    found += reached + [entry for entry in samples if entry.function not in taken]
    judged = {(entry.function, entry.line) for entry in reached if judges(entry)}
    return found + list(_parts(source, known, judged))


def _callers_first(reaching: Sequence[_Definition]) -> list[_Definition]:
    """Functions that reach a trigger: first those that no other of them calls."""
    called = {name for d in reaching for name in d.called if name != d.name}
    return sorted(reaching, key=lambda d: d.name in called)


def judges(entry: Entry) -> bool:
    """Whether what it runs is judged by that.

    Not where it enters a `forward` for a backward within, or a function for a context that it
    makes: what these give is not back-propagated there.
    """
    if entry.contract:
        return contracts()[entry.contract].judges
    if not entry.function:
        return True
    return entry.trains and (len(entry.function) == 1 or entry.function[-1] != "forward")


def _parts(
    source: Source, known: list[_Definition], taken: set[tuple[tuple[str, ...], int]]
) -> Iterator[Entry]:
    """The parts of a file, each under the first contract that takes it. Tests run what they need of
    their own.
    """
    if is_of_tests(Path(source.path)):
        return
    for contract in contracts().values():
        for part in contract.parts(source, known):
            if (part.path, part.line) not in taken:
                if contract.is_alone:
                    taken.add((part.path, part.line))
                yield Entry(part.path, part.line, False, contract.name)


def _samples(tree: ast.Module) -> Iterator[Entry]:
    """`__getitem__` of the datasets of a file: of `class Faces(Dataset[Tensor])`, and of what
    inherits from it.
    """
    datasets: set[str] = set()
    for statement in tree.body:
        bases = statement.bases if isinstance(statement, ast.ClassDef) else []
        whole = (
            ast.unparse(base.value if isinstance(base, ast.Subscript) else base) for base in bases
        )
        if isinstance(statement, ast.ClassDef) and any(
            base.endswith("Dataset") or base in datasets for base in whole
        ):
            datasets.add(statement.name)
            for member in statement.body:
                if isinstance(member, ast.FunctionDef) and member.name == SAMPLE:
                    yield Entry((statement.name, SAMPLE), member.lineno, trains=False)


def _definitions(
    source: Source, body: list[ast.stmt], path: tuple[str, ...]
) -> Iterator[_Definition]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            # called by a framework, not by what names it
            hook = statement.name in HOOKS and path != ()
            yield _Definition((*path, statement.name), statement, _text(source, statement), hook)
        elif isinstance(statement, ast.ClassDef):
            inner = list(_definitions(source, statement.body, (*path, statement.name)))
            is_function = {"forward", "backward"} <= {definition.path[-1] for definition in inner}
            for definition in inner:
                definition.stands_alone |= is_function and definition.path[-1] == "forward"
            yield from inner
        elif isinstance(statement, ast.If | ast.Try):
            yield from _definitions(source, statement.body, path)
            yield from _definitions(source, statement.orelse, path)


def _text(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(source.lines[first - 1 : node.end_lineno])


def _reaching(definitions: list[_Definition]) -> list[_Definition]:
    """The definitions that trigger something, or name one that does."""
    reaching = {d: d.triggers() for d in definitions}
    names = frozenset(d.name for d in definitions if reaching[d]) - _NOT_CALLERS
    while names:
        more = [
            d for d in definitions if not reaching[d] and d.path[-1] != "forward" and d.says(names)
        ]
        if not more:
            break
        reaching |= dict.fromkeys(more, True)
        names |= frozenset(d.name for d in more)
    return [d for d in definitions if reaching[d]]


def in_order(known: Sequence[tuple[Path, Sequence[Entry]]]) -> list[tuple[Path, Entry]]:
    """All entries in the order in which they are entered: scripts first, for what they call is then
    known; parts last, which what trains them judges.
    """
    work = [(path, entry) for path, found in known for entry in found]
    return sorted(work, key=lambda task: (bool(task[1].function), bool(task[1].contract)))


class Shown(Protocol):
    """What running an entry has shown: functions, and calls of `backward`, by file and line; its
    losses, and whether rules said nothing where sides that were not run may do what they ask for.
    """

    @property
    def executed(self) -> tuple[tuple[str, int], ...]: ...

    @property
    def reached(self) -> tuple[tuple[str, int], ...]: ...

    @property
    def losses(self) -> tuple[Loss, ...]: ...

    @property
    def leaves_open(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Ran:
    """What entries have run so far: functions, and calls of `backward`, by file and line."""

    executed: set[tuple[str, int]] = field(default_factory=set)
    # by drivers, and by programs that train and leave no question open: no part is left to judge
    trained: set[tuple[str, int]] = field(default_factory=set)
    reached: set[tuple[str, int]] = field(default_factory=set)

    def take(self, entry: Entry, shown: Shown) -> None:
        """Adds what an entry has run.

        A program that calls a model and back-propagates nothing (it prints a shape, or predicts)
        judges none of its parts; nor does one of which rules could not say what they ask for.
        """
        self.executed.update(shown.executed)
        self.reached.update(shown.reached)
        has_judged = bool(shown.losses) and not shown.leaves_open
        if judges(entry) and (entry.contract or has_judged):
            self.trained.update(shown.executed)

    def through(self, path: Path, entry: Entry, backwards: Iterable[Written]) -> bool:
        """Whether another entry ran through this one, and left none of its calls of `backward`
        out.
        """
        known = self.trained if entry.contract else self.executed
        if (
            not entry.function
            or entry.function[-1] == SAMPLE
            or (str(path), entry.line) not in known
        ):
            return False
        own = (written.line for written in backwards if written.function == entry.line)
        return bool(entry.contract) or all((str(path), line) in self.reached for line in own)
