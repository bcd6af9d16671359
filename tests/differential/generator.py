"""Programs that train tiny models, made up from a seed: branches on flags, helpers, modes, cuts,
writes in place.
"""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from differential.phrases import (
    ALIASES,
    BINARY,
    CONSTANTS,
    CONTAINERS,
    CUTS,
    FLAT,
    IN_PLACE,
    LAYERS,
    PARAMETER_ALIASES,
    PARAMETER_WRITES,
    SCALAR_CUTS,
    SCALARS,
    UNARY,
    WITHOUT_GRAD,
)

MODES = {
    "torch.no_grad()": 6.0,
    "torch.inference_mode()": 4.0,
    "torch.enable_grad()": 2.0,
    "torch.set_grad_enabled(False)": 1.0,
}
HEADER = """\
import argparse
import contextlib
import dataclasses
import functools

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor = None

    def both(self):
        return self.left + self.right


@contextlib.contextmanager
def frozen():
    with torch.no_grad():
        yield


"""


@dataclass(frozen=True)
class Program:
    """A program, the names of its flags, and how it is given them: "arguments", "options" or
    "script".
    """

    text: str
    flags: tuple[str, ...]
    style: str

    def settings(self) -> Iterator[dict[str, bool]]:
        for values in itertools.product([False, True], repeat=len(self.flags)):
            yield dict(zip(self.flags, values, strict=True))


@dataclass
class Scope:
    """What can be named at one place of a program."""

    matrices: list[str]
    flags: list[str] = field(default_factory=list)
    model: str = ""
    helpers: list[str] = field(default_factory=list)  # of a matrix
    scalars: list[str] = field(default_factory=list)  # expressions


def generate(seed: int) -> Program:
    """The program of a seed; every second one modifies tensors in place."""
    return _Generator(random.Random(seed), in_place=seed % 2 == 1).program()


