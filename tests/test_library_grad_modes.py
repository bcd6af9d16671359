"""The grad mode that code runs in: what a module runs is not under the contexts of whoever asks for
its names.
"""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

SCRIPT = """\
import torch
from torch import nn

steps = 5
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{}

@torch.no_grad()
def evaluate():
    return model(batch("test")).mean().item()

def batch(split):
    return torch.randn(2, 4)

x = batch("train")

def train():
    global x
    for step in range(steps):
        print(evaluate())
        loss = model(x).square().mean()
        x = batch("train")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

train()
"""


@pytest.mark.parametrize("raised", ["", "raise ValueError('no such optimizer')"])
def test_a_script_is_not_run_under_the_mode_of_a_function_that_asks_for_its_names(
    raised: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT.format(raised), encoding="utf-8")
    assert analyze([path], select=lambda _: True).findings == ()


FILLED = """\
import torch

def fill(x, init=torch.nn.init.normal_):
    with torch.inference_mode():
        x[..., :1] = init(torch.empty(*x.shape[:-1], 1))
    return x

class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(fill(torch.empty(4, 2)))

    def forward(self, x):
        return x * self.scale

model = Scaled()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 4, 2):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
{}
"""


@pytest.mark.parametrize(
    ("behind", "codes"),
    [
        ("", []),
        ("with torch.inference_mode(): y = torch.empty(3)\ntorch.nn.init.normal_(y)", ["GL302"]),
    ],
)
def test_what_is_initialised_under_inference_mode_may_be_made_there(
    behind: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(FILLED.format(behind), encoding="utf-8")
    assert [finding.code for finding in analyze([path], select=lambda _: True).findings] == codes
