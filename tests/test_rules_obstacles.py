"""What stands between parameters and their training, and what is said of it: GL106, GL405."""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

ENCODER = """\
import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 8, 4):
    {}
    loss = head(z).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("encoded", "obstacle"),
    [
        ("z = encoder(x)", ""),
        ("z = encoder(x).detach()", "`.detach()` cuts the graph"),
        ("z = encoder(x).round()", "the gradient of `.round()` is zero"),
        ("z = (encoder(x) > 0).float()", "`encoder(x) > 0` cuts the graph"),
        ("with torch.no_grad():\n        z = encoder(x)", "grad mode is off here"),
        ("with torch.no_grad():\n        z = encoder(x).round()", "grad mode is off here"),
        ("with torch.no_grad():\n        z = encoder(x)\n    z = z.sign()", "grad mode is off here"),
        ("with torch.no_grad():\n        scale = encoder.weight.round()\n    z = x @ scale", "grad mode is off here"),
        ("z = encoder(x).detach().round()", "`.detach()` cuts the graph"),
    ],
)
def test_the_obstacle_is_named(encoded: str, obstacle: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(ENCODER.format(encoded), encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL106").findings
    assert [finding.message.partition(":")[0] for finding in found] == [obstacle] * bool(obstacle)


SCALED = """\
import torch

def train(model, optimizer, data, scaler, sometimes):
    {}
    for x in data:
        optimizer.zero_grad()
        scaler.scale(model(x).mean()).backward()
        scaler.step(optimizer)
        {}
"""
MADE = 'scaler = torch.amp.GradScaler("cuda")'


@pytest.mark.parametrize(
    ("made", "updated", "is_told"),
    [
        (MADE, "pass", True),
        (MADE, "scaler.update()", False),
        (MADE, "if sometimes:\n            scaler.update()", True),
        ("scaler = torch.amp.GradScaler(enabled=False)", "pass", False),
        ("scaler = torch.amp.GradScaler(enabled=sometimes)", "if sometimes:\n            scaler.update()", False),
        ("pass", "if sometimes:\n            scaler.update()", False),
    ],
)
def test_an_update_that_is_gated_with_the_scaler_is_not_missed(
    made: str, updated: str, is_told: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCALED.format(made, updated), encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL405").findings
    assert [finding.at.line for finding in found] == [8] * is_told
