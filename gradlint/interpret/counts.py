"""How many elements of a mask are true: what is known of it is known of what the mask selects.

if not mask.any():
    mask[-1] = True
picked = scores[mask]
if len(picked) > 0:     # it is, on both sides
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import shapes
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import Abstract, Const, Tensor, Unknown
from gradlint.operations import Trait, canonical, has
from gradlint.tape import Value

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
_CALLED: object = ("call", (), ())  # with nothing


def of_tensor(m: Machine, mask: Tensor) -> Symbol:
    """How many elements of a mask are true."""
    return m.symbol(mask).derive("count", f"{mask.node.title}.sum()")


def of_unknown(mask: Symbol) -> Symbol:
    """How many elements of what can be a mask are true: what `mask.sum()` gives."""
    summing = mask.derive(("attribute", "sum"), f"{mask.text}.sum")
    return summing.derive(_CALLED, f"{summing.text}()")


def note_selection(m: Machine, made: Value, index: Abstract) -> None:
    """Takes down whether `target[index]` has rows, where the index is a mask of which it is known
    whether any of its elements is true.
    """
    has_some = _has_some(m, index)
    if has_some is not None:
        m.state.setdefault("selections", {})[id(made)] = (made, has_some)


def learn(m: Machine, tensor: Tensor, size: Symbol) -> None:
    """Has a size of what a mask selected be above zero, or zero, as is known of the mask."""
    selections = m.state.get("selections")
    noted = selections.get(id(of_as_many_rows(tensor.node))) if selections else None
    if noted is not None:
        m.oracle.facts.learn(Test(size.asked, ">=", 0), True)
        m.oracle.facts.learn(Test(size.asked, ">", 0), noted[1])


def of_as_many_rows(value: Value) -> Value:
    """The tensor of which the rows are that `value` is computed from, one of each:
    `x[mask].log_softmax(-1).gather(1, picks[mask])`.
    """
    while True:
        below = _row_by_row(value)
        if below is None:
            return value
        value = below


def _row_by_row(value: Value) -> Value | None:
    name, inside = canonical(value.op), (1, -1)
    if name == "gather":
        index = value.argument(2, "index")
        return index if isinstance(index, Value) else None
    is_of_one = len(value.inputs) == 1
    if has(name, Trait.KEEPS_SHAPE) or (is_of_one and has(name, Trait.POINTWISE, Trait.CASTS)):
        return value.inputs[0]
    is_an_axis = is_of_one and name in ("squeeze", "unsqueeze")
    return value.inputs[0] if is_an_axis and value.argument(1, "dim") in inside else None


def _has_some(m: Machine, mask: Abstract) -> bool | None:
    match mask:
        case Tensor():
            written = shapes.has_some(mask.node)
            count = of_tensor(m, mask)
        case Unknown():
            written = True if _is_written_true(m, mask) else None
            count = of_unknown(mask.symbol)
        case _:
            return None
    # what was asked of something unknown was asked before it was written to
    return m.oracle.facts.known(Test(count.asked, ">", 0)) if written is None else written


def _is_written_true(m: Machine, mask: Unknown) -> bool:
    """Whether the program has set some of its elements, `mask[-1] = True`, and nothing else."""
    known = m.overrides.get(mask.symbol, {})
    written = [value for key, value in known.items() if key.startswith("item:")]
    return bool(written) and all(
        isinstance(value, Const) and value.value is True for value in written
    )
