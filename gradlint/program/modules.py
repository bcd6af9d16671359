"""The files of a program: what an import refers to, and module names, evaluated as far as they are
needed.
"""

from __future__ import annotations

import ast
import contextlib
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint import memo
from gradlint.dataclass import dataclass
from gradlint.interpret import calm
from gradlint.interpret.machine import Frame, Raised
from gradlint.interpret.values import (
    Abstract,
    Builtin,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Package,
    Sequence,
)
from gradlint.ir import lower, scopes
from gradlint.ir import nodes as ir
from gradlint.program import parts, registries, texts
from gradlint.program.imports import BESIDE, called, can_mean, imports, neighbours, on_disk, resolve
from gradlint.program.settings import settings
from gradlint.source import document, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Mapping as Mapping_

    from gradlint.interpret.machine import Machine

_OF_ITSELF = frozenset(["__name__", "__file__"])  # bound in every module from the beginning
_KEPT = (Function, Class, Lib, Package, Const, Builtin)
MOST_FILES = 400  # files that are analysed and looked through for it
# statements that are run for what they register in one container; it is left open to the others
MOST_FILLING = 64


@dataclass(eq=False, slots=True)
class Source:
    """One file: its statements, and by which of them each of its names is bound.

    Of statements at the top of the file the last one comes first, as importers get what it binds;
    those inside of others, which may not be run, follow in their order.
    """

    path: Path
    name: str
    code: ir.Code
    tree: ast.Module
    statements: list[ir.Node]
    bindings: dict[str, list[ir.Node]] = field(default_factory=dict)
    stars: list[ir.ImportFrom] = field(default_factory=list)

    def __post_init__(self) -> None:
        own, within = set(map(id, self.statements)), list[ir.Node]()
        for statement in _bound_statements(self.statements):
            if isinstance(statement, ir.ImportFrom) and _is_star(statement):
                self.stars.append(statement)
            if id(statement) not in own:
                within.append(statement)
        for statement in (*reversed(self.statements), *within):
            for name in _names(statement):
                self.bindings.setdefault(name, []).append(statement)

    def at(self, statements: Iterable[ast.stmt]) -> list[ir.Node]:
        """The lowered form of statements at the top of the file."""
        lowered = {statement.at[:2]: statement for statement in self.statements}
        places = [(statement.lineno, statement.col_offset) for statement in statements]
        return [lowered[place] for place in places if place in lowered]


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The files that can import another: those that say its name, by theirs, and that the others
    say nothing of it.
    """

    naming: dict[str, Path]
    others: frozenset[parts.Part]


def _lowered(path: Path, text: str, tree: ast.Module) -> Source:
    code = ir.Code(str(path), text)
    return Source(path, path.stem, code, tree, lower.module(tree, code))


_source = memo.of_texts(_lowered, lambda source: source.code.close())


def _hangs_on_branches(statement: ir.Node, value: Abstract) -> bool:
    """Whether another path finds another value, `DEVICE` or the default of a field, and no
    definition or none.
    """
    return isinstance(value, Const) or isinstance(statement, ir.Class | ir.ImportFrom)


def _is_filled(value: Abstract) -> bool:
    """Whether other statements of a program can register something in a value."""
    if isinstance(value, Class):
        return "__init_subclass__" in value.namespace
    return isinstance(value, Mapping | Sequence | Instance | Object)


def _stands_in(cls: Class, frame: Frame) -> bool:
    """Whether it is a class of the file of `frame`, by its methods."""
    return any(
        isinstance(member, Function) and member.scope is frame for member in cls.namespace.values()
    )


def _cut(frames: Iterable[Frame], classes: Iterable[Class]) -> None:
    """Takes apart the circles in which scopes, the classes in them, functions and methods hold each
    other.
    """
    for cls in classes:
        cls.namespace.clear()
        cls.order.clear()
    for frame in frames:
        frame.locals.clear()


def _leave_open(registry: Abstract) -> None:
    """Takes an object's empty dicts for filled from files that are not in view: by an import whose
    name is computed.
    """
    for held in registry.attrs.values() if isinstance(registry, Instance) else ():
        if isinstance(held, Mapping) and not held.items:
            held.open = True


def _leave_unfinished(registry: Abstract) -> None:
    """Has the containers of a registry that was filled in part hold more than what was put into
    them.
    """
    for held in registry.attrs.values() if isinstance(registry, Instance) else (registry,):
        if isinstance(held, Mapping | Sequence):
            held.open = True


def _bound_statements(statements: list[ir.Node]) -> Iterator[ir.Node]:
    for statement in statements:
        yield statement
        for block in ("body", "then", "otherwise"):
            if not isinstance(statement, ir.Class | ir.For | ir.While):
                within = _bound_statements(getattr(statement, block, []))
                is_for_types = block == "then" and _asks_who_checks_types(statement)
                yield from (each for each in within if not (is_for_types and _is_star(each)))
        for handler in getattr(statement, "handlers", ()):
            yield from _bound_statements(handler.body)


def _is_star(statement: ir.Node) -> bool:
    return isinstance(statement, ir.ImportFrom) and any(name == "*" for name, _ in statement.names)


def _asks_who_checks_types(statement: ir.Node) -> bool:
    """Whether it is `if TYPE_CHECKING: …`: a package that is filled lazily names all of its
    modules' names there.
    """
    match statement:
        case ir.If(test=ir.Name(id="TYPE_CHECKING") | ir.Attribute(name="TYPE_CHECKING")):
            return True
    return False


def _names(statement: ir.Node) -> Iterator[str]:
    match statement:
        case ir.Function() | ir.Class():
            yield statement.name
        case ir.Import():
            yield statement.name
        case ir.ImportFrom():
            yield from (bound for _, bound in statement.names)
        case ir.Assign():
            for target in statement.targets:
                yield from _targets(target)


def _targets(target: ir.Node) -> Iterator[str]:
    if isinstance(target, ir.Name):
        yield target.id
    elif isinstance(target, ir.Display):
        for item in target.items:
            yield from _targets(item)


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
        self.decided: set[tuple[Frame, str]] = set()  # names whose values hang on how branches go
        self.importing = 0  # import statements that are being run
        # statements that are being run to bind names or fill containers
        self.pending: set[int] = set()
        # containers that wait for what is registered in them
        self.unfilled: list[tuple[Frame, str]] = []
        self.analysed: tuple[Path, ...] = ()  # the files whose entries are run together
        # what each file's imports were found to be
        self.edges: dict[Path, dict[tuple[str, int], Path | None]] = {}
        self.starred: dict[str, tuple[Frame, ...]] = {}
        self.registering: dict[tuple[Path, str], list[tuple[Frame, ir.Node]]] = {}
        self.candidates: dict[Path, _Candidates] = {}  # the files that can import one
        self.importers: dict[tuple[Path, Path], bool] = {}  # whether the first imports the second
        self.looked_through: dict[Path, str] = {}
        self.asked: set[parts.Part] = set()  # what is being worked out rests on these
        # what the values of names, once bound, rest on
        self.resting: dict[parts.Part, set[parts.Part]] = {}
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
                if isinstance(each, Class) and _stands_in(each, frame)
            ]
            _cut([frame], own)
        self.scripts.clear()

    def close(self) -> None:
        """Lets go of all files: their trees are freed at once, and not by a search for circles of
        references.
        """
        self.leave()
        _cut([*self.frames.values(), *self.scopes], self.classes)
        for frame in self.frames.values():
            frame.source = None
        self.sources.clear()
        self.in_view.clear()
        self.meanings.clear()
        del self.read

    def rests_on(self, asked: Iterable[parts.Part]) -> frozenset[parts.Part]:
        """These parts of files, and those that they rest on themselves."""
        found = set(asked)
        pending = list(found)
        while pending:
            new = self.resting.get(pending.pop(), set()) - found
            found |= new
            pending += new
        return frozenset(found)

    def ask(self, frame: Frame, word: str) -> None:
        """Notes that what is being worked out rests on a part of the file of `frame`."""
        self.asked.add((frame.code.path, word))

    def text(self, frame: Frame) -> str:
        """The text of the file of `frame`."""
        self.ask(frame, parts.WHOLE)
        return frame.code.text

    def mentions(self, frame: Frame, word: str) -> bool:
        """Whether the file of `frame` speaks of something."""
        self.ask(frame, parts.mentions([word]))
        return word in frame.code.text

    def users(self, path: Path, name: str) -> list[Source]:
        """The file at `path`, and those in view that import it and speak of one of its names."""
        source = self.source(path)
        if source is None:
            return []
        self.asked.add((str(path), parts.WHOLE))
        return [source, *self._importers(source, frozenset([name]))]

    def arities(self, frame: Frame, name: str) -> frozenset[int]:
        """The lengths of the tuples that methods of this name in the file of `frame` write down to
        return.
        """
        self.ask(frame, parts.returns(name))
        return (
            scopes.arities(frame.source.tree).get(name, frozenset())
            if frame.source is not None
            else frozenset()
        )

    @contextlib.contextmanager
    def _working_out(self, frame: Frame, name: str) -> Iterator[None]:
        """What is asked meanwhile is what the value of a name rests on."""
        before = self.asked
        self.asked = self.resting.setdefault((frame.code.path, name), set())
        try:
            yield
        finally:
            self.asked = before

    def source(self, path: Path) -> Source | None:
        """The file at `path`, parsed; None where it cannot be."""
        if path not in self.sources:
            given = self.read(path)
            self.sources[path] = None
            if given is not None:
                self.sources[path] = found = _source(path, *given)
                self.in_view.append(found)
        return self.sources[path]

    def frame(self, path: Path) -> Frame | None:
        """The scope of the module at `path`; its names are bound as they are looked up."""
        self.asked.add((str(path), parts.PARSES))
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
        if found is None and not name.startswith("_"):
            self.ask(frame, parts.STARS)
            owners = self._starred(frame)
            found = next(
                (
                    value
                    for scope in owners
                    if (value := self._bind_own(m, scope, name)) is not None
                ),
                None,
            )
        return found

    def _bind_own(self, m: Machine, frame: Frame, name: str) -> Abstract | None:
        source = frame.source
        self.ask(frame, name)
        if name in frame.locals:
            m.oracle.asked += (frame, name) in self.decided
            return frame.locals[name]
        if source is None or name not in source.bindings:
            return None
        with self._working_out(frame, name):
            return self._run_bindings(m, frame, source, name)

    def _run_bindings(self, m: Machine, frame: Frame, source: Source, name: str) -> Abstract | None:
        for statement in source.bindings[name]:
            if id(statement) in self.pending:
                continue
            self.pending.add(id(statement))
            for other in _names(statement):
                self.resting.setdefault((frame.code.path, other), set()).add(
                    (frame.code.path, name)
                )
            asked, steps = m.oracle.asked, m.steps
            imports = isinstance(statement, ir.Import | ir.ImportFrom)
            self.importing += imports
            try:
                with calm.module_code(m):
                    m.execute([statement], frame)
            except (
                Raised
            ):  # a module in view can be imported, whatever hangs on what is not known there
                frame.locals.pop(name, None)
            finally:
                self.importing -= imports
                self.pending.discard(id(statement))
                if m.session.contract and frame.code is not m.session.entered:
                    # a part has steps of its own, whatever is imported for the first time
                    m.steps = steps
            if name in frame.locals:
                if m.oracle.asked > asked and _hangs_on_branches(statement, frame.locals[name]):
                    self.decided.add((frame, name))
                if _is_filled(frame.locals[name]):
                    self.unfilled.append((frame, name))
                while (
                    self.unfilled and not self.importing
                ):  # what is being imported cannot be used yet
                    self._fill(m, *self.unfilled.pop(0))
                return frame.locals[name]
        return None

    def _starred(self, frame: Frame) -> tuple[Frame, ...]:
        """The modules whose names `from … import *` brings into one, directly or through another,
        in their order.
        """
        if frame.source is None:  # a script that is run itself
            return ()
        for known in self.starred.get(frame.code.path, ()):
            self.ask(known, parts.STARS)
        if frame.code.path not in self.starred:
            found = {Path(frame.code.path): frame}
            pending = [(frame, star) for star in reversed(frame.source.stars)]
            while pending:
                importer, star = pending.pop()
                target = self.resolve(Path(importer.code.path), star.module, star.level)
                scope = self.frame(target) if target is not None and target not in found else None
                if scope is not None and scope.source is not None and target is not None:
                    found[target] = scope
                    self.ask(scope, parts.STARS)
                    pending += [(scope, inner) for inner in reversed(scope.source.stars)]
            self.starred[frame.code.path] = tuple(found.values())[1:]
        return self.starred[frame.code.path]

    def _fill(self, m: Machine, frame: Frame, name: str) -> None:
        """Runs what registers something in the container `name` of a module, there and in the files
        that import it.
        """
        assert frame.source is not None
        with self._working_out(frame, name), m.oracle.registering():
            filling = self._registering(frame, frame.source, name)
            for scope, statement in filling[:MOST_FILLING]:
                source = scope.source
                if source is None or id(statement) in self.pending:
                    continue
                self.pending.add(id(statement))
                try:
                    with calm.module_code(m):
                        m.execute([statement], scope)
                except Raised:
                    pass
                finally:
                    self.pending.discard(id(statement))
        _leave_open(frame.locals[name])
        if len(filling) > MOST_FILLING:
            _leave_unfinished(frame.locals[name])

    def _registering(self, frame: Frame, source: Source, name: str) -> list[tuple[Frame, ir.Node]]:
        key = (source.path, name)
        if key not in self.registering:
            self.ask(frame, parts.fills(name))
            names = registries.reaching(source.tree, name)
            found = [
                (frame, statement)
                for statement in source.at(registries.filling(source.tree, names))
            ]
            held = frame.locals[name]
            is_open = isinstance(held, Instance | Class) or not getattr(held, "items", True)
            for beside in self._importers(source, names) if is_open else ():
                scope = self.frame(beside.path) if len(found) <= MOST_FILLING else None
                if scope is not None:
                    found += [
                        (scope, statement)
                        for statement in beside.at(registries.filling(beside.tree, names))
                    ]
            self.registering[key] = found
        return self.registering[key]

    def _importers(self, source: Source, names: frozenset[str]) -> Iterator[Source]:
        """The other files that import `source` and speak of `names`: those beside it, and those
        that are analysed.
        """
        mentions = parts.mentions(names)
        candidates = self._candidates(source.path)
        self.asked |= candidates.others
        for file, path in candidates.naming.items():
            self.asked.add((file, mentions))
            if self._mentions(path, names):
                self.asked.add((file, parts.WHOLE))
                other = self.source(path)
                if other is not None and self._imports(other, source.path):
                    yield other

    def _candidates(self, path: Path) -> _Candidates:
        """The files that can import the one at `path`."""
        if path not in self.candidates:
            found = {str(each): each for each in [*neighbours(path), *self.analysed[:MOST_FILES]]}
            self.edges.setdefault(path, {}).update(
                {(file, BESIDE): each for file, each in found.items()}
            )
            found.pop(str(path), None)
            name = called(path)
            naming = {file: each for file, each in found.items() if self._mentions(each, (name,))}
            others = frozenset(
                (file, parts.mentions([name])) for file in found.keys() - naming.keys()
            )
            self.candidates[path] = _Candidates(naming, others)
        return self.candidates[path]

    def _imports(self, source: Source, path: Path) -> bool:
        key = (source.path, path)
        if key not in self.importers:
            named = (origin for origin in imports(source.tree) if can_mean(path, origin[0]))
            self.importers[key] = any(
                self.resolve(source.path, *origin) == path for origin in named
            )
        return self.importers[key]

    def _mentions(self, path: Path, names: Iterable[str]) -> bool:
        text = self._text(path)
        return any(name in text for name in names)

    def _text(self, path: Path) -> str:
        """The text of a file that need not be parsed; "" where it cannot be read."""
        known = self.sources.get(path)
        if known is not None:
            return known.code.text
        if path not in self.looked_through:
            try:
                self.looked_through[path] = path.read_text(errors="replace")
            except OSError:
                self.looked_through[path] = ""
        return self.looked_through[path]

    # imports

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
        self.ask(scope, parts.SETTINGS)
        if (
            importer.is_script
            and scope.source is not None
            and (found := settings(scope.source.tree))
        ):
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
                self.ask(each, parts.WHOLE)
            offered = [each.source.bindings for each in offering if each.source is not None]
            for name in dict.fromkeys(name for names in offered for name in names):
                if not name.startswith("_"):
                    found = self.bind(m, scope, name)
                    if found is not None:
                        frame.locals[name] = found
        elif module.startswith("torch"):
            m.session.stars.append(module)


def edited(path: Path, before: Mapping_[str, parts.Text], text: str | None) -> parts.Edited:
    """What is left of the parts of a file that has this text, or is read from disk."""
    content = document.decode(str(path), document.read(path)) if text is None else text
    parsed = parse.parse(str(path), content) if isinstance(content, str) else content
    read = (parsed.text, parsed.tree) if isinstance(parsed, parse.Source) else None
    return texts.edited(before, Program(lambda _: read).source(path))
