"""`module._modules` and `module._parameters`: what a module has registered, by name; what is put in
is put in there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.iteration import iterates
from gradlint.interpret.registry import attribute, method
from gradlint.interpret.storage import set_attribute
from gradlint.interpret.values import Abstract, Call, Const, Instance, Mapping, Object
from gradlint.library.structure import MODULE, is_module, parts

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.tables import Visit

_MODULES, _PARAMETERS = f"{MODULE}._modules", f"{MODULE}._parameters"


@attribute(MODULE, "_modules", "_parameters")
def registered(m: Machine, module: Instance | Object, at: Call) -> Abstract:
    """The dictionary of one kind of parts."""
    return Object(f"{MODULE}.{at.name}", at.frame.span(at.node), {"module": module})


def _shown(registry: Object) -> Mapping:
    wants_modules = registry.cls == _MODULES
    found = {
        name: part
        for name, part in parts(registry.state["module"])
        if is_module(part) is wants_modules
    }
    return Mapping(dict(found), open=not found)


@method((_MODULES, _PARAMETERS), "__setitem__")
def put_in(m: Machine, registry: Object, call: Call) -> Abstract:
    """`module._modules[name] = part`."""
    name, part = call.args
    key = str(name.value) if isinstance(name, Const) else f"<{call.frame.text(call.node)}>"
    registry.state["module"].attrs.pop(key, None)  # what stood there is not asked what may follow
    set_attribute(m, registry.state["module"], key, part, call.node, call.frame)
    return part


@method((_MODULES, _PARAMETERS), "items", "keys", "values", "get", "__contains__", "__len__")
def as_shown(m: Machine, registry: Object, call: Call) -> Abstract:
    """What a dictionary of the parts says."""
    return m.call(m.attribute(_shown(registry), call.name.rpartition(".")[2], call), call)


@method((_MODULES, _PARAMETERS), "__delitem__", "pop")
def take_out(m: Machine, registry: Object, call: Call) -> Abstract:
    """`del module._parameters[name]`, `module._parameters.pop(name)`."""
    found = part(m, registry, call)
    registry.state["module"].attrs.pop(call.constant(0, "key"), None)
    return found


@method((_MODULES, _PARAMETERS), "__getitem__")
def part(m: Machine, registry: Object, call: Call) -> Abstract:
    """`module._modules[name]`."""
    found = _shown(registry).items.get(call.constant(0, "key"))
    return found if found is not None else m.unknown(call.frame.text(call.node), type="module")


@iterates(_MODULES, _PARAMETERS)
def names(m: Machine, registry: Object, visit: Visit, call: Call) -> None:
    """The names of the parts."""
    m.iterate(_shown(registry), visit, call)
