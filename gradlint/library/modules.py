"""Methods of `nn.Module` on all that it is made of: `modules()`, `train()`, `to(…)`, hooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import conditions, layouts, tensors
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import attribute, method, notify
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Instance,
    Object,
    Sequence,
)
from gradlint.library.autograd import clears, refuse_in_transform
from gradlint.library.devices import place
from gradlint.library.flags import set_requires_grad
from gradlint.library.phases import note_mode
from gradlint.library.structure import MODULE, is_module, modules, named_parameters, parts
from gradlint.tape import DType

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
HANDLE = "torch.utils.hooks.RemovableHandle"
alias("torch.nn.modules", "torch.nn")
alias("torch.nn.modules.module", "torch.nn")
alias("torch.nn.parameter", "torch.nn")


@method(MODULE, "children", "modules")
def submodules(m: Machine, module: Abstract, call: Call) -> Abstract:
    found = modules(module) if call.called == "modules" else _children(module)
    return Sequence("generator", [part for _, part in found])


@method(MODULE, "named_children", "named_modules")
def named_submodules(m: Machine, module: Abstract, call: Call) -> Abstract:
    found = modules(module) if call.called == "named_modules" else _children(module)
    return Sequence("generator", [Sequence("tuple", [Const(name), part]) for name, part in found])


def _children(module: Abstract) -> Iterator[tuple[str, Abstract]]:
    """The modules that a module is made of, each once."""
    seen: set[int] = set()
    for name, part in parts(module):
        if is_module(part) and id(part) not in seen:
            seen.add(id(part))
            yield name, part


@method(MODULE, "buffers", "named_buffers")
def buffers(m: Machine, module: Abstract, call: Call) -> Abstract:
    made: Abstract = tensors.batch(m, "buffer", call.node, call.frame)
    named = Sequence("tuple", [m.unknown("name", data=True, type="str"), made])
    return Sequence("generator", [named if call.called == "named_buffers" else made])


@method(MODULE, "get_submodule", "get_parameter")
def part_by_name(m: Machine, module: Abstract, call: Call) -> Abstract:
    name = call.constant(0, "target")
    found: Abstract = module
    for piece in name.split(".") if isinstance(name, str) and name else []:
        found = m.attribute(found, piece, call)
    return found if isinstance(name, str) else m.unknown(call.frame.text(call.node))


@method(MODULE, "train", "eval")
def set_training(m: Machine, module: Instance | Object, call: Call) -> Abstract:
    """`module.train(mode)`, `module.eval()`: for all of its parts."""
    training: bool | None = call.called != "eval"
    given, told = call.get(0, "mode"), training
    if training and given is not None:
        told = conditions.truth(m, given)
        training = conditions.decide(m, given, call.node, call.frame) if told is None else told
    for _, part in modules(module):
        if isinstance(part, Instance | Object):
            part.state["training"] = training
            part.attrs.pop("training", None)
    m.note("attribute", "training", training)
    note_mode(m, module, told, call)
    return module


@attribute(MODULE, "training")
def training(m: Machine, module: Instance | Object, at: Call) -> Abstract | None:
    """`self.training`: what was set; in a script, which makes its modules itself, they train until
    something is.
    """
    known = module.state.get("training", True if m.is_script else None)
    return Const(known) if isinstance(known, bool) else None


@attribute(MODULE, "eps")
def eps(m: Machine, module: Instance | Object, at: Call) -> Abstract | None:
    """`norm.eps`: what a norm of torch was made with, which is above zero by its default."""
    effect, given = module.state.get("effect"), module.state.get("arguments", {}).get("eps")
    if effect is None or "eps" not in dict(effect.positions):
        return None
    return Const(1e-5) if given is None else given


@method(MODULE, "requires_grad_")
def requires_grad_(m: Machine, module: Abstract, call: Call) -> Abstract:
    refuse_in_transform(m, "requires_grad_", call)
    given = call.get(0, "requires_grad")
    wanted = True if given is None else conditions.truth(m, given)
    if wanted is None and given is not None:
        wanted = conditions.decide(m, given, call.node, call.frame)
    for _, tensor in list(named_parameters(m, module, call)):
        set_requires_grad(m, tensor, bool(wanted), call, "torch.nn.Module.requires_grad_")
    m.note("attribute", "requires_grad", wanted)
    return module


@method(
    MODULE,
    "to",
    "cuda",
    "cpu",
    "float",
    "double",
    "half",
    "bfloat16",
    "type",
    "xpu",
    "to_empty",
    "share_memory",
)
def move(m: Machine, module: Abstract, call: Call) -> Abstract:
    """Moves a module where it is: parameters keep their identity; a cast changes their dtype."""
    place(m, module, call)
    wanted = cast_of(call)
    if wanted is not None:
        cast_module(m, module, wanted, call)
    if "memory_format" in call.kwargs:
        for _, tensor in named_parameters(m, module, call):
            tensor.node.flags |= {layouts.RELAID}
    return module


def cast_module(m: Machine, module: Abstract, wanted: DType, call: Call) -> None:
    at, text = call.frame.span(call.node), call.frame.text(call.node)
    for _, tensor in named_parameters(m, module, call):
        if tensor.node.dtype is not wanted:
            tensor.node.dtype = wanted
            m.emit(
                tape.Fact(
                    at=at, what="parameter-cast", value=tensor.node, detail=wanted.value, text=text
                )
            )


def cast_of(call: Call) -> DType | None:
    """The dtype that `.half()` or `.to(torch.float16)` casts to."""
    name = call.called
    if name in ("to", "type"):
        return next(
            (found for value in call.values if (found := dtype_of(value)) is not None), None
        )
    return {
        "half": DType.HALF,
        "bfloat16": DType.BFLOAT,
        "float": DType.FLOAT,
        "double": DType.DOUBLE,
    }.get(name)


@method(MODULE, "zero_grad")
def zero_grad(m: Machine, module: Abstract, call: Call) -> Abstract:
    held = tuple(tensor.node for _, tensor in named_parameters(m, module, call))
    m.emit(
        tape.ZeroGrad(
            at=call.frame.span(call.node),
            optimizer=None,
            parameters=held,
            text=call.frame.text(call.node),
            to_none=clears(call),
        )
    )
    return NONE


@method(MODULE, "apply")
def apply(m: Machine, module: Abstract, call: Call) -> Abstract:
    if call.args:
        for part in list(_inside_out(module, set())):
            m.invoke(call.args[0], [part], call)
    return module


def _inside_out(module: Abstract, seen: set[int]) -> Iterator[Abstract]:
    """The module and every module below it, those that others are made of first."""
    if id(module) not in seen:
        seen.add(id(module))
        for _, part in parts(module):
            if is_module(part):
                yield from _inside_out(part, seen)
        yield module


@method(MODULE, "register_forward_hook", "register_forward_pre_hook")
def register_forward_hook(m: Machine, module: Abstract, call: Call) -> Abstract:
    """`module.register_forward_hook(hook)`: the hook sees each result, and can give another in its
    place.

    A `forward_pre_hook` sees the arguments, and can give others.
    """
    hook = call.get(0, "hook")
    if not isinstance(module, Instance | Object) or hook is None:
        return m.unknown("handle", data=True)
    moment = "forward-pre-hooks" if "_pre_" in call.name else "forward-hooks"
    hooks, entry = (
        module.state.setdefault(moment, []),
        (hook, call.constant(None, "with_kwargs") is True),
    )
    hooks.append(entry)
    return Object(HANDLE, call.frame.span(call.node), {"hooks": hooks, "entry": entry})


@method(HANDLE, "remove", "__exit__")
def remove_hook(m: Machine, handle: Object, call: Call) -> Abstract:
    """`handle.remove()`: from here on the hook is not called."""
    handle.state["hooks"][:] = [
        each for each in handle.state["hooks"] if each is not handle.state["entry"]
    ]
    return NONE


@method(HANDLE, "__enter__")
def with_hook(m: Machine, handle: Object, call: Call) -> Abstract:
    return handle


@method(MODULE, "register_full_backward_hook", "register_backward_hook")
def add_backward_hook(m: Machine, module: Abstract, call: Call) -> Abstract:
    """`module.register_full_backward_hook(hook)`: it runs with each backward of what the module
    gives.
    """
    notify("data call", m, m.symbol(module), call)
    entry = (module, call.get(0, "hook"))
    registered: list[object] = m.state.setdefault("backward-hooks", [])
    registered.append(entry)
    return Object(HANDLE, call.frame.span(call.node), {"hooks": registered, "entry": entry})


@method(
    MODULE,
    "extra_repr",
    "compile",
    "_register_load_state_dict_pre_hook",
    "register_load_state_dict_post_hook",
    "set_extra_state",
)
def harmless(m: Machine, module: Abstract, call: Call) -> Abstract:
    notify("data call", m, m.symbol(module), call)
    return m.unknown("handle", data=True)
