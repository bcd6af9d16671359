"""Traces of trainings that a framework runs: a callback for Lightning and for transformers, a
tracker for Accelerate.

Each watches from the beginning of the training to its end, by `gradlint.trace()`, and then writes
the report to standard error, or hands it to `tell`. The options are those of `gradlint.trace`, but
`steps`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

from gradlint.api import Tracing, trace

Tell = Callable[[Tracing], object]


def lightning(tell: Tell | None = None, **options: Any) -> Any:
    """For `Trainer(callbacks=[gradlint.callbacks.lightning()])`; an exception that ends `fit` is
    told, too.
    """
    package = "lightning.pytorch" if importlib.util.find_spec("lightning") else "pytorch_lightning"
    run = _Run(tell, options)

    def setup(_self: object, trainer: object, module: object, stage: str) -> None:
        if stage == "fit":
            run.begin()

    def teardown(_self: object, trainer: object, module: object, stage: str) -> None:
        run.end()

    def on_exception(
        _self: object, trainer: object, module: object, exception: BaseException
    ) -> None:
        run.end(exception)

    return _made(importlib.import_module(package).Callback, setup, teardown, on_exception)


def transformers(tell: Tell | None = None, **options: Any) -> Any:
    """For `Trainer(..., callbacks=[gradlint.callbacks.transformers()])`."""
    run = _Run(tell, options)

    def on_train_begin(_self: object, *_: object, **__: object) -> None:
        run.begin()

    def on_train_end(_self: object, *_: object, **__: object) -> None:
        run.end()

    return _made(
        importlib.import_module("transformers").TrainerCallback, on_train_begin, on_train_end
    )


def accelerate(tell: Tell | None = None, **options: Any) -> Any:
    """For `Accelerator(log_with=gradlint.callbacks.accelerate())`: from `init_trackers` to
    `end_training`.
    """
    run = _Run(tell, options)

    def start(_self: object) -> None:
        run.begin()

    def store_init_configuration(_self: object, values: object) -> None:
        run.begin()  # of a version that starts no tracker

    def log(_self: object, values: object, step: object = None, **_: object) -> None:
        """What the program logs is nothing to us."""

    def finish(_self: object) -> None:
        run.end()

    base = importlib.import_module("accelerate.tracking").GeneralTracker
    facts = {"name": "gradlint", "requires_logging_directory": False, "tracker": None}
    return _made(base, start, store_init_configuration, log, finish, **facts)


class _Run:
    """One trace, begun and ended once."""

    def __init__(self, tell: Tell | None, options: dict[str, Any]) -> None:
        self.tell, self.options = tell or _print, options
        self.running: Tracing | None = None

    def begin(self) -> None:
        if self.running is None:
            self.running = trace(**self.options).__enter__()

    def end(self, raised: BaseException | None = None) -> None:
        running, self.running = self.running, None
        if running is not None:
            running.__exit__(None, raised, None)
            self.tell(running)


def _print(run: Tracing) -> None:
    print(run, end="", file=sys.stderr)


def _made(base: type, *methods: Callable[..., object], **facts: object) -> Any:
    """An object of a class below `base` with these methods: the base is a class that is imported
    only now.
    """
    return type(
        "GradlintTrace", (base,), {**{method.__name__: method for method in methods}, **facts}
    )()
