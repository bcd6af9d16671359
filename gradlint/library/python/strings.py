"""Strings: how they are made, and their methods."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from gradlint.interpret import defaults
from gradlint.interpret.registry import METHODS, function, method
from gradlint.interpret.symbols import Test
from gradlint.interpret.values import Abstract, Call, Const, Sequence, Unknown
from gradlint.library.python.results import constant, fresh, functions, place, plain, same, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_SIMPLE = (str, int, float, bool, type(None))
_NUMBERS = ("count", "find", "index", "rfind", "rindex")
_TRUTHS = ("startswith", "endswith", *(name for name in dir(str) if name.startswith("is")))
_LISTS = ("split", "rsplit", "splitlines", "partition", "rpartition")
MAX_LENGTH = 10_000  # of a string that is computed
_MULTIPLYING = ("replace", "join", "format")
MAX_TEXT = 2_000  # characters that these are given: they can make the square of that
_WIDTH = re.compile(r"[0-9]{4}")


@functions("builtins.str", "builtins.repr")
def written(m: Machine, call: Call, name: str) -> Abstract:
    """`str(x)`."""
    if not call.args:
        return constant(call, "")
    value = call.args[0]
    if isinstance(value, Const) and isinstance(value.value, _SIMPLE):
        return constant(call, repr(value.value) if name == "builtins.repr" else str(value.value))
    if isinstance(value, Unknown) and value.type == "str" and name == "builtins.str":
        return value
    made = Unknown(m.symbol(value).derive(name, text(call)), data=True, type="str")
    default = m.state.get("defaults", {}).get(m.symbol(value))
    if isinstance(default, int | float) and name == "builtins.str":
        defaults.note_text(m, made, str(default))
    return made


@function("builtins.format")
def format_(m: Machine, call: Call) -> Abstract:
    """`format(x, spec)`."""
    return same(m, call, "builtins.format", call.args, "str")


@function("builtins.bytes", "builtins.bytearray", "builtins.memoryview")
def bytes_(m: Machine, call: Call) -> Abstract:
    """Bytes: no gradient, and nothing that is followed."""
    return fresh(m, call)


def _method(name: str) -> None:
    @method("str", name)
    def handler(m: Machine, receiver: Const | Unknown, call: Call) -> Abstract:
        known = _computed(name, _by_default(m, receiver) if name in _LISTS else receiver, call)
        if known is not None:
            return _value(call, known)
        kind = (
            "number"
            if name in _NUMBERS
            else "bool"
            if name in _TRUTHS
            else ""
            if name in _LISTS
            else "str"
        )
        made = same(m, call, f"str.{name}", [receiver, *call.values], kind)
        made.origin = None
        if kind == "bool":
            _note_default(m, name, receiver, call, made)
        _follow_default(m, name, receiver, call, made)
        return made


def _follow_default(
    m: Machine, name: str, receiver: Const | Unknown, call: Call, made: Unknown
) -> None:
    """Notes what the method gives of what most objects of a part are made with:
    `ACTIVATIONS[act.lower()]`.
    """
    default = _by_default(m, receiver)
    if default is receiver:
        return
    args = [_by_default(m, arg) if isinstance(arg, Unknown) else arg for arg in call.args]
    known = _computed(name, default, dataclasses.replace(call, args=args))
    if isinstance(known, str | bool):
        m.state["defaults"][made.symbol] = known


def _note_default(m: Machine, name: str, receiver: Abstract, call: Call, made: Unknown) -> None:
    """Notes what a question about texts is answered with where nobody sets the options that it
    asks about: `name.startswith(args.frozen)`.
    """
    args = [defaults.plainly(m, arg) for arg in call.args]
    known = _computed(name, defaults.plainly(m, receiver), dataclasses.replace(call, args=args))
    if isinstance(known, bool):
        defaults.note_words(m, Test(made.symbol, "true"), known)


def _by_default(m: Machine, receiver: Const | Unknown) -> Const | Unknown:
    """What a module is made with that is taken apart, `norm="batch-relu"`: the words of its default
    go together.
    """
    default = (
        m.state.get("defaults", {}).get(receiver.symbol) if isinstance(receiver, Unknown) else None
    )
    return Const(default) if isinstance(default, str) else receiver


def _computed(name: str, receiver: Abstract, call: Call) -> Any:
    """The method of a constant with constant arguments; None where it cannot be computed."""
    known = plain([receiver, *_flat(call.args)])
    if (
        known is None
        or call.kwargs
        or call.open
        or not all(isinstance(value, _SIMPLE) for value in known)
    ):
        return None
    args = [_plain(arg) for arg in call.args]
    if not _is_bounded(name, known):
        return None
    try:
        return getattr(known[0], name)(*args)
    except (TypeError, ValueError, LookupError, AttributeError):
        return None


def _plain(arg: Abstract) -> Any:
    """A constant, or a list or tuple of such: `startswith` takes no list."""
    if isinstance(arg, Sequence):
        items = [item.value for item in arg.items if isinstance(item, Const)]
        return tuple(items) if arg.kind == "tuple" else items
    return arg.value if isinstance(arg, Const) else None


def _is_bounded(name: str, values: list[Any]) -> bool:
    """Whether a method of these values makes a short string, whatever it does with them."""
    if any(isinstance(value, int) and value > MAX_LENGTH for value in values):
        return False  # a width, or the size of a tab
    texts = [value for value in values if isinstance(value, str)]
    if name == "format" and any(_WIDTH.search(text) for text in texts):
        return False
    return name not in _MULTIPLYING or sum(map(len, texts)) <= MAX_TEXT


def _flat(args: list[Abstract]) -> list[Abstract]:
    flat: list[Abstract] = []
    for arg in args:
        flat.extend(
            [*arg.items, *([arg] if arg.open else [])] if isinstance(arg, Sequence) else [arg]
        )
    return flat


def _value(call: Call, value: Any) -> Abstract:
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return Sequence(kind, [constant(call, item) for item in value], at=place(call))
    return constant(call, value)


for _name in dir(str):
    if not _name.startswith("__") and ("str", _name) not in METHODS:
        _method(_name)


@method("str", "__len__")
def length(m: Machine, receiver: Const | Unknown, call: Call) -> Abstract:
    """`x.__len__()`."""
    return Const(len(receiver.value)) if isinstance(receiver, Const) else fresh(m, call, "number")


@method(("int", "float"), "item", "bit_length", "conjugate", "is_integer", "as_integer_ratio")
def of_number(m: Machine, receiver: Const, call: Call) -> Abstract:
    """A method of a number."""
    return fresh(m, call, "number")
