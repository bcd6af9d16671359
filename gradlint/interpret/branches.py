"""`if`, and what its branches lead to: an exit, a wait, the training."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from gradlint import memo, tape
from gradlint.interpret import (
    ahead,
    choosing,
    conditions,
    cycles,
    defaults,
    dispatch,
    emptied,
    filters,
)
from gradlint.interpret.machine import Raised, Stop
from gradlint.interpret.paths import Branching
from gradlint.interpret.scopes import Branch, Frame, Signal
from gradlint.interpret.symbols import Test
from gradlint.interpret.tables import EXECUTE, handles
from gradlint.interpret.values import Abstract
from gradlint.ir import nodes as ir
from gradlint.ir.walk import within

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine


def leaves(block: list[ir.Node]) -> bool:
    return bool(block) and isinstance(block[-1], ir.Return | ir.Raise | ir.Jump)


_EXITS = frozenset(
    ["sys.exit", "exit", "quit", "os._exit", "os.abort", "parser.error", "parser.exit"]
)


def _ends(block: list[ir.Node], frame: Frame) -> bool:
    """Whether a block ends in an exception, or with the program: `sys.exit(1)`. It decides an order
    of paths alone.
    """
    match block[-1] if block else None:
        case ir.Raise():
            return True
        case ir.Expression(value=ir.Call(function=called)):
            return frame.text(called) in _EXITS
    return False


def _waits(node: ir.If) -> bool:
    """Whether it leaves, and does nothing else, as long as one number is below another, or is not
    yet the other.
    """
    return (
        isinstance(node.test, ir.Compare)
        and node.test.ops in (["<"], [">"], ["!="])
        and leaves(node.then)
    )


@handles(EXECUTE, ir.If)
def if_(m: Machine, node: ir.If, frame: Frame) -> Signal | None:
    since = len(m.oracle.free)
    value = _asked(m, node, frame)
    question = emptied.question(m, node.test, value, frame)
    value = value if question is None else question.asked
    known = conditions.truth_at(m, value, node.test)
    taken = _chosen(m, value, node, frame) if known is None else known
    if question is not None:
        question.answered(taken)
    if known is not None:
        _note_known(m, value, node, known, frame)
        return m.execute(node.then if known else node.otherwise, frame)
    choosing.decides(m, node, since)
    _note_switched(m, value, node, taken, frame)
    dispatch.passed_over(m, conditions.test_of(m, value), node, taken, frame)
    return _run_side(m, node, taken, frame)


def _asked(m: Machine, node: ir.If, frame: Frame) -> Abstract:
    """The value of the condition, and what it says of the loops that the branch stands in."""
    refuses = bool(node.then) and isinstance(node.then[-1], ir.Raise)
    branch = Branch(
        _waits(node),
        node.leaves,
        node.test if refuses else None,
        keeps=filters.answer_that_keeps(node),
    )
    m.session.loops.is_uncounted = False
    value = conditions.ask(m, branch, node.test, frame)
    if m.session.loops.is_uncounted and leaves(node.then) and cycles.trains(m, node.behind, frame):
        m.session.loops.leads_to_training(m)  # if (i + 1) % n: continue
    if branch.met:
        cycles.come_round(m, branch, node, frame)
    if branch.ahead:
        ahead.show(m, branch)
    return value


def _note_known(m: Machine, value: Abstract, node: ir.If, known: bool, frame: Frame) -> None:
    """Writes onto the tape that a branch goes the same way on every path."""
    m.oracle.pass_through(node.test, known, frame.began)
    choosing.hangs_on(m, node, known, frame)
    if m.loops and m.loops[-1].over and not isinstance(node.test, ir.Literal):
        goes_on = not leaves(node.then) and not leaves(node.otherwise)
        m.emit(
            tape.Fact(
                at=frame.span(node.test),
                what="branch",
                detail="true" if known else "false",
                text=frame.text(node.test),
                scope=frame.span(node) if goes_on else None,
            )
        )
    if defaults.by_default(m, conditions.test_of(m, value)) is known:
        m.emit(tape.Fact(at=frame.span(node.test), what="default-answer"))
    _note_switched(m, value, node, known, frame)
    if conditions.is_answer(m, value):
        test = conditions.test_of(m, value)
        at = Branching(node.test, frame.code.path, whole=node)
        m.oracle.follow(at, test, functools.partial(m.session.rank, at))
        dispatch.passed_over(m, test, node, known, frame)
        _look_for_training(m, test, node, known, frame)


def _chosen(m: Machine, value: Abstract, node: ir.If, frame: Frame) -> bool:
    """Which side this path takes. By default it goes on: it neither raises nor leaves the loop."""
    is_last_refusal = node.is_last and not node.otherwise and leaves(node.then)
    ends = _ends(node.otherwise, frame) or is_last_refusal
    is_refused = ends is not _ends(node.then, frame)
    goes_on = node.answers or not (leaves(node.then) and not leaves(node.otherwise))
    recursing = _recursing(node, frame.function.node) if frame.function is not None else None
    return conditions.choose(
        m,
        value,
        node.test,
        frame,
        default=ends if is_refused else goes_on if recursing is not goes_on else not recursing,
        whole=node,
        keeps=filters.answer_that_keeps(node),
        is_refused=is_refused,
    )


@memo.of_programs
def _recursing(node: ir.If, function: ir.Function) -> bool | None:
    """The side on which a function calls itself, where it does so on one alone.

    With something unknown it would go on for as long as it may, so that a path begins with the
    other side.

    if isinstance(x, list): return [move(each) for each in x]
    else: return x
    """
    then, otherwise = (_calls(block, function) for block in (node.then, node.otherwise))
    return then if then is not otherwise else None


def _calls(block: list[ir.Node], function: ir.Function) -> bool:
    """Whether a block calls a function by its name, `move(each)`, or as a method of its own object,
    `self.move(each)`, not behind a further branch.
    """
    inner = within([each for each in block if not isinstance(each, ir.If)])
    return any(_is_itself(each.function, function) for each in inner if isinstance(each, ir.Call))


def _is_itself(called: ir.Node, function: ir.Function) -> bool:
    """Whether a call is of the function that it stands in, and not of a method of the same name:
    `self.optimizer.step()` in `step`.
    """
    if isinstance(called, ir.Name):
        return called.id == function.name
    own = function.parameters[0].name if function.parameters else ""
    return (
        isinstance(called, ir.Attribute)
        and called.name == function.name
        and isinstance(called.target, ir.Name)
        and called.target.id == own
    )


def _run_side(m: Machine, node: ir.If, taken: bool, frame: Frame) -> Signal | None:
    """Executes a side of the branch, and has the oracle know what it did."""
    outer, own = m.journal, list[tuple[object, ...]]()
    m.journal = own
    try:
        signal = m.execute(node.then if taken else node.otherwise, frame)
        own.append(("end", signal.kind if signal else ""))
    except (Raised, Stop):
        own.append(("end", "raise"))
        raise
    finally:
        m.oracle.leave(node.test, taken, own)
        m.journal = outer
        if outer is not None:
            outer += own
    return signal


def _note_switched(m: Machine, value: Abstract, node: ir.If, taken: bool, frame: Frame) -> None:
    if m.session.contract and defaults.is_switched(m, conditions.test_of(m, value), taken):
        m.emit(tape.Fact(at=frame.span(node), what="switched-on"))


def _look_for_training(m: Machine, asked: Test, node: ir.If, taken: bool, frame: Frame) -> None:
    """Has the answers turned round that keep a path from the training on the other side of a
    branch.

    if step < args.learning_starts: action = sample()
    if step > args.learning_starts: learn()
    """
    if m.session.has_trained or not m.oracle.is_told(asked.subject):
        return
    if cycles.trains(m, node.source.orelse if taken else node.source.body, frame):
        m.oracle.look_for(asked.subject)
