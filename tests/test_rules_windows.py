"""Gradients gathered over rounds: GL503 to GL506 tell of what becomes of them exactly where torch
shows it.

Round r adds 2 ** r to the gradient of a weight and 1 to that of a bias: both say which rounds a
step uses, and divided by what.
"""

from __future__ import annotations

import bisect
import itertools
import pathlib
import re
import textwrap
from typing import Any

import pytest

import gradlint
from gradlint.analysis import analyze

SETUP = """\
import itertools
import torch

def {}():
    m = torch.nn.Linear(1, 1)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    xs = [torch.full((1, 1), 2.0**r) for r in range(8)]
"""
LOOPS = """\
for i, x in enumerate(xs):\\n B\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n B / 4\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n B / 3\\n if (i + 1) % 3 == 0: S; C
for i, x in enumerate(xs):\\n B\\n if (i + 1) % 3 == 0: S; C
for i, x in enumerate(xs):\\n B / 3\\n if (i + 1) % 3 == 0 or i + 1 == len(xs): S; C
for i, x in enumerate(xs):\\n B / 4\\n if i % 4 == 0: S; C
for i, x in enumerate(xs):\\n B\\n if i % 2 == 0: S; C
for i, x in enumerate(xs):\\n B / 4\\n if i % 4 == 3: S; C
for i, x in enumerate(xs, 1):\\n B / 4\\n if i % 4 == 0: S; C
for i, x in enumerate(xs, 1):\\n B / 3\\n if i % 3 == 0: S; C
for i, x in enumerate(xs, start=1):\\n B\\n if i % 2 == 0: S; C
for i, x in enumerate(xs):\\n B / 4\\n if not (i + 1) % 4: S; C
for i, x in enumerate(xs):\\n B\\n if not (i + 1) % 4: S; C
for i in range(len(xs)):\\n x = xs[i]; B / 2\\n if (i + 1) % 2 == 0: S; C
for i in range(8):\\n x = xs[i]; B\\n if (i + 1) % 2 == 0: S; C
for i in range(1, 9):\\n x = xs[i - 1]; B / 2\\n if i % 2 == 0: S; C
for i in range(1, 9):\\n x = xs[i - 1]; B / 3\\n if i % 3 == 0: S; C
for i, x in enumerate(xs):\\n C; B / 4\\n if (i + 1) % 4 == 0: S
for i, x in enumerate(xs):\\n C; B\\n if (i + 1) % 2 == 0: S
for i, x in enumerate(xs):\\n B / 4\\n if (i + 1) % 4 == 0: S\\n C
for i, x in enumerate(xs):\\n if i % 4 == 0: C\\n B / 4\\n if (i + 1) % 4 == 0: S
for i, x in enumerate(xs):\\n if i % 4 == 0: C\\n B\\n if (i + 1) % 4 == 0: S
for i, x in enumerate(xs):\\n if i % 3 == 0: C\\n B / 3\\n if (i + 1) % 3 == 0: S
for i, x in enumerate(xs):\\n B; S; C
for i, x in enumerate(xs):\\n C; B; S
for i, x in enumerate(xs):\\n B / 4\\n if (i + 1) % 4: continue\\n S; C
for i, x in enumerate(xs):\\n B\\n if (i + 1) % 4: continue\\n S; C
for i, x in enumerate(xs):\\n B / 3\\n if (i + 1) % 3: continue\\n S; C
n = 0\\nfor x in xs:\\n n += 1; B / 4\\n if n == 4: n = 0; S; C
n = 0\\nfor x in xs:\\n n += 1; B\\n if n == 4: n = 0; S; C
n = 0\\nfor x in xs:\\n n += 1; B / 3\\n if n == 3: n = 0; S; C
n = 0\\nfor x in xs:\\n n += 1; B / 2\\n if n % 2 == 0: S; C
n = 0\\nfor x in xs:\\n B / 2; n += 1\\n if n % 2 == 0: S; C
n = 0\\nfor x in xs:\\n B / 3; n += 1\\n if n % 3 == 0: S; C
n = 0\\nwhile n < 8:\\n x = xs[n]; n += 1; B / 4\\n if n % 4 == 0: S; C
n = 0\\nwhile n < 8:\\n x = xs[n]; n += 1; B\\n if n % 4 == 0: S; C
for i, x in enumerate(xs):\\n B / 3\\n if (i + 1) % 3 == 0: S; C\\nS
for i, x in enumerate(xs):\\n B / 3\\n if (i + 1) % 3 == 0: S; C\\nC
for i, x in enumerate(xs):\\n B / 3\\n if (i + 1) % 3 == 0: S; C\\nif len(xs) % 3: S; C
for e in range(2):\\n C\\n for i, x in enumerate(xs):\\n  B / 3\\n  if (i + 1) % 3 == 0: S; C
for e in range(2):\\n for i, x in enumerate(xs):\\n  B / 3\\n  if (i + 1) % 3 == 0: S; C
for e in range(2):\\n for i, x in enumerate(xs):\\n  B / 4\\n  if (i + 1) % 4 == 0: S; C
for e in range(2):\\n for i, x in enumerate(xs):\\n  B / 3\\n  if (i + 1) % 3 == 0: S; C\\n S; C
n = 0\\nfor e in range(3):\\n for x in xs:\\n  B / 3; n += 1\\n  if n % 3 == 0: S; C
for i, x in enumerate(xs):\\n (m(x).mean() * 0.25).backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n (0.25 * m(x).mean()).backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n loss = m(x).mean(); loss = loss / 4; loss.backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n loss = m(x).mean(); loss /= 4; loss.backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n loss = m(x).mean(); loss.div(4).backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n loss = m(x).mean(); torch.div(loss, 4).backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n loss = m(x).mean(); loss.backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n m(x).mean().clone().backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n (m(x).mean() * 1.0).backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n (m(x) / 4).mean().backward()\\n if (i + 1) % 4 == 0: S; C
for i, x in enumerate(xs):\\n B\\n if (i + 1) % 4 == 0:\\n  for p in m.parameters(): p.grad /= 4\\n  S; C
for i, x in enumerate(xs):\\n B\\n if (i + 1) % 4 == 0:\\n  for p in m.parameters(): p.grad.div_(4)\\n  S; C
for i in range(2):\\n for x in xs[4 * i : 4 * i + 4]: B / 4\\n S; C
(0 * m(xs[0])).mean().backward()\\nfor i, x in enumerate(xs):\\n B\\n if (i + 1) % 4 == 0: S; C
(0 * m(xs[0])).mean().backward()\\nfor i, x in enumerate(xs):\\n B / 3\\n if (i + 1) % 3 == 0: S; C
for i in range(2):\\n C\\n for j in range(4): x = xs[4 * i + j]; B / 4\\n S
for i, x in enumerate(xs):\\n B / 4\\n if (i + 1) % 4 == 0 and i > 0: S; C
for i, x in enumerate(xs):\\n B / 4\\n if i > 0 and i % 4 == 0: S; C
for i, x in enumerate(itertools.chain(xs)):\\n B / 4\\n if (i + 1) % 4 == 0: S; C
for i, x in zip(itertools.count(1), xs):\\n B\\n if i % 4 == 0: S; C
for i, x in enumerate(xs):\\n B / 4\\n is_last = (i + 1) % 4 == 0\\n if is_last: S\\n if is_last: C
for i, x in enumerate(xs):\\n B\\n is_last = (i + 1) % 4 == 0\\n if is_last: S\\n if is_last: C
for i, x in enumerate(xs):\\n B / 3\\n if i % 3 == 2: S\\n if i % 3 == 2: C
"""


