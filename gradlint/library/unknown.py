"""What attributes and methods of something unknown are taken for, by their names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import operands, tensors
from gradlint.interpret.attributes import is_looked_at, of_tensor
from gradlint.interpret.derived import derived
from gradlint.interpret.estimates import estimated
from gradlint.interpret.registry import find_method, guesses, method, notify
from gradlint.interpret.symbols import Symbol, is_collated
from gradlint.interpret.unknowns import call_unknown
from gradlint.interpret.values import (
    FALSE,
    NONE,
    Abstract,
    Builtin,
    Call,
    Const,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.library.devices import place, send
from gradlint.library.effects import lookup
from gradlint.tape import Kind

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_MOVES = (
    "to",
    "cuda",
    "cpu",
    "half",
    "float",
    "double",
    "bfloat16",
    "type",
    "share_memory_",
    "apply",
)
_WITHOUT_ARGUMENTS = ("half", "float", "double", "bfloat16")
# Names that objects of many kinds have: no sign of a tensor.
_SHARED = frozenset(
    [
        *_MOVES,
        "train",
        "eval",
        "requires_grad_",
        "parameters",
        "step",
        "update",
        "get",
        "copy",
        "index",
        "count",
        "add",
        "pop",
        "append",
        "extend",
        "remove",
        "insert",
        "sort",
        "split",
        "replace",
        "format",
        "join",
        "data",
        "values",
        "keys",
        "items",
        "name",
        "shape",
        "size",
        "T",
        "real",
        "imag",
        "set_",
        "where",
        "map",
        "masked",
        "put",
        "update_",
        "names",
        "device",
        "dtype",
        "layout",
        "grad",
        "H",
        "select",
    ]
)
_TENSOR_ONLY = frozenset(
    [
        "backward",
        "detach",
        "item",
        "tolist",
        "numpy",
        "requires_grad",
        "is_leaf",
        "grad_fn",
        "detach_",
        "new_tensor",
        "register_hook",
        "retain_grad",
    ]
)

_ENGINES = re.compile(
    r"accelerator|engine|fabric|booster|scaler|manager|trainer|amp|strategy|runner", re.I
)


@guesses()
def tensor_attribute(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """An attribute that tensors have, of something that may be one."""
    if unknown.type == "bool":
        return _of_mask(m, unknown, name, at)
    if unknown.type not in ("", "tensor") or name.startswith("_"):
        return None
    if (
        unknown.data
        and unknown.origin is None
        and name != "requires_grad_"
        and not _is_of_tensors(name, unknown)
    ):
        if name == "requires_grad":
            return _of_data(m, unknown, at)
        return _choosing(m, unknown, name, at)
    if name == "backward":
        return None
    is_shared = name in _SHARED or is_looked_at(name, at)
    effect = lookup(name)
    if effect is not None and effect.zero_gradient and not effect.in_place and not is_shared:
        return Builtin(name, lambda machine, call: _rounded(machine, unknown, name, call))
    if name in _TENSOR_ONLY or (not is_shared and (find_method("torch.Tensor", name) or effect)):
        return of_tensor(m, tensors.as_tensor(m, unknown, at.node, at.frame), name, at)
    if name in ("grad", "data", "shape", "T") and unknown.symbol in m.tensors:
        return of_tensor(m, m.tensors[unknown.symbol], name, at)
    return None


def _of_mask(m: Machine, mask: Unknown, name: str, at: Call) -> Abstract | None:
    """An attribute of a comparison: `(x > 0).unsqueeze(1)`, which no truth value has, or of what an
    operation has saved.
    """
    effect = lookup(name)
    if mask.symbol in m.tensors or (effect is not None and effect.view == "always"):
        return of_tensor(m, tensors.as_tensor(m, mask, at.node, at.frame), name, at)
    return None


def _rounded(m: Machine, unknown: Unknown, name: str, call: Call) -> Abstract:
    """`x.round(decimals=1)` of a tensor. A method that is given a tensor is none of it:
    `self.model.angle(t)`.
    """
    if all(isinstance(value, Const) for value in call.values):
        return m.call(
            m.attribute(tensors.as_tensor(m, unknown, call.node, call.frame), name, call), call
        )
    symbol = unknown.symbol
    return call_unknown(m, symbol.derive(("attribute", name), f"{symbol.text}.{name}"), call)


def _of_data(m: Machine, unknown: Unknown, at: Call) -> Abstract | None:
    """`requires_grad` of data: what a loader gives has it where the program has set it."""
    known = m.tensors.get(unknown.symbol)
    if known is None and operands.is_collated(m, unknown):
        return FALSE
    return None if known is None else of_tensor(m, known, "requires_grad", at)


def _choosing(m: Machine, unknown: Unknown, name: str, at: Call) -> Abstract | None:
    """A method of data that is called with a tensor: `relevant.gather(1, scores.argmax(1))`."""
    effect = lookup(name)
    is_called = isinstance(at.node, ir.Attribute) and at.node.is_called
    is_other = name in _SHARED or find_method("unknown", name) is not None
    if effect is None or not effect.maps_input or effect.describes or is_other or not is_called:
        return None
    if not operands.is_collated(m, unknown):
        return None
    return Builtin(name, lambda machine, call: _chosen(machine, unknown, name, call))


def _chosen(m: Machine, unknown: Unknown, name: str, call: Call) -> Abstract:
    if any(isinstance(value, Tensor) for value in call.values):
        whole = tensors.as_tensor(m, unknown, call.node, call.frame)
        return m.call(m.attribute(whole, name, call), call)
    return m.call(derived(m, unknown, "attribute", name, call.node, call.frame), call)


def _is_of_tensors(name: str, unknown: Unknown) -> bool:
    """Whether only tensors have a method: `batch.new_zeros(3)`, `mask.unsqueeze(1)` of what a
    loader gives.
    """
    effect = lookup(name)
    if effect is None:
        return False
    if name.startswith("new_"):
        return effect.creates
    return effect.view == "always" and is_collated(unknown.symbol)


@method("unknown", "backward")
def backward(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`loss.backward()`; with an argument, an engine's or accelerator's `backward(loss)`."""
    from gradlint.library import autograd

    is_engine = bool(call.args) and unknown.symbol not in m.tensors
    if is_engine and not _is_made_of_tensors(m, unknown) and not _is_its_gradient(m, unknown, call):
        return autograd.backward(m, call.args[0], call, loss=autograd.handed(call))
    tensor = tensors.as_tensor(m, unknown, call.node, call.frame)
    return m.call(m.attribute(tensor, "backward", call), call)


