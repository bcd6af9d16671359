"""What is true: the truth of abstract values, comparisons, and the branches that depend on them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Container
from collections.abc import Sequence as ListOf
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradlint import tape
from gradlint.interpret import ahead, counters, filters, registry
from gradlint.interpret.dtypes import dtype_of
from gradlint.interpret.machine import Raised
from gradlint.interpret.paths import Branching, answer_of
from gradlint.interpret.values import (
    FALSE,
    TRUE,
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
    Symbol,
    Tensor,
    Test,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.finding import Span
    from gradlint.interpret.machine import Branch, Frame, Loop, Machine

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_PLAIN = frozenset(["list", "tuple", "set", "dict"])
_REACHING = frozenset(["<", "<=", ">", ">=", "==", "!="])
_COUNTS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a,
    b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "is": lambda a, b: a is b or a == b,
    "is not": lambda a, b: not (a is b or a == b), "in": lambda a, b: a in b, "not in": lambda a,
    b: a not in b,
}  # fmt: skip
_CHOOSING = frozenset(["true", "is", "==", "in"])
SMALL = 3  # what an unknown number of micro-batches is taken to be
_WINDOWS = re.compile("accum|micro|grad_steps|update_freq")  # how such numbers are called


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
    if isinstance(value, Instance):
        owns = [m.session.member_of(value.cls, name) for name in ("__bool__", "__len__")]
        own = next((own for own in owns if isinstance(own, Function)), None)
        if own is not None:
            return m.call(own, Call(own.name, [value], {}, own.node, own.scope))
    return value


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
        m.tape.branches[node] = len(m.tape.events)
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
    source = functools.partial(frame.code.rows, (whole or node).at)
    if test.relation == "true" and _is_there_to_be_called(m, test, f"{frame.text(node)}(", source):
        return True
    site = Branching(node, frame.code.path, picks_data, writes, whole)
    keeps = filters.kept(m, test, node, m.branch.keeps if keeps is None else keeps)
    first = by_default(m, test)
    set_to = _by_setting(m, test) if first is None and not is_refused else first
    default = default if set_to is None else set_to
    answer, free = m.oracle.decide(
        site, test, default, source, keeps=keeps, about=_of_machine(m, test)
    )
    m.tape.branches[node] = len(m.tape.events)
    if free:
        loop = next(
            (loop for loop in reversed(m.loops) if loop.over and _is_asked_anew(test, loop)), None
        )
        text, holds = frame.text(node), answer
        while text.startswith("not ") and " and " not in text and " or " not in text:
            text, holds = text[4:], not holds
        is_even = _says_even(test, answer)
        decision = tape.Decision(
            text, holds, frame.span(node), loop.number if loop else None,
            loop.round if loop else 0, about(m, test),
            frame.span(whole) if whole is not None else None,
            _is_about(test, m.state.get("drawn", ())),
            m.values_of({test.subject}) if _excludes_zero(test, answer) else (),
            not m.loops and not m.state.get("sampling"), is_setting(m, test), even=is_even,
            made_with=_is_made_with(m, test), by_default=answer is first,
            is_bounded=_is_bounded(m, test),
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
        source = functools.partial(frame.code.rows, node.at)
        site = Branching(m.session.site(node, word), frame.code.path)
        taken, free = (
            (known, False) if known is not None else m.oracle.decide(site, test, False, source)
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


def by_default(m: Machine, test: Test) -> bool | None:
    """The answer of the default of what a part is made with: the way that most objects of its class
    go.
    """
    return _answered_by(m.state.get("defaults", {}), test)


def is_switched(m: Machine, test: Test, answer: bool) -> bool:
    """Whether a flag that a part is called with answers otherwise than by its default:
    `forward(x, inplace=True)`.
    """
    return _answered_by(m.state.get("call defaults", {}), test) is (not answer)


def _answered_by(defaults: dict[Symbol, object], test: Test) -> bool | None:
    """What the default of a parameter answers, if the question is about one that has a default."""
    if test.subject not in defaults:
        return None
    answer = answer_of(defaults[test.subject], test.relation, test.operand)
    return None if answer is None else answer != test.negated


def _is_made_with(m: Machine, test: Test) -> bool:
    """Whether it is answered once for an object: where it is made, by what it is made with, or by a
    flag it is set.
    """
    is_flag = test.subject in m.state.get("defaults", ())
    return is_flag or m.oracle.prepares or _is_about(test, m.state.get("made with", ()))


def _by_setting(m: Machine, test: Test) -> bool | None:
    """The answer for what an option or a parameter is where the user sets nothing: that is the
    first path.

    None of a number that something is counted up to: of a loop a few rounds are run, and it may lie
    behind them; and none in a loop, where most that is asked for the first time says how a step is
    taken.
    """
    if test.relation not in _CHOOSING or m.loops:
        return None
    _, value = m.state.get("options", {}).get(test.subject) or (
        None,
        m.session.settings.get(test.subject),
    )
    if not isinstance(value, Const) or not m.oracle.facts.allows(test.subject, value.value):
        return None
    answer = answer_of(value.value, test.relation, test.operand)
    return None if answer is None else answer is not test.negated


def is_setting(m: Machine, test: Test) -> bool:
    """Whether it asks for an option of the command line, or for a flag that no caller in view
    passes.
    """
    return is_option(m, test) or (
        test.relation in ("true", "==") and m.session.is_given(test.subject)
    )


def is_option(m: Machine, test: Test) -> bool:
    """Whether it asks for an option of the command line."""
    return test.subject in m.state.get("options", {})


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
    is_even = known is None and _says_even(test, True)
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


def _is_there_to_be_called(m: Machine, test: Test, call: str, source: Callable[[], str]) -> bool:
    """Whether it asks if something is true that is known to be no None, and is called where it is:
    no empty thing.
    """
    is_none = None if test.negated else m.oracle.facts.known(Test(test.subject, "is", None))
    return is_none is False and call in source()


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


def about(m: Machine, test: Test) -> tuple[tape.Value, ...]:
    """The tensors that a question is asked of, by way of what was derived from them: `len(x)`,
    `x.sum().item()`.
    """
    if test.relation == "is":  # it is no None, whatever is in it
        return ()
    return _tensors_behind(m, test.subject, test.operand)


def _tensors_behind(m: Machine, *asked: object) -> tuple[tape.Value, ...]:
    """The tensors that symbols stand for, or are derived from."""
    known: dict[Symbol, None] = {}
    pending = list(asked)
    for symbol in pending:
        if isinstance(symbol, Symbol) and symbol not in known:
            known[symbol] = None
            # what a function was called with is the key: `int(x)`
            pending += symbol.source, symbol.key
    return m.values_of(known)


def _is_bounded(m: Machine, test: Test) -> bool:
    """Whether a tensor, or a number that one gave, is held against a bound that no tensor gave:
    `norm > limit`.

    Zero and infinity are none: that something is positive, or finite, does not hang on its scale.
    """
    match test.relation.removesuffix(" symbol"), test.subject.key:
        case "<" | "<=" | ">" | ">=", _:
            bound: object = test.operand
        case "true", ("<" | "<=" | ">" | ">=", bound):
            pass
        case _:
            return False
    return bound not in (0, math.inf, -math.inf) and not _tensors_behind(m, bound)


def _says_even(test: Test, answer: bool) -> bool:
    """Whether a remainder was asked for, and is zero by the answer; or whole windows are counted up
    to some number.

    `if i // window >= updates: continue`
    """
    holds = answer is not test.negated
    match test.subject.key:
        case ("%", *_):
            pass
        case ("//", *_):
            order = test.relation.removesuffix(" symbol")  # against a number that is not known
            return order in (("<", "<=") if holds else (">", ">="))
        case _:
            return False
    match test.relation, test.operand:
        case ("==", 0) | ("<", 1) | ("<=", 0):
            return holds
        case ("true", _) | (">", 0) | (">=", 1):
            return not holds
    return False


def _excludes_zero(test: Test, answer: bool) -> bool:
    """Whether the subject of a question is not zero where this is the answer."""
    holds, bound = answer is not test.negated, test.operand
    if test.relation == "true":
        return holds
    if not isinstance(bound, int | float):
        return False
    at_zero = {
        "==": bound == 0,
        "<": bound > 0,
        "<=": bound >= 0,
        ">": bound < 0,
        ">=": bound <= 0,
    }.get(test.relation)
    return at_zero is not None and at_zero is not holds


def boolean(m: Machine, test: Test, text: str) -> Abstract:
    """The value of an unknown comparison; a constant, which `test_of` knows as its answer, where
    this path knows it.
    """
    known = m.oracle.facts.known(test)
    if known is not None:
        answer = Const(known)
        m.tests[id(answer)] = (answer, test)
        return answer
    key = (test.relation, _key(test.operand), test.negated)
    return Unknown(test.subject.derive(key, text), data=True, type="bool", test=test)


def _key(operand: object) -> object:
    try:
        hash(operand)
    except TypeError:
        return repr(operand)
    return (type(operand), operand)


def negate(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """`not value`."""
    value = asked(m, value, node)
    known = known_truth(value)
    if known is not None and id(value) not in m.tests:
        return FALSE if known else TRUE
    return boolean(m, ~test_of(m, value), frame.text(node))


def _is_elementwise(value: Abstract) -> bool:
    return isinstance(value, Unknown) and value.type in ("array", "tensor")


def compare(
    m: Machine, op: str, left: Abstract, right: Abstract, text: str, place: ir.Node | None = None
) -> Abstract:
    """`left op right` for anything but a tensor (an elementwise comparison)."""
    left, right = _number(m, left), _number(m, right)
    if isinstance(left, Const) and isinstance(right, Const):
        if place is not None:
            counters.meet(m, (place, op, "left"), op, left, right)
            counters.meet(m, (place, op, "right"), _TURNED.get(op, op), right, left)
        if op in ("==", "!="):
            ahead.ask(m, left, [right.value])
        try:
            now = _COUNTS[op](left.value, right.value)
            if counters.is_reached(m, left, right) or counters.is_reached(m, right, left):
                now = _COUNTS[op](right.value, right.value)
        except TypeError:
            return m.unknown(text, data=True, type="bool")
        if op in _REACHING and (
            _is_short_of(m, op, left, right, now) or _is_short_of(m, op, right, left, now)
        ):
            return _answered_later(m, op, left, right, text)
        return TRUE if now else FALSE
    if op in ("is", "is not"):
        return _identity(m, op, left, right, text)
    if op in ("in", "not in"):
        return _membership(m, op, left, right, text)
    if isinstance(left, Const):
        left, right, op = right, left, _TURNED[op]
    negated = op == "!="
    relation = "==" if negated else op
    known = _by_dtype(m, left, right) if relation == "==" else None
    if known is None:
        known = _by_kind(left, right, relation)
    if known is None and m.loops:
        known = _of_the_last(m, left, right, relation)
    if known is not None:
        return TRUE if known != negated else FALSE
    if isinstance(right, Const) and _is_hashable(right.value):
        concrete = _concrete(m, left, right, relation)
        if concrete is not None:
            return compare(m, op, concrete, right, text, place)
        return boolean(m, Test(m.symbol(left).asked, relation, right.value, negated), text)
    if relation in ("<", ">") and m.symbol(left) is m.symbol(right) and not _is_elementwise(left):
        return FALSE  # epoch = start; epoch > start
    return boolean(
        m, Test(m.symbol(left).asked, f"{relation} symbol", m.symbol(right).asked, negated), text
    )


def _is_short_of(m: Machine, op: str, size: Const, number: Const, now: bool) -> bool:
    """Whether it is what grows in a loop of which a few rounds are run, and the rest would come
    further.

    `if len(memory) >= 128: learn()`, `if steps > 1000: learn()`; but a counter at which the loop is
    left is not there, nor is one in the single round that `if steps == 1000` means.
    """
    if id(size) not in counters.growing(m) or type(number.value) not in (int, float):
        return False
    if number.written is not None:  # taken for a smaller one, to be reached
        return False
    is_counter = counters.growing(m)[id(size)].of.source is None
    if is_counter and (op in ("==", "!=") or m.branch.leaves is (not now)):
        return False
    is_far = size.value <= number.value > counters.MOST_COUNTED
    return is_far and any(loop.number not in m.state.get("in full", ()) for loop in m.loops)


def _answered_later(m: Machine, op: str, left: Const, right: Const, text: str) -> Abstract:
    """A question about what grows: other rounds would answer otherwise, as if the number were not
    known.
    """
    if id(left) not in counters.growing(m):
        left, right, op = right, left, _TURNED[op]
    count = counters.growing(m)[id(left)].of
    negated = op == "!="
    return boolean(m, Test(count, "==" if negated else op, right.value, negated), text)


def _is_hashable(value: object) -> bool:
    return isinstance(value, int | float | str | bytes | bool | type(None))


def _by_kind(left: Abstract, right: Abstract, relation: str) -> bool | None:
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


def _by_dtype(m: Machine, own: Abstract, other: Abstract) -> bool | None:
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
    carries a gradient.
    """
    if isinstance(dtype, Object) and dtype.cls == "torch.dtype":
        found: bool | None = dtype.state.get("floats")
        return found
    if isinstance(dtype, Unknown) and dtype.symbol.key == ("attribute", "dtype"):
        node = m.nodes.get(dtype.symbol.source) if dtype.symbol.source is not None else None
        return True if node is not None and node.requires_grad else None
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


