"""`torch.utils.data`: batches are data; what the program's own dataset gives is not followed into them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.iteration import iterates, rounds
from gradlint.interpret.registry import alias, attribute, fallback, method, parent, typed
from gradlint.interpret.values import Abstract, Call, Const, Function, Object, Symbol, Unknown

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine, Visit

LOADER = "torch.utils.data.DataLoader"
DATASET = "torch.utils.data.Dataset"
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
        return m.unknown("split", data=True)
    if not call.name.startswith("torch.utils.data."):
        return None
    made = Object(call.name, call.frame.span(call.node), {"dataset": call.get(0, "dataset")})
    return made if call.name.rpartition(".")[2][:1].isupper() else m.unknown(call.name, data=True)


@iterates(LOADER, DATASET)
def batches(m: Machine, loader: Object, visit: Visit, call: Call) -> None:
    number = m.loops[-1].number if m.loops else 0
    symbol = m.symbol(loader)
    turn = 0
    while turn < len(rounds(m)):
        if visit(Unknown(symbol.derive(("batch", number, turn), "batch"), data=True)):
            return
        turn += 1


@method(LOADER, "__len__")
def length(m: Machine, loader: Object, call: Call) -> Abstract:
    """As many batches as the loop over them is run for."""
    return Const(m.session.batches)


@method(DATASET, "__len__")
def size(m: Machine, dataset: Object, call: Call) -> Abstract:
    return Unknown(m.symbol(dataset).derive("len", "len(dataset)"), data=True, type="number")


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
