"""What a rule says of all paths holds where most of them were not run: plain work beside the
training takes the steps.

Each program trains, by the side of a branch that the default run takes. Small, `check` runs both
sides. Heavy, with lists of numbers computed in its loop, it runs one of them: then nothing may be
said to happen on no path.
"""

from __future__ import annotations

import pathlib
import textwrap

import pytest
from truth import observe

from gradlint import analysis

WORK = "".join(
    f"    table_{n} = [[a * {n} + b for a in range(6)] for b in range(6)]\n"
    f"    total_{n} = sum(map(len, table_{n}))\n"
    for n in range(22)
)
START = """import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--quiet", action="store_true")
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 1))
side = nn.Linear(6, 1)
"""
BOTH = "optimizer = torch.optim.SGD([*model.parameters(), *side.parameters()], lr=0.1)\n"
ONE = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
ONCE = "for _ in range(2):\n    pass\nWORK"
LOOP = "for x in torch.randn(4, 8, 6):\n    pass\nWORK"
LOSS = "    loss = model(x).mean() + side(x).mean()\n"
CLEAR = "    optimizer.zero_grad()\n"
BACK = "    loss.backward()\n"
STEP = "    optimizer.step()\n"
END = CLEAR + BACK + STEP


def _otherwise(statement: str, indent: str = "    ") -> str:
    return (
        f"{indent}if args.quiet:\n{indent}    print('-')\n{indent}else:\n{indent}    {statement}\n"
    )


PLAIN = START.replace("nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 1))", "Plain()").replace(
    "torch.manual_seed(0)\n",
    """torch.manual_seed(0)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.rest = [nn.Linear(6, 1)]

    def forward(self, x):
        return self.rest[0](self.first(x))


""",
)
PROGRAMS = {
    "GL105-the-leaf-is-read": START + BOTH + LOOP
    + "    inner = model[0](x).detach().requires_grad_()\n    loss = inner.square().mean()\n"
    + CLEAR + BACK + _otherwise("print(inner.grad.norm())") + STEP,
    "GL106-computed-again": START + BOTH + LOOP
    + "    inner = model[0](x).detach()\n" + _otherwise("inner = model[0](x)")
    + "    loss = model[1](inner).mean() + side(x).mean()\n" + END,
    "GL106-a-term-more": START + BOTH + LOOP
    + "    loss = side(model[0](x).detach()).mean()\n"
    + _otherwise("loss = loss + model(x).square().mean()") + END,
    "GL106-in-a-function": START + BOTH + "def encode(x):\n    return model[0](x)\n" + LOOP
    + "    inner = model[0](x).detach()\n" + _otherwise("inner = encode(x)")
    + "    loss = model[1](inner).mean() + side(x).mean()\n" + END,
    "GL111-added": START + BOTH + LOOP
    + "    main_loss = loss = model(x).mean()\n    side_loss = side(x).mean()\n"
    + _otherwise("loss = main_loss + side_loss") + END,
    "GL111-kept-for-later": START + BOTH + LOOP
    + "    terms = [model(x).mean()]\n    side_loss = side(x).mean()\n"
    + _otherwise("terms.append(side_loss)") + "    loss = sum(terms)\n" + END,
    "GL305-back-propagated": START + BOTH + LOOP + LOSS + END
    + "model.eval()\n" + LOOP + "    out = model(x).mean()\n" + _otherwise("out.backward()") + "    print(out)\n",
    "GL501-cleared": START + BOTH + LOOP + LOSS + _otherwise("optimizer.zero_grad()") + BACK + STEP,
    "GL501-cleared-by-hand": START + BOTH + LOOP + LOSS
    + _otherwise("[setattr(each, 'grad', None) for group in optimizer.param_groups for each in "
        "group['params']]")
    + BACK + STEP,
    "GL501-zeroed-in-place": START + BOTH + LOOP + LOSS
    + _otherwise("[each.grad.zero_() for each in [*model.parameters(), *side.parameters()] if "
        "each.grad "
        "is not None]")
    + BACK + STEP,
    "GL502-back-propagated-again": START + BOTH + LOOP + LOSS + BACK
    + "    norm = model[0].weight.grad.norm()\n" + CLEAR + _otherwise("model(x).mean().backward()") + STEP,
    "GL508-back-propagated-later": START + BOTH + "terms = []\n" + LOOP
    + "    loss = side(x).mean()\n" + END + "    terms.append(model(x).mean())\n"
    + _otherwise("sum(terms).backward()", ""),
    "GL509-clipped-between": START + BOTH + LOOP + LOSS + CLEAR
    + _otherwise("loss.backward(retain_graph=True)")
    + "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n" + BACK + STEP,
    "GL510-stepped-before": START + BOTH + "schedule = "
        "torch.optim.lr_scheduler.StepLR(optimizer, 2)\n" + LOOP
    + LOSS + CLEAR + BACK + _otherwise("optimizer.step()") + "    schedule.step()\n",
    "GL511-stepped": START + BOTH + LOOP + LOSS + CLEAR + BACK + _otherwise("optimizer.step()"),
    "GL511-under-two-conditions": START + BOTH + LOOP + LOSS + CLEAR + BACK
    + "    if args.quiet and loss.dim() == 0:\n        print('-')\n    else:\n"
        "        optimizer.step()\n",
    "GL511-behind-a-way-out": START + BOTH + LOOP + LOSS + CLEAR + BACK
    + "    if args.quiet:\n        continue\n" + STEP,
    "GL511-updated-by-hand": START + BOTH + LOOP + LOSS + CLEAR + BACK
    + _otherwise("[each.data.sub_(0.1 * each.grad) for each in [*model.parameters(), "
        "*side.parameters()]]"),
    "GL511-in-a-function": START + BOTH + "def advance(optimizer):\n    optimizer.step()\n"
    + LOOP + LOSS + CLEAR + BACK + _otherwise("advance(optimizer)"),
    "GL511-given-to-a-function": START + BOTH
    + "def advance():\n    optimizer.step()\ndef run(action):\n    action()\n"
    + LOOP + LOSS + CLEAR + BACK + _otherwise("run(advance)"),
    "GL511-a-method-given": START + BOTH + "def run(action):\n    action()\n"
    + LOOP + LOSS + CLEAR + BACK + _otherwise("run(optimizer.step)"),
    "GL511-a-backward-given": START + BOTH + "def run(action):\n    action()\n"
    + LOOP + LOSS + CLEAR + _otherwise("run(loss.backward)") + STEP,
    "GL511-under-another-name": START + BOTH + "advance = optimizer.step\n"
    + LOOP + LOSS + CLEAR + BACK + _otherwise("advance()"),
    "GL511-a-lambda": START + BOTH + "advance = lambda: optimizer.step()\n"
    + LOOP + LOSS + CLEAR + BACK + _otherwise("advance()"),
    "GL511-a-property": START + BOTH
    + "class Trainer:\n    @property\n    def advanced(self):\n        optimizer.step()\n"
        "        return True\n"
    + "trainer = Trainer()\n" + LOOP + LOSS + CLEAR + BACK + _otherwise("print(trainer.advanced)"),
    "GL511-a-step-that-goes-back": START + BOTH
    + "class Trainer:\n    def step(self, loss):\n        loss.backward()\ntrainer = Trainer()\n"
    + LOOP + LOSS + CLEAR + _otherwise("trainer.step(loss)") + STEP,
    "GL513-added-later": START + "model.extra = None\n" + ONE + "model.extra = nn.Linear(6, 1)\n" + ONCE
    + _otherwise("optimizer.add_param_group({'params': model.extra.parameters()})", "") + LOOP
    + "    loss = (model.extra(x) + model[1](model[0](x))).mean()\n" + END,
    "GL513-made-again": START + "model.extra = None\n" + ONE + "model.extra = nn.Linear(6, 1)\n" + ONCE
    + _otherwise(ONE.strip(),
        "") + LOOP + "    loss = (model.extra(x) + model[1](model[0](x))).mean()\n" + END,
    "GL514-added": PLAIN + BOTH + ONCE
    + _otherwise("optimizer.add_param_group({'params': model.rest[0].parameters()})",
        "") + LOOP + LOSS + END,
}  # fmt: skip
PASSED_IN = """import torch


def train(model, optimizer, scaler, loader, quiet):
    for x in loader:
        pass
WORK        loss = model(x).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
"""
WITH_SCALER = {  # which is disabled where `quiet` is true, for all that is known
    "GL403-unscaled": PASSED_IN + _otherwise("scaler.unscale_(optimizer)",
        "        ").replace("args.", "")
    + "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
    + "        scaler.step(optimizer)\n        scaler.update()\n",
    "GL404-stepped": PASSED_IN + "        if quiet:\n            optimizer.step()\n        else:\n"
    + "            scaler.step(optimizer)\n            scaler.update()\n",
    "GL405-updated": PASSED_IN + "        scaler.step(optimizer)\n"
    + _otherwise("scaler.update()", "        ").replace("args.", ""),
}  # fmt: skip


