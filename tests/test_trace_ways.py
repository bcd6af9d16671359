"""Ways into a trace: a part of a program, a notebook, cells of IPython, options, a signal; lists
for the assertion.
"""

from __future__ import annotations

import json
import pathlib
import textwrap

from traced import plain, trace

PART = """
import sys, types
import torch
import gradlint

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step():
    loss = model(torch.ones(4)).sum()
    optimizer.zero_grad()
    loss.detach().backward()

with gradlint.trace() as run:
    for _ in range(5):
        model(torch.ones(4)).sum().backward()
        optimizer.step()
print([finding.code for finding in run.findings], run.steps, run.error)
print("error[GL501]" in str(run))
with gradlint.trace(steps=2) as run:
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.ones(4)).sum().backward()
        optimizer.step()
print(run.findings, run.steps)
try:
    with gradlint.trace() as run:
        step()
except RuntimeError:
    print([finding.code for finding in run.findings], run.error.partition(":")[0])
print([finding.code for finding in gradlint.trace(step).findings])

import linecache
source = "def loss():\\n    return model(torch.ones(4)).sum().detach()\\n"
linecache.cache["<cell>"] = (len(source), None, source.splitlines(True), "<cell>")
shell = types.SimpleNamespace(compile=types.SimpleNamespace(_filename_map={"<cell>": 7}))
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
exec(compile(source, "<cell>", "exec"))
with gradlint.trace() as run:
    loss().requires_grad_().backward()
print("note: In[7]:2:12: the gradient was lost here" in str(run))
"""


def test_a_part_of_a_program_is_traced_and_cells_go_by_their_numbers(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "part.py").write_text(PART)
    ran = plain(tmp_path, "part.py")
    assert ran.out.splitlines() == [
        "['GL501'] 5 ", "True", "[] 2", "['GL102'] RuntimeError", "['GL102']", "True",
    ], ran.err  # fmt: skip


def notebook(*cells: str) -> str:
    """A notebook of these cells of code."""
    told: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": c}
        for c in cells
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": told})


def test_a_notebook_runs_and_its_cells_are_named(tmp_path: pathlib.Path) -> None:
    setup = "%matplotlib inline\nimport torch\nmodel = torch.nn.Linear(4, 1)"
    setup += "\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
    train = (
        "for _ in range(3):\n    loss = model(torch.ones(4)).detach().sum()\n"
        "    loss.requires_grad_().backward()\n"
    )
    train += "    optimizer.step()  # gradlint: ignore[GL501] -- none to clear\nprint(__name__)"
    (tmp_path / "train.ipynb").write_text(notebook(setup, train))
    ran = trace(tmp_path, "--confirm", "train.ipynb")
    assert (ran.out, ran.code) == ("__main__\n", 1), ran.err
    assert "train.ipynb:cell 2:" in ran.err
    assert "3 |     loss.requires_grad_().backward()" in ran.err
    assert "confirmed: the run shows it" in ran.err
    told = json.loads(trace(tmp_path, "--output-format", "json", "train.ipynb").out)
    assert {(found["cell"], found["location"]["row"]) for found in told["findings"]} <= {
        (2, 2),
        (2, 3),
    }


