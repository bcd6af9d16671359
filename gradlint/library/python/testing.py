"""Tests: what pytest and unittest skip does not run on that path, and what they want to raise
raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import conditions
from gradlint.interpret.lineage import parent
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import function, method
from gradlint.interpret.values import NONE, Abstract, Builtin, Call, Class, Const, Function, Object
from gradlint.library.python.results import place

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

SKIPPED = "pytest.skip.Exception"
RAISES = "pytest.raises"
parent(SKIPPED, "builtins.BaseException")
parent("unittest.SkipTest", "builtins.Exception")


@function("pytest.mark.skipif", "unittest.skipIf", "unittest.case.skipIf")
def skip_if(m: Machine, call: Call) -> Abstract:
    """`@pytest.mark.skipif(not torch.cuda.is_available(), reason="…")`."""
    return _gate(m, call, skips=True)


@function("unittest.skipUnless", "unittest.case.skipUnless")
def skip_unless(m: Machine, call: Call) -> Abstract:
    """`@unittest.skipUnless(torch.cuda.is_available(), "…")`."""
    return _gate(m, call, skips=False)


def _gate(m: Machine, given: Call, *, skips: bool) -> Abstract:
    """A decorator that lets a test, or each test of a class, run where the condition does not skip
    it.
    """
    condition = given.get(0, "condition")
    if condition is None or (isinstance(condition, Const) and isinstance(condition.value, str)):
        return m.unknown(given.name)

    def gated(test: Abstract) -> Abstract:
        def run(machine: Machine, call: Call) -> Abstract:
            holds = conditions.decide(
                machine, condition, given.node, given.frame, default=not skips
            )
            return NONE if holds is skips else machine.call(test, call)

        return Builtin(given.name, run, wraps=test)

    def decorate(machine: Machine, call: Call) -> Abstract:
        decorated = call.args[0] if call.args else NONE
        if isinstance(decorated, Class):
            members = decorated.namespace
            members |= {
                name: gated(member) for name, member in members.items() if _is_test(name, member)
            }
            return decorated
        return gated(decorated)

    return Builtin(given.name, decorate)


def _is_test(name: str, member: Abstract) -> bool:
    return name.startswith("test") and isinstance(member, Function | Builtin)


@function("pytest.skip", "pytest.fail", "pytest.xfail")
def skip(m: Machine, call: Call) -> Abstract:
    """`pytest.skip("needs CUDA")`: the test ends here."""
    raise Raised(Object(SKIPPED, place(call)), place(call))


@method("unittest.TestCase", "skipTest", "fail")
def skip_test(m: Machine, case: Abstract, call: Call) -> Abstract:
    """`self.skipTest("needs CUDA")`."""
    raise Raised(Object("unittest.SkipTest", place(call)), place(call))


@function(RAISES)
def raises(m: Machine, call: Call) -> Abstract:
    """`with pytest.raises(RuntimeError): …`"""
    return Object(RAISES, place(call))


@method("unittest.TestCase", "assertRaises", "assertRaisesRegex")
def asserts_that_it_raises(m: Machine, case: Abstract, call: Call) -> Abstract:
    """`with self.assertRaises(RuntimeError): …`; with a function, that is called and raises."""
    is_context = len(call.args) < (3 if call.called == "assertRaisesRegex" else 2)
    return Object(RAISES, place(call)) if is_context else NONE


@method(RAISES, "__with__")
def run_what_raises(m: Machine, context: Object, call: Call) -> Abstract:
    """Runs the block as far as something in it raises, which a backward does there."""
    inside, before = m.state.pop("with"), m.state.get("meant to raise", False)
    m.state["meant to raise"] = True
    try:
        inside(m.unknown("raised", data=True))
    except Raised as raised:
        if isinstance(raised.value, Object) and raised.value.cls == SKIPPED:
            raise
    finally:
        m.state["meant to raise"] = before
    return NONE