def _said(program: str, folder: pathlib.Path, work: str) -> list[tuple[str, str]]:
    path = folder / "train.py"
    path.write_text(program.replace("WORK", work))
    found = analysis.analyze([path], select=lambda code: True).findings
    return [
        (finding.code, finding.message) for finding in found if finding.severity.label != "note"
    ]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("size", ["small", "heavy"])
def test_a_program_that_trains_is_silent(name: str, size: str, tmp_path: pathlib.Path) -> None:
    assert _said(PROGRAMS[name], tmp_path, WORK if size == "heavy" else "") == []


@pytest.mark.parametrize("name", WITH_SCALER)
@pytest.mark.parametrize("size", ["small", "heavy"])
def test_a_function_is_silent_that_does_right_where_the_scaler_is_on(
    name: str, size: str, tmp_path: pathlib.Path
) -> None:
    work = textwrap.indent(WORK, "    ") if size == "heavy" else ""
    assert _said(WITH_SCALER[name], tmp_path, work) == []


@pytest.mark.parametrize("call", ["advance(optimizer)", "trainer.advance()", "trainer.advance(x)"])
@pytest.mark.parametrize("work", ["", WORK], ids=["small", "heavy"])
def test_what_is_out_of_view_may_do_anything_to_what_it_is_given(
    call: str, work: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    text = (
        START
        + BOTH
        + "from other import advance, trainer\n"
        + LOOP
        + LOSS
        + CLEAR
        + BACK
        + _otherwise(call)
    )
    path.write_text(text.replace("WORK", work))
    assert [
        each.code
        for each in analysis.analyze([path], select=lambda code: True).findings
        if each.severity.label != "note"
    ] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_trains(name: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAMS[name].replace("WORK", ""))
    record = observe(tmp_path)
    assert not record.exception
    assert record.steps or name == "GL511-updated-by-hand"
