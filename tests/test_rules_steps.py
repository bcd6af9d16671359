"""Training steps in every order: GL501, GL502, GL510 and GL511 tell of gradients and rates what
torch shows.

Round r adds 2 ** r to the gradients, which say so what a step uses.
"""

from __future__ import annotations

import bisect
import itertools
import pathlib
import re
import textwrap
import warnings
from typing import Any

import pytest

from gradlint.analysis import analyze

SETUP = """\
import torch

def {}():
    m, n = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    o, q = torch.optim.SGD(m.parameters(), lr=0.1), torch.optim.SGD(n.parameters(), lr=0.1)
    l, k = torch.optim.lr_scheduler.StepLR(o, 1), torch.optim.lr_scheduler.ExponentialLR(q, 0.9)
    xs = [torch.full((1, 1), 2.0**r) for r in range(4)]
"""
WORDS = {
    "B": "m(x).mean().backward()", "S": "o.step()", "C": "o.zero_grad()", "L": "l.step()",
    "BQ": "n(x).mean().backward()", "SQ": "q.step()", "CQ": "q.zero_grad()", "LQ": "k.step()",
    "BB": "(m(x) + n(x)).mean().backward()", "CM": "m.zero_grad()",
    "CP": "m.weight.grad, m.bias.grad = None, None", "CZ": "o.zero_grad(set_to_none=False)",
    "E": "for x in xs:",
}  # fmt: skip
STEPS = """\
E C; B; S
E B; S; C
E B; C; S
E B; S
E S; B; C
E S; C; B
E C; S; B
E B; S; CM
E CM; B; S
E B; CM; S
E B; S; CP
E B; CP; S
E CZ; B; S
E B; CZ; S
E B; S; CZ
E C; C; B; S; C
E B; S; CQ
E CQ; B; S
E C; BQ; S
E C; B; SQ
E C; B; S; CQ; BQ; SQ
E C; CQ; B; BQ; S; SQ
E C; CQ; BB; S; SQ
E C; BB; S; SQ
E CQ; BB; S; SQ
E C; BB; CQ; S; SQ
E BB; S; C; SQ; CQ
E BB; S; SQ
E BB; C; S; SQ; CQ
E BB; CQ; SQ; S; C
E C; CQ; BB; S; CQ; BQ; SQ
E C; BQ; B; S
E C; BB; S
E C; B; S; L
E C; B; L; S
E L; C; B; S
E C; L; B; S
E B; S; C; L
E B; L; S; C
E C; B; S; BQ; LQ; SQ; CQ
E C; B; S; BQ; SQ; LQ; CQ
E C; CQ; BB; S; LQ; SQ; L
E C; CQ; BB; S; SQ; L; LQ
E C; CQ; BB; L; S; LQ; SQ
for e in range(2):\\n E C; B; S\\n L
for e in range(2):\\n L\\n E C; B; S
for e in range(2):\\n E B; S\\n C
for e in range(2):\\n C\\n E B; S
for e in range(2):\\n E C; B; S
for e in range(2):\\n E C; B; S; L
for e in range(2):\\n E C; B; L; S
for e in range(2):\\n E C; B; S\\n E CQ; BQ; SQ
for e in range(2):\\n E C; B; S\\n E BQ; SQ
for e in range(2):\\n E B; C; S\\n L
C\\nE B; S
C\\nE B; S; C
E B\\nS
E B\\nC\\nS
E C; B; S\\nL
i = 0\\nwhile i < 4: x = xs[i]; i += 1; C; B; S
i = 0\\nwhile i < 4: x = xs[i]; i += 1; B; S
i = 0\\nwhile i < 4: x = xs[i]; i += 1; B; C; S
for i in range(4): x = xs[i]; B; S
for i in range(4): x = xs[i]; B; S; C
E m.zero_grad(); B; S
E n.zero_grad(); B; S
E C; m(x).mean().detach(); B; S
E loss = m(x).mean(); C; loss.backward(); S
E loss = m(x).mean(); loss.backward(); C; S
E loss = m(x).mean(); loss.backward(); S; o.zero_grad(True)
E C; (m(x) + 0 * n(x)).mean().backward(); S
E C; torch.autograd.backward(m(x).mean()); S
E torch.autograd.backward(m(x).mean()); S
E C; B; torch.nn.utils.clip_grad_norm_(m.parameters(), 99.0); S
E C; B; S; C; B; S
E C; B
E B; C
for x in xs[:2]: C; B
E C; CQ; BB; S
E C; CQ; BB
E C; B; CQ; BQ; SQ
for e in range(2):\\n E C; B
E\\n C; CQ; BB\\n for s in (l, k): s.step()\\n S; SQ
E\\n C; CQ; BB; S; SQ\\n for s in (l, k): s.step()
E\\n for s in (l, k): s.step()\\n C; CQ; BB; S; SQ
for e in range(2):\\n E C; B; S\\n for s in (l,): s.step()
for e in range(2):\\n for s in (l,): s.step()\\n E C; B; S
E\\n C; CQ; BB\\n for c in (o, q): c.step()
E\\n for c in (o, q): c.zero_grad()\\n BB\\n for c in (o, q): c.step()
E\\n BB\\n for c in (o, q): c.zero_grad()\\n for c in (o, q): c.step()
E\\n BB\\n for c in (o, q): c.step(); c.zero_grad()
E C; loss = m(x).mean(); S
E loss = m(x).mean(); S; C
E loss = m(x).mean(); loss.backward; S
C\\nfor x in xs[:2]: loss = m(x).mean(); S
"""


