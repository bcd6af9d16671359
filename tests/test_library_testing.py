"""Tests: what they want to raise, the cases that they are run for, the sizes of what they try."""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

TESTS = """\
import unittest
import pytest
import torch

net = torch.nn.Linear(3, 3)

def cut():
    return net(torch.ones(3)).mean().detach()

def test_a_cut_loss_raises():
    loss = cut()
    with pytest.raises(RuntimeError, match="does not require grad") as raised:
        loss.backward()
    assert raised

def test_a_cut_output_has_no_gradients():
    with pytest.raises(RuntimeError):
        torch.autograd.grad(cut(), list(net.parameters()))

class TestCut(unittest.TestCase):
    def test_raises(self):
        loss = cut()
        with self.assertRaisesRegex(RuntimeError, "grad"):
            loss.backward()
        self.assertRaises(RuntimeError, loss.backward)

def test_of_a_whole_loss():
    loss = net(torch.ones(3)).mean()
    loss.backward()
    with pytest.raises(RuntimeError):
        loss.backward()
    net(torch.ones(3)).mean().detach().backward()  # behind the block
"""


def test_what_a_test_wants_to_raise_is_no_finding(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "test_cut.py"
    path.write_text(TESTS, encoding="utf-8")
    analysis = analyze([path], select=lambda _: True)
    behind = next(
        number for number, line in enumerate(TESTS.splitlines(), 1) if "behind the block" in line
    )
    assert [(finding.code, finding.at.line) for finding in analysis.findings] == [("GL102", behind)]
    assert not analysis.unreached


CASES = """\
import enum
import pytest
import torch

class Grad(enum.Enum):
    ON = "on"
    OFF = "off"

class Result(enum.Enum):
    NONE = 0
    HAS = 1

net = torch.nn.Linear(3, 3)

@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(("grad", "result"), [{}, (Grad.OFF, Result.NONE), (Grad.ON, Result.HAS)])
def test_modes(grad, result, twice):
    if grad is Grad.ON:
        out = net(torch.ones(3))
    else:
        with torch.no_grad():
            out = net(torch.ones(3))
    if result == Result.HAS:
        out.sum().backward()
"""


@pytest.mark.parametrize(
    ("case", "codes"),
    [("(Grad.OFF, Result.NONE)", []), ("(Grad.OFF, Result.HAS)", ["GL103"]), ("CASE", ["GL103"])],
)
def test_members_of_enums_come_together_as_the_cases_give_them(
    case: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "test_modes.py"
    path.write_text(CASES.replace("{}", case), encoding="utf-8")
    assert [finding.code for finding in analyze([path], select=lambda _: True).findings] == codes


SIZES = """\
import torch

def smooth(planes):
    total = None
    for plane in planes:
        if plane.shape[-2] < {}:
            continue
        part = (plane[..., 1:, :] - plane[..., :-1, :]).square().mean()
        total = part if total is None else total + part
    return torch.zeros(()) if total is None else total

def varied(x):
    if x.shape[0] <= {}:
        return torch.zeros(1)
    return x.diff(dim=0).square().mean()

def test_sizes():
    x = torch.rand(3, 5, 4, requires_grad=True)
    smooth([x]).backward()
    varied(x).backward()
"""


@pytest.mark.parametrize(("height", "length", "told"), [(3, 1, 0), (6, 1, 1), (3, 3, 1)])
def test_sizes_that_are_written_down_answer_questions(
    height: int, length: int, told: int, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "test_sizes.py"
    path.write_text(SIZES.format(height, length), encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL101").findings
    assert len(found) == told


MASKS = """\
import torch

def pieces(x):
    left, right = x < -1, x > 1
    middle = ~(left | right)
    out = torch.empty_like(x)
    if middle.any():
        out[middle] = x[middle].exp()
    if left.any():
        out[left] = x[left].square()
    if {}:
        out[right] = x[right].sqrt()
    return out.sum()

for x in torch.randn(3, 4):
    pieces(x.requires_grad_()).backward()
"""


@pytest.mark.parametrize(("asked", "told"), [("right.any()", 0), ("(x > 1).all()", 1)])
def test_one_of_the_masks_that_are_the_whole_together_selects_something(
    asked: str, told: int, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "pieces.py"
    path.write_text(MASKS.format(asked), encoding="utf-8")
    assert len(analyze([path], select=lambda code: code == "GL101").findings) == told
