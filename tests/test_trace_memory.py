"""What a trace remembers of memory: which tensors share it, as long as it is there."""

from __future__ import annotations

import torch

from gradlint.trace.memory import Memory


def test_aliases_share_what_is_noted_of_their_memory() -> None:
    memory, x = Memory(), torch.ones(3)
    assert memory.cell(x) is memory.cell(x.detach()) is memory.cell(x[1:])


def test_a_memory_that_is_gone_leaves_nothing_to_the_next_one() -> None:
    # `parameter.data = parameter.data.cuda()` frees one, and torch gives its address to another
    memory = Memory()
    cells = [memory.cell(torch.ones(3)) for _ in range(50)]
    assert len({id(cell) for cell in cells}) == len(cells)


def test_a_memory_without_an_address_is_looked_up_too() -> None:
    memory = Memory()
    assert memory.cell(torch.ones(3).to_sparse()) is not memory.cell(torch.ones(3))
