"""A training is judged behind code that is out of view, or takes too long to be run."""

from __future__ import annotations

import json
import pathlib

import pytest
from commandline import Run

import gradlint

TRAINING = """\
import hydra
import torch
import unseen
from torch import nn
from torch.nn import functional as F


def triangles(names):
    found = []
    for a in names:
        for b in names:
            for c in names:
                if a < b < c:
                    found.append([float(len(a)), float(len(b)), float(len(c)), 1.0])
    return found


def main(config):
    net = nn.Linear(4, 4)
    {before}
    for _ in range(8):
        x = torch.randn(2, 4)
        {clear}
        loss = {loss}
        loss.backward()
        optimizer.step()
"""
LONG = f"rows = torch.tensor(triangles({[f'n{number:02}' for number in range(24)]}))\n    "
BEFORE = {
    "behind a call of too many steps": (
        LONG + "optimizer = torch.optim.SGD(net.parameters())",
        "F.mse_loss(net(x), x)",
    ),
    "a method of a model out of view": (
        "model = unseen.build(config)\n    optimizer = torch.optim.SGD(model.parameters())",
        "model.compute_loss(x)",
    ),
    "a configuration that is not known": (
        "optimizer = hydra.utils.instantiate(config.optimizer, params=net.parameters())",
        "F.mse_loss(net(x), x)",
    ),
    "a configuration that is written down": (
        'optimizer = hydra.utils.instantiate({"_target_": "torch.optim.AdamW", "lr": 0.1}, '
        "net.parameters())",
        "F.mse_loss(net(x), x)",
    ),
}


@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize("shape", BEFORE)
def test_a_missing_zero_grad_is_seen(shape: str, clears: bool, tmp_path: pathlib.Path) -> None:
    before, loss = BEFORE[shape]
    clear = "optimizer.zero_grad()" if clears else "pass"
    script = tmp_path / "train.py"
    script.write_text(TRAINING.format(before=before, loss=loss, clear=clear))
    found = [finding.code for finding in gradlint.check([script])]
    assert found == ([] if clears else ["GL501"])


KEYWORDS = """\
import torch


def train(model, criterion, loader, optimizer, **options):
    scaler = options.get("scaler")
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        if scaler is None:
            loss.backward()
            optimizer.step()
            continue
        scaler.scale(loss).backward()
        {}
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize("unscales", [True, False])
def test_further_keywords_of_what_is_entered_are_open(
    unscales: bool, tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "engine.py"
    script.write_text(KEYWORDS.format("scaler.unscale_(optimizer)" if unscales else "pass"))
    assert [finding.code for finding in gradlint.check([script])] == ([] if unscales else ["GL403"])


OPEN_METHODS = """\
import torch
import unseen


class Base:
    def __init__(self, rate):
        self.net = unseen.build()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=rate)

    def loader(self):
        "Gives the batches."
        raise NotImplementedError("the loader of this base class")

    def train(self):
        for x, y in self.loader():
            {}
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            loss.backward()
            self.optimizer.step()
"""
REFUSED = """\
import os
import sys

import torch


def rows(folder):
    images, masks = os.listdir(folder), os.listdir(folder + "/masks")
    for path in images:
        if not os.path.exists(path):
            raise ValueError(f"no mask for {{path}}")
    if len(images) != len(masks) or not images:
        raise ValueError("images without masks")
    return torch.rand(len(images), 4)


net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in rows(sys.argv[1]).split(8):
    {}
    net(x).mean().backward()
    optimizer.step()
"""
PASSED_ON = """\
import torch


class Model(torch.nn.Module):
    def forward(self):
        raise NotImplementedError


def step(net, optimizer):
    {}
    net().backward()
    optimizer.step()


def fit(net, optimizer, rounds):
    for _ in range(rounds):
        step(net, optimizer)


