"""`torch.utils.data`: batches are data; what the program's own dataset gives is not followed into
them.

How many batches a loader has is known where the length of its dataset, the batch size and
`drop_last` are: a training loop over it then has as many rounds, or as many as leave the same
remainder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import estimates
from gradlint.interpret.estimates import estimated
from gradlint.interpret.iteration import is_counted, iterates, rounds, skip
from gradlint.interpret.lineage import alias, is_a, parent
from gradlint.interpret.registry import attribute, fallback, method, typed
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    Abstract,
    Call,
    Const,
    Function,
    Instance,
    Object,
    Sequence,
    Tensor,
    Unknown,
)

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.tables import Visit

LOADER = "torch.utils.data.DataLoader"
DATASET = "torch.utils.data.Dataset"
_PART = "torch.utils.data.Subset of random_split"
_SAMPLERS = ("torch.utils.data.RandomSampler", "torch.utils.data.SequentialSampler")
parent(_PART, DATASET)
for name in ("TensorDataset", "Subset", "ConcatDataset", "IterableDataset", "ChainDataset"):
    parent(f"torch.utils.data.{name}", DATASET)
for name in ("dataset", "dataloader", "distributed", "sampler"):
    alias(f"torch.utils.data.{name}", "torch.utils.data")
alias("torch_geometric.loader.DataLoader", LOADER)
alias("torch_geometric.data.DataLoader", LOADER)


@fallback
def make(m: Machine, call: Call) -> Abstract | None:
    """Loaders, datasets and samplers."""
    if call.name == "torch.utils.data.random_split":
        return _split(m, call)
    if not call.name.startswith("torch.utils.data."):
        return None
    made = Object(
        call.name, call.frame.span(call.node), {"dataset": call.get(0, "dataset"), "made by": call}
    )
    return made if call.name.rpartition(".")[2][:1].isupper() else m.unknown(call.name, data=True)


def _split(m: Machine, call: Call) -> Abstract:
    """`random_split(dataset, [80, 20])`: parts of these lengths."""
    lengths = call.get(1, "lengths")
    if not isinstance(lengths, Sequence) or lengths.open:
        return m.unknown("split", data=True)
    at = call.frame.span(call.node)
    return Sequence("list", [Object(_PART, at, {"length": length}) for length in lengths.items])


@iterates(LOADER, DATASET)
def batches(m: Machine, loader: Object | Instance, visit: Visit, call: Call) -> None:
    number = m.loops[-1].number if m.loops else 0
    symbol = m.symbol(loader)
    known = _number(m, loader, call) if m.session.loops.takes_batches(m) else None
    turn = 0
    while turn < (
        shown := len(rounds(m)) if known is None else m.session.loops.shown(known, m.loops[-1])
    ):
        if known is not None and turn == shown - 1:
            skip(m, max(0, known - shown))
        batch = Unknown(symbol.derive(("batch", number, turn), "batch"), data=True)
        if visit(_sample(m, loader, turn, call) or batch):
            return
        turn += 1


def _sample(m: Machine, loader: Object | Instance, turn: int, call: Call) -> Abstract | None:
    """What a loader that puts nothing together (`batch_size=None`) hands over: a sample as the
    dataset gives it.
    """
    made: Call | None = loader.state.get("made by")
    size, dataset = (
        (made.get(1, "batch_size"), made.get(0, "dataset")) if made is not None else (None, None)
    )
    if (
        made is None
        or not (isinstance(size, Const) and size.value is None)
        or not isinstance(dataset, Instance)
    ):
        return None
    own = m.session.member_of(dataset.cls, "__getitem__")
    if own is None or made.open or {"collate_fn", "batch_sampler"} & made.kwargs.keys():
        return None
    index = Unknown(m.symbol(loader).derive(("index", turn), "index"), data=True, type="number")
    return m.invoke(own, [dataset, index], call)


def _number(m: Machine, loader: Object | Instance, call: Call) -> int | None:
    """How many items a loader, or a dataset that is looped over itself, hands on."""
    libraries = loader.cls.libraries() if isinstance(loader, Instance) else [loader.cls]
    is_loader = any(is_a(base, LOADER) for base in libraries)
    return number_of_batches(m, loader, call) if is_loader else number_of_samples(m, loader, call)


def number_of_batches(m: Machine, loader: Object | Instance, call: Call) -> int | None:
    """How many batches a loader gives in one epoch, where that is written down."""
    made: Call | None = loader.state.get("made by")
    if made is None or made.open or not is_a(made.name, LOADER) or "batch_sampler" in made.kwargs:
        return None
    samples = number_of_samples(m, made.kwargs.get("sampler") or made.get(0, "dataset"), call)
    size = estimated(m, made.get(1, "batch_size") or Const(1))
    drops = made.kwargs.get("drop_last")
    if samples is None or size is None or size < 1 or len(made.args) > 3:
        return None
    if drops is not None and not isinstance(drops, Const):
        return None
    return samples // size if drops is not None and drops.value else -(-samples // size)


def number_of_samples(m: Machine, dataset: Abstract | None, call: Call) -> int | None:
    """The length of a dataset, or of what a sampler draws from it, where that is written down."""
    match dataset:
        case Tensor():
            return estimates.length(m, dataset)
        case Sequence() if not dataset.open:
            return len(dataset.items) + dataset.left_out
        case Object(cls="torch.utils.data.TensorDataset"):
            return number_of_samples(m, dataset.state["dataset"], call)
        case Object() if dataset.cls == _PART:
            return _whole(m, dataset.state.get("length"))
        case Object() if dataset.cls in _SAMPLERS:
            drawn = dataset.state["made by"].kwargs.get("num_samples")
            return (
                number_of_samples(m, dataset.state["dataset"], call)
                if drawn is None
                else _whole(m, drawn)
            )
        case Instance():
            own = m.session.member_of(dataset.cls, "__len__")
            return _own_length(m, own, dataset, call) if own is not None else None
    return None


def _own_length(m: Machine, own: Abstract, dataset: Instance, call: Call) -> int | None:
    """What the `__len__` of a dataset of the program gives.

    Not of a list whose items nothing is known of: where they come from a listing of files, those
    that are shown stand for as many as there are.

    self.names += [os.path.basename(path) for path in glob(pattern)]
    """
    m.state.pop("measured", None)
    number = _whole(m, m.invoke(own, [dataset], call))
    measured = m.state.get("measured")
    is_shown = (
        isinstance(measured, Sequence)
        and bool(measured.items)
        and not measured.left_out
        and all(isinstance(each, Unknown) for each in measured.items)
    )
    return None if is_shown else number


def _whole(m: Machine, value: Abstract | None) -> int | None:
    if isinstance(value, Unknown) and value.symbol in m.state.get("lengths", ()):
        known: int | None = m.state["lengths"][value.symbol]
        return known
    number = estimated(m, value)
    return number if number is not None and number >= 0 else None


@method(LOADER, "__len__")
def length(m: Machine, loader: Object | Instance, call: Call) -> Abstract:
    """As many batches as the loop over them is run for."""
    known = number_of_batches(m, loader, call)
    if known is None:
        return Const(m.session.loops.batches)
    return Const(m.session.loops.shown(known, m.loops[-1] if m.loops else None), None, known)


@method(DATASET, "__len__")
def size(m: Machine, dataset: Object, call: Call) -> Abstract:
    known = number_of_samples(m, dataset, call)
    if known is not None and not is_counted(m):
        return Const(known)
    symbol = m.symbol(dataset).derive("len", "len(dataset)")
    if known is not None:
        m.state.setdefault("lengths", {})[symbol] = known
    return Unknown(symbol, data=True, type="number")


@method(DATASET, "__getitem__")
def item(m: Machine, dataset: Object, call: Call) -> Abstract:
    return m.unknown("sample", data=True)


@attribute(LOADER, "dataset")
def dataset_of(m: Machine, loader: Object, at: Call) -> Abstract | None:
    given = loader.state.get("dataset")
    return given if isinstance(given, Abstract) else None


@attribute(DATASET, "tensors")
def dataset_tensors(m: Machine, dataset: Object, at: Call) -> Abstract | None:
    return Unknown(m.symbol(dataset).derive("tensors", "tensors"), data=True)


@typed(LOADER, DATASET)
def typed_loader(m: Machine, symbol: Symbol, function: Function, parameter: object) -> Abstract:
    return Object(LOADER, function.node.code.span(function.node.at), {"nullable": True})
