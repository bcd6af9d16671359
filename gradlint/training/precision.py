"""Which number format a device can train in, and the autocast and gradient scaler that go with
it.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch

from gradlint.training.told import warn

Wish = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class Precision:
    """The format of autocast's operations on a device type; float32 leaves everything in the
    model's own format.
    """

    device: str
    dtype: torch.dtype = torch.float32

    def autocast(self) -> AbstractContextManager[object]:
        """The context of the forward and the loss; the backward stands outside, it uses the same
        formats by itself.
        """
        return (
            nullcontext()
            if self.dtype == torch.float32
            else torch.autocast(self.device, dtype=self.dtype)
        )

    def scaler(self) -> torch.amp.GradScaler:
        """A gradient scaler, which does nothing but for float16: only there do small gradients
        become zero.
        """
        return torch.amp.GradScaler(self.device, enabled=self.dtype == torch.float16)

    def __str__(self) -> str:
        return (
            "no autocast"
            if self.dtype == torch.float32
            else f"{_name(self.dtype)} autocast on {self.device}"
        )


def choose_precision(wish: Wish, device: torch.device) -> Precision:
    """The wish if `device` can fulfil it, else float32 with a warning; for "auto" the fastest
    format that works.
    """
    problems = []
    for dtype in _fast_formats(device) if wish == "auto" else [getattr(torch, wish)]:
        problem = _trial(Precision(device.type, dtype), device)
        if problem is None:
            return Precision(device.type, dtype)
        problems.append(f"{_name(dtype)} autocast does not work on {device.type} ({problem})")
    if problems:
        warn(f"training without autocast: {'; '.join(problems)}")
    return Precision(device.type)


def _fast_formats(device: torch.device) -> list[torch.dtype]:
    """What is faster than float32 on `device`, best first. bfloat16 comes first, as it needs no
    scaler.
    """
    match device.type:
        case "cuda":
            emulated = torch.cuda.get_device_capability(device) < (8, 0)
            return [torch.float16] if emulated else [torch.bfloat16, torch.float16]
        case "mps":
            return [torch.bfloat16, torch.float16]
        case "cpu":
            able: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
            return (
                [torch.bfloat16]
                if able.get("avx512_bf16") or able.get("amx_bf16") or able.get("bf16")
                else []
            )
        case _:
            return []


def _trial(precision: Precision, device: torch.device) -> str | None:
    """What goes wrong in one step of one weight, if anything does; takes no random number."""
    if precision.dtype == torch.float32:
        return None
    weight = torch.ones(1, 1, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    with warnings.catch_warnings():
        # autocast and GradScaler switch themselves off with a warning
        warnings.simplefilter("error")
        try:
            scaler = precision.scaler()
            with precision.autocast():
                loss = (weight @ weight).sum()
            scaler.scale(loss / 256).backward()  # type: ignore[no-untyped-call]
            scaler.step(optimizer)
            scaler.update()
        except (RuntimeError, TypeError, ValueError, AssertionError, UserWarning) as problem:
            return str(problem).partition("\n")[0]
    return None


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
