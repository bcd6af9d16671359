"""Classes of the program that are derived from a library's: what the model knows of the base breaks
on none of them.
"""

import pathlib

import pytest

from gradlint import library
from gradlint.analysis import analyze
from gradlint.interpret import registry
from gradlint.interpret.lineage import bases

library.load()
# names of the model, no classes of torch
_NEVER_DERIVED = {"torch.return_types", "torch.nn.parallel.Reducer"}
OWNERS = sorted(
    {owner for owner, _ in (*registry.METHODS, *registry.ATTRIBUTES) if "." in owner}
    - _NEVER_DERIVED
)
CLASS = """\
import torch
import {package}

class Own({base}):
    def __init__(self, x=None):
        self.extra = x

    def use(self, x):
        self[0] = x
        self[0], len(self), list(self), -self, self == x
        self += x
        (self * x).sum().backward()
"""
MEMBER = """
    def use_{name}(self, x):
        self.{name}
        self.{name} = x
        self.{name}(x)
        return super().{name}(x)
"""
TRAINING = """
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
made = Own(model(torch.ones(1)))
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(1)).sum().backward()
    optimizer.step()
    made.use(model(torch.ones(1)))
"""


def program_of(owner: str) -> str:
    """A program that derives from a class and does with an object of it what the model knows of
    one.
    """
    package, _, short = owner.rpartition(".")
    known = {
        name for base, name in (*registry.METHODS, *registry.ATTRIBUTES) if base in bases(owner)
    }
    plain = {name.removeprefix("__set_").removesuffix("__") for name in known}
    names = sorted(name for name in plain if name.isidentifier() and not name.startswith("__"))
    head = CLASS.format(package=package, base=short if package == "builtins" else owner)
    uses = "".join(f"    made.use_{name}(1)\n    made.{name}\n" for name in names)
    return head + "".join(MEMBER.format(name=name) for name in names) + TRAINING + uses


@pytest.mark.parametrize("owner", OWNERS)
def test_a_class_derived_from_it_is_no_mistake_of_gradlint(owner: str) -> None:
    path = pathlib.Path("train.py")
    found = analyze([path], select=lambda code: True, sources={path: program_of(owner)})
    assert not [gap for gap in found.gaps if gap.kind == "internal"]


def test_a_tensor_class_with_sizes_of_its_own_is_trained_on() -> None:
    path = pathlib.Path("train.py")
    text = """\
import torch
from torch import nn

class Image(torch.Tensor):
    def batch(self):
        return self.shape[0] if self.ndim == 4 else 1

model = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.rand(3, 4, 3):
    image = Image(x)
    loss = model(x).detach().sum() / image.batch()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    found = analyze([path], select=lambda code: True, sources={path: text})
    assert not found.gaps
    assert {finding.code for finding in found.findings} == {"GL102"}
