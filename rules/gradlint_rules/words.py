"""The sentences that several rules share, and the places that they point at."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from gradlint.finding import Related, Role, Severity, Span
from gradlint.owners import grouped
from gradlint.tape import (
    HANDED,
    Backward,
    Decision,
    Kind,
    Optimizer,
    Parameter,
    Scheduler,
    Value,
    leaves,
)

PLACES = 4
_FEW = 3
_CALLED = re.compile(r"([\w.]+(?:\[[^\[\]]*\])?)\.backward\(")
_MADE = re.compile(r"([a-z_]\w*\.)*[A-Z]\w*\(")
_BY_FRAMEWORK = {
    "training_step": "Lightning's backward of what `training_step` returns",
    "compute_loss": "the Trainer's backward of what `compute_loss` returns",
}


def quoted(value: Value) -> str:
    """How a message names a value: `loss`."""
    return f"`{value.title}`"


def operation(op: str) -> str:
    """How a message names an operation: `.detach()`, `torch.round()`, `float()`."""
    owner, _, name = op.rpartition(".")
    if owner == "torch.Tensor":
        if name.startswith("__") and name.endswith("__"):
            return f"`{name.strip('_')}`"
        return f"`.{name}`" if name in ("data", "T", "real", "imag") else f"`.{name}()`"
    if not owner and not name.isidentifier():
        return f"`{name}`"
    return f"`{op.replace('torch.nn.functional.', 'F.')}()`"


def maker(value: Value) -> str:
    """How a message names the operation that made `value`: as the user wrote an operator, or by its
    name.
    """
    if value.layer:  # the text is the call of the whole `nn.Sequential`
        return f"{operation(value.op)} in `{value.layer}`"
    is_named = not value.text or bare(value.op) in value.text
    return operation(value.op) if is_named else f"`{value.text}`"


@functools.lru_cache(maxsize=4096)
def bare(op: str) -> str:
    """The last word of an operation's name, the same for operators and in-place twins:
    `torch.Tensor.mul_` is mul.
    """
    return op.rpartition(".")[2].strip("_")


def listed(words: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def owners(parameters: Iterable[Parameter], known: Iterable[Value]) -> list[str]:
    """A few parameters by their names; more by the modules of which all that is known is among
    them.
    """
    return [f"`{name}`" for name in owner_paths(parameters, known)]


def owner_paths(parameters: Iterable[Parameter], known: Iterable[Value]) -> list[str]:
    """As `owners`, without quotes."""
    names = list(dict.fromkeys(parameter.path for parameter in parameters))
    if len(names) <= _FEW:
        return names
    return grouped(names, (value.parameter.path for value in known if value.parameter is not None))


def shortly(words: Sequence[str]) -> str:
    """`a`, `b` and `c`; of more, `a`, `b` and 2 more."""
    return (
        listed(words) if len(words) <= _FEW else f"{', '.join(words[:2])} and {len(words) - 2} more"
    )


def when(decisions: Iterable[Decision]) -> str:
    """` when `valid.any()` is false`, with a space before it; nothing where nothing has to be
    decided.
    """
    said = list(dict.fromkeys(str(decision) for decision in decisions))
    return f" when {listed(said[-3:])}" if said else ""


def backward(sink: Backward) -> str:
    """How a message names a sink: `loss.backward()`."""
    if sink.assumed:
        return f"the backward, when {loss_of(sink)} is back-propagated,"
    if sink.sink in _BY_FRAMEWORK:
        return _BY_FRAMEWORK[sink.sink]
    return f"`{sink.text}`" if sink.text else "the backward"


def loss_of(sink: Backward) -> str:
    """How a message names the loss of a sink: as it is called there, or by its own name
    (`engine.backward(loss)`).
    """
    if sink.assumed:
        is_handed = any(HANDED in value.flags for value in sink.ancestors)
        return f"what `{sink.text}` is given" if is_handed else f"the result of `{sink.text}`"
    if sink.loss:
        return f"`{sink.loss}`"
    called = _CALLED.match(sink.text)
    is_given = called is not None and re.match(
        re.escape(sink.value.title) + "[,)]", sink.text[called.end() :]
    )
    return f"`{called[1]}`" if called and not is_given else quoted(sink.value)


def severity_in(sink: Backward, *values: Value) -> Severity | None:
    """That of what happens in a part where an argument alone can carry the gradient: whether it
    does is not in view.
    """
    return Severity.WARNING if sink.assumed and all(map(is_of_arguments, values)) else None


def is_of_arguments(value: Value) -> bool:
    """Whether nothing in view gives a value its gradient."""
    return all(leaf.kind is Kind.UNKNOWN for leaf in leaves(value))


def where_given(value: Value) -> str:
    """`, where `x` carries a gradient`, if arguments of a part alone give a value its own; else
    nothing.
    """
    if not is_of_arguments(value):
        return ""
    names = list(dict.fromkeys(quoted(leaf) for leaf in leaves(value)))
    return f", where {listed(names)} {'carry' if names[1:] else 'carries'} a gradient"


def to_sink(sink: Backward) -> Related:
    """The place of a sink, for the reader."""
    if sink.assumed:
        said = f"{loss_of(sink)} is taken to be back-propagated, as a trainer out of view would do"
        return Related(sink.at, said, Role.BACKWARD)
    return Related(sink.at, f"{loss_of(sink)} is back-propagated here", Role.BACKWARD)


def is_out_of_view(made: Optimizer | Scheduler) -> bool:
    """Whether a class out of view made it, whose `step` can do as it likes:
    `LinearWarmUp(optimizer, warmup=0.1)`.
    """
    return not made.cls and _MADE.match(made.name) is not None


def calls(stack: Sequence[Span], known: Sequence[Span]) -> list[Related]:
    """The last calls of `stack` that are not on `known`, which led to the finding."""
    return [
        Related(at, "called from here", Role.CALL)
        for at in [at for at in stack if at not in known][-2:]
    ]


def places(at: Span, *related: Related) -> tuple[Related, ...]:
    """The related places of a finding at `at`: each once, a few of them, the last one kept."""
    found: dict[Span, Related] = {}
    for place in related:
        if place.at != at:
            found.setdefault(place.at, place)
    shown = list(found.values())
    return tuple(shown if len(shown) < PLACES else [*shown[: PLACES - 2], shown[-1]])
