"""How far a module with no trainer in view is run: large ones, bases and decorators elsewhere, what
they cut off.
"""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze
from gradlint.analyzer import tapes_of
from gradlint.interpret import search, settling, sweeps
from gradlint.tape import Backward

HEAD = (
    "from typing import Type, Union\n\nimport torch\nimport torch.nn.functional as F\n"
    "from torch import nn\n\n"
)


def told(tmp_path: pathlib.Path, program: str, **others: str) -> list[tuple[str, int]]:
    """The codes of what is found that is more than a note, each with its line in the program."""
    for name, text in others.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text, encoding="utf-8")
    path = tmp_path / "model.py"
    path.write_text(HEAD + program, encoding="utf-8")
    found = analyze([path], select=lambda code: code != "GL205").findings
    first = HEAD.count("\n")
    return [(each.code, each.at.line - first) for each in found if each.severity.label != "note"]


CUT = """\
class Net(nn.Module):
    def __init__(self, width, stop):
        super().__init__()
        self.stem, self.head, self.stop = nn.Conv2d(3, width, 3), nn.Linear(width, 10), stop
        self.body = nn.Sequential(nn.Conv2d(width, width, 3), nn.ReLU())
        self.aux = None
    def forward(self, x):
        x = self.stem(x)
        {}
        return self.head(x.mean((2, 3)))
"""
UNTRAINED = {
    "x = x.detach()": 9,
    "x = x.data": 9,
    "x = torch.tensor(x.tolist())": 9,
    "x = x.long().to(x.dtype)": 9,
    "x = self.body(x).round()": 9,
}
TRAINED = (
    "x = x + (x.round() - x).detach()",
    "x = x.detach() if self.stop else x",
    "self.aux = self.stem(x).sum(); x = x.detach()",
    "x = self.body(x.detach()) + x",
)


@pytest.mark.parametrize("line", UNTRAINED)
def test_a_module_that_cuts_off_a_layer_of_its_own_trains_it_nowhere(
    line: str, tmp_path: pathlib.Path
) -> None:
    assert told(tmp_path, CUT.format(line)) == [("GL106", UNTRAINED[line])]


@pytest.mark.parametrize("line", TRAINED)
def test_what_another_route_or_another_path_trains_is_left_alone(
    line: str, tmp_path: pathlib.Path
) -> None:
    line = line.replace("self.stem(x)", "x")
    assert told(tmp_path, CUT.format(line)) == []


FROZEN = """\
class Probe(nn.Module):
    def __init__(self, encoder, width):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(width, 10)
        self.loaded = nn.Sequential(nn.Linear(width, width), nn.ReLU())
    def forward(self, x):
        with torch.no_grad():
            x = self.loaded(self.encoder(x))
        return self.head(x)
"""


def test_an_encoder_behind_no_grad_is_meant_to_stay_as_it_is(tmp_path: pathlib.Path) -> None:
    assert told(tmp_path, FROZEN) == []


def test_a_module_is_made_of_each_class_that_its_annotation_names(tmp_path: pathlib.Path) -> None:
    blocks = "".join(
        f"class {name}(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
        "        self.conv, self.act = nn.Conv2d(width, width, 3), nn.ReLU()\n"
        f"    def forward(self, x):\n{body}\n"
        for name, body in {
            "Plain": "        x *= 0.5\n        return self.act(self.conv(x))",
            "Wide": "        y = self.conv(x)\n        x += 1.0\n        return self.act(y)",
        }.items()
    )
    net = (
        "class Net(nn.Module):\n    def __init__(self, width, block: type[Union[Plain, Wide]]):\n"
        "        super().__init__()\n        self.one, self.two = block(width), block(width)\n"
        "    def forward(self, x):\n        return self.two(self.one(x))\n"
    )
    assert told(tmp_path, blocks + net) == [("GL201", 6), ("GL201", 14)]