def written(loop: str) -> str:
    """The loop over several lines, in words that torch has."""
    words = {"S": "o.step()", "C": "o.zero_grad()", "B": "(m(x).mean()).backward()"}
    words |= {f"B / {number}": f"(m(x).mean() / {number}).backward()" for number in (2, 3, 4)}
    statement = re.compile(r"(?<=[ ;:])(B( / \d)?|S|C)(?=[;\n]|$)|^(S|C)(?=;|$)", re.MULTILINE)
    return statement.sub(lambda found: words[found[0]], loop.replace("\\n", "\n"))


class Watch:
    """Which rounds each step used, and divided by what."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, list[int]]] = []
        self.backwards = 0

    def backward(self, gradient: Any) -> None:
        """A gradient came back to the bias."""
        self.backwards += 1

    def step(self, optimizer: Any, *_: Any) -> None:
        """Reads the rounds out of the gradients: what they add up to in the weight is their number
        in the bias.
        """
        weight, bias = (each.grad for each in optimizer.param_groups[0]["params"])
        if weight is None:
            return
        for divisor in (1, 2, 3, 4):
            total, count = round(weight.item() * divisor, 3), round(bias.item() * divisor, 3)
            rounds = [number for number in range(8) if int(total) >> number & 1]
            if total == int(total) and len(rounds) == count:
                self.steps.append((divisor, rounds))
                return

    def codes(self) -> set[str]:
        """The codes that say what became of the gradients."""
        sizes = [len(rounds) for _, rounds in self.steps]
        used = [number for _, rounds in self.steps for number in rounds]
        told = {
            "GL503": any(divisor == 1 and len(rounds) > 1 for divisor, rounds in self.steps),
            "GL504": used.count(7) < self.backwards // 8,
            "GL505": any(rounds[0] - 1 not in [-1, *used] for _, rounds in self.steps),
            "GL506": sizes[0] == 1 and sizes[1] > 1,
        }
        return {code for code, is_so in told.items() if is_so}


def codes_of_torch(loop: str) -> set[str]:
    """The codes that say what torch does in this loop."""
    watch, names = Watch(), dict[str, Any]()
    hooks = "    m.bias.register_hook(watch.backward), o.register_step_pre_hook(watch.step)\n"
    exec(SETUP.format("run") + hooks + textwrap.indent(written(loop), "    "), names)
    names["watch"] = watch
    names["run"]()
    return watch.codes()


def codes_of_gradlint(folder: pathlib.Path, loops: list[str]) -> list[set[str]]:
    """The codes of the findings in each of the loops."""
    path = folder / "train.py"
    texts = [
        f"{SETUP.format(f'run_{n}')}{textwrap.indent(written(loop), '    ')}\n"
        for n, loop in enumerate(loops)
    ]
    path.write_text("".join(texts), encoding="utf-8")
    codes = ("GL503", "GL504", "GL505", "GL506")
    found = analyze([path], select=lambda code: code in codes).findings
    ends = list(itertools.accumulate(text.count("\n") for text in texts))
    told: list[set[str]] = [set() for _ in loops]
    for each in found:
        told[bisect.bisect_left(ends, each.at.line)].add(each.code)
    return told


def test_windows_are_told_exactly_where_torch_shows_a_fault(tmp_path: pathlib.Path) -> None:
    loops = LOOPS.splitlines()
    told = codes_of_gradlint(tmp_path, loops)
    assert dict(zip(loops, told, strict=True)) == {loop: codes_of_torch(loop) for loop in loops}


OUT_OF_VIEW = """\
import torch
import unseen


def train(net, loader, optimizer, accumulate):
    criterion, kept = unseen.build_loss(), unseen.features(loader)
    for batch in loader:
        for part in range(accumulate):
            {}
            total_loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        ("total_loss = sum(criterion(**kept).values())", []),
        ("total_loss = criterion(net(batch[part]))", ["GL503"]),
    ],
)
def test_a_loss_of_something_out_of_view_is_not_known_to_be_whole(
    loss: str, found: list[str], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "train.py").write_text(OUT_OF_VIEW.format(loss))
    assert [each.code for each in gradlint.check([tmp_path / "train.py"])] == found


SHORT_WINDOWS = """\
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [torch.randn(4) for _ in range(6)]
for i, batch in enumerate(loader):
    (model(batch).square().mean() / 4).backward()
    if i % 4 == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()
"""


def test_the_first_and_the_last_window_of_one_round_are_not_all_of_them(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "train.py"
    path.write_text(SHORT_WINDOWS)
    found = analyze([path], select=lambda code: code in ("GL505", "GL506")).findings
    assert [each.code for each in found] == ["GL506"]