def _is_made_of_tensors(m: Machine, unknown: Unknown) -> bool:
    """Whether it is what something unknown makes of a tensor: no engine, and `backward` takes its
    gradient.
    """
    made = m.nodes.get(unknown.symbol)
    own = (Kind.PARAMETER, Kind.UNKNOWN)
    return (
        made is not None
        and made.op == "call"
        and any(source.kind not in own for source in made.inputs)
    )


def _is_its_gradient(m: Machine, unknown: Unknown, call: Call) -> bool:
    """Whether what `y.backward(given)` is given is a gradient, and no loss: it carries none, and
    `y` is no engine.
    """
    if _ENGINES.search(unknown.symbol.text.rpartition(".")[2]):
        return False
    given = tensors.node_of(m, call.args[0], call.node, call.frame)
    return given is not None and not any(value.requires_grad for value in tape.ancestors(given))


def _same(name: str) -> None:
    @method("unknown", name)
    def same(m: Machine, unknown: Unknown, call: Call) -> Abstract:
        """`model.to(device)`, `x.to(device)`: what it was. `config.float("clip", 0.0)` is what the
        settings have under a name.
        """
        if call.args and name in _WITHOUT_ARGUMENTS:
            node = call.node.function if isinstance(call.node, ir.Call) else call.node
            return m.call(derived(m, unknown, "attribute", name, node, call.frame), call)
        place(m, unknown, call)
        if name in ("to", "cuda"):
            send(m, unknown.symbol, call)
        _note_cast(m, unknown, call)
        if unknown.symbol in m.tensors:
            return m.call(m.attribute(m.tensors[unknown.symbol], name, call), call)
        return unknown


for _name in (*_MOVES, "contiguous"):
    _same(_name)


def _note_cast(m: Machine, unknown: Unknown, call: Call) -> None:
    """The fact that the parameters of what may be a module are cast."""
    from gradlint.library.modules import cast_of

    wanted = cast_of(call)
    if wanted is not None and not unknown.data and unknown.type in ("", "module"):
        own = tensors.leaf(m, unknown.symbol, call.node, call.frame)
        own.dtype = wanted
        m.emit(
            tape.Fact(
                at=call.frame.span(call.node), what="parameter-cast", value=own, detail=wanted.value
            )
        )


