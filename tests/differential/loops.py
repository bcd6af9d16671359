"""Programs that train a small network in a loop, made up from a seed: steps in any order, windows,
tails, scalers.
"""

from __future__ import annotations

import random
import re
import textwrap
from dataclasses import dataclass

HEADER = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


"""
LOADER = (
    "loader = DataLoader(TensorDataset(torch.randn({samples}, 6), torch.randn({samples}, 1)), "
    "batch_size=4)\n"
)
LIST = "loader = [(torch.randn(4, 6), torch.randn(4, 1)) for _ in range({count})]\n"
STREAM = (
    "def stream():\n    for _ in range({count}):\n        yield torch.randn(4, 6), "
    "torch.randn(4, 1)\n\n\n"
)
CLEARINGS = {
    "optimizer.zero_grad()\n": 6.0,
    "model.zero_grad()\n": 1.5,
    "optimizer.zero_grad(set_to_none=True)\n": 1.0,
    "for p in model.parameters():\n    p.grad = None\n": 1.0,
}
OPTIMIZERS = (
    "torch.optim.SGD(model.parameters(), lr=0.1)",
    "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)",
    "torch.optim.Adam(model.parameters())",
)
LOSSES = ("F.mse_loss(model(x), y)", "(model(x) - y).square().mean()", "criterion(model(x), y)")
DIVISIONS = (" / {n}\n", "\nloss = loss / {n}\n", "\nloss /= {n}\n")
LOGS = ("", "", "total += loss.item()\n", "history.append(loss.detach())\n", "print(float(loss))\n")


def generate(seed: int) -> str:
    """The program of a seed."""
    return _Generator(random.Random(seed)).program()


@dataclass
class _Data:
    """What makes the data, what the loop runs over, and whether that has a length."""

    before: str
    setup: str
    over: str
    has_length: bool


class _Generator:
    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.scaled = self.chance(0.2)
        self.scheduled = self.chance(0.3)
        self.window = choose.choice([2, 3, 4])
        self.name = "accumulate" if self.chance(0.4) else str(self.window)
        self.log = choose.choice(LOGS)

    def chance(self, probability: float) -> bool:
        return self.choose.random() < probability

    def program(self) -> str:
        data = self.data()
        loop = self.windows(data) if self.chance(0.55) else self.steps(data)
        if self.scheduled and self.chance(0.5):
            loop += "scheduler.step()\n"
        if self.chance(0.4):
            loop = "for epoch in range(2):\n" + _indented(loop)
        return HEADER + data.before + self.wrapped(self.setup(data), loop)

    def data(self) -> _Data:
        count = self.choose.choice([6, 7, 8])
        kind = self.choose.choice(["loader", "loader", "list", "range", "stream"])
        if kind == "stream":
            return _Data(STREAM.format(count=count), "", "stream()", False)
        if kind == "range":
            return _Data("", "", f"range({count})", False)
        setup = LOADER.format(samples=4 * count) if kind == "loader" else LIST.format(count=count)
        return _Data("", setup, "loader", True)

    def setup(self, data: _Data) -> str:
        lines = [data.setup, "model = Net()\n", "criterion = nn.MSELoss()\n"]
        lines.append(f"optimizer = {self.choose.choice(OPTIMIZERS)}\n")
        lines.append(
            "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)\n" if self.scheduled else ""
        )
        lines.append('scaler = torch.amp.GradScaler("cpu")\n' if self.scaled else "")
        lines.append(f"accumulate = {self.window}\n")
        return "".join([*lines, "history = []\n", "total = 0.0\n"])

    def wrapped(self, setup: str, loop: str) -> str:
        """A script, a function, or a class that keeps everything in attributes."""
        kind = self.choose.choice(["script", "function", "class"])
        if kind == "script":
            return f"{setup}\n{loop}"
        if kind == "function":
            return f"def main():\n{_indented(setup)}\n{_indented(loop)}\n\nmain()\n"
        names = [line.partition(" = ")[0] for line in setup.splitlines()]
        own = re.compile(rf"(?<![\w.])({'|'.join(names)})\b(?!=)")
        made, run = (_indented(own.sub(r"self.\1", text), 2) for text in (setup, loop))
        return (
            f"class Trainer:\n    def __init__(self):\n{made}\n    def fit(self):\n{run}\n\n"
            "Trainer().fit()\n"
        )

    # one round

    def clear(self) -> str:
        return self.choose.choices(list(CLEARINGS), list(CLEARINGS.values()))[0]

    def forward(self, divides: bool) -> str:
        division = self.choose.choice(DIVISIONS).format(n=self.name) if divides else "\n"
        return f"loss = {self.choose.choice(LOSSES)}{division}"

    @property
    def backward(self) -> str:
        return "scaler.scale(loss).backward()\n" if self.scaled else "loss.backward()\n"

    @property
    def step(self) -> str:
        return "scaler.step(optimizer)\nscaler.update()\n" if self.scaled else "optimizer.step()\n"

    def update(self) -> list[str]:
        """What uses the gradients."""
        clip = ["nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"] if self.chance(0.3) else []
        unscale = ["scaler.unscale_(optimizer)\n"] if self.scaled and clip else []
        return [*unscale, *clip, self.step]

    def disturbed(self, parts: list[str], probability: float) -> list[str]:
        """The parts with one of them left out, repeated, or put elsewhere."""
        parts = list(parts)
        if self.chance(probability):
            index, place = self.choose.randrange(len(parts)), self.choose.randrange(len(parts))
            part = parts.pop(index)
            kind = self.choose.choice(["without", "elsewhere", "twice"])
            if kind == "twice":
                parts.insert(index, part)
            if kind != "without":
                parts.insert(place, part)
        return parts

    def steps(self, data: _Data) -> str:
        """A step in each round."""
        forward, backward = self.forward(divides=False), self.backward
        parts = [backward, *([self.log] if self.log else []), *self.update()]
        parts = self.disturbed(
            [self.clear(), *parts] if self.chance(0.6) else [*parts, self.clear()], 0.6
        )
        place = min(
            (parts.index(part) for part in (backward, self.log) if part in parts), default=0
        )
        parts.insert(self.choose.randint(0, place), forward)
        return self.loop(data, self.choose.choice(["", "i"]), "".join(parts))

    def windows(self, data: _Data) -> str:
        """A step every so often."""
        start = self.choose.choice([0, 0, 1])
        counter = self.choose.choice(["i", "count"]) if start else "i"
        parts = self.disturbed([*self.update(), self.clear()], 0.3)
        body = ""
        if self.chance(0.3):
            clearing = self.clear()
            parts = [
                part for part in parts if "grad = None" not in part and "zero_grad" not in part
            ] or ["pass\n"]
            is_gated = self.chance(0.5)
            body += (
                f"if {counter} % {self.name} == {start}:\n{_indented(clearing)}"
                if is_gated
                else clearing
            )
        body += self.forward(divides=self.chance(0.75)) + self.backward + self.log
        body += f"if {self.gate(counter, start, data)}:\n" + _indented("".join(parts))
        loop = self.loop(data, counter, body, start)
        if self.chance(0.3):
            rest = 0 if start else f"{self.name} - 1"
            loop += f"if {counter} % {self.name} != {rest}:\n" + _indented(self.step + self.clear())
        return loop

    def gate(self, counter: str, start: int, data: _Data) -> str:
        """The condition of a step: right, or one off."""
        right, wrong = f"({counter} + 1) % {self.name} == 0", f"{counter} % {self.name} == 0"
        if start:
            right, wrong = wrong, right
        condition = self.choose.choice([right, right, right, wrong])
        if data.has_length and self.chance(0.4):
            condition += f" or {counter}{'' if start else ' + 1'} == len(loader)"
        return condition

    def loop(self, data: _Data, counter: str, body: str, start: int = 0) -> str:
        target = "_" if data.over.startswith("range") else "(x, y)"
        if target == "_":
            body = "x, y = torch.randn(4, 6), torch.randn(4, 1)\n" + body
        if counter == "count":
            return f"count = 0\nfor {target} in {data.over}:\n" + _indented("count += 1\n" + body)
        if not counter:
            return f"for {target} in {data.over}:\n" + _indented(body)
        return f"for i, {target} in enumerate({data.over}, start={start}):\n" + _indented(body)


def _indented(text: str, levels: int = 1) -> str:
    return textwrap.indent(text, "    " * levels)