SLOW = """\
def documented(cls):
    for word in range(100_000):
        for letter in str(word) * 50:
            cls.__doc__ = (cls.__doc__ or "") + letter.upper().lower().strip()
    return cls

class Base(nn.Module):
    def __init__(self, config):
        super().__init__()
        if not hasattr(config, "kind"):
            raise ValueError("no kind")
        self.config = config
"""
WITH_SLOW = """\
from slow import Base, documented

@documented
class Block(Base):
    def __init__(self, config):
        super().__init__(config)
        self.body = nn.Linear(config.width, config.width)
    def forward(self, x):
        y = torch.sigmoid(self.body(x))
        y += x
        return y
"""


def test_what_a_decorator_or_a_base_of_another_file_comes_to_ends_nothing(
    tmp_path: pathlib.Path,
) -> None:
    assert told(tmp_path, WITH_SLOW, slow=SLOW) == [("GL201", 10)]


DEEP = """\
class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(width, width, 3), nn.BatchNorm2d(width), nn.ReLU()
    def forward(self, x):
        return self.act(self.norm(self.conv(x)))

class Deep(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(*[Layer(width) for _ in range(6)]) for _ in range(8)])
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.BatchNorm2d):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        x[0] = 0.0
        return x
"""


def test_a_module_of_many_layers_is_run_to_its_end(tmp_path: pathlib.Path) -> None:
    assert told(tmp_path, DEEP) == [("GL201", 21)]


def test_a_function_with_inplace_writes_into_what_something_unknown_gave(
    tmp_path: pathlib.Path,
) -> None:
    program = (
        "class Head(nn.Module):\n    def __init__(self, body):\n        super().__init__()\n"
        "        self.body = body\n"
        "    def forward(self, x):\n        h = torch.tanh(self.body(x))\n"
        "        y = self.body(h)\n"
        "        z = torch.sigmoid(y)\n        F.relu(z, inplace=True)\n        return z\n"
    )
    assert told(tmp_path, program) == [("GL201", 9)]


SWITCHED = """\
class Wrapper(nn.Module):
    def __init__(self, net, critic=None, hinted=False, clipped=False, scaled=False):
        super().__init__()
        self.net, self.critic, self.hinted = net, critic, hinted
        if hinted:
            self.hint = nn.Linear(8, 8)
        self.clipped, self.scaled = clipped, scaled
    def forward(self, x, {flag}, only_shown=False, only_named=False):
        extra = self.hint(x) if self.hinted else None
        stop = torch.no_grad if only_critic else contextlib.nullcontext
        with stop():
            logits = self.net(x, extra=extra)
        if self.clipped:
            logits = logits.clamp(-1, 1)
        if self.scaled:
            logits = logits / 2
        if only_shown:
            print(logits)
        if only_named:
            print(self.net)
        return logits if self.critic is None else self.critic(logits)
"""


@pytest.mark.parametrize(("default", "lines"), [("False", []), ("True", [12])])
def test_a_flag_of_a_call_has_its_default_where_an_object_is_made_otherwise(
    default: str, lines: list[int], tmp_path: pathlib.Path
) -> None:
    program = "import contextlib\n" + SWITCHED.format(flag=f"only_critic={default}")
    assert told(tmp_path, program) == [("GL106", line) for line in lines]


MINED = """\
def check_sizes(embeddings, labels):
    if labels is not None and embeddings.shape[0] != labels.shape[0]:
        raise ValueError("one label for each embedding")


def mined_loss(embeddings, labels):
    check_sizes(embeddings, labels)
    labels = labels.to(embeddings.device)
    return (embeddings - embeddings[labels]).pow(2).mean()
"""


