"""Whether two values are one, or of one kind: `is`, `==` of objects, `in`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import ahead, filters
from gradlint.interpret.conditions import boolean, known_truth
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.lineage import is_a
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import (
    FALSE,
    TRUE,
    Abstract,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Sequence,
    Unknown,
)

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
_PLAIN = frozenset(["list", "tuple", "set", "dict"])


def is_hashable(value: object) -> bool:
    return isinstance(value, int | float | str | bytes | bool | type(None))


def by_kind(left: Abstract, right: Abstract, relation: str) -> bool | None:
    """Things of different kinds are not equal; one object is equal to itself, and to no other of
    its enum.
    """
    if relation == "==" and left is right and not isinstance(left, Unknown):
        return True
    if (
        relation == "=="
        and isinstance(left, Instance)
        and isinstance(right, Instance)
        and "member" in left.state
    ):
        return False if left.cls is right.cls and "member" in right.state else None
    if (
        relation == "=="
        and isinstance(left, Function | Class | Lib | Instance | Sequence | Mapping | Object)
        and isinstance(right, Const)
    ):
        return False
    if relation == "==" and isinstance(left, Lib) and isinstance(right, Lib):
        return left.name == right.name
    if (
        relation == "=="
        and isinstance(left, Sequence | Mapping)
        and isinstance(right, Sequence | Mapping)
    ):
        return _by_contents(left, right)
    return None


def by_dtype(m: Machine, own: Abstract, other: Abstract) -> bool | None:
    """Whether a tensor's dtype is another one: what carries a gradient, or is of floats, is not of
    integers.
    """
    is_of_floats = _are_floats(m, own)
    if is_of_floats is None:
        return None
    asked = dtype_of(other)
    if asked is None or asked is tape.DType.UNKNOWN:
        return None
    return False if asked.is_differentiable is not is_of_floats else None


def _are_floats(m: Machine, dtype: Abstract) -> bool | None:
    """Whether this is the dtype of something that holds floats; of what is out of view, that it
    carries a gradient, but for what a part works with, of which that is only assumed.
    """
    if isinstance(dtype, Object) and dtype.cls == "torch.dtype":
        found: bool | None = dtype.state.get("floats")
        return found
    if isinstance(dtype, Unknown) and dtype.symbol.key == ("attribute", "dtype"):
        node = m.nodes.get(dtype.symbol.source) if dtype.symbol.source is not None else None
        carries = node is not None and node.requires_grad and not m.session.contract
        return True if carries else None
    return None


def _by_contents(left: Sequence | Mapping, right: Sequence | Mapping) -> bool | None:
    """Whether containers of Python are equal, as far as their kinds say it, or that one is empty:
    `found == []`.
    """
    kinds = {getattr(each, "kind", "dict") for each in (left, right)}
    filled = {known_truth(left), known_truth(right)}
    if not kinds <= _PLAIN or None in filled:
        return None
    if len(kinds) > 1 or len(filled) > 1:
        return False
    return None if True in filled else True


def _is_of_a_batch(m: Machine, symbol: Symbol) -> bool:
    """Whether it is a batch of a training loop, an item of one, or of a dict that is made of one
    item by item: nothing that collates samples makes it None.
    """
    part, is_copied = symbol, False
    copied = dict(m.state.get("copied from", {}))
    while part.source is not None or part in copied:
        if part.source is None:  # {k: v.to(device) for k, v in batch.items()}, model(**batch)
            part, is_copied = copied.pop(part), True
            continue
        how = part.key[0] if isinstance(part.key, tuple) else ""
        if how == "batch" or (how == "item" and m.session.loops.gives_batches(m, part.source)):
            return True
        if how == "item":
            m.state.setdefault("asked for none", set()).add(part.source)
        elif not is_copied:
            return False
        part = part.source
    return False


def identity(m: Machine, op: str, left: Abstract, right: Abstract, text: str) -> Abstract:
    if isinstance(left, Const) and left.value is None:
        left, right = right, left
    negated = op == "is not"
    if isinstance(right, Const) and right.value is None:
        known = (
            None if isinstance(left, Unknown) else isinstance(left, Const) and left.value is None
        )
        if isinstance(left, Object) and left.state.get("nullable"):
            known = None
        if isinstance(left, Unknown) and (
            left.type in ("number", "bool", "str", "array", "tensor")
            and left.test is None
            and left.type != ""
        ):
            known = None
        if isinstance(left, Unknown) and _is_of_a_batch(m, left.symbol):
            known = False
        if known is not None:
            return TRUE if known != negated else FALSE
        return boolean(m, Test(m.symbol(left).asked, "is", None, negated), text)
    if isinstance(right, Const) and isinstance(right.value, bool) and not isinstance(left, Const):
        return boolean(m, Test(m.symbol(left).asked, "==", right.value, negated), text)
    same = _is_same_class(left, right)
    if left is right or same:
        return FALSE if negated else TRUE
    if same is False:
        return TRUE if negated else FALSE
    if (
        not isinstance(left, Unknown)
        and not isinstance(right, Unknown)
        and not isinstance(left, Lib)
    ):
        return TRUE if negated else FALSE
    return boolean(m, Test(m.symbol(left).asked, "is symbol", m.symbol(right).asked, negated), text)


def membership(m: Machine, op: str, left: Abstract, right: Abstract, text: str) -> Abstract:
    negated = op == "not in"
    known: bool | None = None
    if isinstance(right, Mapping | Sequence) and not (right.items or right.open):
        filters.note_empty(m, m.symbol(right))
    if isinstance(right, Mapping) and isinstance(left, Const):
        known = True if _in(left.value, right.items) else None if right.open else False
        if known is None:
            subject = right.symbol or m.symbol(right)
            return boolean(
                m, Test(subject.derive(("key", left.value), text), "in", None, negated), text
            )
    elif isinstance(right, Mapping) and isinstance(left, Instance | Object):
        is_open = right.open or any(map(_is_unknown_key, right.items))
        known = True if left in right.items else None if is_open else False
    elif isinstance(right, Sequence) and right.open:
        constants = [item.value for item in right.items if isinstance(item, Const)]
        known = True if isinstance(left, Const) and _in(left.value, constants) else None
    elif isinstance(right, Sequence):
        constants = [item.value for item in right.items if isinstance(item, Const)]
        if isinstance(left, Const) and constants:
            ahead.ask(m, left, constants)
        if isinstance(left, Const) and _in(left.value, constants):
            known = True
        elif isinstance(left, Const) and len(constants) == len(right.items):
            known = False
        elif isinstance(left, Class | Lib):
            answers = [_is_same_class(left, item) for item in right.items]
            known = True if True in answers else None if None in answers else False
        elif right.items and all(by_dtype(m, left, item) is False for item in right.items):
            known = False
        elif (
            isinstance(left, Unknown)
            and len(constants) == len(right.items)
            and all(map(is_hashable, constants))
        ):
            return boolean(m, Test(left.symbol.asked, "in", tuple(constants), negated), text)
    if known is not None:
        return TRUE if known != negated else FALSE
    operand: object = (
        left.value if isinstance(left, Const) and is_hashable(left.value) else m.symbol(left)
    )
    return boolean(m, Test(m.symbol(right).asked, "in", operand, negated), text)


def _is_unknown_key(key: object) -> bool:
    return isinstance(key, tuple) and key[:1] == ("unknown",)


def _is_same_class(left: Abstract, right: Abstract) -> bool | None:
    """Whether two classes are one; unknown where one may be derived from the other, or be it by
    another path.
    """
    if isinstance(left, Lib) and isinstance(right, Lib):
        if left.name == right.name:
            return True
        if left.name.rpartition(".")[2] == right.name.rpartition(".")[2]:
            return None  # `torch.nn.modules.linear.Linear` is `torch.nn.Linear`
        if is_a(left.name, right.name) or is_a(right.name, left.name):
            return None
    return (left is right) if _is_class(left) and _is_class(right) else None


def _is_class(value: Abstract) -> bool:
    own = (
        isinstance(value, Lib)
        and value.name.startswith("torch.")
        and value.name.rpartition(".")[2][:1].isupper()
    )
    return isinstance(value, Class) or own


def _in(value: object, collection: Any) -> bool:
    try:
        return value in collection
    except TypeError:
        return False
