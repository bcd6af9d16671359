"""Whether two values are one, or of one kind: `is`, `==` of objects, `in`."""

from __future__ import annotations

import builtins
import inspect
import types
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import ahead, defaults, filters
from gradlint.interpret.conditions import boolean, known_truth, may_be_a_setting
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
_STANDARD = {"builtins": builtins, "inspect": inspect, "types": types}
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
        is_a_setting = isinstance(left, Lib) and may_be_a_setting(left)
        return None if is_a_setting and right.value is not None else False
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
        known = _is_none(m, left)
        if known is not None:
            return TRUE if known != negated else FALSE
        return boolean(m, Test(m.symbol(left).asked, "is", None, negated), text)
    if isinstance(right, Const) and isinstance(right.value, bool) and not isinstance(left, Const):
        if isinstance(left, Unknown) and left.test is not None:  # mask.any().item() is False
            return boolean(m, left.test if right.value != negated else ~left.test, text)
        return boolean(m, Test(m.symbol(left).asked, "==", right.value, negated), text)
    same = _is_same_class(left, right)
    if left is right or same:
        return FALSE if negated else TRUE
    of = _of_its_type(left, right) or _of_its_type(right, left)
    if of is not None:
        return boolean(m, ~of if negated else of, text)
    is_known = not isinstance(left, Unknown | Lib) and not isinstance(right, Unknown)
    if same is False or is_known:
        return TRUE if negated else FALSE
    return boolean(m, Test(m.symbol(left).asked, "is symbol", m.symbol(right).asked, negated), text)


def _of_its_type(asked: Abstract, cls: Abstract) -> Test | None:
    """The question whether something unknown is of a class, where its type is asked for:
    `type(x) is torch.Tensor` is `isinstance(x, torch.Tensor)`, but for classes derived from it.
    """
    if not (isinstance(asked, Unknown) and isinstance(cls, Lib) and asked.symbol.key == "type"):
        return None
    return None if asked.symbol.source is None else Test(asked.symbol.source, "isa", cls.name)


def _is_none(m: Machine, value: Abstract) -> bool | None:
    """Whether a value is None; None where it may be."""
    if isinstance(value, Unknown):
        return False if _is_of_a_batch(m, value.symbol) else None
    if isinstance(value, Object) and value.state.get("nullable"):
        return None
    return isinstance(value, Const) and value.value is None


def membership(m: Machine, op: str, left: Abstract, right: Abstract, text: str) -> Abstract:
    negated = op == "not in"
    if isinstance(right, Mapping | Sequence) and not (right.items or right.open):
        filters.note_empty(m, m.symbol(right))
    known: bool | None = None
    if isinstance(right, Mapping):
        known = _is_key(left, right)
        if known is None and isinstance(left, Const):
            subject = (right.symbol or m.symbol(right)).derive(("key", left.value), text)
            return boolean(m, Test(subject, "in", None, negated), text)
    elif isinstance(right, Sequence):
        known = _is_item(m, left, right)
        written = None if right.open else _all_constants(right)
        if known is None and isinstance(left, Unknown) and written is not None:
            return boolean(m, Test(left.symbol.asked, "in", written, negated), text)
    if known is not None:
        return TRUE if known != negated else FALSE
    operand: object = m.symbol(left)
    if isinstance(left, Const) and is_hashable(left.value):
        operand = left.value
    test = Test(m.symbol(right).asked, "in", operand, negated)
    part, whole = (_plain_text(m, side) for side in (left, right))
    if part is not None and whole is not None:
        defaults.note_words(m, test, part in whole)
    return boolean(m, test, text)


def _plain_text(m: Machine, value: Abstract) -> str | None:
    """A text, or that of an option which nobody sets."""
    known = defaults.plainly(m, value)
    return known.value if isinstance(known, Const) and isinstance(known.value, str) else None


def _is_key(value: Abstract, mapping: Mapping) -> bool | None:
    """Whether a value is a key of a dict; None where it may be."""
    if isinstance(value, Const):
        return True if _in(value.value, mapping.items) else None if mapping.open else False
    if isinstance(value, Instance | Object):
        is_open = mapping.open or any(map(_is_unknown_key, mapping.items))
        return True if value in mapping.items else None if is_open else False
    return None


def _is_item(m: Machine, value: Abstract, sequence: Sequence) -> bool | None:
    """Whether a value is an item of a list or tuple; None where it may be."""
    constants = [item.value for item in sequence.items if isinstance(item, Const)]
    if sequence.open:
        return True if isinstance(value, Const) and _in(value.value, constants) else None
    if isinstance(value, Const):
        if constants:
            ahead.ask(m, value, constants)
        if _in(value.value, constants):
            return True
        if len(constants) == len(sequence.items):
            return False
    if isinstance(value, Class | Lib):
        answers = [_is_same_class(value, item) for item in sequence.items]
        return True if True in answers else None if None in answers else False
    is_of_others = all(by_dtype(m, value, item) is False for item in sequence.items)
    return False if sequence.items and is_of_others else None


def _all_constants(sequence: Sequence) -> tuple[object, ...] | None:
    """The items of a list or tuple, where all are written down and can be looked up."""
    constants = tuple(item.value for item in sequence.items if isinstance(item, Const))
    is_written = len(constants) == len(sequence.items) and all(map(is_hashable, constants))
    return constants if is_written else None


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
    if not isinstance(value, Lib):
        return isinstance(value, Class)
    home, _, own = value.name.rpartition(".")
    if home in _STANDARD:
        return isinstance(getattr(_STANDARD[home], own, None), type)
    return value.name.startswith("torch.") and own[:1].isupper()


def _in(value: object, collection: Any) -> bool:
    try:
        return value in collection
    except TypeError:
        return False
