"""The report of a traced run: short, the worst first, in words of the program, and in the formats
of `check`.
"""

from __future__ import annotations

import json
import pathlib
import re
import textwrap
from xml.etree import ElementTree

import pytest
from traced import plain, trace

from gradlint.owners import grouped

PROGRAM = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x):
        return x + self.net(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block(), Block())
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.blocks(x).detach())

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for x in torch.randn(6, 8, 4):
    loss = nn.functional.cross_entropy(model(x).softmax(1), torch.ones(8, dtype=torch.long))
    loss.backward()
    kept.append(loss)
    optimizer.step()
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


def paragraphs(text: str) -> list[list[str]]:
    """The findings of a report, each as its lines."""
    found = [part.splitlines() for part in text.split("\n\n")]
    return [lines for lines in found if re.match(r"(error|warning|note)\[", lines[0])]


def test_the_worst_comes_first_in_few_lines_and_names_modules(folder: pathlib.Path) -> None:
    found = paragraphs(trace(folder, "train.py").err)
    assert [lines[0].partition("[")[0] for lines in found] == [
        "error",
        "error",
        "warning",
        "warning",
    ]
    assert all(len(lines) <= 10 for lines in found)
    for lines in found:
        quoted = [
            line for source in PROGRAM.splitlines() if (line := source.strip()) and len(line) > 10
        ]
        assert all(sum(line.endswith(source) for line in lines) <= 1 for source in quoted)
    cut = next(lines for lines in found if "[GL106]" in lines[0])
    assert "no gradient comes back to `model.blocks`, which `optimizer` is to train" in cut[0]
    assert "parameters not reached: model.blocks (12 of 14 parameters)" in cut
    assert "route from the loss: train.py:26:12 <- 26:40 <- 20:16 <- 20:26" in cut
    [verbose] = [
        lines
        for lines in paragraphs(trace(folder, "--verbose", "train.py").err)
        if "[GL106]" in lines[0]
    ]
    assert len(verbose) > 10
    assert {"  train.py:26:40", "  train.py:20:26"} <= set(verbose)


@pytest.mark.parametrize("name", ["concise", "github", "sarif", "junit", "gitlab", "jsonl"])
def test_the_formats_of_check_tell_of_a_run(folder: pathlib.Path, name: str) -> None:
    ran = trace(folder, "--output-format", name, "--fail-on", "never", "train.py")
    documents = {"sarif", "junit", "gitlab", "jsonl"}
    text, other = (ran.out, ran.err) if name in documents else (ran.err, ran.out)
    assert (ran.code, other) == (0, "")
    counts = {
        "concise": lambda: len(re.findall(r"^train\.py:\d+:\d+: \w+\[GL\d+\]", text, re.MULTILINE)),
        "github": lambda: text.count("file=train.py"),
        "sarif": lambda: len(json.loads(text)["runs"][0]["results"]),
        "junit": lambda: len(ElementTree.fromstring(text).findall("testsuite/testcase/failure")),
        "gitlab": lambda: len(json.loads(text)),
        "jsonl": lambda: len([json.loads(line) for line in text.splitlines()]),
    }
    assert counts[name]() == 4


