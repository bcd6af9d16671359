"""A window that the number of batches is a multiple of leaves nothing over (GL504): the question
decides.
"""

from __future__ import annotations

import pathlib

import pytest

from gradlint import analysis

PROGRAM = """import argparse
from torch import nn, optim
from torch.utils.data import DataLoader
from data import images

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=4)
parser.add_argument("--unit", default="%")
args = parser.parse_args()
n = args.accumulate
loader = DataLoader(images(), batch_size=8)
model = nn.Linear(6, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
{}
for epoch in range(2):
    for i, x in enumerate(loader):
        loss = model(x).mean() / n
        loss.backward()
        if (i + 1) % n == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


def _codes(check: str, folder: pathlib.Path) -> list[str]:
    path = folder / "train.py"
    path.write_text(PROGRAM.format(check))
    return [finding.code for finding in analysis.analyze([path], select=lambda code: True).findings]


@pytest.mark.parametrize(
    "check", ["", "if args.unit == '%':\n    print()", "assert args.unit == '%'"]
)
def test_a_tail_that_nothing_rules_out_is_dropped(check: str, tmp_path: pathlib.Path) -> None:
    assert _codes(check, tmp_path) == ["GL504"]


@pytest.mark.parametrize(
    "check",
    [
        "assert len(loader) % n == 0",
        "assert not len(loader) % n",
        "if len(loader) % n:\n    raise ValueError('uneven')",
        "if len(loader) % n != 0:\n    raise ValueError('uneven')",
        "if len(loader) % n > 0:\n    exit()",
    ],
)
def test_a_tail_that_the_program_rules_out_is_not(check: str, tmp_path: pathlib.Path) -> None:
    assert _codes(check, tmp_path) == []


COUNTED = """def train_one_epoch(model, criterion, loader, optimizer, updates=None, window=None):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(loader):
        {}
        (criterion(model(x), y) / window).backward()
        if (i + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("check", "codes"),
    [
        ("if i // window >= updates:\n            continue", []),
        ("update = i // window\n        if not update < updates:\n            break", []),
        ("if i >= updates:\n            continue", ["GL504"]),
    ],
)
def test_whole_windows_that_are_counted_leave_no_tail(
    check: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "engine.py"
    path.write_text(COUNTED.format(check))
    found = analysis.analyze([path], select=lambda code: True).findings
    assert [finding.code for finding in found] == codes
