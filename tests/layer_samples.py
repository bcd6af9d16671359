"""One instance of every layer of `torch.nn`, and the arguments that it is called with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Sample = tuple[Callable[[], nn.Module], Callable[[], tuple[object, ...]]]


def _floats(*shape: int) -> Callable[[], tuple[object, ...]]:
    return lambda: (torch.rand(*shape) + 0.1,)


def _pair(*shape: int) -> Callable[[], tuple[object, ...]]:
    return lambda: (torch.rand(*shape) + 0.1, torch.rand(*shape) + 0.1)


def _triple() -> tuple[object, ...]:
    return tuple(torch.rand(4, 3) for _ in range(3))


def _classes(count: int = 3) -> Callable[[], tuple[object, ...]]:
    return lambda: (torch.rand(4, count), torch.randint(count, (4,)))


def _signs() -> Tensor:
    return torch.randint(2, (4,)) * 2.0 - 1


def _indices() -> Tensor:
    return torch.tensor([[1, 2], [0, 3]])


def _unpool(rank: int) -> Callable[[], tuple[object, ...]]:
    pool = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[rank - 1]
    return lambda: pool(2, return_indices=True)(torch.rand(1, 2, *[4] * rank))


def _ctc() -> tuple[object, ...]:
    lengths = torch.full((2,), 5), torch.full((2,), 2)
    return (torch.randn(5, 2, 4).log_softmax(-1), torch.randint(1, 4, (2, 2)), *lengths)


LAYERS: dict[str, Sample] = {
    "AdaptiveLogSoftmaxWithLoss": (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6]),
                                   lambda: (torch.rand(5, 4), torch.randint(10, (5,)))),
    "Bilinear": (lambda: nn.Bilinear(3, 3, 2), _pair(2, 3)),
    "Embedding": (lambda: nn.Embedding(5, 3), lambda: (_indices(),)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 3), lambda: (_indices(),)),
    "GRU": (lambda: nn.GRU(3, 4), _floats(5, 2, 3)),
    "GRUCell": (lambda: nn.GRUCell(3, 4), lambda: (torch.rand(2, 3), torch.rand(2, 4))),
    "LSTM": (lambda: nn.LSTM(3, 4), _floats(5, 2, 3)),
    "LSTMCell": (lambda: nn.LSTMCell(3, 4), _floats(2, 3)),
    "Linear": (lambda: nn.Linear(3, 4), _floats(2, 3)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(4, 2), lambda: (torch.rand(3, 2, 4),) * 3),
    "PReLU": (nn.PReLU, _floats(2, 3)),
    "RNN": (lambda: nn.RNN(3, 4), _floats(5, 2, 3)),
    "RNNCell": (lambda: nn.RNNCell(3, 4), lambda: (torch.rand(2, 3), torch.rand(2, 4))),
    "Transformer": (lambda: nn.Transformer(4, 2, 1, 1, 8), _pair(3, 2, 4)),
    "TransformerDecoder": (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 1),
        _pair(3, 2, 4)),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(4, 2, 8), _pair(3, 2, 4)),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 1),
        _floats(3, 2, 4)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(4, 2, 8), _floats(3, 2, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), _floats(2, 4, 3)),
    "LayerNorm": (lambda: nn.LayerNorm(3), _floats(2, 3)),
    "RMSNorm": (lambda: nn.RMSNorm(3), _floats(2, 3)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(2), _floats(2, 4, 3)),
    "CrossMapLRN2d": (lambda: nn.CrossMapLRN2d(2), _floats(2, 4, 3, 3)),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), _floats(1, 4, 2, 2)),
    "CosineSimilarity": (nn.CosineSimilarity, _pair(2, 3)),
    "PairwiseDistance": (nn.PairwiseDistance, _pair(2, 3)),
    "Flatten": (nn.Flatten, _floats(2, 3, 4)),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 3)), _floats(2, 6)),
    "Fold": (lambda: nn.Fold((4, 4), 2), _floats(1, 8, 9)),
    "Unfold": (lambda: nn.Unfold(2), _floats(1, 2, 4, 4)),
    "GLU": (nn.GLU, _floats(2, 4)),
    "Identity": (nn.Identity, _floats(2, 3)),
    "LogSoftmax": (lambda: nn.LogSoftmax(-1), _floats(2, 3)),
    "Softmax": (lambda: nn.Softmax(-1), _floats(2, 3)),
    "Softmin": (lambda: nn.Softmin(-1), _floats(2, 3)),
    "Softmax2d": (nn.Softmax2d, _floats(1, 3, 2, 2)),
    "Threshold": (lambda: nn.Threshold(0.3, 0.0), _floats(2, 3)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), _floats(1, 4, 2, 2)),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), _floats(1, 1, 4, 4)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), _floats(1, 2, 3, 3)),
    "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(scale_factor=2), _floats(1, 2, 3, 3)),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(scale_factor=2), _floats(1, 2, 3, 3)),
    "FractionalMaxPool2d": (lambda: nn.FractionalMaxPool2d(2, output_size=2), _floats(1, 2, 5, 5)),
    "FractionalMaxPool3d": (lambda: nn.FractionalMaxPool3d(2, output_size=2),
        _floats(1, 2, 5, 5, 5)),
    "BCELoss": (nn.BCELoss, lambda: (torch.rand(4), torch.rand(4))),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss, _pair(4)),
    "CTCLoss": (nn.CTCLoss, _ctc),
    "CosineEmbeddingLoss": (nn.CosineEmbeddingLoss,
        lambda: (torch.rand(4, 3), torch.rand(4, 3), _signs())),
    "CrossEntropyLoss": (nn.CrossEntropyLoss, _classes()),
    "GaussianNLLLoss": (nn.GaussianNLLLoss,
        lambda: (torch.rand(4), torch.rand(4), torch.rand(4) + 0.1)),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, lambda: (torch.rand(4), _signs())),
    "HuberLoss": (nn.HuberLoss, _pair(4)),
    "KLDivLoss": (lambda: nn.KLDivLoss(reduction="batchmean"), _pair(4, 3)),
    "L1Loss": (nn.L1Loss, _pair(4)),
    "LinearCrossEntropyLoss": (lambda: nn.LinearCrossEntropyLoss(4, 3),
                               lambda: (torch.rand(5, 4), torch.randint(3, (5,)))),
    "MSELoss": (nn.MSELoss, _pair(4)),
    "MarginRankingLoss": (nn.MarginRankingLoss, lambda: (torch.rand(4), torch.rand(4), _signs())),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss,
        lambda: (torch.rand(2, 3), torch.zeros(2, 3, dtype=torch.long))),
    "MultiLabelSoftMarginLoss": (nn.MultiLabelSoftMarginLoss, _pair(4, 3)),
    "MultiMarginLoss": (nn.MultiMarginLoss, _classes()),
    "NLLLoss": (nn.NLLLoss, _classes()),
    "NLLLoss2d": (nn.NLLLoss2d, lambda: (torch.rand(1, 3, 2, 2), torch.randint(3, (1, 2, 2)))),
    "PoissonNLLLoss": (nn.PoissonNLLLoss, _pair(4)),
    "SmoothL1Loss": (nn.SmoothL1Loss, _pair(4)),
    "SoftMarginLoss": (nn.SoftMarginLoss, lambda: (torch.rand(4), _signs())),
    "TripletMarginLoss": (nn.TripletMarginLoss, _triple),
    "TripletMarginWithDistanceLoss": (nn.TripletMarginWithDistanceLoss, _triple),
}  # fmt: skip

_ELEMENTWISE = """
CELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish RReLU ReLU ReLU6 SELU SiLU Sigmoid
Softplus Softshrink Softsign Tanh Tanhshrink Dropout AlphaDropout
"""
LAYERS |= {name: (getattr(nn, name), _floats(4, 3)) for name in _ELEMENTWISE.split()}
LAYERS |= {
    name: (getattr(nn, name), _floats(2, 3, 4, 4)) for name in ("Dropout2d", "FeatureAlphaDropout")
}
LAYERS |= {
    "Dropout1d": (nn.Dropout1d, _floats(2, 3, 4)),
    "Dropout3d": (nn.Dropout3d, _floats(2, 3, 2, 2, 2)),
}


def _ranked(rank: int) -> dict[str, Sample]:
    """The layers that exist for one, two and three dimensions."""
    shape, channels = [2, 3, *[4] * rank], (3, 2, 3)
    built: dict[str, tuple[object, ...]] = {
        "Conv": channels, "ConvTranspose": channels, "BatchNorm": (3,), "SyncBatchNorm": (3,),
        "InstanceNorm": (3, 1e-5, 0.1, True),
        "AvgPool": (2,), "AdaptiveAvgPool": (2,), "AdaptiveMaxPool": (2,), "MaxPool": (2,),
        "LPPool": (2, 2),
        "ReflectionPad": (1,), "ReplicationPad": (1,), "ZeroPad": (1,), "CircularPad": (1,),
        "ConstantPad": (1, 0.5),
    }  # fmt: skip
    made: dict[str, Sample] = {}
    for name, given in built.items():
        cls = getattr(nn, f"{name}{rank}d", None)
        if cls is not None:
            made[f"{name}{rank}d"] = (lambda cls=cls, given=given: cls(*given), _floats(*shape))  # type: ignore[misc]
    made[f"MaxUnpool{rank}d"] = (lambda: getattr(nn, f"MaxUnpool{rank}d")(2), _unpool(rank))
    return made


for _rank in (1, 2, 3):
    LAYERS |= _ranked(_rank)
