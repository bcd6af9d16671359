"""Parts with no trainer in view: what their contracts assume, what is told of them, and what is
left alone.
"""

from __future__ import annotations

import pathlib

import pytest
from truth import observe

from gradlint.analysis import analyze

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"

TOLD = {
    "def my_loss(pred, target):\n    return F.mse_loss(pred.detach(), target)\n": (
        "GL102",
        "error",
    ),
    "def my_loss(pred, target):\n    return F.mse_loss(pred.argmax(1).float(), target)\n": (
        "GL104",
        "error",
    ),
    "def my_loss(pred, target):\n    with torch.no_grad():\n        e = pred.exp()\n"
    "    return (e - target).mean()\n": (
        "GL103",
        "error",
    ),
    "class MyLoss(nn.Module):\n    def forward(self, pred, labels):\n        kept = labels >= 0\n"
    "        if kept.sum() == 0:\n            return torch.tensor(0.0)\n"
    "        return F.cross_entropy(pred[kept], labels[kept])\n": ("GL101", "warning"),
    "def my_loss(pred, target, weight=0.0):\n    if weight == 0:\n        return torch.zeros(())\n"
    "    return weight * F.mse_loss(pred, target)\n": ("GL101", "note"),
    "def my_loss(pred, target):\n    a, b = pred[:, 0], pred[:, 1]\n"
    "    return (a / b.detach() - target).pow(2).mean()\n": ("GL109", "note"),
    "def error_loss(pred, target):\n    return (pred.argmax(1) != target).float().mean()\n": (
        "GL104",
        "note",
    ),
    "def choice_loss(pred, target: torch.Tensor):\n    return target[pred.argmax(1)].mean()\n": (
        "GL104",
        "error",
    ),
    "def rank_loss(pred, target: torch.Tensor):\n    best = pred.topk(3).indices\n"
    "    return 1 - target.gather(1, best).float().mean()\n": (
        "GL104",
        "error",
    ),
    "def length_loss(pred, target):\n    return (pred.exp().round() - target).abs().mean()\n": (
        "GL108",
        "warning",
    ),
    "def lddt_loss(pred, true, mask):\n    error = (torch.cdist(pred, pred) - "
    "torch.cdist(true, true)).abs()\n"
    "    near = (error < 0.5).float() + (error < 1.0).float()\n"
    "    return (near * mask).sum() / (mask.sum() + 1e-8)\n": ("GL104", "note"),
    "def dice_loss(logits, masks, threshold):\n    on = (torch.sigmoid(logits) > "
    "threshold).float()\n"
    "    return 1 - 2 * (on * masks).sum() / (on.sum() + masks.sum() + 1.0)\n": ("GL104", "error"),
}

LEFT_ALONE = """\
def focal_loss(logits, target):
    ce = F.cross_entropy(logits, target, reduction="none")
    return ((1 - torch.exp(-ce)).detach() ** 2 * ce).mean()

def distillation_loss(student, teacher):
    return F.kl_div(F.log_softmax(student, -1), F.softmax(teacher.detach(), -1))

def scaled_loss(insample, freq, forecast, target, mask):
    scale = (insample[:, freq:] - insample[:, :-freq]).abs().mean(1, keepdim=True)
    inverse = mask / scale
    inverse[inverse == float("inf")] = 0.0
    return ((target - forecast).abs() * inverse).mean()

@torch.no_grad()
def held_out_loss(pred, target):
    return F.mse_loss(pred, target)

def measured_loss(pred, target):
    return F.mse_loss(pred, target).item()

def plain_loss(pred, target):
    return torch.zeros(())

def validation_loss(pred, target):
    return F.mse_loss(pred.detach(), target)

def several_loss(outputs, targets):
    ce = F.cross_entropy(outputs["logits"], targets)
    return {"ce": ce, "error": (outputs["logits"].argmax(-1) != targets).float().mean()}
"""


def told(tmp_path: pathlib.Path, program: str) -> list[tuple[str, str, str]]:
    path = tmp_path / "losses.py"
    path.write_text(HEAD + program, encoding="utf-8")
    found = analyze([path], select=lambda code: code != "GL205")
    assert not found.gaps
    return [(each.code, each.severity.label, each.message) for each in found.findings]


@pytest.mark.parametrize("program", TOLD)
def test_a_loss_is_told_of_as_if_its_result_were_back_propagated(
    program: str, tmp_path: pathlib.Path
) -> None:
    ((code, severity, message),) = told(tmp_path, program)
    assert (code, severity) == TOLD[program]
    assert "the result of `" in message


