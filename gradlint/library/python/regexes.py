"""Regular expressions, where the pattern and the text are known.

for name, parameter in model.named_parameters():
    parameter.requires_grad = re.search(r"layer4|fc", name) is not None
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gradlint.interpret.registry import function, method
from gradlint.interpret.values import NONE, Abstract, Call, Const, Lib, Mapping, Object, Sequence
from gradlint.library.python.results import constant, functions, place, plain, same

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PARSER: Any = importlib.import_module("re._parser")  # what `re` itself reads a pattern with
_LONGEST = 200  # of a text and a pattern that are tried, in characters
_MOST_REPEATS = 4  # in one pattern
_SEARCHES = ("match", "search", "fullmatch")
_OTHERS = ("sub", "split", "findall")
_NAMES = (*_SEARCHES, *_OTHERS)


@function("re.compile")
def compiled(m: Machine, call: Call) -> Abstract:
    """`re.compile(pattern)`."""
    pattern = _pattern(call)
    if pattern is None:
        return same(m, call, "re.compile", call.values, "object")
    return Object("re.Pattern", place(call), state={"pattern": pattern})


@functions(*(f"re.{name}" for name in _NAMES))
def asked(m: Machine, call: Call, name: str) -> Abstract:
    """`re.search(pattern, text)`."""
    pattern = _pattern(call)
    given = call.args[1:2] if name.rpartition(".")[2] in _SEARCHES else call.args[1:]
    found = None if pattern is None else _run(m, pattern, name, given, call)
    return found or same(m, call, name, call.values, "")


def _of_pattern(name: str) -> None:
    @method("re.Pattern", name)
    def handler(m: Machine, receiver: Object, call: Call) -> Abstract:
        pattern = receiver.state.get("pattern")  # an object of a class derived from it has none
        if pattern is None or call.kwargs:
            return same(m, call, f"re.{name}", [receiver, *call.values], "")
        found = _run(m, pattern, name, call.args, call)
        return found or same(m, call, f"re.{name}", [receiver, *call.values], "")


for _name in _NAMES:
    _of_pattern(_name)


def _pattern(call: Call) -> re.Pattern[str] | None:
    """The pattern that a call is given, where it is known and quickly tried on any text."""
    written, flags = plain(call.args[:1]), list(call.kwargs.values())
    if call.kwargs.keys() - {"flags"}:  # re.sub(pattern, "", text, count=1)
        return None
    if call.name == "re.compile":
        flags += call.args[1:]
    elif call.name.rpartition(".")[2] in _SEARCHES:
        flags += call.args[2:]
    if not written or not isinstance(written[0], str):
        return None
    known = [_flag(each) for each in flags]
    if None in known or len(known) > 1 or not _is_quick(written[0]):
        return None
    try:
        return re.compile(written[0], *known)
    except (re.error, OverflowError, RecursionError):
        return None


def _flag(value: Abstract) -> Any:
    if isinstance(value, Lib) and value.name.startswith("re."):
        return getattr(re, value.name.removeprefix("re."), None)
    return value.value if isinstance(value, Const) and isinstance(value.value, int) else None


def _is_quick(pattern: str) -> bool:
    """Whether trying a pattern takes no time that grows out of hand: no repeat in a repeat."""
    if len(pattern) > _LONGEST:
        return False
    try:
        return _repeats(_PARSER.parse(pattern), inside=False) <= _MOST_REPEATS
    except (re.error, OverflowError, RecursionError):
        return False


def _repeats(parsed: Iterable[Any], *, inside: bool) -> int:
    """How many repeats a pattern has; one inside of another counts as too many."""
    found = 0
    for op, argument_ in parsed:
        is_repeat = str(op).endswith("REPEAT")
        if is_repeat:
            found += _MOST_REPEATS + 1 if inside else 1
        for part in _parts(argument_):
            found += _repeats(part, inside=inside or is_repeat)
    return found


def _parts(value: Any) -> Iterable[Any]:
    """The patterns within what an operation of a pattern is given."""
    if isinstance(value, _PARSER.SubPattern):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _parts(each)


def _run(
    m: Machine, pattern: re.Pattern[str], name: str, args: list[Abstract], call: Call
) -> Abstract | None:
    """What a method of a pattern gives; None where that is not known."""
    known = plain(args)
    short = (isinstance(each, str) and len(each) <= _LONGEST for each in known or ())
    if not known or not all(short):
        return None
    try:
        found = getattr(pattern, name.rpartition(".")[2])(*known)
    except (re.error, TypeError, IndexError):
        return None
    if isinstance(found, re.Match):
        return Object("re.Match", place(call), state={"match": found})
    return _value(call, found)


def _value(call: Call, found: Any) -> Abstract:
    match found:
        case None:
            return NONE
        case list() | tuple():
            return Sequence(
                type(found).__name__, [_value(call, each) for each in found], at=place(call)
            )
        case dict():
            return Mapping({key: _value(call, each) for key, each in found.items()}, at=place(call))
    return constant(call, found)


def _of_match(name: str) -> None:
    @method("re.Match", name)
    def handler(m: Machine, receiver: Object, call: Call) -> Abstract:
        known, match = plain(call.args), receiver.state.get("match")
        if known is None or call.kwargs or match is None:
            return same(m, call, f"re.Match.{name}", [receiver, *call.values], "")
        asked: Callable[..., Any] = getattr(match, name)
        try:
            return _value(call, asked(*known))
        except (IndexError, TypeError):
            return same(m, call, f"re.Match.{name}", [receiver, *call.values], "")


for _name in ("group", "groups", "groupdict", "start", "end", "span", "__getitem__"):
    _of_match(_name)
