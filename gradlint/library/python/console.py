"""What a program says and hears, and the names of typing that do something: print, input, open,
cast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.lineage import alias
from gradlint.interpret.registry import attribute, function, method
from gradlint.interpret.values import FALSE, NONE, Abstract, Call, Const, Object, Unknown
from gradlint.library.python.results import fresh, place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

alias("typing_extensions", "typing")


@function("builtins.print", "builtins.breakpoint", "builtins.help")
def silent(m: Machine, call: Call) -> Abstract:
    """What leaves nothing behind."""
    return NONE


@function("builtins.input")
def input_(m: Machine, call: Call) -> Abstract:
    """`input()`."""
    return fresh(m, call, "str")


@function("builtins.open", "builtins.compile")
def open_(m: Machine, call: Call) -> Abstract:
    """`open(path)`."""
    return fresh(m, call)


@function("builtins.exec")
def run_text(m: Machine, call: Call) -> Abstract:
    """`exec(open("configurator.py").read())` at the top of a script: its flags are settings, which
    that can change.
    """
    frame = call.frame
    if frame.is_script and len(call.args) == 1 and not isinstance(call.args[0], Const):
        for name, value in frame.locals.items():
            if isinstance(value, Const) and type(value.value) is bool:
                symbol = m.session.library_symbol(f"{frame.code.path}:{name}").derive("set", name)
                m.session.parameters.settings[symbol] = value
                frame.locals[name] = Unknown(symbol, data=True, type="bool")
    return NONE


@function("builtins.eval", "builtins.__import__", "importlib.import_module")
def dynamic(m: Machine, call: Call) -> Abstract:
    """Code that is made or found at run time."""
    m.gap("dynamic", place(call), call.name)
    return m.unknown(text(call))


@function("typing.cast")
def cast(m: Machine, call: Call) -> Abstract:
    """`cast(T, x)` is `x`."""
    return call.get(1, "val") or m.unknown(text(call))


@function("builtins.slice")
def slice_(m: Machine, call: Call) -> Abstract:
    """`slice(a, b)`."""
    bounds = [NONE, *call.args, NONE] if len(call.args) == 1 else [*call.args, NONE, NONE][:3]
    return Object("builtins.slice", place(call), {"bounds": bounds})


@attribute("typing", "TYPE_CHECKING")
def type_checking(m: Machine, receiver: Abstract, call: Call) -> Abstract:
    """`TYPE_CHECKING` is False while the program runs."""
    return FALSE


@method("builtins.slice", "indices")
def indices(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`slice.indices(n)`."""
    return fresh(m, call)