def thaw(m: Machine, symbol: Symbol) -> None:
    """What was frozen of an unknown module and of all that it is a part of: something there is
    trained again.
    """
    part: Symbol | None = symbol
    while part is not None:
        own = m.leaves.get(part)
        if own is not None and own.cut is tape.Cut.FROZEN:
            own.requires_grad, own.cut, own.cut_at, own.cut_stack = True, None, None, ()
        # `model.get_submodule(name)`
        part = part.source or (part.twin.source if part.twin is not None else None)


@method("unknown", "rsample")
def rsample(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`flow(context).rsample()`: of a distribution, whoever made it."""
    symbol = unknown.symbol
    made = call_unknown(m, symbol.derive(("attribute", "rsample"), f"{symbol.text}.rsample"), call)
    m.nodes[made.symbol].flags |= {tape.DRAWN}
    return made


_MOST_GIVEN = {"insert": 2, "setdefault": 2}


@method("unknown", "append", "extend", "add", "insert", "setdefault")
def keep(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """Something is put into an unknown container; `h.add(x, alpha=0.1)` is a tensor's,
    `tree.add(x, style=s)` not.
    """
    if call.kwargs and call.called == "add" and call.kwargs.keys() <= {"alpha", "out"}:
        given, effect = [unknown, *call.args], lookup("add")
        return tensors.apply(
            m,
            "torch.Tensor.add",
            given,
            call.node,
            call.frame,
            effect,
            kwargs=call.kwargs,
            method=True,
        )
    notify("data call", m, unknown.symbol, call)
    # a container of Python takes one thing at a time; a meter can take a value and its weight
    is_container = len(call.values) <= _MOST_GIVEN.get(call.called, 1)
    put = tensors.sources(m, call.args, call.node, call.frame) if is_container else []
    for value in put:
        if value.records:
            m.emit(
                tape.Kept(
                    at=call.frame.span(call.node),
                    value=value,
                    how="unknown",
                    text=call.frame.text(call.node),
                )
            )
    return NONE


@method("unknown", "split", "rsplit", "partition", "rpartition")
def split(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """`setting.split(",")`: a text is what has commas, and its parts are texts; `batch.split(8)`: a
    tensor's are counted.
    """
    at = call.args[0] if call.args else None
    if call.called == "split" and estimated(m, at) is not None and unknown.type in ("", "tensor"):
        tensor = tensors.as_tensor(m, unknown, call.node, call.frame)
        return m.call(m.attribute(tensor, "split", call), call)
    handler = find_method("str", call.called)
    if (
        handler is not None
        and isinstance(at, Const)
        and isinstance(at.value, str)
        and not re.search(r"\w", at.value)
    ):
        return handler(m, unknown, call)
    node = call.node.function if isinstance(call.node, ir.Call) else call.node
    return m.call(derived(m, unknown, "attribute", call.called, node, call.frame), call)


@method("unknown", "get")
def get(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    from gradlint.library.samples import can_be_missing

    key = call.constant(0, "key")
    if len(call.args) > 1 and can_be_missing(m, key or m.symbol(call.args[0]), unknown, call):
        return call.args[1]
    return derived(
        m,
        unknown,
        "item",
        key if key is not None else m.symbol(call.args[0]) if call.args else "get",
        call.node,
        call.frame,
    )


@method("unknown", "pop", "popleft")
def pop(m: Machine, unknown: Unknown, call: Call) -> Abstract:
    """An item, which is no longer there for the next who asks."""
    key = call.constant(0, "key")
    asked = key if key is not None else m.symbol(call.args[0]) if call.args else call.name
    taken = m.state.setdefault("taken out", {})
    number = taken[unknown.symbol, asked] = taken.get((unknown.symbol, asked), 0) + 1
    return derived(
        m, unknown, "item", asked if number == 1 else (asked, number), call.node, call.frame
    )


def _measure(name: str) -> None:
    @method("unknown", name)
    def measure(m: Machine, unknown: Unknown, call: Call) -> Abstract:
        key = (name, tuple(m.symbol(arg) for arg in call.args))
        return Unknown(
            unknown.symbol.derive(key, call.frame.text(call.node)), data=True, type="number"
        )


for _name in ("size", "dim", "numel", "__len__"):
    _measure(_name)
