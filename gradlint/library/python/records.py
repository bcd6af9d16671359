"""Classes that are made from a list of fields: dataclasses, named tuples, enums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint.interpret.iteration import iterates
from gradlint.interpret.lineage import parent
from gradlint.interpret.registry import attribute, function, method
from gradlint.interpret.subscripts import item
from gradlint.interpret.tables import Visit
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Builtin,
    Call,
    Class,
    Const,
    Instance,
    Mapping,
    Object,
    Sequence,
)
from gradlint.library.python.results import argument, constant, fresh, place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_TUPLES = "typing.NamedTuple"


# dataclasses


@function("dataclasses.dataclass")
def dataclass(m: Machine, call: Call) -> Abstract:
    """`@dataclass` and `@dataclass(frozen=True)`."""
    if not call.args:
        return Builtin("dataclasses.dataclass", dataclass)
    if isinstance(call.args[0], Class):
        call.args[0].dataclass = True
    return call.args[0]


@function("dataclasses.field")
def field(m: Machine, call: Call) -> Abstract:
    """`field(default=…, default_factory=…)`."""
    state = {"default": call.kwargs.get("default"), "factory": call.kwargs.get("default_factory")}
    state["init"] = call.constant(None, "init", True)
    return Object(
        "dataclasses.field",
        place(call),
        {key: value for key, value in state.items() if value is not None},
    )


def fields(cls: Class) -> Iterator[str]:
    """The names of the annotated fields of a class, those of its bases first."""
    seen: dict[str, None] = {}
    for entry in reversed(cls.lineage()):
        if isinstance(entry, Class):
            seen.update(dict.fromkeys(entry.annotations))
    return iter(seen)


@function("dataclasses.asdict")
def asdict(m: Machine, call: Call) -> Abstract:
    """`asdict(x)`."""
    value = argument(m, call)
    if not isinstance(value, Instance):
        return Mapping(
            {}, open=True, at=place(call), symbol=m.symbol(value).derive("asdict", text(call))
        )
    return Mapping(
        {name: value.attrs[name] for name in fields(value.cls) if name in value.attrs},
        at=place(call),
    )


@function("dataclasses.astuple")
def astuple(m: Machine, call: Call) -> Abstract:
    """`astuple(x)`."""
    made = asdict(m, call)
    assert isinstance(made, Mapping)
    return Sequence("tuple", list(made.items.values()), made.open, at=place(call))


@function("dataclasses.replace", "copy.replace")
def replace(m: Machine, call: Call) -> Abstract:
    """`replace(x, field=value)`."""
    value = argument(m, call)
    if not isinstance(value, Instance):
        return m.unknown(text(call))
    return Instance(
        value.cls, {**value.attrs, **call.kwargs}, value.module, dict(value.state), at=place(call)
    )


@function("dataclasses.fields")
def fields_(m: Machine, call: Call) -> Abstract:
    """`fields(x)`."""
    value = argument(m, call)
    cls = value.cls if isinstance(value, Instance) else value
    if not isinstance(cls, Class):
        return Sequence("tuple", [], True, m.unknown("field", data=True))
    entries = [
        Object("dataclasses.Field", place(call), attrs={"name": Const(name)})
        for name in fields(cls)
    ]
    return Sequence("tuple", [*entries], at=place(call))


@function("dataclasses.is_dataclass")
def is_dataclass(m: Machine, call: Call) -> Abstract:
    """`is_dataclass(x)`."""
    value = argument(m, call)
    cls = value.cls if isinstance(value, Instance) else value
    if isinstance(cls, Class):
        return TRUE if is_made_of_fields(cls) else FALSE
    return fresh(m, call, "bool")


def is_made_of_fields(cls: Class) -> bool:
    """Whether a class is a dataclass, or inherits from one."""
    return any(isinstance(entry, Class) and entry.dataclass for entry in cls.lineage())


# named tuples


def named_tuple_class(name: str, names: list[str]) -> Builtin:
    """The class that `namedtuple(name, names)` gives."""

    def make(m: Machine, call: Call) -> Abstract:
        given = dict(zip(names, call.args, strict=False)) | call.kwargs
        attrs = {field: given.get(field) or m.unknown(field) for field in names}
        return Object(_TUPLES, place(call), {"fields": names}, attrs)

    return Builtin(name, make)


@method(_TUPLES, "__init__")
def initialise(m: Machine, receiver: Instance, call: Call) -> Abstract:
    """The fields of a `class Name(NamedTuple)`, in order."""
    given = dict(zip(fields(receiver.cls), call.args, strict=False)) | call.kwargs
    for name in fields(receiver.cls):
        default = receiver.cls.namespace.get(name)
        receiver.attrs[name] = given.get(name) or default or m.unknown(name)
    return NONE


def is_named_tuple(value: Instance | Object) -> bool:
    """Whether it is of a class that `NamedTuple` or `namedtuple` made."""
    return value.cls == _TUPLES if isinstance(value, Object) else _TUPLES in value.cls.libraries()


def parts(value: Instance | Object) -> dict[str, Abstract]:
    """The fields of a named tuple with their values."""
    names = fields(value.cls) if isinstance(value, Instance) else value.state["fields"]
    return {name: value.attrs[name] for name in names if name in value.attrs}


@iterates(_TUPLES)
def over_named_tuple(m: Machine, receiver: Instance | Object, visit: Visit, call: Call) -> None:
    """The fields in order."""
    for value in parts(receiver).values():
        if visit(value):
            return


@method(_TUPLES, "__len__")
def size(m: Machine, receiver: Instance | Object, call: Call) -> Abstract:
    """The number of fields."""
    return Const(len(parts(receiver)))


@method(_TUPLES, "__getitem__")
def part(m: Machine, receiver: Instance | Object, call: Call) -> Abstract:
    """`x[0]`."""
    values = Sequence("tuple", list(parts(receiver).values()))
    return item(m, values, call.args[0], call.node, call.frame) if call.args else NONE


@method(_TUPLES, "_asdict")
def as_dict(m: Machine, receiver: Instance | Object, call: Call) -> Abstract:
    """`x._asdict()`."""
    return Mapping(parts(receiver), at=place(call))


@method(_TUPLES, "_replace")
def replaced(m: Machine, receiver: Instance | Object, call: Call) -> Abstract:
    """`x._replace(field=value)`."""
    attrs = {**receiver.attrs, **call.kwargs}
    if isinstance(receiver, Instance):
        return Instance(receiver.cls, attrs, at=place(call))
    return Object(receiver.cls, place(call), receiver.state, attrs)


# enums


@function("enum.auto")
def auto(m: Machine, call: Call) -> Abstract:
    """`auto()`."""
    return Object("enum.auto", place(call))


for _mixed in ("enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag"):
    parent(_mixed, "enum.Enum")


@method("enum.Enum", "__init_subclass__")
def make_members(m: Machine, cls: Class, call: Call) -> Abstract:
    """Turns the constants of an enum class into its members; those of an `IntEnum` stay
    constants.
    """
    if any(
        base in ("enum.IntEnum", "enum.StrEnum", "builtins.int", "builtins.str")
        for base in cls.libraries()
    ):
        return NONE
    count = 0
    for name, value in cls.namespace.items():
        automatic = isinstance(value, Object) and value.cls == "enum.auto"
        if name.startswith("_") or not (isinstance(value, Const | Sequence) or automatic):
            continue
        given = value.value if isinstance(value, Const) else None
        count = count + 1 if automatic or not isinstance(given, int) else given
        attrs = {"value": Const(count) if automatic else value, "name": Const(name)}
        cls.namespace[name] = Instance(cls, attrs, state={"member": True})
    return NONE


def members(cls: Class) -> list[Abstract]:
    """The members of an enum class."""
    return [
        value
        for value in cls.namespace.values()
        if isinstance(value, Instance) and "member" in value.state
    ]


@iterates("type enum.Enum")
def over_members(m: Machine, cls: Class, visit: Visit, call: Call) -> None:
    """`for member in Split`."""
    constants = [
        value
        for name, value in cls.namespace.items()
        if isinstance(value, Const) and name[0] != "_"
    ]
    for value in members(cls) or constants or [m.unknown(text(call), data=True, type="object")]:
        if visit(value):
            return


@method("enum.Enum", "__new__")
def member(m: Machine, cls: Class, call: Call) -> Abstract:
    """`Mode("train")`: the member with that value."""
    wanted = call.constant(0, "value")
    for candidate in members(cls):
        if isinstance(candidate, Instance):
            value = candidate.attrs["value"]
            if isinstance(value, Const) and value.value == wanted and call.args:
                return candidate
    return m.unknown(text(call), data=True, type="object")


@attribute("enum.Enum", "value", "name")
def described(m: Machine, receiver: Abstract, call: Call) -> Abstract:
    """`member.value`, of a member that is not known."""
    return constant(call, None) if isinstance(receiver, Const) else m.unknown(text(call), data=True)
