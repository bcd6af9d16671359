"""`torch.autograd.Function`: what `apply` makes of the `forward` that the program wrote.

Facts for the rules: `ctx-tensor` (an input or output, `detail` says which, is kept as `ctx.name`),
`saved-no-tensor` (`save_for_backward` is given something else, which `detail` names),
`function-not-applied` (an instance of a Function is called; `detail` is "forward": its forward is,
without `apply`, "backward": its backward is, by hand, or "made": the class itself is, with
tensors), `input-written` (`forward` wrote an
input in place and gave `value` back without `mark_dirty`), `gradients` (a return of `backward` does
not fit the inputs; `detail` says how: how many gradients, how many inputs, and what is wrong).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from gradlint import tape
from gradlint.interpret import memory, saving, tensors
from gradlint.interpret.lineage import alias, canonical
from gradlint.interpret.registry import enters, method
from gradlint.interpret.scopes import GradState
from gradlint.interpret.values import (
    FALSE,
    TRUE,
    Abstract,
    Builtin,
    Call,
    Class,
    Function,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
    function_of,
)
from gradlint.library.returns import faults, nothing_for, refuses, something_for
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

FUNCTION = "torch.autograd.Function"
CONTEXT = "torch.autograd.function.FunctionCtx"
_INSTANCE = "torch.autograd.Function()"
alias("torch.autograd.function.Function", FUNCTION)
alias("torch.autograd.function.InplaceFunction", FUNCTION)


@method(FUNCTION, "class.apply")
def apply(m: Machine, cls: Class, call: Call) -> Abstract:
    """`MyFunction.apply(…)`: `forward` runs without recording; its results are one operation on the
    inputs.
    """
    return _applied(m, cls, call, told=True)


def _applied(m: Machine, cls: Class, call: Call, *, told: bool, optional: int = 0) -> Abstract:
    """What `apply` makes, and what there is to tell about the function, if it is `told` here;
    `optional` inputs more can be given.
    """
    context = Object(
        CONTEXT, call.frame.span(call.node), {"saved": [], "dirty": [], "cut": [], "kept": []}
    )
    given = tensors.sources(m, call.values, call.node, call.frame)
    context.state["needs"] = Sequence("tuple", [_needs(m, value, call) for value in call.args])
    versions = [
        (value, value.storage, len(value.storage.writes) if value.storage is not None else 0)
        for value in given
    ]
    result = _forward(m, cls, context, call)
    context.state["carried"] = _carried(m, cls, given, call)
    backward = function_of(m.session.member_of(cls, "backward"))
    is_for_inference = backward is not None and refuses(backward)
    context.state["refuses"] = {tape.REFUSES} if is_for_inference else set()
    made = _outputs(m, cls.name, context, given, result, call)
    if told:
        _note_kept(m, cls, context, given, result, call)
        if not _is_cut(m, context, result, call):
            _note_returns(m, cls, call, optional)
        _note_written(m, context, versions, made, call)
    return made


def _is_cut(m: Machine, context: Object, result: Abstract, call: Call) -> bool:
    """Whether all that `forward` gives is marked as without a derivative: `backward` never runs."""
    given = tensors.sources(m, [result], call.node, call.frame)
    return bool(given) and all(
        any(value is marked for marked in context.state["cut"]) for value in given
    )


def _needs(m: Machine, value: Abstract, call: Call) -> Abstract:
    node = (
        tensors.node_of(m, value, call.node, call.frame)
        if isinstance(value, Tensor | Unknown)
        else None
    )
    if node is None or not node.requires_grad:
        return FALSE
    return TRUE if not node.assumed else m.unknown("needs_input_grad", data=True, type="bool")


def _forward(m: Machine, cls: Class, context: Object, call: Call) -> Abstract:
    forward, set_up = m.attribute(cls, "forward", call), m.session.member_of(cls, "setup_context")
    before, m.grad = m.grad, GradState(False, m.grad.inference, call.frame.span(call.node), m.where)
    try:
        args = call.args if set_up is not None else [context, *call.args]
        result = m.call(
            forward, Call(call.name, args, call.kwargs, call.node, call.frame, call.open)
        )
        if set_up is not None:
            m.invoke(
                m.attribute(cls, "setup_context", call),
                [context, Sequence("tuple", call.args), result],
                call,
            )
    finally:
        m.grad = before
    return result


def _outputs(
    m: Machine, name: str, context: Object, given: list[Value], result: Abstract, call: Call
) -> Abstract:
    """The tensors that `forward` gives, as results of the one operation."""
    if isinstance(result, Sequence):
        return Sequence(
            result.kind,
            [_outputs(m, name, context, given, item, call) for item in result.items],
            result.open,
            result.rest,
        )
    if isinstance(result, Mapping):
        return result
    inner = (
        tensors.node_of(m, result, call.node, call.frame)
        if isinstance(result, Tensor | Unknown)
        else None
    )
    if inner is None:
        return result
    cut = any(inner is node for node in context.state["cut"])
    carried = context.state["carried"]
    made = tensors.operation(
        m, f"{name}.apply", carried, call.node, call.frame, differentiable=not cut
    )
    made.dtype, made.storage = inner.dtype, inner.storage or tape.Storage()
    made.flags |= context.state["refuses"]
    if any(inner is node for node in given):
        made.flags |= {tape.AS_GIVEN}
    for kept in context.state["saved"]:
        is_result = kept is inner
        role = (
            "result" if is_result else "input" if any(kept is node for node in given) else "other"
        )
        saving.save(made, [made if is_result else kept], role)
    if isinstance(result, Tensor) and any(result is dirty for dirty in context.state["dirty"]):
        made.name, result.node = result.node.name, made
        # `Fill.apply(week[:, day], x)` fills the week
        memory.update_views(m, result, made, call.node, call.frame)
        return result
    return Tensor(made)


def _carried(m: Machine, cls: Class, given: list[Value], call: Call) -> list[Value]:
    """The inputs as gradients come back to them: to those that `backward` returns `None` for, none
    does. Where it returns too few or too many, the place of a `None` says nothing.

    One that can set gradients itself, `weight.grad = …`, brings them on another way.
    """
    backward = function_of(m.session.member_of(cls, "backward"))
    if backward is None or call.open or call.kwargs:
        return given
    if m.session.is_written(backward.node.source, backward.node.code.path, tape.May.CLEAR):
        return given
    if any(fault.kind != "nothing" for fault in faults(backward, len(call.args))):
        return given  # it raises: backward-arity
    returned = [
        (arg.node, nothing_for(backward, number))
        for number, arg in enumerate(call.args)
        if _is_sure(arg)
    ]
    reached = {id(node) for node, at in returned if at is None}  # one can be given twice
    stopped: dict[int, Value] = {}
    for node, at in returned:
        if at is not None and id(node) not in reached:
            made = tensors.operation(m, f"{cls.name}.backward", [node], call.node, call.frame)
            made.at, made.text, made.zero_gradient = (
                backward.node.code.span(at),
                f"{cls.name}.backward()",
                True,
            )
            stopped[id(node)] = made
    return [stopped.get(id(node), node) for node in given]


def _is_sure(arg: Abstract) -> TypeGuard[Tensor]:
    return isinstance(arg, Tensor) and arg.node.requires_grad and not arg.node.assumed


def _note_kept(
    m: Machine, cls: Class, context: Object, given: list[Value], result: Abstract, call: Call
) -> None:
    """Inputs and outputs that `forward` kept as attributes of `ctx`: of inputs those that a
    gradient comes back to.
    """
    returned = tensors.sources(m, [result], call.node, call.frame)
    given = [value for value in given if _is_differentiated(m, value, cls, call)]
    passed = {id(each) for each in (*call.args, result)}
    for at, text, kept in context.state["kept"]:
        if isinstance(kept, Unknown) and id(kept) not in passed:
            continue  # it can be a setting
        value = tensors.node_of(m, kept, call.node, call.frame)
        for role, values in (("input", given), ("output", returned)):
            if any(value is node for node in values):
                m.emit(tape.Fact(at=at, what="ctx-tensor", value=value, detail=role, text=text))
                break


def _is_differentiated(m: Machine, value: Value, cls: Class, call: Call) -> bool:
    """Whether an input surely requires grad, or is of unknown code and gets a gradient by what
    `backward` returns.
    """
    if not value.requires_grad or not value.assumed:
        return value.requires_grad
    backward = function_of(m.session.member_of(cls, "backward"))
    if backward is None or call.open or call.kwargs:
        return False
    return any(
        something_for(backward, number, len(call.args))
        for number, arg in enumerate(call.args)
        if value in tensors.sources(m, [arg], call.node, call.frame)
    )


def _note_returns(m: Machine, cls: Class, call: Call, optional: int) -> None:
    """Returns of `backward` that give other gradients than these inputs take, with or without the
    optional ones; lists, where it is not known how many there are: no input takes one.
    """
    backward = function_of(m.session.member_of(cls, "backward"))
    if backward is None or call.kwargs:
        return
    code = backward.node.code
    others = [
        {fault.at for fault in faults(backward, len(call.args) + more)}
        for more in range(1, optional + 1)
    ]
    found = faults(backward, len(call.args))
    for fault in (each for each in found if not call.open or each.kind == "list"):
        if any(fault.at not in other for other in others):
            continue
        detail = f"{fault.given} {len(call.args)} {fault.kind}"
        at, applied = code.span(fault.at), (call.frame.span(call.node), "applied here")
        m.emit(tape.Fact(at=at, what="gradients", detail=detail, text=cls.name, related=(applied,)))


def _note_written(
    m: Machine, context: Object, versions: list[Any], result: Abstract, call: Call
) -> None:
    """An input that `forward` wrote and gives back, and did not mark."""
    returned = result.items if isinstance(result, Sequence) else [result]
    shown = {
        id(tensor.node.storage): tensor.node for tensor in returned if isinstance(tensor, Tensor)
    }
    dirty = [tensor.node.storage for tensor in context.state["dirty"]]
    for _, storage, before in versions:
        if (
            storage is None
            or len(storage.writes) == before
            or any(storage is other for other in dirty)
        ):
            continue
        made = shown.get(id(storage))
        if made is not None:
            write, applied = storage.writes[before], (call.frame.span(call.node), "applied here")
            m.emit(
                tape.Fact(
                    at=write.at,
                    what="input-written",
                    value=made,
                    detail=write.op,
                    related=(applied,),
                )
            )


@method(FUNCTION, "taken.forward")
def take_forward(m: Machine, cls: Class, call: Call) -> Abstract:
    """`MyFunction.forward`: called outside of `apply`, it runs like any function, and no `backward`
    belongs to it.
    """
    forward = call.args[0]

    def run(machine: Machine, at: Call) -> Abstract:
        given = tensors.sources(machine, at.values, at.node, at.frame)
        if (
            machine.grad.enabled
            and any(value.requires_grad for value in given)
            and machine.session.member_of(cls, "backward")
        ):
            _note_not_applied(machine, cls, at, "forward")
        return machine.call(forward, at)

    return Builtin("forward", run, wraps=forward)


@method(FUNCTION, "taken.backward")
def take_backward(m: Machine, cls: Class, call: Call) -> Abstract:
    """`MyFunction.backward(ctx, grad)`: the program computes the gradients itself."""
    backward = call.args[0]

    def run(machine: Machine, at: Call) -> Abstract:
        _note_not_applied(machine, cls, at, "backward")
        return machine.call(backward, at)

    return Builtin("backward", run, wraps=backward)


def _note_not_applied(m: Machine, cls: Class, call: Call, how: str) -> None:
    at, text = call.frame.span(call.node), call.frame.text(call.node)
    m.emit(
        tape.Fact(
            at=at, what="function-not-applied", detail=how, text=text, related=((at, cls.name),)
        )
    )


@enters
def enter_forward(m: Machine, made: Abstract, name: str, forward: Abstract, call: Call) -> bool:
    """A Function that nothing in sight applies: it is applied to unknown inputs, as many as its
    `forward` needs.
    """
    if (
        name != "forward"
        or not isinstance(made, Instance)
        or FUNCTION not in map(canonical, made.cls.libraries())
    ):
        return False
    member = m.session.member_of(made.cls, name)
    # without `@staticmethod`, an old one
    known = None if isinstance(member, Function) else function_of(member)
    if known is not None and all(
        parameter.kind == "positional" for parameter in known.node.parameters
    ):
        skipped = 0 if m.session.member_of(made.cls, "setup_context") is not None else 1
        taken = [
            parameter for parameter in known.node.parameters[skipped:] if parameter.default is None
        ]
        args = [m.session.parameters.given(m, known, parameter) for parameter in taken]
        optional = len(known.node.parameters) - skipped - len(taken)
        at = Call(call.name, args, {}, call.node, call.frame)
        _applied(m, made.cls, at, told=True, optional=optional)
    return True


@method(FUNCTION, "__new__")
def instance(m: Machine, cls: Class, call: Call) -> Abstract:
    """`MyFunction()`: only its `apply` is of use; `MyFunction(x)` makes one, too, and computes
    nothing (2.13).
    """
    if (
        any(map(_is_sure, call.args))
        and m.session.member_of(cls, "__init__") is None
        and m.grad.enabled
    ):
        _note_not_applied(m, cls, call, "made")
        return _applied(m, cls, call, told=False)
    return Object(_INSTANCE, call.frame.span(call.node), {"cls": cls})


@method(_INSTANCE, "apply")
def apply_instance(m: Machine, made: Object, call: Call) -> Abstract:
    """`MyFunction().apply(x)` is `MyFunction.apply(x)`."""
    return apply(m, made.state["cls"], call)


@method(_INSTANCE, "forward")
def forward_of_instance(m: Machine, made: Object, call: Call) -> Abstract:
    """`MyFunction().forward(x)`: a method like any other, and often called with `backward` to test
    the two by hand.
    """
    return m.unknown(call.frame.text(call.node))


@method(_INSTANCE, "__call__")
def call_instance(m: Machine, made: Object, call: Call) -> Abstract:
    """`MyFunction()(x)`: torch refuses it (2.13)."""
    cls = made.state["cls"]
    _note_not_applied(m, cls, call, "instance")
    return _applied(m, cls, call, told=False)