def _of_the_last(m: Machine, left: Abstract, right: Abstract, relation: str) -> bool | None:
    """Whether a loop that runs to `n` is still below `n - k`, `i < n - k`: in its last round it is
    not.
    """
    from gradlint.interpret import estimates

    if relation in ("<", ">=") and estimates.is_the_last(m, left, right):
        return relation == ">="
    if relation in (">", "<=") and estimates.is_the_last(m, right, left):
        return relation == "<="
    return None


def _concrete(m: Machine, left: Abstract, right: Const, relation: str) -> Abstract | None:
    """A counter met with an unknown number (`micro == args.accumulate`): that number is taken to be
    small.
    """
    if (
        right.at is not None
        or type(right.value) is not int
        or not m.loops
        or not isinstance(left, Unknown)
    ):
        return None
    if left.type not in ("", "number") or left.test is not None or left.origin is not None:
        return None
    if is_length(m, left):
        return concretise(m, left, length(m, left))
    from gradlint.interpret import estimates

    end = estimates.end(m, left.symbol)
    if end is not None:
        return Const(end)
    if m.session.contract:  # who calls a part counts its calls: nothing else does
        return None
    if relation == "==" or (relation in ("<=", ">") and _WINDOWS.search(left.symbol.text.lower())):
        return window(m, left)
    return None


