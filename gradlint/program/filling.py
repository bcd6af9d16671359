"""Containers that other statements fill: registries, into which decorators and imports put entries.

MODELS = {}                 # models/registry.py

@register(MODELS)           # models/resnet.py: executed when `MODELS` is first looked up
class ResNet(nn.Module): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import calm
from gradlint.interpret.machine import Raised
from gradlint.interpret.scopes import Frame
from gradlint.interpret.values import Abstract, Class, Instance, Mapping, Object, Sequence
from gradlint.program import parts, registries
from gradlint.program.importers import importers

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.ir import nodes as ir
    from gradlint.program.modules import Program
    from gradlint.program.sources import Source

# statements that are executed for what they register in one container; it is left open to the rest
MOST_FILLING = 64


def is_filled(value: Abstract) -> bool:
    """Whether other statements of a program can register something in a value."""
    if isinstance(value, Class):
        return "__init_subclass__" in value.namespace
    return isinstance(value, Mapping | Sequence | Instance | Object)


def fill(program: Program, m: Machine, frame: Frame, name: str) -> None:
    """Executes what registers something in the container `name` of a module, there and in the files
    that import it.
    """
    assert frame.source is not None
    with program.dependencies.working_out(frame, name), m.oracle.registering():
        statements = _registering(program, frame, frame.source, name)
        for scope, statement in statements[:MOST_FILLING]:
            # a statement that leads here while it is executed is not executed within itself
            if scope.source is not None and not program.is_running(statement):
                _execute(program, m, scope, statement)
    _leave_open(frame.locals[name])
    if len(statements) > MOST_FILLING:
        _leave_unfinished(frame.locals[name])


def _execute(program: Program, m: Machine, scope: Frame, statement: ir.Node) -> None:
    with program.running(statement):
        try:
            with calm.module_code(m):
                m.execute([statement], scope)
        except Raised:
            pass  # the other statements register what they do all the same


def _registering(
    program: Program, frame: Frame, source: Source, name: str
) -> list[tuple[Frame, ir.Node]]:
    """The statements that register something in a container, each with its module."""
    key = (source.path, name)
    if key not in program.registering:
        program.dependencies.ask(frame, parts.fills(name))
        names = registries.reaching(source.tree, name)
        found = _filling(frame, source, names)
        held = frame.locals[name]
        # a dict that is written down with its entries is taken for complete
        is_open = isinstance(held, Instance | Class) or not getattr(held, "items", True)
        for beside in importers(program, source, names) if is_open else ():
            scope = program.frame(beside.path) if len(found) <= MOST_FILLING else None
            if scope is not None:
                found += _filling(scope, beside, names)
        program.registering[key] = found
    return program.registering[key]


def _filling(scope: Frame, source: Source, names: frozenset[str]) -> list[tuple[Frame, ir.Node]]:
    found = registries.filling(source.tree, names)
    return [(scope, statement) for statement in source.at(found)]


def _leave_open(registry: Abstract) -> None:
    """Takes an object's empty dicts for filled from files that are out of view: by an import whose
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
