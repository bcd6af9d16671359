"""Whom an eval mode that is left on concerns: GL304."""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

RANKED = """\
import torch
from torch import nn

x = torch.randn(16, 4)

def measure(model):
    model.eval()
    with torch.no_grad():
        return model(x).std()

for number in range(3):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    measure(model)
    loss = model(x).square().mean()
    loss.backward()
    {}
"""


@pytest.mark.parametrize(
    ("used", "codes"),
    [
        ("print(model[0].weight.grad.abs().sum(dim=1).argmin())", []),
        ("torch.optim.SGD(model.parameters(), lr=0.1).step()", ["GL304"]),
        ("with torch.no_grad():\n        model[0].weight -= 0.1 * model[0].weight.grad", ["GL304"]),
        ("for p in model.parameters():\n        p.data -= 0.1 * p.grad", ["GL304"]),
        ("for p in model.parameters():\n        p.data = p.data - 0.1 * p.grad", ["GL304"]),
    ],
)
def test_gradients_that_only_rank_train_nothing(
    used: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "rank.py"
    program.write_text(RANKED.format(used))
    found = analyze([program], select=lambda code: code == "GL304")
    assert [finding.code for finding in found.findings] == codes


SAMPLED = """\
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import checkpoint

class Net(nn.Module):
    \"\"\"What post-training goes on with; there is no dropout in it.\"\"\"
    def __init__(self, saves_memory={}):
        super().__init__()
        self.saves_memory = saves_memory
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        {}

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 2, 4):
    loss = F.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        print(model(x))
"""
SAVED = """if self.saves_memory and self.training:
            return F.dropout(self.layer(x), 0.2)
        return self.layer(x)"""


@pytest.mark.parametrize(
    ("given", "forward", "codes"),
    [
        ("False", "return self.layer(x)", []),
        ("False", "return F.dropout(self.layer(x), 0.1)", []),
        ("False", "return F.dropout(self.layer(x), 0.1, self.training)", ["GL304"]),
        ("False", SAVED, []),
        ("True", SAVED, ["GL304"]),
    ],
)
def test_a_mode_that_nothing_hangs_on_is_not_told(
    given: str, forward: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "sample.py"
    program.write_text(SAMPLED.format(given, forward))
    found = analyze([program], select=lambda code: code == "GL304")
    assert [finding.code for finding in found.findings] == codes


ROLLED_OUT = """\
import torch

def loss_of(model, x):
    was_training = model.training
    model.eval()
    with torch.no_grad():
        print(model(x).mean())
    loss = model(x).square().mean()
    {}
    return loss

def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for x in batches:
        optimizer.zero_grad()
        loss_of(model, x).backward()
        optimizer.step()

train(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.1)), torch.randn(3, 2, 4))
"""


@pytest.mark.parametrize(
    ("behind", "codes"),
    [
        ("if was_training:\n        model.train()", []),
        ("model.train()", []),
        ("model.train(was_training)", []),
        ("pass", ["GL304"]),
    ],
)
def test_a_mode_that_is_put_back_before_the_backward_is_meant(
    behind: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "rollouts.py"
    program.write_text(ROLLED_OUT.format(behind))
    found = analyze([program], select=lambda code: code == "GL304")
    assert [finding.code for finding in found.findings] == codes


LAYERED = """\
import torch
import unseen
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(unseen.Turn(), nn.Linear(4, 4)) for _ in range(2)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
    def sample(self, x):
        for _ in range(8):  # here
            x = self(x).sign()
        return x

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 2, 4):
    model.train()
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    model.eval()
    print(model.sample(x))
"""


def test_a_loop_over_the_layers_of_a_model_is_no_evaluation(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "sample.py"
    program.write_text(LAYERED)
    found = analyze([program], select=lambda code: code == "GL305").findings
    lines = LAYERED.splitlines()
    assert [lines[finding.at.line - 1].partition("#")[2] for finding in found] == [" here"]


ADAPTED = """\
import torch
from torch import nn
from adapting import update_parameters

net = nn.Linear(3, 2)
net.eval()
missed = 0.0
for shown, kinds, asked, wanted in torch.load("tasks.pt"):  # here
    loss = nn.functional.cross_entropy(net(shown), kinds)
    adapted = {adapts}
    missed += nn.functional.cross_entropy(net(asked), wanted).item()
print(missed)
"""


@pytest.mark.parametrize(
    ("adapts", "lines"), [("update_parameters(net, loss)", []), ("loss.item()", [" here"])]
)
def test_a_loss_that_goes_to_code_out_of_view_may_be_differentiated_there(
    adapts: str, lines: list[str], tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "tasks.py"
    written = ADAPTED.format(adapts=adapts)
    program.write_text(written)
    found = analyze([program], select=lambda code: code == "GL305").findings
    assert [written.splitlines()[each.at.line - 1].partition("#")[2] for each in found] == lines
