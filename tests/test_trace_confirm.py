"""`gradlint trace --confirm`: what a run says of the findings of `gradlint check`."""

from __future__ import annotations

import json
import pathlib
import random
import textwrap

import pytest
from programs import Case, Place, cases
from traced import trace

SAMPLE = 20
HEAD = """
import sys
sys.path.insert(0, "site-packages")
import torch
import torch.nn.functional as F
import patched
torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 1)
"""
STEP = "optimizer.zero_grad()\nloss.backward()\noptimizer.step()\n"
# what no path does, as far as the source shows, and what a library that is not in view makes of it
NEVER = {
    "GL102": (
        "loss = (head(encoder(x)) - y).square().mean().detach()\n" + STEP,
        "torch.Tensor.detach = lambda self: self.clone()",
    ),
    "GL106": (
        "loss = (head(encoder(x).detach()) - y).square().mean()\n" + STEP,
        "torch.Tensor.detach = lambda self: self.clone()",
    ),
    "GL111": (
        "loss = (head(encoder(x)) - y).square().mean()\n"
            "aux_loss = (head(encoder(-x)) - y).abs().mean()\n" + STEP,
        """
        mean, losses = torch.Tensor.mean, []
        def kept(self):
            losses.append(mean(self))
            return losses[-1]
        torch.Tensor.mean = kept
        torch.Tensor.backward = lambda self, **_: torch.autograd.backward([sum(losses)])
        """,
    ),
    "GL511": (
        "for _ in range(3):\n    F.mse_loss(head(encoder(x)), y).backward()\n"
            "    optimizer.zero_grad()\n",
        """
        clear = torch.optim.Optimizer.zero_grad
        def zero_grad(self):
            self.step()
            clear(self)
        torch.optim.Optimizer.zero_grad = zero_grad
        """,
    ),
}  # fmt: skip


def verdicts(folder: pathlib.Path, body: str, library: str = "") -> list[tuple[str, str, str]]:
    """What a run of a program says of each finding: its code, the verdict, the reason."""
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "patched.py").write_text(
        "import torch\n" + textwrap.dedent(library)
    )
    (folder / "train.py").write_text(HEAD + textwrap.dedent(body))
    ran = trace(
        folder, "--confirm", "--output-format", "json", "--output-file", "report.json", "train.py"
    )
    assert (folder / "report.json").exists(), ran.err
    found = json.loads((folder / "report.json").read_text())["confirmations"]
    return [(each["code"], each["verdict"], each["reason"]) for each in found]


@pytest.mark.parametrize("code", NEVER)
def test_what_never_happens_is_refuted_by_its_happening(code: str, tmp_path: pathlib.Path) -> None:
    body, library = NEVER[code]
    assert [each[:2] for each in verdicts(tmp_path, body, library)] == [(code, "refuted")]


@pytest.mark.parametrize("code", NEVER)
def test_what_never_happens_is_confirmed_where_it_does_not(
    code: str, tmp_path: pathlib.Path
) -> None:
    assert [each[:2] for each in verdicts(tmp_path, NEVER[code][0])] == [(code, "confirmed")]


def test_a_cut_of_one_side_of_a_branch_is_not_refuted_by_the_other(tmp_path: pathlib.Path) -> None:
    body = """
    loss = (head(encoder(x)) - y).square().mean()
    if "--frozen" in sys.argv:
        loss = loss.detach()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    """
    [(code, verdict, reason)] = verdicts(tmp_path, body)
    assert (code, verdict) == ("GL102", "not shown")
    assert "did not run" in reason


def test_a_mean_over_nothing_is_not_refuted_by_a_batch_that_has_something(
    tmp_path: pathlib.Path,
) -> None:
    body = """
    keep = y[:, 0] > 0
    loss = F.mse_loss(head(encoder(x[keep])), y[keep])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    """
    for code, verdict, reason in verdicts(tmp_path, body):
        assert (code, verdict) == ("GL602", "not shown")
        assert "this line ran" in reason


def test_what_no_run_shows_is_said_to_be_so(tmp_path: pathlib.Path) -> None:
    body = "with torch.cuda.amp.autocast(enabled=False):\n    print(head(encoder(x)).sum() > 0)\n"
    assert ("GL402", "not shown", "a run does not show this") in verdicts(tmp_path, body)


def test_a_run_that_ends_in_the_error_of_a_finding_confirms_it_unexplained(
    tmp_path: pathlib.Path,
) -> None:
    body = """
    hidden = encoder(x)
    out = hidden.exp()
    out += 1
    loss = head(out).mean()
    optimizer.zero_grad()
    loss.backward()
    """
    library = """
    from gradlint.trace import inplace
    inplace.Writes.wrote = lambda *_: None
    """
    assert [each[:2] for each in verdicts(tmp_path, body, library)] == [("GL201", "confirmed")]


def test_the_files_of_the_program_are_those_that_are_checked(tmp_path: pathlib.Path) -> None:
    """Neither the rules, installed from a checkout, nor the modules of torch that have no file."""
    assert verdicts(tmp_path, "import torch.ops\nprint(torch.ops)\n") == []


def _sample() -> list[Case]:
    runs = [
        case for case in cases() if (case.folder / "before").is_dir() and not case.spec.get("needs")
    ]
    return random.Random(27).sample(runs, SAMPLE)


@pytest.mark.parametrize("case", _sample(), ids=lambda case: case.name)
def test_no_run_refutes_a_bug_that_is_there(case: Case, tmp_path: pathlib.Path) -> None:
    folder, report = case.folder / "before", tmp_path / "report.json"
    trace(folder, "--confirm", "--output-format", "json", "--output-file", str(report), case.entry)
    expected = {
        m.place for program in case.programs()[:1] for m in program.markers() if m.kind == "expect"
    }
    found = json.loads(report.read_text())["confirmations"]
    assert not expected & {_place(each, folder) for each in found if each["verdict"] == "refuted"}


def _place(finding: dict[str, object], folder: pathlib.Path) -> Place:
    file = (folder / str(finding["filename"])).resolve().relative_to(folder.resolve()).as_posix()
    location = finding["location"]
    assert isinstance(location, dict)
    return Place(file, location["row"], str(finding["code"]))