def window(m: Machine, unknown: Unknown) -> Const:
    """Takes an unknown number of rounds to be its flag's default, or else small, and the loop to
    leave a remainder.
    """
    if (
        m.oracle.facts.known(Test(unknown.symbol.asked, ">", 1)) is False
    ):  # this path has asked already
        return concretise(m, unknown, Const(1))
    known = _default(m, unknown)
    number = m.concrete.setdefault(unknown.symbol, known or Const(SMALL))
    if known is None and unknown.symbol not in m.state.get("lengths", ()):
        m.session.guess(m)
    m.session.counted(m, number)
    return number


def _default(m: Machine, unknown: Unknown) -> Const | None:
    """What the defaults of command-line flags come to, if that is more than one; a small number for
    a large one.
    """
    from gradlint.interpret import estimates

    number = estimates.by_default(m, unknown.symbol)
    if number is None or number < 2:
        return None
    smaller = m.session.periods.smaller.get(number)
    return Const(number) if smaller is None else Const(smaller, None, number)


def is_length(m: Machine, unknown: Unknown) -> bool:
    """Whether an unknown number is a length, met in a training loop: that is taken to have as many
    rounds.
    """
    # a driver's rounds say nothing of lengths
    takes_batches = m.session.takes_batches(m) and not m.session.contract
    return takes_batches and unknown.symbol in m.state.get("lengths", ())


