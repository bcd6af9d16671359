"""Contract F, of a module: a trainer calls it in train mode and trains its parameters, for two rounds."""

from collections.abc import Callable
from typing import Any


def drive(part: Callable[..., Any], minimised: Callable[[Any], list[Any]], module: Any, **given: Any) -> None:
    """Calls a module with what is given it, and back-propagates those of its results that a loss can be made of."""
    import torch

    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(2):
        loss = sum(result.sum() for result in minimised(part(**given)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
