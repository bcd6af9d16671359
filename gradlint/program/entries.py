"""Where the analysis enters a file: as a script, and at the functions from which a loss sink can be reached."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.source.parse import Source

# What makes a function worth entering, and those that call it: sinks and events of a training step.
TRIGGERS = frozenset(
    [
        "backward",
        "manual_backward",
        "zero_grad",
        "unscale_",
        "clip_grad_norm_",
        "clip_grad_value_",
        "scale_loss",
    ]
)
MAKERS = frozenset(["autocast", "GradScaler"])  # what is wrong with them shows in the function that makes them
SAMPLE = "__getitem__"  # of a dataset: what it returns is looked at
HOOKS = frozenset(["training_step", "compute_loss"])  # methods whose result a framework back-propagates
_WORDS = re.compile("|".join(sorted(TRIGGERS | MAKERS | HOOKS | {"autograd"})))


@dataclass(frozen=True, slots=True)
class Entry:
    """One place to start from: the script itself (`function` is empty), or a function or method by its path."""

    function: tuple[str, ...]
    line: int

    @property
    def name(self) -> str:
        return ".".join(self.function) or "<script>"


@dataclass(slots=True)
class _Definition:
    path: tuple[str, ...]
    node: ast.FunctionDef | ast.AsyncFunctionDef
    called: frozenset[str]
    triggers: bool
    stands_alone: bool = False  # worth entering, but no reason to enter its callers


def is_script(tree: ast.Module) -> bool:
    """Whether running the file does something: a main guard, or calls and loops at its top."""
    for statement in tree.body:
        if isinstance(statement, ast.For | ast.While | ast.With):
            return True
        if isinstance(statement, ast.If) and "__name__" in ast.dump(statement.test):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            return True
    return False


def entries(source: Source) -> list[Entry]:
    """The entries of a file: the script first, then functions that reach a trigger, callers before what they call."""
    tree = source.tree
    definitions = list(_definitions(tree.body, ())) if _WORDS.search(source.text) else []
    reaching = _reaching(definitions)
    found = [Entry((), 1)] if is_script(tree) else []
    called_by_reaching = {name for d in definitions if d.path in reaching for name in d.called if name != d.path[-1]}
    roots = [d for d in definitions if d.path in reaching and d.path[-1] not in called_by_reaching]
    others = [d for d in definitions if d.path in reaching and d.path[-1] in called_by_reaching]
    alone = [d for d in definitions if d.stands_alone and d.path not in reaching]
    reached = [Entry(d.path, d.node.lineno) for d in (*roots, *others, *alone)]
    return found + reached + [entry for entry in _samples(tree) if entry not in reached]


def _samples(tree: ast.Module) -> Iterator[Entry]:
    """`__getitem__` of the datasets that a file defines."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and any(
            ast.unparse(base).endswith("Dataset") for base in statement.bases
        ):
            for member in statement.body:
                if isinstance(member, ast.FunctionDef) and member.name == SAMPLE:
                    yield Entry((statement.name, SAMPLE), member.lineno)


def _definitions(body: list[ast.stmt], path: tuple[str, ...]) -> Iterator[_Definition]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _definition(statement, (*path, statement.name))
        elif isinstance(statement, ast.ClassDef):
            inner = list(_definitions(statement.body, (*path, statement.name)))
            is_function = {"forward", "backward"} <= {definition.path[-1] for definition in inner}
            for definition in inner:
                definition.stands_alone |= is_function and definition.path[-1] == "forward"
            yield from inner
        elif isinstance(statement, ast.If | ast.Try):
            yield from _definitions(statement.body, path)
            yield from _definitions(statement.orelse, path)


def _definition(node: ast.FunctionDef | ast.AsyncFunctionDef, path: tuple[str, ...]) -> _Definition:
    called, triggers = set(), False
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute):
            called.add(inner.attr)
            triggers = triggers or (inner.attr == "grad" and _is_autograd(inner.value))
        elif isinstance(inner, ast.Name):
            called.add(inner.id)
    hooks = node.name in HOOKS and len(path) > 1  # called by a framework, not by what names it
    names = frozenset(called)
    return _Definition(path, node, names, triggers or bool(names & TRIGGERS), hooks or bool(names & MAKERS))


def _is_autograd(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "autograd") or (
        isinstance(node, ast.Name) and node.id == "autograd"
    )


def _reaching(definitions: list[_Definition]) -> set[tuple[str, ...]]:
    """The definitions that trigger something, or name one that does."""
    reaching = {d.path for d in definitions if d.triggers}
    names = {path[-1] for path in reaching} - {"forward"}  # who calls a `forward` that runs a backward is no trainer
    while True:
        more = {d.path for d in definitions if d.path not in reaching and d.called & names and d.path[-1] != "forward"}
        if not more:
            return reaching
        reaching |= more
        names |= {path[-1] for path in more}
