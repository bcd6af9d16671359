"""May-effects of code, closed over what it calls: what it can do to gradients, optimizers and
losses.

    else:
        advance(optimizer)  # advance() calls optimizer.step(): May.STEP
        run(advance)        # so does what is given this function
        go()                # and what is bound to it: go = functools.partial(advance, optimizer)

What a block does by itself is read by `source/effects.py`. A summary over-approximates. A call can
mean every function of its name in the files that the program has read; what is out of view can do
anything to what it is given. So a summary can silence a claim that something happens on no path,
and never supports a finding. Files that no import connects with the entry do not count: what is
said of a program does not hang on what is checked beside it.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint.interpret.registry import FUNCTIONS, METHODS
from gradlint.library.effects import lookup
from gradlint.program import parts
from gradlint.program.imports import imports
from gradlint.source import effects, meanings, reach, sides
from gradlint.source.effects import Call, Summary
from gradlint.tape import May

if TYPE_CHECKING:
    from gradlint.program.modules import Program
    from gradlint.program.sources import Source


class _By(Enum):
    """How code leads to what a name means."""

    CALL = auto()  # advance(), trainer.advance()
    GIVEN = auto()  # run(advance), steps = [advance]
    READ = auto()  # trainer.advanced, where that is a property


_Lead = tuple[str, _By]


def may(program: Program, block: Iterable[ast.AST], wanted: May) -> bool:
    """Whether running the block, and what it leads to, can have one of these effects."""
    seen: set[_Lead] = set()
    pending: list[Summary | _Lead] = list(effects.of(block))
    for each in pending:
        if isinstance(each, Summary):
            if (each.does.effects | _of_calls(program, each)) & wanted:
                return True
            pending += _leads(each)
        elif each not in seen:
            seen.add(each)
            name, by = each
            if (
                by is _By.GIVEN
                and effects.EVENTS.get(name, May(0)) & wanted
                and not _is_field(program, name)
            ):
                return True  # run(optimizer.step)
            pending += _meant(program, name, by)
    return False


def is_written(program: Program, function: ast.AST, file: str, wanted: May) -> bool:
    """Whether an event with one of these effects stands in a function, or in what it calls in its
    own file.

    Other than `may`, it takes what is not in view to have no effect: what it says decides where
    steps go, no finding.
    """
    source = program.source(Path(file))
    known = meanings.of(source.tree).functions if source is not None else {}
    seen: set[str] = set()
    pending = list(effects.of([function]))
    for each in pending:
        named = (effects.EVENTS.get(name, May(0)) for name in each.does.given)  # go = loss.backward
        if functools.reduce(operator.or_, named, each.does.effects) & wanted:
            return True
        names = {call.name for call in each.does.calls} - seen
        seen |= names
        pending += [found for name in sorted(names) for found in effects.of(known.get(name, ()))]
    return False


def _leads(found: Summary) -> Iterator[_Lead]:
    yield from ((call.name, _By.CALL) for call in found.does.calls)
    yield from ((name, _By.GIVEN) for name in found.does.given)
    yield from ((name, _By.READ) for name in found.attributes)


def _of_calls(program: Program, found: Summary) -> May:
    """What calls do besides running the functions that their names can mean."""
    return functools.reduce(
        operator.or_, (_of_call(program, call) for call in found.does.calls), May(0)
    )


def _of_call(program: Program, call: Call) -> May:
    if _is_of_library(call.name):
        return May.BIND if call.is_method and call.is_statement else May(0)
    is_event = call.is_method and (call.name in effects.EVENTS or call.name == "grad")
    if (
        is_event
        or not call.is_given
        or any(index.functions.get(call.name) for index in _defining(program, call.name))
    ):
        return May(0)
    return May.ANYTHING


def _meant(program: Program, name: str, by: _By) -> Iterator[Summary | _Lead]:
    """What can run by a name: functions, methods of a class, properties, and what is bound to it
    elsewhere.
    """
    for index in _defining(program, name):
        if by is _By.READ:
            yield from effects.of(index.properties.get(name, ()))
        else:
            yield from effects.of(index.functions.get(name, ()))
            for value in index.bound.get(name, ()):
                yield from _of_value(value, by)


def _of_value(value: ast.expr, by: _By) -> Iterator[Summary | _Lead]:
    """What can run where the value of an expression is called: it is not computed again."""
    if isinstance(value, ast.Lambda):
        yield from effects.of([value])
        return
    own, *inner = effects.of([value])
    made = [value.func] if isinstance(value, ast.Call) and by is _By.CALL else []
    yield from (
        (name, _By.GIVEN) for name in own.does.given | {reach.last(each) for each in (value, *made)}
    )
    yield from inner


def may_of_side(
    program: Program, file: str, test: sides.Place, holds: bool, wanted: May, *, in_try: bool = True
) -> bool:
    """Whether what an answer of the test at a place leads to can have one of these effects.

    What is bound before an exception is not seen behind it, and that its message is made has no
    effect; where a handler can catch it, anything can follow. A test that no branch of the syntax
    asks (`model.train(flag)`) decides on a value.
    """
    source = program.source(Path(file))
    found = sides.of(source.tree).get(test) if source is not None else None
    if found is None:
        return bool(wanted & May.BIND)
    if found.gives and wanted & May.BIND:
        return True
    block = found.of(holds)
    if wanted & May.LEAVE and sides.leaves(block):
        return True
    before = [each for each in block if not isinstance(each, ast.Raise)]
    if len(before) == len(block):
        return may(program, block, wanted)
    return in_try or may(program, before, wanted & ~May.BIND)


def _defining(program: Program, name: str) -> Iterator[meanings.Meanings]:
    """The files that have a function of this name, or bind something to it, of those that imports
    connect with the entry: what stands beside them in a folder of programs is never run by it.
    """
    for source in tuple(_meanings(program).get(name, ())):
        if _is_connected(program, source):
            program.dependencies.asked.add((source.code.path, parts.WHOLE))
            yield meanings.of(source.tree)


def _is_connected(program: Program, source: Source) -> bool:
    if program.entered is None or (source.code.path, parts.PARSES) in program.dependencies.asked:
        return True
    return _root(program, source.path) == _root(program, program.entered)


def _root(program: Program, path: Path) -> Path:
    """What stands for all the files that imports connect with one (a forest of disjoint sets)."""
    while (above := program.above.get(path, path)) != path:
        program.above[path] = path = program.above.get(above, above)
    return path


def _connect(program: Program, source: Source) -> None:
    for module, level in imports(source.tree):
        imported = program.resolve(source.path, module, level)
        if imported is not None:
            program.above[_root(program, imported)] = _root(program, source.path)


def _meanings(program: Program) -> dict[str, list[Source]]:
    """The files that give each name a meaning, of all that the program has read so far."""
    for source in program.in_view[program.indexed :]:
        _connect(program, source)
        index = meanings.of(source.tree)
        for name in index.functions.keys() | index.bound.keys() | index.fields:
            program.meanings.setdefault(name, []).append(source)
    program.indexed = len(program.in_view)
    return program.meanings


def _is_field(program: Program, name: str) -> bool:
    """Whether some object has a value under this name, and no method: `self.step = 0`."""
    return any(name in index.fields for index in _defining(program, name))


def _is_of_library(name: str) -> bool:
    return name in _library() or lookup(name) is not None


@functools.cache
def _library() -> frozenset[str]:
    """The names of the functions and methods of libraries whose behaviour is modelled."""
    return frozenset(
        [name for _, name in METHODS] + [name.rpartition(".")[2] for name in FUNCTIONS]
    )
