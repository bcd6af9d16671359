"""A function that calls itself for the parts of something unknown leaves the training its steps."""

from __future__ import annotations

import pathlib

import pytest

import gradlint
from gradlint.analyzer import tapes_of
from gradlint.tape import OptimizerStep

TRAINING = """\
import torch


def apply(move, batch):
    if len(batch) == 0:
        return {{}}

    def piece(x):
{piece}
    return piece(batch)


def to_device(batch):
    return apply(lambda tensor: tensor.cuda(), batch)


def run(model, batches, optimizer, scaler=None, window=1):
    for i in range(len(batches)):
        batch = to_device(next(batches))
        loss = model(batch)["loss"]
        if scaler is not None:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if (i + 1) % window == 0:
            if scaler is not None:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
                optimizer.zero_grad()
"""
PIECES = {
    "returned at once": """\
        if torch.is_tensor(x):
            return move(x)
        elif isinstance(x, dict):
            return {key: piece(value) for key, value in x.items()}
        elif isinstance(x, list):
            return [piece(each) for each in x]
        else:
            return x
""",
    "returned at the end": """\
        if isinstance(x, (list, tuple)):
            moved = [piece(each) for each in x]
        elif isinstance(x, dict):
            moved = {key: piece(value) for key, value in x.items()}
        else:
            moved = move(x)
        return moved
""",
}


@pytest.mark.parametrize("way", PIECES)
def test_a_batch_that_is_moved_piece_by_piece(way: str, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINING.format(piece=PIECES[way]))
    scaled = script.read_text().split("scaler.scale")[0].count("\n") + 1
    found = gradlint.check([script], select=["GL501"])
    assert [(finding.code, finding.at.line) for finding in found] == [("GL501", scaled)]


STEPPER = """\
import torch


class Stepper:
    def __init__(self, model, ready):
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.ready = ready

    def step(self):
        if self.ready():
            self.optimizer.step()


def train(model, batches, ready):
    stepper = Stepper(model, ready)
    for batch in batches:
        model(batch).mean().backward()
        stepper.step()
"""


def test_a_method_of_the_same_name_is_no_recursion(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(STEPPER)
    first = next(iter(tapes_of(script)))
    assert list(first.of(OptimizerStep))
