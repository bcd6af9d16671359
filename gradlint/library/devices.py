"""Devices: which of them a path of the program chooses, and what it puts on them.

Each `torch.device` that is made is a fact `device`; its `detail` is the type. A device made of
something unknown has the type `unknown`; asking for its type is asking what it was made of, so that
`args.device == "cuda"` and `torch.device(args.device).type == "cuda"` are one question.

Each place that puts something on a device (`.to(device)`, `.cuda()`, `device=`) is a fact `placed`,
written when the path has been run and all that was decided on it is known. Its `detail` has the
types that the device can have there: `cpu`, or `cpu cuda mps` for a command-line argument, or
`unknown`.

A place at which the device itself stands, `.cuda()` or `.to("cuda")`, and no variable, is a fact
`named`, too. Its `detail` is an argument of the function whose device it could be, if there is one.

Each call of what raises without CUDA, such as `torch.cuda.synchronize()`, is a fact `needs-cuda`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret.registry import attribute, fallback, function, guesses, method, on
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import NONE, Abstract, Call, Const, Object, Sequence, Tensor, Unknown
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

DEVICE = "torch.device"
TYPES = ("cpu", "cuda", "mps", "xpu")
_USUAL = ("cpu", "cuda", "mps")
_ACCELERATORS = ("cuda", "mps", "xpu")
NEEDS_CUDA = frozenset(
    f"torch.cuda.{name}"
    for name in (
        "Stream", "cudart", "current_blas_handle", "current_device", "current_stream",
        "default_stream",
        "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
        "init", "ipc_collect", "mem_get_info", "reset_accumulated_memory_stats",
        "reset_peak_memory_stats", "set_device", "synchronize",
    )
)  # fmt: skip
_Stack = tuple[Span, ...]


@function(DEVICE)
def device(m: Machine, call: Call) -> Abstract:
    """`torch.device("cuda:0")`, `torch.device("cuda", 0)`, `torch.device(other)`."""
    given = call.get(0, "device") or call.get(None, "type") or NONE
    if isinstance(given, Object) and given.cls == DEVICE:
        return given
    made = Object(
        DEVICE, call.frame.span(call.node), {"given": given, "index": call.get(1, "index")}
    )
    m.emit(
        tape.Fact(
            at=made.at,
            what="device",
            detail=type_of(m, made) or "unknown",
            text=call.frame.text(call.node),
        )
    )
    return made


@function("torch.accelerator.current_accelerator")
def current_accelerator(m: Machine, call: Call) -> Abstract:
    """The accelerator that there is, or None."""
    given = Unknown(m.session.library_symbol(call.name), data=True, type="str")
    m.state.setdefault("accelerators", set()).add(given.symbol)
    return Object(DEVICE, call.frame.span(call.node), {"given": given, "nullable": True})


def type_of(m: Machine, given: Abstract | None) -> str | None:
    """The device type that a value names on this path: of a string, or of a `torch.device`."""
    if isinstance(given, Object) and given.cls == DEVICE:
        inner = given.state.get("given")
        return type_of(m, inner) if isinstance(inner, Abstract) else None
    if isinstance(given, Unknown):
        known = m.oracle.facts.equal.get(given.symbol.asked)
        given = Const(known) if isinstance(known, str) else m.concrete.get(given.symbol, given)
    if isinstance(given, Const) and isinstance(given.value, str):
        return given.value.partition(":")[0]
    if (
        isinstance(given, Const)
        and isinstance(given.value, int)
        and not isinstance(given.value, bool)
    ):
        return "cuda"
    return None


@function("torch.set_default_device", "torch.set_default_tensor_type")
def set_default(m: Machine, call: Call) -> Abstract:
    """What is made from here on lies elsewhere, or is of another dtype."""
    m.state["default-set"] = True
    return NONE


@method(DEVICE, "__enter__")
def enter_device(m: Machine, made: Object, call: Call) -> Abstract:
    """`with torch.device("cuda"): …`."""
    m.state["default-set"] = True
    return made


@attribute(DEVICE, "type")
def device_type(m: Machine, made: Object, at: Call) -> Abstract:
    """`device.type`."""
    known = type_of(m, made)
    if known is not None:
        return Const(known)
    given = made.state.get("given")
    return Unknown(m.symbol(given if isinstance(given, Abstract) else made), data=True)


@guesses("type")
def type_of_unknown(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """`device.type` of something that is a device by its name or annotation: no method of a
    tensor.
    """
    is_device = "device" in unknown.symbol.text.rpartition(".")[2] or unknown.type == "object"
    if not is_device:
        return None
    return Unknown(
        unknown.symbol.derive(("attribute", "type"), f"{unknown.symbol.text}.type"), data=True
    )


@attribute(DEVICE, "index")
def index(m: Machine, made: Object, at: Call) -> Abstract:
    """`device.index`."""
    found = made.state.get("index")
    return (
        found
        if isinstance(found, Abstract)
        else Unknown(m.symbol(made).derive("index", "device.index"), data=True)
    )


# what is put where


def place(m: Machine, moved: Abstract, call: Call) -> None:
    """Takes down that `.to(…)` or `.cuda(…)` puts something on a device."""
    given = _destination(call)
    if given is not None:
        _note(m, given, call, moved)


def goes_to(m: Machine, call: Call) -> str | None:
    """The device type that `.to(…)`, `.cpu()` or `.cuda()` asks for on this path, where it is
    known.
    """
    given = _destination(call)
    return "cpu" if given is None and call.called == "cpu" else type_of(m, given)


def is_made_there(m: Machine, values: Iterable[tape.Value], call: Call) -> bool:
    """Whether one of these was made on the device that `.to(…)` names, or sent there, or that is
    its device.
    """
    given = _destination(call)
    if given is None:
        return False
    asked = m.symbol(given)
    if m.session.contract and _is_of_a_value(asked):
        return True  # a trainer has the module and what it is given on one device
    owners: list[tape.Value | None] = []
    if asked.source is not None and _is_of_a_value(asked):
        owners = [*m.values_of({asked.source}), m.nodes.get(asked.source)]
    made_there = {
        at
        for (at, _, _), (_, there) in m.state.get("placed", {}).items()
        if m.symbol(there) is asked
    }
    sent = _sent(m)
    return any(
        not made_there.isdisjoint([value.at, *sent.get(id(value), ())])
        or any(value is owner for owner in owners)
        for value in values
    )


def _is_of_a_value(device: Symbol) -> bool:
    """Whether a device is that of something: `x.device`."""
    return device.source is not None and device.key in ("device", ("attribute", "device"))


def is_from_out_of_view(m: Machine, values: Iterable[tape.Value]) -> bool:
    """Whether only code out of view knows the device of one of these: of an argument, or of data
    that was sent on.
    """
    sent = _sent(m)
    return any(
        value.kind is tape.Kind.UNKNOWN or (value.op == "input" and id(value) in sent)
        for value in values
    )


def send(m: Machine, moved: tape.Value | Symbol, call: Call) -> None:
    """Takes down that what stays one tensor here is sent somewhere."""
    at: list[Span] = m.state.setdefault("sent", {}).setdefault(
        moved if isinstance(moved, Symbol) else id(moved), []
    )
    at.append(call.frame.span(call.node))


def _sent(m: Machine) -> dict[int, list[Span]]:
    """Where tensors are sent somewhere, by their ids: these themselves, or what they were copied
    from out of view.
    """
    sent: dict[int | Symbol, list[Span]] = m.state.get("sent", {})
    found = {moved: list(at) for moved, at in sent.items() if isinstance(moved, int)}
    for symbol, value in m.nodes.items() if len(found) < len(sent) else ():
        source: Symbol | None = symbol
        while source is not None and source not in sent:
            source = source.source
        if source is not None:
            found.setdefault(id(value), []).extend(sent[source])
    return found


def _destination(call: Call) -> Abstract | None:
    if call.called == "to":
        return call.kwargs.get("device") or next(
            (value for value in call.args if names_device(value)), None
        )
    return Const("cuda") if call.called == "cuda" else None


@fallback
def made_on_device(m: Machine, call: Call) -> Abstract | None:
    """`torch.zeros(3, device="cuda")`."""
    note_device(m, call)
    if call.name in NEEDS_CUDA:
        m.emit(
            tape.Fact(
                at=call.frame.span(call.node), what="needs-cuda", text=call.frame.text(call.node)
            )
        )
    return None


@function("torch.Generator")
def generator(m: Machine, call: Call) -> Abstract:
    """`torch.Generator("cuda")`."""
    given = call.get(0, "device")
    if given is not None and not (isinstance(given, Const) and given.value is None):
        _note(m, given, call)
    return m.unknown(call.name, data=True, type="object")


def note_device(m: Machine, call: Call) -> None:
    """Takes down the device that something is made on, where it is given."""
    given = call.kwargs.get("device")
    if (
        given is not None
        and call.name.startswith("torch.")
        and not (isinstance(given, Const) and given.value is None)
    ):
        _note(m, given, call)


def names_device(value: Abstract) -> bool:
    """Whether an argument of `.to(…)` can be a device."""
    if isinstance(value, Const):
        return isinstance(value.value, str | int)
    return (isinstance(value, Object) and value.cls == DEVICE) or (
        isinstance(value, Unknown) and value.type in ("", "str", "object")
    )


def _note(m: Machine, given: Abstract, call: Call, moved: Abstract | None = None) -> None:
    placed: dict[tuple[Span, _Stack, int], tuple[str, Abstract]] = m.state.setdefault("placed", {})
    at, text = call.frame.span(call.node), call.frame.text(call.node)
    placed[at, m.where, id(given)] = (text, given)
    if _is_written(call):
        m.emit(tape.Fact(at=at, what="named", text=text, detail=_beside(call, moved)))


def _beside(call: Call, moved: Abstract | None) -> str:
    """The argument of the function around a call that is a tensor where the parameters are: any of
    a module's method, and what was computed with gradient of another function. What is `moved`,
    and what that was computed from, is where it is not to stay.
    """
    function, receiver = call.frame.function, call.frame.receiver
    is_module = receiver is not None and receiver.module is not None
    if function is None or not (moved is None or isinstance(moved, Tensor)):
        return ""
    behind = [] if moved is None else list(tape.ancestors(moved.node))
    for parameter in function.node.parameters:
        value = call.frame.locals.get(parameter.name)
        if not isinstance(value, Tensor) or any(value.node is each for each in behind):
            continue
        if value.node.parameter is None and (is_module or value.node.requires_grad):
            return str(parameter.name)
    return ""


def _is_written(call: Call) -> bool:
    """Whether a device stands in the call: `.cuda()`, `.to("cuda")`, `device=torch.device("cuda")`;
    no variable.
    """
    if not isinstance(call.node, ir.Call):
        return False
    given = [value for name, value in call.node.kwargs if name == "device"] or call.node.args
    inner = [arg for each in given if isinstance(each, ir.Call) for arg in each.args]
    return call.called == "cuda" or any(
        isinstance(each, ir.Literal | ir.Format) for each in (*given, *inner)
    )


@on("end")
def note_places(m: Machine) -> None:
    """The facts `placed`: with all that this path has learned of its devices."""
    told: set[tuple[Span, _Stack, str]] = set()
    for (at, stack, _), (text, given) in m.state.get("placed", {}).items():
        detail = " ".join(possible_types(m, given)) or "unknown"
        if (at, stack, detail) not in told:
            told.add((at, stack, detail))
            fact = tape.Fact(at=at, what="placed", detail=detail, text=text)
            m.emit(fact)
            fact.stack = stack  # where it was put there, not where this is told


def possible_types(m: Machine, given: Abstract) -> list[str]:
    """The types that a device can have on this path; empty where nothing is known of it."""
    known = type_of(m, given)
    if known is not None:
        return [known]
    while isinstance(given, Object):
        inner = given.state.get("given")
        if not isinstance(inner, Abstract):
            return []
        given = inner
    if not isinstance(given, Unknown):
        return []
    excluded = [
        name
        for name in TYPES
        if m.oracle.facts.known(Test(given.symbol.asked, "==", name)) is False
    ]
    return [name for name in _offered(m, given.symbol) if name not in excluded]


def _offered(m: Machine, symbol: Symbol) -> tuple[str, ...]:
    """What a command-line argument lets the user choose from; every accelerator for the current
    one.
    """
    if symbol in m.state.get("accelerators", ()):
        return _ACCELERATORS
    choices, default = m.state.get("options", {}).get(symbol) or (None, None)
    if isinstance(choices, Sequence) and not choices.open:
        names = [type_of(m, item) for item in choices.items]
        return tuple(sorted({name for name in names if name in TYPES}))
    return _USUAL if type_of(m, default) in ("cpu", "mps", "xpu") else ()
