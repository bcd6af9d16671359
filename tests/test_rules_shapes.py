"""Small programs, one shape each: PyTorch shows what happens; gradlint reports the rule that says
so, or nothing.
"""

from __future__ import annotations

import pathlib

import pytest
from truth import observe

from gradlint.analysis import analyze
from gradlint.finding import Severity

BEFORE = """\
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
m = nn.Linear(4, 3)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
x = torch.randn(8, 4)
logits = m(x)
"""
AFTER = """
opt.zero_grad()
loss.backward()
opt.step()
"""
SILENT = ("GL105", "GL108", "GL204")  # nothing raises: there is no gradient, or a wrong one

SHAPES = {
    "right": [
        "loss = logits.sort(dim=1)[0].mean()",
        "v, i = logits.max(1)\nloss = v.mean()",
        "loss = torch.distributions.Normal(logits, 1.0).rsample().mean()",
        "d = torch.distributions.Categorical(logits=logits)\nloss = -d.log_prob(d.sample()).mean()",
        "loss = (logits % 1).mean()",
        "loss = logits.frac().mean()",
        "loss = torch.as_tensor(logits).mean()",
        "loss = sum(torch.stack([logits.mean(), logits.std()]))",
        "with torch.no_grad():\n    h = logits\nloss = h.mean()",
        "loss = logits.mean()\nloss.requires_grad_(True)",
        "loss = torch.full((), 0.0)\nfor i in range(3):\n    loss = loss + logits[:, i].mean()",
        "h = logits * 2\nh += 1\nloss = h.mean()",
        "p = logits.detach().clone().requires_grad_(True)\np.square().mean().backward()\n"
        "if x.sum() > 1e9:\n    raise ValueError\nprint(p.grad.norm())\nloss = logits.mean()",
        "h = logits.tanh().clone()\nh.mul_(2)\nloss = h.mean()",
        "h = logits + 1\nF.relu_(h)\nloss = h.mean()",
        "g = logits + logits\nlogits.zero_()\nloss = g.mean()",
        "loss = logits.pow(2).mean()\nloss.backward(retain_graph=True)",
        "h = logits * 1\nv = h.max(1)[0]\nh.mul_(2)\nloss = v.mean()",
        "h = logits * 1\nv = torch.max(h, x[:, :3])\nv.mul_(2)\nloss = v.mean()",
        "h = logits * 1\nv = torch.maximum(h, x[:, :3]).detach() + h\nh.mul_(2)\nloss = v.mean()",
        "with torch.inference_mode():\n    t = x * 2\nloss = (logits[:, 0] - t[:, 0]).mean()",
        "with torch.inference_mode():\n    t = x * 2\nt = t.clone()\n"
        "loss = (logits[:, 0] * t[:, 0]).mean()",
    ],
    "GL101": [
        "loss = torch.zeros(1)",
        "loss = torch.tensor(0.0) + 0 * torch.ones(())",
        "loss = logits.new_zeros(()) * 2",
        "loss = torch.zeros_like(logits).sum()",
    ],
    "GL102": [
        "loss = torch.tensor(logits.mean().item())",
        "loss = logits.data.pow(2).mean()",
        "loss = torch.as_tensor(float(logits.mean()))",
        "loss = torch.from_numpy(logits.detach().numpy()).mean()",
        "loss = torch.tensor(np.mean(logits.tolist()))",
        "loss = torch.FloatTensor([logits[0,0], logits[0,1]]).sum()",
    ],
    "GL103": [
        "with torch.no_grad():\n    out = m(x)\nloss = out.mean()",
        "torch.set_grad_enabled(False)\nout = m(x)\ntorch.set_grad_enabled(True)\n"
        "loss = out.mean()",
        "with torch.inference_mode():\n    out = m(x)\nloss = out.mean()",
        "with torch.no_grad():\n    w = m.weight.T\nloss = (x @ w).mean()",
    ],
    "GL104": [
        "loss = logits.topk(2).indices.float().mean()",
        "loss = logits.sort(dim=1).indices.float().mean()",
        "v, i = logits.max(1)\nloss = i.float().mean()",
        "loss = logits.nonzero().float().mean()",
        "loss = torch.multinomial(logits.softmax(1), 1).float().mean()",
        "loss = F.one_hot(logits.argmax(1), 3).float().mean()",
        "loss = torch.distributions.Categorical(logits=logits).sample().float().mean()",
        "loss = torch.distributions.Normal(logits, 1.0).sample().mean()",
        "loss = (logits // 0.5).mean()",
        "loss = logits.unique().mean()",
        "loss = torch.histc(logits, 5).mean()",
        "loss = (logits > 0).float().mean()",
        "loss = logits.long().float().mean()",
        "loss = torch.bincount(logits.argmax(1)).float().mean()",
    ],
    "GL105": [
        "loss = logits.mean().detach()\nloss.requires_grad_(True)",
        "loss = logits.mean().detach()\nloss.requires_grad = True",
        "loss = torch.tensor(logits.mean().item(), requires_grad=True)",
        "loss = torch.autograd.Variable(logits.data, requires_grad=True).mean()",
    ],
    "GL107": [
        "m.requires_grad_(False)\nloss = m(x).mean()",
        "for p in m.parameters():\n    p.requires_grad = False\nloss = m(x).mean()",
    ],
    "GL108": [
        "loss = logits.round().mean()",
        "loss = logits.floor().pow(2).mean()",
        "loss = logits.sign().mean()",
        "loss = torch.div(logits, 2, rounding_mode='floor').mean()",
        "loss = torch.bernoulli(logits.sigmoid()).mean()",
        "loss = torch.normal(logits, 1.0).mean()",
    ],
    "GL201": [
        "h = logits.exp()\nh += 1\nloss = h.mean()",
        "h = logits.sigmoid()\nh[0] = 0\nloss = h.mean()",
        "h = logits.relu()\nF.dropout(h, 0.5, inplace=True)\nloss = h.mean()",
        "h = logits.softmax(1)\nh.detach().mul_(2)\nloss = h.mean()",
        "h = logits.pow(2)\nlogits += 1\nloss = h.mean()",
        "g = logits * logits\nlogits.zero_()\nloss = g.mean()",
        "h = logits * 1\nv = h.max()\nh.mul_(2)\nloss = v",
        "h = logits * 1\nv = torch.max(h, x[:, :3])\nh.mul_(2)\nloss = v.mean()",
        "h = logits * 1\nv = torch.max(x[:, :3], h)\nh.mul_(2)\nloss = v.mean()",
    ],
    "GL202": [
        "loss = logits.pow(2).mean()\nm.weight += 1",
        "loss = logits.pow(2).mean()\nm.weight[0] = 1",
    ],
    "GL203": [
        "h = nn.Linear(3, 3)\nloss = h(logits).mean()\nwith torch.no_grad():\n    h.weight.mul_(2)",
    ],
    "GL204": [
        "h = logits.softmax(1)\nh.data.mul_(2)\nloss = h.mean()",
        "h = nn.Linear(3, 3)\nloss = h(logits).mean()\nh.weight.data.mul_(2)",
    ],
    "GL302": [
        "with torch.inference_mode():\n    t = x * 2\nloss = (logits[:, 0] * t[:, 0]).mean()",
        "with torch.inference_mode():\n    t = x * 2\nt.add_(1)\nloss = logits.mean()",
    ],
    "GL507": [
        "loss = logits.pow(2).mean()\nloss.backward()",
    ],
}
PROGRAMS = [(code, body) for code, bodies in SHAPES.items() for body in bodies]


def ids(value: str) -> str:
    return value.replace("\n", "; ")


@pytest.fixture(autouse=True)
def train(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "train.py"
    path.write_text(BEFORE + request.node.callspec.params["body"] + AFTER, encoding="utf-8")
    return path


@pytest.mark.parametrize(("code", "body"), PROGRAMS, ids=ids)
def test_pytorch_raises_or_trains_nothing_exactly_where_a_rule_is_named(
    code: str, body: str, train: pathlib.Path
) -> None:
    record = observe(train.parent)
    if code == "right":
        assert record.fault() == ""
    elif code not in SILENT:
        assert record.exception or record.untrained == record.parameters
    else:
        assert record.exception == ""
        assert code == "GL204" or record.untrained == record.parameters


@pytest.mark.parametrize(("code", "body"), PROGRAMS, ids=ids)
def test_gradlint_reports_the_rule_that_explains_it_and_no_other(
    code: str, body: str, train: pathlib.Path
) -> None:
    found = analyze(
        [train], select=lambda chosen: chosen.startswith(("GL1", "GL2", "GL302", "GL507", "GL508"))
    ).findings
    loud = {finding.code for finding in found if finding.severity > Severity.NOTE}
    assert loud == ({code} - {"right"})
