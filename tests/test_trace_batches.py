"""Batches of a loop that stands in a library's file: a traced run knows its rounds by what a
DataLoader gives.
"""

from __future__ import annotations

import pathlib
import textwrap

import pytest
from traced import Traced, plain, trace

FRAMEWORK = """
class Trainer:
    def __init__(self, step, validate=None, finish=None):
        self.step, self.validate, self.finish = step, validate, finish

    def fit(self, *loaders, held_out=()):
        for _ in range(2):
            self._epoch([iter(each) for each in loaders], held_out)
            if self.finish:
                self.finish()

    def _epoch(self, iterators, held_out):
        number = 0
        while batches := self._batches(iterators):
            self.step(*batches, number)
            number += 1
            if number == 2 and self.validate:
                self._evaluate(held_out)

    def _batches(self, iterators):
        try:
            return [self._fetched(each) for each in iterators]
        except StopIteration:
            return None

    def _fetched(self, iterator):
        return next(iterator)

    def _evaluate(self, held_out):
        for batch in held_out:
            self.validate(batch)
"""
HEAD = """
import sys
sys.path.insert(0, "site-packages")
import torch
from torch.utils.data import DataLoader
from framework import Trainer
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def data(batches):
    return DataLoader(torch.randn(2 * batches, 2), batch_size=2)
"""
WINDOWS = """
def one(x, number):
    loss = model(x).square().mean() / 4
    loss.backward()
    if (number + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()

def two(x, y, number):
    one(x + y, number)

def judge(x):
    with torch.no_grad():
        model(x)
"""
GATE = "if (number + 1) % 4 == 0:"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "framework.py").write_text(FRAMEWORK)
    return tmp_path


def traced(folder: pathlib.Path, body: str) -> tuple[list[str], Traced]:
    """The lines of a program, and its traced run, which computes what it does alone."""
    text = HEAD + textwrap.dedent(body)
    (folder / "train.py").write_text(text)
    watched = trace(folder, "--output-format", "json", "train.py")
    assert watched.digest == plain(folder, "train.py").digest
    return text.splitlines(), watched


def line(lines: list[str], text: str) -> int:
    return next(number for number, each in enumerate(lines, 1) if each.strip() == text)


CALLS = [
    "Trainer(one).fit(data(COUNT))",
    "Trainer(two).fit(data(COUNT), data(COUNT + 1))",
    "Trainer(one, judge).fit(data(COUNT), held_out=data(3))",
    "if number := 1:\n    Trainer(one).fit(data(COUNT))",
]


@pytest.mark.parametrize("call", CALLS)
def test_a_window_that_the_last_batches_do_not_fill_is_seen(
    folder: pathlib.Path, call: str
) -> None:
    lines, watched = traced(folder, WINDOWS + call.replace("COUNT", "10"))
    assert watched.codes == [("GL504", line(lines, GATE))]


@pytest.mark.parametrize("call", CALLS)
def test_windows_that_fill_the_epoch_are_right(folder: pathlib.Path, call: str) -> None:
    assert traced(folder, WINDOWS + call.replace("COUNT", "8"))[1].codes == []


def test_a_program_that_never_steps_is_told_although_it_moves_its_gradients(
    folder: pathlib.Path,
) -> None:
    lines, watched = traced(
        folder,
        """
        def step(x, number):
            optimizer.zero_grad()
            model(x).square().mean().backward()

        Trainer(step).fit(data(4))
        model.to("cpu")
        """,
    )
    assert watched.codes == [("GL511", line(lines, "model(x).square().mean().backward()"))]


def test_the_closure_of_a_step_is_the_programs_and_the_rest_the_optimizers(
    folder: pathlib.Path,
) -> None:
    lines, watched = traced(
        folder,
        """
        def step(x, number):
            def closure():
                loss = model(x).square().mean()
                loss.backward()
                return loss
            optimizer.step(closure)

        Trainer(step).fit(data(4))
        """,
    )
    assert watched.codes == [("GL501", line(lines, "loss.backward()"))]


