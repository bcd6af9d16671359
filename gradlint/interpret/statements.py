"""Statements: what each does, and how it ends."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gradlint import tape
from gradlint.interpret import (
    ahead,
    calls,
    calm,
    conditions,
    counters,
    cycles,
    decorators,
    dispatch,
    filters,
    kept,
    shares,
    tensors,
)
from gradlint.interpret.arithmetic import ARITHMETIC, OPERATIONS, is_scalar
from gradlint.interpret.calls import run_context
from gradlint.interpret.iteration import is_endless, is_window
from gradlint.interpret.keys import hashable, key_of
from gradlint.interpret.machine import (
    BREAK,
    CONTINUE,
    EXECUTE,
    MAX_ITEMS,
    Branch,
    Frame,
    Loop,
    Raised,
    Signal,
    Stop,
    handles,
)  # fmt: skip
from gradlint.interpret.names import lookup_name
from gradlint.interpret.operators import SPECIAL, binary
from gradlint.interpret.registry import canonical, find_attribute, find_method, is_a, tell
from gradlint.interpret.subscripts import derived, item, tensor_item
from gradlint.interpret.values import (
    MOST_ITEMS,
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
    Package,
    Sequence,
    Tensor,
    Test,
    Unknown,
)  # fmt: skip
from gradlint.ir import nodes as ir
from gradlint.library.effects import lookup
from gradlint.names import words
from gradlint.source.blocks import ends_early

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

# steps of what a decorator does to a function or class, which is as it is written behind that
MOST_DECORATING = 200
ROUNDS = 2  # of a loop whose length is not known


def summary(value: Abstract, depth: int = 0) -> object:
    """What decides whether two values are the same to the analysis: constants by value, numbers by
    being one.

    A list can hold itself: what lies deeper than `MAX_NESTING` is not looked at.
    """
    if depth > tensors.MAX_NESTING:
        return (type(value).__name__,)
    match value:
        case Const():
            return ("constant", repr(value.value))
        case Unknown():
            if value.test is not None:
                return (
                    "test",
                    value.test.subject.text,
                    value.test.relation,
                    repr(value.test.operand),
                    value.test.negated,
                )
            if value.data and value.origin is None:
                return ("data",)
            return ("unknown", value.symbol.text, value.origin is None)
        case Tensor():
            node = value.node
            if not node.requires_grad and node.kind is tape.Kind.DATA:
                return ("batch",)
            return ("tensor", node.at, node.op, node.requires_grad, node.cut)
        case Sequence():
            return (
                value.kind,
                value.open,
                tuple([summary(entry, depth + 1) for entry in value.items[:8]]),
                len(value.items),
            )
        case Mapping():
            return (
                "dict",
                value.open,
                tuple(
                    [
                        (repr(key), summary(entry, depth + 1))
                        for key, entry in list(value.items.items())[:8]
                    ]
                ),
            )
        case Object():
            return ("object", value.cls, value.at)
        case Instance():
            return ("instance", value.cls.name, value.at)
        case Function():
            return ("function", value.node.at, value.node.code.path)
        case Lib():
            return ("library", value.name)
    return (type(value).__name__,)


def note(m: Machine, what: str, name: str, value: Abstract) -> None:
    """Writes down that a value was put somewhere, where a branch has to know."""
    if m.journal is not None:
        m.journal.append((what, name, summary(value)))


def name_value(m: Machine, value: Abstract, name: str) -> None:
    """Gives what is assigned for the first time the name that messages use."""
    if isinstance(value, Const):
        return
    if isinstance(value, Tensor):
        value.node.name = value.node.name or name
        if value.node.parameter is not None and not value.node.parameter.name:
            value.node.parameter.name = name
    elif isinstance(value, Unknown):
        known = m.nodes.get(value.symbol)
        if known is not None:
            known.name = known.name or name
    elif isinstance(value, Instance | Object):
        if value.module is not None and value.module.name.startswith("<"):
            value.module.name = name
        if isinstance(value, Object):
            handle = value.state.get("handle")
            if (
                isinstance(handle, tape.Optimizer | tape.Scaler | tape.Scheduler)
                and not handle.name
            ):
                handle.name = name


def assign(m: Machine, target: ir.Node, value: Abstract, frame: Frame) -> None:
    """`target = value`."""
    match target:
        case ir.Name():
            bind(m, target.id, value, frame)
        case ir.Attribute():
            owner = m.evaluate(target.target, frame)
            set_attribute(m, owner, target.name, value, target, frame)
        case ir.Subscript():
            owner = m.evaluate(target.target, frame)
            set_item(m, owner, m.evaluate(target.index, frame), value, target, frame)
        case ir.Display():
            _unpack(m, target.items, value, target, frame)
        case ir.Star():
            assign(m, target.value, value, frame)


def bind(m: Machine, name: str, value: Abstract, frame: Frame) -> None:
    name_value(m, value, name)
    tell("bound", m, name, value)
    scope = frame
    function = frame.function
    if function is not None:
        if name in function.node.globals:
            scope = frame.module
        elif name in function.node.nonlocals and frame.parent is not None:
            scope = frame.parent
            while scope.parent is not None and name not in scope.locals:
                scope = scope.parent
    scope.locals[name] = value
    note(m, "name", name, value)


def _unpack(
    m: Machine, targets: list[ir.Node], value: Abstract, node: ir.Node, frame: Frame
) -> None:
    if _is_no_tuple(m, value, len(targets)):
        raise Raised(Object("builtins.ValueError", frame.span(node)), frame.span(node))
    if isinstance(value, Tensor | Unknown):
        for position, target in enumerate(targets):
            index = Const(position)
            part = (
                tensor_item(m, value, index, target, frame)
                if isinstance(value, Tensor)
                else derived(m, value, "item", position, target, frame)
            )
            assign(m, target, part, frame)
        return
    items = m.items(value, Call("=", [], {}, node, frame))
    is_open = isinstance(value, Sequence) and value.open
    star = next((i for i, target in enumerate(targets) if isinstance(target, ir.Star)), None)
    if star is not None:
        after = len(targets) - star - 1
        middle = items[star : len(items) - after] if len(items) >= len(targets) - 1 else []
        items = [
            *items[:star],
            Sequence("list", middle, is_open),
            *(items[len(items) - after :] if after else []),
        ]
    are_data = bool(items) and all(map(_is_data, items))
    for position, target in enumerate(targets):
        # like the items that are known of an open list
        further = m.unknown(frame.text(target), data=are_data)
        assign(m, target, items[position] if position < len(items) else further, frame)


def _is_data(value: Abstract) -> bool:
    """Whether no gradient comes to a value, for it is a part of a batch."""
    if isinstance(value, Tensor):
        return value.node.kind is tape.Kind.DATA
    return isinstance(value, Unknown) and value.data


def _is_no_tuple(m: Machine, value: Abstract, length: int) -> bool:
    """Whether a function returned it in the place of the tuple that is taken apart: for other
    callers than this one.
    """
    returned, arities = m.state.get("instead of a tuple", (None, ()))
    return returned is value and length in arities


def set_attribute(
    m: Machine, owner: Abstract, name: str, value: Abstract, node: ir.Node, frame: Frame
) -> None:
    """`owner.name = value`."""
    note(m, "attribute", name, value)
    at = Call(name, [value], {}, node, frame)
    if (
        isinstance(owner, Tensor | Unknown)
        and isinstance(value, Tensor | Unknown)
        and _is_of_a_gradient(name)
    ):
        m.emit(tape.Fact(at=frame.span(node), what="gradient-beside", text=name))
    match owner:
        case Instance():
            _set_instance(m, owner, name, value, at)
        case Class():
            if not _replaces_method(m, owner, name, value):
                owner.namespace[name] = value
        case Package():
            owner.scope.locals[name] = value
        case Function():
            owner.attrs[name] = value
        case Object():
            setter = find_method(owner.cls, f"__set_{name}__") or find_method(
                owner.cls, "__set_*__"
            )
            if setter is not None:
                setter(m, owner, at)
            else:
                owner.attrs[name] = value
        case Tensor():
            setter = find_method("torch.Tensor", f"__set_{name}__")
            if setter is not None:
                setter(m, owner, at)
            else:
                owner.attrs[name] = value
        case Unknown():
            setter = find_method("unknown", f"__set_{name}__")
            if setter is not None:
                setter(m, owner, at)
            tell("put in", m, owner, at)
            m.overrides[owner.symbol][f"attribute:{name}"] = value


def _replaces_method(m: Machine, cls: Class, name: str, value: Abstract) -> bool:
    """Whether code out of view takes the place of a method in view: it is taken to do the same, as
    a decorator is.

    cls.propagate = module_from_template("propagate.jinja").propagate
    """
    return isinstance(value, Unknown) and isinstance(m.session.member_of(cls, name), Function)


def _is_of_a_gradient(name: str) -> bool:
    """Whether some optimizers take what is put into a parameter under this name for its gradient:
    `grad_sample`.
    """
    return name not in ("grad", "requires_grad") and "grad" in words(name)


def _set_instance(m: Machine, owner: Instance, name: str, value: Abstract, at: Call) -> None:
    if name == "__dict__" and isinstance(value, Mapping):
        owner.attrs = value.items
        return
    for cls in owner.cls.lineage():
        found = cls.namespace.get(name) if isinstance(cls, Class) else None
        if isinstance(found, Object) and found.cls == "builtins.property":
            setter = found.state.get("set")
            if isinstance(setter, Abstract):
                m.call(setter, Call(name, [owner, value], {}, at.node, at.frame))
                return
        if (
            isinstance(found, Instance)
            and (own := m.session.member_of(found.cls, "__set__")) is not None
        ):
            m.invoke(own, [found, owner, value], at)
            return
        if isinstance(cls, Class) and "__setattr__" in cls.namespace:
            break
    hook = m.session.member_of(owner.cls, "__setattr__")
    if isinstance(hook, Function) and not owner.state.get("setting"):
        _set_by_hook(m, hook, owner, name, value, at)
    else:
        store(m, owner, name, value, at)


def _set_by_hook(
    m: Machine, hook: Function, owner: Instance, name: str, value: Abstract, at: Call
) -> None:
    """What the program's own `__setattr__` does, whose `super().__setattr__(name, value)`
    stores.
    """
    owner.state["setting"] = True
    try:
        m.invoke(hook, [owner, Const(name), value], at)
    finally:
        del owner.state["setting"]


def store(m: Machine, owner: Instance, name: str, value: Abstract, at: Call) -> None:
    """Puts an attribute where objects keep theirs."""
    if owner.module is not None:
        setter = find_method("torch.nn.Module", "__set_*__")
        if setter is not None:
            setter(m, owner, Call(name, [value], {}, at.node, at.frame))
    if name in owner.state.get("buffers", ()) and isinstance(value, Tensor) and value.node.records:
        m.emit(tape.Fact(at=at.frame.span(at.node), what="buffer-set", value=value.node))
    owner.attrs[name] = value
    name_value(m, value, name if owner.module is not None else f"self.{name}" if name else name)


def set_item(
    m: Machine, owner: Abstract, index: Abstract, value: Abstract, node: ir.Node, frame: Frame
) -> None:
    """`owner[index] = value`."""
    note(m, "item", frame.text(node), value)
    match owner:
        case Mapping():
            key = hashable(index)
            if key is None:
                owner.open = True
                m.state.setdefault("copied from", {})[owner.symbol or m.symbol(owner)] = m.symbol(
                    index
                )
                owner.items[("unknown", m.symbol(index))] = value
                _put_away(m, value, node, frame)
            else:
                owner.put(Mapping({key: value}))
                m.appended[id(owner)] = frame.span(node)
        case Sequence():
            if (
                isinstance(index, Const)
                and isinstance(index.value, int)
                and -len(owner.items) <= index.value < len(owner.items)
            ):
                owner.items[index.value] = value
            elif isinstance(index, Const) and isinstance(index.value, slice):
                _set_slice(owner, index.value, value)
            else:
                owner.open, owner.rest = True, value
        case Tensor() if isinstance(index, Const) and isinstance(index.value, str):
            pass  # what has such keys is no tensor, whatever it was taken for
        case Tensor() if owner.node.assumed and isinstance(value, Instance | Object):
            pass  # nor is what holds modules: `model[key] = nn.DataParallel(model[key])`
        case Tensor():
            inputs = tensors.sources(m, [value], node, frame)
            old = owner.node
            if tape.COMPUTED_ANEW in old.flags and not old.name:
                m.emit(
                    tape.Fact(
                        at=frame.span(node), what="lost-write", value=old, text=frame.text(node)
                    )
                )
            of_part = _is_part(index)
            tensors.write(
                m, owner, "torch.Tensor.__setitem__", inputs, node, frame, of_part=of_part
            )
            if owner.node is not old:
                owner.node.arguments = tensors.given(m, [NONE, index, value], {})
        case Unknown():
            inputs = tensors.sources(m, [value], node, frame)
            if isinstance(index, Const) and isinstance(
                index.value, str
            ):  # graph.ndata["h"] = h: no tensor
                if any(source.requires_grad for source in inputs):
                    m.state.setdefault("keeps", set()).add(owner.symbol.source or owner.symbol)
            elif owner.symbol in m.nodes and not (
                owner.data or isinstance(value, Instance | Object)
            ):
                written = tensors.write(
                    m,
                    tensors.as_tensor(m, owner, node, frame),
                    "torch.Tensor.__setitem__",
                    inputs,
                    node,
                    frame,
                )
                m.nodes[owner.symbol] = written.node
            handler = find_method("numpy.ndarray", "__setitem__") if owner.type == "array" else None
            if handler is not None:
                handler(m, owner, Call("__setitem__", [index, value], {}, node, frame))
            m.overrides[owner.symbol][f"item:{hashable(index) or m.symbol(index)}"] = value
        case Instance() | Object():
            at = Call("__setitem__", [index, value], {}, node, frame)
            method = m.attribute(owner, "__setitem__", at)
            if not isinstance(method, Unknown):
                m.call(method, at)


def _is_part(index: Abstract) -> bool:
    """Whether `x[index]` is a view of some of `x`, which `x[mask]`, `x[:]` and `x[...]` are not."""
    if isinstance(index, Sequence) and index.kind == "tuple":
        return any(map(_is_part, index.items))
    return isinstance(index, Const) and index.value not in (slice(None), ..., None)


def _set_slice(owner: Sequence, part: slice, value: Abstract) -> None:
    """`losses[1:] = others`; what of it is not known leaves the list open."""
    items = list(value.items) if isinstance(value, Sequence) and not value.open else None
    if part == slice(None):
        owner.items.clear()
        owner.open, owner.rest = False, None
    if items is not None and not owner.open:
        with contextlib.suppress(ValueError):  # of steps: there have to be as many
            owner.items[part] = items
            owner.open = len(owner.items) > MOST_ITEMS
            del owner.items[MOST_ITEMS:]
            return
    owner.open, owner.rest = True, None


def _put_away(m: Machine, value: Abstract, node: ir.Node, frame: Frame) -> None:
    """Takes down that a value lies where who takes it out is not seen: under an unknown key, in a
    cell's output.
    """
    if isinstance(value, Tensor) and value.node.requires_grad:
        m.emit(
            tape.Fact(at=frame.span(node), what="put-away", value=value.node, text=frame.text(node))
        )


@handles(EXECUTE, ir.Assign)
def assign_statement(m: Machine, node: ir.Assign, frame: Frame) -> None:
    value = m.evaluate(node.value, frame)
    if m.loops and isinstance(value, Const) and _is_augmented(node, frame):
        value = counters.counts_on(m, m.evaluate(node.targets[0], frame), value)
    for target in node.targets:
        assign(m, target, value, frame)
    if frame.is_class and node.annotation is not None and isinstance(node.targets[0], ir.Name):
        frame.locals.setdefault("__annotations__", Mapping({}))
        annotations = frame.locals["__annotations__"]
        assert isinstance(annotations, Mapping)
        annotations.items[node.targets[0].id] = value


def _is_augmented(node: ir.Assign, frame: Frame) -> bool:
    """Whether it is `steps = steps + 1`, written out."""
    target, value = node.targets[0], node.value
    if (
        not isinstance(value, ir.Binary)
        or value.op != "+"
        or not isinstance(target, ir.Name | ir.Attribute)
    ):
        return False
    return frame.text(target) == frame.text(value.left)


@handles(EXECUTE, ir.Declare)
def declare(m: Machine, node: ir.Declare, frame: Frame) -> None:
    if frame.is_class:
        annotations = frame.locals.setdefault("__annotations__", Mapping({}))
        assert isinstance(annotations, Mapping)
        annotations.items[node.name] = NONE


@handles(EXECUTE, ir.Unlisted)
def unlisted(m: Machine, node: ir.Unlisted, frame: Frame) -> None:
    m.evaluate(node, frame)


@handles(EXECUTE, ir.Augment)
def augment(m: Machine, node: ir.Augment, frame: Frame) -> None:
    target = node.target
    if isinstance(target, ir.Subscript):
        owner = m.evaluate(target.target, frame)
        index = m.evaluate(target.index, frame)
        before = item(m, owner, index, target, frame)
        set_item(m, owner, index, augmented(m, node, before, frame), target, frame)
        return
    if isinstance(target, ir.Attribute):
        owner = m.evaluate(target.target, frame)
        before = m.attribute(owner, target.name, Call(target.name, [], {}, target, frame))
        after = augmented(m, node, before, frame)
        set_attribute(m, owner, target.name, after, target, frame)
        return
    assert isinstance(target, ir.Name)
    bind(m, target.id, augmented(m, node, lookup_name(m, target.id, frame), frame), frame)


def augmented(m: Machine, node: ir.Augment, before: Abstract, frame: Frame) -> Abstract:
    """What `before op= value` leaves: lists and tensors are changed in place."""
    value = m.evaluate(node.value, frame)
    if isinstance(before, Unknown) and _is_taken_for_tensor(m, before):
        before = tensors.as_tensor(m, before, node, frame)
    if isinstance(before, Tensor):
        op = f"{OPERATIONS[node.op]}_"
        inputs = tensors.sources(m, [value], node, frame)
        old, form = before.node, "scalar" if is_scalar(value) else ""
        written = tensors.write(
            m, before, f"torch.Tensor.{op}", inputs, node, frame, effect=lookup(op, form)
        )
        if written.node is not old:
            written.node.arguments = tensors.given(m, [NONE, value], {})
        shares.made(m, node.op, written.node, value)
        return written
    if isinstance(before, Sequence) and before.kind == "list" and node.op == "+":
        if isinstance(value, Sequence):
            before.extend(value.items)
            before.open = before.open or value.open
        else:
            before.open = True
        return before
    if isinstance(before, Mapping) and isinstance(value, Mapping) and node.op == "|":
        before.put(value)
        before.open = before.open or value.open
        return before
    if isinstance(before, Instance):
        own = (
            m.session.member_of(before.cls, f"__i{SPECIAL[node.op][2:]}")
            if node.op in SPECIAL
            else None
        )
        if own is not None:
            return m.invoke(own, [before, value], Call(node.op, [value], {}, node, frame))
    if (
        isinstance(before, Unknown)
        and before.type == "array"
        and before.origin is not None
        and before.origin.storage
    ):
        handler = find_method("numpy.ndarray", "__augment__")
        if handler is not None:
            handler(m, before, Call(node.op, [value], {}, node, frame))
    after = binary(m, node.op, before, value, node, frame)
    return counters.counts_on(m, before, after) if isinstance(after, Const) else after


def _is_taken_for_tensor(m: Machine, value: Unknown) -> bool:
    """Whether something unknown that a part is given is a tensor: it is annotated as one, or what
    takes no number, an operator of Python say, was called with it.
    """
    if not m.session.contract or value.data or value.origin is not None:
        return False
    if value.type == "tensor" or (not value.type and value.symbol in m.tensors):
        return True
    node = m.nodes.get(value.symbol) if not value.type else None
    uses = m.uses.get(id(node), ())
    return any(op.startswith("torch.") and op not in ARITHMETIC for op in uses)


@handles(EXECUTE, ir.Delete)
def delete(m: Machine, node: ir.Delete, frame: Frame) -> None:
    for target in node.targets:
        if isinstance(target, ir.Name):
            frame.locals.pop(target.id, None)
        elif isinstance(target, ir.Subscript):
            owner, index = m.evaluate(target.target, frame), m.evaluate(target.index, frame)
            if isinstance(owner, Mapping):
                owner.items.pop(key_of(m, index), None)
            elif isinstance(owner, Sequence):
                _delete_items(owner, index)
                m.note("deleted", frame.text(target))
            elif isinstance(owner, Instance | Object):
                at = Call("__delitem__", [index], {}, target, frame)
                method = m.attribute(owner, "__delitem__", at)
                if not isinstance(method, Unknown):
                    m.call(method, at)
        elif isinstance(target, ir.Attribute):
            owner = m.evaluate(target.target, frame)
            if isinstance(owner, Instance):
                owner.attrs.pop(target.name, None)
            elif isinstance(owner, Tensor | Unknown):  # `del p.grad`: it is None then
                set_attribute(m, owner, target.name, NONE, node, frame)


def _delete_items(owner: Sequence, index: Abstract) -> None:
    """`del losses[:]`, `del losses[0]`; of items that are not known, any can be left."""
    if isinstance(index, Const) and isinstance(index.value, slice):
        del owner.items[index.value]
        if index.value == slice(None):
            owner.open, owner.rest = False, None
    elif isinstance(index, Const) and isinstance(index.value, int):
        if -len(owner.items) <= index.value < len(owner.items):
            del owner.items[index.value]
    else:
        owner.items.clear()
        owner.open = True


@handles(EXECUTE, ir.Expression)
def expression(m: Machine, node: ir.Expression, frame: Frame) -> None:
    value = m.evaluate(node.value, frame)
    tell("discarded", m, value, node.value, frame)


@handles(EXECUTE, ir.Shown)
def shown(m: Machine, node: ir.Shown, frame: Frame) -> None:
    """A name at the end of a cell was bound to be looked at, whatever else is done with it."""
    value = m.evaluate(node.value, frame)
    if isinstance(node.value, ir.Name):
        _put_away(m, value, node, frame)


def _escapes(block: list[ir.Node]) -> bool:
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
        and _escapes(node.then)
    )


@handles(EXECUTE, ir.If)
def if_(m: Machine, node: ir.If, frame: Frame) -> Signal | None:
    refuses = bool(node.then) and isinstance(node.then[-1], ir.Raise)
    branch = Branch(
        _waits(node),
        node.leaves,
        node.test if refuses else None,
        keeps=filters.answer_that_keeps(node),
    )
    m.session.is_uncounted = False
    value = conditions.ask(m, branch, node.test, frame)
    if m.session.is_uncounted and _escapes(node.then) and cycles.trains(m, node.behind, frame):
        m.session.leads_to_training(m)  # if (i + 1) % n: continue
    if branch.met:
        cycles.come_round(m, branch, node, frame)
    if branch.ahead:
        ahead.show(m, branch)
    known = conditions.truth_at(m, value, node.test)
    if known is not None:
        if m.loops and m.loops[-1].over and not isinstance(node.test, ir.Literal):
            m.emit(
                tape.Fact(
                    at=frame.span(node.test),
                    what="branch",
                    detail="true" if known else "false",
                    text=frame.text(node.test),
                    scope=None
                    if _escapes(node.then) or _escapes(node.otherwise)
                    else frame.span(node),
                )
            )
        if conditions.by_default(m, conditions.test_of(m, value)) is known:
            m.emit(tape.Fact(at=frame.span(node.test), what="default-answer"))
        _tell_switched(m, value, node, known, frame)
        if conditions.is_answer(m, value):
            dispatch.passed_over(m, conditions.test_of(m, value), node, known, frame)
            _look_for_training(m, conditions.test_of(m, value), node, known, frame)
        return m.execute(node.then if known else node.otherwise, frame)
    keeps = filters.answer_that_keeps(node)
    ends = _ends(node.otherwise, frame) or (
        node.is_last and not node.otherwise and _escapes(node.then)
    )
    is_refused = ends is not _ends(node.then, frame)
    default = ends if is_refused else not (_escapes(node.then) and not _escapes(node.otherwise))
    taken = conditions.choose(
        m, value, node.test, frame, default=default, whole=node, keeps=keeps, is_refused=is_refused
    )
    _tell_switched(m, value, node, taken, frame)
    dispatch.passed_over(m, conditions.test_of(m, value), node, taken, frame)
    outer, own = m.journal, list[tuple[object, ...]]()
    m.journal = own
    signal: Signal | None = None
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


def _tell_switched(m: Machine, value: Abstract, node: ir.If, taken: bool, frame: Frame) -> None:
    if m.session.contract and conditions.is_switched(m, conditions.test_of(m, value), taken):
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


@handles(EXECUTE, ir.While)
def while_(m: Machine, node: ir.While, frame: Frame) -> Signal | None:
    with m.loop("while", max(m.session.rounds(node), m.session.wanted(node, frame))) as loop:
        loop.node, loop.ends_early = node, ends_early(node.source)
        loop.rounds = max(loop.rounds, _counted_rounds(m, node, frame))
        while loop.goes_on:
            value = conditions.ask(m, Branch(leaves=False, repeats=True), node.test, frame)
            known = conditions.truth(m, value)
            if known is False:
                loop.ends()
                return m.execute(node.otherwise, frame)
            if known is None:
                m.oracle.facts.learn(conditions.test_of(m, value), True)
            signal = _round(m, loop, node, node.body, frame)
            if signal is BREAK:
                if loop.drains is not None:
                    # in the last one it found nothing left
                    m.turn(loop, min(loop.round, loop.drains))
                kept.report(m, loop)
                return None
            if signal is not None and signal.kind == "return":
                return signal
            if loop.rounds < MAX_ITEMS and cycles.is_on_the_way(m, loop):
                loop.is_on_the_way()
        frame.is_endless = frame.is_endless or isinstance(node.test, ir.Literal)
        m.emit(tape.Fact(at=frame.span(node), what="endless", text=frame.text(node.test)))
        kept.report(m, loop)
    return m.execute(node.otherwise, frame) if not isinstance(node.test, ir.Literal) else None


def _counted_rounds(m: Machine, node: ir.While, frame: Frame) -> int:
    """In how many rounds `while epoch < 10` is run, which is `for epoch in range(10)` written out;
    else 0.
    """
    match node.test:
        case ir.Compare(
            ops=["<"], left=ir.Name(id=name) as left, rights=[ir.Name() | ir.Literal() as right]
        ):
            if not any(_counts(each, name) for each in node.body):
                return 0
        case _:
            return 0
    counter, end = (conditions.known_number(m.evaluate(side, frame)) for side in (left, right))
    if not isinstance(counter, int) or not isinstance(end, int) or counter >= end:
        return 0
    if m.session.trains(m):
        return m.session.shown(end - counter, m.loops[-1])
    return min(end - counter, MAX_ITEMS)


def _counts(node: ir.Node, name: str) -> bool:
    """Whether it is `name += 1`."""
    match node:
        case ir.Augment(op="+", target=ir.Name(id=counter), value=ir.Literal(value=1)):
            return counter == name
    return False


def _round(
    m: Machine, loop: Loop, node: ir.For | ir.While, body: list[ir.Node], frame: Frame
) -> Signal | None:
    text = frame.text(node.iterable if isinstance(node, ir.For) else node.test)
    text = (
        "while True" if isinstance(node, ir.While) and isinstance(node.test, ir.Literal) else text
    )
    if m.steps > m.calm:
        calm.look(m)
    with m.round(loop, frame.span(node), text):
        return m.execute(body, frame)


@handles(EXECUTE, ir.For)
def for_(m: Machine, node: ir.For, frame: Frame) -> Signal | None:
    iterable = m.evaluate(node.iterable, frame)
    ended: list[Signal] = []
    over = "window" if is_window(iterable) else "for"
    with m.loop(over, max(m.session.rounds(node), m.session.wanted(node, frame))) as loop:
        loop.node, loop.ends_early = node, ends_early(node.source)
        loop.target, loop.looks_up = node.target, filters.looks_up(node, node.target, node.iterable)
        loop.is_sized = isinstance(iterable, Sequence) and iterable.kind in ("list", "tuple")
        loop.is_single = (
            isinstance(iterable, Sequence) and not iterable.open and len(iterable.items) == 1
        )

        visited = False

        def visit(entry: Abstract) -> bool:
            nonlocal visited
            visited = True
            if _is_called(m, entry):
                m.over_callables.add(loop.number)
            assign(m, node.target, entry, frame)
            signal = _round(m, loop, node, node.body, frame)
            if signal is None or signal is CONTINUE:
                return False
            ended.append(signal)
            return True

        at = Call("for", [], {}, node.iterable, frame)
        m.iterate(iterable, visit, at)
        if not visited and isinstance(iterable, Object) and _steps_in(m, node, frame):
            m.iterate(m.unknown(frame.text(node.iterable), data=True), visit, at)
        if not ended and not is_endless(iterable):
            loop.ends()
        kept.report(m, loop)
    if ended:
        return ended[0] if ended[0].kind == "return" else None
    return m.execute(node.otherwise, frame)


def _steps_in(m: Machine, node: ir.For, frame: Frame) -> bool:
    """Whether a backward stands in a loop, or in what it calls: then what it runs over is not
    empty.
    """
    return m.session.may_train and m.session.is_written(
        node.source, frame.code.path, tape.May.BACKWARD
    )


def _is_called(m: Machine, entry: Abstract) -> bool:
    """Whether a loop runs over functions, methods or objects of the program that are called."""
    if isinstance(entry, Instance):
        return entry.module is None and m.session.member_of(entry.cls, "__call__") is not None
    return isinstance(entry, Function | Bound)


@handles(EXECUTE, ir.With)
def with_(m: Machine, node: ir.With, frame: Frame) -> Signal | None:
    context = m.evaluate(node.context, frame)
    ended: list[Signal] = []

    def body(entered: Abstract) -> None:
        if node.target is not None:
            assign(m, node.target, entered, frame)
        elif isinstance(entered, Object):
            tell("yielded", m, entered, node.context, frame)
        signal = m.execute(node.body, frame)
        if signal is not None:
            ended.append(signal)

    run_context(m, context, body, Call("with", [], {}, node.context, frame))
    return ended[0] if ended else None


@handles(EXECUTE, ir.Try)
def try_(m: Machine, node: ir.Try, frame: Frame) -> Signal | None:
    signal: Signal | None = None
    if node.handlers and m.state.get("sampling") and _fails(m, node, frame):
        return m.execute([*node.handlers[0].body, *node.finally_], frame)
    try:
        try:
            signal = _attempt(m, node, frame)
            if signal is None:
                signal = m.execute(node.otherwise, frame)
        except Raised as raised:
            handler = _handler(m, node, raised, frame)
            if handler is None:
                raise
            if handler.name:
                frame.locals[handler.name] = raised.value
            signal = m.execute(handler.body, frame)
    finally:
        last = m.execute(node.finally_, frame)
    return last or signal


def _attempt(m: Machine, node: ir.Try, frame: Frame) -> Signal | None:
    """Runs the body of a `try`."""
    m.trying.append((node, frame, len(m.loops)))
    try:
        with m.protecting([frame] if _swallows(m, node, frame) else []):
            return m.execute(node.body, frame)
    finally:
        m.trying.pop()


def leads_out(m: Machine, error: str, loop: Loop) -> bool:
    """Whether an error of this class, raised now in the round of a loop, is caught and ends the
    loop.
    """
    inside = m.loops.index(loop)
    for node, frame, depth in reversed(m.trying):
        handler = _handler(
            m, node, Raised(Object(error, frame.span(node)), frame.span(node)), frame
        )
        if handler is not None:
            return depth <= inside or leaves(handler.body)
    return False


def leaves(block: list[ir.Node]) -> bool:
    """Whether a statement of a block leaves the loop around it."""
    parts: list[object] = list(block)
    for part in parts:
        if isinstance(part, ir.Return) or (isinstance(part, ir.Jump) and part.kind == "break"):
            return True
        if isinstance(part, ir.If):
            parts += [*part.then, *part.otherwise]
    return False


def _fails(m: Machine, node: ir.Try, frame: Frame) -> bool:
    """Whether the body of a `try` raises, where that is taken to be possible."""
    asked = Unknown(
        m.session.library_symbol("raises").derive(id(node), "raises"), data=True, type="bool"
    )
    return conditions.decide(m, asked, node.body[0], frame, default=False)


def _swallows(m: Machine, node: ir.Try, frame: Frame) -> bool:
    """Whether a handler takes what a backward raises, and does not raise again."""
    error = Object("builtins.RuntimeError", frame.span(node))
    for handler in node.handlers:
        if handler.types is None or _catches(m, m.evaluate(handler.types, frame), error):
            return not any(isinstance(statement, ir.Raise) for statement in handler.body)
    return False


def _handler(m: Machine, node: ir.Try, raised: Raised, frame: Frame) -> ir.Handler | None:
    for handler in node.handlers:
        if handler.types is None or _catches(m, m.evaluate(handler.types, frame), raised.value):
            return handler
    return None


def _catches(m: Machine, types: Abstract, value: Abstract) -> bool:
    if isinstance(types, Sequence):
        return any(_catches(m, entry, value) for entry in types.items)
    if isinstance(types, Lib) and types.name in ("builtins.Exception", "builtins.BaseException"):
        return True
    if isinstance(value, Instance):
        return types in value.cls.lineage()
    if isinstance(value, Object) and isinstance(types, Lib):
        return is_a(value.cls, types.name)
    return isinstance(types, Unknown)


@handles(EXECUTE, ir.Return)
def return_(m: Machine, node: ir.Return, frame: Frame) -> Signal:
    return Signal("return", NONE if node.value is None else m.evaluate(node.value, frame))


@handles(EXECUTE, ir.Raise)
def raise_(m: Machine, node: ir.Raise, frame: Frame) -> None:
    value = NONE if node.value is None else m.evaluate(node.value, frame)
    if isinstance(value, Class):
        value = m.call(value, Call("raise", [], {}, node, frame))
    elif isinstance(value, Lib):
        value = Object(value.name, frame.span(node))
    raise Raised(value, frame.span(node))


@handles(EXECUTE, ir.Jump)
def jump(m: Machine, node: ir.Jump, frame: Frame) -> Signal:
    return BREAK if node.kind == "break" else CONTINUE


@handles(EXECUTE, ir.Assert)
def assert_(m: Machine, node: ir.Assert, frame: Frame) -> None:
    """What is asserted holds from here on."""
    value = conditions.question(m, node.test, frame)
    conditions.assume(m, value, frame.span(node.test), frame.text(node.test))


@handles(EXECUTE, ir.Function)
def define(m: Machine, node: ir.Function, frame: Frame) -> None:
    value = m.evaluate(node, frame)
    for decorator in reversed(node.decorators):
        value = _decorated(m, m.evaluate(decorator, frame), value, decorator, frame)
    frame.locals[node.name] = value
    if frame.function is not None:
        m.session.program.scopes.add(frame)


def _decorated(
    m: Machine, decorator: Abstract, value: Abstract, node: ir.Node, frame: Frame
) -> Abstract:
    """What a decorator makes; one that nothing is known of leaves the function as it is."""
    if isinstance(decorator, Unknown):
        tell("decorated", m, value, node, frame)
        return value
    if isinstance(decorator, Lib) and not m.session.has_model(decorator.name):
        return value
    with m.oracle.registering() as met:
        made = calls.within(
            m,
            MOST_DECORATING,
            lambda: m.call(decorator, Call("decorator", [value], {}, node, frame)),
        )
    if made is None or isinstance(made, Unknown) or decorators.passes_on(m, made, value):
        return value
    if made is not value:  # what it makes hangs on its branches
        for seen in met():
            seen.registers = False
    return made


@handles(EXECUTE, ir.Class)
def class_(m: Machine, node: ir.Class, frame: Frame) -> None:
    scope = Frame(frame.code, {}, frame, is_class=True)
    given = [m.evaluate(base, frame) for base in node.bases if not isinstance(base, ir.Star)]
    bases: list[Abstract] = [
        base if isinstance(base, Class | Lib | Unknown) else m.unknown(node.name) for base in given
    ]
    m.execute(node.body, scope)
    annotations = scope.locals.pop("__annotations__", Mapping({}))
    made = Class(node.name, bases, scope.locals, node)
    m.session.program.classes.append(made)
    assert isinstance(annotations, Mapping)
    made.annotations = {
        str(name): (scope.locals.get(str(name)), node) for name in annotations.items
    }
    for name, member in list(scope.locals.items()):
        _own(member, made)
        named = (
            m.session.member_of(member.cls, "__set_name__")
            if isinstance(member, Instance)
            else None
        )
        if named is not None:
            m.invoke(named, [member, made, Const(name)], Call(name, [], {}, node, frame))
    for base in made.libraries():
        hook = find_method(canonical(base), "__init_subclass__")
        if hook is not None:
            hook(m, made, Call(node.name, [], {}, node, frame))
    _tell_base(m, made, node, frame)
    value: Abstract = made
    for decorator in reversed(node.decorators):
        value = _decorated(m, m.evaluate(decorator, frame), value, decorator, frame)
    frame.locals[node.name] = value


def _tell_base(m: Machine, made: Class, node: ir.Class, frame: Frame) -> None:
    """Runs the `__init_subclass__` that a base of the program defines."""
    for base in made.bases:
        hook = m.session.member_of(base, "__init_subclass__") if isinstance(base, Class) else None
        if hook is not None:
            given = {
                key: m.evaluate(value, frame)
                for key, value in node.keywords
                if key not in (None, "metaclass")
            }
            run = (
                hook
                if isinstance(hook, Function)
                else m.attribute(made, "__init_subclass__", Call(node.name, [], {}, node, frame))
            )
            m.call(
                run,
                Call(
                    node.name,
                    [made] if run is hook else [],
                    {str(key): value for key, value in given.items()},
                    node,
                    frame,
                ),
            )
            return


def _own(member: Abstract, cls: Class) -> None:
    """Tells functions of a class (under decorators, too) whose they are, for `super()`."""
    while isinstance(member, Builtin) and member.wraps is not None:
        member = member.wraps
    if isinstance(member, Function) and member.owner is None:
        member.owner = cls
    elif isinstance(member, Object) and member.cls in (
        "builtins.property",
        "builtins.staticmethod",
        "builtins.classmethod",
    ):
        for inner in member.state.values():
            if isinstance(inner, Abstract):
                _own(inner, cls)


@handles(EXECUTE, ir.Import)
def import_(m: Machine, node: ir.Import, frame: Frame) -> None:
    frame.locals[node.name] = m.session.program.imported(
        frame, node.module if node.whole else node.name, 0
    )
    if not node.whole:
        m.session.program.imported(frame, node.module, 0)
    m.session.program.set_modes(m, frame, node.module, 0)


@handles(EXECUTE, ir.ImportFrom)
def import_from(m: Machine, node: ir.ImportFrom, frame: Frame) -> None:
    m.session.program.set_modes(m, frame, node.module, node.level)
    for name, bound in node.names:
        if name == "*":
            m.session.program.star(m, frame, node.module, node.level)
        else:
            found = m.session.program.member(m, frame, node.module, node.level, name)
            frame.locals[bound] = _constant_of(m, found, node, frame)


def _constant_of(m: Machine, found: Abstract, node: ir.Node, frame: Frame) -> Abstract:
    """`from math import pi`: the value itself, where the library's model has it."""
    home, _, name = found.name.rpartition(".") if isinstance(found, Lib) else ("", "", "")
    handler = find_attribute(canonical(home), name) if home else None
    return (
        found
        if handler is None
        else handler(m, Lib(home), Call(name, [], {}, node, frame)) or found
    )
