"""What a program can make `check` do is bounded, in steps and not in seconds; where a bound is met,
a gap says so.
"""

from __future__ import annotations

import ast
import pathlib

import pytest
from bombs import programs
from commandline import bounded

from gradlint import analysis, analyzer, library
from gradlint.interpret import calls, calm, entering, machine, paths, running, session, sweeps
from gradlint.program import filling, modules
from gradlint.program.entries import entries
from gradlint.room import roomy
from gradlint.source import parse

SECONDS = 300  # of CPU; they take some thirty together


def test_short_programs_of_endless_work_are_checked_to_their_end_or_leave_a_named_gap(
    tmp_path: pathlib.Path,
) -> None:
    for name, text in programs().items():
        (tmp_path / f"{name}.py").write_text(text)
    command = [
        "check",
        "--no-cache",
        "--jobs",
        "1",
        "--gaps",
        "--select",
        "GL102",
        "--output-format",
        "concise",
        ".",
    ]
    ran = bounded(tmp_path, *command, seconds=SECONDS)
    assert ran.returncode == 1, ran.stderr
    assert "gap[internal]" not in ran.stderr
    found = {line.partition(":")[0] for line in ran.stdout.splitlines() if "error[GL102]" in line}
    left = {line.partition(":")[0] for line in ran.stderr.splitlines() if "gap[" in line}
    assert {f"{name}.py" for name in programs()} <= found | left
    assert len(found) > len(programs()) * 0.8


def test_star_imports_of_star_imports_are_searched_once_each(tmp_path: pathlib.Path) -> None:
    # each imports all names of all that follow: there are 2 ** 28 ways from the first to the last
    modules = 30
    for number in range(modules):
        stars = (f"from m{later} import *\n" for later in range(number + 1, modules))
        (tmp_path / f"m{number}.py").write_text(
            "".join(stars) or "def final(loss):\n    return loss.detach()\n"
        )
    (tmp_path / "train.py").write_text(
        "import torch\nfrom m0 import *\n\n"
        "model = torch.nn.Linear(2, 1)\n"
        "loss = final(model(torch.ones(1, 2)).sum() + nowhere)\nloss.backward()\n"
    )
    command = [
        "check",
        "--no-cache",
        "--jobs",
        "1",
        "--select",
        "GL102",
        "--output-format",
        "concise",
        ".",
    ]
    ran = bounded(tmp_path, *command, seconds=60)
    assert "m29.py:2:12: error[GL102]" in ran.stdout, ran.stderr


BRANCHED = """\
import sys
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
names = []
{branches}
for number in range(8):
    optimizer.zero_grad()
    output = model(torch.rand(4, 3))
    if len(sys.argv) > 99:
        output = output.detach()
    loss = output.square().mean()
    loss.backward()
    optimizer.step()
"""
BRANCH = "if len(sys.argv) > {n}:\n    names.append('run {n}')"


def checked(folder: pathlib.Path) -> tuple[int, list[str], list[str]]:
    """The number of paths of the program, the codes of what is found in it, and its gaps."""
    program = folder / "train.py"
    program.write_text(
        BRANCHED.format(branches="\n".join(BRANCH.format(n=n) for n in range(1, 15)))
    )
    found = analysis.analyze([program], select=lambda _: True)
    run = sum(1 for _ in analyzer.tapes_of(program))
    return run, [finding.code for finding in found.findings], [gap.kind for gap in found.gaps]


