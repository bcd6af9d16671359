"""A program: its files, what their imports refer to, and the values of their names.

A module is executed as far as its names are looked up: `from models import Net` executes the
statements of `models.py` that bind `Net`, and no others.
"""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint.interpret import calm, conditions, defaults
from gradlint.interpret.machine import Raised
from gradlint.interpret.scopes import Frame
from gradlint.interpret.values import (
    Abstract,
    Builtin,
    Class,
    Const,
    Function,
    Lib,
    Package,
)
from gradlint.ir import nodes as ir
from gradlint.ir import scopes
from gradlint.program import parts
from gradlint.program.circles import cut, stands_in
from gradlint.program.dependencies import Dependencies
from gradlint.program.filling import fill, is_filled
from gradlint.program.importers import Candidates, importers
from gradlint.program.imports import on_disk, resolve
from gradlint.program.settings import settings
from gradlint.program.sources import Source, bound_names, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gradlint.interpret.machine import Machine

_OF_ITSELF = frozenset(["__name__", "__file__"])  # bound in every module from the beginning
_KEPT = (Function, Class, Lib, Package, Const, Builtin)


def _hangs_on_branches(statement: ir.Node, value: Abstract) -> bool:
    """Whether another path finds another value, `DEVICE` or the default of a field, and no
    definition or none.
    """
    return isinstance(value, Const) or isinstance(statement, ir.Class | ir.ImportFrom)


