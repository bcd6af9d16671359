"""Programs that compile: by default what they compile stays compiled, and the numbers are those of
the run alone.
"""

from __future__ import annotations

import pathlib
import textwrap

import pytest
from traced import Traced, plain, trace

HEAD = """
import copy
import torch
from torch import nn
torch.manual_seed(0)

def doubled(graph, inputs):  # other numbers than eagerly: shows that it ran compiled
    return lambda *args: tuple(2 * each for each in graph.forward(*args))

def counted(graph, inputs):
    graphs.append(len(graph.graph.nodes))
    return graph.forward

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.between(self.encoder(x)))

    def between(self, hidden):
        return hidden

class Cut(Net):
    def between(self, hidden):
        return hidden.detach()  # cut

def train(score, steps=5):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = score(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), flush=True)

graphs = []
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
CUT = (
    HEAD.splitlines().index(next(line for line in HEAD.splitlines() if line.endswith("# cut"))) + 1
)
UNSEEN = "what happens in compiled code is not seen; --level record runs it eagerly"


def both(folder: pathlib.Path, body: str, *options: str) -> tuple[Traced, Traced]:
    """A program run alone, and watched."""
    (folder / "train.py").write_text(HEAD + textwrap.dedent(body))
    return plain(folder, "train.py"), trace(folder, *options, "train.py")


@pytest.mark.parametrize("level", ["auto", "watch"])
def test_what_is_compiled_stays_so(tmp_path: pathlib.Path, level: str) -> None:
    body = """
        model = torch.compile(net, backend=doubled, fullgraph=True)
        average = copy.deepcopy(model)
        train(model)
        print(average(torch.ones(8, 4)).sum().item().hex())

        @torch.compile(backend=counted)
        def inner(x):
            return x.relu()

        @torch.compile(backend=counted, fullgraph=True)
        def whole(x):
            return inner(x) * 2

        net.head.compile(backend=counted)
        net.forward = torch.compile(net.forward, backend=counted)
        update = torch.compile(optimizer.step, backend=counted)
        optimizer.step = update
        train(lambda x: whole(net(x)))

        def speaks(x):
            y = net.head(x)
            print("mean", y.mean().item() > 0)
            with torch.no_grad():
                mean = y.mean()
            return y.relu() + mean

        broken = torch.compile(speaks, backend=counted)
        train(lambda x: broken(net.encoder(x)))
        print(graphs)
    """
    alone, watched = both(tmp_path, body, "--level", level)
    assert alone.code == 0, alone.err
    assert (watched.out, watched.code) == (alone.out, 0), watched.err
    assert UNSEEN in watched.err
    assert "No finding." in watched.err
    assert "while watching" not in watched.err


def test_what_comes_in_is_followed_through_compiled_code(tmp_path: pathlib.Path) -> None:
    body = """
        loss_of = torch.compile(lambda scores: scores.square().mean(), backend=counted)
        for _ in range(2):
            loss = loss_of(net(torch.randn(8, 4)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scores = net(torch.randn(8, 4))
        loss_of(scores.detach()).backward()  # raises
    """
    alone, watched = both(tmp_path, body)
    assert (watched.out, watched.code) == (alone.out, alone.code) == ("", 1)
    line = (HEAD + textwrap.dedent(body)).splitlines().index(
        "loss_of(scores.detach()).backward()  # raises"
    ) + 1
    assert "error[GL102]" in watched.err
    assert f"train.py:{line}:9" in watched.err, watched.err


def test_what_compiled_code_cuts_off_is_told_without_a_line(tmp_path: pathlib.Path) -> None:
    body = """
        class Argmax(Net):
            def between(self, hidden):
                return hidden.argmax(-1, keepdim=True).expand(-1, 8).float()

            def forward(self, x):
                return super().forward(x).detach()

        net = Cut()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train(torch.compile(net, backend=counted))
        net = Argmax()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train(torch.compile(net, backend=counted))
    """
    alone, watched = both(tmp_path, body)
    assert (watched.out, watched.code) == (alone.out, alone.code)
    assert watched.code == 1
    assert "no gradient came to net.encoder.0.weight, net.encoder.0.bias in any step" in watched.err
    line = HEAD.splitlines().index("        loss = score(torch.randn(8, 4)).square().mean()") + 1
    assert (
        f"this loss carries no gradient, and comes out of compiled code, called at train.py:{line}:"
        in watched.err
    )
    assert "No finding." in watched.err


def test_what_is_compiled_ahead_of_time_cuts_off_where_it_is_called(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        net = Cut()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train(torch.compile(net, backend="aot_eager"))
    """
    alone, watched = both(tmp_path, body, "--fail-on", "never")
    assert (watched.out, watched.code) == (alone.out, 0), watched.err
    line = HEAD.splitlines().index("        loss = score(torch.randn(8, 4)).square().mean()") + 1
    assert "warning[GL106]: `score(torch.randn(8, 4))` cuts the graph" in watched.err
    assert f"--> train.py:{line}:16" in watched.err
    assert "in any step" not in watched.err


def test_what_is_compiled_runs_eagerly_where_every_operation_is_to_be_recorded(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        net = Cut()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        train(torch.compile(net, backend=doubled))
    """
    alone, recorded = both(tmp_path, body, "--level", "record", "--fail-on", "never")
    assert recorded.code == 0
    assert recorded.out != alone.out
    assert "warning[GL106]" in recorded.err
    assert f"train.py:{CUT}:" in recorded.err
    assert "compiled code runs eagerly" in recorded.err


def test_a_torch_that_hides_its_compiled_functions_is_watched_without_the_recorder(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        from torch._dynamo import eval_frame
        class Hidden(eval_frame._TorchDynamoContext):
            pass
        own = eval_frame._TorchDynamoContext
        eval_frame._TorchDynamoContext = Hidden  # as if `__call__` were not its own
        try:
            model = torch.compile(net, backend=doubled, fullgraph=True)
        finally:
            eval_frame._TorchDynamoContext = own
        train(model)
    """
    alone, watched = both(tmp_path, body)
    assert alone.code == 0, alone.err
    assert (watched.out, watched.code) == (alone.out, 0), watched.err
    assert "nothing is recorded" in watched.err
    assert "while watching" not in watched.err


def test_what_the_compiler_differentiates_is_no_backward_of_the_programs(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        model = torch.compile(net, backend="aot_eager")

        def score(x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return model(x).float()

        train(score)
    """
    alone, watched = both(tmp_path, body)
    assert (watched.out, watched.code) == (alone.out, 0), watched.err
    assert "No finding." in watched.err


def test_a_compiled_loss_that_is_back_propagated_itself_shows_what_it_cuts_off(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        net = Cut()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        loss_of = torch.compile(lambda x: net(x).square().mean(), backend="aot_eager")
        for step in range(6):  # more than are recorded
            optimizer.zero_grad()
            loss_of(torch.randn(8, 4)).backward()
            optimizer.step()
    """
    alone, watched = both(tmp_path, body, "--fail-on", "never")
    assert (watched.out, watched.code) == (alone.out, 0), watched.err
    assert "no gradient comes back to `net.encoder.0.weight`" in watched.err
    assert "in any step" not in watched.err


def test_the_probes_run_uncompiled_where_compiled_autograd_calls_them(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        torch._dynamo.config.compiled_autograd = True
        nn.modules.module._global_module_registration_hooks.clear()  # one of `traced`

        @torch.compile(backend="aot_eager")
        def gradients_of(x):
            loss = net(x).square().mean()
            loss.backward()
            return loss.detach()

        for step in range(5):
            optimizer.zero_grad()
            print(gradients_of(torch.randn(8, 4)).item().hex())
            optimizer.step()
    """
    alone, watched = both(tmp_path, body)
    assert alone.code == 0, alone.err
    assert (watched.out, watched.code) == (alone.out, 0), watched.err
    assert "while watching" not in watched.err
    assert "Dynamo does not know" not in watched.err
