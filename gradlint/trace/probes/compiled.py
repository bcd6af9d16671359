"""`torch.compile`: compiled code is called without the recorder, and written down as one operation.

Dynamo traces into an active mode: left on, it would break the graphs or recompile them at every
step. With `--level record` what is compiled runs eagerly, and is recorded as anything else.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from gradlint.tape import Cut, Kind
from gradlint.trace.frames import here
from gradlint.trace.memory import tensors
from gradlint.trace.private import sequence_number
from gradlint.trace.records import Op, serial
from gradlint.trace.session import Session

_OFF = (
    "this torch does not show what makes its compiled functions: from the first of them on "
    "nothing is recorded"
)
_IDENTITY = "_torchdynamo_wrapper_id"  # by which Dynamo knows its own wrappers from copies of them


def install(session: Session) -> None:
    """Put the probe in its place."""
    session.replace(torch, "compile", lambda original: _compile(session, original))


def _compile(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    def compile_(*args: Any, **kwargs: Any) -> Any:
        if not (session.quiet or session.attention.compiled):
            session.guarded(_meet, session)
        return original(*args, **kwargs)

    return compile_


def _meet(session: Session) -> None:
    """The program compiles something for the first time."""
    session.attention.meet_compiler()
    if session.attention.runs_eagerly:
        return
    from torch._dynamo import eval_frame  # takes a second, as what is compiled then does anyway

    _leave_alone(getattr(eval_frame, "skip_code", None))
    context = getattr(eval_frame, "_TorchDynamoContext", None)
    if context is not None and "__call__" in vars(context):
        session.replace(context, "__call__", lambda original: _wrapping(session, original))
    else:
        session.blind[_OFF] = None
        session.leave()


def _leave_alone(skip: Callable[[types.CodeType], None] | None) -> None:
    """Let Dynamo leave our own functions alone, where the program's compiled code calls them.

    Behind a break of the graph it compiles whatever is called frame by frame: with compiled
    autograd, our probes too, in which it fails.
    """
    if skip is None:
        return
    package = __name__.partition(".")[0]
    modules = [each for name, each in list(sys.modules.items()) if name.startswith(package)]
    pending = [code for module in modules for code in _codes(module)]
    for code in pending:
        skip(code)
        pending += [each for each in code.co_consts if isinstance(each, types.CodeType)]


def _codes(owner: types.ModuleType | type) -> Iterator[types.CodeType]:
    """The code of the functions, methods and properties that a module or a class defines."""
    for value in list(vars(owner).values()):
        function = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
        if isinstance(value, type) and value.__module__ == owner.__name__:
            yield from _codes(value)
        elif isinstance(function, types.FunctionType):
            yield inspect.unwrap(function).__code__


def _wrapping(session: Session, original: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps what makes a compiled function out of one; a compiled module is made with such a
    function, too.
    """

    def wrap(self: Any, function: Any) -> Any:
        made = original(self, function)
        return _without_recorder(session, made) if isinstance(made, types.FunctionType) else made

    return wrap