@pytest.mark.parametrize("program", LEFT_ALONE.split("\n\n"))
def test_what_is_meant_or_only_measured_is_left_alone(program: str, tmp_path: pathlib.Path) -> None:
    assert told(tmp_path, program) == []


def test_uses_with_grad_mode_off_are_measurements(tmp_path: pathlib.Path) -> None:
    program = "def seen_loss(pred, target):\n    return F.mse_loss(pred.detach(), target)\n\n"
    program += (
        "def shown(model, x, y):\n    with torch.no_grad():\n"
        "        return seen_loss(model(x), y)\n"
    )
    assert told(tmp_path, program) == []


def test_a_program_in_view_judges_the_loss_that_it_runs(tmp_path: pathlib.Path) -> None:
    run = "def my_loss(pred, target):\n    return F.mse_loss(pred, target.detach())\n\n"
    run += (
        "def train(model, x, y, o):\n    o.zero_grad()\n    my_loss(model(x), y).backward()\n"
        "    o.step()\n"
    )
    assert told(tmp_path, run) == []


MODULES = {
    "GL201": "class Block(nn.Module):\n    def __init__(self, width, skip=None):\n"
    "        super().__init__()\n"
    "        self.body, self.skip = nn.Linear(width, width), skip\n"
    "    def forward(self, x):\n        y = torch.sigmoid(self.body(x))\n"
    "        if self.skip is not None:\n            y += x\n        return y\n",
    "GL204": "class Gate(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    "        self.body = nn.Linear(width, width)\n"
    "    def forward(self, x):\n        y = self.body(x).exp()\n"
    "        y.data.clamp_(max=2.0)\n        return y\n",
    "GL514": "class Heads(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    "        self.heads = [nn.Linear(width, 1) for _ in range(3)]\n"
    "        self.body = nn.Linear(width, width)\n"
    "    def forward(self, x):\n        h = self.body(x)\n"
    "        return sum(head(h) for head in self.heads)\n",
    "GL703": "class Spread(nn.Module):\n    def __init__(self, width):\n"
    "        super().__init__()\n"
    "        self.body = nn.Linear(width, width)\n"
    "    def forward(self, x):\n        h = self.body(x)\n        d = h[:, None] - h[None]\n"
    "        return d.pow(2).sum(-1).sqrt()\n",
    "GL703 in one of several results": "class Spread(nn.Module):\n    def __init__(self, width):\n"
    "        super().__init__()\n        self.body = nn.Linear(width, width)\n"
    "    def forward(self, x):\n        h = self.body(x)\n        d = h[:, None] - h[None]\n"
    '        return {"best": h.argmax(-1), "spread": d.pow(2).sum(-1).sqrt()}\n',
    "GL206": "class Bounded(nn.Module):\n    def __init__(self, width):\n"
    "        super().__init__()\n"
    "        self.body = nn.Linear(width, width)\n"
    "    def forward(self, x):\n        y = self.body(x)\n        y.clamp(-1, 1)\n"
    "        return y\n",
    "GL302": "class Probe(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    "        self.body, self.head = nn.Linear(width, width), nn.Linear(width, 2)\n"
    "        self.body.requires_grad_(False)\n"
    "    @torch.inference_mode()\n    def encode(self, x):\n        return self.body(x)\n"
    "    def forward(self, x):\n        return self.head(self.encode(x))\n",
    "GL110": "from torch.utils.checkpoint import checkpoint\n"
    "class Decoder(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    "        self.table = nn.Embedding(9, width).requires_grad_(False)\n"
    "        self.layer, self.out = nn.Linear(width, width), nn.Linear(width, 9)\n"
    "    def forward(self, tokens):\n        h = self.table(tokens)\n"
    "        return self.out(checkpoint(self.layer, h, use_reentrant=True))\n",
    "GL201 of an activation": "class Inplace(nn.Module):\n    def __init__(self, width, "
    "inplace=False):\n"
    "        super().__init__()\n        self.body, self.act = nn.Linear(width, width), "
    "nn.ReLU(inplace=inplace)\n"
    "    def forward(self, x):\n        y = torch.tanh(self.body(x))\n        return self.act(y)\n",
}

FORCES = (
    "class Forces(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    "        self.energy = nn.Linear(width, 1)\n"
    "    def single(self, at):\n        at.requires_grad_(True)\n"
    "        return torch.autograd.grad(self.energy(at).sum(), at, create_graph=True)[0]\n"
    "    def forward(self, x):\n        return torch.vmap(self.single)(x)\n"
)

