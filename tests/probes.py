"""What breaks when a tensor is written in place before the backward: found by writing it, and
running the backward.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

from gradlint.library.effects import Effect

MODIFIED = "modified by an inplace operation"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operation: its arguments, and what `Effect` names each of the tensors among
    them.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]

    def tensors(self) -> list[Tensor]:
        return _tensors((self.args, self.kwargs))

    def run(self, requiring: set[str]) -> tuple[list[Tensor], list[Tensor]]:
        """Copies of the tensor arguments, with a gradient where named, and the tensors that come
        out.
        """
        leaves, spec = _pytree.tree_flatten((self.args, self.kwargs))
        given: list[Tensor] = []
        for at, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                wants = self.names[len(given)] in requiring and can_require_grad(leaf)
                leaves[at] = leaf.detach().clone().requires_grad_(wants).clone()
                given.append(leaves[at])
        args, kwargs = _pytree.tree_unflatten(leaves, spec)
        torch.manual_seed(0)
        return given, _tensors(self.function(*args, **kwargs))


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def can_require_grad(tensor: Tensor) -> bool:
    """Whether torch lets a tensor of this dtype require grad."""
    return tensor.is_floating_point() or tensor.is_complex()


def call(
    effect: Effect,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    method: bool = False,
) -> Call:
    """The call with its tensors named as the table names them; the elements of a list are `input`,
    `other`, ...
    """
    names: list[str] = []
    for position, value in enumerate(args):
        first = effect.argument(position, method=method)
        names += [first, *["other"] * len(_tensors(value))][: len(_tensors(value))]
    if names and not effect.arguments:
        names[0] = "input"
    for keyword, value in kwargs.items():
        names += [keyword if keyword in effect.arguments else "other"] * len(_tensors(value))
    return Call(function, args, kwargs, tuple(names))


def _write(tensor: Tensor) -> None:
    alias = tensor.detach()
    try:
        alias.copy_(alias.clone())
    except RuntimeError:  # an expanded tensor: its elements share memory
        torch.autograd.graph.increment_version(tensor)


def backward(outputs: list[Tensor]) -> str:
    """The message of the error that a backward from `outputs` raises, or nothing."""
    recorded = [output for output in outputs if output.requires_grad]
    try:
        torch.autograd.backward(recorded, [torch.randn_like(output) for output in recorded])
    except (RuntimeError, NotImplementedError) as error:
        return str(error)
    return ""


def broken(probe: Call, requiring: set[str]) -> frozenset[str]:
    """The names of the tensors a write into which makes the backward raise."""
    outputs = probe.run(requiring)[1]
    targets = [(name, False, at) for at, name in enumerate(probe.names)]
    targets += [
        (f"result.{at}" if len(outputs) > 1 else "result", True, at) for at in range(len(outputs))
    ]
    return frozenset(
        name for name, is_output, at in targets if _breaks(probe, requiring, is_output, at)
    )


def _breaks(probe: Call, requiring: set[str], is_output: bool, at: int) -> bool:
    given, outputs = probe.run(requiring)
    target = (outputs if is_output else given)[at]
    if not target.numel():
        return False
    _write(target)
    return MODIFIED in backward(outputs)


def choices(probe: Call) -> Iterator[set[str]]:
    """Which arguments require grad: all that can, and each alone."""
    able = {
        name
        for name, tensor in zip(probe.names, probe.tensors(), strict=True)
        if can_require_grad(tensor)
    }
    accepted = {name for name in able if _accepts(probe, name)}
    if accepted:
        yield accepted
    if len(accepted) > 1:
        yield from ({name} for name in sorted(accepted))


def _accepts(probe: Call, name: str) -> bool:
    """Whether the argument may require grad, and has a gradient from some output."""
    try:
        return any(output.requires_grad for output in probe.run({name})[1])
    except RuntimeError as error:
        if "not differentiable with respect to" in str(error):
            return False
        raise


def usual(found: list[Any]) -> Any:
    """What most of the probes say."""
    return Counter(found).most_common(1)[0][0]


def some(samples: list[Any], count: int) -> list[Any]:
    """At most `count` of the samples, always the same ones."""
    return samples if len(samples) <= count else random.Random(0).sample(samples, count)


def gradients(probe: Call, requiring: set[str]) -> tuple[bool, str]:
    """Whether every gradient of a random cotangent is zero, and the error of the backward, if it
    raises.
    """
    given, outputs = probe.run(requiring)
    for tensor in given:
        if tensor.requires_grad:
            tensor.retain_grad()
    error = backward(outputs)
    return not any(
        tensor.grad.to_dense().count_nonzero() for tensor in given if tensor.grad is not None
    ), error


def shares_storage(probe: Call) -> bool:
    """Whether the first output lies in the memory of the first argument."""
    given, outputs = probe.run(set())
    return outputs[0].untyped_storage().data_ptr() == given[0].untyped_storage().data_ptr()
