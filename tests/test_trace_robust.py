"""Programs that are hard to watch: they leave in odd ways, change what is watched, or go on for
very long.
"""

from __future__ import annotations

import os
import pathlib
import re
import textwrap
from collections.abc import Callable

import pytest
from traced import Traced, plain, trace

HEAD = """
import os, sys, threading
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(steps=4):
    for _ in range(steps):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item().hex(), flush=True)

def train_half(steps=4):
    for _ in range(steps):
        loss = model[2](model[:2](torch.randn(8, 4)).detach()).pow(2).mean()  # cut
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
CUT = (
    HEAD.splitlines().index(next(line for line in HEAD.splitlines() if line.endswith("# cut"))) + 1
)


def both(folder: pathlib.Path, body: str, *options: str) -> tuple[Traced, Traced]:
    """A program run alone, and watched: the same output, and the same exit code unless findings
    change it.
    """
    (folder / "train.py").write_text(HEAD + textwrap.dedent(body))
    return plain(folder, "train.py"), trace(folder, *options, "train.py")


def same(folder: pathlib.Path, body: str, says: str = "No finding.") -> None:
    """The program leaves what it does alone, and the report still comes."""
    alone, watched = both(folder, body)
    assert (watched.out, watched.code) == (alone.out, alone.code), watched.err
    assert says in watched.err, watched.err
    assert "while watching" not in watched.err


@pytest.mark.parametrize(
    "ending",
    [
        "os._exit(0)",
        "os._exit(7)",
        "os.abort()",
        "os.execv(sys.executable, [sys.executable, '-c', 'print(1, flush=True)'])",
        "os.execlp(sys.executable, sys.executable, '-c', 'import sys; sys.exit(3)')",
        "os.execvpe(sys.executable, [sys.executable, '-c', 'import os; "
        "print(os.environ[\"A\"])'], {'A': 'b'})",
    ],
)
def test_a_program_that_leaves_at_once_has_its_report_before(
    tmp_path: pathlib.Path, ending: str
) -> None:
    same(tmp_path, "train()\n" + ending)


def test_leaving_at_once_with_a_finding_makes_the_exit_code_one(tmp_path: pathlib.Path) -> None:
    _, watched = both(tmp_path, "train_half()\nos._exit(0)")
    assert (watched.code, f"train.py:{CUT}:" in watched.err) == (1, True), watched.err


def test_what_the_program_did_not_flush_before_it_left_stays_unwritten(
    tmp_path: pathlib.Path,
) -> None:
    same(tmp_path, "train()\nsys.stdout.write('lost')\nos._exit(0)")


def test_an_exec_that_fails_leaves_one_report(tmp_path: pathlib.Path) -> None:
    _, watched = both(
        tmp_path,
        "train()\ntry:\n    os.execv('/nonexistent/x', ['x'])\nexcept OSError:\n    print('on')",
    )
    assert watched.out.endswith("on\n")
    assert watched.err.count("optimizer steps") == 1


def test_a_child_process_leaves_the_report_to_its_parent(tmp_path: pathlib.Path) -> None:
    same(
        tmp_path,
        """
        train()
        for how in (lambda: os._exit(3), lambda: sys.exit(4), lambda: 1 / 0, lambda: train(2)):
            child = os.fork()
            if child == 0:
                sys.stderr.close()
                how()
                os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        train()
        """,
    )


@pytest.mark.parametrize(
    ("hook", "code", "shown"),
    [
        (
            "sys.excepthook = lambda *error: print('hooked', error[0].__name__, file=sys.stderr)",
            1,
            ["hooked KeyError"],
        ),
        (
            "def hook(*error): raise ValueError('broken')\nsys.excepthook = hook",
            1,
            [
                "Error in sys.excepthook:",
                "ValueError: broken",
                "Original exception was:",
                "KeyError: 'missing'",
            ],
        ),
        ("def hook(*error): sys.exit(9)\nsys.excepthook = hook", 9, []),
        (
            "sys.excepthook = None",
            1,
            ["TypeError: 'NoneType' object is not callable", "KeyError: 'missing'"],
        ),
        (
            "model.register_forward_hook(lambda *given: 1 / 0)\ntrain()",
            1,
            ["ZeroDivisionError: division by zero"],
        ),
        (
            "model[0].weight.register_hook(lambda gradient: 1 / 0)\ntrain()",
            1,
            ["ZeroDivisionError: division by zero"],
        ),
        (
            "optimizer.register_step_post_hook(lambda *given: 1 / 0)\ntrain()",
            1,
            ["ZeroDivisionError: division by zero"],
        ),
    ],
)
def test_an_exception_ends_the_program_as_its_own_hooks_have_it(
    tmp_path: pathlib.Path, hook: str, code: int, shown: list[str]
) -> None:
    (tmp_path / "train.py").write_text(f"{HEAD}train()\n{hook}\n{{}}['missing']")
    watched = trace(tmp_path, "train.py")
    lines = watched.err.splitlines()
    places = [lines.index(line) for line in shown]
    assert (watched.code, places) == (code, sorted(places)), watched.err
    assert re.search(r"[45] optimizer steps, ended by (KeyError|ZeroDivisionError)", watched.err), (
        watched.err
    )
    assert "gradlint/trace" not in watched.err


def test_a_program_that_patches_torch_keeps_its_patches(tmp_path: pathlib.Path) -> None:
    same(
        tmp_path,
        """
        import atexit
        counts = {"backward": 0, "call": 0, "step": 0}
        def counting(name, original):
            def patched(*args, **kwargs):
                counts[name] += 1
                return original(*args, **kwargs)
            return patched
        torch.autograd.backward = counting("backward", torch.autograd.backward)
        torch.nn.Module.__call__ = counting("call", torch.nn.Module.__call__)
        torch.optim.SGD.step = counting("step", torch.optim.SGD.step)
        train()
        def late():
            train(1)
            print(counts)
        atexit.register(late)
        """,
    )


def test_streams_that_the_program_closes_or_replaces_do_not_take_the_report_along(
    tmp_path: pathlib.Path,
) -> None:
    same(
        tmp_path,
        "import io\ntrain()\nsys.stderr.close()\nsys.stderr = io.StringIO()\n"
        "sys.stdout = sys.stderr",
    )


def test_bytes_that_are_no_text_are_printed_as_they_are(tmp_path: pathlib.Path) -> None:
    same(
        tmp_path,
        "train()\nsys.stdout.flush()\nos.write(1, '\\u20ac'.encode() + b'\\x00\\x1b[0m\\n')",
    )


def test_a_program_that_begins_to_trace_its_frames_is_not_disturbed(tmp_path: pathlib.Path) -> None:
    same(
        tmp_path,
        """
        seen = set()
        def note(frame, event, given):
            seen.add(frame.f_code.co_name)
            return note
        def outer():
            train(2)
            sys.settrace(note)
            train(2)
            sys.settrace(None)
            train(2)
        outer()
        print("train" in seen)
        """,
    )


def test_steps_run_the_finally_blocks_of_the_program(tmp_path: pathlib.Path) -> None:
    _, watched = both(
        tmp_path,
        """
        try:
            with open("log", "w") as log:
                log.write("kept")
                train(10)
        finally:
            torch.save(model.state_dict(), "last.pt")
            print("saved", open("log").read())
        """,
        "--steps", "3",
    )  # fmt: skip
    assert (watched.out, watched.code) == ("saved kept\n", 0), watched.err
    assert "3 optimizer steps" in watched.err
    assert (tmp_path / "last.pt").stat().st_size > 0


def test_training_in_a_thread_that_outlives_the_program_is_waited_for(
    tmp_path: pathlib.Path,
) -> None:
    same(tmp_path, "threading.Thread(target=train, args=(5,)).start()", says="5 optimizer steps")


def test_ten_thousand_steps_take_no_more_memory_than_two_thousand(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(
        textwrap.dedent(
            """
            import resource
            import torch
            weight = torch.nn.Parameter(torch.ones(2))
            optimizer = torch.optim.SGD([weight], lr=1e-4)
            def run(steps):
                for _ in range(steps):
                    optimizer.zero_grad()
                    loss = (weight * 2).sum()
                    loss.backward()
                    optimizer.step()
                return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            first = run(2_000)
            print((run(8_000) - first) // 1024)
            """
        )
    )
    watched = trace(tmp_path, "train.py", seconds=900)
    assert watched.code == 0, watched.err
    assert "10000 optimizer steps" in watched.err
    assert int(watched.out) < 20  # MiB


def test_a_step_that_the_scaler_refuses_after_a_clearing_has_its_report(
    tmp_path: pathlib.Path,
) -> None:
    same(
        tmp_path,
        """
        scaler = torch.amp.GradScaler("cpu")
        optimizer.zero_grad()
        try:
            scaler.step(optimizer)
        except AssertionError:
            print("refused")
        """,
        says="0 optimizer steps",
    )


def test_a_step_that_the_scaler_leaves_out_writes_no_parameter(tmp_path: pathlib.Path) -> None:
    _, watched = both(
        tmp_path,
        """
        scaler = torch.amp.GradScaler("cpu")
        kept = model(torch.randn(8, 4)).pow(2).mean()
        scaler.scale(model(torch.full((8, 4), torch.inf)).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        with torch.no_grad():
            model[2].weight.add_(1)  # written
        kept.backward()
        """,
    )
    lines = (tmp_path / "train.py").read_text().splitlines()
    written = next(
        number for number, line in enumerate(lines, start=1) if line.endswith("# written")
    )
    assert (
        "error[GL203]: this changes parameters that the graph of `kept` saved before" in watched.err
    ), watched.err
    assert f"--> train.py:{written}:" in watched.err
    assert "0 optimizer steps" in watched.err


def test_what_lives_on_from_step_to_step_does_not_keep_the_records_of_all_steps(
    tmp_path: pathlib.Path,
) -> None:
    _, watched = both(
        tmp_path,
        """
        import gc
        average = [parameter.detach().clone() for parameter in model.parameters()]
        norm = torch.nn.BatchNorm1d(4)
        total = torch.zeros(())
        for _ in range(120):
            loss = model(norm(torch.randn(8, 4))).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total = total + loss.detach()
            for kept, parameter in zip(average, model.parameters()):
                kept.mul_(0.9).add_(parameter.detach(), alpha=0.1)
        records = [each for each in gc.get_objects() if type(each).__name__ == "Op"]
        print(len(records), sum(each.step < 90 and each.step > 10 and bool(each.inputs) for each in records))
        """,
    )
    known, old = map(int, watched.out.split())
    assert (known > 100, old) == (True, 0), watched.out


def test_what_is_compiled_in_a_region_that_is_left_alone_runs_as_it_does_alone(
    tmp_path: pathlib.Path,
) -> None:
    same(
        tmp_path,
        """
        def shown(graph, inputs):
            print("graph of", len(graph.graph.nodes), flush=True)
            return graph.forward

        score = model.forward
        for epoch in range(8):
            train(1)
            with torch.no_grad():
                batch = torch.randn(8, 4)
                print(model(batch).sum().item().hex(), flush=True)
                if epoch == 6:
                    score = torch.compile(model.forward, backend=shown)
                    score(batch)
            print(score(batch).sum().item().hex(), flush=True)
        """,
    )


def test_a_recurrent_layer_that_cudnn_refuses_in_eval_mode_is_named_with_the_line(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        class Refuses(torch.autograd.Function):  # as cuDNN does
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, gradient):
                raise RuntimeError("cudnn RNN backward can only be called in training mode")

        tagger = torch.nn.ModuleDict({"words": torch.nn.LSTM(4, 8), "unused": torch.nn.GRU(4, 8)})
        tagger.eval()
        Refuses.apply(tagger["words"](torch.randn(2, 3, 4))[0]).sum().backward()
    """
    (tmp_path / "train.py").write_text(HEAD + textwrap.dedent(body))
    told = [line for line in trace(tmp_path, "train.py").err.splitlines() if "cuDNN" in line]
    assert len(told) == 1
    assert "tagger.words is in it, since train.py:" in told[0]
    assert "`tagger.eval()`" in told[0]


def test_a_method_of_a_class_stays_one_however_it_is_written() -> None:
    from gradlint.trace.session import Session  # which imports torch

    class Plain(dict[str, int]):
        # in C, as `torch.autograd.Function.apply` is since torch 2.14
        fromkeys = vars(dict)["fromkeys"]

        @classmethod
        def named(cls, name: str) -> str:
            return cls.__name__ + name

        @staticmethod
        def doubled(number: int) -> int:
            return 2 * number

    session = Session("watch")
    calls: list[tuple[object, ...]] = []

    def counted(original: Callable[..., object]) -> Callable[..., object]:
        def call(*given: object) -> object:
            calls.append(given)
            return original(*given)

        return call

    for name in ("fromkeys", "named", "doubled"):
        session.replace(Plain, name, counted)
    assert (type(Plain.fromkeys("ab")), Plain.named("!"), Plain.doubled(4)) == (Plain, "Plain!", 8)
    assert calls == [(Plain, "ab"), (Plain, "!"), (4,)]
    session.close()
    assert (type(Plain.fromkeys("ab")), Plain.named("!"), Plain.doubled(4), len(calls)) == (
        Plain,
        "Plain!",
        8,
        3,
    )


def test_a_function_mode_of_the_programs_own_sees_what_it_sees_alone(
    tmp_path: pathlib.Path,
) -> None:
    same(
        tmp_path,
        """
        from collections import Counter
        from torch.overrides import TorchFunctionMode

        class Counts(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                calls[getattr(func, "__qualname__", func.__name__)] += 1
                return func(*args, **(kwargs or {}))

        calls = Counter()
        with Counts():
            train(5)
            model.zero_grad()
            model.half()
            model.float()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for parameter in model.parameters():
                parameter.grad = None
            torch.autograd.grad(model(torch.randn(8, 4)).sum(), model[0].weight)
        print(sorted(calls.items()))
        """,
    )


WARNING = """
import warnings
from warnings import warn
from torch.nn import functional as F

class Careful(torch.nn.Module):
    def forward(self, x):
        for level in range(1, 5):
            warnings.warn(f"from {level}", stacklevel=level)
            warn(f"early, from {level}", FutureWarning, stacklevel=level)
        return model(x)

careful, x = Careful(), torch.randn(2, 4)
careful(x)
out = careful(x)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
scheduler.step()

def asks():
    return (
        lambda: out.grad,
        lambda: torch.tensor(x),
        lambda: F.softmax(x),
        lambda: torch.nn.Softmax()(x),
        lambda: F.mse_loss(out, x[:, 0]),
        lambda: torch.nn.MSELoss()(out, x[:, 0]),
    )

for action in ("always", "default", "module", "once"):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter(action)
        for each in asks():
            each()
            each()
    print(action, *((os.path.basename(each.filename), each.lineno, each.category.__name__) for each in told), sep="\\n")
with warnings.catch_warnings():
    warnings.filterwarnings("error", module="__main__")
    for each in asks():
        try:
            each()
            print("nothing")
        except UserWarning as error:
            print(str(error)[:40])
train()
scheduler.step(5)
"""


def test_a_warning_is_about_the_line_that_it_is_about_alone(tmp_path: pathlib.Path) -> None:
    alone, watched = both(tmp_path, WARNING, "--output-file", "report.txt", "--fail-on", "never")
    assert (watched.out, watched.code) == (alone.out, 0), watched.err
    assert watched.err.replace(f"{tmp_path}{os.sep}", "") == alone.err.replace(
        f"{tmp_path}{os.sep}", ""
    )
    assert len(re.findall("Warning: ", alone.err)) > 12


def test_a_traceback_that_the_program_prints_itself_is_that_of_the_plain_run(
    tmp_path: pathlib.Path,
) -> None:
    _, watched = both(
        tmp_path,
        """
        import logging, traceback
        logging.basicConfig(stream=sys.stdout)
        class Wrong(torch.nn.Module):
            def forward(self, x):
                names = [each.name for each in traceback.extract_stack()]
                print(names[names.index("fail"):], "invoke" in names)  # a function of our command line's
                return torch.nn.functional.linear(x, torch.zeros(3, 7))

        def fail(broken):
            try:
                broken()
            except Exception:
                traceback.print_exc(file=sys.stdout)
                logging.exception("it failed")
                print(traceback.format_exc(limit=2), traceback.format_exc(limit=-1))

        x = torch.ones(4, 4)
        fail(lambda: model(x).mean().detach().backward())
        fail(lambda: Wrong()(x))
        fail(lambda: optimizer.step(lambda: 1 / 0))
        fail(lambda: torch.einsum("ij,jk->ik", x, x[1:]))
        other = threading.Thread(target=fail, args=(lambda: x @ model(x[:1]),))
        other.start()
        other.join()
        train()
        """,
        "--fail-on", "never",
    )  # fmt: skip
    alone = plain(tmp_path, str(tmp_path / "train.py"))  # Python itself makes the path absolute
    assert (watched.out, watched.code) == (alone.out, alone.code), watched.err
    assert "while watching" not in watched.err


def test_torch_warns_of_a_generator_without_parameters_as_it_does_alone(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        parameters = model.parameters()
        print(len(list(parameters)))
        train()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        """
    for ran in both(tmp_path, body, "--fail-on", "never"):
        assert "empty generator, no gradient clipping will occur" in ran.err, ran.err


WIDENED = """
import torch

torch.manual_seed(0)
head = torch.nn.Linear(4, 2)
for classes in (2, 3, 4):
    old = head
    if old.out_features < classes:
        head = torch.nn.Linear(4, classes)
        with torch.no_grad():
            head.weight[: old.out_features].copy_(old.weight)
            head.bias[: old.out_features].copy_(old.bias)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        loss = head(x).square().mean()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""


def test_a_part_of_a_parameter_may_be_written_where_an_optimizer_was_made(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "train.py").write_text(WIDENED)
    watched, alone = trace(tmp_path, "train.py"), plain(tmp_path, "train.py")
    assert (watched.out, watched.code) == (alone.out, alone.code), watched.err
    assert "while watching" not in watched.err
    assert "No finding" in watched.err
