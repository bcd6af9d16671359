"""Sides of branches that a rule's question hangs on are run, however few paths the search before has run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.analysis import analyze
from gradlint.finding import Severity
from gradlint.interpret import paths, settling

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = self.body(x)
        cut = h.detach()
        {side}
        return self.head(cut)


def train(settings):
    net = Net(settings)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 2, 4):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
QUIET = "if self.settings.quiet: pass\n        else: name = 'loud'"


@pytest.fixture(autouse=True)
def _one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "BUDGET", 1)


def codes(side: str, folder: Path) -> set[str]:
    path = folder / "train.py"
    path.write_text(PROGRAM.format(side=side))
    found = analyze([path], select=lambda code: code.startswith("GL1"), without_parts=[path]).findings
    return {finding.code for finding in found if finding.severity > Severity.NOTE}


@pytest.mark.parametrize(
    ("side", "code"),
    [
        ("pass", "GL106"),
        (QUIET, "GL106"),
        (QUIET + "\n        if self.settings.short: pass\n        else: name += 'long'", "GL106"),
        ("if self.settings.frozen: pass\n        else: cut = h", ""),
        ("cut = cut if self.settings.frozen else h", ""),
        ("if self.settings.quiet: pass\n        elif self.settings.frozen: pass\n        else: cut = h", ""),
        ("if self.settings.new: pass\n        else: name = 'old'; raise ValueError(name)", ""),
    ],
)
def test_a_claim_about_all_paths_waits_for_the_sides_that_could_refute_it(side: str, code: str, tmp_path: Path) -> None:
    assert codes(side, tmp_path) == ({code} if code else set())


def test_the_steps_for_it_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(settling, "MOST_STEPS", -1)
    assert codes(QUIET, tmp_path) == set()