def test_branches_that_do_not_speak_of_training_cost_no_more_than_enough(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_of_them, codes, gaps = checked(tmp_path)
    assert (codes, gaps) == (["GL102"], [])
    monkeypatch.setattr(paths, "ENOUGH", (paths.ENOUGH[0], 0, 0, 0, 0))
    monkeypatch.setattr(sweeps, "IN_VAIN", 0)
    few, codes, gaps = checked(tmp_path)
    assert (few, codes, gaps) == (2, ["GL102"], ["paths"])
    assert all_of_them > few


def read(path: pathlib.Path) -> tuple[str, ast.Module] | None:
    """The text and tree of a file."""
    parsed = parse.parse(str(path), path.read_text())
    return (parsed.text, parsed.tree) if isinstance(parsed, parse.Source) else None


def steps(program: pathlib.Path) -> int:
    """The statements and expressions of all paths of all entries of a file."""
    library.load()
    parsed = parse.parse(str(program), program.read_text())
    assert isinstance(parsed, parse.Source)
    taken = 0
    for entry in entries(parsed):
        own = session.Session(modules.Program(read))
        running.run_entry(own.program, program, entry, own)
        taken += own.steps
    return taken


NESTED = """\
import torch

def added(part):
    if isinstance(part, dict):
        return sum(added(each) for each in part.values())
    return part.sum()

def train(model, optimizer, loader):
    for batch in loader:
        optimizer.zero_grad()
        loss = (added(batch) + model(batch).mean()).detach()
        loss.backward()
        optimizer.step()
"""
REGISTRY = """\
import torch

MODELS = {{}}

def register(model):
    name = model.__name__
    if name not in MODELS:
        MODELS[name] = model
    return model

{models}
"""
REGISTERED = """\
import torch
from models import MODELS

model = MODELS["model150"]()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.rand(2, 4)).mean().detach()
    loss.backward()
    optimizer.step()
"""
MODEL = "@register\ndef model{n}():\n    return torch.nn.Linear(4, 1)\n"


def test_a_recursion_into_what_is_unknown_ends_where_a_level_is_like_the_last(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "train.py"
    program.write_text(NESTED)
    short = steps(program)
    assert [
        each.code
        for each in analysis.analyze([program], select=lambda code: code == "GL102").findings
    ] == ["GL102"]
    monkeypatch.setattr(calls, "_goes_astray", lambda *_: False)
    monkeypatch.setattr(calm, "SHARE", 1)  # else its later calls are not run at all
    assert steps(program) > 2 * short


def test_a_registry_is_filled_in_part_and_left_open(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "train.py"
    program.write_text(REGISTERED)
    (tmp_path / "models.py").write_text(
        REGISTRY.format(models="\n".join(MODEL.format(n=n) for n in range(200)))
    )
    short = steps(program)
    assert [
        each.code
        for each in analysis.analyze([program], select=lambda code: code == "GL102").findings
    ] == ["GL102"]
    monkeypatch.setattr(filling, "MOST_FILLING", 200)
    assert steps(program) > 2 * short


SILENT = """\
import work

work.go(5)
"""
BUSY = """\
import torch

def go(width):
    model = torch.nn.Linear(width, 1)
    {prints}
    loss = model(torch.rand(2, width)).mean().detach()
    loss.backward()
"""


def test_what_a_script_that_says_nothing_of_training_is_given_up_in_is_entered_by_itself(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "script.py").write_text(SILENT)
    (tmp_path / "work.py").write_text(BUSY.format(prints="print(0)"))
    files = [tmp_path / "script.py", tmp_path / "work.py"]
    ran = analysis.analyze(files, select=lambda code: code == "GL102")
    assert ([each.code for each in ran.findings], ran.gaps) == (["GL102"], ())
    (tmp_path / "work.py").write_text(BUSY.format(prints="\n    ".join(["print(0)"] * 3_000)))
    ran = analysis.analyze(files, select=lambda code: code == "GL102")
    assert [each.code for each in ran.findings] == ["GL102"]
    assert "steps" in {gap.kind for gap in ran.gaps}


UNFED = """\
import sys
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.rand(4, 2, 3):
    loss = model(x).square().mean()
    {}
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
"""


def test_nothing_is_said_to_be_on_no_path_where_branches_of_training_are_left(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(filled: str) -> list[str]:
        program = tmp_path / "train.py"
        program.write_text(UNFED.format(filled))
        return [
            each.code
            for each in analysis.analyze([program], select=lambda code: code == "GL511").findings
        ]

    branch = "if sys.argv[1:]:\n        print('not now')\n    else:\n        loss.backward()"
    assert (said("pass"), said(branch)) == (["GL511"], [])
    monkeypatch.setattr(paths, "ENOUGH", (0, 0, 0, 0, 0))
    assert (said("pass"), said(branch)) == (["GL511"], [])


MADE_LATE = """\
import torch
from torch import nn

def network(kind):
    sizes = {'small': 8, 'large': 64}
    if 'small' in kind:
        return nn.Linear(4, 1)
    for known in sizes:
        if known in kind:
            return nn.Sequential(nn.Linear(4, sizes[known]), nn.ReLU(), nn.Linear(sizes[known], 1))
    raise ValueError(kind)

class Trainer:
    def __init__(self, kind):
        self.net = network(kind)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.every = 6

    def fit(self, loader):
        for number, (x, y) in enumerate(loader):
            loss = (self.net(x) - y).pow(2).mean() / self.every
            loss.backward()
            if (number + 1) % self.every == 0:
                self.optimizer.step()
"""


def test_a_method_is_entered_again_where_its_object_was_made_only_before_the_restart(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "train.py"
    program.write_text(MADE_LATE)
    assert [each.code for each in analysis.analyze([program], select=lambda _: True).findings] == [
        "GL501",
        "GL504",
    ]
    monkeypatch.setattr(running, "MOST_UNTRAINED", 50)
    assert [each.code for each in analysis.analyze([program], select=lambda _: True).findings] == [
        "GL501",
        "GL504",
    ]


SPOKEN = {
    "loss.backward()": True,
    "trainer.fit(data)": True,
    "with autocast():\n    pass": True,
    "from torch.autograd import grad": True,
    "class Model:\n    def training_step(self, batch):\n        return batch": True,
    "torch.autograd.grad(loss, x)": True,
    "search(backward_window=3)": False,  # what speech synthesis calls a part of its alignment
    "print('set torch.autograd.set_detect_anomaly')": False,
    "# then loss.backward()": False,
    "torch.autograd.set_detect_anomaly(True)": False,
    "fit(data)": False,
}


@pytest.mark.parametrize("code", SPOKEN)
def test_a_script_speaks_of_training_by_the_names_in_its_code(code: str) -> None:
    parsed = parse.parse("script.py", f"{code}\nprint(1)\n")
    assert isinstance(parsed, parse.Source)
    (script,) = [entry for entry in entries(parsed) if not entry.function]
    assert script.trains is SPOKEN[code]


ASIDE = """\
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        {prints}
        self.net = torch.nn.Linear(width, 1)

    def score(self, x):
        with torch.cuda.amp.autocast():
            return self.net(x)
"""


def test_of_what_trains_nothing_a_constructor_is_given_up_and_not_the_method(
    tmp_path: pathlib.Path,
) -> None:
    program = tmp_path / "model.py"
    program.write_text(
        ASIDE.format(prints="\n        ".join(["print(0)"] * (entering.MOST_PREPARING + 10)))
    )
    ran = analysis.analyze([program], select=lambda code: code == "GL402", without_parts=[program])
    assert [each.code for each in ran.findings] == ["GL402"]
    assert [gap.kind for gap in ran.gaps] == ["steps"]
    program.write_text(ASIDE.format(prints="print(0)"))
    ran = analysis.analyze([program], select=lambda code: code == "GL402", without_parts=[program])
    assert ([each.code for each in ran.findings], ran.gaps) == (["GL402"], ())


TESTED = """\
import torch

def {name}():
    model = torch.nn.Linear(3, 1)
    {prints}
    loss = model(torch.rand(2, 3)).mean().detach()
    loss.backward()
"""


def test_a_test_ends_sooner_than_what_it_tests(tmp_path: pathlib.Path) -> None:
    prints = "\n    ".join(["print(0)"] * (machine.MAX_OF_TESTS // 3))
    for name, found in (("test_it", []), ("train", ["GL102"])):
        program = tmp_path / f"{name}.py"
        program.write_text(TESTED.format(name=name, prints=prints))
        ran = analysis.analyze([program], select=lambda code: code == "GL102")
        assert [each.code for each in ran.findings] == found


@roomy
def _calls_from(depth: int) -> int:
    """How often the system was asked for memory while calls were made at every depth up to this
    one.
    """
    resource = pytest.importorskip("resource")

    def go_down(left: int) -> None:
        for _ in range(20):
            go_back()
        if left:
            go_down(left - 1)

    def go_back() -> None:
        return None

    go_down(depth)  # what is needed once is there now
    before: int = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    go_down(depth)
    after: int = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return after - before


def test_nested_calls_take_no_memory_from_the_system_wherever_they_are_made() -> None:
    assert _calls_from(500) < 20  # without room some hundred


GUARDED = """\
import sys
from contextlib import contextmanager
import torch

NAMES = [f"name{{n}}" for n in range(60)]

@contextmanager
def guarded():
    originals = {{}}
    for module in ("torch.nn.init", "torch.nn.modules.linear", "torch.nn.modules.conv"):
        for name in NAMES:
            if hasattr(sys.modules[module], name):
                originals[module, name] = getattr(sys.modules[module], name)
                setattr(sys.modules[module], name, print)
    {event}
    yield
    for (module, name), function in originals.items():
        setattr(sys.modules[module], name, function)

def model():
    with guarded():
        return torch.nn.Linear(4, 1)

models = [model(), model(), model(), model(), model(), model(), model(), model()]
optimizer = torch.optim.SGD([each.weight for each in models], lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    with guarded():
        loss = sum(each(torch.rand(2, 4)).mean() for each in models).detach()
    loss.backward()
    optimizer.step()
"""


def test_a_context_that_takes_many_steps_of_its_own_is_not_run_again(
    tmp_path: pathlib.Path,
) -> None:
    program = tmp_path / "train.py"
    program.write_text(GUARDED.format(event=""))
    short = steps(program)
    ran = analysis.analyze([program], select=lambda code: code == "GL102")
    assert [each.code for each in ran.findings] == ["GL102"]
    program.write_text(GUARDED.format(event="torch.set_grad_enabled(True)"))
    assert steps(program) > 1.3 * short  # what may switch the mode is run each time
