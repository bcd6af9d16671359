"""What of a loss has a value and no gradient, and was to have one: GL109."""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

WEIGHTED = """\
import math

import numpy as np
import torch

class Client:
    def fit(self, model, known, optimizer, x, y):
        out = model(x)
        weight = {}
        loss = (weight * (out - y).square()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("weight", "codes"),
    [
        ("0.5 * (1 + math.cos(math.pi * self.round / 10))", []),
        ("math.exp(-(self.round - int(self.middle * self.rounds)) / self.width)", []),
        ("float(np.clip(self.rate + np.random.normal(0, self.noise), 0.0, 1.0))", []),
        ("np.exp(np.array([self.rate * i for i in range(3)])).mean()", []),
        ("torch.tensor([key[0] for key in sorted(known.keys())])", []),
        ("torch.tensor([float(key) for key in known])", []),
        ("math.exp(out.mean())", ["GL109"]),
        ("math.exp(-out.mean().item() / self.width)", []),
        ("torch.tensor(out.mean() * self.rate)", ["GL109"]),
        ("torch.tensor(np.exp(out.detach().numpy()))", ["GL109"]),
    ],
)
def test_numbers_of_settings_are_not_cut_off(
    weight: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "client.py"
    program.write_text(WEIGHTED.format(weight))
    found = analyze([program], select=lambda code: code == "GL109")
    assert [finding.code for finding in found.findings] == codes