def test_an_unknown_option_before_the_script_is_a_mistake(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tool.py").write_text("import sys\nprint(sys.argv[1:])\n")
    wrong = trace(tmp_path, "--levle", "watch", "tool.py")
    assert (wrong.code, wrong.out) == (2, "")
    assert "no such option '--levle'" in wrong.err
    words = "['--levle', '-x', '--steps', '3']\n"
    assert (
        trace(tmp_path, "--level", "watch", "tool.py", "--levle", "-x", "--steps", "3").out == words
    )
    assert (
        trace(tmp_path, "--level=watch", "-m", "tool", "--levle", "-x", "--steps", "3").out == words
    )


def test_a_run_that_is_told_to_end_reports_and_ends_as_it_does_alone(
    tmp_path: pathlib.Path,
) -> None:
    text = """
    import os, signal
    import torch
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        for number in range(20):
            model(torch.ones(4)).sum().backward()
            optimizer.step()
            if number == 9:
                os.kill(os.getpid(), signal.SIGTERM)
    finally:
        print("more", flush=True)
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(text))
    ran = trace(tmp_path, "train.py")
    assert (ran.code, ran.out) == (-15, "")
    assert "10 optimizer steps, ended by SIGTERM" in ran.err
    assert "error[GL501]" in ran.err
    (tmp_path / "train.py").write_text(
        textwrap.dedent(text).replace("try:", "print(signal.signal(15, lambda *_: exit(3)))\ntry:")
    )
    ran = trace(tmp_path, "train.py")
    assert (ran.code, ran.out) == (3, "0\nmore\n")  # what stands for SIG_DFL


def test_the_assertion_takes_lists_and_a_test_that_fails_inside_is_shown(
    tmp_path: pathlib.Path,
) -> None:
    text = """
    import traceback
    import torch
    from gradlint.trace.flow import recording

    with recording() as flows:
        one, two = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        losses = [one(torch.ones(3)).sum(), two(torch.ones(3)).detach().sum()]
        flows(losses, [one])
        try:
            flows(losses, {"one": one, "two": two}, except_for=["two.bias"])
        except AssertionError as error:
            print(error)
        try:
            flows(3, one)
        except TypeError as error:
            entry = error.__traceback__
            while entry is not None:  # as pytest goes through them
                print(traceback.extract_tb(entry, limit=1)[0].filename == entry.tb_frame.f_code.co_filename)
                entry = entry.tb_next
    """
    (tmp_path / "flows.py").write_text(textwrap.dedent(text))
    ran = plain(tmp_path, "flows.py")
    first, cut, line, *entries = ran.out.splitlines()
    assert first == "no gradient reaches 1 of 3 parameters: two.weight", ran.err
    assert cut == "  flows.py:8:41: detached from the graph"
    assert line.strip() == "losses = [one(torch.ones(3)).sum(), two(torch.ones(3)).detach().sum()]"
    assert len(entries) > 1
    assert set(entries) == {"True"}


FRAMEWORKS = {
    "lightning/__init__.py": "",
    "lightning/pytorch.py": "class Callback: pass",
    "transformers.py": "class TrainerCallback: pass",
    "accelerate/__init__.py": "",
    "accelerate/tracking.py": "class GeneralTracker:\n    def __init__(self):\n"
    "        assert self.name == 'gradlint'",
}
FITTED = """
import torch
from gradlint import callbacks

model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train():
    for _ in range(3):
        loss = model[1](model[0](torch.ones(4)).detach()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

def tell(run):
    print([finding.message.partition(": ")[2] for finding in run.findings], run.steps, run.error)

of_lightning = callbacks.lightning(tell)
for stage, raised in (("validate", None), ("fit", None), ("fit", ValueError("no"))):
    of_lightning.setup(None, model, stage=stage)
    train()
    if raised:
        of_lightning.on_exception(None, model, raised)
    of_lightning.teardown(None, model, stage=stage)
of_transformers = callbacks.transformers(tell, select=["GL5"])
of_transformers.on_train_begin(None, None, None, model=model)
train()
of_transformers.on_train_end(None, None, None)
of_accelerate = callbacks.accelerate(level="record")
of_accelerate.start()
of_accelerate.store_init_configuration({})
train()
of_accelerate.log({"loss": 1}, step=1)
of_accelerate.finish()
"""


def test_callbacks_watch_what_a_framework_trains(tmp_path: pathlib.Path) -> None:
    for name, text in FRAMEWORKS.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    (tmp_path / "fit.py").write_text(FITTED)
    ran = plain(tmp_path, "fit.py")
    cut = "'no gradient comes back to `model.0.weight` and `model.0.bias`, which `sgd` is to train'"
    assert ran.out.splitlines() == [f"[{cut}] 3 ", f"[{cut}] 3 ValueError: no", "[] 3 "], ran.err
    assert "warning[GL106]" in ran.err


PARTS = """
import torch
from torch import nn
from .scale import half

class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin
    def forward(self, one, other, label):
        distance = (one - other).pow(2).sum(1).detach()
        return (label * distance + (1 - label) * (self.margin - distance).clamp(min=0)).mean()

class Remembers(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.cell = nn.Linear(size, size)
        self.register_buffer("memory", torch.zeros(1, size))
        self.last = None
    def forward(self, x):
        out = torch.tanh(self.cell(x) + self.memory)
        self.memory = out.mean(0, keepdim=True)
        return {"loss": out.sum(), "shown": half(out)}

class Shows(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.last = nn.Linear(4, 4), None
    def forward(self, x, mask=None):
        before = 0 if self.last is None else self.last
        self.last = torch.tanh(self.cell(x) + before)
        return [self.last, None if mask is None else self.last[mask]]

class Grows(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(size))
        self.weight += 1

def softened(x: torch.Tensor):
    return torch.where(x > 0, x.log(), torch.zeros_like(x))

def norm(x):
    x.exp_().add_(1)
    return x
"""


def _part(folder: pathlib.Path, name: str, given: str = "") -> list[str]:
    """What a trace of a part finds, and what it makes of the static findings there."""
    ran = trace(
        folder,
        "--confirm",
        "--output-format",
        "json",
        "--part",
        f"net/parts.py:{name}",
        "--args",
        given,
    )
    assert ran.out, ran.err
    found = [f"{each['code']} {each['location']['row']}" for each in ran.report["findings"]]
    return [*found, *(f"{each['code']} {each['verdict']}" for each in ran.report["confirmations"])]


def test_a_part_is_driven_by_its_contract(tmp_path: pathlib.Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "__init__.py").touch()
    (tmp_path / "net" / "scale.py").write_text("def half(x):\n    return x / 2\n")
    (tmp_path / "net" / "parts.py").write_text(PARTS)
    pairs = "torch.randn(3, 4), torch.randn(3, 4), label=torch.ones(3)"
    assert _part(tmp_path, "ContrastiveLoss", pairs) == ["GL102 11", "GL102 confirmed"]
    assert _part(tmp_path, "Remembers(4)", "torch.randn(3, 4)") == ["GL507 22", "GL507 confirmed"]
    assert _part(tmp_path, "Shows", "torch.randn(3, 4)") == []  # whoever calls it puts `last` back
    assert _part(tmp_path, "Grows", "3") == ["GL202 38", "GL202 confirmed"]
    assert _part(tmp_path, "softened", "torch.tensor([0.0, 1.0])") == [
        "GL701 41",
        "GL701 confirmed",
    ]
    assert _part(tmp_path, "norm", "[torch.randn(3)][0]") == ["GL201 44"]


def test_a_part_that_cannot_be_driven_is_the_users_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS.replace("from .scale import half", ""))
    for asked, given, told in (
        ("nowhere.py:Shows", "", "name a file and what is in it"),
        ("parts.py:Missing", "", "name 'Missing' is not defined"),
        ("parts.py:Remembers", "", "say how it is made: Remembers(…)"),
        ("parts.py:Shows", "", "missing a required argument: 'x'; --args says"),
    ):
        ran = trace(tmp_path, "--part", asked, "--args", given)
        assert (ran.code, told in ran.err) == (2, True), ran.err
    ran = trace(tmp_path, "--args", "3", "parts.py")
    assert ran.code == 2