SOUND_MODULES = """\
class Worded(nn.Module):
    def __init__(self, width, words="batch-relu"):
        super().__init__()
        self.body, self.first, self.second = nn.Linear(width, width), nn.Sequential(), nn.Sequential()
        for layers in (self.first, self.second):
            for word in words.split("-"):
                if word == "relu":
                    layers.add_module(word, nn.ReLU(inplace=True))
                else:
                    layers.add_module(word, nn.BatchNorm1d(width))
    def forward(self, x):
        return self.second(self.first(self.body(x)))

class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, h):
        turned = h.t().reshape(3, 4).t()
        nn.ReLU(inplace=True)(h)
        return torch.maximum(turned, turned) * self.scale

class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
    def forward(self, x):
        y = self.body(x)
        y += x
        return y

class Sampler(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, width)
    @torch.no_grad()
    def forward(self, x):
        y = torch.sigmoid(self.body(x))
        y.mul_(2)
        return y

class Evaluated(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, width)
    def forward(self, x):
        y = torch.sigmoid(self.body(x))
        if not self.training:
            y.clamp_(max=0.9)
        return y

class Made(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, width)
    def forward(self):
        y = torch.sigmoid(self.body(torch.randn(4, 8)))
        y[:] = 0.0
        return y

class Boxes(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, 4)
    def forward(self, x, boxes, num_boxes):
        losses = {"boxes": (self.body(x) - boxes).abs().sum() / num_boxes}
        return {name: torch.nan_to_num(loss, nan=0.0) for name, loss in losses.items()}

class Follows(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.table, self.device = nn.Parameter(torch.zeros(width)), None
    def forward(self, x):
        if self.device is None:
            self.device = x.device
            self.table = self.table.to(self.device)
        return self.table[x]

class Measured(nn.Module):
    def forward(self, flow, target):
        error = (flow - target).square().sum(1).sqrt()
        return {"epe": error.mean(), "bad": (error > 3).float().mean()}
"""


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_told_of_as_if_its_result_were_back_propagated(
    name: str, tmp_path: pathlib.Path
) -> None:
    ((code, severity, message),) = told(tmp_path, MODULES[name])
    assert code == name[:5]
    assert severity in ("error", "warning")
    if code in ("GL201", "GL204"):
        assert "the result of `" in message


@pytest.mark.parametrize("program", SOUND_MODULES.split("\n\n"))
def test_a_sound_module_is_left_alone(program: str, tmp_path: pathlib.Path) -> None:
    assert told(tmp_path, program) == []


