"""Parts: code with no trainer in view, which the driver of its contract calls.

A driver is a program under `gradlint/contracts`, interpreted like any other code. All that it does
is said to happen at the definition of the part, and its events are `assumed`.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from gradlint import evidence
from gradlint.finding import Span
from gradlint.interpret import owned, succession, tensors
from gradlint.interpret.machine import Stop
from gradlint.interpret.outcomes import MINIMISED, REDUCED, SAVED
from gradlint.interpret.scopes import Frame
from gradlint.interpret.values import (
    NONE,
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
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.ir import lower
from gradlint.ir import nodes as ir
from gradlint.program import losses
from gradlint.tape import BESIDE, PREDICTED, Fact, Storage

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

CONTRACTS = Path(__file__).parents[1] / "contracts"
_TYPES = {bool: "bool", int: "number", float: "number", str: "str"}
_MAKERS = (Class, Function, Lib)  # defaults that are called: `make=torch.optim.Adam`
_KEPT = (*_MAKERS, Instance, Object)  # defaults that make a part: `norm=nn.LayerNorm`
_DRIVE, _PREDICTED = "drive", "predicted"
_PLAIN = frozenset(["number", "bool", "str", "module", "object", "array"])  # that no prediction is


def driver_of(contract: str, part: Span, name: str) -> tuple[ir.Code, list[ir.Node]]:
    """The program that drives parts under a contract: its code and statements.

    Each node of it is told of at the definition of the part, under the name of that.
    """
    path = CONTRACTS / f"{contract}.py"
    text = path.read_text(encoding="utf-8")
    code = ir.Code(str(path), text)
    code.places, code.texts = ir.Kept(lambda _: part), ir.Kept(lambda _: name)
    written = ast.parse(text)
    written.body = [
        node for node in written.body if isinstance(node, ast.FunctionDef) and node.name == _DRIVE
    ]
    return code, lower.module(written, code)


def drive(m: Machine, part: Abstract, call: Call) -> None:
    """Has the driver of the entry's contract call a part with what is given it."""
    written = undecorated(
        m.session.member_of(part, "__init__") if isinstance(part, Class) else part
    )
    if not isinstance(written, Function) or m.session.driver is None:
        return
    code, statements = m.session.driver
    frame = Frame(code, {})
    m.execute(statements, frame)
    driver = frame.locals[_DRIVE]
    assert isinstance(driver, Function)
    names = [parameter.name for parameter in driver.node.parameters]
    given = typed_by_defaults(m, written)
    arguments = (
        _arguments(m, written, given, call)
        if _PREDICTED in names
        else _given(m, written, given, call)
    )
    if arguments is None:
        return
    owner = _object_of(part)
    if "owner" in names and not (isinstance(owner, Instance) and owner.module is not None):
        return
    batches = succession.Batches(owner, succession.as_given(arguments.values()))
    helpers = {
        "part": part,
        "owner": owner,
        "minimised": MINIMISED,
        "saved": SAVED,
        "reduced": REDUCED,
        "untrained": Builtin("untrained", functools.partial(_untrained, owner)),
        "another_batch": Builtin("another_batch", batches.another),
        "keeps_state": Builtin("keeps_state", batches.keeps_state),
    }
    try:
        known = [helpers[name] for name in names if name in helpers]
        m.call(driver, Call(_DRIVE, known, arguments, call.node, frame))
        for node in owned.computed(owner):
            m.emit(Fact(at=call.frame.span(call.node), what="put-away", value=node, detail="part"))
    finally:  # results rest on the program's files
        asked = m.session.program.dependencies.asked
        asked -= {each for each in asked if each[0] == code.path}


def typed_by_defaults(m: Machine, entered: Abstract | None) -> dict[str, Abstract]:
    """What the parameters are that have constants as defaults: of that type, and no more is known
    of them.
    """
    found: dict[str, Abstract] = {}
    if not isinstance(entered, Function):
        return found
    for parameter in entered.node.parameters:
        default = entered.defaults.get(parameter.name)
        if isinstance(default, Const):
            given = m.session.parameters.given(m, entered, parameter)
            kind = _TYPES.get(type(default.value))
            if kind is not None and isinstance(given, Unknown) and not given.type:
                given = Unknown(given.symbol, data=True, type=kind)
            found[parameter.name] = given
            if m.oracle.prepares and isinstance(given, Unknown):
                m.state.setdefault("defaults", {})[given.symbol] = default.value
            elif isinstance(default.value, bool) and isinstance(given, Unknown):
                m.state.setdefault("call defaults", {})[given.symbol] = default.value
        elif _says_nothing(default, is_part=bool(m.session.contract)):
            found[parameter.name] = m.session.parameters.given(m, entered, parameter)
        elif isinstance(default, _KEPT if m.session.contract else _MAKERS):
            found[parameter.name] = default
        elif not m.session.contract and isinstance(default, Object) and default.module is None:
            # device=torch.device("cuda")
            found[parameter.name] = m.session.parameters.given(m, entered, parameter)
    return found


