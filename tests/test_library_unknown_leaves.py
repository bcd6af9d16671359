"""What a loader gives is made a leaf by `x.requires_grad = True`, as by `x.requires_grad_()`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.analysis import analyze

PROGRAM = """\
import torch


class Energy:
    def __init__(self):
        self.model = torch.nn.Linear(4, 1)

    def sample(self, loader, steps):
        for parameter in self.model.parameters():
            parameter.requires_grad = False
        for batch in loader:
            x = batch.x.to("cpu").to(dtype=torch.float32)
            {made}
            for _ in range(steps):
                self.model(x).sum().backward()
                x.data.add_(x.grad.data, alpha=-0.1)
"""


@pytest.mark.parametrize(
    ("made", "codes"),
    [
        ("x.requires_grad = True", set()),
        ("x.requires_grad_()", set()),
        ("x = x.clone()", {"GL107"}),
    ],
)
def test_data_that_is_made_a_leaf_gets_the_gradient(
    made: str, codes: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "sampling.py"
    path.write_text(PROGRAM.format(made=made), encoding="utf-8")
    assert {finding.code for finding in analyze([path], select=lambda code: True).findings} == codes
