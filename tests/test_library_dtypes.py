"""Questions about dtypes: what carries a gradient holds floats, what was cast to integers does
not.
"""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

PROGRAM = """\
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
import unseen

net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def shares(x):
    if {}:
        return F.one_hot(x, 4).float()
    return x.softmax(-1)

for x, y in DataLoader(unseen.samples()):
    loss = (shares(net(x){}) - shares(y)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "asked",
    [
        "x.dtype == torch.int64",
        "x.dtype == torch.long or x.dtype == torch.int32",
        "x.dtype in (torch.int64, torch.int32)",
        "not x.dtype.is_floating_point",
        "not x.is_floating_point()",
        "not torch.is_floating_point(x)",
    ],
)
@pytest.mark.parametrize(
    ("cast", "codes"), [("", []), (".to(torch.float32)", []), (".argmax(-1)", ["GL104"])]
)
def test_what_carries_a_gradient_holds_floats(
    asked: str, cast: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.format(asked, cast), encoding="utf-8")
    assert [finding.code for finding in analyze([path], select=lambda _: True).findings] == codes
