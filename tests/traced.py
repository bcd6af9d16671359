"""Traced runs for tests: each in a fork of one process that has torch, so that torch is imported
once.

`trace(folder, *words)` is `gradlint trace WORDS` in FOLDER. Run as a script, this file is the
process that forks: requests on stdin and answers on stdout, one JSON object a line.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import hashlib
import importlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Traced:
    """What one run left: its exit code (negative: the signal that ended it), its streams, and what
    it computed.

    `digest` goes over the bytes of the parameters after each step of each optimizer; `steps` is
    their number.
    """

    code: int
    out: str
    err: str
    digest: str = ""
    steps: int = 0

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report, where that was asked for."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def codes(self) -> list[tuple[str, int]]:
        """The findings as code and line."""
        return [
            (finding["code"], finding["location"]["row"]) for finding in self.report["findings"]
        ]


def trace(folder: pathlib.Path, *words: str, seconds: int = 60) -> Traced:
    """Run `gradlint trace WORDS` in FOLDER."""
    return _ask(folder, ("trace", *words), seconds)


def plain(folder: pathlib.Path, *words: str, seconds: int = 60) -> Traced:
    """Run `python WORDS` in FOLDER, for comparison."""
    return _ask(folder, words, seconds)


def _ask(folder: pathlib.Path, words: tuple[str, ...], seconds: int) -> Traced:
    from truth import TRIES, lost  # which the process that forks has not in sight

    for _ in range(TRIES - 1):
        ran = _once(folder, words, seconds)
        if not (ran.code and lost(ran.err)):
            return ran
    return _once(folder, words, seconds)


def _once(folder: pathlib.Path, words: tuple[str, ...], seconds: int) -> Traced:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(
        json.dumps({"folder": str(folder), "words": words, "seconds": seconds}) + "\n"
    )
    server.stdin.flush()
    return Traced(**json.loads(server.stdout.readline()))


@functools.cache
def _server() -> subprocess.Popen[str]:
    # Under a name that is no file's, so that its frames, a loop among them, are not taken for the
    # program's.
    from truth import buffered

    tests = os.path.dirname(__file__)
    run = (
        f"import sys; sys.path.insert(0, {tests!r}); import forking; del sys.path[0]; "
        f"exec(compile(open({__file__!r}).read(), '<traced>', 'exec'))"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", run],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=buffered(),
    )
    atexit.register(server.communicate)  # it ends when its stdin is closed
    return server


def _serve() -> None:
    _warm_up()
    for line in sys.stdin:
        print(json.dumps(_forked(**json.loads(line))), flush=True)


def _warm_up() -> None:
    """Import what a run imports, some of it only at the first optimizer: paid once here, not in
    every fork.
    """
    import pkgutil

    import torch
    import torch.distributed
    import torch.distributions
    import torch.utils.checkpoint
    import torch.utils.data
    from forking import ready_to_fork

    import gradlint.cli
    import gradlint.rule
    import gradlint.trace.run
    from gradlint.library.effects import lookup
    from gradlint.trace import probes

    torch.set_num_threads(1)
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    gradlint.rule.at_run_time()  # imports the module of each rule
    lookup("torch.add")  # reads the tables of operations
    for probe in pkgutil.iter_modules(probes.__path__, f"{probes.__name__}."):
        importlib.import_module(probe.name)
    ready_to_fork()


class Digest:
    """Follows the parameters of all optimizers, without a frame that a trace would see."""

    def __init__(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self.steps = 0
        self._hash = hashlib.blake2b(digest_size=16)
        register_optimizer_step_post_hook(self._see)

    def _see(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self.steps += 1
        for held in (each for group in optimizer.param_groups for each in group["params"]):
            # a DTensor's own memory is not its value
            parameter = getattr(held, "_local_tensor", held)
            if parameter.is_cuda:
                self._see_on_device(parameter)
                continue
            size = parameter.numel() * parameter.element_size()
            self._hash.update(ctypes.string_at(parameter.data_ptr(), size) if size else b"")

    def _see_on_device(self, parameter: Any) -> None:
        import torch

        if not torch.cuda.is_current_stream_capturing():
            self._hash.update(
                parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
            )

    @property
    def value(self) -> str:
        return self._hash.hexdigest()

    def write(self, file: str) -> None:
        pathlib.Path(file).write_text(json.dumps({"digest": self.value, "steps": self.steps}))


def _keep_replicas() -> None:
    """Never free a DDP model: torch 2.13 joins a thread of gloo then, which now and then waits for
    the GIL.
    """
    from torch.nn.modules.module import register_module_module_registration_hook
    from torch.nn.parallel import DistributedDataParallel

    kept = []
    register_module_module_registration_hook(
        lambda module, _name, _child: (
            kept.append(module) if isinstance(module, DistributedDataParallel) else None
        )
    )


def _forked(folder: str, words: list[str], seconds: int) -> dict[str, Any]:
    # a TemporaryDirectory would be removed by the fork, when it leaves
    scratch = tempfile.mkdtemp()
    files = [os.path.join(scratch, name) for name in ("out", "err", "digest")]
    child = os.fork()
    if child == 0:
        signal.alarm(seconds)
        # a shell's background job ignores Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _become(folder, words, files)
    _, status = os.waitpid(child, 0)
    out, err = (pathlib.Path(file).read_text(errors="replace") for file in files[:2])
    computed = json.loads(pathlib.Path(files[2]).read_text()) if os.path.exists(files[2]) else {}
    shutil.rmtree(scratch)
    return {"code": os.waitstatus_to_exitcode(status), "out": out, "err": err, **computed}


def _become(folder: str, words: list[str], files: list[str]) -> None:
    """In the fork: be the command, and leave as a process of its own would."""
    for number, file in enumerate(files[:2], start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    code: object = 70
    try:
        atexit.register(Digest().write, files[2])
        _keep_replicas()
        _run(words)
        code = 0
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    finally:
        for thread in threading.enumerate():  # as Python does before it leaves
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _run(words: list[str]) -> None:
    if words[0] == "trace":
        from gradlint.cli import main

        main(words)
    else:
        import runpy

        sys.argv[:] = words
        sys.path[0] = os.getcwd()
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    _serve()
