"""Modules around a module: DistributedDataParallel, DataParallel, FSDP, averaged models.

Facts for the rules: `ddp-made` (a module was wrapped), `ddp-forward` (the wrapper was called),
`ddp-module` (its inner module was taken: `ddp.module`), `no-sync` (a `no_sync()` region is entered
or left: `detail`), `ddp-prepared` (the reducer was told by hand to exchange the gradients of the
next backward), `replica-handed` (code out of view is given a module, a parameter, a gradient or an
optimizer, and can exchange gradients).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.finding import Span
from gradlint.interpret import conditions
from gradlint.interpret.lineage import alias, is_a, parent
from gradlint.interpret.registry import attribute, fallback, function, method, on
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Call,
    Instance,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.library.holdings import parameters_in
from gradlint.library.optimizers import OPTIMIZER
from gradlint.library.python.copying import Copier
from gradlint.library.structure import MODULE, module_of

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

DDP = "torch.nn.parallel.DistributedDataParallel"
_NO_SYNC = "torch.nn.parallel.no_sync"
_REDUCER = "torch.nn.parallel.Reducer"
_SYNCHRONISES = "require_backward_grad_sync"
_SYNCHRONISED = (
    DDP,
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "apex.parallel.DistributedDataParallel",
    "fairscale.nn.FullyShardedDataParallel",
    "fairscale.nn.data_parallel.ShardedDataParallel",
)
_AVERAGED = "torch.optim.swa_utils.AveragedModel"
WRAPPER = "torch.nn.parallel.DataParallel"
alias("torch.nn.DataParallel", WRAPPER)
alias("torch.nn.parallel.distributed", "torch.nn.parallel")
alias("torch.nn.parallel.data_parallel", "torch.nn.parallel")
alias("torch.distributed.fsdp.fully_sharded_data_parallel", "torch.distributed.fsdp")
for _name in (*_SYNCHRONISED, _AVERAGED):
    parent(_name, WRAPPER)
parent(WRAPPER, MODULE)
parent("torch.optim.swa_utils.SWALR", "torch.optim.lr_scheduler.LRScheduler")


@function(WRAPPER, *_SYNCHRONISED, _AVERAGED)
def wrap(m: Machine, call: Call) -> Abstract:
    """`DistributedDataParallel(module, …)`; an averaged model holds a copy."""
    inner = call.get(0, "module") or call.get(0, "model")
    if inner is not None and call.name == _AVERAGED:
        inner = Copier(m, call).copy(inner)
    if inner is not None and call.name in _SYNCHRONISED:
        m.state["has replicas"] = True
        m.emit(
            tape.Fact(
                at=call.frame.span(call.node), what="ddp-made", module=module_of(m, inner, call)
            )
        )
    return wrapped(m, call.name, inner, call)


def wrapped(m: Machine, cls: str, inner: Abstract | None, call: Call) -> Abstract:
    """A module of the library around another."""
    if inner is None:
        return m.unknown(call.frame.text(call.node))
    made = Object(
        cls, call.frame.span(call.node), module=tape.Module(f"<{cls.rpartition('.')[2]}>")
    )
    made.state["items"] = Mapping({"module": inner})
    return made


@method(WRAPPER, "__init__")
def initialise(m: Machine, instance: Instance, call: Call) -> Abstract:
    """A wrapper class of the program."""
    given = call.get(0, "module")
    instance.state["items"] = Mapping({"module": given} if given is not None else {})
    return NONE


def inside(wrapper: Object | Instance) -> Abstract | None:
    """The module in a wrapper."""
    held = wrapper.state.get("items")
    found = held.items.get("module") if isinstance(held, Mapping) else None
    return found if isinstance(found, Abstract) else None


def _is_synchronised(wrapper: Object | Instance) -> bool:
    if isinstance(wrapper, Object):
        return wrapper.cls in _SYNCHRONISED
    return any(
        is_a(base, synchronised)
        for base in wrapper.cls.libraries()
        for synchronised in _SYNCHRONISED
    )


@method(WRAPPER, "__call__", "forward")
def call_wrapper(m: Machine, wrapper: Object | Instance, call: Call) -> Abstract:
    """A call of the wrapper is a call of what it wraps."""
    inner = inside(wrapper)
    if inner is None:
        return m.unknown(call.frame.text(call.node))
    if _is_synchronised(wrapper):
        known = module_of(m, inner, call)
        m.emit(
            tape.Fact(
                at=call.frame.span(call.node),
                what="ddp-forward",
                module=known,
                text=call.frame.text(call.node),
            )
        )
    return m.call(inner, call)


@attribute(WRAPPER, "module")
def module(m: Machine, wrapper: Object | Instance, at: Call) -> Abstract | None:
    """`ddp.module`."""
    inner = inside(wrapper)
    if inner is not None and _is_synchronised(wrapper):
        known = module_of(m, inner, at)
        m.emit(
            tape.Fact(
                at=at.frame.span(at.node),
                what="ddp-module",
                module=known,
                detail=known.path if known else "",
                text=at.frame.text(at.node),
            )
        )
    return inner


@on("unknown call")
def replica_escapes(m: Machine, symbol: Symbol, call: Call) -> None:
    """`average_gradients(model)`, which is out of view."""
    if m.state.get("has replicas") and any(map(_leads_to_gradients, call.values)):
        m.emit(tape.Fact(at=call.frame.span(call.node), what="replica-handed"))


def _leads_to_gradients(value: Abstract) -> bool:
    match value:
        case Tensor(node=node):
            return node.parameter is not None or "gradient" in node.flags
        case Sequence(items=items):
            return any(map(_leads_to_gradients, items))
        case Object(module=module, cls=cls):
            return module is not None or is_a(cls, OPTIMIZER)
        case Instance(module=module):
            return module is not None
    return False


@method(WRAPPER, "join")
def join(m: Machine, wrapper: Object | Instance, call: Call) -> Abstract:
    """`with ddp.join():` evens out ranks with fewer batches."""
    return Object("builtins.harmless-context", call.frame.span(call.node))


@method(WRAPPER, "no_sync")
def no_sync(m: Machine, wrapper: Object | Instance, call: Call) -> Abstract:
    """`ddp.no_sync()`: backward passes in it leave the gradients of each rank to itself."""
    return Object(_NO_SYNC, call.frame.span(call.node), {"wrapper": wrapper})


def _inner_module(m: Machine, wrapper: Object | Instance, call: Call) -> tape.Module | None:
    inner = inside(wrapper)
    return None if inner is None else module_of(m, inner, call)


@attribute(WRAPPER, _SYNCHRONISES)
def is_synchronising(m: Machine, wrapper: Object | Instance, at: Call) -> Abstract:
    """`ddp.require_backward_grad_sync`: whether a forward prepares the exchange of gradients."""
    found: Abstract = wrapper.state.get(_SYNCHRONISES, TRUE)
    return found


@method(WRAPPER, f"__set_{_SYNCHRONISES}__")
def set_sync(m: Machine, wrapper: Object | Instance, call: Call) -> Abstract:
    """`ddp.require_backward_grad_sync = False`: what `no_sync()` does."""
    _synchronise(m, wrapper, call.args[0], call.frame.span(call.node), call)
    return NONE


def _synchronise(
    m: Machine, wrapper: Object | Instance, wanted: Abstract, at: Span, call: Call
) -> None:
    wrapper.state[_SYNCHRONISES] = wanted
    is_wanted = conditions.decide(m, wanted, call.node, call.frame)
    inner = _inner_module(m, wrapper, call)
    m.emit(
        tape.Fact(at=at, what="no-sync", module=inner, detail="left" if is_wanted else "entered")
    )


@method(_NO_SYNC, "__enter__")
def enter(m: Machine, region: Object, call: Call) -> Abstract:
    """The region begins."""
    wrapper = region.state["wrapper"]
    region.state["before"] = is_synchronising(m, wrapper, call)
    _synchronise(m, wrapper, FALSE, region.at, call)
    return NONE


@method(_NO_SYNC, "__exit__")
def leave(m: Machine, region: Object, call: Call) -> Abstract:
    """The region ends: what was in force before is again."""
    _synchronise(m, region.state["wrapper"], region.state["before"], region.at, call)
    return FALSE


@attribute(DDP, "reducer")
def reducer(m: Machine, wrapper: Object | Instance, at: Call) -> Abstract:
    """`ddp.reducer`."""
    return Object(_REDUCER, at.frame.span(at.node), {"wrapper": wrapper})


@method(_REDUCER, "prepare_for_backward")
def prepare(m: Machine, reducer: Object, call: Call) -> Abstract:
    """`ddp.reducer.prepare_for_backward([])`: what a forward does outside of `no_sync()`."""
    inner = _inner_module(m, reducer.state["wrapper"], call)
    m.emit(tape.Fact(at=call.frame.span(call.node), what="ddp-prepared", module=inner))
    return NONE


@method(
    WRAPPER,
    "register_comm_hook",
    "set_static_graph",
    "update_parameters",
    "clip_grad_norm_",
    "summon_full_params",
)
def settings(m: Machine, wrapper: Object | Instance, call: Call) -> Abstract:
    """What changes nothing about the graph."""
    if call.frame.text(call.node).partition("(")[0].endswith("clip_grad_norm_"):
        from gradlint.library.clipping import clip

        return clip(m, wrapper, call)
    return Unknown(m.symbol(wrapper).derive("setting", "setting"), data=True)


@function("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard")
def fully_shard(m: Machine, call: Call) -> Abstract:
    """`fully_shard(module)`: the module, whose parameters are others from here on; those of its
    shards already are.
    """
    sharded: dict[int, Tensor] = m.state.setdefault("sharded", {})
    for tensor in list(parameters_in(m, call.values[0], call)) if call.values else ():
        before = tensor.node
        if id(tensor) in sharded or before.assumed or before.parameter is None:
            continue
        sharded[id(tensor)] = tensor
        at = call.frame.span(call.node)
        own = tape.Parameter(before.parameter.name, before.parameter.module, at, stack=m.where)
        m.parameters[own] = tensor
        m.state.get("tensors-of", {}).pop(id(before), None)
        tensor.node = replace(
            before,
            parameter=own,
            storage=tape.Storage(),
            saves=(),
            at=at,
            stack=m.where,
            order=len(m.tape.events),
        )
        m.emit(tape.Fact(at=at, what="sharded", value=tensor.node, source=before))
    return call.values[0] if call.values else NONE


@function(
    "torch.distributed._composable.replicate",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    "apex.parallel.convert_syncbn_model",
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper",
    "torch.distributed.fsdp.wrap.wrap",
    "torch.distributed.fsdp.wrap.auto_wrap",
)
def same_module(m: Machine, call: Call) -> Abstract:
    """What gives back the module that it was given."""
    return call.values[0] if call.values else NONE


@fallback
def settings_of_wrappers(m: Machine, call: Call) -> Abstract | None:
    """Options of FSDP (`MixedPrecision(…)`, `CPUOffload(…)`): plain data."""
    if call.name.startswith(("torch.distributed.fsdp.", "torch.optim.swa_utils.")) and not is_a(
        call.name, MODULE
    ):
        if is_a(call.name, "torch.optim.lr_scheduler.LRScheduler"):
            return None
        return m.unknown(call.frame.text(call.node), data=True, type="object")
    return None