def written(steps: str) -> str:
    """The steps over several lines, in words that torch has."""
    statement = re.compile(
        r"(?<![\w.])(?:" + "|".join(sorted(WORDS, key=len, reverse=True)) + r")(?![\w(.])"
    )
    return statement.sub(lambda found: WORDS[found[0]], steps.replace("\\n", "\n"))


class Watch:
    """What is in the gradients of one model, in rounds, whenever its optimizer steps."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self.weight = model.weight
        self.added: list[int] = []
        self.steps: list[list[int]] = []
        model.weight.register_hook(self.backward)
        optimizer.register_step_pre_hook(self.step)

    def backward(self, gradient: Any) -> None:
        """A gradient of this round comes back."""
        self.added.append(int(gradient.item()).bit_length() - 1)

    def step(self, *_: Any) -> None:
        """The optimizer steps on what there is."""
        self.steps.append(self.held())

    def held(self) -> list[int]:
        """The rounds whose gradients are there."""
        total = 0 if self.weight.grad is None else int(self.weight.grad.item())
        return [number for number in range(8) if total >> number & 1]

    def codes(self) -> set[str]:
        """The codes that say what became of the gradients."""
        used = {number for step in self.steps for number in step}
        is_stale = any(
            before and set(before) < set(after) for before, after in itertools.pairwise(self.steps)
        )
        is_lost = bool(self.steps) and bool(set(self.added) - used - set(self.held()))
        is_idle = not self.steps and not {-1, *self.held()}.issuperset(self.added)
        told = {"GL501": is_stale, "GL502": is_lost, "GL511": is_idle}
        return {code for code, holds in told.items() if holds}


def codes_of_torch(steps: str) -> set[str]:
    """The codes that say what torch does in these steps."""
    watches, names = list[Watch](), dict[str, Any]()
    hooks = "    watches.extend([Watch(m, o), Watch(n, q)])\n"
    exec(SETUP.format("run") + hooks + textwrap.indent(written(steps), "    "), names)
    names |= {"watches": watches, "Watch": Watch}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names["run"]()
    is_early = any("`lr_scheduler.step()` before" in str(warning.message) for warning in caught)
    early = {"GL510"} if is_early else set()
    is_unfed = any(watch.steps for watch in watches) and not any(watch.added for watch in watches)
    starves = any(watch.steps and not watch.added for watch in watches)
    is_astray = starves and any(watch.added and not watch.steps for watch in watches)
    unfed = {"GL511"} if is_unfed or is_astray else set()
    return early.union(unfed, *(watch.codes() for watch in watches))


def codes_of_gradlint(folder: pathlib.Path, cases: list[str]) -> list[set[str]]:
    """The codes of the findings in each of the programs."""
    path = folder / "train.py"
    texts = [
        f"{SETUP.format(f'run_{n}')}{textwrap.indent(written(case), '    ')}\n"
        for n, case in enumerate(cases)
    ]
    path.write_text("".join(texts), encoding="utf-8")
    found = analyze(
        [path], select=lambda code: code in ("GL501", "GL502", "GL510", "GL511")
    ).findings
    ends = list(itertools.accumulate(text.count("\n") for text in texts))
    told: list[set[str]] = [set() for _ in cases]
    for each in found:
        told[bisect.bisect_left(ends, each.at.line)].add(each.code)
    return told


def test_steps_are_told_exactly_where_torch_shows_a_fault(tmp_path: pathlib.Path) -> None:
    cases = STEPS.splitlines()
    told = codes_of_gradlint(tmp_path, cases)
    assert dict(zip(cases, told, strict=True)) == {case: codes_of_torch(case) for case in cases}


WARMED_UP = """\
import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)

def train(batches, warmup, seen, schedules):
    for x in batches:
        if {}:
            scheduler.step()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        seen += 1
"""


@pytest.mark.parametrize(
    ("asked", "codes"), [("seen >= warmup", []), ("schedules", ["GL510"]), ("True", ["GL510"])]
)
def test_a_schedule_that_begins_after_a_warm_up_is_not_early(
    asked: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(WARMED_UP.format(asked), encoding="utf-8")
    assert [
        finding.code for finding in analyze([path], select=lambda code: code == "GL510").findings
    ] == codes
