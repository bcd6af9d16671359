"""What `gradlint trace` costs: the time of a training step, watched and recorded, as a ratio to the
plain step.

The variants take turns in one process, a few steps each and in a new order each time, so that a
busy machine and what the one before left in the caches slow all of them alike; the figure is the
median of the ratios within a turn, in process CPU time, on one thread. With `--device cuda` it is
wall time up to the moment when the device has finished.

    MALLOC_MMAP_THRESHOLD_=1000000000 MALLOC_TRIM_THRESHOLD_=1000000000 \\
        python benchmarks/trace_overhead.py

With malloc's thresholds left alone, any Python object kept for each node shifts how glibc asks for
pages, and a convolution's ratio moves by several per cent for that alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn

from gradlint.trace import probes
from gradlint.trace.session import Level, Session

Step = Callable[[], None]


def mlp(device: str) -> Step:
    """Three small layers: as much Python as arithmetic, the worst case."""
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    return _step(model.to(device), torch.randn(64, 64), torch.randint(0, 10, (64,)))


def cnn(device: str) -> Step:
    """A small residual-free convolutional network on a batch of 32."""
    layers: list[nn.Module] = []
    channels = 3
    for width in (32, 32, 64, 64):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        channels = width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
    return _step(model.to(device), torch.randn(32, 3, 16, 16), torch.randint(0, 10, (32,)))


def transformer(device: str) -> Step:
    """Two encoder layers of width 128 on 64 tokens."""
    layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2), nn.Linear(128, 10))
    return _step(model.to(device), torch.randn(8, 64, 128), torch.randint(0, 10, (8, 64)))


def large(device: str) -> Step:
    """Twelve encoder layers of width 768 on 8192 tokens, under autocast to bfloat16."""
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
    model = nn.Sequential(
        nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), nn.Linear(768, 10)
    )
    return _step(
        model.to(device), torch.randn(16, 512, 768), torch.randint(0, 10, (16, 512)), bfloat16=True
    )


def _step(model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, bfloat16: bool = False) -> Step:
    device = next(model.parameters()).device
    x, y = x.to(device), y.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bfloat16):
            loss = nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


@contextlib.contextmanager
def plain() -> Iterator[None]:
    """Nobody watches."""
    yield


@contextlib.contextmanager
def anomaly() -> Iterator[None]:
    """torch's own anomaly mode, without its search for NaN."""
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        yield


def traced(level: Level) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """Watched or recorded by `gradlint trace`."""

    @contextlib.contextmanager
    def watched() -> Iterator[None]:
        session = Session(level)
        probes.install(session)
        session.start()
        try:
            yield
        finally:
            session.close()
        assert not session.faults, session.faults

    return watched


VARIANTS = {
    "plain": plain,
    "null": plain,
    "watch": traced("watch"),
    "record": traced("record"),
    "anomaly": anomaly,
}
MODELS = {"mlp": (mlp, 60), "cnn": (cnn, 3), "transformer": (transformer, 3)}
ON_CUDA = {
    "mlp": (mlp, 60),
    "cnn": (cnn, 40),
    "transformer": (transformer, 30),
    "large": (large, 3),
}


def measure(step: Step, steps: int, turns: int) -> dict[str, float]:
    """The median ratio of each variant to the plain step of the same turn."""
    ratios: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(3):
        step()
    order = list(VARIANTS)
    for _ in range(turns):
        random.shuffle(order)
        times = {name: _time(step, steps, VARIANTS[name]) for name in order}
        for name, seconds in times.items():
            ratios[name].append(seconds / times["plain"])
    return {name: round(statistics.median(values), 3) for name, values in ratios.items()}


def _time(
    step: Step, steps: int, variant: Callable[[], contextlib.AbstractContextManager[None]]
) -> float:
    with variant():
        step()
        began = _now()
        for _ in range(steps):
            step()
        return _now() - began


def _now() -> float:
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Measure the models that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    models = MODELS if options.device == "cpu" else ON_CUDA
    for name in options.models or models:
        make, steps = models[name]
        print(
            json.dumps({"model": name, **measure(make(options.device), steps, options.turns)}),
            flush=True,
        )


if __name__ == "__main__":
    main()