def _without_recorder(session: Session, compiled: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        if session.quiet:
            return compiled(*args, **kwargs)
        before = sequence_number()
        with session.off():
            out = compiled(*args, **kwargs)
        session.guarded(
            _returned, session, compiled, tensors((*args, *kwargs.values())), tensors([out]), before
        )
        return out

    if hasattr(compiled, _IDENTITY):
        setattr(call, _IDENTITY, id(call))
    return call


def _returned(
    session: Session,
    compiled: Callable[..., Any],
    given: list[torch.Tensor],
    outs: list[torch.Tensor],
    before: int,
) -> None:
    """What came out of compiled code was computed from what went in, and from the parameters that
    its graph reaches.

    Where it carries no gradient although something that went in does, it was cut off where nothing
    was seen.
    """
    made = [out for out in outs if not any(out is each for each in given)]
    if not session.recording and all(out.requires_grad for out in made):
        return
    place, memory = here(), session.memory
    sources = [memory.of(each, place) for each in given]
    for out in made:
        op = Op(
            "torch.compile",
            Kind.OPERATION,
            tuple(sources),
            place,
            next(serial),
            session.step,
            False,
            out.dtype,
        )
        if out.requires_grad:
            reached, leaves, functions = _graph(out, before)
            flowing = (
                op for op, tensor in zip(sources, given, strict=True) if _joins(tensor, reached)
            )
            ops = [memory.of(leaf, place) for leaf in leaves.values()]
            op.inputs = (*flowing, *ops)
            op.requires_grad, op.sequence = True, (before, sequence_number())
            if session.recording:
                by_node = dict(zip(leaves, ops, strict=True))
                for function in functions:
                    _await_gradients(session, function, op, by_node)
        elif not torch.is_grad_enabled():
            op.cut, op.cut_place = Cut.GRAD_MODE, session.gradmode.off
        elif any(source.requires_grad for source in sources) or _has_parameters(compiled):
            op.kind, op.inputs, op.flags = Kind.DATA, (), frozenset({"compiled"})
        memory.remember(out, op)


def _graph(
    out: torch.Tensor, before: int
) -> tuple[set[Any], dict[Any, torch.Tensor], list[torch.autograd.Function]]:
    """What the nodes of a graph made since the number `before` come to: nodes older than these, and
    leaves by their nodes; and those of them that are functions of autograd's.
    """
    pending: list[Any] = [out.grad_fn]
    seen, older, leaves, functions = set(pending), set(), {}, []
    for node in pending:
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves[node] = leaf
        elif node._sequence_nr() < before:
            older.add(node)
        else:
            if hasattr(node, "_forward_cls"):
                functions.append(node)
            sources = [
                source
                for source, _ in node.next_functions
                if source is not None and source not in seen
            ]
            seen.update(sources)
            pending += sources
    return older, leaves, functions


def _await_gradients(session: Session, function: Any, made: Op, leaves: dict[Any, Op]) -> None:
    """Looks, in the backward, which of its leaves compiled code gives no gradient.

    Code that is compiled ahead of time takes all parameters that it uses, and returns None for one
    from which no route leads to anything that it gives.
    """
    # not the node, which would keep itself
    into = [leaves.get(node) for node, _ in function.next_functions]

    def see(gradients: tuple[Any, ...], _: object) -> None:
        session.guarded(_came_back, session, made, into, gradients)

    function.register_hook(see)


def _came_back(
    session: Session,
    made: Op,
    into: list[Op | None],
    gradients: tuple[torch.Tensor | None, ...],
) -> None:
    sink = next((note for note in reversed(session.notes) if note.kind == "backward"), None)
    if sink is None or sink.facts["inputs"] is not None or len(gradients) != len(into):
        return
    fed = {id(op) for op, gradient in zip(into, gradients, strict=True) if gradient is not None}
    lost = {id(op) for op in into} - fed
    made.inputs = tuple(_cut_off(op, made) if id(op) in lost else op for op in made.inputs)


def _cut_off(leaf: Op, made: Op) -> Op:
    """What stands, somewhere in compiled code, between a leaf and what comes out."""
    cut = Op(
        made.name,
        Kind.OPERATION,
        (leaf,),
        made.place,
        next(serial),
        made.step,
        False,
        made.dtype,
    )
    cut.cut = Cut.NON_DIFFERENTIABLE
    return cut


def _joins(tensor: torch.Tensor, reached: set[Any]) -> bool:
    """Whether a gradient flows into a tensor that was handed in, other than a leaf; what is data is
    an input, too.
    """
    return not tensor.requires_grad or tensor.grad_fn in reached


def _has_parameters(compiled: Callable[..., Any]) -> bool:
    """Whether it is a module's method that was compiled, with parameters that are trained."""
    owner = getattr(inspect.unwrap(compiled), "__self__", None)
    return isinstance(owner, torch.nn.Module) and any(
        each.requires_grad for each in owner.parameters()
    )
