"""What PyTorch does with a program: the judge of every claim that gradlint makes.

`observe(folder)` runs a program in a fork of one process that has torch imported, and says how it
ended, which of the optimizers' parameters were trained, and where they ended. Run as a script, this
file is that process: requests on stdin and records on stdout, one JSON object a line.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import hashlib
import json
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class Record:
    """What happened in one run."""

    # "RuntimeError: element 0 of tensors ...", or "" where the program came to its end
    exception: str = ""
    steps: int = 0
    parameters: int = 0  # how many the optimizers hold
    untrained: int = 0  # of these, how many never had a gradient other than zero at a step
    nonfinite: bool = False  # a gradient or a parameter was NaN or infinite
    checksum: float = 0.0  # where the parameters ended
    live: list[int] = field(default_factory=list)  # tensors with a grad_fn alive at each step
    warnings: list[str] = field(default_factory=list)
    code: int = 0  # its exit code (negative: the signal that ended it)
    out: str = ""  # what it printed
    # over the bytes of the parameters after each step that ended, and the number of those
    digest: str = ""
    ended: int = 0

    def fault(self, untrained_allowed: int = 0) -> str:
        """Why this is no program that trains, or ""."""
        if self.exception:
            return f"it ends in {self.exception[:300]}"
        if not self.steps:
            return "it never steps"
        if self.untrained > untrained_allowed:
            return f"{self.untrained} of {self.parameters} parameters never get a gradient"
        return "a gradient or parameter is not finite" if self.nonfinite else ""


RUNS = "GRADLINT_TEST_RUNS"  # the folder with the runs of a session
TRIES = 3  # of a program whose ranks lost each other


def observe(folder: pathlib.Path, entry: str = "train.py", seconds: int = 60) -> Record:
    """Run FOLDER/ENTRY in its own folder, without arguments, for at most `seconds`.

    Ranks that talk over gloo lose their connection now and then on a machine that is busy: they are
    run again.
    """
    for _ in range(TRIES - 1):
        record = _observe(folder, entry, seconds)
        if not lost(record.exception):
            return record
    return _observe(folder, entry, seconds)


def alone(folder: pathlib.Path, entry: str = "train.py") -> Record:
    """The same, run once for all tests of a session that ask for it, whichever process asks."""
    known = os.environ.get(RUNS)
    if known is None:
        return observe(folder, entry)
    name = hashlib.blake2b(f"{folder.resolve()} {entry}".encode(), digest_size=16).hexdigest()
    file = pathlib.Path(known, f"{name}.json")
    if not file.exists():
        record = observe(folder, entry)
        begun = file.with_suffix(f".{os.getpid()}")
        begun.write_text(json.dumps(asdict(record)))
        begun.replace(file)
    return Record(**json.loads(file.read_text()))


def lost(told: str) -> bool:
    """Whether what a program says of its end speaks of the connection between its ranks."""
    return "gloo" in told


def _observe(folder: pathlib.Path, entry: str, seconds: int) -> Record:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(
        json.dumps({"folder": str(folder.resolve()), "entry": entry, "seconds": seconds}) + "\n"
    )
    server.stdin.flush()
    return Record(**json.loads(server.stdout.readline()))


@functools.cache
def _server() -> subprocess.Popen[str]:
    """The process that forks; it ends when its stdin is closed, at the end of this one."""
    server = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=buffered(),
    )
    atexit.register(server.communicate)
    return server


def buffered() -> dict[str, str]:
    """The environment in which what two ranks print to one file comes in whole lines.

    With PYTHONUNBUFFERED, `print` writes a line and its end apart, and another rank's line may come
    between.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


