"""`torch.optim.lr_scheduler`: the steps of schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret.registry import method, typed
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import NONE, Abstract, Call, Function, Instance, Object
from gradlint.library.optimizers import SCHEDULER, SCHEDULERS, handle_of

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


@method(SCHEDULER, "step")
def scheduler_step(m: Machine, scheduler: Abstract, call: Call) -> Abstract:
    handle = scheduler.state.get("handle") if isinstance(scheduler, Object | Instance) else None
    if not isinstance(handle, tape.Scheduler):
        symbol = m.symbol(scheduler)
        handle = m.state.setdefault("schedulers", {}).setdefault(
            symbol, tape.Scheduler(symbol.text, call.frame.span(call.node), None)
        )
    m.emit(
        tape.SchedulerStep(
            at=call.frame.span(call.node), scheduler=handle, text=call.frame.text(call.node)
        )
    )
    return NONE


@method(SCHEDULER, "__init__")
def initialise_scheduler(m: Machine, instance: Instance, call: Call) -> Abstract:
    instance.state["handle"] = tape.Scheduler(
        "", call.frame.span(call.node), handle_of(m, call.get(0, "optimizer"), call)
    )
    return NONE


@method(SCHEDULER, "state_dict", "load_state_dict", "get_last_lr", "print_lr")
def scheduler_state(m: Machine, scheduler: Abstract, call: Call) -> Abstract:
    return m.unknown("state", data=True)


@typed(f"{SCHEDULERS}.LambdaLR", SCHEDULER, f"{SCHEDULERS}._LRScheduler")
def typed_scheduler(m: Machine, symbol: Symbol, function: Function, parameter: object) -> Abstract:
    """A scheduler of an optimizer that is handed in, too; of which class derived from that, nobody
    says.
    """
    at = function.node.code.span(function.node.at)
    return Object(
        SCHEDULER,
        at,
        {"handle": tape.Scheduler(symbol.text, at, None, SCHEDULER), "nullable": True},
    )