def _says_nothing(default: Abstract | None, *, is_part: bool) -> bool:
    """Whether a default says nothing of what is given: some of it is None, or it is empty where a
    part has it for nothing to freeze, to skip, to add.
    """
    if isinstance(default, Sequence) and any(map(_is_none, default.items)):
        return True
    if not (is_part and isinstance(default, Sequence | Mapping)):
        return False
    return not (default.open or default.items)


def _is_none(value: Abstract) -> bool:
    return isinstance(value, Const) and value.value is None


def undecorated(part: Abstract | None) -> Abstract | None:
    """What a part is without its object, and below its decorators."""
    match part:
        case Bound():
            return undecorated(part.function)
        case Builtin(wraps=inner) if inner is not None:
            return undecorated(inner)
    return part


def _object_of(part: Abstract) -> Abstract:
    match part:
        case Bound(receiver=found) | Builtin(receiver=found) if found is not None:
            return found
    return NONE


def _given(
    m: Machine, part: Function, given: dict[str, Abstract], call: Call
) -> dict[str, Abstract]:
    """What a module is given: something unknown for each parameter, of the type that its annotation
    or default says.
    """
    taken = part.node.parameters[1:] if part.owner is not None else part.node.parameters
    known = {
        parameter.name: given.get(parameter.name) or m.session.parameters.given(m, part, parameter)
        for parameter in taken
        if parameter.kind not in ("args", "kwargs")
    }
    tensors_given = [
        value.symbol.root
        for value in known.values()
        if isinstance(value, Unknown) and value.type not in _PLAIN
    ]
    m.state[BESIDE] = dict.fromkeys(tensors_given[1:], frozenset({BESIDE}))
    for name, value in known.items():
        if isinstance(value, Unknown) and value.type == "tensor":
            succession.identify(m, value, call)
            known[name] = tensors.as_tensor(m, value, call.node, call.frame)
    return known


def _arguments(
    m: Machine, part: Function, given: dict[str, Abstract], call: Call
) -> dict[str, Abstract] | None:
    """What a loss is given: a prediction first, and what it is held against; None where nothing can
    be one.

    What stands before the parameter from which a target is subtracted, `(forecast - target)`, is
    data, where its name does not say that it is a prediction, too.
    """
    source = part.node.source
    called = losses.called_names(source)
    found: dict[str, Abstract] = {}
    has_prediction = False
    taken = part.node.parameters[1:] if part.owner is not None else part.node.parameters
    opposed = {
        each.name for each in taken if not evidence.is_compared_with(each.name)
    } & losses.subtracted(source)
    targets = losses.held_against(source)
    for parameter in taken:
        if parameter.kind in ("args", "kwargs"):
            continue
        value = given.get(parameter.name) or m.session.parameters.given(m, part, parameter)
        if isinstance(value, Unknown) and value.type not in _PLAIN and parameter.name not in called:
            is_before = bool(opposed) and not has_prediction and parameter.name not in opposed
            is_input = is_before and not evidence.is_predicted(parameter.name)
            is_target = has_prediction and parameter.name in targets
            is_no_result = (
                is_target
                or evidence.is_compared_with(parameter.name)
                or evidence.is_counter(parameter.name)
            )
            is_whole = value.type == "tensor" and value.data  # by its annotation
            if is_no_result or is_input or is_whole:
                value = Unknown(value.symbol, data=True, type=value.type)
            elif not has_prediction:
                if evidence.is_loss_variable(parameter.name):
                    return None  # what is handed a loss reduces it, weighs it or shows it
                has_prediction = True
                value = _predict(m, value, losses.is_looked_up(source, parameter.name), call)
            succession.identify(m, value, call)
        found[parameter.name] = value
    return found if has_prediction else None


def _predict(m: Machine, parameter: Unknown, is_container: bool, call: Call) -> Unknown:
    """Something that a model gave, which carries a gradient: a tensor, or a container of such."""
    symbol = parameter.symbol
    model = tensors.leaf(m, symbol.derive("model", "model"), call.node, call.frame)
    made = tensors.operation(m, "call", [model], call.node, call.frame)
    made.storage, made.name, made.text = Storage(), symbol.text, symbol.text
    made.flags |= {PREDICTED}
    m.nodes[symbol] = made
    m.state["predicted"] = symbol
    return Unknown(symbol, type=parameter.type or ("" if is_container else "tensor"))


def _untrained(owner: Abstract, m: Machine, call: Call) -> Abstract:
    """Ends the path where a module has something to train, as far as that is known."""
    held = m.items(m.invoke(m.attribute(owner, "parameters", call), [], call), call)
    if any(
        isinstance(each, Tensor) and each.node.requires_grad and not each.node.assumed
        for each in held
    ):
        raise Stop
    return NONE