def test_what_a_check_of_shapes_speaks_of_is_there_on_the_first_path(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "losses.py"
    path.write_text(HEAD + MINED, encoding="utf-8")
    first = next(made for made in tapes_of(path) if made.entry.endswith("mined_loss"))
    assert [event for event in first.events if isinstance(event, Backward)]
    assert [(each.text, each.holds) for each in first.decisions][:1] == [
        ("labels is not None", True)
    ]


CHUNKED = """\
def piece_loss(hidden, weight, bias, target):
    scores = hidden @ weight.t()
    if bias is not None:
        scores = scores + bias
    return F.cross_entropy(scores, target, reduction="sum")


def chunked_loss(hidden_valid, head_weight, head_bias, target_ids, size: int):
    total = hidden_valid.new_zeros(())
    for start in range(0, hidden_valid.size(0), size):
        rows = slice(start, start + size)
        total = total + piece_loss(
            hidden_valid[rows], head_weight, head_bias, target_ids[rows]
        )
    return total
"""


def test_nothing_is_said_of_a_loss_that_is_called_without_its_prediction(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "losses.py"
    path.write_text(HEAD + CHUNKED, encoding="utf-8")
    assert not analyze([path], select=lambda code: code == "GL101").findings


@pytest.mark.parametrize(
    ("kept", "codes"),
    [("isinstance(each, torch.Tensor)", []), ("each.shape[0] > 8", ["GL101"])],
)
def test_among_results_that_a_comprehension_asks_for_their_kind_is_one_of_it(
    tmp_path: pathlib.Path, kept: str, codes: list[str]
) -> None:
    program = tmp_path / "measure.py"
    program.write_text(
        "import torch\n\ndef measure(function, given):\n    results = function(*given)\n"
        f"    total = sum(each.sum() for each in results if {kept})\n"
        "    total.backward(torch.ones(()))\n"
    )
    found = analyze([program], select=lambda _: True).findings
    assert [finding.code for finding in found] == codes


LEFT_OPEN = """\
class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.stages = [nn.Linear(width, width) for _ in range(2)]
        self.head = nn.Linear(width, 1)
    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.head(x)
"""
TRAINER = """\
import other
from model import Net

model = Net()
if other.asks():
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
else:
    optimizer = torch.optim.SGD([*model.parameters(), *other.more()], lr=0.1)
for x in torch.randn(3, 2, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("steps", "found"), [(-1, ["GL514"]), (40_000, [])])
def test_a_part_is_judged_by_itself_where_its_trainer_leaves_a_question_open(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, steps: int, found: list[str]
) -> None:
    """What is asked of the sides that were not run is whether an optimizer holds the layers: where
    that is not known, the contract says what it can; where it is, as the trainer may hold them,
    nothing does.
    """
    monkeypatch.setattr(search, "BUDGET", 1)
    monkeypatch.setattr(sweeps, "IN_VAIN", 0)
    monkeypatch.setattr(settling, "MOST_STEPS", steps)
    (tmp_path / "model.py").write_text(HEAD + LEFT_OPEN, encoding="utf-8")
    (tmp_path / "train.py").write_text(HEAD + TRAINER, encoding="utf-8")
    checked = analyze([tmp_path / "model.py", tmp_path / "train.py"], select=lambda _: True)
    assert [each.code for each in checked.findings] == found


COUNTED = """\
from jaxtyping import Bool
from einops import rearrange, reduce
class PackedLoss:
    def __call__(self, pred: torch.Tensor, target: torch.Tensor, prediction_mask: {} | None):
        mask = rearrange(prediction_mask, "... s -> ... 1 s")
        count = reduce(mask * mask, "... a b -> ... a 1", "sum")
        weight = torch.where(count == 0, count, 1 / count).sum()
        return (reduce((pred - target) ** 2, "b n d -> b n", "{}"){} * weight).sum()
"""


@pytest.mark.parametrize(
    ("annotation", "how", "behind", "found"),
    [
        ("torch.BoolTensor", "sum", "", []),
        ("Bool[torch.Tensor, 'b n']", "sum", "", []),
        ("torch.Tensor", "sum", "", [("GL701", 7)]),
        ("torch.BoolTensor", "sum", ".sqrt()", [("GL703", 8)]),
        ("torch.BoolTensor", "mean", ".sqrt()", [("GL703", 8)]),
        ("torch.BoolTensor", "sum", ".add(1).sqrt()", []),
    ],
)
def test_annotations_say_what_has_no_gradient_and_einops_reduces_as_torch_does(
    tmp_path: pathlib.Path, annotation: str, how: str, behind: str, found: list[tuple[str, int]]
) -> None:
    assert told(tmp_path, COUNTED.format(annotation, how, behind)) == found
