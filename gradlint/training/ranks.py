"""What several processes (DistributedDataParallel) change in a training step; with one process,
nothing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_leaves


class Ranks:
    """The processes that train `model` together: one, unless it is wrapped in
    DistributedDataParallel.
    """

    def __init__(self, model: nn.Module) -> None:
        self._ddp = model if isinstance(model, DistributedDataParallel) else None
        self.module = model if self._ddp is None else self._ddp.module
        self.count, self.is_first = 1, True
        self._forward_will_sync = False
        self._given: object = None  # by the last forward that will sync
        if self._ddp is not None:
            self._ddp.register_forward_hook(self._note_forward)
            self.count = dist.get_world_size(self._ddp.process_group)
            self.is_first = dist.get_rank(self._ddp.process_group) == 0

    def between(self, *, last: bool) -> AbstractContextManager[object]:
        """The context of one micro-batch's forward and backward: gradients are averaged in the last
        one alone.
        """
        self._forward_will_sync, self._given = False, None
        return nullcontext() if last or self._ddp is None else self._ddp.no_sync()

    def total(self, *values: float) -> list[float]:
        """Each value summed over the ranks. Every rank waits here for the others."""
        if self._ddp is None:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64, device=next(self._ddp.parameters()).device)
        dist.all_reduce(sums, group=self._ddp.process_group)
        return sums.tolist()

    def contribute_zero(self) -> None:
        """Stands in for the backward of a skipped last micro-batch: the other ranks wait for
        gradients of this one.
        """
        if self._ddp is None:
            return
        if not self._forward_will_sync:
            raise RuntimeError(
                "the last micro-batch of the window gave a loss without gradient, and did "
                "not call the model with grad "
                "mode on: the other ranks wait for gradients that this one cannot send"
            )
        parameters = [parameter for parameter in self._ddp.parameters() if parameter.requires_grad]
        # those that the forward did not use have been counted as done by then
        if self._ddp.find_unused_parameters:
            used = reached(self._given)
            parameters = [parameter for parameter in parameters if id(parameter) in used]
        torch.autograd.backward(
            parameters, [torch.zeros_like(parameter) for parameter in parameters]
        )

    def _note_forward(self, _module: nn.Module, _inputs: object, given: object) -> None:
        self._forward_will_sync = torch.is_grad_enabled()
        assert self._ddp is not None
        self._given = (
            given if self._forward_will_sync and self._ddp.find_unused_parameters else None
        )


def reached(given: object) -> set[int]:
    """The leaves, by id, that the tensors in what a forward gave were computed from."""
    pending = [tensor.grad_fn for tensor in tree_leaves(given) if isinstance(tensor, torch.Tensor)]
    seen: set[Any] = set()
    found = set()
    while pending:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            found.add(id(getattr(node, "variable", None)))
            pending += [below for below, _ in node.next_functions]
    return found
