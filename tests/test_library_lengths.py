"""GL504 where the length of what is looped over is written down, in whatever way the program comes
by it.
"""

from __future__ import annotations

import itertools
import pathlib

import pytest

from gradlint.analysis import analyze

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def train():
    {}
    m = nn.Linear(4, 1)
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    for {}:
        (m(torch.ones(3, 4)).mean() / {}).backward()
        if {}:
            o.step()
            o.zero_grad()

"""
LISTS = """\
data = torch.randn({}, 3, 4)
data = list(torch.randn({}, 3, 4))
data = [torch.randn(3, 4) for _ in range({})]
data = [torch.randn(3, 4)] * {}
data = list(range({}))
data = torch.randn(2 * {}, 4).split(2)
data = DataLoader(TensorDataset(torch.randn(2 * {}, 4)), batch_size=2)
data = TensorDataset(torch.randn({}, 3, 4))
""".splitlines()
COUNTS = """\
i in range(len(data))
i, _ in enumerate(data)
""".splitlines()
SIZES = ["i in range(data.shape[0])", "i in range(data.size(0))", "i in range(data.size(dim=0))"]
LASTS = ("", " or i == len(data) - 1", " or i + 1 == len(data)")
WAYS = [*itertools.product(LISTS, COUNTS), *itertools.product(LISTS[:1], SIZES)]


@pytest.mark.parametrize(("data", "loop"), WAYS)
def test_what_is_left_is_left_of_the_written_length(data: str, loop: str) -> None:
    for length, every, last in itertools.product((7, 12, 16, 20, 33, 40), (2, 3, 5, 8), LASTS):
        if every < length:
            text = PROGRAM.format(data.format(length), loop, every, f"(i + 1) % {every} == 0{last}")
            found = analyze(
                [path := pathlib.Path("train.py")],
                select={"GL504"}.__contains__,
                sources={path: text},
            )
            assert bool(found.findings) == bool(length % every and not last), text


@pytest.mark.parametrize("bounds", [":n", "n:", "::n", "n:, 1:"])
def test_the_length_of_a_slice_with_an_unknown_bound_is_unknown(bounds: str) -> None:
    text = PROGRAM.format(
        f"n = int(input()); data = torch.randn(7, 4)[{bounds}]", "i in range(len(data))", 2, "i % 2"
    )
    found = analyze(
        [path := pathlib.Path("train.py")], select={"GL504"}.__contains__, sources={path: text}
    )
    assert [finding.code for finding in found.findings] == ["GL504"]
    assert not [gap for gap in found.gaps if gap.kind == "internal"]
