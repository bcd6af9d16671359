"""Torch's operations on tensors, methods and functions alike, as the table of effects says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, counts, memory, tensors
from gradlint.interpret.registry import (
    attribute,
    fallback,
    find_method,
    function,
    method,
    notify,
)
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import FALSE, NONE, TRUE, Abstract, Call, Tensor, Unknown
from gradlint.library import losses
from gradlint.library.creation import created
from gradlint.library.effects import Effect, lookup
from gradlint.library.masks import ask_of_count
from gradlint.library.results import in_place, result
from gradlint.library.sizes import axes, holds_floats, size, truth_of

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_COUNTING = {"any": (">", 0), "sum": None, "count_nonzero": None}
_PREDICATES = {
    "is_floating_point",
    "is_cuda",
    "is_contiguous",
    "is_complex",
    "is_sparse",
    "is_nonzero",
    "equal",
    "allclose",
}
_ELEMENTS = ("numel", "nelement")
_SHAPES = {
    "numel",
    "nelement",
    "element_size",
    "get_device",
    "stride",
    "data_ptr",
    "storage_offset",
}


@method("torch.Tensor", "*")
def tensor_method(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    """Any method of a tensor that has no handler of its own."""
    name = call.name
    effect = lookup(name)
    if name == "size":
        return size(m, tensor, call)
    if name in ("dim", "ndimension"):
        return axes(m, tensor)
    is_of_floats = truth_of(holds_floats(m, tensor.node)) if name == "is_floating_point" else None
    if is_of_floats is not None:
        return is_of_floats
    if name in _SHAPES or name in _PREDICATES or name.startswith("is_"):
        symbol = m.symbol(tensor).derive(
            (name, tuple(m.symbol(arg) for arg in call.values)), f"{tensor.node.title}.{name}()"
        )
        if name in _ELEMENTS:
            counts.learn(m, tensor, symbol)
        return Unknown(
            symbol,
            data=True,
            type="bool" if name.startswith("is_") or name in _PREDICATES else "number",
        )
    if effect is not None and effect.in_place:
        return in_place(m, tensor, name, call.args, call, effect)
    if effect is not None and effect.creates:
        return created(m, f"torch.Tensor.{name}", call, effect, like=tensor)
    made = result(m, f"torch.Tensor.{name}", [tensor, *call.args], call, effect, is_method=True)
    if name in _COUNTING and isinstance(made, Tensor) and not call.values:
        ask_of_count(m, tensor, made, name)
    return made


@fallback
def torch_function(m: Machine, call: Call) -> Abstract | None:
    """Any function of torch that has no handler of its own."""
    name = call.name
    if not name.startswith("torch.") or not _is_operation(name):
        return None
    effect = lookup(name)
    if effect is None:
        return _unlisted(m, call)
    if _is_done_by_a_method(call):
        return _as_method(m, call)
    if effect.creates and not effect.in_place:
        return created(m, name, call, effect, like=_first_tensor(call))
    if effect.in_place or call.constant(None, "inplace") is True:
        return _functional_in_place(m, call, effect)
    if name.startswith("torch.Tensor.") and call.args and isinstance(call.args[0], Tensor):
        return _as_method(m, call)
    losses.refuses(m, name, call)
    made = result(m, name, call.args, call, effect, is_method=False)
    if isinstance(made, Tensor):
        losses.computed(m, name, made.node, call.frame.text(call.node))
    out = call.kwargs.get("out")
    if isinstance(out, Tensor) and isinstance(made, Tensor):
        return _out(m, out, made, call)
    return made


def _is_operation(name: str) -> bool:
    """Whether a name is one of an operation on tensors: `torch.sin`, `torch.linalg.norm`."""
    return name.count(".") == 1 or name.startswith(
        ("torch.Tensor.", "torch.nn.functional.", *_NAMESPACES)
    )


def _is_done_by_a_method(call: Call) -> bool:
    """Whether the method of the same name has a handler: `torch.detach(x)` is `x.detach()`."""
    plain = call.name.rpartition(".")[2]
    has_handler = plain in _COUNTING or find_method("torch.Tensor", plain)
    return bool(has_handler) and isinstance(call.get(0, "input"), Tensor | Unknown)


def _as_method(m: Machine, call: Call) -> Abstract:
    """`torch.detach(x)`, `torch.Tensor.mean(x, 0)`: what the method of that name gives."""
    named = dict(call.kwargs)
    owner, rest = (call.args[0], call.args[1:]) if call.args else (named.pop("input"), [])
    if isinstance(owner, Unknown) and (rest or named):  # `torch.any(x > 0, dim=1)`
        owner = tensors.as_tensor(m, owner, call.node, call.frame)
    return m.invoke(m.attribute(owner, call.name.rpartition(".")[2], call), rest, call, **named)


_NAMESPACES = (
    "torch.linalg.",
    "torch.fft.",
    "torch.special.",
    "torch.sparse.",
    "torch.signal.",
    "torch.masked.",
)


def _first_tensor(call: Call) -> Tensor | None:
    return next((value for value in call.values if isinstance(value, Tensor)), None)


def _unlisted(m: Machine, call: Call) -> Abstract | None:
    """A name of torch that is no operation: `torch.manual_seed`, `torch.device`."""
    if call.name.startswith("torch.nn.functional."):
        return tensors.apply(
            m, call.name, call.args, call.node, call.frame, None, kwargs=call.kwargs
        )
    if (
        tensors.sources(m, call.values, call.node, call.frame)
        and call.name.rpartition(".")[2][:1].islower()
    ):
        return tensors.apply(
            m, call.name, call.args, call.node, call.frame, None, kwargs=call.kwargs
        )
    return Unknown(
        m.session.library_symbol(call.name).derive(call.frame.text(call.node), call.name), data=True
    )


def _functional_in_place(m: Machine, call: Call, effect: Effect) -> Abstract:
    """`F.relu(x, inplace=True)`, `torch.relu_(x)`: what torch takes there is a tensor."""
    written = call.get(0, "input")
    if not isinstance(written, Tensor | Unknown):
        return m.unknown(call.name)
    tensor = tensors.as_tensor(m, written, call.node, call.frame)
    twin = effect if effect.in_place else lookup(call.name.removesuffix("_") + "_") or effect
    return in_place(
        m, tensor, call.name.rpartition(".")[2].removesuffix("_") + "_", call.args[1:], call, twin
    )


def _out(m: Machine, out: Tensor, made: Tensor, call: Call) -> Tensor:
    """`out=`: torch refuses it where an input, or what is written, requires grad (2.13)."""
    sources = made.node.inputs
    refused = (
        "out"
        if m.grad.enabled and any(source.requires_grad for source in (out.node, *sources))
        else ""
    )
    return memory.write(m, out, f"{call.name}.out", sources, call.node, call.frame, refused=refused)


@attribute("torch.Tensor", "T")
@attribute("torch.Tensor", "mT")
@attribute("torch.Tensor", "real")
@attribute("torch.Tensor", "imag")
def transposed(m: Machine, tensor: Tensor, at: Call) -> Abstract:
    return memory.view(m, tensor, "torch.Tensor.T", at.node, at.frame)


@method("torch.Tensor", "pin_memory", "share_memory_", "rename")
def unchanged(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    return tensor


@method("torch.Tensor", "register_hook")
def register_hook(m: Machine, tensor: Tensor, call: Call) -> Abstract:
    if tensor.node.parameter is not None:
        m.emit(tape.Fact(at=call.frame.span(call.node), what="parameter-hooked", value=tensor.node))
    notify("data call", m, m.symbol(tensor), call)
    return m.unknown("hook", data=True)


@function("torch._assert", "torch._assert_async")
def assert_(m: Machine, call: Call) -> Abstract:
    """`torch._assert(condition, message)`: on a GPU the asynchronous one ends the program later."""
    value = conditions.asked(m, call.get(0, "condition") or NONE)
    conditions.assume(m, value, call.frame.span(call.node), call.frame.text(call.node))
    return NONE


@function("torch.is_tensor")
def is_tensor(m: Machine, call: Call) -> Abstract:
    value = call.get(0, "obj")
    if isinstance(value, Unknown) and value.type in ("", "tensor"):
        return conditions.boolean(
            m, Test(m.symbol(value).asked, "isa", "torch.Tensor"), call.frame.text(call.node)
        )
    return TRUE if isinstance(value, Tensor) else FALSE


@function("torch.einsum")
def einsum(m: Machine, call: Call) -> Abstract:
    return tensors.apply(m, call.name, call.args[1:], call.node, call.frame, lookup("matmul"))


_UNPICKLED = (
    "torch.load",
    *(f"{name}.{load}" for name in ("pickle", "cloudpickle", "dill") for load in ("load", "loads")),
)


@function(*_UNPICKLED, "torch.hub.load")
def loaded(m: Machine, call: Call) -> Abstract:
    """What a file or a configuration says: weights, a whole model, anything."""
    found = m.unknown(call.frame.text(call.node), data=call.name in _UNPICKLED)
    m.state.setdefault("loaded", set()).add(found.symbol)
    return found


@function(
    "torch.manual_seed",
    "torch.save",
    "torch.get_rng_state",
    "torch.set_rng_state",
)
def plain(m: Machine, call: Call) -> Abstract:
    return m.unknown(call.name, data=True, type="object")
