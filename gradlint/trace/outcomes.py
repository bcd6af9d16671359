"""Tensors in what a part is called with and gives, and what a module keeps of them."""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

_DEPTH = 3  # of tensors in arguments and results, and in what a module keeps
_OWN = frozenset(vars(torch.nn.Module()))


def can_carry(tensor: torch.Tensor) -> bool:
    """Whether a tensor could require grad, and does not."""
    return (tensor.is_floating_point() or tensor.is_complex()) and not tensor.requires_grad


def copied(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor with memory of its own; the very tensor where it requires grad."""
    return tensor if tensor.requires_grad else tensor.clone()


def each_tensor(
    value: Any, change: Callable[[torch.Tensor], torch.Tensor], depth: int = _DEPTH
) -> Any:
    """Arguments with other tensors in their place, also in lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if depth and type(value) in (list, tuple):
        return type(value)(each_tensor(each, change, depth - 1) for each in value)
    if depth and type(value) is dict:
        return {name: each_tensor(each, change, depth - 1) for name, each in value.items()}
    return value


def tensors(value: Any, depth: int = _DEPTH) -> Iterator[torch.Tensor]:
    """The tensors in a value, in lists, tuples, dicts and objects of these."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from tensors(each, depth - 1)
    elif depth and isinstance(value, Mapping):
        for each in value.values():
            yield from tensors(each, depth - 1)


def results(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result: of what has a `loss`, that alone."""
    parts = (
        value
        if isinstance(value, Mapping | torch.Tensor | list | tuple)
        else getattr(value, "__dict__", {})
    )
    own = parts.get("loss") if isinstance(parts, Mapping) else None
    return tensors(own if isinstance(own, torch.Tensor) else parts)


def summed(loss: torch.Tensor) -> torch.Tensor:
    """One number, which can be back-propagated."""
    real = torch.view_as_real(loss) if loss.is_complex() else loss
    return real.sum() if real.dim() else real


def state(module: torch.nn.Module) -> dict[str, Any]:
    """What a module keeps beside parameters, buffers and modules."""
    copied = (list, dict, set, collections.deque)
    own = ((name, value) for name, value in vars(module).items() if name not in _OWN)
    return {name: copy.copy(value) if isinstance(value, copied) else value for name, value in own}


def put_back(module: torch.nn.Module, kept: Mapping[str, Any]) -> None:
    """Has a module keep nothing that was computed from a batch."""
    for name, value in state(module).items():
        if any(each.grad_fn is not None for each in tensors(value)):
            if name in kept:
                setattr(module, name, kept[name])
            else:
                delattr(module, name)
