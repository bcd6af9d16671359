"""Which part of a memory a tensor covers: two views of one memory may have nothing in common."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

_LARGE = 1 << 24  # elements: of more than these nothing is compared
_BASIC = (int, slice, type(None), type(Ellipsis))


class Extent(NamedTuple):
    """The elements of its memory that a tensor covers."""

    dtype: torch.dtype
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def overlaps(self, other: Extent) -> bool:
        """Whether two tensors of one memory share an element; True where that is not known."""
        end = max(self.end, other.end)
        if self.dtype != other.dtype or end > _LARGE:
            return True
        covered = torch.zeros(end, dtype=torch.bool)
        self._of(covered).fill_(True)
        return bool(other._of(covered).any())

    @property
    def end(self) -> int:
        """The number of elements up to the last one that is covered."""
        reach = ((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))
        return self.offset + sum(reach) + 1 if all(self.sizes) else self.offset

    def _of(self, memory: torch.Tensor) -> torch.Tensor:
        return memory.as_strided(self.sizes, self.strides, self.offset)


def extent(tensor: torch.Tensor) -> Extent | None:
    """What a tensor covers; None of one without strides."""
    if tensor.layout is not torch.strided:
        return None
    return Extent(
        tensor.dtype,
        int(tensor.storage_offset()),
        tuple(map(int, tensor.shape)),
        tuple(map(int, tensor.stride())),
    )


def part(tensor: torch.Tensor, index: Any) -> Extent | None:
    """What `tensor[index] = …` writes: of a plain index its own elements, else the whole tensor."""
    keys = index if isinstance(index, tuple) else (index,)
    is_plain = all(type(key) in _BASIC for key in keys)
    return extent(tensor.detach()[index] if is_plain else tensor)