LOADED = """
class Readings(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return [0.137 * index, 0.291 * index], 0.313 * index

def train():
    READ
    for features, target in LOADER:
        out = model(torch.stack(features, 1).float()).squeeze(1)
        loss = (out - target).square().mean() + 0.1 * (target - 1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        SHOWN

train()
"""
BAR = """
class Bar:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def set_description(self, text):
        self.text = text
"""
SHOWING = [
    ("total = 0", "DataLoader(Readings(), 4)", "total += loss.item()"),
    ("bar = Bar(DataLoader(Readings(), 4))", "bar", 'bar.set_description(f"{loss.item():.3f}")'),
    (
        "self = type(sys)('trainer'); self.bar = Bar(DataLoader(Readings(), 4))",
        "self.bar",
        "self.bar.set_description(loss.item())",
    ),
]


@pytest.mark.parametrize(("read", "loader", "shown"), SHOWING, ids=["total", "bar", "attribute"])
def test_the_numbers_of_a_loader_do_not_come_from_the_losses_that_are_shown(
    folder: pathlib.Path, read: str, loader: str, shown: str
) -> None:
    (folder / "site-packages" / "bars.py").write_text(BAR)
    body = LOADED.replace("READ\n", f"{read}\n").replace("LOADER", loader).replace("SHOWN", shown)
    assert traced(folder, "from bars import Bar\n" + body)[1].codes == []


RESTORED = """
import torch

class Evaluating:
    def __init__(self, model):
        self.modes = {part: part.training for part in model.modules()}
        self.model = model

    def __enter__(self):
        self.model.eval()

    def __exit__(self, *_):
        for part, mode in list(self.modes.items())[FIRST:]:
            part.training = mode
"""
EVALUATED = """
from restoring import Evaluating
net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(), torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
FROZEN
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    for x in data(2):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with Evaluating(net), torch.no_grad():
            net(x)
"""


@pytest.mark.parametrize("frozen", ["", "net[3].eval()"])
def test_modes_that_a_library_puts_back_part_by_part_are_back(
    folder: pathlib.Path, frozen: str
) -> None:
    (folder / "site-packages" / "restoring.py").write_text(RESTORED.replace("FIRST", "0"))
    assert traced(folder, EVALUATED.replace("FROZEN", frozen))[1].codes == []


def test_modes_that_a_library_puts_back_in_part_are_not(folder: pathlib.Path) -> None:
    (folder / "site-packages" / "restoring.py").write_text(RESTORED.replace("FIRST", "3"))
    _, watched = traced(folder, EVALUATED.replace("FROZEN", ""))
    assert [code for code, _ in watched.codes] == ["GL304"]


def test_a_hook_for_the_end_of_an_epoch_uses_what_is_left(folder: pathlib.Path) -> None:
    body = """
    def finish():
        optimizer.step()
        optimizer.zero_grad()

    Trainer(one, finish=finish).fit(data(10))
    """
    _, watched = traced(folder, WINDOWS + textwrap.dedent(body))
    assert watched.codes == []


LIBRARY = """
class Loop:
    def __init__(self, forward):
        self.forward = forward

    def fit(self, data):
        for x in data:
            loss = self.forward(x) / 2
            loss.backward()
"""


def test_the_loss_of_a_librarys_loop_goes_by_what_the_program_gave_it(
    folder: pathlib.Path,
) -> None:
    (folder / "site-packages" / "looping.py").write_text(LIBRARY)
    body = """
        from looping import Loop

        def forward(x):
            out = model(x).detach()
            return out.square().mean()

        Loop(forward).fit(data(3))
    """
    (folder / "train.py").write_text(HEAD + textwrap.dedent(body))
    (found,) = trace(folder, "--output-format", "json", "train.py").report["findings"]
    assert "flows into `out.square().mean()` out of the graph" in found["message"]
