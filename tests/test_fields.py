"""Which methods of an object are not led to by the one that is run, so that what they set is not
known there.
"""

from __future__ import annotations

import ast

import pytest

from gradlint.program.fields import elsewhere, methods

_CLASS = """
class Base:
    def __init__(self):
        self.anchors = None
        self.prepare()

    def prepare(self):
        self.rate = 0.1

    def train(self):
        self.anchors = [1]
        self.optimizer.step()

    def fit(self):
        {}
"""


def _written(call: str) -> frozenset[str]:
    (cls,) = ast.parse(_CLASS.format(call)).body
    assert isinstance(cls, ast.ClassDef)
    return elsewhere("fit", methods(cls)).written


@pytest.mark.parametrize(
    "call", ["self.model.train()", "model.train()", "train()", "self.train = True"]
)
def test_a_method_of_something_else_is_not_that_of_the_object(call: str) -> None:
    assert "anchors" in _written(call)


@pytest.mark.parametrize(
    "call", ["self.train()", "super().train()", "Base.train(self)", "run(self.train)"]
)
def test_what_a_method_calls_on_its_object_is_run_with_it(call: str) -> None:
    assert _written(call) == frozenset()
