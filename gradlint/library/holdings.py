"""What a module comes to hold: tensors that become attributes, parameters in plain containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.registry import on
from gradlint.interpret.values import (
    Abstract,
    Call,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.creation import WRITTEN_OUT
from gradlint.library.python import records
from gradlint.library.structure import is_module, is_parameter, named_parameters, unknown_parameters
from gradlint.tape import Cut, Kind, Value, leaves

if TYPE_CHECKING:
    from gradlint.finding import Span
    from gradlint.interpret.machine import Machine
MAX_DEPTH = 3  # how deep containers are searched for modules


_BEGINS = frozenset(
    f"torch.{name}"
    for name in (
        "zeros",
        "ones",
        "full",
        "empty",
        "rand",
        "randn",
        "normal",
        "eye",
        "linspace",
        "logspace",
    )
)


def attached(m: Machine, owner: Instance | Object, name: str, part: Abstract, call: Call) -> None:
    """Takes down that `part` became `owner.name`."""
    at = call.frame.span(call.node)
    is_meant = isinstance(part, Tensor) and is_module(owner) and _is_meant_to_be_trained(part.node)
    if isinstance(part, Sequence | Mapping) or _is_record(part) or is_meant:
        m.state.setdefault("plain-containers", []).append((owner, name, part, call))
    if m.state.get("optimizers"):
        for tensor in parameters_in(m, part, call):
            m.emit(tape.Fact(at=at, what="attached", value=tensor.node, detail=name))
    if isinstance(part, Tensor) and _replaces_parameter(owner, name, part.node):
        m.emit(
            tape.Fact(
                at=at, what="non-leaf-attribute", value=part.node, text=call.frame.text(call.node)
            )
        )
    if isinstance(part, Tensor) and part.node.kind is Kind.PARAMETER:
        frozen = _frozen_before(m, owner, name)
        if (
            frozen is not None
            and part.node.requires_grad
            and (how := _in_its_place(m, part, frozen))
        ):
            m.emit(
                tape.Fact(
                    at=at,
                    what="frozen-in-vain",
                    value=part.node,
                    detail=how,
                    text=call.frame.text(call.node),
                )
            )


def _is_meant_to_be_trained(node: Value) -> bool:
    """Whether it is a leaf that is made to be trained, or new numbers that were computed from such
    leaves alone, which have no names: `self.gain = torch.ones(n, requires_grad=True) / 8`. So are
    numbers from parameters that no module has so far.

    A view of one is more often points of a grid, whose derivatives somebody asks for.
    """
    if node.kind is not Kind.OPERATION:
        return _is_made_to_be_trained(node)
    known = [leaf for leaf in leaves(node) if leaf.kind is not Kind.UNKNOWN or not leaf.assumed]
    return bool(known) and all(
        _is_loose(leaf)
        or (_is_made_to_be_trained(leaf) and not leaf.name and leaf.storage is not node.storage)
        for leaf in known
    )


def _is_loose(value: Value) -> bool:
    """Whether it is a parameter under a name of its own that no module has:
    `table = nn.Parameter(x)`.
    """
    parameter = value.parameter
    is_made = value.kind is Kind.PARAMETER and bool(value.name)
    return is_made and parameter is not None and parameter.module is None


def _is_made_to_be_trained(node: Value) -> bool:
    """Whether it is a leaf that begins as numbers which the program writes or draws, not as data:
    no input, say.
    """
    begins = (node, *node.inputs)  # `torch.zeros(n).requires_grad_()` is a leaf made of a constant
    return node.kind is Kind.LEAF and (
        any(each.op in _BEGINS for each in begins) or node.flags >= WRITTEN_OUT
    )


def _replaces_parameter(owner: Instance | Object, name: str, node: Value) -> bool:
    """Whether a cast of a parameter takes the name of a registered one (torch raises), or what was
    computed from one that is made on the spot stands for it: no module ever holds that. What else
    it is computed from can be numbers.
    """
    if node.kind is not Kind.OPERATION or not node.requires_grad:
        return False
    known = [leaf for leaf in leaves(node) if not (leaf.kind is Kind.UNKNOWN and leaf.assumed)]
    if known and all(map(is_nowhere, known)):
        return True
    sources = [source for source in node.inputs if source.requires_grad]
    before = owner.attrs.get(name)
    return (
        "cast" in node.flags
        and bool(sources)
        and sources[0] is node.inputs[0]
        and isinstance(before, Tensor)
        and is_parameter(before)
    )


def is_nowhere(value: Value) -> bool:
    """Whether it is a parameter that was given no name: `nn.Parameter(x) * s`."""
    parameter = value.parameter
    return (
        value.kind is Kind.PARAMETER
        and parameter is not None
        and parameter.module is None
        and not value.name
    )


def _frozen_before(m: Machine, owner: Instance | Object, name: str) -> Tensor | None:
    """The frozen parameter that `owner.name` has been so far."""
    own = owner.state.get("parameters")
    before = owner.attrs.get(name) or (own.get(name) if isinstance(own, dict) else None)
    if (
        isinstance(before, Tensor)
        and before.node.cut is Cut.FROZEN
        and not before.node.requires_grad
    ):
        return before
    return None


def _in_its_place(m: Machine, part: Tensor, frozen: Tensor) -> str:
    """How a parameter takes the place of a frozen one and was to be frozen with it; "" where it may
    be trained.

    It is made from it, or it is put there before any training, and the freezing was of this one
    parameter.
    """
    if _comes_from(m, part, frozen):
        return "wrapped"
    return "replaced" if "frozen-by-name" in frozen.node.flags and not m.sinks else ""


def _comes_from(m: Machine, part: Tensor, frozen: Tensor) -> bool:
    source = m.state.get("wrapped", {}).get(id(part.node))
    return (
        any(value.parameter is frozen.node.parameter for value in tape.ancestors(source))
        if source is not None
        else False
    )


def parameters_in(m: Machine, part: Abstract, call: Call, depth: int = 0) -> Iterator[Tensor]:
    """The parameters of a module, of a parameter itself, or in a container of such."""
    if isinstance(part, Tensor):
        if is_parameter(part):
            yield part
    elif isinstance(part, Unknown) and part.type == "module":
        yield unknown_parameters(m, part, call)
    elif is_module(part):
        yield from (tensor for _, tensor in named_parameters(m, part, call))
    elif isinstance(part, Sequence | Mapping) and depth < MAX_DEPTH:
        for inner in part.items if isinstance(part, Sequence) else list(part.items.values()):
            yield from parameters_in(m, inner, call, depth + 1)
    elif isinstance(part, Instance | Object) and _is_record(part) and depth < MAX_DEPTH:
        for inner in list(part.attrs.values()):
            yield from parameters_in(m, inner, call, depth + 1)


def _is_record(part: Abstract) -> bool:
    """Whether it is of a dataclass or a named tuple, which hold what they are given as a dict
    does.
    """
    if is_module(part) or not isinstance(part, Instance | Object):
        return False
    return records.is_named_tuple(part) or (
        isinstance(part, Instance) and records.is_made_of_fields(part.cls)
    )


@on("end")
def note_plain_containers(m: Machine) -> None:
    """Which parameters lie in lists, tuples and dicts of a module, and nowhere among its registered
    parts; and which tensors require grad there that are no parameters.
    """
    for owner, name, container, call in m.state.get("plain-containers", []):
        if owner.attrs.get(name) is not container:
            continue
        if isinstance(container, Tensor) and container.node.kind is Kind.OPERATION:
            _note_result(m, container.node, call)
            continue
        registered = [tensor.node for _, tensor in named_parameters(m, owner, call)]
        known = {id(node.parameter) for node in registered}
        beside = next(
            (node for node in registered if _is_trained(m, node)),
            registered[0] if registered else None,
        )
        held = [container] if isinstance(container, Tensor) else parameters_in(m, container, call)
        for tensor in held:
            if id(tensor.node.parameter) not in known:
                at: Span = call.frame.span(call.node)
                path = f"{owner.module.path}.{name}" if owner.module is not None else name
                kind, node = _kind(container), tensor.node
                m.emit(
                    tape.Fact(
                        at=at,
                        what="plain-container",
                        value=node,
                        source=beside,
                        detail=path,
                        text=kind,
                    )
                )


def _note_result(m: Machine, node: Value, call: Call) -> None:
    """A fact `non-leaf-attribute` of what a module has and was computed from leaves: where a loss
    reaches those, and no gradient of it is asked for by name.
    """
    made_of = {id(leaf) for leaf in leaves(node)}
    if any(
        leaf.kind is Kind.PARAMETER and (not _is_loose(leaf) or _is_trained(m, leaf))
        for leaf in leaves(node)
    ):
        return
    sinks = m.tape.of(tape.Backward)
    asked = [value for sink in sinks for value in sink.inputs or ()]
    if any(made_of & {id(leaf) for leaf in leaves(value)} for value in asked):
        return
    if any(id(leaf) in made_of for sink in sinks for leaf in sink.leaves):
        at, text = call.frame.span(call.node), call.frame.text(call.node)
        m.emit(tape.Fact(at=at, what="non-leaf-attribute", value=node, text=text))


def _is_trained(m: Machine, node: Value) -> bool:
    """Whether an optimizer holds a parameter."""
    optimizers: list[tape.Optimizer] = m.state.get("optimizers", [])
    return node.parameter is not None and any(
        optimizer.holds(node.parameter) for optimizer in optimizers
    )


def _kind(container: Abstract) -> str:
    """What replaces a container: a list, a dict by text; "" where nothing does, "records" where it
    has some.

    A tensor is replaced by a parameter. What is found by other keys than texts, or by the fields of
    a record, can be held by a list beside it: "modules by key", "parameters by field: mean scale".
    """
    if isinstance(container, Tensor):
        return "tensor"
    if isinstance(container, Mapping):
        if any(map(_is_record, container.items.values())):
            return "records"
        if container.items and all(isinstance(key, str) for key in container.items):
            return "dict"
        return _held_beside(container.items.values(), "key")
    if isinstance(container, Instance | Object) and _is_record(container):
        return _held_beside(container.attrs.values(), f"field: {' '.join(container.attrs)}")
    if not isinstance(container, Sequence):
        return ""
    return "records" if any(map(_is_record, container.items)) else "list"


def _held_beside(held: Iterable[Abstract], by: str) -> str:
    """What all that a container holds is, which a list can hold beside it."""
    found = {
        "modules"
        if is_module(each)
        else "parameters"
        if isinstance(each, Tensor) and each.node.parameter
        else ""
        for each in held
    }
    return f"{found.pop()} by {by}" if len(found) == 1 and "" not in found else ""


def loaded(m: Machine, parameter: Tensor, source: Tensor, call: Call) -> None:
    """Copies values into a parameter, as `load_state_dict` does: a fact `values-loaded`."""
    at, text = call.frame.span(call.node), call.frame.text(call.node)
    m.emit(
        tape.Fact(
            at=at,
            what="values-loaded",
            value=parameter.node,
            source=source.node,
            detail=call.name,
            text=text,
        )
    )


@on("used up")
def used_up(m: Machine, generator: Sequence, call: Call) -> None:
    """A generator that has been used up is used again: worth saying where it held parameters."""
    for item in generator.items:
        held = (
            item.items[-1]
            if isinstance(item, Sequence) and item.kind == "tuple" and item.items
            else item
        )
        if isinstance(held, Tensor) and held.node.kind is Kind.PARAMETER:
            related = (
                ((generator.consumed, "used up here"),) if generator.consumed is not None else ()
            )
            at, text = call.frame.span(call.node), call.frame.text(call.node)
            m.emit(tape.Fact(at=at, what="exhausted", value=held.node, related=related, text=text))
            return


def constant_zero(value: Abstract) -> bool:
    """Whether a tensor was made of zeros, or was just filled with them:
    `torch.empty(2).zero_()`.
    """
    if not isinstance(value, Tensor):
        return False
    is_filled = value.node.op == "torch.Tensor.zero_" and not value.node.requires_grad
    return is_filled or (value.node.kind is Kind.CONSTANT and "zeros" in value.node.op)


def reads_gradient(m: Machine, tensor: Tensor, call: Call) -> None:
    """`.grad` of what is no leaf stays None, unless it was asked to be kept or was assigned."""
    node = tensor.node
    if (
        node.kind is not Kind.OPERATION
        or not node.records
        or node.assumed
        or id(node) in m.state.get("grad-kept", set())
    ):
        return
    made_of = [
        source
        for source in node.inputs
        if source.kind in (Kind.LEAF, Kind.PARAMETER) and not source.assumed
    ]
    others = [source for source in node.inputs if source.requires_grad and source not in made_of]
    if made_of and not others:
        m.emit(
            tape.Fact(
                at=node.at,
                what="non-leaf-grad",
                value=node,
                related=((call.frame.span(call.node), "read here"),),
            )
        )