def length(m: Machine, unknown: Unknown) -> Const:
    """The length that something is taken to have in a training loop."""
    known = m.state["lengths"][unknown.symbol]
    if not isinstance(known, int):
        return Const(m.session.batches)
    return Const(m.session.shown(known, m.loops[-1]), None, known)


def concretise(m: Machine, unknown: Unknown, number: Const) -> Const:
    """Takes an unknown number to be `number` from here on."""
    return m.concrete.setdefault(unknown.symbol, number)


def _number(m: Machine, value: Abstract) -> Abstract:
    if isinstance(value, Unknown):
        return m.concrete.get(value.symbol, value)
    if isinstance(value, Tensor) and isinstance(value.node.number, int | float):
        return Const(value.node.number)
    return value


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
        if how == "batch" or (how == "item" and m.session.gives_batches(m, part.source)):
            return True
        if how == "item":
            m.state.setdefault("asked for none", set()).add(part.source)
        elif not is_copied:
            return False
        part = part.source
    return False


def is_collated(symbol: Symbol) -> bool:
    """Whether it is a batch of a loader, or an item of one, of any depth."""
    part: Symbol | None = symbol
    while part is not None and isinstance(part.key, tuple) and part.key[0] == "item":
        part = part.source
    return part is not None and isinstance(part.key, tuple) and part.key[0] == "batch"