class Program:
    """The files that an analysis may read, found as imports ask for them."""

    def __init__(self, read: Callable[[Path], tuple[str, ast.Module] | None]) -> None:
        self.read = read
        self.is_file = on_disk()
        self.sources: dict[Path, Source | None] = {}
        # those that could be parsed, in the order in which they were read
        self.in_view: list[Source] = []
        self.meanings: dict[str, list[Source]] = {}  # the files that bind a name; see `summaries`
        self.indexed = 0  # how many of the files in view these names are of
        self.above: dict[Path, Path] = {}  # files that imports connect; see `summaries`
        self.entered: Path | None = None  # the file of the entry that is run
        self.frames: dict[Path, Frame] = {}
        self.dependencies = Dependencies()  # what the answers given so far rest on
        self.decided: set[tuple[Frame, str]] = set()  # names whose values hang on how branches go
        self.importing = 0  # import statements that are being run
        self._running: set[int] = set()  # ids of statements
        # containers that wait for what is registered in them
        self.unfilled: list[tuple[Frame, str]] = []
        self.analysed: tuple[Path, ...] = ()  # the files whose entries are run together
        # what each file's imports were found to be
        self.edges: dict[Path, dict[tuple[str, int], Path | None]] = {}
        # the modules whose names a file has by `from … import *`
        self.starred: dict[str, tuple[Frame, ...]] = {}
        # see `filling`
        self.registering: dict[tuple[Path, str], list[tuple[Frame, ir.Node]]] = {}
        self.candidates: dict[Path, Candidates] = {}  # see `importers`
        self.importers: dict[tuple[Path, Path], bool] = {}  # whether the first imports the second
        self.looked_through: dict[Path, str] = {}  # texts; see `importers`
        self.scripts: list[Frame] = []  # the scopes of scripts, one for each path
        # of calls that have defined functions, by which these are held in turn
        self.scopes: set[Frame] = set()
        self.classes: list[Class] = []  # all that were made

    def leave(self) -> None:
        """Lets go of what scripts have bound, once nobody looks at their paths any more."""
        for frame in self.scripts:
            own = [
                each
                for each in frame.locals.values()
                if isinstance(each, Class) and stands_in(each, frame)
            ]
            cut([frame], own)
        self.scripts.clear()

    def close(self) -> None:
        """Lets go of all files: their trees are freed at once, and not by a search for circles of
        references.
        """
        self.leave()
        cut([*self.frames.values(), *self.scopes], self.classes)
        for frame in self.frames.values():
            frame.source = None
        self.sources.clear()
        self.in_view.clear()
        self.meanings.clear()
        del self.read

    def mentions(self, frame: Frame, word: str) -> bool:
        """Whether the file of `frame` speaks of something."""
        self.dependencies.ask(frame, parts.mentions([word]))
        return word in frame.code.text

    def users(self, path: Path, name: str) -> list[Source]:
        """The file at `path`, and those in view that import it and speak of one of its names."""
        source = self.source(path)
        if source is None:
            return []
        self.dependencies.asked.add((str(path), parts.WHOLE))
        return [source, *importers(self, source, frozenset([name]))]

    def arities(self, frame: Frame, name: str) -> frozenset[int]:
        """The lengths of the tuples that methods of this name in the file of `frame` write down to
        return.
        """
        self.dependencies.ask(frame, parts.returns(name))
        return (
            scopes.arities(frame.source.tree).get(name, frozenset())
            if frame.source is not None
            else frozenset()
        )

    def source(self, path: Path) -> Source | None:
        """The file at `path`, parsed; None where it cannot be."""
        if path not in self.sources:
            given = self.read(path)
            self.sources[path] = None
            if given is not None:
                self.sources[path] = found = source_of(path, *given)
                self.in_view.append(found)
        return self.sources[path]

    def frame(self, path: Path) -> Frame | None:
        """The scope of the module at `path`; its names are bound as they are looked up."""
        self.dependencies.asked.add((str(path), parts.PARSES))
        if path not in self.frames:
            source = self.source(path)
            if source is None:
                return None
            self.frames[path] = Frame(
                source.code,
                {"__name__": Const(source.name), "__file__": Const(str(path))},
                source=source,
            )
        return self.frames[path]

    def reset(self) -> None:
        """Forgets what the last path bound that another path could find different."""
        self.unfilled.clear()
        for frame in self.frames.values():
            for name in [
                name for name, value in frame.locals.items() if not isinstance(value, _KEPT)
            ]:
                del frame.locals[name]
        for frame, name in self.decided:
            frame.locals.pop(name, None)
        self.decided.clear()

    def bound(self) -> dict[Path, frozenset[str]]:
        """The names of each module that are bound."""
        return {path: frozenset(frame.locals) for path, frame in self.frames.items()}

    def forget(self, known: dict[Path, frozenset[str]]) -> None:
        """Unbinds all but these names: what is told where the others are defined was told to no
        one.
        """
        for path, frame in self.frames.items():
            for name in frame.locals.keys() - known.get(path, _OF_ITSELF):
                del frame.locals[name]

    def bind(self, m: Machine, frame: Frame, name: str) -> Abstract | None:
        """The value of a module's name, executing the statements that bind it; None where nothing
        does.
        """
        found = self._bind_own(m, frame, name)
        # `from … import *` brings in no name that begins with an underscore
        if found is None and not name.startswith("_"):
            self.dependencies.ask(frame, parts.STARS)
            owners = self._starred(frame)
            values = (self._bind_own(m, scope, name) for scope in owners)
            found = next((value for value in values if value is not None), None)
        return found

    def _bind_own(self, m: Machine, frame: Frame, name: str) -> Abstract | None:
        source = frame.source
        self.dependencies.ask(frame, name)
        if name in frame.locals:
            m.oracle.asked += (frame, name) in self.decided
            return frame.locals[name]
        if source is None or name not in source.bindings:
            return None
        with self.dependencies.working_out(frame, name):
            return self._run_bindings(m, frame, source, name)

    def is_running(self, statement: ir.Node) -> bool:
        """Whether a statement is being executed to bind names or to fill containers."""
        return id(statement) in self._running

    @contextlib.contextmanager
    def running(self, statement: ir.Node) -> Iterator[None]:
        """While a statement is executed to bind names or to fill a container."""
        self._running.add(id(statement))
        try:
            yield
        finally:
            self._running.discard(id(statement))

    def _run_bindings(self, m: Machine, frame: Frame, source: Source, name: str) -> Abstract | None:
        for statement in self._run_first(m, frame, source, source.bindings[name]):
            if self.is_running(statement):
                continue
            for other in bound_names(statement):
                self.dependencies.bound_with(frame, name, other)
            asked = m.oracle.asked
            self._execute(m, frame, statement, name)
            if name not in frame.locals:
                continue
            if m.oracle.asked > asked and _hangs_on_branches(statement, frame.locals[name]):
                self.decided.add((frame, name))
            if is_filled(frame.locals[name]):
                self.unfilled.append((frame, name))
            while self.unfilled and not self.importing:  # what is being imported is not yet usable
                fill(self, m, *self.unfilled.pop(0))
            return frame.locals[name]
        return None

    def _run_first(
        self, m: Machine, frame: Frame, source: Source, statements: Sequence[ir.Node]
    ) -> Iterator[ir.Node]:
        """The statements that bind a name; those on a side of a branch that is not taken, as far as
        what its test asks is known or a setting, come last.
        """
        skipped: list[ir.Node] = []
        for statement in statements:
            sides = source.within.get(id(statement), ()) if len(statements) > 1 else ()
            if all(self._holds(m, frame, test) is not (not side) for test, side in sides):
                yield statement
            else:
                skipped.append(statement)
        yield from skipped

    def _holds(self, m: Machine, frame: Frame, branch: ir.If) -> bool | None:
        """What the test of a module's own branch gives, of a setting what it begins with; None
        where that is not known.
        """
        if self.is_running(branch):
            return None
        with self.running(branch), calm.module_code(m):
            try:
                value = m.evaluate(branch.test, frame)
            except Raised:
                return None
        known = conditions.truth(m, value)
        test = conditions.test_of(m, value)
        return defaults.by_setting(m, test, is_repeated=False) if known is None else known

    def _execute(self, m: Machine, frame: Frame, statement: ir.Node, name: str) -> None:
        """Executes the statement of a module that binds `name`."""
        steps = m.steps
        imports = isinstance(statement, ir.Import | ir.ImportFrom)
        self.importing += imports
        with self.running(statement):
            try:
                with calm.module_code(m):
                    m.execute([statement], frame)
            except Raised:
                # a module in view can be imported, whatever hangs on what is not known there
                frame.locals.pop(name, None)
            finally:
                self.importing -= imports
                if m.session.contract and frame.code is not m.session.entered:
                    # a part has steps of its own, whatever is imported for the first time
                    m.steps = steps

    def _starred(self, frame: Frame) -> tuple[Frame, ...]:
        """The modules whose names `from … import *` brings into one, directly or through another,
        in their order.
        """
        if frame.source is None:  # a script that is run itself
            return ()
        for known in self.starred.get(frame.code.path, ()):
            self.dependencies.ask(known, parts.STARS)
        if frame.code.path not in self.starred:
            found = {Path(frame.code.path): frame}
            pending = [(frame, star) for star in reversed(frame.source.stars)]
            while pending:
                importer, star = pending.pop()
                target = self.resolve(Path(importer.code.path), star.module, star.level)
                scope = self.frame(target) if target is not None and target not in found else None
                if scope is not None and scope.source is not None and target is not None:
                    found[target] = scope
                    self.dependencies.ask(scope, parts.STARS)
                    pending += [(scope, inner) for inner in reversed(scope.source.stars)]
            self.starred[frame.code.path] = tuple(found.values())[1:]
        return self.starred[frame.code.path]

    def resolve(self, importer: Path, module: str, level: int) -> Path | None:
        """The file that a module name refers to from `importer`, or None for a library."""
        found = self.edges.setdefault(importer, {})
        if (module, level) not in found:
            found[module, level] = resolve(importer, module, level, self.is_file)
        return found[module, level]

    def imported(self, frame: Frame, module: str, level: int) -> Abstract:
        """The module that `import module` binds."""
        path = self.resolve(Path(frame.code.path), module, level)
        scope = self.frame(path) if path is not None else None
        return Lib(module) if scope is None else Package(module, scope)

    def member(self, m: Machine, frame: Frame, module: str, level: int, name: str) -> Abstract:
        """What `from module import name` binds."""
        importer = Path(frame.code.path)
        path = self.resolve(importer, module, level)
        scope = self.frame(path) if path is not None else None
        if scope is None:
            below = self.resolve(importer, f"{module}.{name}" if module else name, level)
            scope = self.frame(below) if below is not None else None
            if scope is not None:
                return self._imported_file(m, frame, name, scope)
            dots = "." * level
            return Lib(f"{dots}{module}.{name}") if module else Lib(f"{dots}{name}")
        if scope is not frame:
            found = self.bind(m, scope, name)
            if found is not None:
                return found
        below = self.resolve(importer, f"{module}.{name}" if module else name, level)
        inner = self.frame(below) if below is not None else None
        return (
            m.session.missing(scope, name)
            if inner is None
            else self._imported_file(m, frame, name, inner)
        )

    def _imported_file(self, m: Machine, frame: Frame, name: str, scope: Frame) -> Package:
        self._run_settings(m, frame, scope)
        return Package(name, scope)

    def set_modes(self, m: Machine, frame: Frame, module: str, level: int) -> None:
        """Runs what an import at the top of a script sets for all of torch:
        `torch.set_grad_enabled(False)`.
        """
        path = self.resolve(Path(frame.code.path), module, level) if frame.is_script else None
        scope = self.frame(path) if path is not None else None
        if scope is not None:
            self._run_settings(m, frame, scope)

    def _run_settings(self, m: Machine, importer: Frame, scope: Frame) -> None:
        self.dependencies.ask(scope, parts.SETTINGS)
        if importer.is_script and scope.source is not None:
            found = settings(scope.source.tree)
            if found:
                m.execute(scope.source.at(found), scope)

    def submodule(self, package: Package, name: str) -> Abstract | None:
        """`package.name` where it is a file of the package."""
        path = Path(package.scope.code.path)
        below = self.resolve(path, name, 1) if path.name == "__init__.py" else None
        scope = self.frame(below) if below is not None else None
        return Package(f"{package.name}.{name}", scope) if scope is not None else None

    def star(self, m: Machine, frame: Frame, module: str, level: int) -> None:
        """`from module import *` in a script, with what the module has from others in the same
        way.
        """
        if frame.source is not None:
            return
        path = self.resolve(Path(frame.code.path), module, level)
        scope = self.frame(path) if path is not None else None
        if scope is not None and scope.source is not None:
            offering = [scope, *self._starred(scope)]
            for each in offering:
                self.dependencies.ask(each, parts.WHOLE)
            offered = [each.source.bindings for each in offering if each.source is not None]
            for name in dict.fromkeys(name for names in offered for name in names):
                if not name.startswith("_"):
                    found = self.bind(m, scope, name)
                    if found is not None:
                        frame.locals[name] = found
        elif module.startswith("torch"):
            m.session.stars.append(module)