class _Generator:
    def __init__(self, choose: random.Random, *, in_place: bool) -> None:
        self.choose = choose
        self.in_place = in_place
        self.lines: list[str] = []
        self.level = 0
        self.count = 0
        self.cuts = choose.choice([0.0, 0.0, 0.05] if in_place else [0.0, 0.02, 0.05, 0.12])
        self.scope = Scope([])
        self.helpers: list[str] = []
        self.has_frozen = False

    # writing

    def emit(self, *lines: str) -> None:
        self.lines += ["    " * self.level + line if line else "" for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.emit(head)
        self.level += 1
        known = list(self.scope.matrices)
        try:
            yield
        finally:
            self.level -= 1
            self.scope.matrices[:] = known

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, probability: float) -> bool:
        return self.choose.random() < probability

    def pick(self, weights: Mapping[str, float]) -> str:
        return self.choose.choices(list(weights), list(weights.values()))[0]

    def fill(self, phrase: str, depth: int, **known: str) -> str:
        """A phrase with its blanks filled: `{h}` and `{g}` by matrices."""
        wanted = {
            name: self.operand(depth)
            for name in ("h", "g")
            if "{" + name + "}" in phrase and name not in known
        }
        return phrase.format(**wanted, **known, m=self.scope.model)

    # expressions

    def operand(self, depth: int) -> str:
        made = self.matrix(depth)
        return (
            made
            if made.isidentifier()
            or (made.endswith(")") and made[0] not in "-(1" and " " not in made)
            else f"({made})"
        )

    def matrix(self, depth: int) -> str:
        """An expression for a matrix."""
        if depth <= 0:
            return self.choose.choice(self.scope.matrices)
        kinds: dict[str, Callable[[], str]] = {
            "unary": lambda: self.fill(self.choose.choice(UNARY), depth - 1),
            "alias": lambda: self.fill(self.choose.choice(ALIASES), depth - 1),
            "binary": lambda: self.fill(self.choose.choice(BINARY), depth - 1),
            "cut": lambda: self.fill(self.choose.choice(CUTS), depth - 1),
            "flat": lambda: self.fill(self.choose.choice(FLAT), depth - 1),
            "container": lambda: self.fill(self.choose.choice(CONTAINERS), depth - 1),
            "constant": lambda: self.fill(self.choose.choice(CONSTANTS), 0),
            "layer": lambda: self.fill(self.choose.choice(LAYERS), depth - 1),
            "helper": lambda: self.helped(depth - 1),
            "either": lambda: (
                f"{self.operand(depth - 1)} if {self.flag()} else {self.operand(depth - 1)}"
            ),
        }
        weights = {
            "unary": 6.0,
            "alias": 3.0 if self.in_place else 0.5,
            "binary": 4.0,
            "cut": 20 * self.cuts,
            "flat": 2 * self.cuts,
            "container": 1.0,
            "constant": 0.4,
        }
        weights["layer"] = 3.0 if self.scope.model else 0.0
        weights["helper"] = 3.0 if self.scope.helpers else 0.0
        weights["either"] = 0.4 if self.scope.flags else 0.0
        return kinds[self.pick(weights)]()

    def helped(self, depth: int) -> str:
        helper = self.choose.choice(self.scope.helpers)
        if helper.startswith("helper"):
            form = self.choose.choice(
                ["({h}, {flag})", "(*[{h}], flag={flag})", "(**{{'h': {h}, 'flag': {flag}}})"]
            )
            helper = helper.replace("({h}, {flag})", form)
        return helper.format(h=self.matrix(depth), flag=self.flag())

    def scalar(self, depth: int = 1) -> str:
        """An expression for a scalar tensor; under cuts a number, too."""
        if self.scope.scalars and self.chance(0.3):
            made = self.choose.choice(self.scope.scalars)
        else:
            made = self.fill(self.choose.choice(SCALARS), depth)
        if self.chance(self.cuts):
            wrapped = made if made.endswith(")") and made[0] not in "-(" else f"({made})"
            return self.choose.choice(SCALAR_CUTS).format(s=wrapped)
        return made

    def flag(self) -> str:
        flag = self.choose.choice(self.scope.flags) if self.scope.flags else "True"
        return f"not {flag}" if self.chance(0.2) else flag

    # statements

    def statements(self, count: int, nesting: int = 0) -> None:
        for _ in range(count):
            self.statement(nesting)

    def statement(self, nesting: int) -> None:
        made = self.pick(self.weights(nesting))
        getattr(self, made)(nesting)

    def weights(self, nesting: int) -> dict[str, float]:
        """How often each kind of statement is made, by the name of its method."""
        weights = {
            "assign": 8.0,
            "swap": 0.5,
            "collect": 1.0,
            "call": 2 * self.cuts,
            "leaf": self.cuts,
            "detach": self.cuts,
        }
        if nesting < 2:
            weights |= {
                "branch": 3.0 if self.scope.flags else 0.0,
                "mode": 0.4 + 8 * self.cuts,
                "closure": 0.6,
            }
            weights |= {"loop": 0.6, "early": 0.4, "attempt": 0.3, "grow": 0.3, "last": 0.3}
        if self.in_place:
            weights |= {
                "write": 6.0,
                "view": 1.5,
                "quiet": 1.0,
                "parameter": 0.5 if self.scope.model else 0.0,
            }
            weights |= {"alias": 1.5, "twin": 0.5}
        return weights

    def variable(self) -> str:
        return self.choose.choice(self.scope.matrices)

    def assign(self, nesting: int) -> None:
        made = self.matrix(self.choose.choice([1, 1, 2]))
        target = self.variable() if self.chance(0.6) else self.name("h")
        self.emit(f"{target} = {made}")
        if target not in self.scope.matrices:
            self.scope.matrices.append(target)

    def swap(self, nesting: int) -> None:
        first, second = self.variable(), self.variable()
        if first == second:  # Python 3.11.2 keeps the first of two values for one name
            first = "_"
        self.emit(f"{first}, {second} = {self.matrix(1)}, {self.matrix(1)}")

    def branch(self, nesting: int) -> None:
        with self.block(f"if {self.flag()}:"):
            self.statements(self.choose.choice([1, 1, 2]), nesting + 1)
        if self.chance(0.3):
            with self.block("else:"):
                self.statements(1, nesting + 1)

    def mode(self, nesting: int) -> None:
        with self.block(f"with {self.pick({**MODES, **self.flagged_mode()})}:"):
            self.statements(self.choose.choice([1, 1, 2]), nesting + 1)

    def flagged_mode(self) -> dict[str, float]:
        return (
            {f"torch.set_grad_enabled({self.flag()})": 2.0, "frozen()": 1.0}
            if self.scope.flags
            else {}
        )

    def call(self, nesting: int) -> None:
        self.emit("torch.set_grad_enabled(False)")
        self.statements(1, 2)
        self.emit("torch.set_grad_enabled(True)")

    def last(self, nesting: int) -> None:
        with self.block("try:"):
            self.assign(nesting)
        with self.block("finally:"):
            self.assign(nesting)

    def closure(self, nesting: int) -> None:
        name = self.name("inner")
        target = self.variable()
        captured = self.scope
        self.scope = replace(captured, matrices=[*captured.matrices, "t"])
        if self.chance(self.cuts):
            self.emit(f"@{self.pick(MODES)}")
        with self.block(f"def {name}(t):"):
            self.emit(f"return {self.matrix(2)}")
        self.scope = captured
        self.emit("", f"{target} = {name}({self.matrix(1)})")

    def loop(self, nesting: int) -> None:
        head = self.choose.choice(
            ["for _ in range(2):", f"for k in [{self.matrix(1)}, {self.matrix(1)}]:"]
        )
        target = self.variable()
        with self.block(head):
            if "k in" in head:
                self.scope.matrices.append("k")
            self.emit(f"{target} = {target} + {self.operand(1)}")
            self.statements(self.choose.choice([0, 1]), nesting + 1)

    def collect(self, nesting: int) -> None:
        parts, target = self.name("parts"), self.variable()
        self.emit(f"{parts} = [{self.matrix(1)}]")
        if self.scope.flags and self.chance(0.7):
            with self.block(f"if {self.flag()}:"):
                self.emit(f"{parts}.append({self.matrix(1)})")
        else:
            self.emit(f"{parts} += [{self.matrix(1)}]")
        joined = self.choose.choice(
            [
                "sum({p})",
                "torch.stack({p}).sum(0)",
                "{p}[-1]",
                "torch.cat({p})[:4]",
                "sum(p * 0.5 for p in {p})",
            ]
        )
        self.emit(f"{target} = {joined.format(p=parts)}")

    def early(self, nesting: int) -> None:
        """A loop that a flag cuts short."""
        target = self.variable()
        with self.block("for k in range(3):"):
            with self.block(f"if {self.flag()} and k == {self.choose.choice([0, 1])}:"):
                self.emit(self.choose.choice(["break", "continue"]))
            self.emit(f"{target} = {self.matrix(1)}")

    def attempt(self, nesting: int) -> None:
        target = self.variable()
        with self.block("try:"):
            with self.block(f"if {self.flag()}:"):
                self.emit('raise ValueError("no")')
            self.emit(f"{target} = {self.matrix(1)}")
        with self.block("except ValueError:"):
            self.emit(f"{target} = {self.matrix(1)}")

    def grow(self, nesting: int) -> None:
        """A while loop with a counter."""
        count, target = self.name("count"), self.variable()
        self.emit(f"{count} = 0")
        with self.block(f"while {count} < 2:"):
            self.emit(f"{count} += 1", f"{target} = {self.matrix(1)}")

    def detach(self, nesting: int) -> None:
        name = self.name("h")
        self.emit(f"{name} = {self.operand(1)} * 1.0", f"{name}.detach_()")
        self.scope.matrices.append(name)

    def leaf(self, nesting: int) -> None:
        name = self.variable()
        self.emit(f"{name} = {name}.detach().requires_grad_()")

    # writes in place

    def write(self, nesting: int) -> None:
        self.emit(
            self.fill(self.choose.choice(IN_PLACE), self.choose.choice([0, 1]), v=self.variable())
        )

    def quiet(self, nesting: int) -> None:
        with self.block("with torch.no_grad():"):
            self.emit(self.fill(self.choose.choice(WITHOUT_GRAD), 0, v=self.variable()))

    def view(self, nesting: int) -> None:
        name, base = self.name("view"), self.variable()
        shown = self.choose.choice(
            [
                "{v}.view(4, 3)",
                "{v}[:]",
                "{v}.detach()",
                "{v}.data",
                "{v}.t().t()",
                "{v}.view_as({v})",
                "{v}",
            ]
        )
        self.emit(f"{name} = {shown.format(v=base)}")
        self.scope.matrices.append(name)
        self.emit(self.fill(self.choose.choice(IN_PLACE), 0, v=self.choose.choice([name, base])))

    def alias(self, nesting: int) -> None:
        """A name for what changes nothing of another: it is written, or the other is."""
        name, base = self.name("same"), self.variable()
        self.emit(f"{name} = {self.fill(self.choose.choice(ALIASES), 0, h=base)}")
        self.scope.matrices.append(name)
        self.emit(self.fill(self.choose.choice(IN_PLACE), 0, v=self.choose.choice([name, base])))

    def twin(self, nesting: int) -> None:
        """What lies beside a tensor: its memory without its graph, or a leaf of its shape."""
        name, base = self.name("twin"), self.variable()
        made = [
            f"{base}.data",
            f"{base}.data.view(4, 3)",
            f"{base}.data.float()",
            f"torch.zeros_like({base})",
        ]
        made += [
            f"torch.zeros_like({base}).requires_grad_()",
            f"torch.empty_like({base}).fill_(0.5).requires_grad_()",
        ]
        self.emit(f"{name} = {self.choose.choice(made)}")
        self.scope.matrices.append(name)
        self.emit(
            self.fill(self.choose.choice(IN_PLACE), 0, v=self.choose.choice([name, name, base]))
        )

    def shown_parameter(self) -> str:
        """A write in place into what is a parameter, a view of it, or beside it."""
        held = self.choose.choice(
            ["scale", "first.weight", "second.bias", "norm.weight", "heads['a'].weight"]
        )
        shown = self.fill(self.choose.choice(PARAMETER_ALIASES), 0, p=f"{self.scope.model}.{held}")
        return f"{shown}.{self.choose.choice(['add_(1.0)', 'mul_(0.5)', 'exp_()', 'zero_()', 'clamp_(min=0.0)'])}"

    def parameter(self, nesting: int) -> None:
        line = (
            self.fill(self.choose.choice(PARAMETER_WRITES), 0)
            if self.chance(0.5)
            else self.shown_parameter()
        )
        if self.chance(0.5):
            with self.block("with torch.no_grad():"):
                self.emit(line)
        else:
            self.emit(line)

    # definitions

    def function(self, head: str, scope: Scope, result: Callable[[], str]) -> None:
        before, self.scope = self.scope, scope
        with self.block(head):
            self.statements(self.choose.choice([0, 1, 2, 2]))
            if scope.flags and self.chance(0.2):
                with self.block(f"if {self.flag()}:"):
                    self.emit(f"return {result()}")
            self.emit(f"return {result()}")
        self.emit("", "")
        self.scope = before

    def helper(self) -> None:
        name = self.name("helper")
        if self.chance(1.5 * self.cuts):
            self.emit(f"@{self.pick(MODES)}")
        self.function(
            f"def {name}(h, flag):",
            Scope(["h"], ["flag"], "", list(self.helpers)),
            lambda: self.matrix(1),
        )
        self.helpers.append(name + "({h}, {flag})")

    def generator(self) -> None:
        name, before = self.name("terms"), self.scope
        self.scope = Scope(["h"], ["flag"])
        with self.block(f"def {name}(h, flag):"):
            self.emit(f"yield {self.matrix(1)}")
            with self.block("if flag:"):
                self.emit(f"yield {self.matrix(2)}")
        self.emit("", "")
        self.scope = before
        self.helpers.append(
            self.choose.choice(
                [
                    f"sum({name}({{h}}, {{flag}}))",
                    f"torch.stack(list({name}({{h}}, {{flag}}))).mean(0)",
                ]
            )
        )

    def net(self) -> None:
        inside = Scope(["h"], ["self.flag"], "self", list(self.helpers))
        with self.block("class Net(nn.Module):"):
            with self.block("def __init__(self, flag):"):
                self.emit(*self.parts())
            self.emit("")
            self.function(
                "def forward(self, h):",
                inside,
                lambda: self.operand(1) if self.chance(0.3) else f"self.second({self.matrix(1)})",
            )
            with self.block("def remember(self, h):"):
                self.emit("before, self.kept = self.kept, h", "return before")
            self.emit("", "")
            self.function("def extra(self, h):", inside, lambda: self.matrix(1))
            self.emit("@property")
            with self.block("def penalty(self):"):
                self.emit(f"return {self.penalty()}")
            self.emit("", "")

    def parts(self) -> list[str]:
        """What a model is made of."""
        return [
            "super().__init__()",
            "self.flag = flag",
            "self.first = nn.Linear(3, 3)",
            "self.second = nn.Linear(3, 3)",
            "self.norm = nn.LayerNorm(3)",
            "self.table = nn.Embedding(4, 3)",
            "self.scale = nn.Parameter(torch.ones(3))",
            f"self.body = nn.Sequential(nn.Linear(3, 3), {self.activation()}, nn.Linear(3, 3))",
            f"self.layers = nn.ModuleList([nn.Linear(3, 3), {self.activation()}])",
            f"self.act = {self.activation()}",
            'self.heads = nn.ModuleDict({"a": nn.Linear(3, 3)})',
            "self.mix = nn.Bilinear(3, 3, 3)",
            "self.drop = nn.Dropout(0.5)",
            "self.cell = nn.GRUCell(3, 3)",
            "self.kept = torch.zeros(4, 3)",
        ]

    def penalty(self) -> str:
        return (
            f"({self.choose.choice(['self.scale', 'self.first.weight', 'self.second.weight.detach()'])} "
            "** 2).sum()"
        )

    def activation(self) -> str:
        return self.choose.choice(
            [
                "nn.ReLU()",
                "nn.Tanh()",
                "nn.GELU()",
                "nn.ReLU(inplace=True)",
                "nn.Sigmoid()",
                "nn.Identity()",
            ]
        )

    # the training

    def program(self) -> Program:
        """The whole program."""
        self.emit(*HEADER.splitlines())
        for _ in range(self.choose.choice([0, 1, 1, 2])):
            self.helper()
        if self.chance(0.3):
            self.generator()
        self.net()
        flags = tuple(string.ascii_lowercase[: self.choose.choice([1, 2, 2, 3])])
        style = self.choose.choice(["arguments", "options", "script"])
        names = list(flags) if style == "arguments" else [f"options.{flag}" for flag in flags]
        with self.block(f"def train({', '.join(flags) if style == 'arguments' else 'options'}):"):
            self.train(names)
        if style == "script":
            self.arguments(flags)
        return Program("\n".join(self.lines) + "\n", flags, style)

    def arguments(self, flags: tuple[str, ...]) -> None:
        self.emit("", "")
        with self.block('if __name__ == "__main__":'):
            self.emit("parser = argparse.ArgumentParser()")
            self.emit(*(f'parser.add_argument("--{flag}", action="store_true")' for flag in flags))
            self.emit("train(parser.parse_args())")

    def train(self, flags: list[str]) -> None:
        helpers = [*self.helpers, "model({h})", "model.extra({h})"]
        helpers += ["model.remember({h})"] if self.chance(0.15) else []
        self.scope = Scope([], flags, "model", helpers, ["model.penalty"])
        self.emit("torch.manual_seed(0)", f"model = Net({self.flag()})")
        self.freeze()
        self.emit(
            "optimizer = "
            f"torch.optim.{self.choose.choice(['SGD', 'Adam', 'AdamW'])}(model.parameters(), "
            "lr=0.1)"
        )
        self.emit("batches = [torch.randn(4, 3) for _ in range(2)]")
        shape = self.pick(
            {"batch": 6.0, "once": 3.0, "accumulate": 1.0, "carry": 1.0 + self.in_place}
        )
        {
            "batch": self.by_batch,
            "once": self.once,
            "accumulate": self.accumulate,
            "carry": self.carry,
        }[shape]()

    def freeze(self) -> None:
        what = self.pick({"": 8.0, "model": 0.7, "model.first": 1.0, "loop": 0.7})
        self.has_frozen = bool(what)
        if not what:
            return
        with self.block(f"if {self.flag()}:" if self.chance(0.6) else "if True:"):
            if what == "loop":
                with self.block("for parameter in model.parameters():"):
                    self.emit(
                        self.choose.choice(
                            ["parameter.requires_grad = False", "parameter.requires_grad_(False)"]
                        )
                    )
            else:
                self.emit(f"{what}.requires_grad_(False)")
            if self.chance(0.3):
                self.emit("model.second.weight.requires_grad_(True)")

    def by_batch(self) -> None:
        heads = [
            "for x in batches:",
            "for step, x in enumerate(batches):",
            "for x, _ in zip(batches, range(2)):",
        ]
        with self.block(self.choose.choice(heads)):
            self.emit(self.clearing())
            self.step()

    def clearing(self) -> str:
        return self.choose.choice(
            ["optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=False)", "model.zero_grad()"]
        )

    def once(self) -> None:
        self.emit("x = batches[0]")
        self.step()

    def carry(self) -> None:
        """A state that goes from one round into the next."""
        self.emit("state = torch.zeros(4, 3)")
        with self.block("for x in batches:"):
            self.emit("optimizer.zero_grad()")
            mixed = self.choose.choice(
                [
                    "model({s} + x)",
                    "torch.tanh(model(x) + {s})",
                    "model(x) * {s}.sigmoid()",
                    "model(x) + {s}",
                ]
            )
            kept = self.choose.choice(["state", "state", "state.detach()"])
            self.emit(f"state = {mixed.format(s=kept)}")
            self.scope.matrices[:] = ["x", "state"]
            self.statements(self.choose.choice([0, 1, 2]))
            self.loss()
            self.backward()
            if self.chance(0.4):
                self.emit("state = state.detach()")

    def accumulate(self) -> None:
        """One loss over all batches, and one backward."""
        self.emit(f"total = {self.choose.choice(['0.0', 'torch.zeros(())', 'torch.tensor(0.0)'])}")
        with self.block("for x in batches:"):
            self.forward()
            added = self.choose.choice(["total = total + {s}", "total += {s}"])
            if self.chance(0.4):
                with self.block(f"if {self.flag()}:"):
                    self.emit(added.format(s=self.scalar()))
            else:
                self.emit(added.format(s=self.scalar()))
        self.emit(
            f"loss = total + {self.scalar_of_model()}" if self.chance(0.4) else "loss = total"
        )
        self.emit("h = model(batches[0])")
        self.scope.matrices[:] = ["h"]
        self.backward()

    def scalar_of_model(self) -> str:
        return self.choose.choice(["model.penalty", "0.0", "model.scale.sum()"])

    def forward(self) -> None:
        self.scope.matrices[:] = ["x"]
        self.emit(
            "h = "
            f"{self.choose.choice(['model(x)', 'model(x)', 'model.first(x)', 'model.extra(model(x))'])}"
        )
        self.scope.matrices[:] = ["x", "h", "h"] if self.chance(0.5) else ["h"]
        self.statements(self.choose.choice([0, 1, 2, 3]) + self.in_place)

    def step(self) -> None:
        self.forward()
        self.loss()
        if self.in_place and self.chance(0.25):
            self.two_losses()
        else:
            self.backward()

    def loss(self) -> None:
        """Statements that bind `loss`."""
        makers = {
            "direct": self.direct_loss,
            "sum": self.summed_loss,
            "list": self.listed_loss,
            "dict": self.named_loss,
        }
        makers[self.pick({"direct": 4.0, "sum": 2.0, "list": 1.5, "dict": 1.0})]()
        if self.chance(0.5 * self.cuts):
            self.emit(
                self.choose.choice(
                    [
                        "loss = loss.detach().requires_grad_()",
                        "loss = torch.tensor(float(loss), requires_grad=True)",
                    ]
                )
            )

    def direct_loss(self) -> None:
        self.emit(f"loss = {self.scalar(2)}")

    def summed_loss(self) -> None:
        self.emit(
            "loss = "
            f"{self.choose.choice(['torch.zeros(())', 'torch.tensor(0.0)', '0.0', self.scalar()])}"
        )
        for _ in range(self.choose.choice([1, 1, 2])):
            added = self.choose.choice(
                ["loss = loss + {s}", "loss += {s}", "loss = loss + 0.1 * ({s})"]
            ).format(s=self.scalar())
            if self.chance(0.6):
                with self.block(f"if {self.flag()}:"):
                    self.emit(added)
            else:
                self.emit(added)

    def listed_loss(self) -> None:
        self.emit(f"terms = [{self.scalar() if self.chance(0.7) else ''}]")
        for _ in range(self.choose.choice([1, 2])):
            with self.block(f"if {self.flag()}:"):
                self.emit(f"terms.append({self.scalar()})")
        self.emit("loss = sum(terms)")

    def named_loss(self) -> None:
        self.emit(f'losses = {{"main": {self.scalar()}}}')
        with self.block(f"if {self.flag()}:"):
            self.emit(f'losses["more"] = {self.scalar()}')
        self.emit(
            self.choose.choice(
                ["loss = sum(losses.values())", 'loss = losses["main"] + losses.get("more", 0.0)']
            )
        )

    def backward(self) -> None:
        if self.in_place:
            self.between()
        call = self.pick(
            {
                "loss.backward()": 8.0,
                "torch.autograd.backward(loss)": 1.0,
                "guarded": 0.8,
                "grad": 0.0 if self.has_frozen else 0.7,
            }
        )
        if call == "guarded":
            with self.block("if torch.is_tensor(loss) and loss.requires_grad:"):
                self.emit("loss.backward()")
        elif call == "grad":
            self.emit("torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)")
        else:
            self.emit(call)
        if self.in_place and self.chance(0.15):
            self.emit(
                self.choose.choice(
                    [
                        "loss.backward()",
                        f"({self.scalar(0)}).backward()",
                        f"(loss * {self.scalar(0)}).backward()",
                    ]
                )
            )
        self.emit("optimizer.step()")

    def between(self) -> None:
        """What happens between the forward and the backward."""
        if self.chance(0.12):
            self.emit("optimizer.step()")
        if self.chance(0.1):
            self.parameter(0)
        if self.chance(0.1):
            self.write(0)

    def two_losses(self) -> None:
        self.emit(
            f"other = {self.scalar()}",
            f"loss.backward({self.choose.choice(['', 'retain_graph=True', 'retain_graph=True'])})",
        )
        if self.chance(0.4):
            self.emit(self.choose.choice(["optimizer.step()", "optimizer.zero_grad()"]))
        self.emit("other.backward()", "optimizer.step()")
