"""The state of every random number generator that a training run draws from, as something
`torch.save` can write.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from typing import Any

import torch

State = dict[str, Any]


def random_state(generators: Sequence[torch.Generator]) -> State:
    """The states of torch's, Python's and NumPy's global generators and of `generators`."""
    state: State = {
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "generators": [generator.get_state() for generator in generators],
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        state["mps"] = torch.mps.get_rng_state()
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        state["numpy"] = (name, keys.tolist(), *rest)
    return state


def set_random_state(state: State, generators: Sequence[torch.Generator] | None = None) -> None:
    """Puts the global generators, and `generators` if given, back to where `random_state` found
    them.
    """
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if generators is not None:
        for generator, saved in zip(generators, state["generators"], strict=True):
            generator.set_state(saved)
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    if "mps" in state and torch.backends.mps.is_available():
        torch.mps.set_rng_state(state["mps"])
    if "numpy" in state:
        import numpy

        numpy.random.set_state(state["numpy"])


def samplers(loader: object) -> list[Any]:
    """What gives a DataLoader its order: its sampler, a batch sampler, and the sampler within that;
    each once.
    """
    batches = getattr(loader, "batch_sampler", None)
    found = (getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    return list({id(each): each for each in found if each is not None}.values())


def loader_generators(loader: object) -> list[torch.Generator]:
    """The generators of its own that a DataLoader draws its order and its workers' seeds from."""
    found = (getattr(owner, "generator", None) for owner in (loader, *samplers(loader)))
    return list({id(each): each for each in found if isinstance(each, torch.Generator)}.values())
