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
        (
            "with torch.no_grad():\n        z = encoder(x)\n    z = z.sign()",
            "grad mode is off here",
        ),
        (
            "with torch.no_grad():\n        scale = encoder.weight.round()\n    z = x @ scale",
            "grad mode is off here",
        ),
        ("z = encoder(x).detach().round()", "`.detach()` cuts the graph"),
    ],
)
def test_the_obstacle_is_named(encoded: str, obstacle: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(ENCODER.format(encoded), encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL106").findings
    assert [finding.message.partition(":")[0] for finding in found] == [obstacle] * bool(obstacle)


WRITER = """\
import torch
from torch import nn

torch.manual_seed(0)
writer, layer, other = nn.Linear(3, 4), nn.Linear(4, 1, bias=False), nn.Linear(4, 1, bias=False)
optimizer = torch.optim.SGD(writer.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    written = writer(x[:, :3].mean(0)).view(1, 4)
    {}
    optimizer.zero_grad()
    loss.backward()
    got = writer.weight.grad
    optimizer.step()
"""
RUN = "; loss = layer(x).pow(2).mean()"


@pytest.mark.parametrize(
    ("used", "obstacle"),
    [
        ("loss = torch.func.functional_call(layer, {'weight': written}, x).pow(2).mean()", ""),
        ("layer.load_state_dict({'weight': written})" + RUN, "`load_state_dict()`"),
        ("layer.weight.data.copy_(written)" + RUN, "`.copy_()`"),
        ("layer.weight.data = written" + RUN, "`.data`"),
        ("layer.weight.data[:] = written" + RUN, "`layer.weight.data[:]`"),
        ("layer.weight.data.mul_(written)" + RUN, "`.mul_()`"),
        (
            "with torch.no_grad():\n        layer.weight.copy_(written)\n"
            "    loss = layer(x).mean()",
            "`.copy_()`",
        ),
        (
            "nn.utils.vector_to_parameters(written.flatten(), layer.parameters())" + RUN,
            "`torch.nn.utils.vector_to_parameters()`",
        ),
        ("other.load_state_dict({'weight': written})" + RUN + " + written.mean()", ""),
        ("other.weight.data.copy_(written)\n    loss = other(x).mean() + written.mean()", ""),
    ],
)
def test_computed_weights_that_are_written_into_a_module_have_no_graph(
    used: str, obstacle: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(WRITER.format(used), encoding="utf-8")
    ran: dict[str, object] = {}
    exec(path.read_text(encoding="utf-8"), ran)
    assert (ran["got"] is None) == bool(obstacle)
    found = analyze([path], select=lambda code: code == "GL106").findings
    assert [finding.message.partition(" cuts")[0] for finding in found] == [obstacle] * bool(
        obstacle
    )


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
        (
            "scaler = torch.amp.GradScaler(enabled=sometimes)",
            "if sometimes:\n            scaler.update()",
            False,
        ),
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
