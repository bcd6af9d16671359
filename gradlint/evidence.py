"""Evidence by name: what the names of a program say of the things that they name, and all words
that are known for it.

`FocalLoss` and `contrastive_objective` are losses, `plot_losses` is none; a parameter `targets` is
what a prediction is compared with, a variable `loss_kl` is a loss, something unknown called
`optim_d` is an optimizer.

A name chooses what is run, and what is assumed of something that nothing else is known of. What
only a name says supports a note; what a loss by name and signature does wrong by itself is worse
than that (docs/parts.md).
"""

from __future__ import annotations

import functools
import re
from typing import Literal

from gradlint import names

Role = Literal["optimizer", "scheduler", "scaler", ""]

_LOSSES = frozenset(["loss", "losses", "criterion"])
# what the name of a loss ends with: no `objective_score`, no `penalty_weight`
_ENDINGS = ("objective", "penalty", "regularizer", "regulariser")
_MEASURES = "val valid validation eval evaluate test metric metrics accuracy meter history"
_SHOWS = "plot show print log format record save load name names parse curve"
_WEIGHS = "make build create weight weights average avg running update reduce scale"
_AROUND_LOSSES = frozenset(f"{_MEASURES} {_SHOWS} {_WEIGHS}".split())

_COMPARED = frozenset(
    [
        "target",
        "targets",
        "tgt",
        "label",
        "labels",
        "gt",
        "gts",
        "truth",
        "true",
        "reference",
        "teacher",
        "y",
        "ys",
        "mask",
        "masks",
        "weight",
        "weights",
        "valid",
        "length",
        "lengths",
        "index",
        "indices",
        "ids",
        "annotations",
    ]
)
_PREDICTED = frozenset(
    [
        "pred",
        "preds",
        "predicted",
        "prediction",
        "predictions",
        "logit",
        "logits",
        "hat",
        "out",
        "output",
        "outputs",
        "score",
        "scores",
        "probs",
        "probabilities",
    ]
)

# words that a number of rounds is called by: `iter_num`, `global_step`
_ROUNDS = "iter iters iteration iterations it step steps epoch epochs round num number count idx"
_COUNTS = frozenset(f"{_ROUNDS} total global current cur".split())

_TERMS = frozenset(
    [
        "losses",
        "nll",
        "kl",
        "kld",
        "elbo",
        "penalty",
        "penalties",
        "regularizer",
        "regulariser",
        "regularization",
        "regularisation",
    ]
)
_LOSS = re.compile(r"(?!gloss|floss)\w*loss")  # `celoss`
_OF_A_LOSS = frozenset(
    ["weight", "weights", "mask", "masks", "coef", "fn", "function", "layer", "head", "scale"]
)

# what a program computes without a gradient on purpose
_HELD = "target targets tgt teacher ema momentum reference ref baseline old frozen"
_GATHERED = "advantage advantages adv running moving average anchor memory queue"
_UNTRAINED = frozenset(f"{_HELD} {_GATHERED}".split())
# numbers that a term is multiplied with, or divided by
_MULTIPLIED = "weight weights scale coef coefficient lambda alpha beta gamma temperature factor w"
_DIVIDED = "norm max min std count num number n ratio mask"
_FACTORS = frozenset(f"{_MULTIPLIED} {_DIVIDED}".split())

# what is measured, or kept for a log, and not trained on: `val_loss`, `running_loss`
_OF_A_RUN = "log logged raw best ema avg running total"
_MEASURED = frozenset(f"val valid validation eval test metric mae mse acc {_OF_A_RUN}".split())
# functions that tell a person something: by themselves, or by what they tell
_TELLS = frozenset(["log", "print", "pprint", "report", "display", "plot"])
_NUMBERS_TOLD = "loss losses metric metrics value values stats step dict all scalar scalars"
_TOLD = frozenset(_NUMBERS_TOLD.split())
_DRAWN = frozenset(["scalar", "scalars", "histogram"])  # `writer.add_scalar`
_BARS = (("set", "postfix"), ("set", "postfix", "str"))
_LIBRARIES_OF_LOGS = "wandb mlflow tensorboard tqdm"
_LOGS = "logger logging log logs writer meter meters metric metrics history recorder"
_LOGGERS = frozenset(f"{_LOGS} {_LIBRARIES_OF_LOGS} pbar progress console".split())
_SUMMED = frozenset(["sum", "summed"])
_KNOWN = "valid validity observed keep kept known labelled labeled present visible visibility"
_CHOSEN = frozenset(f"mask masks {_KNOWN}".split())
_OF_CUDA = ("cuda", "gpu")  # also within a word: `ngpus`
_DEVICES = (*_OF_CUDA, "device", "mps", "xpu", "accelerator", "cpu")
_BOXES = "box boxes bbox bboxes keypoint keypoints landmark landmarks joint joints mask masks"
_CLASSES = "label labels target targets class classes category categories tag tags answer answers"
_MARKS = "depth depths score scores rating ratings y ys gt gts truth groundtruth"
_NOTED = "annot annots annotation annotations"
_LABELS = frozenset(f"{_BOXES} {_CLASSES} {_MARKS} {_NOTED}".split())

