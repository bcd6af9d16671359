"""Writes that autograd does not see: a run tells whether what is saved is what is written."""

from __future__ import annotations

import pathlib
import textwrap

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from traced import trace

from gradlint.trace.extents import extent, part

RING = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
ring = torch.zeros(6, 4)
for step in range(6):
    ring.data[step] = torch.randn(4)
    loss = (net(ring[step]) - 1).square().sum()
    WRITE
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
STAGES = """
import torch
from torch import nn
torch.manual_seed(0)
drift = nn.Linear(3, 3)
optimizer = torch.optim.SGD(drift.parameters(), lr=0.1)

class Put(torch.autograd.Function):
    @staticmethod
    def forward(ctx, stack, value, at):
        ctx.at = at
        stack.data[..., at] = value
        return stack

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient[..., ctx.at], None

for _ in range(4):
    state = torch.randn(8, 3)
    stages = Put.apply(torch.empty(8, 3, 3), drift(state), 0)
    for number in (1, 2):
        weights = torch.full((number,), 0.5, requires_grad=True)
        middle = (stages[..., :number] * weights).sum(-1)
        stages = Put.apply(stages, drift(middle), number)
    optimizer.zero_grad()
    stages.square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("write", "codes"),
    [
        ("ring.data[(step + 1) % 6] = torch.randn(4)", []),
        ("ring.data[step] = torch.randn(4)", ["GL204"]),
        ("ring.data[:] = torch.randn(4)", ["GL204"]),
        ("ring.data[:, 1:].mul_(2)", ["GL204"]),
        ("ring.data[(step + 1) % 6].mul_(2)", []),
    ],
)
def test_another_row_of_the_same_memory_spoils_nothing(
    tmp_path: pathlib.Path, write: str, codes: list[str]
) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(RING).replace("WRITE", write))
    found = trace(tmp_path, "--output-format", "json", "train.py").codes
    assert [code for code, _ in found] == codes


def test_a_stack_that_is_filled_column_by_column_keeps_what_was_read(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(STAGES))
    found = trace(tmp_path, "--output-format", "json", "train.py").report["findings"]
    assert [each["code"] for each in found if each["severity"] != "note"] == []


SLICES = st.builds(slice, st.integers(-5, 5), st.integers(-5, 5), st.sampled_from([None, 1, 2, 3]))
INDICES = st.tuples(st.one_of(st.integers(-4, 3), SLICES), st.one_of(st.integers(-5, 4), SLICES))


@given(INDICES, INDICES, st.booleans())
def test_two_parts_overlap_where_a_write_to_one_is_read_in_the_other(
    one: tuple[int | slice, int | slice], other: tuple[int | slice, int | slice], turned: bool
) -> None:
    memory = torch.zeros(5, 4).T if turned else torch.zeros(4, 5)
    read = memory[other]
    written, seen = part(memory, one), extent(read)
    memory[one] = 1
    assert written is not None
    assert seen is not None
    assert written.overlaps(seen) == bool(read.any())


def test_of_an_index_that_is_a_tensor_the_whole_is_written() -> None:
    memory = torch.zeros(4, 5)
    assert part(memory, torch.tensor([1])) == extent(memory)
