"""The private parts of torch that a trace reads, each tried at start; what is not there is said,
not raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import overrides

_SEQUENCE = "number the operations"
_SAVED = "show the tensors that it saved"
_STORAGE = "tell which tensors share memory"
_MODES = "take a function mode off"

sequence_number: Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr", lambda: 0)
top_mode: Callable[[], Any] = getattr(overrides, "_get_current_function_mode", lambda: None)
enter_mode: Callable[[Any], Any] = overrides.TorchFunctionMode.__enter__
pop_mode: Callable[[], Any] = getattr(overrides, "_pop_mode", lambda: None)
push_mode: Callable[[Any], None] = getattr(overrides, "_push_mode", lambda _: None)


def lacking() -> list[str]:
    """What this torch does not let a trace look at, one sentence each."""
    lost = {
        _SEQUENCE: "which operation a failing backward is about is not told",
        _SAVED: "which tensor was overwritten is not told",
        _STORAGE: "writes through another name of a tensor are not seen",
        _MODES: "backward passes and steps are watched more slowly",
    }
    tests = {
        _SEQUENCE: _numbers,
        _SAVED: _shows_saved,
        _STORAGE: _tells_storages,
        _MODES: _takes_modes_off,
    }
    return [
        f"this torch does not {what}: {lost[what]}"
        for what, test in tests.items()
        if not _works(test)
    ]


def _works(test: Callable[[], bool]) -> bool:
    try:
        return test()
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return False


def _leaf() -> torch.Tensor:
    return torch.ones(2, device="cpu", requires_grad=True)


def _numbers() -> bool:
    before = sequence_number()
    node: Any = _leaf().exp().grad_fn
    return bool(before <= node._sequence_nr() < sequence_number())


def _shows_saved() -> bool:
    """Whether a saved tensor that was overwritten can be had from its node."""
    out = _leaf().exp()
    node: Any = out.grad_fn
    out.detach().add_(1)
    got: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        got.append(tensor)
        return tensor

    node._raw_saved_result.register_hooks(pack, lambda tensor: tensor)
    return bool(got) and got[0].data_ptr() == out.data_ptr()


def _tells_storages() -> bool:
    tensor = _leaf().detach()
    other = torch.ones(2, device="cpu")
    key = tensor.untyped_storage()._cdata
    return bool(key == tensor.view(2).untyped_storage()._cdata != other.untyped_storage()._cdata)


def _takes_modes_off() -> bool:
    names = ("_get_current_function_mode", "_pop_mode", "_push_mode")
    return all(callable(getattr(overrides, name)) for name in names)