def test_what_torch_refuses_in_a_transform_needs_no_caller(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "forces.py"
    path.write_text(HEAD + FORCES, encoding="utf-8")
    found = analyze([path], select=lambda code: True).findings
    assert [(each.code, each.severity.label) for each in found] == [("GL113", "error")]


def test_tests_have_no_parts(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "test_losses.py"
    path.write_text(HEAD + next(iter(TOLD)), encoding="utf-8")
    assert not analyze([path], select=lambda code: True).findings


UNENTERED = {
    "class A:\n    def f(self, x):\n        with torch.no_grad:\n            return x\n": 7,
    "def f(x, amp):\n    with torch.no_grad() and torch.autocast('cuda', enabled=amp):\n"
    "        return x\n": 6,
    "def f(x):\n    torch.inference_mode()\n    return x\n": 6,
    "def f(x):\n    def inner():\n        from torch import no_grad\n        with no_grad:\n"
    "            return x\n"
    "    return inner\n": 8,
    "import contextlib\n@contextlib.contextmanager\ndef off(flag):\n    if flag:\n"
    "        yield torch.no_grad()\n"
    "    else:\n        yield\n": 9,
    "try:\n    pass\nfinally:\n    with torch.autocast:\n        pass\n": 8,
}

ENTERED = """\
def f(x):
    with torch.no_grad():
        return x

def f(x, no_grad):
    with no_grad:
        return x

def f(x):
    torch.set_grad_enabled(False)
    return x

import contextlib
@contextlib.contextmanager
def off():
    yield torch.no_grad()
def f(x):
    with off() as context, context:
        return x

import contextlib
@contextlib.contextmanager
def off():
    with torch.no_grad() as context:
        yield context

class A:
    def inference_mode(self):
        self.mode = 1
    def f(self):
        self.inference_mode()
"""


@pytest.mark.parametrize("program", UNENTERED)
def test_a_context_that_nothing_enters_needs_no_caller(
    program: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "contexts.py"
    path.write_text(HEAD + program, encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL303").findings
    assert [(each.code, each.at.line) for each in found] == [("GL303", UNENTERED[program])]


@pytest.mark.parametrize("program", ENTERED.split("\n\n"))
def test_a_context_that_is_entered_is_left_alone(program: str, tmp_path: pathlib.Path) -> None:
    assert told(tmp_path, program) == []


CONSTRUCTORS = {
    "self.w = nn.Parameter(torch.randn(width)) * std": "GL515",
    "self.w = nn.Parameter(torch.randn(width)) * config.std": "GL515",
    "self.body.weight[0] = 0.0": "GL202",
    "nn.init.zeros_(nn.utils.parametrizations.spectral_norm(self.body).weight)": "GL207",
    "self.body.requires_grad = trained": "GL516",
    "self.body.requires_grad = False": "GL516",
    "self.w = nn.Parameter(torch.randn(width) * std)": "",
    "self.w = nn.Parameter(torch.randn(width))\n        self.w.data.uniform_(-std, std)": "",
    "nn.init.zeros_(self.body.bias)": "",
    "self.body.weight.requires_grad_(False).fill_(1.0)": "",
}


@pytest.mark.parametrize("statement", CONSTRUCTORS)
def test_a_constructor_is_run_with_what_nobody_knows(
    statement: str, tmp_path: pathlib.Path
) -> None:
    program = "import dataclasses\n@dataclasses.dataclass\nclass Config:\n    std: float = 0.02\n"
    program += (
        "class Table(nn.Module):\n    def __init__(self, width, config: Config, std=0.1, "
        "trained=False):\n"
    )
    program += (
        "        super().__init__()\n        self.body = nn.Linear(width, width)\n"
        f"        {statement}\n"
    )
    assert [code for code, _, _ in told(tmp_path, program)] == CONSTRUCTORS[statement].split()


VOCODER = "class Vocoder(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
VOCODER += "        self.body = nn.Linear(width, width)\n"
VOCODER += (
    "    def forward(self, x):\n        y = torch.sigmoid(self.body(x))\n        y *= 2\n"
    "        return y\n\n"
)

USES = {
    "model = Vocoder(8).eval()\n@torch.inference_mode()\ndef speak(x):\n    return model(x)\n": [],
    "class Speaker:\n    def __init__(self):\n        self.model = Vocoder(8)\n"
    "    def speak(self, x):\n        with torch.no_grad():\n"
    "            return self.model(x)\n": [],
    "def speak(x):\n    model = Vocoder(8)\n    return model(x)\nwith torch.no_grad():\n"
    "    speak(torch.ones(8))\n": [],
    "def speak(x):\n    with torch.no_grad():\n        return Vocoder(8)(x)\n": [],
    "def speak(x):\n    with torch.no_grad():\n        model = Vocoder(8)\n    return model(x)\n": [
        "GL201"
    ],
    "def build():\n    return Vocoder(8)\ndef speak(x):\n    model = Vocoder(8)\n"
    "    with torch.no_grad():\n        return model(x)\n": ["GL201"],
    "def speak(x):\n    model = Vocoder(8)\n    torch.optim.SGD(model.parameters(), 0.1)\n"
    "    with torch.no_grad():\n        return model(x)\n": ["GL201"],
    "": ["GL201"],
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("beside", [False, True])
def test_a_module_that_is_only_called_with_grad_mode_off_is_not_trained(
    use: str, beside: bool, tmp_path: pathlib.Path
) -> None:
    files = {"vocoder.py": HEAD + VOCODER + ("" if beside else use)}
    if beside:
        files["speaking.py"] = f"{HEAD}from vocoder import Vocoder\n{use}"
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = analyze(
        [tmp_path / name for name in files], select=lambda code: code in ("GL201", "GL514")
    ).findings
    assert [each.code for each in found] == USES[use]


METRIC = (
    "from torchmetrics import Metric\nclass Overlap(Metric):\n"
    "    def update(self, preds, target):\n        "
)
UPDATES = {
    "preds.clamp_(0, 1)": ["GL201"],
    "preds = preds.detach()\n        preds[target == 0] = 1": ["GL201"],
    "preds = preds.clone()\n        preds.clamp_(0, 1)": [],
    "target[target < 0] = 0": [],
    "self.hits += (preds > 0.5).float().sum()": [],
}


@pytest.mark.parametrize("update", UPDATES)
def test_a_metric_writes_to_what_a_loss_has_saved(update: str, tmp_path: pathlib.Path) -> None:
    found = told(tmp_path, f"{METRIC}{update}\n")
    assert [(code, severity) for code, severity, _ in found] == [
        (code, "warning") for code in UPDATES[update]
    ]
    assert all("what `Overlap` is given is back-propagated" in message for *_, message in found)
    own = METRIC.replace("from torchmetrics import Metric", "class Metric:\n    pass")
    assert told(tmp_path, f"{own}{update}\n") == []


def test_a_measure_of_something_objective_is_no_loss(tmp_path: pathlib.Path) -> None:
    written = "(pred, target):\n    return F.mse_loss(pred.detach(), target)\n"
    assert [code for code, _, _ in told(tmp_path, f"def joint_objective{written}")] == ["GL102"]
    assert told(tmp_path, f"def objective_intelligibility{written}") == []


@pytest.mark.parametrize(("decorator", "codes"), [("@torch.no_grad()", []), ("", ["GL103"])])
def test_what_is_made_with_grad_mode_off_as_a_whole_is_meant(
    decorator: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    program = (
        "class Distance(nn.Module):\n    def forward(self, points, scan):\n"
        "        return self.between(points, scan)\n"
    )
    program += (
        f"    {decorator}\n    def between(self, points, scan):\n        with torch.no_grad():\n"
    )
    program += "            gap = points - scan\n        return gap.pow(2).mean()\n"
    assert [code for code, _, _ in told(tmp_path, program)] == codes


WRITERS = {
    "def directions(first: torch.Tensor, second: torch.Tensor = torch.ones(3)):\n"
    "    length = torch.linalg.norm(first, dim=1)\n    first /= length.unsqueeze(1)\n"
    "    return first.sum() + second.sum() * first.sum()\n": ["GL201"],
    "def directions(matrix):\n"
    "    values, axes = torch.linalg.eigh(matrix @ matrix.T)\n    values -= 1.0\n"
    "    return values.clamp(min=0) + axes\n": ["GL201"],
    "PredictedTensor = torch.Tensor\ndef directions(winds: PredictedTensor):\n"
    "    length = torch.linalg.norm(winds, dim=1)\n    winds /= length.unsqueeze(1)\n"
    "    return winds\n": ["GL201"],
    "import numpy as np\ndef directions(rows):\n    rows = np.asarray(rows.detach())\n"
    "    rows = rows - rows.mean(axis=0)\n    rows /= np.sqrt((rows**2).sum())\n"
    "    return torch.from_numpy(rows)\n": [],
    "@torch.no_grad()\ndef directions(winds: torch.Tensor):\n"
    "    winds /= torch.linalg.norm(winds, dim=1, keepdim=True)\n    return winds\n": [],
    "class Scale:\n    def __call__(self, winds: torch.Tensor):\n"
    "        size = torch.sqrt(winds)\n        size *= 2\n        return size\n": [],
    "def directions(winds: torch.Tensor):\n    winds = winds * 1\n    winds *= 2\n"
    "    table = torch.zeros_like(winds)\n    table[0] = winds[0]\n    return table\n": [],
    "class Bend(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    "        self.turn = nn.Linear(width, width)\n"
    "    def ahead(self, winds):\n        turned = torch.tanh(self.turn(winds))\n"
    "        turned += winds\n        return turned\n"
    "    def back(self, winds):\n        turned = self.turn(winds)\n"
    "        turned += winds\n        return torch.tanh(turned)\n": ["GL201"],
}


@pytest.mark.parametrize("program", WRITERS)
def test_what_would_raise_where_it_is_differentiated_is_a_note(
    program: str, tmp_path: pathlib.Path
) -> None:
    found = told(tmp_path, program)
    assert [code for code, _, _ in found] == WRITERS[program]
    assert all(severity == "note" for _, severity, _ in found)


DIFFERENTIATED = """
winds = torch.randn(3, 3, requires_grad=True) * 1
function = Bend(3).ahead if "Bend" in globals() else globals().get("directions", torch.Tensor.clone)
(function(winds).sum() + 0 * winds.sum()).backward()
"""


@pytest.mark.parametrize("program", WRITERS)
def test_torch_raises_where_it_is_differentiated(program: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "use.py").write_text(HEAD + program + DIFFERENTIATED, encoding="utf-8")
    exception = observe(tmp_path, "use.py").exception
    assert ("modified by an inplace operation" in exception) is bool(WRITERS[program])
