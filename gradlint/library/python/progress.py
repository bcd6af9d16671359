"""Progress bars: they hand on what they wrap, and say nothing else that matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.iteration import iterates
from gradlint.interpret.registry import attribute, function, method
from gradlint.interpret.tables import Visit
from gradlint.interpret.values import NONE, Abstract, Call, Const, Instance, Lib, Object
from gradlint.library.python.lazies import lazy
from gradlint.library.python.results import fresh

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_BAR = "tqdm.tqdm"
_HOMES = (
    "tqdm",
    *(
        f"tqdm.{part}"
        for part in ("auto", "notebook", "autonotebook", "std", "rich", "asyncio", "gui")
    ),
)


@function(
    *(f"{home}.tqdm" for home in _HOMES), "tqdm.tqdm_notebook", "rich.progress.track",
    "alive_progress.alive_it",
    "fastprogress.progress_bar", "fastprogress.master_bar",
    "fastprogress.fastprogress.progress_bar",
    "fastprogress.fastprogress.master_bar", "progressbar.progressbar",
)  # fmt: skip
def bar(m: Machine, call: Call) -> Abstract:
    """`tqdm(x)`."""
    source = call.get(0, "iterable") or call.kwargs.get("sequence")
    return lazy(_BAR, call, [] if source is None else [source])


@function(*(f"{home}.trange" for home in _HOMES), "tqdm.tnrange")
def trange(m: Machine, call: Call) -> Abstract:
    """`trange(n)` is `tqdm(range(n))`."""
    made = m.call(Lib("builtins.range"), Call("range", call.args, {}, call.node, call.frame))
    return lazy(_BAR, call, [made])


@function("tqdm.contrib.tenumerate")
def tenumerate(m: Machine, call: Call) -> Abstract:
    """`tenumerate(x)` is `enumerate(tqdm(x))`."""
    return lazy(
        "builtins.enumerate", call, call.args[:1], start=call.get(None, "start") or Const(0)
    )


@function("tqdm.contrib.tzip")
def tzip(m: Machine, call: Call) -> Abstract:
    """`tzip(a, b)` is `zip(tqdm(a), b)`."""
    return lazy("builtins.zip", call, list(call.args))


@method(_BAR, "__init__")
def wrap(m: Machine, receiver: Instance, call: Call) -> Abstract:
    """`super().__init__(x)` in a class derived from the bar."""
    wrapped = call.get(0, "iterable")
    receiver.state["sources"] = [m.unknown("iterable") if wrapped is None else wrapped]
    return NONE


@iterates(_BAR)
def over_bar(m: Machine, receiver: Object | Instance, visit: Visit, call: Call) -> None:
    """What the bar wraps."""
    for source in receiver.state.get("sources") or [m.unknown("iterable")]:
        m.iterate(source, visit, call)


@method(_BAR, "__enter__")
def enter(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`with tqdm(x) as bar`."""
    return receiver


@method(_BAR, "__exit__")
def leave(m: Machine, receiver: Object, call: Call) -> Abstract:
    """The bar is closed."""
    return NONE


@method(_BAR, "__len__")
def length(m: Machine, receiver: Object, call: Call) -> Abstract:
    """The length of what the bar wraps."""
    wrapped: list[Abstract] = receiver.state.get("sources") or [m.unknown("iterable")]
    return m.call(Lib("builtins.len"), Call("len", wrapped[:1], {}, call.node, call.frame))


@method(_BAR, "*")
def other(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`bar.set_postfix(loss=loss)`, `bar.update()`."""
    return fresh(m, call)


@attribute(_BAR, "n", "total", "desc", "format_dict", "postfix")
def shown(m: Machine, receiver: Object, call: Call) -> Abstract:
    """What the bar shows."""
    return fresh(m, call, "")
