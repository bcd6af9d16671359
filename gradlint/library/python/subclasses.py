"""Objects of the program's own kinds of dict and list: what they contain lies in `state`, as with a
`ModuleList`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.items import set_item as put
from gradlint.interpret.iteration import iterates
from gradlint.interpret.keys import hashable
from gradlint.interpret.registry import FUNCTIONS, METHODS, MethodHandler, method
from gradlint.interpret.subscripts import item
from gradlint.interpret.tables import Visit
from gradlint.interpret.values import NONE, Abstract, Call, Class, Instance, Mapping, Sequence

# what these register is taken over
from gradlint.library.python import containers, mappings, sequences  # noqa: F401
from gradlint.library.python.results import argument

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_KINDS = {"builtins.dict": "dict", "collections.OrderedDict": "dict", "builtins.list": "list"}


def _contents(made: Instance, kind: str) -> Sequence | Mapping:
    """What an object contains; anything, where the `__init__` of the dict or list never ran."""
    if "items" not in made.state:
        made.state["items"] = (
            Mapping({}, open=True) if kind == "dict" else Sequence("list", [], open=True)
        )
    return made.state["items"]  # type: ignore[no-any-return]


def _taken_over(kind: str, handler: MethodHandler) -> MethodHandler:
    return lambda m, made, call: handler(m, _contents(made, kind), call)


def _inherit(base: str, kind: str) -> None:
    for owner, name in [*METHODS]:
        if owner == kind and name != "fromkeys":
            method(base, name)(_taken_over(kind, METHODS[owner, name]))

    @method(base, "__init__")
    def initialise(m: Machine, made: Instance, call: Call) -> Abstract:
        """What the object is made with; of one that is entered, other methods have put in more."""
        given = Call(base, call.args, call.kwargs, call.node, call.frame, call.open)
        contents = FUNCTIONS[base](m, given)
        assert isinstance(contents, Sequence | Mapping)
        contents.open = contents.open or m.oracle.prepares
        made.state["items"] = contents
        return NONE

    @method(base, "__getitem__")
    def get_item(m: Machine, made: Instance, call: Call) -> Abstract:
        """`made[key]`."""
        contents, absent = _contents(made, kind), m.session.member_of(made.cls, "__missing__")
        key = argument(m, call)
        if (
            absent is not None
            and isinstance(contents, Mapping)
            and hashable(key) not in contents.items
        ):
            return m.invoke(absent, [made, key], call)
        return item(m, contents, key, call.node, call.frame)

    @method(base, "__setitem__")
    def set_item(m: Machine, made: Instance, call: Call) -> Abstract:
        """`made[key] = value`."""
        put(
            m, _contents(made, kind), argument(m, call), argument(m, call, 1), call.node, call.frame
        )
        return NONE

    @method(base, "__delitem__")
    def delete_item(m: Machine, made: Instance, call: Call) -> Abstract:
        """`del made[key]`."""
        return m.call(m.attribute(_contents(made, kind), "pop", call), call)

    @iterates(base)
    def over(m: Machine, made: Instance, visit: Visit, call: Call) -> None:
        m.iterate(_contents(made, kind), visit, call)


for _base, _kind in _KINDS.items():
    _inherit(_base, _kind)


@method(("builtins.dict", "collections.OrderedDict"), "class.fromkeys")
def from_keys(m: Machine, cls: Class, call: Call) -> Abstract:
    """`Kind.fromkeys(keys, value)`: an object of the class that it is called on."""
    made = m.call(cls, Call(call.name, [], {}, call.node, call.frame))
    if isinstance(made, Instance):
        made.state["items"] = mappings.from_keys(m, call)
    return made


@method(("builtins.dict", "collections.OrderedDict"), "fromkeys")
def from_keys_of_class(m: Machine, made: Instance, call: Call) -> Abstract:
    """`made.fromkeys(keys, value)`."""
    return from_keys(m, made.cls, call)
