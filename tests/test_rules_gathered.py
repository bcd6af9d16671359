"""What is made of tensors that were gathered from all ranks: GL903 where the own shard is not put
back.
"""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

PROGRAM = """\
import torch
import torch.distributed as dist

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(x, rank):
    own = model(x)
    gathered = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, own)
    every = {}
    loss = (every @ own.T).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("joined", "is_told"),
    [
        ("torch.cat(gathered)", True),
        ("torch.stack(gathered).flatten(0, 1)", True),
        ("torch.cat(gathered[1:])", True),
        ("torch.cat([own.detach(), *gathered])", True),
        ("torch.cat([own, *gathered])", False),
        ("torch.cat([torch.stack(gathered).flatten(0, 1), own])", False),
        ("torch.cat([torch.cat(gathered[:rank]), own, torch.cat(gathered[rank + 1 :])])", False),
    ],
)
def test_shards_without_the_own_one_give_no_gradient(
    joined: str, is_told: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.format(joined), encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL903").findings
    assert [finding.at.line for finding in found] == [11] * is_told


WRAPPED = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    loss = model.module(x).pow(2).mean()
    shown = loss.detach()
    optimizer.zero_grad()
    loss.backward()
    {}
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("reduced", "is_told"),
    [
        ("pass", True),
        ("dist.all_reduce(shown)", True),
        ("dist.all_reduce(torch.zeros(1))", True),
        ("dist.barrier()", True),
        ("dist.all_reduce(next(model.parameters()).detach())", True),
        ("for p in model.parameters():\n        dist.all_reduce(p.grad)", False),
        ("dist.all_reduce(torch.cat([p.grad.flatten() for p in model.parameters()]))", False),
    ],
)
def test_gradients_of_a_wrapped_model_are_reduced_where_they_are_handed_round(
    reduced: str, is_told: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(WRAPPED.format(reduced), encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL901").findings
    assert [finding.at.line for finding in found] == [9] * is_told


BEFORE = WRAPPED.replace(
    "DistributedDataParallel(torch.nn.Linear(4, 4))", "torch.nn.Linear(4, 4)"
).replace("    loss = model.module(x).pow(2).mean()\n    shown = loss.detach()\n", "    {}\n")


@pytest.mark.parametrize(
    ("forward", "is_told"),
    [
        ("out = model(x); wrapper = DistributedDataParallel(model); loss = out.mean()", False),
        ("wrapper = DistributedDataParallel(model); out = model(x); loss = out.mean()", True),
        ("wrapper = DistributedDataParallel(model); loss = wrapper(x).mean()", False),
    ],
)
def test_a_model_is_called_around_a_wrapper_that_is_there_by_then(
    forward: str, is_told: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(BEFORE.format(forward, "pass"), encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL901").findings
    assert [finding.at.line for finding in found] == [9] * is_told


UNSYNCHRONISED = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model, other = DistributedDataParallel(torch.nn.Linear(4, 1)), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
others = torch.optim.SGD(other.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    with model.no_sync():
        model(x).square().mean().backward()
    {}
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("between", "is_told"),
    [
        ("pass", True),
        ("others.zero_grad()", True),
        ("other.zero_grad()", True),
        ("optimizer.zero_grad()", False),
        ("model.zero_grad()", False),
    ],
)
def test_what_was_gathered_for_a_step_is_cleared_by_what_holds_its_parameters(
    between: str, is_told: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(UNSYNCHRONISED.format(between), encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL904").findings
    assert [finding.at.line for finding in found] == [10] * is_told
