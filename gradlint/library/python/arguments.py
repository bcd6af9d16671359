"""Command-line arguments: argparse. What a user can set is unknown, and the same each time that it
is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.registry import function, method
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Call,
    Const,
    Lib,
    Object,
    Sequence,
    Unknown,
)
from gradlint.library.python.results import place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PARSER = "argparse.ArgumentParser"
_TYPES = {
    "builtins.int": "number",
    "builtins.float": "number",
    "builtins.str": "str",
    "builtins.bool": "bool",
}
_ACTIONS = {
    "store_true": "bool", "store_false": "bool", "count": "number", "append": "object",
    "extend": "object",
}  # fmt: skip
_IMPLIED: dict[str, Abstract] = {"store_true": FALSE, "store_false": TRUE}
_DEFAULTS = {int: "number", float: "number", str: "str", bool: "bool"}


@function(_PARSER)
def parser(m: Machine, call: Call) -> Abstract:
    """`ArgumentParser()`."""
    return Object(_PARSER, place(call), {"types": {}})


@method(
    _PARSER, "add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"
)
def group(m: Machine, receiver: Object, call: Call) -> Abstract:
    """A part of the parser: its arguments are the parser's."""
    return receiver


@method(_PARSER, "add_argument")
def add_argument(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Notes the type of an argument under the name that its value will have."""
    flags = [
        flag.value for flag in call.args if isinstance(flag, Const) and isinstance(flag.value, str)
    ]
    long = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
    name = call.constant(None, "dest") or long.lstrip("-").replace("-", "_")
    receiver.state.setdefault("types", {})[name] = _type(call)
    receiver.state.setdefault("options", {})[name] = (
        call.kwargs.get("choices"),
        _default(call, flags),
    )
    return NONE


def _default(call: Call, flags: list[str]) -> Abstract | None:
    """What an option is that the user does not give; None where that is not known, or has to be
    given.
    """
    if (
        "default" in call.kwargs
        or "required" in call.kwargs
        or not flags
        or not flags[0].startswith("-")
    ):
        return call.kwargs.get("default")
    return _IMPLIED.get(str(call.constant(None, "action")), NONE)


def _type(call: Call) -> str:
    action = call.kwargs.get("action")
    if isinstance(action, Const) and action.value in _ACTIONS:
        return _ACTIONS[action.value]
    if isinstance(action, Lib) and action.name == "argparse.BooleanOptionalAction":
        return "bool"
    if "nargs" in call.kwargs and call.constant(None, "nargs") != "?":
        return "object"
    given, default = call.kwargs.get("type"), call.constant(None, "default")
    if given is None:
        return (
            "str"
            if default is None or isinstance(default, str)
            else _DEFAULTS.get(type(default), "str")
        )
    return _TYPES.get(given.name, "") if isinstance(given, Lib) else ""


@method(_PARSER, "set_defaults")
def set_defaults(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Settings that no flag changes."""
    receiver.state.setdefault("set", {}).update(call.kwargs)
    return NONE


@method(_PARSER, "parse_args", "parse_intermixed_args")
def parse_args(m: Machine, receiver: Object, call: Call) -> Abstract:
    """The namespace: something unknown whose known arguments have types."""
    symbol = m.symbol(receiver).derive("arguments", "args")
    made = Unknown(symbol, data=True, type="object")
    for name, kind in receiver.state.get("types", {}).items():
        argument = Unknown(symbol.derive(("attribute", name), f"args.{name}"), data=True, type=kind)
        m.overrides[symbol].setdefault(f"attribute:{name}", argument)
        m.state.setdefault("options", {})[argument.symbol] = receiver.state["options"].get(name)
    for name, value in receiver.state.get("set", {}).items():
        m.overrides[symbol].setdefault(f"attribute:{name}", value)
    return made


@method(_PARSER, "parse_known_args")
def parse_known_args(m: Machine, receiver: Object, call: Call) -> Abstract:
    """The namespace and the arguments left over."""
    return Sequence(
        "tuple", [parse_args(m, receiver, call), m.unknown(text(call), data=True)], at=place(call)
    )


@method(_PARSER, "print_help", "print_usage", "error", "exit")
def shown(m: Machine, receiver: Object, call: Call) -> Abstract:
    """What a user reads."""
    return NONE


@method(_PARSER, "*")
def other(m: Machine, receiver: Object, call: Call) -> Abstract:
    """Anything else that a parser does."""
    return m.unknown(text(call), data=True)


@function("argparse.Namespace", "types.SimpleNamespace")
def namespace(m: Machine, call: Call) -> Abstract:
    """`Namespace(lr=0.1)`: the attributes that it was given."""
    return Object("argparse.Namespace", place(call), attrs=dict(call.kwargs))
