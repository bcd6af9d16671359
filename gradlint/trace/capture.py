"""CUDA graphs: while one is captured, operations are written down for later and compute nothing.

https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

from __future__ import annotations

import torch


def is_captured(tensor: torch.Tensor) -> bool:
    """Whether operations on `tensor` are being captured: to ask for a value would make the
    program's capture fail.
    """
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()
