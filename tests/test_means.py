"""What a loss is divided by can be the number of rounds in a window."""

from __future__ import annotations

import pytest
from gradlint_rules.means import is_whole_mean

from gradlint.finding import Span
from gradlint.tape import Backward, Kind, Value

AT = Span("train.py", 1, 1, 1, 2)


def call(*inputs: Value, name: str = "") -> Value:
    """What code out of view makes of some values, with parameters of its own."""
    own = Value("parameter", Kind.PARAMETER, (), AT, requires_grad=True, assumed=True)
    made = (own, *inputs)
    return Value("call", Kind.OPERATION, made, AT, requires_grad=True, assumed=True, name=name)


DATA = Value("torch.randn", Kind.CONSTANT, (), AT, in_torch=True)


@pytest.mark.parametrize(
    ("divisor", "is_whole"), [(call(), False), (call(call()), False), (call(DATA), True)]
)
def test_what_unknown_code_makes_of_numbers_can_be_a_number(divisor: Value, is_whole: bool) -> None:
    mean = Value("torch.mean", Kind.OPERATION, (call(DATA),), AT, requires_grad=True, in_torch=True)
    loss = Value(
        "torch.div",
        Kind.OPERATION,
        (mean, divisor),
        AT,
        requires_grad=True,
        in_torch=True,
        arguments=((0, mean), (1, divisor)),
    )
    assert is_whole_mean([Backward(at=AT, value=loss)]) is is_whole