class Fitted(Model):
    def fit(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        fit(self, optimizer, 10)
"""


@pytest.mark.parametrize("clears", [True, False])
@pytest.mark.parametrize(
    ("program", "clear"),
    [
        (OPEN_METHODS, "self.optimizer.zero_grad()"),
        (REFUSED, "optimizer.zero_grad()"),
        (PASSED_ON, "net.zero_grad()"),
    ],
    ids=[
        "a method for subclasses",
        "files that are not there",
        "a step whose callers end before it",
    ],
)
def test_an_exception_ends_no_analysis(
    program: str, clear: str, clears: bool, tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(program.format(clear if clears else "pass"))
    assert [finding.code for finding in gradlint.check([script])] == ([] if clears else ["GL501"])


METERS = """\
import torch
import unseen


class Distance:
    def __init__(self):
        self.loss = 0.0

    def add(self, a, b):
        self.loss += ((a - b) ** 2).mean()


net = unseen.Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 2, 3):
    distance = Distance()
    net(x, {})
    optimizer.zero_grad()
    distance.loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "handed", ["distance", "hooks=[distance]", "options={'loss': distance}", "x"]
)
def test_what_code_out_of_view_is_handed_may_be_changed_there(
    handed: str, tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(METERS.format(handed))
    assert [finding.code for finding in gradlint.check([script])] == (
        ["GL101"] if handed == "x" else []
    )


def test_a_sum_of_what_is_added_with_a_factor_is_a_tensor(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n\n\ndef step(x, optimizer):\n    loss = 0 + x.add(x, alpha=0.1)\n"
        "    loss.detach().backward()\n    optimizer.step()\n"
    )
    assert [finding.code for finding in gradlint.check([script])] == ["GL102"]


WARMED_UP = """\
import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--warm-up", type=int, default=2)
args = parser.parse_args()
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(8):
    if step < args.warm_up:
        action = 1
    else:
        action = 2
    {work}
    if step > args.warm_up:
        x = torch.randn(2, 4)
        {clear}
        F.mse_loss(net(x), x).backward()
        optimizer.step()
"""


@pytest.mark.parametrize("clears", [True, False])
def test_answers_that_keep_a_path_from_training_are_turned_round_first(
    clears: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    work = "\n    ".join(
        f"seen = [{number}, action * {number}, (step, action)]" for number in range(150)
    )
    path.write_text(
        WARMED_UP.format(work=work, clear="optimizer.zero_grad()" if clears else "pass")
    )
    assert [finding.code for finding in gradlint.check([path])] == ([] if clears else ["GL501"])


SETTINGS = """\
import torch
from torch import nn


class Trainer:
    def __init__(self, net: nn.Module, settings=None):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for name, default in {{"clears": False, "every": 4}}.items():
            if settings is not None and name in settings:
                setattr(self, name, settings[name])
            else:
                setattr(self, name, default)
        self.step = 0

    def fit_batch(self, batch):
        self.step += 1
        if self.clears:
            {clear}
        (self.net(batch).mean() / self.every).backward()
        if self.step % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def fit(self, loader):
        for batch in loader:
            self.fit_batch(batch)
"""


@pytest.mark.parametrize("clears", [True, False])
def test_defaults_of_what_a_method_is_entered_with_decide_nothing(
    clears: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(SETTINGS.format(clear="self.optimizer.zero_grad()" if clears else "pass"))
    found = {finding.code for finding in gradlint.check([path])}
    assert ("GL505" in found) is clears


OPTIONS = """\
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--inference-only", action="store_true")
parser.add_argument("--resume")
args = parser.parse_args()
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters())
if args.resume is not None:
    net.load_state_dict(torch.load(args.resume))
    raise SystemExit
names = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
if args.inference_only:
    net.eval()
    for first in names:
        for second in names:
            for third in names:
                print(net(torch.ones(len(first), 4)).sum() + len(second) + len(third))
for _ in range(8):
    if args.inference_only:
        break
    net(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
LEARNER = """\
import torch
from torch import nn


class Curiosity(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.net = nn.Linear(size, size)

    def forward(self, x):
        return self.net(x)


class Learner:
    def __init__(self, net, curiosity=None, device="cpu"):
        self.net = net
        self.curiosity = Curiosity(**curiosity) if curiosity else None
        self.scaler = torch.amp.GradScaler() if device == "cuda" else None
        self.optimizer = torch.optim.SGD(net.parameters())

    def update(self, batches):
        for x in batches:
            self.optimizer.zero_grad()
            loss = self.net(x).mean()
            if self.scaler is not None:
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                loss.backward()
                self.optimizer.step()
            if self.curiosity:
                self.curiosity(x).mean().backward()
"""
FILLED = """\
import torch


def batches(rows, size, collate, epochs, most):
    epoch, seen, done = 0, 0, False
    while True:
        if epochs is not None and epoch >= epochs:
            break
        batch = []
        for pairs in rows:
            if done:
                break
            for pair in pairs:
                if done:
                    break
                batch.append(pair)
                seen += 1
                if len(batch) == size:
                    yield collate(batch)
                    if most is not None and seen >= most:
                        done = True
                    batch = []
        if done:
            break
        epoch += 1


def train(net, rows, config, optimizer, collate):
    for x in batches(rows, config.size, collate, config.epochs, config.most):
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
"""
SHORT = """\
import torch
from torch import nn


def distance(one, other):
    total = 0
    for a, b in zip(one, other):
        total += abs(ord(a) - ord(b)) * 2 + 1
    return total


net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters())
rows = []
names = [f"name {number}" for number in range(12)]
for first in names:
    for second in names:
        for third in names:
            rows.append([distance(first, second), distance(second, third), 0, 0])
for x in torch.tensor(rows, dtype=torch.float32).split(8):
    net(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
EXITS = (
    "import sys\nimport torch\n\n\ndef train(net, config, optimizer, batches):\n"
    + "".join(
        f"    if config.is_wrong_{n}:\n        print('wrong')\n        sys.exit(1)\n"
        for n in range(45)
    )
    + """\
    for x in batches:
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()
"""
)
CONFIGURED = """\
import torch
from torch import nn

profile = False
exec(open("configurator.py").read())
net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters())
for _ in range(8):
    optimizer.zero_grad()
    if profile:
        net(torch.randn(2, 4)).mean().backward()
    else:
        net(torch.randn(2, 4)).sum().backward()
    optimizer.step()
"""
SKIPPED = """\
import torch


def train(net, loader, optimizer, config):
    seen = []
    for i, x in enumerate(loader):
        seen.append(x)
        if (i + 1) % config.window > 0:
            continue
        optimizer.zero_grad()
        for each in seen:
            (net(each).mean() / config.window).backward()
        optimizer.step()
        seen = []
"""
FOLLOWED = {
    "flags that exec can change": CONFIGURED, "a counter that skips rounds": SKIPPED,
    "options of a command line": OPTIONS, "settings that nobody gives": LEARNER,
    "a list that has to fill": FILLED,
    "many short calls": SHORT, "sides that end the program": EXITS,
}  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWED)
def test_every_step_is_come_to(
    name: str, tmp_path: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(FOLLOWED[name])
    monkeypatch.chdir(tmp_path)
    said = run("check", "--no-cache", "--select", "GL1,GL5", "--coverage", "seen.json").out
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen["backwards"]["missed"] == []
    assert (
        seen["steps"]["behind_a_loss"] == seen["losses"]["reached"] == seen["backwards"]["written"]
    ), said


@pytest.mark.parametrize(
    ("made", "codes"), [("model.angle(x)", []), ("x.round(decimals=1)", ["GL108"])]
)
def test_a_method_of_something_unknown_that_is_given_a_tensor_rounds_nothing(
    made: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        f"import torch\n\n\ndef step(model, x, optimizer):\n    loss = {made}.square().mean()\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    )
    assert [finding.code for finding in gradlint.check([script], select=["GL108"])] == codes


HANDED = """\
import sys
from typing import Tuple

import unseen
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


class Trainer(unseen.Base):
    def __init__(self, model, mode=None, pair: Tuple[Optimizer, LambdaLR] = (None, None)):
        self.model = model
        if mode == "distributed" and unseen.ranks() == 1:
            print("nothing to distribute to")
            sys.exit(1)
        self.adviser, self.plan = pair

    def criterion(self, batch):
        raise NotImplementedError

    def fit(self, loader):
        if not len(loader):
            sys.exit("no batches")
        for batch in loader:
            {first}
            self.adviser.zero_grad()
            self.criterion(self.model(batch)).backward()
            self.adviser.step()
            {last}
"""


@pytest.mark.parametrize("comes_first", [True, False])
def test_what_a_tuple_is_annotated_with_is_handed_in(
    comes_first: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    step, nothing = "self.plan.step()", "pass"
    path.write_text(
        HANDED.format(first=step if comes_first else nothing, last=nothing if comes_first else step)
    )
    assert [finding.code for finding in gradlint.check([path])] == (
        ["GL510"] if comes_first else []
    )


YIELDING = """\
from contextlib import contextmanager

import torch


class Plugin:
    @contextmanager
    def step_context(self):
        {body}
"""


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ('yield torch.autocast("cpu")', ["GL303"]),
        ('with torch.autocast("cpu"):\n            yield', []),
    ],
)
def test_a_context_that_a_method_yields_and_nobody_names(
    body: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "plugin.py"
    path.write_text(YIELDING.format(body=body))
    assert [finding.code for finding in gradlint.check([path])] == codes


PHASES = "import enum\n\n\nclass Phase(enum.Enum):\n    TRAIN = 0\n    VALID = 1\n"
BY_PHASE = """\
import torch
from torch import nn
from phases import *


def train(settings):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def loop(phase):
        for x in torch.randn(4, 2, 3):
            loss = net(x).square().mean()
            if phase == Phase.TRAIN:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    loop(Phase.TRAIN)
    with torch.no_grad():
        loop(Phase.VALID)


print(Phase.TRAIN)
"""


def test_what_a_star_imports_is_known_to_functions_of_a_script_that_was_run(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "phases.py").write_text(PHASES)
    script = tmp_path / "train.py"
    script.write_text(BY_PHASE)
    assert gradlint.check(script, select=["GL103"]) == []
