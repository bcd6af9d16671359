"""What gradlint knows of message passing. Each claim was seen to hold in PyTorch Geometric 2.8."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.analysis import analyze
from gradlint.finding import Severity

LAYER = """\
import torch
from torch import nn
from torch_geometric.nn import MessagePassing


class Conv(MessagePassing):
    def __init__(self):
        super().__init__(aggr="add")
        self.lin, self.att = nn.Linear(3, 4), nn.Linear(8, 1)

    def forward(self, x, edge_index):
        x = self.lin(x)
        return self.propagate(edge_index, x={given})

    def message(self, x_i, x_j, index):
        alpha = self.att(torch.cat([x_i, x_j], dim=-1)).sigmoid()
        {message}
        return alpha * x_j

    def update(self, summed):
        made = summed.exp()
        {update}
        return made


model = Conv()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
for _ in range(3):
    loss = model(torch.randn(3, 3), edges).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "message", "update", "code"),
    [
        ("x", "pass", "pass", ""),
        ("(x, x)", "pass", "pass", ""),
        ("x", "alpha = alpha.detach()", "pass", "GL106"),
        ("x.detach()", "pass", "pass", "GL106"),
        ("x", "alpha += 1", "pass", "GL201"),
        ("x", "alpha = alpha + index.float()[:, None]", "pass", ""),
        ("x", "pass", "made += 1", "GL201"),
        ("x", "pass", "made = made.round()", "GL108"),
    ],
)
def test_what_propagate_runs_is_judged(
    given: str, message: str, update: str, code: str, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(LAYER.format(given=given, message=message, update=update))
    found = analyze([path], select=lambda code: code[:3] in ("GL1", "GL2")).findings
    assert {finding.code for finding in found if finding.severity > Severity.NOTE} == (
        {code} if code else set()
    )
