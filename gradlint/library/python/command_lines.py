"""Settings that a library reads into a dataclass of the program: tyro, simple-parsing, draccus,
pyrallis, and the parser of transformers.

    args = tyro.cli(Args)

What a user can set is unknown; on the first path each field is what its default says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import calls
from gradlint.interpret.lineage import alias, parent
from gradlint.interpret.registry import function, method
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import (
    Abstract,
    Call,
    Class,
    Const,
    Instance,
    Lib,
    Object,
    Sequence,
    Unknown,
)
from gradlint.library.python.results import place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PARSER = "transformers.HfArgumentParser"
alias("transformers.hf_argparser.HfArgumentParser", _PARSER)
parent("trl.TrlParser", _PARSER)
_KINDS = {bool: "bool", int: "number", float: "number", str: "str"}


def filled(m: Machine, call: Call) -> Abstract | None:
    """A function of a library that is given a dataclass, and no object of one, fills one in."""
    given = [value for value in call.values if isinstance(value, Class) and value.dataclass]
    is_filled = any(isinstance(value, Instance) and value.cls.dataclass for value in call.values)
    last = call.name.rpartition(".")[2]
    if len(given) != 1 or is_filled or last[:1].isupper() or call.name.startswith("torch."):
        return None
    return _settings(m, given[0], m.unknown(text(call)).symbol, call)


@function(_PARSER, "trl.TrlParser")
def parser(m: Machine, call: Call) -> Abstract:
    """`HfArgumentParser((ModelArguments, TrainingArguments))`."""
    given = call.get(0, "dataclass_types")
    classes = given.items if isinstance(given, Sequence) else [given] if given is not None else []
    return Object(_PARSER, place(call), {"classes": classes})


@method(
    _PARSER,
    "parse_args_into_dataclasses",
    "parse_args_and_config",
    "parse_dict",
    "parse_json_file",
    "parse_yaml_file",
)
def parsed(m: Machine, receiver: Object, call: Call) -> Abstract:
    """One object of each class; what is left over, where that is asked for."""
    symbol = m.symbol(receiver).derive("arguments", "args")
    made: list[Abstract] = []
    for number, cls in enumerate(receiver.state.get("classes", ())):
        own = symbol.derive(("item", number), f"{symbol.text}[{number}]")
        if isinstance(cls, Class) and cls.dataclass:
            made.append(_settings(m, cls, own, call))
        elif isinstance(cls, Lib):
            made.append(m.call(cls, Call(cls.name, [], {}, call.node, call.frame, open=True)))
        else:
            made.append(Unknown(own, data=True))
    if call.constant(None, "return_remaining_strings"):
        made.append(m.unknown(text(call), data=True))
    return Sequence("tuple", made, at=place(call))


def _settings(m: Machine, cls: Class, symbol: Symbol, call: Call) -> Instance:
    """An object of a dataclass, each field of which is an option."""
    made = Instance(cls, at=place(call))
    calls.prepare(m, made)
    for entry in reversed(cls.lineage()):
        for name, (default, _) in entry.annotations.items() if isinstance(entry, Class) else ():
            own = symbol.derive(("attribute", name), f"{symbol.text}.{name}")
            made.attrs[name] = _option(m, default, own, call)
    hook = m.session.member_of(cls, "__post_init__")
    if hook is not None:
        m.invoke(hook, [made], call)
    return made


def _option(m: Machine, default: Abstract | None, symbol: Symbol, call: Call) -> Abstract:
    if isinstance(default, Object) and default.cls == "dataclasses.field":
        factory = default.state.get("factory")
        if isinstance(factory, Class) and factory.dataclass:
            return _settings(m, factory, symbol, call)
        default = default.state.get("default")
    kind = _KINDS.get(type(default.value), "") if isinstance(default, Const) else ""
    if isinstance(default, Const):
        m.state.setdefault("options", {})[symbol] = None, default
    return Unknown(symbol, data=True, type=kind)
