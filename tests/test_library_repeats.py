"""What is known of what branches ask: the same of the same data, and masks that are written down
(GL101).
"""

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
    return [
        finding.code for finding in analyze([program], select=lambda code: code == "GL101").findings
    ]


@pytest.mark.parametrize(
    "asked",
    [
        "torch.sum(mask) > 0", "mask.sum(0) > 0", "torch.sum(mask, dim=0) > 0",
        "torch.max(mask) > 0",
        "mask.float().mean() > 0", "torch.isnan(x).any()", "x.isfinite().all()",
        "x.std(unbiased=False) > 0.1",
        "mask.any().item()", "x.norm(dim=1).max() > 1", "torch.linalg.norm(x) > 1",
        "x.abs().max().item() > 1",
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
def test_what_chance_or_a_write_decides_anew_is_another(
    asked: str, between: str, tmp_path: pathlib.Path
) -> None:
    assert codes(PROGRAM.format(asked=asked, between=between), tmp_path) == ["GL101"]


@pytest.mark.parametrize(
    "text", [PROGRAM.format(asked="ASKED", between="pass"), FUNCTION.format(asked="ASKED")]
)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mask.any()", "mask.sum() > 0"),
        ("mask.any()", "not mask.sum() == 0"),
        ("mask.sum() > 0", "mask.any()"),
        ("mask.sum() > 0", "torch.sum(mask) > 0"),
        ("mask.sum() > 0", "mask.sum().item() > 0"),
    ],
)
def test_what_says_the_same_of_a_mask_is_one_question(
    one: str, other: str, text: str, tmp_path: pathlib.Path
) -> None:
    assert codes(text.replace("ASKED", one, 1).replace("ASKED", other, 1), tmp_path) == []


MASKED = """\
import torch

def masked(values, mask):
    count = mask.sum()
    if {empty}:
        return torch.zeros(())
    return (values * mask).sum() / count

model = torch.nn.Linear(4, 8)
mask = {mask}
{write}
loss = masked(model(torch.randn(16, 4)), mask)
loss.backward()
"""


@pytest.mark.parametrize(
    ("mask", "write", "found"),
    [
        ("torch.ones(16, 8)", "", []),
        ("torch.ones(16, 8).bool()", "", []),
        ("torch.ones(16, 8, dtype=torch.bool)", "mask[0, 4:] = True", []),
        ("torch.zeros(16, 8, dtype=torch.bool)", "mask[0, :3] = True; mask[1, 2] = True", []),
        ("torch.full((16, 8), 0.5)", "mask[3] = 2", []),
        ("torch.zeros(16, 8)", "", ["GL101"]),
        ("torch.zeros(16, 8)", "mask[0] = 0", ["GL101"]),
        ("torch.ones(16, 8)", "mask[torch.rand(16) > 0.5] = 0", ["GL101"]),
        ("torch.zeros(16, 8)", "mask[torch.rand(16) > 0.5] = 1", ["GL101"]),
        ("torch.ones(16, 8)", "mask[0] = -1", ["GL101"]),
        ("torch.ones(int((torch.rand(4) > 0.5).sum()), 8)", "", ["GL101"]),
        ("torch.ones(16, 8)", "mask.mul_(torch.rand(16, 1) > 0.5)", ["GL101"]),
    ],
)
@pytest.mark.parametrize(
    "empty", ["count == 0", "count.item() <= 0", "not mask.any()", "not count"]
)
def test_a_mask_that_is_written_down_is_empty_or_not(
    empty: str, mask: str, write: str, found: list[str], tmp_path: pathlib.Path
) -> None:
    assert codes(MASKED.format(empty=empty, mask=mask, write=write), tmp_path) == found
