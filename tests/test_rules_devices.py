"""Which uses of CUDA by name are told: what a skipped test does is done on CUDA alone."""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

BEFORE = """\
import pytest
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


def step(x):
    model = torch.nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    model(x.to(device)).sum().backward()
    optimizer.step()


"""
STEP = "    step(torch.ones(8, 4).cuda())\n"
SKIPPED = {
    "by a mark": "@needs_cuda\ndef test_step():\n" + STEP,
    "by a mark on its class": "@needs_cuda\nclass TestStep:\n    def test_step(self):\n    " + STEP,
    "in its body": "def test_step():\n    if not torch.cuda.is_available():\n"
    "        pytest.skip()\n" + STEP,
}
RUN = {
    "always": "def test_step():\n" + STEP,
    "by a mark about something else": "@pytest.mark.skipif(torch.get_num_threads() < 2, "
    "reason='')\ndef test_step():\n" + STEP,
    "by a condition in a string": "@pytest.mark.skipif('sys.platform == \"win32\"')\n"
    "def test_step():\n" + STEP,
}

CALLED = """\
import torch


def train(model, batches, optimizer, scaler, ngpu):
    for x in batches:
        x = x.to("cuda" if ngpu > 0 else "cpu")
        with torch.autocast("cuda", enabled=scaler is not None):
            loss = model(x).mean()
        optimizer.zero_grad()
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
"""

LAYER = """\
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = """
TRAINED = """\

    def forward(self, x):
        return x @ self.w


layer = Layer(torch.randn(4, 1))
optimizer = torch.optim.SGD([*layer.parameters(), torch.ones(1, requires_grad=True)], lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    layer(x.cuda()).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("test", SKIPPED.values(), ids=SKIPPED.keys())
def test_a_test_that_is_skipped_without_cuda_may_name_it(test: str, tmp_path: pathlib.Path) -> None:
    assert _told(test, tmp_path) == []


@pytest.mark.parametrize("test", RUN.values(), ids=RUN.keys())
def test_a_test_that_runs_without_cuda_may_not_name_it(test: str, tmp_path: pathlib.Path) -> None:
    assert _told(test, tmp_path) == ["GL409"]


def test_what_needs_cuda_in_other_ways_may_name_it(tmp_path: pathlib.Path) -> None:
    assert _told("def test_step():\n    torch.cuda.synchronize()\n" + STEP, tmp_path) == []


def test_an_autocast_that_the_caller_enables_is_left_to_the_caller_in_every_round(
    tmp_path: pathlib.Path,
) -> None:
    assert _told(CALLED, tmp_path, before="") == []


@pytest.mark.parametrize(
    "moved", ["nn.Parameter(w).cuda()", "nn.Parameter(w)\n        self.w = self.w.to('cuda:0')"]
)
def test_a_parameter_moved_as_an_attribute_is_no_leaf(moved: str, tmp_path: pathlib.Path) -> None:
    assert _told(f"{LAYER}{moved}\n{TRAINED}", tmp_path, before="") == ["GL515"]


def _told(test: str, folder: pathlib.Path, before: str = BEFORE) -> list[str]:
    path = folder / "test_step.py"
    path.write_text(before + test, encoding="utf-8")
    return [finding.code for finding in analyze([path], select=lambda code: True).findings]


GATED = """\
import torch
from packaging import version


def train(model, batches, optimizer, device):
    if version.parse(torch.__version__) < version.parse("2.4.0"):
        scaler = torch.cuda.amp.GradScaler()
    else:
        scaler = torch.GradScaler(device)
    old = torch.cuda.amp.GradScaler()
    for x in batches:
        optimizer.zero_grad()
        scaler.scale(model(x).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize("steps", [1, 40_000], ids=["one path", "all paths"])
def test_what_a_version_asks_for_is_not_told_where_the_other_side_is_not_run(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradlint.interpret.running.MOST_STEPS", steps)
    monkeypatch.setattr("gradlint.interpret.running.MOST_UNTRAINED", steps)
    path = pathlib.Path("train.py")
    found = analyze([path], select="GL402".__eq__, sources={path: GATED}).findings
    assert [each.at.line for each in found] == [10]
