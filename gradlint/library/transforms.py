"""What takes a function and gives one: `torch.compile`, `torch.jit`, `torch.func`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import tensors
from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import function
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library import structure
from gradlint.tape import Kind, Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

alias("functorch", "torch.func")
alias("torch._functorch.apis", "torch.func")
# what is known while a transform runs a function: the transforms, outermost first, what the
# innermost has wrapped, and how many calls stand around it
_AROUND: dict[str, Any] = {"transforms": (), "given in transforms": (), "around transforms": 0}
_CALLABLE = Function | Builtin | Bound | Class | Lib | Object | Instance | Unknown


@function(
    "torch.compile",
    "torch.jit.script",
    "torch.jit.trace",
    "torch.jit.freeze",
    "torch.jit.optimize_for_inference",
    "torch.jit.ignore",
    "torch.jit.export",
    "torch.jit.unused",
    "torch.jit.interface",
    "torch.jit.script_method",
    "torch.compiler.disable",
    "torch.compiler.allow_in_graph",
    "torch._dynamo.disable",
    "torch._dynamo.optimize",
    "torch._dynamo.allow_in_graph",
    "torch.fx.wrap",
    "torch.fx.symbolic_trace",
    "torch.overrides.wrap_torch_function",
)
def same_function(m: Machine, call: Call) -> Abstract:
    """The function or module itself; called with options alone (`@torch.compile(dynamic=True)`), a
    decorator.
    """
    given = next(
        (value for value in (*call.args, *call.kwargs.values()) if isinstance(value, _CALLABLE)),
        None,
    )
    if given is not None:
        return given
    return Builtin(call.name, lambda _, at: at.args[0] if at.args else NONE)


@function("torch.func.vmap", "torch.vmap", "torch.func.functionalize", "torch.func.debug_unwrap")
def called_through(m: Machine, call: Call) -> Abstract:
    """`vmap(f)`: what `f` gives, as far as gradients are concerned."""
    if not call.args:
        return m.unknown(call.frame.text(call.node))
    inner, name = call.args[0], call.name
    mapped = call.get(1, "in_dims")
    return Builtin(
        name,
        lambda machine, at: _transformed(machine, name, inner, at, _mapped(mapped, at)),
        wraps=inner,
    )


def _mapped(dims: Abstract | None, call: Call) -> list[Abstract]:
    """What a mapped function is given a part of, and never the whole: of `f(p, x)` by
    `in_dims=(None, 0)` only `x`.
    """
    if dims is None or isinstance(dims, Const):
        return call.args
    places = dims.items if isinstance(dims, Sequence) and not dims.open else []
    pairs = list(zip(call.args, places, strict=False))
    whole = [given for given, place in pairs if isinstance(place, Const) and place.value is None]
    return [
        given
        for given, place in pairs
        if isinstance(place, Const) and not any(given is each for each in whole)
    ]


def _transformed(
    m: Machine, name: str, function: Abstract, call: Call, wrapped: list[Abstract]
) -> Abstract:
    """Calls a function within a transform: what autograd is asked for there is refused. The
    transform has `wrapped` these arguments, and hands the others on as they are.
    """
    before = {name: m.state.get(name, nothing) for name, nothing in _AROUND.items()}
    if not name.endswith("debug_unwrap"):
        m.state["transforms"] = (*before["transforms"], name)
        m.state["given in transforms"] = tuple(tensors.sources(m, wrapped, call.node, call.frame))
        m.state["around transforms"] = len(m.where)
    try:
        return m.call(function, call)
    finally:
        m.state.update(before)


@function(
    "torch.func.grad",
    "torch.func.grad_and_value",
    "torch.func.jacrev",
    "torch.func.jacfwd",
    "torch.func.hessian",
    "torch.func.linearize",
)
def derivative(m: Machine, call: Call) -> Abstract:
    """`grad(f)`: a function of the same arguments, differentiable in them."""
    if not call.args:
        return m.unknown(call.frame.text(call.node))
    inner, name = call.args[0], call.name
    wanted = call.constant(1, "argnums", 0)

    def run(machine: Machine, at: Call) -> Abstract:
        given = [at.args[index] for index in _indices(wanted) if index < len(at.args)] or at.args
        result = _transformed(machine, name, inner, at, given)
        made = [_like(machine, name, value, [result, *at.values], at) for value in given]
        gradient = (
            made[0] if len(made) == 1 and not isinstance(wanted, tuple) else Sequence("tuple", made)
        )
        return (
            Sequence("tuple", [gradient, result]) if name.endswith("grad_and_value") else gradient
        )

    return Builtin(name, run)


def _indices(wanted: object) -> list[int]:
    if isinstance(wanted, tuple):
        return [index for index in wanted if isinstance(index, int)]
    return [wanted] if isinstance(wanted, int) else [0]


def _like(m: Machine, op: str, value: Abstract, sources: list[Abstract], call: Call) -> Abstract:
    """A derivative in the shape of the argument that it is taken by."""
    if isinstance(value, Sequence):
        return Sequence(
            value.kind, [_like(m, op, item, sources, call) for item in value.items], value.open
        )
    if isinstance(value, Mapping):
        return Mapping(
            {key: _like(m, op, item, sources, call) for key, item in value.items.items()},
            value.open,
            symbol=value.symbol,
        )
    return tensors.apply(m, op, sources, call.node, call.frame, None)


@function(
    "torch.autograd.functional.jacobian",
    "torch.autograd.functional.hessian",
    "torch.autograd.functional.vjp",
    "torch.autograd.functional.jvp",
    "torch.autograd.functional.hvp",
    "torch.autograd.functional.vhp",
)
def functional(m: Machine, call: Call) -> Abstract:
    """`jacobian(f, inputs)`: without a graph of its own unless `create_graph=True`."""
    called, inputs = call.get(0, "func"), call.get(1, "inputs")
    if called is None or inputs is None:
        return m.unknown(call.frame.text(call.node))
    args = inputs.items if isinstance(inputs, Sequence) and inputs.kind == "tuple" else [inputs]
    result = m.invoke(called, list(args), call)
    if call.constant(None, "create_graph") is True:
        return tensors.apply(m, call.name, [result, inputs], call.node, call.frame, None)
    return tensors.batch(m, call.name, call.node, call.frame)


@function("torch.func.vjp", "torch.func.jvp")
def product(m: Machine, call: Call) -> Abstract:
    """`vjp(f, *args)`: what `f` gives, and a function that back-propagates; `jvp` gives its value
    at once.
    """
    if not call.args:
        return m.unknown(call.frame.text(call.node))
    given = call.args[1:]
    if call.name.endswith("jvp"):
        given = given[0].items if given and isinstance(given[0], Sequence) else given
    name = call.name
    inner = Call(name, list(given), {}, call.node, call.frame)
    result = _transformed(m, name, call.args[0], inner, inner.args)
    tangent = tensors.apply(m, name, [result, *call.args[1:]], call.node, call.frame, None)
    if name.endswith("jvp"):
        return Sequence("tuple", [result, tangent])
    pull: Callable[[Machine, Call], Abstract] = lambda machine, at: Sequence(  # noqa: E731
        "tuple",
        [
            tensors.apply(machine, name, [result, value, *at.args], at.node, at.frame, None)
            for value in given
        ],
    )
    return Sequence("tuple", [result, Builtin(name, pull)])


@function("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
def functional_call(m: Machine, call: Call) -> Abstract:
    """`functional_call(module, parameters, args, kwargs)`: the module computes with these in place
    of its own.
    """
    module, given = call.get(0, "module"), call.get(1, "parameter_and_buffer_dicts") or NONE
    if module is None:
        return m.unknown(call.frame.text(call.node))
    args, kwargs = call.get(2, "args"), call.get(3, "kwargs")
    listed = (
        args.items
        if isinstance(args, Sequence) and args.kind == "tuple"
        else []
        if args is None
        else [args]
    )
    named = (
        {str(key): value for key, value in kwargs.items.items()}
        if isinstance(kwargs, Mapping)
        else {}
    )
    with _in_their_place(m, module, _by_name(given), call) as is_whole:
        result = m.call(module, Call(call.name, list(listed), named, call.node, call.frame))
    if is_whole:
        return result
    parameters = tensors.sources(m, [given], call.node, call.frame)
    from gradlint.library.checkpoint import over_tensors

    return over_tensors(m, result, call, lambda node: _with_parameters(m, node, parameters, call))


@function("torch.func.stack_module_state")
def stack_module_state(m: Machine, call: Call) -> Abstract:
    """Two dicts, of the stacked parameters of several modules, which are leaves of their own, and
    of the buffers.
    """
    given = call.get(0, "models")
    models = given.items if isinstance(given, Sequence) else []
    if not models:
        return m.unknown(call.frame.text(call.node))
    pairs = structure.named_parameters(m, models[0], call)
    parameters = Mapping({name: _stacked(m, name, tensor, call) for name, tensor in pairs})
    buffers = Mapping({}, open=True, rest=tensors.batch(m, "buffer", call.node, call.frame))
    return Sequence("tuple", [parameters, buffers])


def _stacked(m: Machine, name: str, one: Tensor, call: Call) -> Tensor:
    """The leaf that holds a parameter of each module; of frozen ones it needs no gradient (torch
    2.13).
    """
    kind = Kind.LEAF if one.node.requires_grad else Kind.DATA
    made = tensors.value(
        m, "torch.func.stack_module_state", kind, (), call.node, call.frame, dtype=one.node.dtype
    )
    made.requires_grad, made.name, made.storage = one.node.requires_grad, name, tape.Storage()
    made.parameter = (
        tape.Parameter(name, None, made.at, stack=m.where) if made.requires_grad else None
    )
    return Tensor(made)


def _by_name(given: Abstract) -> dict[str, Tensor]:
    """The tensors of a dict, or of several (parameters, buffers), by name."""
    dicts = given.items if isinstance(given, Sequence) else [given]
    held = [pair for one in dicts if isinstance(one, Mapping) for pair in one.items.items()]
    return {str(name): tensor for name, tensor in held if isinstance(tensor, Tensor)}


@contextmanager
def _in_their_place(
    m: Machine, module: Abstract, given: dict[str, Tensor], call: Call
) -> Iterator[bool]:
    """Puts tensors in the place of the parameters that they are named after; whether those are all
    parameters.
    """
    is_whole = all(name in given for name, _ in structure.named_parameters(m, module, call))
    places = list(_places(module, given)) if is_whole else []
    before = [(owner, name, owner[name]) for owner, name, _ in places]
    for owner, name, tensor in places:
        owner[name] = tensor
    try:
        yield is_whole
    finally:
        for owner, name, parameter in before:
            owner[name] = parameter


def _places(
    module: Abstract, given: dict[str, Tensor]
) -> Iterator[tuple[dict[str, Abstract], str, Tensor]]:
    """Where the parameters of a module are held that have a namesake in `given`."""
    for prefix, part in structure.modules(module):
        if isinstance(part, Instance | Object):
            for owner in (part.state.get("parameters") or {}, part.attrs):
                for name, held in owner.items():
                    tensor = given.get(f"{prefix}.{name}".lstrip("."))
                    if (
                        tensor is not None
                        and isinstance(held, Tensor)
                        and structure.is_parameter(held)
                    ):
                        yield owner, name, tensor


def _with_parameters(m: Machine, node: Value, parameters: list[Value], call: Call) -> Value:
    made = tensors.operation(m, call.name, [node, *parameters], call.node, call.frame)
    made.storage, made.dtype = tape.Storage(), node.dtype
    return made
