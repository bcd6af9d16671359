"""What one call of a torch operation does to autograd, seen by looking into the graph that the call
leaves behind.

An observation names the tensors of the call by position: 0 is the first tensor argument, 1 the
second, and `result.0` the first output. It is taken once for every choice of which arguments
require grad, since torch saves a tensor only where the gradient that needs it is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.autograd.graph import Node
from torch.utils import _pytree

Slot = int | str


@dataclass(frozen=True, slots=True)
class Call:
    """A function and its arguments, from which fresh calls are made."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    in_place: bool = False

    def tensors(self) -> list[torch.Tensor]:
        return [
            leaf
            for leaf in _pytree.tree_leaves((self.args, self.kwargs))
            if isinstance(leaf, torch.Tensor)
        ]

    def run(self, requiring: Collection[int]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Fresh copies of the tensor arguments, those in `requiring` with grad, and the tensors
        that come out.
        """
        leaves, spec = _pytree.tree_flatten((self.args, self.kwargs))
        fresh: list[torch.Tensor] = []
        for at, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                copy = leaf.detach().clone().requires_grad_(len(fresh) in requiring)
                leaves[at] = copy.clone() if self.in_place and not fresh else copy
                fresh.append(leaves[at])
        args, kwargs = _pytree.tree_unflatten(leaves, spec)
        results = _pytree.tree_leaves(self.function(*args, **kwargs))
        return fresh, [result for result in results if isinstance(result, torch.Tensor)]


@dataclass(frozen=True, slots=True)
class Observation:
    """The facts of one call with one choice of arguments that require grad."""

    requiring: frozenset[int]
    recorded: tuple[bool, ...]  # for each output
    saved: frozenset[Slot]


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one call, over all choices."""

    observations: tuple[Observation, ...]
    # which outputs carry gradient when every argument that can requires grad
    outputs: tuple[bool, ...]
    shares: bool  # the first output shares the storage of the first argument
    dtypes: tuple[torch.dtype, ...]
    zero: bool
    missing: bool
    floating: tuple[bool, ...]  # which arguments can require grad

    def saves(self) -> dict[Slot, frozenset[int]]:
        """What is saved, each with the arguments any one of which has to require grad; all of them:
        unconditionally.
        """
        alone = {
            next(iter(o.requiring)): o
            for o in self.observations
            if len(o.requiring) == 1 and any(o.recorded)
        }
        slots = {slot for o in self.observations for slot in o.saved}
        return {slot: frozenset(at for at, o in alone.items() if slot in o.saved) for slot in slots}

    def recording(self) -> frozenset[int]:
        """The arguments each of which, alone requiring grad, makes an output require grad."""
        alone = (o for o in self.observations if len(o.requiring) == 1 and any(o.recorded))
        return frozenset(at for o in alone for at in o.requiring)


def nodes(outputs: list[torch.Tensor]) -> Iterator[Node]:
    """Every node of the graph below `outputs`, each once."""
    pending = [output.grad_fn for output in outputs if output.grad_fn is not None]
    seen = set(pending)
    for node in pending:
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                pending.append(following)


def saved_tensors(node: Node) -> Iterator[torch.Tensor]:
    """The tensors that `node` keeps for its backward."""
    names = [name for name in dir(node) if name.startswith("_saved_")]
    kept = [getattr(node, name) for name in names] + [getattr(node, "saved_tensors", ())]
    return (leaf for leaf in _pytree.tree_leaves(kept) if isinstance(leaf, torch.Tensor))


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _storages(tensors: list[torch.Tensor]) -> list[int]:
    return [_storage(tensor) if tensor.numel() else 0 for tensor in tensors]


def _is_among(tensor: torch.Tensor, kept: list[torch.Tensor]) -> bool:
    """Whether autograd would notice a write into `tensor`: a kept one has its storage and its
    version counter.

    Some operations reshape their input with `_unsafe_view`, which shares the first and not the
    second.
    """
    same = [other for other in kept if tensor.numel() and _storage(other) == _storage(tensor)]
    versions = [other._version for other in same]
    torch.autograd.graph.increment_version(tensor)
    return versions != [other._version for other in same]


def _observe(
    call: Call, requiring: frozenset[int]
) -> tuple[Observation, list[torch.Tensor], list[torch.Tensor]]:
    arguments, outputs = call.run(requiring)
    kept = [tensor for node in nodes(outputs) for tensor in saved_tensors(node) if tensor.numel()]
    saved: set[Slot] = {at for at, argument in enumerate(arguments) if _is_among(argument, kept)}
    saved |= {f"result.{at}" for at, output in enumerate(outputs) if _is_among(output, kept)}
    recorded = tuple(output.requires_grad for output in outputs)
    return Observation(requiring, recorded, frozenset(saved)), arguments, outputs


def _choices(candidates: list[int]) -> Iterator[frozenset[int]]:
    everything = frozenset(candidates)
    yield everything
    for size in (1, 2):
        for chosen in itertools.combinations(candidates, size):
            if frozenset(chosen) != everything:
                yield frozenset(chosen)


def _accepts(call: Call, at: int) -> bool:
    """Whether the argument may require grad: torch refuses some (the weights of a loss)."""
    try:
        call.run({at})
    except RuntimeError as error:
        if "not differentiable with respect to" in str(
            error
        ) or "does not support automatic" in str(error):
            return False
        raise
    return True


def _is_floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _gradient(arguments: list[torch.Tensor], outputs: list[torch.Tensor]) -> tuple[bool, bool]:
    """Whether the gradient is zero in every argument, and whether torch has none; by a random
    cotangent.
    """
    recorded = [output for output in outputs if output.requires_grad and output.numel()]
    asked = [argument for argument in arguments if argument.requires_grad]
    if not recorded or not asked:
        return False, False
    cotangents = [torch.randn_like(output) for output in recorded]
    try:
        found: Sequence[torch.Tensor | None] = torch.autograd.grad(
            recorded, asked, cotangents, allow_unused=True
        )
    except (NotImplementedError, RuntimeError) as error:
        return False, "not implemented" in str(error)
    return not any(gradient.count_nonzero() for gradient in found if gradient is not None), False


def measure(call: Call) -> Facts:
    """Runs `call` for every choice of arguments that require grad and says what was seen."""
    floating = tuple(_is_floating(tensor) for tensor in call.tensors())
    candidates = [at for at, able in enumerate(floating) if able and _accepts(call, at)]
    torch.manual_seed(0)
    full, arguments, outputs = _observe(call, frozenset(candidates))
    storages = _storages(arguments)
    shares = (
        bool(outputs)
        and bool(storages)
        and storages[0] != 0
        and _storages(outputs)[0] == storages[0]
    )
    zero, missing = _gradient(*call.run(frozenset(candidates)))
    observations = [full]
    if any(full.recorded) and len(candidates) <= 6:
        observations = [_observe(call, chosen)[0] for chosen in _choices(candidates)]
    dtypes = tuple(output.dtype for output in outputs)
    return Facts(tuple(observations), full.recorded, shares, dtypes, zero, missing, floating)
