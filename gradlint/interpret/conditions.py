"""Conditions: what a branch asks, and which branch outcome a path takes there."""

from __future__ import annotations

import functools
from collections.abc import Collection, Container
from collections.abc import Sequence as ListOf
from dataclasses import replace
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import counters, filters
from gradlint.interpret.bounded import (
    about,
    excludes_zero,
    is_bounded,
    is_drawn_once,
    is_written,
    says_even,
)
from gradlint.interpret.defaults import by_call, by_default, by_setting, by_words, is_setting
from gradlint.interpret.machine import Raised
from gradlint.interpret.paths import Branching
from gradlint.interpret.symbols import Symbol, Test, test_key
from gradlint.interpret.values import (
    Abstract,
    Bound,
    Builtin,
    Call,
    Class,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Package,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import nodes as ir
from gradlint.ir.walk import within

if TYPE_CHECKING:
    from gradlint.finding import Span
    from gradlint.interpret.looping import Loop
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Branch, Frame
SMALL = 3  # what an unknown number of micro-batches is taken to be


def known_truth(value: Abstract) -> bool | None:
    """Whether `value` is true, where that is known."""
    if isinstance(value, Unknown):  # most that is asked for: first
        return None
    match value:
        case Const():
            return bool(value.value)
        case Sequence():
            return True if value.items else None if value.open else False
        case Mapping():
            return True if value.items else None if value.open else False
        case Tensor() if value.node.number is not None and isinstance(
            value.node.number, int | float
        ):
            return bool(value.node.number)
        case Function() | Bound() | Builtin() | Class() | Lib() | Package():
            return True
        case Instance(state={"items": Sequence() | Mapping() as contents}):
            return known_truth(contents)
        case Instance():
            return None if value.cls.has_unknown_base else True
        case Object():
            return None if value.state.get("nullable") else True
    return None


def asked(m: Machine, value: Abstract, place: ir.Node | None = None) -> Abstract:
    """What is asked where a branch is on `value`: what the `__bool__` of its own class says, or
    else its `__len__`.

    Whoever meets a value asks it once; the questions below are asked of what that gave.
    """
    if place is not None and isinstance(value, Const):
        counters.meet(m, place, "==", value, counters.ZERO)
    if isinstance(value, Lib) and may_be_a_setting(value) and _is_looked_up(place):
        return Unknown(m.symbol(value), data=True)  # if FLAGS.parallel:
    if isinstance(value, Instance):
        owns = [m.session.member_of(value.cls, name) for name in ("__bool__", "__len__")]
        own = next((own for own in owns if isinstance(own, Function)), None)
        if own is not None:
            return m.call(own, Call(own.name, [value], {}, own.node, own.scope))
    return value


def may_be_a_setting(library: Lib) -> bool:
    """Whether a name of a library can be that of a number or a text, `flags.FLAGS.model`: torch's
    are classes and functions.
    """
    return library.name.partition(".")[0] != "torch"


def _is_looked_up(place: ir.Node | None) -> bool:
    """Whether it is an attribute of something, and no name that an import has bound, or not."""
    while isinstance(place, ir.Unary):
        place = place.operand
    return isinstance(place, ir.Attribute)


def question(m: Machine, node: ir.Node, frame: Frame) -> Abstract:
    """What a branch on `node` asks."""
    return asked(m, m.evaluate(node, frame), node)


def ask(m: Machine, branch: Branch, node: ir.Node, frame: Frame) -> Abstract:
    """What `branch`, which is on `node`, asks; what is met meanwhile is met by it."""
    outer, m.branch = m.branch, branch
    if outer is m.outside:
        branch.met, branch.ahead = outer.met, outer.ahead
        outer.met, outer.ahead = [], []
    try:
        return asked(m, m.evaluate(node, frame), node)
    finally:
        m.branch = outer


def test_of(m: Machine, value: Abstract) -> Test:
    """The question whether `value` is true."""
    if isinstance(value, Unknown) and value.test is not None:
        return value.test
    known = m.tests.get(id(value.node if isinstance(value, Tensor) else value))
    if known is not None:
        return known[1]
    return Test(m.symbol(value).asked, "true")


def is_answer(m: Machine, value: Abstract) -> bool:
    """Whether `value` hangs on something that the program does not say: unknown, or known on this
    path alone.
    """
    return not isinstance(value, Const) or id(value) in m.tests


def truth(m: Machine, value: Abstract) -> bool | None:
    """Whether `value` is true, as far as this path knows."""
    known = known_truth(value)
    if known is None:
        known = m.oracle.facts.known(test_of(m, value))
    return known


def is_presence(m: Machine, value: Abstract) -> bool:
    """Whether it asks if something is there: `mask is not None`. What a function is given is there,
    as long as nothing says otherwise.
    """
    test = test_of(m, value)
    return test.relation == "is" and test.negated


def decide(
    m: Machine,
    value: Abstract,
    node: ir.Node,
    frame: Frame,
    *,
    default: bool = True,
    picks_data: bool = False,
    writes: bool = False,
) -> bool:
    """Whether a branch on `value` is taken; forks the path where that is unknown."""
    known = truth_at(m, value, node)
    if known is not None:
        return known
    return choose(m, value, node, frame, default=default, picks_data=picks_data, writes=writes)


def truth_at(m: Machine, value: Abstract, node: ir.Node) -> bool | None:
    """Whether the test of a branch holds, to which the path has come; None where that is
    unknown.
    """
    known = truth(m, value)
    if known is not None and node in m.tape.branches:
        m.tape.meets(node)
    return known


def choose(
    m: Machine,
    value: Abstract,
    node: ir.Node,
    frame: Frame,
    *,
    default: bool = True,
    whole: ir.Node | None = None,
    picks_data: bool = False,
    writes: bool = False,
    keeps: bool | None = None,
    is_refused: bool = False,
) -> bool:
    """Whether a branch on `value` is taken, whose truth this path does not know; `whole` is what
    hangs on it.

    `keeps` is the answer by which an item of the loop around it is not left out; where a side is
    refused by an exception, or by the end of the program, the `default` is the other one, whatever
    a setting begins with.
    """
    test = test_of(m, value)
    if test.relation == "true" and _is_there_to_be_called(m, test, node, whole, frame):
        return True
    site = Branching(node, frame.code.path, picks_data, writes, is_refused, bool(m.trying), whole)
    keeps = filters.kept(m, test, node, m.branch.keeps if keeps is None else keeps)
    first = by_default(m, test)
    set_to = first
    if first is None and not is_refused:
        called = by_call(m, test)
        set_to = by_setting(m, test) if called is None else called
    working, default = default, default if set_to is None else set_to
    answer, free = m.oracle.decide(
        site,
        test,
        default,
        functools.partial(m.session.rank, site),
        keeps=keeps,
        about=_of_machine(m, test),
        call=frame.began,
    )
    m.tape.meets(node)
    m.oracle.goes_astray |= is_refused and answer is not working
    if free:
        loop = next(
            (loop for loop in reversed(m.loops) if loop.over and _is_asked_anew(test, loop)), None
        )
        text, holds = frame.text(node), answer
        while text.startswith("not ") and " and " not in text and " or " not in text:
            text, holds = text[4:], not holds
        is_even = says_even(test, answer)
        decision = tape.Decision(
            text, holds, frame.span(node), loop.number if loop else None,
            loop.round if loop else 0, about(m, test),
            frame.span(whole) if whole is not None else None,
            _is_about(test, m.state.get("drawn", ())),
            m.values_of({test.subject}) if excludes_zero(test, answer) else (),
            not m.loops and not m.state.get("sampling"), is_setting(m, test), even=is_even,
            made_with=_is_made_with(m, test),
            by_default=answer is (by_words(m, test) if first is None else first),
            is_bounded=is_bounded(m, test), is_written=is_written(m, test),
            is_drawn_once=is_drawn_once(m, test), is_refused=is_refused,
        )  # fmt: skip
        m.oracle.decisions.append(decision)
        m.state.setdefault("questions", []).append(test)
    return answer


def pick(m: Machine, key: Symbol, words: ListOf[object], node: ir.Node, frame: Frame) -> object:
    """Which of some words an unknown key is, `LOSSES[args.loss]`; None where it is none of them.

    Each is a branch of its own, of which only the one that is taken shows as a decision.
    """
    for word in words:
        test = Test(key.asked, "==", word)
        known = m.oracle.facts.known(test)
        site = Branching(m.session.site(node, word), frame.code.path)
        rank = functools.partial(m.session.rank, site)
        taken, free = (
            (known, False) if known is not None else m.oracle.decide(site, test, False, rank)
        )
        if taken:
            if free:
                decision = tape.Decision(
                    f"{key.text} == {word!r}", True, frame.span(node), is_setting=True
                )
                m.oracle.decisions.append(decision)
                m.state.setdefault("questions", []).append(test)
            return word
    return None


def _of_machine(m: Machine, test: Test) -> Symbol | None:
    """The function of a library whose result is asked for, if it is:
    `torch.cuda.is_available()`.
    """
    source = test.subject.source
    return (
        source
        if test.relation == "true" and source is not None and m.session.is_of_library(source)
        else None
    )


def _is_made_with(m: Machine, test: Test) -> bool:
    """Whether it is answered once for an object: where it is made, by what it is made with, or by a
    flag it is set.
    """
    is_flag = test.subject in m.state.get("defaults", ())
    return is_flag or m.oracle.prepares or _is_about(test, m.state.get("made with", ()))


def _is_asked_anew(test: Test, loop: Loop) -> bool:
    """Whether each round of a loop can answer it otherwise: it asks no more than if something that
    was there before is true, or None.
    """
    return test.relation not in ("true", "is") or not test.subject.is_before(loop.since)


def decided(m: Machine) -> tuple[tape.Decision, ...]:
    """The decisions of a path, each about all the tensors that were asked, those too that were met
    after it alone.
    """
    found = []
    for decision, test in zip(m.oracle.decisions, m.state.get("questions", ()), strict=True):
        asked = tuple(dict.fromkeys((*decision.about, *about(m, test))))
        found.append(
            decision if len(asked) == len(decision.about) else replace(decision, about=asked)
        )
    return tuple(found)


def assume(m: Machine, value: Abstract, at: Span, text: str) -> None:
    """Takes `value` to be true from here on: the program has asserted it."""
    known, test = truth(m, value), test_of(m, value)
    is_even = known is None and says_even(test, True)
    for asked in (about(m, test) if known is None else ()) or (None,):
        m.emit(
            tape.Fact(
                at=at, what="asserted", value=asked, text=text, detail="even" if is_even else ""
            )
        )
    if known is None:
        m.oracle.facts.learn(test, True)


def use(m: Machine, unknown: Unknown, error: str, at: Span) -> None:
    """Takes to be no None what has an attribute or is called; on a path that took it for None, that
    raises.

    What an attribute holds, code out of view can have put there since it was compared with None.
    """
    test = Test(unknown.symbol.asked, "is", None)
    is_none = m.oracle.facts.known(test)
    if is_none is None:
        m.oracle.facts.learn(test, False)
    elif is_none and not _is_held(unknown.symbol):
        raise Raised(Object(f"builtins.{error}", at), at)


def _is_held(symbol: Symbol) -> bool:
    """Whether it is an attribute of something unknown, or derived from one."""
    source: Symbol | None = symbol
    while source is not None:
        if isinstance(source.key, tuple) and source.key[:1] == ("attribute",):
            return True
        source = source.source
    return False


def _is_there_to_be_called(
    m: Machine, test: Test, node: ir.Node, whole: ir.Node | None, frame: Frame
) -> bool:
    """Whether the test is the truthiness of a callee that is known not to be None: callables are
    truthy, so the branch is not forked.
    """
    is_none = None if test.negated else m.oracle.facts.known(Test(test.subject, "is", None))
    if is_none is not False or whole is None:
        return False
    callee = frame.text(node)
    return any(
        isinstance(each, ir.Call) and frame.text(each.function) == callee
        for each in within([whole])
    )


def _is_about(test: Test, sources: Collection[Symbol]) -> bool:
    """Whether it asks for some symbols, or for what is derived from one."""
    return bool(sources) and any(
        _is_derived(asked, sources) for asked in (test.subject, test.operand)
    )


def _is_derived(asked: object, sources: Container[Symbol]) -> bool:
    """Whether it is one of some symbols, or derived from one."""
    symbol = asked if isinstance(asked, Symbol) else None
    while symbol is not None and symbol not in sources:
        symbol = symbol.source
    return symbol is not None


def boolean(m: Machine, test: Test, text: str) -> Abstract:
    """The value of an unknown comparison; a constant, which `test_of` knows as its answer, where
    this path knows it.
    """
    known = m.oracle.facts.known(test)
    if known is not None:
        answer = Const(known)
        m.tests[id(answer)] = (answer, test)
        return answer
    key = (test.relation, test_key(test.operand), test.negated)
    return Unknown(test.subject.derive(key, text), data=True, type="bool", test=test)
