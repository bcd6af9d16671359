"""Summaries of values, by which the analysis compares two states: equal ones go on alike."""

from __future__ import annotations

from gradlint import tape
from gradlint.interpret import (
    tensors,
)
from gradlint.interpret.values import (
    Abstract,
    Const,
    Function,
    Instance,
    Lib,
    Mapping,
    Object,
    Sequence,
    Tensor,
    Unknown,
)  # fmt: skip


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
