"""A reference training loop: short, meant to be read and copied, and the same with or without the
rest of gradlint.
"""

from gradlint.training.loop import Progress, SkippedBatch, Step, Trainer, TrainingStalledError
from gradlint.training.precision import Precision, choose_precision
from gradlint.training.samples import InvalidSample, RetryingDataset

__all__ = [
    "InvalidSample",
    "Precision",
    "Progress",
    "RetryingDataset",
    "SkippedBatch",
    "Step",
    "Trainer",
    "TrainingStalledError",
    "choose_precision",
]
