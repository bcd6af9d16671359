"""Layers in a plain list (GL514): trained by nothing, or by hand. Optimizers that may lie in a dict
(GL511).
"""

from __future__ import annotations

import pathlib

import pytest

import gradlint

PROGRAM = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


model, head = Model(), nn.Linear(4, 2)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for x, y in zip(torch.randn(3, 5, 4), torch.randn(3, 5, 2)):
    optimizer.zero_grad()
    (nn.functional.mse_loss(model(x), y) + nn.functional.mse_loss(head(x), y)).backward()
    optimizer.step()
    with torch.no_grad():
        for layer in model.layers:
            if hasattr(layer, "weight"):
                {}
                layer.weight.grad.zero_()
"""


@pytest.mark.parametrize(
    ("update", "told"),
    [
        ("print(layer.weight.grad.norm())", True),
        ("layer.weight -= 0.1 * layer.weight.grad", False),
        ("layer.weight.data.sub_(0.1 * layer.weight.grad)", False),
    ],
)
def test_layers_out_of_the_module_are_told_unless_they_are_updated_by_hand(
    update: str, told: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(update))
    assert bool(gradlint.check(path, select=["GL514"])) == told


ONE_OR_MORE = """\
import math
import torch


def train(loader, model, optimizer):
    for x, language in loader:
        if isinstance(optimizer, dict):
            optimizer[language].zero_grad()
        else:
            optimizer.zero_grad()
        model(x).mean().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        if math.isnan(norm):
            print("no update")
        elif isinstance(optimizer, dict):
            {}
        else:
            {}
"""


@pytest.mark.parametrize(
    ("each", "one", "told"),
    [
        ("optimizer[language].step()", "optimizer.step()", False),
        ("print(norm)", "print(norm)", True),
    ],
)
def test_one_optimizer_or_a_dict_of_them_steps(
    each: str, one: str, told: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(ONE_OR_MORE.format(each, one))
    assert bool(gradlint.check(path, select=["GL511"])) == told
