"""Softmaxes of nothing: rows that a mask leaves without a number, whose softmax is `0 / 0`.

Asked of a softmax and of `multi_head_attention_forward`, which takes one of what its masks leave,
in the steps that are recorded and where a gradient comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gradlint.trace.capture import is_captured
from gradlint.trace.operations import Spec

Tensor = torch.Tensor


def has_row_of_nothing(
    judged: Spec, args: Sequence[Any], kwargs: Mapping[str, Any], out: Tensor
) -> bool:
    """Whether all that one of the softmaxes is taken of is minus infinity."""
    asked = judged.is_softmax or judged.is_attention
    if not asked or not out.requires_grad or is_captured(out):
        return False
    if judged.is_attention:
        masks = [kwargs.get("key_padding_mask"), kwargs.get("attn_mask")]
        return _leaves_no_key(*masks) and bool(out.detach().isnan().any())
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    logits = args[0] if args else kwargs.get("input")
    if not isinstance(dim, int) or not isinstance(logits, Tensor) or not logits.numel():
        return False
    return bool(logits.detach().isneginf().all(dim).any())


def _leaves_no_key(padding: Tensor | None, between: Tensor | None) -> bool:
    """Whether the two masks leave some query without any key.

    Parameters:
        padding: of shape (keys,) or (batch, keys).
        between: of shape (queries, keys) or (batch * heads, queries, keys).
    """
    shut = [_shut(mask) for mask in (padding, between) if isinstance(mask, Tensor)]
    if len(shut) == 2 and shut[0].dim() == 2:
        batch, keys = shut[0].shape
        rows = shut[1].reshape(batch if shut[1].dim() == 3 else 1, -1, keys)
        return bool((rows | shut[0][:, None]).all(-1).any())
    return bool(shut) and bool((shut[0] | shut[-1]).all(-1).any())


def _shut(mask: Tensor) -> Tensor:
    """Where a mask keeps a query from a key: `True`, or minus infinity that is added."""
    return mask if mask.dtype == torch.bool else mask.detach().isneginf()