_ROLE_WORDS: dict[Role, str] = {
    "optimizer": "opt opts optim optims optimizer optimizers optimiser optimisers "
    "adam adamw nadam radam adagrad adadelta adafactor sgd rmsprop lbfgs",
    "scheduler": "sched scheds scheduler schedulers schedule schedules warmup lr",
    "scaler": "scaler gradscaler",
}
_ROLES: dict[str, Role] = {
    word: role for role, listed in _ROLE_WORDS.items() for word in listed.split()
}


def mentions_losses(text: str) -> bool:
    """Whether a text can hold the name of a loss."""
    lowered = text.lower()
    return any(word in lowered for word in (*_LOSSES, *_ENDINGS))


def is_loss(name: str) -> bool:
    """Whether a function or class is a loss by its name."""
    if is_around_losses(name) or name.startswith("test"):
        return False
    return name.lower().endswith(_ENDINGS) or not _words(name).isdisjoint(_LOSSES)


def is_around_losses(name: str) -> bool:
    """Whether a function or class measures, shows or weighs losses, by its name."""
    return not _words(name).isdisjoint(_AROUND_LOSSES)


def is_compared_with(name: str) -> bool:
    """Whether a parameter of a loss is what a prediction is compared with, or weighted by, by its
    name.
    """
    return not _words(name).isdisjoint(_COMPARED) and not is_predicted(name)


def is_counter(name: str) -> bool:
    """Whether a parameter of a loss says how far the training is, by its name."""
    words = _words(name)
    return bool(words) and words <= _COUNTS


def is_predicted(name: str) -> bool:
    """Whether a parameter of a loss is what a model gave, by its name."""
    return not _words(name).isdisjoint(_PREDICTED)


@functools.lru_cache(maxsize=4096)
def is_loss_variable(name: str) -> bool:
    """Whether a variable's name says that it is a loss."""
    words = names.words(name)
    says = any(word in _TERMS or _LOSS.fullmatch(word) for word in words)
    return says and words[-1] not in _OF_A_LOSS


def is_left_untrained(text: str) -> bool:
    """Whether the name of a value says that no gradient is to flow through it: a target, a teacher,
    a moving average.
    """
    return not _UNTRAINED.isdisjoint(_words_of_path(text))


def is_factor(name: str) -> bool:
    """Whether a number weighs or counts something, by its name."""
    return not _FACTORS.isdisjoint(_words_of_path(name))


def is_measured(name: str) -> bool:
    """Whether a loss is computed to be looked at, by its name: of a validation, a running mean."""
    return not _MEASURED.isdisjoint(_words(name))


@functools.lru_cache(maxsize=4096)
def is_for_logging(path: str) -> bool:
    """Whether a function tells a person something: `log`, `log_metrics`, and not `log_prob`; or
    what it is a method of.
    """
    *owners, name = names.parts(path) or ("",)
    first, *more = names.words(name) or ("",)
    return (
        (first in _TELLS and (not more or more[-1] in _TOLD))
        or (first in ("add", "log", "write") and more[-1:] != [] and more[-1] in _DRAWN)
        or (first, *more) in _BARS
        or not _LOGGERS.isdisjoint(names.words(".".join(owners)))
    )


def is_summed(name: str) -> bool:
    """Whether a number is a sum, or a function sums, by its name."""
    return not _SUMMED.isdisjoint(_words(name))


def is_chosen(name: str) -> bool:
    """Whether a tensor says which elements there are, by its name: a mask, what is valid."""
    return not _CHOSEN.isdisjoint(_words_of_path(name))


def is_label(name: str) -> bool:
    """Whether a part of a sample is what a prediction is compared with, by its name."""
    return not _LABELS.isdisjoint(_words(name))


def mentions_cuda(text: str) -> bool:
    """Whether an expression names CUDA, or a GPU."""
    return any(word in text.lower() for word in _OF_CUDA)


def mentions_devices(text: str) -> bool:
    """Whether an expression names devices."""
    return any(word in text.lower() for word in _DEVICES)


def role(text: str) -> Role:
    """What steps, by the last word of its name that says anything: a `warmup_optimizer` is an
    optimizer.
    """
    for word in reversed(names.words(text)):
        if word in _ROLES:
            return _ROLES[word]
    return ""


def _words(name: str) -> frozenset[str]:
    return frozenset(names.words(name))


def _words_of_path(text: str) -> frozenset[str]:
    """The words of all names of a path: `self.teacher.logits` is of a teacher, too."""
    return frozenset(word for part in names.parts(text) for word in names.words(part))
