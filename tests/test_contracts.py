"""Losses with no trainer in view: what their contract assumes, what is told of them, and what is left alone."""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"

TOLD = {
    "def my_loss(pred, target):\n    return F.mse_loss(pred.detach(), target)\n": ("GL102", "error"),
    "def my_loss(pred, target):\n    return F.mse_loss(pred.argmax(1).float(), target)\n": ("GL104", "error"),
    "def my_loss(pred, target):\n    with torch.no_grad():\n        e = pred.exp()\n    return (e - target).mean()\n": (
        "GL103",
        "error",
    ),
    "class MyLoss(nn.Module):\n    def forward(self, pred, labels):\n        kept = labels >= 0\n"
    "        if kept.sum() == 0:\n            return torch.tensor(0.0)\n"
    "        return F.cross_entropy(pred[kept], labels[kept])\n": ("GL101", "warning"),
    "def my_loss(pred, target, weight=0.0):\n    if weight == 0:\n        return torch.zeros(())\n"
    "    return weight * F.mse_loss(pred, target)\n": ("GL101", "note"),
    "def my_loss(pred, target):\n    a, b = pred[:, 0], pred[:, 1]\n"
    "    return (a / b.detach() - target).pow(2).mean()\n": ("GL109", "note"),
    "def error_loss(pred, target):\n    return (pred.argmax(1) != target).float().mean()\n": ("GL104", "note"),
}

LEFT_ALONE = """\
def focal_loss(logits, target):
    ce = F.cross_entropy(logits, target, reduction="none")
    return ((1 - torch.exp(-ce)).detach() ** 2 * ce).mean()

def distillation_loss(student, teacher):
    return F.kl_div(F.log_softmax(student, -1), F.softmax(teacher.detach(), -1))

@torch.no_grad()
def held_out_loss(pred, target):
    return F.mse_loss(pred, target)

def measured_loss(pred, target):
    return F.mse_loss(pred, target).item()

def plain_loss(pred, target):
    return torch.zeros(())

def validation_loss(pred, target):
    return F.mse_loss(pred.detach(), target)

def several_loss(outputs, targets):
    ce = F.cross_entropy(outputs["logits"], targets)
    return {"ce": ce, "error": (outputs["logits"].argmax(-1) != targets).float().mean()}
"""


def told(tmp_path: pathlib.Path, program: str) -> list[tuple[str, str, str]]:
    path = tmp_path / "losses.py"
    path.write_text(HEAD + program, encoding="utf-8")
    found = analyze([path], select=lambda code: code != "GL205")
    assert not found.gaps
    return [(each.code, each.severity.label, each.message) for each in found.findings]


@pytest.mark.parametrize("program", TOLD)
def test_a_loss_is_told_of_as_if_its_result_were_back_propagated(program: str, tmp_path: pathlib.Path) -> None:
    ((code, severity, message),) = told(tmp_path, program)
    assert (code, severity) == TOLD[program]
    assert "the result of `" in message


@pytest.mark.parametrize("program", LEFT_ALONE.split("\n\n"))
def test_what_is_meant_or_only_measured_is_left_alone(program: str, tmp_path: pathlib.Path) -> None:
    assert told(tmp_path, program) == []


def test_uses_with_grad_mode_off_are_measurements(tmp_path: pathlib.Path) -> None:
    program = "def seen_loss(pred, target):\n    return F.mse_loss(pred.detach(), target)\n\n"
    program += "def shown(model, x, y):\n    with torch.no_grad():\n        return seen_loss(model(x), y)\n"
    assert told(tmp_path, program) == []


def test_a_program_in_view_judges_the_loss_that_it_runs(tmp_path: pathlib.Path) -> None:
    run = "def my_loss(pred, target):\n    return F.mse_loss(pred, target.detach())\n\n"
    run += "def train(model, x, y, o):\n    o.zero_grad()\n    my_loss(model(x), y).backward()\n    o.step()\n"
    assert told(tmp_path, run) == []
