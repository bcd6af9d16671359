"""`torch.optim`: what an optimizer holds, its steps and clearings; schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import evidence, tape
from gradlint.interpret.lineage import alias, is_a
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import attribute, fallback, method, on, typed
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    NONE,
    Abstract,
    Call,
    Const,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library import misfits, roles
from gradlint.library.autograd import clears, has_gradient
from gradlint.library.modules import HANDLE
from gradlint.tape import Kind, Value, Write

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

OPTIMIZER = "torch.optim.Optimizer"
SCHEDULERS = "torch.optim.lr_scheduler"
SCHEDULER = f"{SCHEDULERS}.LRScheduler"
for _home in (
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "asgd", "lbfgs", "nadam",
    "optimizer", "radam",
    "rmsprop", "rprop", "sgd", "sparse_adam",
):  # fmt: skip
    alias(f"torch.optim.{_home}", "torch.optim")
MAX_DEPTH = 4  # how deep lists and groups of parameters are searched


@fallback
def make(m: Machine, call: Call) -> Abstract | None:
    """`torch.optim.Adam(model.parameters())` and schedulers over one."""
    if is_a(call.name, SCHEDULER):
        handle = tape.Scheduler(
            "", call.frame.span(call.node), handle_of(m, call.get(0, "optimizer"), call), call.name
        )
        return Object(call.name, handle.at, {"handle": handle})
    if not is_a(call.name, OPTIMIZER):
        return None
    if call.name.startswith("torch.optim."):
        misfits.refuse(m, call.get(0, "params"), call, "params", groups=True)
    again = is_a(call.name, "torch.optim.LBFGS") and call.constant(2, "max_iter") != 1
    handle_made = optimizer_over(m, call.get(0, "params"), call, call.name)
    return Object(call.name, call.frame.span(call.node), {"handle": handle_made, "again": again})


@method(OPTIMIZER, "__init__")
def initialise(m: Machine, made: Instance | Object, call: Call) -> Abstract:
    """An optimizer class of the program; or one of torch that is begun again, over other
    parameters: `optimizer.__init__(model.parameters(), lr)`.
    """
    misfits.refuse(m, call.get(0, "params"), call, "params", groups=True)
    name = made.cls if isinstance(made, Object) else made.cls.name
    made.state["handle"] = optimizer_over(m, call.get(0, "params"), call, name)
    return NONE


def optimizer_over(m: Machine, params: Abstract | None, call: Call, cls: str) -> tape.Optimizer:
    """An optimizer holding what it is given: parameters, generators of them, groups."""
    handle = tape.Optimizer("", cls, call.frame.span(call.node), stack=m.where)
    handle.complete = _collect(m, params, handle.parameters, call)
    if (
        handle.complete
        and not handle.parameters
        and isinstance(params, Sequence)
        and params.at is not None
    ):
        # "optimizer got an empty parameter list"
        raise Raised(Object("builtins.ValueError", handle.at), handle.at)
    fused = call.get(None, "fused")
    handle.unscales = fused is not None and not (isinstance(fused, Const) and not fused.value)
    made: list[tape.Optimizer] = m.state.setdefault("optimizers", [])
    handle.number = sum(other.at == handle.at and other.stack == handle.stack for other in made)
    made.append(handle)
    m.note("new", "optimizer", handle.at)
    handle.order = len(m.tape.events)
    if not m.oracle.prepares:
        m.emit(tape.OptimizerMade(at=handle.at, optimizer=handle))
    for value in handle.parameters:
        if value.assumed and value.requires_grad and value.op.startswith("torch."):
            _take_for_leaf(value)
        if value.kind is Kind.OPERATION and value.requires_grad:
            m.emit(
                tape.Fact(
                    at=handle.at,
                    what="non-leaf-parameter",
                    value=value,
                    text=call.frame.text(call.node),
                )
            )
    return handle


def _take_for_leaf(value: Value) -> None:
    """What is computed from something unknown is data that a leaf was made of: torch's optimizers
    refuse all else.
    """
    value.kind, value.inputs, value.saves, value.assumed = Kind.LEAF, (), (), False
    value.parameter = value.parameter or tape.Parameter(value.name, None, value.at)


def _collect(
    m: Machine, params: Abstract | None, found: list[Value], call: Call, depth: int = 0
) -> bool:
    """Adds the parameters in `params`; False where some may be missing."""
    if params is None or depth > MAX_DEPTH:
        return False
    match params:
        case Tensor():
            found.append(params.node)
            m.state.setdefault("tensors-of", {})[id(params.node)] = params
            return True
        case Mapping():
            return _collect_group(m, params, found, call, depth)
        case Unknown(type="number" | "str" | "bool") | Const():
            return True
        case Unknown():
            from gradlint.library.structure import unknown_parameters

            _collect(m, unknown_parameters(m, params, call), found, call)
            return False
    complete = True
    for item in m.items(params, call):
        given = _without_name(item)
        if _is_generator(given):  # torch takes no generators inside a list
            raise Raised(Object("builtins.TypeError", at := call.frame.span(call.node)), at)
        complete = _collect(m, given, found, call, depth + 1) and complete
    return complete and not (isinstance(params, Sequence) and params.open)


def _collect_group(m: Machine, group: Mapping, found: list[Value], call: Call, depth: int) -> bool:
    """Adds the parameters of `{"params": …, "lr": 0.1}`."""
    inner = group.items.get("params")
    m.state.setdefault("groups", {}).setdefault(id(found), []).append(len(found))
    # torch does so: `param_group["params"] = list(params)`
    if isinstance(inner, Sequence) and _is_generator(inner):
        items = list(m.items(inner, call))
        inner = group.items["params"] = Sequence("list", items, inner.open, inner.rest)
    return inner is not None and _collect(m, inner, found, call, depth + 1)


def _is_generator(value: Abstract) -> bool:
    return isinstance(value, Sequence) and value.kind == "generator"


def _without_name(item: Abstract) -> Abstract:
    """The parameter of a pair of `named_parameters()`; anything else as it is."""
    # an optimizer takes `model.named_parameters()`, too (torch 2.13)
    if isinstance(item, Sequence) and item.kind == "tuple" and len(item.items) == 2:
        name, parameter = item.items
        return parameter if isinstance(name, Const) else item
    return item


def handle_of(m: Machine, value: Abstract | None, call: Call) -> tape.Optimizer | None:
    """The optimizer on the tape behind a value; something unknown becomes one."""
    if isinstance(value, Object | Instance):
        handle = value.state.get("handle")
        if isinstance(handle, tape.Optimizer):
            return handle
        inner = value.state.get("optimizer") or value.attrs.get("optimizer") or wrapped(m, value)
        return (
            handle_of(m, inner, call)
            if isinstance(inner, Abstract) and inner is not value
            else None
        )
    if isinstance(value, Unknown):
        known = m.state.setdefault("unknown-optimizers", {})
        if value.symbol not in known:
            at = call.frame.span(call.node)
            known[value.symbol] = tape.Optimizer(
                value.symbol.text, "", at, complete=False, stack=m.where
            )
        return known[value.symbol]  # type: ignore[no-any-return]
    return None


def wrapped(m: Machine, wrapper: Object | Instance) -> Abstract | None:
    """The one optimizer that another is made around, `Lookahead(Adam(...))`, whatever it calls
    it.
    """
    inner = [
        value
        for name, value in wrapper.attrs.items()
        if roles.looks_like_optimizer(m, value) or _is_named(name, value)
    ]
    return inner[0] if len(inner) == 1 else None


def _is_named(name: str, value: Abstract) -> bool:
    """Whether something unknown is an optimizer by the name of its attribute."""
    return isinstance(value, Unknown) and evidence.role(name) == "optimizer"


@method(OPTIMIZER, "zero_grad")
def zero_grad(m: Machine, optimizer: Abstract, call: Call) -> Abstract:
    handle = handle_of(m, optimizer, call)
    held = tuple(handle.parameters) if handle is not None else ()
    m.emit(
        tape.ZeroGrad(
            at=call.frame.span(call.node),
            optimizer=handle,
            parameters=held,
            complete=handle is not None and handle.complete,
            text=call.frame.text(call.node),
            to_none=clears(call),
        )
    )
    return NONE


@method(OPTIMIZER, "step")
def step(
    m: Machine, optimizer: Abstract, call: Call, scaler: tape.Scaler | None = None
) -> Abstract:
    """One update: every parameter that has a gradient is written in place, under no_grad. A closure
    runs first.

    LBFGS runs it again and again, with an update after each.
    """
    handle = handle_of(m, optimizer, call)
    if handle is None:
        return NONE
    _run_hooks(m, "pre", optimizer, handle, call)
    closure = call.get(0, "closure") if scaler is None else None
    result: Abstract = NONE
    if closure is not None and not (isinstance(closure, Const) and closure.value is None):
        again = isinstance(optimizer, Object) and optimizer.state.get("again")
        for last in (False, True) if again else (True,):
            # torch's optimizers run the closure under enable_grad
            with m.grad_mode(True, call.frame.span(call.node)):
                result = m.invoke(closure, [], call)
            if not last:
                update(m, handle, scaler, result, call)
    update(m, handle, scaler, result, call)
    _run_hooks(m, "post", optimizer, handle, call)
    return result


def update(
    m: Machine, handle: tape.Optimizer, scaler: tape.Scaler | None, result: Abstract, call: Call
) -> None:
    """Writes every parameter that has a gradient; `result` is what a closure gave."""
    at = call.frame.span(call.node)
    m.emit(
        tape.OptimizerStep(
            at=at,
            optimizer=handle,
            scaler=scaler,
            closure=result is not NONE,
            text=call.frame.text(call.node),
        )
    )
    for value in handle.parameters:
        storage = current(m, value).storage
        if storage is not None and value.requires_grad and has_gradient(m, value):
            storage.version += 1
            storage.writes.append(
                Write(
                    f"{handle.cls or 'optimizer'}.step",
                    at,
                    m.where,
                    storage.version,
                    True,
                    len(m.tape.events),
                )
            )


def current(m: Machine, value: Value) -> Value:
    """The value that a parameter has now."""
    tensor = m.state.get("tensors-of", {}).get(id(value))
    return tensor.node if isinstance(tensor, Tensor) else value


@method(OPTIMIZER, "add_param_group")
def add_param_group(m: Machine, optimizer: Abstract, call: Call) -> Abstract:
    handle = handle_of(m, optimizer, call)
    if handle is not None:
        handle.earlier.append((len(m.tape.events), list(handle.parameters)))
        handle.complete = (
            _collect(m, call.get(0, "param_group"), handle.parameters, call) and handle.complete
        )
    return NONE


@method(
    OPTIMIZER,
    "state_dict",
    "load_state_dict",
    "train",
    "eval",
    "share_memory",
)
def harmless(m: Machine, optimizer: Abstract, call: Call) -> Abstract:
    return m.unknown("state", data=True)


@method(OPTIMIZER, "register_step_pre_hook", "register_step_post_hook")
def register_step_hook(m: Machine, optimizer: Abstract, call: Call) -> Abstract:
    """`optimizer.register_step_pre_hook(hook)`: called with the optimizer at each step."""
    handle, hook = handle_of(m, optimizer, call), call.get(0, "hook")
    if handle is None or hook is None:
        return m.unknown("handle", data=True)
    moment = "pre" if call.frame.text(call.node).partition("(")[0].endswith("pre_hook") else "post"
    hooks = m.state.setdefault("step-hooks", {}).setdefault((id(handle), moment), [])
    hooks.append(hook)
    return Object(HANDLE, call.frame.span(call.node), {"hooks": hooks, "entry": hook})


def _run_hooks(
    m: Machine, moment: str, optimizer: Abstract, handle: tape.Optimizer, call: Call
) -> None:
    for hook in list(m.state.get("step-hooks", {}).get((id(handle), moment), ())):
        m.invoke(hook, [optimizer, Sequence("tuple", []), Mapping({})], call)


@attribute(OPTIMIZER, "param_groups")
def param_groups(m: Machine, optimizer: Object | Instance, at: Call) -> Abstract | None:
    """Its groups: as many as it was given, or one of all that it holds."""
    handle = handle_of(m, optimizer, at)
    if handle is None:
        return None
    starts = sorted({0, *m.state.get("groups", {}).get(id(handle.parameters), ())})
    ends = [*starts[1:], len(handle.parameters)]
    groups: list[Abstract] = []
    for start, end in zip(starts, ends, strict=True):
        group = _group(m, optimizer, handle, (start, end))
        m.state.setdefault("shown-groups", []).append(
            (handle, group, group.items["params"], end - start, at)
        )
        groups.append(group)
    return Sequence("list", groups)


@on("end")
def regrouped(m: Machine) -> None:
    """What the program has put into the groups that it was shown, or in their place, is held as
    well.
    """
    for handle, group, shown, size, at in m.state.get("shown-groups", ()):
        now = group.items.get("params")
        if now is not shown or len(shown.items) > size:
            _collect(m, now, handle.parameters, at)
            handle.complete = handle.complete and now is shown


def _group(
    m: Machine, optimizer: Abstract, handle: tape.Optimizer, span: tuple[int, int]
) -> Mapping:
    held: list[Abstract] = [tensor_of(m, value) for value in handle.parameters[slice(*span)]]
    group = Mapping({"params": Sequence("list", held, not handle.complete)}, open=True)
    group.symbol = m.symbol(optimizer).derive(("group", span[0]), "param_group")
    return group


def tensor_of(m: Machine, value: Value) -> Tensor:
    """The tensor of the program behind a value that an optimizer holds."""
    known = m.state.setdefault("tensors-of", {}).get(id(value))
    return known if isinstance(known, Tensor) else Tensor(value)


@typed("torch.optim.Optimizer", "torch.optim.Adam", "torch.optim.AdamW", "torch.optim.SGD")
def typed_optimizer(m: Machine, symbol: Symbol, function: Function, parameter: object) -> Abstract:
    handle = tape.Optimizer(
        symbol.text, OPTIMIZER, function.node.code.span(function.node.at), complete=False
    )
    return Object(OPTIMIZER, handle.at, {"handle": handle, "nullable": True})
