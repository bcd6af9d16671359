"""What is computed twice of the same data is asked about once: GL101 does not tell of branches that go together."""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

PROGRAM = """\
import torch
from torch.nn import functional as F

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, mask in [(torch.randn(8, 4), torch.rand(8) > 0.5) for _ in range(4)]:
    loss = None
    if {asked}:
        loss = torch.zeros(())
    {between}
    if {asked}:
        loss = loss + model(x).mean()
    if loss is not None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
FUNCTION = """\
import torch

def step(model, x, mask, optimizer):
    loss = None
    if {asked}:
        loss = torch.zeros(())
    if {asked}:
        loss = loss + model(x).mean()
    if loss is not None:
        loss.backward()
        optimizer.step()
"""


def codes(text: str, folder: pathlib.Path) -> list[str]:
    program = folder / "train.py"
    program.write_text(text)
    return [finding.code for finding in analyze([program], select=lambda code: code == "GL101").findings]


@pytest.mark.parametrize(
    "asked",
    [
        "torch.sum(mask) > 0", "mask.sum(0) > 0", "torch.sum(mask, dim=0) > 0", "torch.max(mask) > 0",
        "mask.float().mean() > 0", "torch.isnan(x).any()", "x.isfinite().all()", "x.std(unbiased=False) > 0.1",
        "x.norm(dim=1).max() > 1", "torch.linalg.norm(x) > 1", "x.abs().max().item() > 1",
    ],
)  # fmt: skip
def test_the_same_of_the_same_is_one_question(asked: str, tmp_path: pathlib.Path) -> None:
    assert codes(PROGRAM.format(asked=asked, between=""), tmp_path) == []


@pytest.mark.parametrize("asked", ["torch.sum(mask) > 0", "torch.amax(mask) > 0"])
def test_and_so_it_is_of_what_is_handed_in(asked: str, tmp_path: pathlib.Path) -> None:
    assert codes(FUNCTION.format(asked=asked), tmp_path) == []


@pytest.mark.parametrize(
    ("asked", "between"),
    [
        ("torch.bernoulli(mask.float()) > 0", ""),
        ("F.dropout(x, 0.9).sum() > 0", ""),
        ("mask.sum(0) > 0", "mask = torch.rand(8) > 0.5"),
        ("x.std() > 1", "x.mul_(2)"),
        ("x.std() > 1", "x[0] = 0"),
    ],
)
def test_what_chance_or_a_write_decides_anew_is_another(asked: str, between: str, tmp_path: pathlib.Path) -> None:
    assert codes(PROGRAM.format(asked=asked, between=between), tmp_path) == ["GL101"]