def _identity(m: Machine, op: str, left: Abstract, right: Abstract, text: str) -> Abstract:
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


def _membership(m: Machine, op: str, left: Abstract, right: Abstract, text: str) -> Abstract:
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
        elif right.items and all(_by_dtype(m, left, item) is False for item in right.items):
            known = False
        elif (
            isinstance(left, Unknown)
            and len(constants) == len(right.items)
            and all(map(_is_hashable, constants))
        ):
            return boolean(m, Test(left.symbol.asked, "in", tuple(constants), negated), text)
    if known is not None:
        return TRUE if known != negated else FALSE
    operand: object = (
        left.value if isinstance(left, Const) and _is_hashable(left.value) else m.symbol(left)
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
        if registry.is_a(left.name, right.name) or registry.is_a(right.name, left.name):
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


def known_number(value: Abstract) -> object | None:
    """The number that a constant (tensor) is."""
    if isinstance(value, Const):
        return value.value if isinstance(value.value, int | float) else None
    return (
        value.node.number
        if isinstance(value, Tensor) and isinstance(value.node.number, int | float)
        else None
    )


def name_comparison(
    m: Machine, made: Tensor, op: str, left: Abstract, right: Abstract, text: str
) -> None:
    """Makes the truth of an elementwise comparison the question that it is for a single element."""
    if not isinstance(left, Tensor):
        left, right, op = right, left, _TURNED[op]
    operand = known_number(right)
    if operand is not None:
        test = Test(m.symbol(left).asked, "==" if op == "!=" else op, operand, op == "!=")
        m.tests[id(made.node)] = (made.node, test)
        m.identify(made.node, m.symbol(left).derive((op, _key(operand)), text))
    else:
        m.identify(made.node, m.symbol(left).derive((op, m.symbol(right)), text))
