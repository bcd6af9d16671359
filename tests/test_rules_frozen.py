"""Layers that are frozen in vain: GL516 tells of what torch trains all the same, not of what is new
or stays frozen.
"""

from __future__ import annotations

import pathlib
from typing import Any

from gradlint.analysis import analyze

PROGRAM = """\
import torch
from torch import nn

def {}():
    m, n = nn.Linear(3, 1), nn.Linear(3, 1)
    {}
    o = torch.optim.SGD([*m.parameters(), *n.parameters()], lr=0.1)
    for x in torch.ones(2, 4, 3):
        o.zero_grad()
        (m(x) + n(x)).mean().backward()
        o.step()
    return m

"""
IN_VAIN = """\
m.requires_grad_(False); m.weight = nn.Parameter(m.weight)
m.requires_grad_(False); m.bias = nn.Parameter(m.bias)
m.weight.requires_grad = False; m.weight = nn.Parameter(m.weight)
m.requires_grad_(False); w = nn.Parameter(m.weight); m.weight = w
m.requires_grad_(False); w = m.weight; m.weight = nn.Parameter(w)
m.requires_grad_(False); m.weight = nn.Parameter(m.weight.clone())
m.requires_grad_(False); m.weight = nn.Parameter(m.weight.detach())
m.requires_grad = False
m.require_grad = False
m.weight.require_grad = False
m.weight.requires_grads = False
m.weight.trainable = False
for p in m.parameters(): p.required_grad = False
""".splitlines()
NEW = """\
m.weight = nn.Parameter(m.weight)
m.requires_grad_(False); m.weight = nn.Parameter(torch.zeros(1, 3))
m.requires_grad_(False); m.weight = nn.Parameter(n.weight)
m.weight.requires_grad_(False); m.bias = nn.Parameter(m.bias)
m.requires_grad_(False); m.requires_grad_(); m.weight = nn.Parameter(m.weight)
m.eval()
""".splitlines()
FROZEN = """\
m.requires_grad_(False); m.weight = nn.Parameter(m.weight, requires_grad=False)
m.requires_grad_(False); m.weight = nn.Parameter(m.weight, False)
m.requires_grad_(False); n.weight = nn.Parameter(m.weight)
m.requires_grad_(False); m.weight = nn.Parameter(m.weight); m.weight.requires_grad_(False)
for p in m.parameters(): p.requires_grad = False
""".splitlines()


def trains(freezing: str) -> bool:
    """Whether torch trains a parameter of the layer behind this."""
    names: dict[str, Any] = {}
    exec(PROGRAM.format("run", freezing), names)
    return any(parameter.grad is not None for parameter in names["run"]().parameters())


def test_a_layer_that_is_frozen_in_vain_is_told(tmp_path: pathlib.Path) -> None:
    cases = [*IN_VAIN, *NEW, *FROZEN]
    path = tmp_path / "train.py"
    path.write_text(
        "".join(PROGRAM.format(f"run_{n}", case) for n, case in enumerate(cases)), encoding="utf-8"
    )
    found = analyze([path], select=lambda code: code == "GL516").findings
    assert [cases[each.at.line // PROGRAM.count("\n")] for each in found] == IN_VAIN
    assert [case for case in cases if trains(case)] == [*IN_VAIN, *NEW]