def test_the_loss_is_what_a_librarys_backward_was_handed(tmp_path: pathlib.Path) -> None:
    library = tmp_path / "site-packages" / "fabricated.py"
    library.parent.mkdir()
    library.write_text(
        textwrap.dedent(
            """
            class Fabric:
                def backward(self, loss, **options):
                    (loss / 2).backward(**options)
            """
        )
    )
    text = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, "site-packages")
        import torch
        from fabricated import Fabric

        fabric, encoder, head = Fabric(), torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)

        def score(x):
            loss = head(encoder(x).detach()).square().mean()
            return loss

        for x in torch.randn(3, 8, 4):
            objective = score(x)
            optimizer.zero_grad()
            fabric.backward(objective)
            optimizer.step()
        """
    )
    (tmp_path / "train.py").write_text(text)
    told = trace(tmp_path, "train.py").err
    assert "`objective` is back-propagated here: fabric.backward(objective)" in told
    assert "`fabric`" not in told


def test_a_layer_of_a_sequential_is_named(tmp_path: pathlib.Path) -> None:
    text = textwrap.dedent(
        """
        import torch
        from torch import nn

        model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid(), nn.ReLU(inplace=True))
        model(torch.randn(8, 4)).sum().backward()
        """
    )
    (tmp_path / "train.py").write_text(text)
    assert "`torch.sigmoid()` in `model.1` saved its result" in trace(tmp_path, "train.py").err


def test_modules_stand_for_parameters_that_are_all_there_is_of_them() -> None:
    layers = [
        f"self.model.{part}.{layer}.{name}"
        for part in "ab"
        for layer in "01"
        for name in ("weight", "bias")
    ]
    assert grouped(layers, layers) == ["self.model"]
    assert grouped(layers[:4], layers) == ["self.model.a"]
    assert grouped(layers[:5], layers) == ["self.model.a", "self.model.b.0.weight"]
    assert grouped(["head.weight"], layers) == ["head.weight"]


def test_gradients_are_logged_by_module_and_the_first_nan_is_told(tmp_path: pathlib.Path) -> None:
    text = """
    import sys, types
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(12, 2)
    x[7] = float("nan")
    for batch, in DataLoader(TensorDataset(x), batch_size=2):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(text))
    ran = trace(tmp_path, "--log", "logs/run", "train.py")
    assert "the loss is not finite from step 3, batch 3 on: train.py:13:5" in ran.err
    lines = [
        json.loads(line)
        for line in (tmp_path / "logs" / "run" / "gradients.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in lines] == list(range(6))
    assert lines[3]["losses"] == ["nan"]
    assert set(lines[0]["modules"]) == {"model.0", "model.1"}
    first, second = lines[0]["modules"].values()
    assert lines[0]["norm"] == pytest.approx((first**2 + second**2) ** 0.5)
    assert ran.digest == plain(tmp_path, "train.py").digest
    told = json.loads(trace(tmp_path, "--log", "logs", "--output-format", "json", "train.py").out)
    assert told["not_finite"] == {"what": "the loss", "step": 3, "batch": 3, "at": "train.py:13:5"}


def test_gradients_that_are_all_zero_are_told_although_a_decay_moves_the_parameters(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "train.py").write_text(ADAPTERS)
    err = trace(tmp_path, "train.py").err
    assert "No finding, but every gradient was zero in 4 steps: nothing is learned." in err
    (tmp_path / "train.py").write_text(ADAPTERS.replace("up, False", "up, True"))
    assert "No finding.\n" in trace(tmp_path, "train.py").err


ADAPTERS = """
import torch

torch.manual_seed(0)
down, up = torch.nn.Linear(4, 2), torch.nn.Linear(2, 1)
torch.nn.init.zeros_(up.weight)
for part, is_learned in ((down, True), (up, False)):
    part.requires_grad_(is_learned)
parameters = [each for part in (down, up) for each in part.parameters() if each.requires_grad]
optimizer = torch.optim.AdamW(parameters, lr=0.1, weight_decay=0.1)
for x in torch.randn(4, 8, 4):
    loss = (up(down(x)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_parameters_that_no_gradient_came_to_are_named_where_nothing_was_found(
    tmp_path: pathlib.Path,
) -> None:
    program = """
        import ctypes
        import torch

        def kernel(x):  # as a kernel of the user's on a GPU, which no operation of torch's shows
            out = torch.empty_like(x)
            ctypes.memmove(out.data_ptr(), x.data_ptr(), x.numel() * x.element_size())
            return out

        encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        for step in range(3):
            loss = head(kernel(encoder(torch.randn(2, 4)))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    ran = trace(tmp_path, "train.py")
    assert (
        "no gradient came to encoder.weight, encoder.bias in any step: no loss was seen" in ran.err
    )
    assert "No finding." in ran.err


def test_an_optimizer_that_a_library_keeps_is_not_named_by_what_the_call_gives(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "site-packages").mkdir()
    library = """
        import torch

        def made(model):
            return torch.optim.SGD(model.parameters(), lr=0.1)

        def fit(model):
            optimizer = made(model)
            for step in range(3):
                update(model, optimizer)

        def update(model, optimizer):
            model(torch.randn(2, 4)).square().mean().backward()
            optimizer.step()
    """
    (tmp_path / "site-packages" / "fitting.py").write_text(textwrap.dedent(library))
    program = """
        import sys
        import torch
        sys.path.append("site-packages")
        import fitting
        first, second = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
        result = fitting.fit(first)
        own = fitting.made(second)
        for step in range(3):
            fitting.update(second, own)
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    told = trace(tmp_path, "--show-graph", "train.py").err
    assert re.search(r"first +2 +yes +sgd ", told)
    assert re.search(r"second +2 +yes +own ", told)


def test_the_graph_shows_a_cut_behind_views_and_none_that_costs_no_gradient(
    tmp_path: pathlib.Path,
) -> None:
    program = """
        import torch
        encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        for step in range(2):
            hidden = encoder(torch.randn(2, 4))
            kept = hidden.detach()
            scores = head(kept.view(4, 4))
            weights = (scores - scores.max().detach()).exp()
            loss = weights.log().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    told = trace(tmp_path, "--show-graph", "train.py").err
    assert re.search(
        r"head\(kept.view\(4, 4\)\).*\n +train.py:7:12  hidden.detach\(\)  cut: detach", told
    )
    assert told.count("cut: ") == 1
