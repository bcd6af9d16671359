"""Who trains what: of each module's parameters whether a backward reached them, who holds them,
whether they moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gradlint.tape import OptimizerStep, Tape, Value


@dataclass(slots=True)
class Row:
    """The parameters of one module: how many, and how many of them each thing is true of."""

    module: str
    count: int = 0
    frozen: int = 0
    reached: int = 0
    moved: int = 0
    compared: int = 0  # whether they moved was looked at
    holders: dict[str, None] = field(default_factory=dict)


def rows(tape: Tape) -> list[Row]:
    """A row for each module whose own parameters an optimizer holds or a backward reaches."""
    stepping = {id(step.optimizer): step.optimizer for step in tape.of(OptimizerStep)}
    reached = {
        id(leaf.parameter) for sink in tape.backwards() for leaf in sink.leaves if leaf.parameter
    }
    found: dict[str, Row] = {}
    for value in _parameters(tape):
        assert value.parameter is not None
        module = value.parameter.module.path if value.parameter.module else value.parameter.name
        row = found.setdefault(module, Row(module))
        row.count += 1
        row.frozen += not value.requires_grad
        row.reached += id(value.parameter) in reached
        row.moved += "moved" in value.flags
        row.compared += not value.flags.isdisjoint(("moved", "still"))
        holders = (one for one in stepping.values() if one.holds(value.parameter))
        row.holders.update((one.name or one.cls, None) for one in holders)
    return list(found.values())


def _parameters(tape: Tape) -> Iterator[Value]:
    """Every parameter that is held or reached, once, in the order in which they were made."""
    held = [value for optimizer in tape.optimizers() for value in optimizer.parameters]
    reached = [leaf for sink in tape.backwards() for leaf in sink.leaves]
    known = {
        id(value.parameter): value for value in (*reached, *held) if value.parameter is not None
    }
    return iter(sorted(known.values(), key=lambda value: value.order))


def table(tape: Tape) -> list[tuple[str, str, str, str, str]]:
    """The rows as cells, below a head; nothing where no parameter was seen."""
    cells = [*map(_cells, rows(tape))]
    return [("parameters of", "number", "gradient", "held by", "moved"), *cells] if cells else []


def as_text(tape: Tape) -> str:
    """The rows as a table; '' where no parameter was seen."""
    lines = table(tape)
    if not lines:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    shown = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "who trains what:\n" + "".join(f"  {line.rstrip()}\n" for line in shown)


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    trainable = row.count - row.frozen
    gradient = "frozen" if not trainable else _share(row.reached, trainable)
    return (
        row.module,
        str(row.count),
        gradient,
        ", ".join(row.holders) or "nobody",
        _share(row.moved, row.compared),
    )


def _share(some: int, whole: int) -> str:
    return (
        "-" if not whole else "no" if not some else "yes" if some >= whole else f"{some} of {whole}"
    )
