"""Whom an eval mode that is left on concerns: GL304."""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

RANKED = """\
import torch
from torch import nn

x = torch.randn(16, 4)

def measure(model):
    model.eval()
    with torch.no_grad():
        return model(x).std()

for number in range(3):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    measure(model)
    loss = model(x).square().mean()
    loss.backward()
    {}
"""


@pytest.mark.parametrize(
    ("used", "codes"),
    [
        ("print(model[0].weight.grad.abs().sum(dim=1).argmin())", []),
        ("torch.optim.SGD(model.parameters(), lr=0.1).step()", ["GL304"]),
        ("with torch.no_grad():\n        model[0].weight -= 0.1 * model[0].weight.grad", ["GL304"]),
        ("for p in model.parameters():\n        p.data -= 0.1 * p.grad", ["GL304"]),
        ("for p in model.parameters():\n        p.data = p.data - 0.1 * p.grad", ["GL304"]),
    ],
)
def test_gradients_that_only_rank_train_nothing(used: str, codes: list[str], tmp_path: pathlib.Path) -> None:
    program = tmp_path / "rank.py"
    program.write_text(RANKED.format(used))
    found = analyze([program], select=lambda code: code == "GL304")
    assert [finding.code for finding in found.findings] == codes