class Watch:
    """Hooks on torch's optimizers that fill a record while a program runs."""

    def __init__(self) -> None:
        self.record = Record()
        self.optimizers: dict[int, Any] = {}
        self.trained: set[int] = set()
        self.kept: list[Any] = []

    def install(self) -> None:
        self.follow_optimizers()
        self.keep_replicas()

    def keep_replicas(self) -> None:
        """Never free a DDP model: torch 2.13 joins a thread of gloo then, which now and then waits
        for the GIL.
        """
        from torch.nn.parallel import DistributedDataParallel

        create = DistributedDataParallel.__init__

        def create_and_keep(model: Any, *args: Any, **kwargs: Any) -> None:
            create(model, *args, **kwargs)
            self.kept.append(model)

        DistributedDataParallel.__init__ = create_and_keep  # type: ignore[method-assign,assignment]

    def follow_optimizers(self) -> None:
        from torch.optim import Optimizer

        create = Optimizer.__init__

        def create_and_watch(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            create(optimizer, *args, **kwargs)
            self.optimizers[id(optimizer)] = optimizer
            optimizer.register_step_pre_hook(lambda stepping, *_: self.step(stepping))

        Optimizer.__init__ = create_and_watch  # type: ignore[method-assign,assignment]

    def step(self, optimizer: Any) -> None:
        for parameter in _parameters(optimizer):
            if parameter.grad is not None:
                self.see(parameter)
        self.record.steps += 1
        if len(self.record.live) < 64:
            self.record.live.append(_live_tensors())

    def see(self, parameter: Any) -> None:
        gradient = parameter.grad.detach()
        gradient = gradient.to_dense() if gradient.is_sparse else gradient
        self.record.nonfinite |= not bool(gradient.isfinite().all())
        if bool(gradient.ne(0).any()):
            self.trained.add(id(parameter))

    def finish(self) -> Record:
        held = {id(p): p for optimizer in self.optimizers.values() for p in _parameters(optimizer)}
        ends = [float(parameter.detach().double().abs().sum()) for parameter in held.values()]
        self.record.parameters = len(held)
        self.record.untrained = len(held.keys() - self.trained)
        self.record.checksum = sum(ends)
        self.record.nonfinite |= any(end - end != 0 for end in ends)
        return self.record


def _parameters(optimizer: Any) -> list[Any]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _live_tensors() -> int:
    import torch

    return sum(
        1 for found in gc.get_objects() if type(found) is torch.Tensor and found.grad_fn is not None
    )


def _run(script: str) -> Record:
    """Run `script` as `__main__` in this process."""
    from traced import Digest

    watch, digest = Watch(), Digest()
    watch.install()
    sys.argv = [script]
    sys.path[0] = os.path.dirname(script)
    sys.dont_write_bytecode = True
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as stop:
            watch.record.exception = f"SystemExit: {stop.code}" if stop.code else ""
            watch.record.code = stop.code if isinstance(stop.code, int) else bool(stop.code)
        except BaseException as error:
            watch.record.exception = f"{type(error).__name__}: {error}"
            watch.record.code = 1
    _leave()
    watch.record.digest, watch.record.ended = digest.value, digest.steps
    watch.record.warnings = sorted({str(warning.message) for warning in caught})
    return watch.finish()


def _leave() -> None:
    """What Python does before it leaves."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()


def _forked(run: Callable[[], Record], folder: str, seconds: int) -> Record:
    """What `run` gives in a forked child that works in `folder` and is killed after `seconds`, with
    what it printed.
    """
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as printed:
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                signal.alarm(seconds)
                nothing = os.open(os.devnull, os.O_RDWR)
                for stream, file in enumerate((nothing, printed.fileno(), nothing)):
                    os.dup2(file, stream)
                os.chdir(folder)
                answer.write(json.dumps(asdict(run())).encode())
                answer.flush()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it started and left behind
        answer.seek(0)
        text = answer.read()
        printed.seek(0)
        out = printed.read().decode(errors="replace")
    ended = (
        f"signal {os.WTERMSIG(status)} (limit {seconds} s)"
        if os.WIFSIGNALED(status)
        else "no record"
    )
    code = os.waitstatus_to_exitcode(status)
    record = Record(**json.loads(text)) if text else Record(exception=ended, code=code)
    record.out = out
    return record


def _warm_up() -> None:
    """Import what the first optimizer would: nearly a second, paid here once instead of in every
    child.
    """
    import torch
    import torch.distributions
    import torch.utils.checkpoint
    import torch.utils.data
    from forking import ready_to_fork

    torch.set_num_threads(1)
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    ready_to_fork()  # and so that counting the living tensors passes over all this


def _serve() -> None:
    _warm_up()
    for line in sys.stdin:
        asked = json.loads(line)
        script = os.path.join(asked["folder"], asked["entry"])
        record = _forked(functools.partial(_run, script), asked["folder"], asked["seconds"])
        print(json.dumps(asdict(record)), flush=True)


if __name__ == "__main__":
    _serve()
