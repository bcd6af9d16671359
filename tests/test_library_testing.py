"""What tests want to raise: a backward in `pytest.raises` is none that the test takes to succeed."""

from __future__ import annotations

import pathlib

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
    behind = next(number for number, line in enumerate(TESTS.splitlines(), 1) if "behind the block" in line)
    assert [(finding.code, finding.at.line) for finding in analysis.findings] == [("GL102", behind)]
    assert not analysis.unreached
