"""Branches that a default decides: `if args.amp:` where `--amp` is off unless it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.facts import answer_of
from gradlint.interpret.symbols import Symbol, Test
from gradlint.interpret.values import Abstract, Const, Unknown, is_small

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
_CHOOSING = frozenset(["true", "is", "==", "in"])


def by_default(m: Machine, test: Test) -> bool | None:
    """The answer of the default of what a part is made with: the way that most objects of its class
    go.
    """
    return _answered_by(m.state.get("defaults", {}), test)


def text(m: Machine, value: Abstract) -> str | None:
    """The text that most objects of a part are made with here, `mode="CBR"`, or that the path has
    found it to be: its letters go together.
    """
    if isinstance(value, Const):
        return value.value if isinstance(value.value, str) else None
    if not isinstance(value, Unknown):
        return None
    default = m.state.get("defaults", {}).get(value.symbol)
    known = m.oracle.facts.equal.get(value.symbol, default)
    return known if isinstance(known, str) else None


def note_text(m: Machine, made: Abstract, known: str | None) -> None:
    """Notes the text that something unknown is made of such texts: `"C" + mode`, `mode[0]`."""
    if known is not None and isinstance(made, Unknown) and is_small(known):
        m.state.setdefault("defaults", {})[made.symbol] = known


def note_item(m: Machine, whole: Unknown, key: object, made: Unknown) -> None:
    """Notes the letters that a constant index takes out of such a text."""
    known = text(m, whole)
    if known is None:
        return
    made.type = "str"
    match 0 if key is m.session.constant_symbol(0) else key:
        case int() as place if -len(known) <= place < len(known):
            note_text(m, made, known[place])
        case ("slice", int() | None as start, int() | None as stop, int() | None as step) if (
            step != 0
        ):
            note_text(m, made, known[start:stop:step])


def is_switched(m: Machine, test: Test, answer: bool) -> bool:
    """Whether a flag that a part is called with answers otherwise than by its default:
    `forward(x, inplace=True)`.
    """
    return by_call(m, test) is (not answer)


def by_call(m: Machine, test: Test) -> bool | None:
    """The answer of the default of a flag that a part is called with: the way of most calls."""
    return _answered_by(m.state.get("call defaults", {}), test)


def _answered_by(defaults: dict[Symbol, object], test: Test) -> bool | None:
    """What the default of a parameter answers, if the question is about one that has a default."""
    if test.subject not in defaults:
        return None
    answer = answer_of(defaults[test.subject], test.relation, test.operand)
    return None if answer is None else answer != test.negated


def by_setting(m: Machine, test: Test, *, is_repeated: bool | None = None) -> bool | None:
    """The answer for what an option or a parameter is where the user sets nothing: that is the
    first path.

    None of a number that something is counted up to: of a loop a few rounds are run, and it may lie
    behind them; and none in a loop, where most that is asked for the first time says how a step is
    taken, but for what an option's text says of another: `name.startswith(args.frozen)`.
    """
    if test.relation not in _CHOOSING:
        return None
    is_repeated = bool(m.loops) if is_repeated is None else is_repeated
    if (answer := by_words(m, test)) is not None or is_repeated:
        return answer
    value = set_to(m, test.subject)
    if not isinstance(value, Const) or not m.oracle.facts.allows(test.subject, value.value):
        return None
    answer = answer_of(value.value, test.relation, test.operand)
    return None if answer is None else answer is not test.negated


def by_words(m: Machine, test: Test) -> bool | None:
    """What the texts of options say of others where nobody sets them:
    `name.startswith(args.frozen)`.
    """
    if not isinstance(test.operand, Symbol | str | None):
        return None
    answer: bool | None = m.state.get("words", {}).get((test.subject, test.operand))
    return None if answer is None else answer is not test.negated


def note_words(m: Machine, test: Test, answer: bool) -> None:
    """Notes what such a question is answered with, but for its negation."""
    m.state.setdefault("words", {})[test.subject, test.operand] = answer


def plainly(m: Machine, value: Abstract) -> Abstract:
    """A value, or what an option or a parameter is where nobody sets it."""
    default = set_to(m, value.symbol) if isinstance(value, Unknown) else None
    return value if default is None else default


def take(m: Machine, symbol: Symbol, default: Const) -> None:
    """Notes what the program takes where an object out of view has no such attribute:
    `getattr(config, "gradient_checkpointing", False)`.
    """
    m.state.setdefault("fallbacks", {})[symbol] = default


def set_to(m: Machine, symbol: Symbol) -> Abstract | None:
    """What an option, or a parameter that no caller in view passes, is where nobody sets it; of an
    attribute that may be missing, what the program takes then.
    """
    _, value = m.state.get("options", {}).get(symbol) or (
        None,
        m.session.parameters.settings.get(symbol),
    )
    return m.state.get("fallbacks", {}).get(symbol) if value is None else value


def is_setting(m: Machine, test: Test) -> bool:
    """Whether it asks for an option of the command line, or for a flag that no caller in view
    passes.
    """
    return is_option(m, test) or (
        test.relation in ("true", "==") and m.session.parameters.is_given(test.subject)
    )


def is_option(m: Machine, test: Test) -> bool:
    """Whether it asks for an option of the command line."""
    return test.subject in m.state.get("options", {})
