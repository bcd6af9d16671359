"""What the interpreter knows of torch beyond its operations, held against torch; and of the
frameworks around it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from test_library_python import run

from gradlint import tape
from gradlint.analysis import analyze
from gradlint.analyzer import tapes_of
from gradlint.interpret.values import Const
from gradlint.library.devices import NEEDS_CUDA
from gradlint.tape import Cut, Tape, Value

SETUP = """
import numpy as np
import torch
from torch import nn
from torch import distributions as D
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)
model = nn.Linear(4, 4)
frozen = nn.Embedding(6, 4).requires_grad_(False)
plain = nn.Linear(4, 4).requires_grad_(False)
x = torch.randn(3, 4)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        largest = x.argmax()
        ctx.mark_non_differentiable(largest)
        return x * factor, largest

    @staticmethod
    def backward(ctx, grad, _):
        return 2 * grad, None


class Late(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        return grad


class Squashed(D.Normal):
    def log_prob(self, value):
        return super().log_prob(value).tanh()


def filled(number):
    made = np.zeros(1)
    made[0] = number
    return made


@torch.compile(disable=True)
def compiled(x):
    return model(x)

"""

CONNECTED = {
    "rsample": "D.Normal(model(x), 1.0).rsample().sum()",
    "log_prob of a sample": "(d := D.Categorical(logits=model(x))).log_prob(d.sample()).sum()",
    "entropy": "D.Bernoulli(logits=model(x)).entropy().sum()",
    "independent": "D.Independent(D.Normal(model(x), torch.ones(4)), 1).rsample().sum()",
    "transformed": "D.TransformedDistribution(D.Normal(model(x), 1.0), "
    "[D.TanhTransform()]).rsample().sum()",
    "mixture": "D.MixtureSameFamily(D.Categorical(logits=model(x)), D.Normal(x, "
    "1.0)).log_prob(x[:, "
    "0])[0]",
    "divergence": "D.kl_divergence(D.Normal(model(x), 1.0), D.Normal(x, 1.0)).sum()",
    "stddev": "D.Normal(x, model(x).exp()).stddev.sum()",
    "own distribution": "Squashed(model(x), 1.0).log_prob(x).sum()",
    "checkpoint of something with gradient": "checkpoint(model, model(x), use_reentrant=True).sum()",
    "checkpoint without reentrance": "checkpoint(model, frozen(torch.tensor([1, 2])), "
    "use_reentrant=False).sum()",
    "last segment": "checkpoint_sequential(nn.Sequential(plain, model), 2, x, "
    "use_reentrant=True).sum()",
    "function": "Double.apply(model(x), 2.0)[0].sum()",
    "function with a context set up late": "Late.apply(model(x)).sum()",
    "compiled": "compiled(x).sum()",
    "vmap": "torch.func.vmap(model)(x).sum()",
    "vmap over an axis": "torch.func.vmap(model, 0)(x).sum()",
    "data parallel on given devices": "nn.DataParallel(model, None)(x).sum()",
    "gradient of a function": "torch.func.grad(lambda y: (y ** 2).sum())(model(x)).sum()",
    "gradient and value": "sum(part.sum() for part in torch.func.grad_and_value(lambda y: "
    "(y**2).sum())(model(x)))",
    "value beside a gradient": "torch.func.grad_and_value(lambda y: model(y).sum())(x)[1]",
    "gradient by the second argument": "torch.func.grad(lambda y, z: (y * z * z).sum(), "
    "argnums=1)(model(x), x).sum()",
    "gradients by two arguments": "torch.func.grad(lambda y, z: (y * z).sum(), argnums=(0, "
    "1))(x, model(x))[0].sum()",
    "gradient by a dict": "torch.func.grad(lambda p: (p['a'] ** 2).sum())({'a': "
    "model(x)})['a'].sum()",
    "jacobian of a function": "torch.func.jacrev(lambda y: y**2)(model(x)).sum()",
    "product from the left": "torch.func.vjp(lambda y: y**2, model(x))[1](x)[0].sum()",
    "value beside a product": "torch.func.vjp(model, x)[0].sum()",
    "product from the right": "torch.func.jvp(lambda y: y**2, (model(x),), (x,))[1].sum()",
    "jacobian with a graph": "torch.autograd.functional.jacobian(lambda y: y**2, model(x), "
    "create_graph=True).sum()",
    "jacobian by two": "torch.autograd.functional.jacobian(torch.mul, (model(x), x), "
    "create_graph=True)[1].sum()",
    "functional_call with keywords": "torch.func.functional_call(model, {}, (), {'input': x}).sum()",
    "functional_call": "torch.func.functional_call(plain, dict(model.named_parameters()), "
    "(x,)).sum()",
    "packed": "nn.utils.rnn.pack_padded_sequence(model(x)[None], [3], batch_first=True).data.sum()",
    "padded again": "nn.utils.rnn.pad_packed_sequence(nn.utils.rnn.pack_sequence([model(x)]))[0].sum()",
    "padded": "nn.utils.rnn.pad_sequence([model(x), x]).sum()",
    "parameters as a vector": "nn.utils.parameters_to_vector(model.parameters()).sum()",
    "spectral norm": "nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))(x).sum()",
    "data parallel": "nn.DataParallel(model)(x).sum()",
    "scaled": "torch.amp.GradScaler('cpu').scale(model(x).sum())",
    "autocast": "torch.autocast('cpu')(lambda y: model(y).sum())(x)",
}
CUT = {
    "sample": ("D.Normal(model(x), 1.0).sample().sum()", Cut.NON_DIFFERENTIABLE),
    "sample of several": (
        "D.Independent(D.Normal(model(x), torch.ones(4)), 1).sample().sum()",
        Cut.NON_DIFFERENTIABLE,
    ),
    "mode": ("D.Categorical(logits=model(x)).mode.float().sum()", Cut.NON_DIFFERENTIABLE),
    "reentrant checkpoint": (
        "checkpoint(model, frozen(torch.tensor([1, 2])), use_reentrant=True).sum()",
        Cut.CHECKPOINT,
    ),
    "default checkpoint": ("checkpoint(model, x).sum()", Cut.CHECKPOINT),
    "marked output": ("Double.apply(model(x), 2.0)[1].float().sum()", Cut.NON_DIFFERENTIABLE),
    "array": ("torch.as_tensor(np.mean(model(x).detach().numpy() ** 2))", Cut.DETACH),
    "array by an index": (
        "torch.from_numpy(np.arange(12.0)[torch.argsort(model(x).flatten()).numpy()]).sum()",
        Cut.NON_DIFFERENTIABLE,
    ),
    "comparison of arrays": (
        "torch.tensor(float((model(x).detach().numpy() > 0).mean()))",
        Cut.DETACH,
    ),
    "array method": (
        "torch.from_numpy(model(x).detach().cpu().numpy().clip(0, 1).T.copy()).sum()",
        Cut.DETACH,
    ),
    "array filled": ("torch.from_numpy(filled(model(x).sum().item())).sum()", Cut.COPY),
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def tapes(folder: Path, text: str) -> list[Tape]:
    """The tapes of every entry of a program."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    return list(tapes_of(path))


def only(folder: Path, text: str) -> Tape:
    """The one path through the first entry of a program."""
    found = tapes(folder, text)
    assert [one.entry for one in found].count(found[0].entry) == 1
    return found[0]


def loss_of(one: Tape) -> Value:
    """What the last backward of a tape is asked of."""
    return list(one.backwards())[-1].value


def facts(one: Tape, what: str) -> Iterator[tape.Fact]:
    return (event for event in one.events if isinstance(event, tape.Fact) and event.what == what)


def kinds(one: Tape) -> list[str]:
    """The events of a tape that a training step is made of."""
    shown = (
        tape.ZeroGrad,
        tape.Backward,
        tape.Clip,
        tape.Unscale,
        tape.OptimizerStep,
        tape.ScalerUpdate,
    )
    return [type(event).__name__ for event in one.events if isinstance(event, shown)]


def torch_says(expression: str) -> bool:
    """Whether the value of an expression requires grad when torch runs it."""
    names: dict[str, Any] = {}
    exec(SETUP, names)
    return bool(eval(expression, names).requires_grad)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", CONNECTED.values(), ids=CONNECTED.keys())
def test_what_carries_a_gradient_in_torch_does_so_on_the_tape(
    tmp_path: Path, expression: str
) -> None:
    assert torch_says(expression)
    assert loss_of(only(tmp_path, f"{SETUP}loss = {expression}\nloss.backward()\n")).requires_grad


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("expression", "cut"), CUT.values(), ids=CUT.keys())
def test_what_carries_none_in_torch_is_cut_on_the_tape_for_that_reason(
    tmp_path: Path, expression: str, cut: Cut
) -> None:
    assert not torch_says(expression)
    loss = loss_of(only(tmp_path, f"{SETUP}loss = {expression}\nloss.backward()\n"))
    assert not loss.requires_grad
    assert {found.cut for found in tape.cuts(loss)} - {Cut.FROZEN} == {cut}


def test_a_discrete_distribution_refuses_rsample_as_torch_does(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError):
        torch.distributions.Categorical(logits=torch.zeros(2)).rsample()
    one = only(
        tmp_path, f"{SETUP}D.Categorical(logits=model(x)).rsample()\nmodel(x).sum().backward()\n"
    )
    assert not list(one.backwards())


MEANS = [
    f"{made}.{value}"
    for made in (
        "D.Normal(h, 1.0)",
        "D.Independent(D.Normal(h, h), 1)",
        "D.Gamma(h, 1.0)",
        "D.LogNormal(h, 1.0)",
        "Squashed(h, 1.0)",
    )
    for value in ("mean.sum()", "variance.square().sum()", "mean.mean()", "mean.square().mean()")
]


@pytest.mark.parametrize("loss", MEANS)
def test_the_mean_of_a_distribution_is_no_mean_over_what_is_selected(
    tmp_path: Path, loss: str
) -> None:
    text = f"{SETUP}chosen = x[:, 0] > 9\nh = model(x)[chosen].exp()\nloss = {loss}\n"
    names: dict[str, Any] = {}
    exec(text, names)
    path = tmp_path / "program.py"
    path.write_text(f"{text}loss.backward()\n")
    found = analyze([path], select=lambda code: code == "GL602").findings
    assert bool(found) == bool(names["loss"].isnan())


THROWN_AWAY = {
    "h.sin()": True,
    "for each in [h, x]:\n    each.sin()": True,  # meant to change each of them
    "for _ in range(3):\n    h.sin()\n    print(h)": True,
    "for _ in range(3):\n    h.sin()": False,
    "for number in range(3):\n    h.roll(number)": True,
    "h.sum().backward()\nmodel.weight.grad.clamp(-1, 1)\nh = model(x)": True,
    "h.sum().backward()\nfor p in model.parameters():\n    p.grad.mul(0.5)\nh = model(x)": True,
}


@pytest.mark.parametrize("code", THROWN_AWAY)
def test_a_loop_that_does_the_same_again_and_nothing_else_wants_no_result(
    tmp_path: Path, code: str
) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"{SETUP}h = model(x)\n{code}\nh.mean().backward()\n")
    found = analyze([path], select=lambda code: code == "GL206").findings
    assert bool(found) is THROWN_AWAY[code]


TRANSFORMED = [
    "torch.vmap(slope)(w.repeat(2, 1))",
    "torch.func.jvp(slope, (w,), (w.detach(),))[1]",
    "torch.func.jacfwd(slope)(w)",
    "torch.func.jacrev(slope)(w)",
    "torch.func.vjp(slope, w)[0]",
    "torch.func.grad(lambda v: slope(v).sum())(w)",
]


@pytest.mark.filterwarnings("ignore::Warning:torch")  # of what torch imports for forward mode
@pytest.mark.parametrize("made", TRANSFORMED)
def test_a_transform_without_a_graph_refuses_gradients_of_what_it_gives(
    tmp_path: Path, made: str
) -> None:
    text = "import torch\nw = torch.ones(3, requires_grad=True)\ndef slope(v):\n"
    text += "    return torch.autograd.grad(v.tanh().sum(), v, create_graph=True)[0]\n"
    text += f"loss = {made}.sum()\n"
    try:
        exec(text, {})
        is_refused = False
    except RuntimeError as error:
        is_refused = "does not require grad" in str(error)
    path = tmp_path / "program.py"
    path.write_text(f"{text}loss.backward()\n")
    found = analyze([path], select=lambda code: code == "GL113").findings
    assert bool(found) is is_refused


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA")
@pytest.mark.parametrize("name", sorted(NEEDS_CUDA))
def test_what_needs_cuda_raises_without(name: str) -> None:
    needed = getattr(torch.cuda, name.rpartition(".")[2])
    with pytest.raises((AssertionError, AttributeError, RuntimeError)):
        needed(*([0] if name.endswith("set_device") else []))


def test_a_write_to_an_array_is_a_write_to_its_tensor_that_autograd_does_not_see(
    tmp_path: Path,
) -> None:
    one = only(
        tmp_path,
        f"{SETUP}y = model(x).exp()\na = y.detach().numpy()\na[0] = 3.0\ny.sum().backward()\n",
    )
    (write,) = (event.write for event in one.events if isinstance(event, tape.InPlace))
    assert not write.counted
    storages = {
        id(value.storage) for value in tape.graph(loss_of(one)) if value.op == "torch.Tensor.exp"
    }
    assert storages == {
        id(event.after.storage) for event in one.events if isinstance(event, tape.InPlace)
    }


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    one = only(
        tmp_path, f"{SETUP}if np.sqrt(4) == 2.0 and np.pi > 3:\n    model(x).sum().backward()\n"
    )
    assert not one.decisions
    assert len(list(one.backwards())) == 1


# what the tape tells of a dtype

DTYPES = [
    "torch.zeros(2)", "torch.arange(3)", "torch.arange(3.0)", "torch.tensor([1, 2])",
    "torch.tensor([1.0])",
    "torch.tensor(True)", "torch.randint(3, (2, ))", "torch.randperm(3)",
    "torch.ones(2, dtype=torch.float16)",
    "torch.zeros(2).bool()", "x>0", "x.argmax(1)", "x.half()", "x.bfloat16()", "x.double()",
    "x.long()", "x.int()",
    "x.bool()", "x.to(torch.float16)", "x.to(torch.int32)", "x.type(torch.half)", "x.to('cpu')",
    "x.cpu()",
    "x.half().cpu()", "x.half().float()", "x.half().to('cpu')", "x.to(x.half())", "x.max(1)[1]",
    "x.sort().indices",
    "x.isnan()", "x.ne(0)", "model(x).half()", "model(x).half().float()", "model(x).long()",
    "model(x).argmax(1).float()", "x.half()+x.half()", "x.half().clone()", "x.long().clone()",
    "x.half().detach()",
    "x.half()[0]", "x.long()[0]", "x.half().sum()", "model(x).half().cpu()",
    "torch.zeros_like(x.half())",
    "torch.ones_like(x.long())", "x.half().new_zeros(2)", "torch.tril_indices(2, 2)",
]  # fmt: skip


@pytest.mark.parametrize("expression", DTYPES)
def test_a_dtype_that_the_tape_tells_is_that_of_torch(tmp_path: Path, expression: str) -> None:
    names: dict[str, Any] = {}
    exec(f"{SETUP}result = {expression}", names)
    true = names["result"].dtype
    kinds = {
        torch.float16: tape.DType.HALF,
        torch.bfloat16: tape.DType.BFLOAT,
        torch.bool: tape.DType.BOOL,
    }
    kinds[torch.float64] = tape.DType.DOUBLE
    expected = kinds.get(true, tape.DType.FLOAT if true.is_floating_point else tape.DType.INTEGER)
    one = only(tmp_path, f"{SETUP}model(x).mul({expression}).sum().backward()")
    (product,) = (value for value in tape.graph(loss_of(one)) if value.op == "torch.Tensor.mul")
    told = product.argument(1)
    assert isinstance(told, Value)
    assert told.dtype is expected


# mixed precision

AMP = """
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_a_scaled_step_is_told_with_its_scaler(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        AMP
        + """
scaler = torch.amp.GradScaler("cuda")
scaler.scale(model(torch.randn(3, 4)).sum()).backward()
scaler.unscale_(optimizer)
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
scaler.step(optimizer)
scaler.update()
optimizer.zero_grad()
""",
    )
    assert kinds(one) == [
        "Backward",
        "Unscale",
        "Clip",
        "OptimizerStep",
        "ScalerUpdate",
        "ZeroGrad",
    ]
    steps = [event for event in one.events if isinstance(event, tape.OptimizerStep | tape.Backward)]
    assert [event.scaler.name for event in steps if event.scaler] == ["scaler", "scaler"]
    (clip,) = (event for event in one.events if isinstance(event, tape.Clip))
    assert clip.parameters
    assert all(value.parameter is not None for value in clip.parameters)


def test_a_disabled_scaler_scales_nothing(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        AMP
        + """
scaler = torch.amp.GradScaler("cuda", enabled=False)
scaler.scale(model(torch.randn(3, 4)).sum()).backward()
""",
    )
    assert [event.scaler for event in one.backwards()] == [None]


def test_autocast_names_its_device_as_this_path_chose_it(tmp_path: Path) -> None:
    found = tapes(
        tmp_path,
        AMP
        + """
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
with torch.autocast(device.type):
    loss = model(torch.randn(3, 4, device=device)).sum()
with torch.cuda.amp.autocast(enabled=False):
    loss.backward()
""",
    )
    assert [[fact.detail for fact in facts(one, "amp")] for one in found] == [
        ["torch.amp.GradScaler device=cuda enabled=true",
            "torch.autocast device=cuda enabled=default",
         "torch.cuda.amp.autocast device=cuda enabled=false"],
        ["torch.amp.GradScaler device=cpu enabled=false",
            "torch.autocast device=cpu enabled=default",
         "torch.cuda.amp.autocast device=cuda enabled=false"],
    ]  # fmt: skip
    assert [[fact.detail for fact in facts(one, "device")] for one in found] == [["cuda"], ["cpu"]]
    regions = [event for event in found[0].events if isinstance(event, tape.Autocast)]
    assert [(event.device, event.enabled, event.entered) for event in regions] == [
        ("cuda", True, True), ("cuda", True, False), ("cuda", False, True), ("cuda", False, False),
    ]  # fmt: skip
    assert loss_of(found[0]).autocast == "cuda"


def test_what_decides_whether_autocast_is_enabled_is_named(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        """
import torch

def train(model, x, device):
    with torch.autocast(device.type, enabled=device.type == "cuda"):
        loss = model(x)
    loss.backward()
""",
    )
    assert [fact.detail for fact in facts(one, "amp")] == [
        "torch.autocast device=unknown enabled=unknown by=device.type setting=given"
    ]


def test_a_decorated_function_enters_autocast_at_each_call(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        AMP
        + """
@torch.autocast("cpu")
def loss(x):
    return model(x).sum()

for _ in range(2):
    loss(torch.randn(3, 4)).backward()
""",
    )
    entered = [event.entered for event in one.events if isinstance(event, tape.Autocast)]
    assert entered == [True, False, True, False]


@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("torch.autocast('cpu')", "torch.autocast"),
        ("with torch.no_grad() and torch.autocast('cpu'): pass", "torch.no_grad"),
    ],
)
def test_a_context_that_is_not_entered_is_a_fact(
    tmp_path: Path, statement: str, detail: str
) -> None:
    one, alone = tapes(tmp_path, f"{AMP}{statement}\nmodel(torch.randn(3, 4)).sum().backward()\n")
    assert [fact.detail for fact in facts(one, "context-not-entered")] == [detail]
    assert len(list(one.backwards())) == 1
    assert list(alone.backwards()) == []  # the statement is run by itself, too


# custom functions


def test_what_a_custom_function_saves_stands_on_its_operation(tmp_path: Path) -> None:
    one = only(tmp_path, f"{SETUP}y = model(x)\nDouble.apply(y, 2.0)[0].sum().backward()\n")
    (made,) = (value for value in tape.graph(loss_of(one)) if value.op == "Double.apply")
    assert [(saved.role, saved.value.name) for saved in made.saves] == [("input", "y")]


def test_misuse_of_custom_functions_is_told(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        SETUP
        + """
class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = x
        x.clamp_(min=0)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad

y = Clamp.apply(model(x) + 1)
Clamp()(y).sum().backward()
""",
    )
    assert {fact.detail for fact in facts(one, "ctx-tensor")} == {"input"}
    assert {fact.detail for fact in facts(one, "input-written")} == {"torch.Tensor.clamp_"}
    assert [fact.text for fact in facts(one, "function-not-applied")] == ["Clamp()(y)"]


def test_clipping_a_generator_that_was_used_up_is_told(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        SETUP + "held = model.parameters()\nlist(held)\nnn.utils.clip_grad_norm_(held, 1.0)\n"
        "model(x).sum().backward()\n",
    )
    assert [
        (event.exhausted, event.parameters) for event in one.events if isinstance(event, tape.Clip)
    ] == [(True, ())]


# ranks

RANKS = ("no-sync", "ddp-forward", "ddp-module")


def test_all_gather_cuts_and_the_differentiable_one_does_not(tmp_path: Path) -> None:
    found = tapes(
        tmp_path,
        """
import torch
import torch.distributed as dist
import torch.distributed.nn

model = torch.nn.Linear(4, 2)

def plain(x):
    y = model(x)
    parts = [torch.zeros_like(y) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, y)
    torch.cat(parts).sum().backward()

def kept(x):
    torch.cat(torch.distributed.nn.all_gather(model(x))).sum().backward()

def own_shard(x):
    y = model(x)
    parts = [torch.zeros_like(y) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, y)
    parts[dist.get_rank()] = y
    dist.all_reduce(y)
    torch.cat(parts).sum().backward()
""",
    )
    losses = {one.entry.rpartition(":")[2]: loss_of(one) for one in found}
    assert {name: loss.requires_grad for name, loss in losses.items()} == {
        "plain": False,
        "kept": True,
        "own_shard": True,
    }
    assert {cut.cut for cut in tape.cuts(losses["plain"])} == {Cut.COLLECTIVE}
    assert [[fact.detail for fact in facts(one, "collective")] for one in found] == [
        [],
        [],
        ["all_reduce"],
    ]


def test_a_wrapper_computes_with_the_module_that_it_holds(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with model.no_sync():
    model(torch.randn(3, 4)).sum().backward()
model.module(torch.randn(3, 4)).sum().backward()
optimizer.step()
""",
    )
    (optimizer,) = one.optimizers()
    assert all(
        any(optimizer.holds(leaf.parameter) for leaf in tape.leaves(sink.value) if leaf.parameter)
        for sink in one.backwards()
    )
    told = [
        event.what for event in one.events if isinstance(event, tape.Fact) and event.what in RANKS
    ]
    assert told == ["no-sync", "ddp-forward", "no-sync", "ddp-module"]


# frameworks

LIGHTNING = """
import torch
{imports}

class Regression({base}):
    def __init__(self, rate):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Linear(4, 1)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = ((self.net(x) - y) ** 2).mean()
        self.log("loss", loss)
        return {result}
"""


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import lightning as L", "L.LightningModule"),
        ("import pytorch_lightning as pl", "pl.LightningModule"),
        ("from lightning.pytorch import LightningModule", "LightningModule"),
        ("from pytorch_lightning.core.module import LightningModule", "LightningModule"),
    ],
)
@pytest.mark.parametrize("result", ["loss", '{"loss": loss, "size": len(x)}'])
def test_lightning_back_propagates_what_training_step_returns(
    tmp_path: Path, imports: str, base: str, result: str
) -> None:
    one = only(tmp_path, LIGHTNING.format(imports=imports, base=base, result=result))
    assert kinds(one)[:3] == ["ZeroGrad", "Backward", "OptimizerStep"]
    sink = next(one.backwards())
    assert (sink.sink, sink.by_framework, sink.value.requires_grad) == ("training_step", True, True)
    (optimizer,) = one.optimizers()
    assert all(
        optimizer.holds(leaf.parameter) for leaf in tape.leaves(sink.value) if leaf.parameter
    )


def test_lightning_finds_no_gradient_in_a_detached_result(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        LIGHTNING.format(
            imports="import lightning as L", base="L.LightningModule", result="loss.detach()"
        ),
    )
    assert not loss_of(one).requires_grad


def test_lightning_leaves_manual_optimization_to_the_module(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        """
import lightning as L
import torch

class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.maker, self.judge = torch.nn.Linear(4, 2), torch.nn.Linear(2, 1)

    def configure_optimizers(self):
        return torch.optim.Adam(self.maker.parameters()), torch.optim.Adam(self.judge.parameters())

    def training_step(self, batch):
        first, second = self.optimizers()
        first.zero_grad()
        self.manual_backward(self.judge(self.maker(batch)).mean())
        first.step()
""",
    )
    assert kinds(one)[:3] == ["ZeroGrad", "Backward", "OptimizerStep"]
    assert {sink.sink for sink in one.backwards()} == {"manual_backward"}
    (optimizer,) = one.optimizers()
    assert {
        value.parameter.module.name
        for value in optimizer.parameters
        if value.parameter and value.parameter.module
    } == {"maker"}


def test_a_trainer_that_fits_a_module_runs_it(tmp_path: Path) -> None:
    text = LIGHTNING.format(
        imports="import lightning as L", base="L.LightningModule", result="loss"
    )
    found = tapes(tmp_path, text + "\nL.Trainer(max_epochs=1).fit(Regression(0.1))\n")
    assert [kinds(one)[:2] for one in found if one.entry.endswith("<script>")] == [
        ["ZeroGrad", "Backward"]
    ]


def test_accelerate_prepares_what_it_is_given(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        """
import torch
from accelerate import Accelerator

accelerator = Accelerator(gradient_accumulation_steps=4)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
with accelerator.accumulate(model):
    accelerator.backward(model(torch.randn(3, 4)).sum())
    if accelerator.sync_gradients:
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
""",
    )
    assert kinds(one) == ["Backward", "Clip", "OptimizerStep", "ZeroGrad"]
    assert [sink.sink for sink in one.backwards()] == ["accelerator.backward"]


@pytest.mark.parametrize("annotation", ["", ": Accelerator"])
def test_an_accelerator_is_known_by_its_name_or_its_type(tmp_path: Path, annotation: str) -> None:
    one = only(
        tmp_path,
        f"""
from accelerate import Accelerator

def train(accelerator{annotation}, model, x):
    accelerator.backward(model(x).detach())
""",
    )
    assert [(sink.sink, sink.value.requires_grad) for sink in one.backwards()] == [
        ("accelerator.backward", False)
    ]


def test_fabric_sets_up_what_it_is_given(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        """
import lightning as L
import torch

fabric = L.Fabric()
model = torch.nn.Linear(4, 2)
model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
fabric.backward(model(torch.randn(3, 4)).sum())
fabric.clip_gradients(model, optimizer, max_norm=1.0)
optimizer.step()
""",
    )
    assert kinds(one) == ["Backward", "Clip", "OptimizerStep"]
    assert loss_of(one).requires_grad
    (clipped,) = (event for event in one.events if isinstance(event, tape.Clip))
    assert [value.name for value in clipped.parameters] == ["weight", "bias"]


@pytest.mark.parametrize(
    ("loss", "connected"),
    [("outputs.loss", True), ("outputs.logits.argmax(-1).float().mean()", False)],
)
def test_a_trainer_back_propagates_what_compute_loss_returns(
    tmp_path: Path, loss: str, connected: bool
) -> None:
    one = only(
        tmp_path,
        f"""
from transformers import Trainer

class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        loss = {loss}
        return (loss, outputs) if return_outputs else loss
""",
    )
    (sink,) = one.backwards()
    assert (sink.sink, sink.by_framework, sink.value.requires_grad) == (
        "compute_loss",
        True,
        connected,
    )


def test_a_deepspeed_engine_steps_and_clears(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        """
import deepspeed
import torch

model = torch.nn.Linear(4, 2)
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={})
engine.backward(engine(torch.randn(3, 4)).sum())
engine.step()
""",
    )
    assert kinds(one) == ["Backward", "OptimizerStep", "ZeroGrad"]
    assert loss_of(one).requires_grad


def test_apex_scales_the_loss(tmp_path: Path) -> None:
    one = only(
        tmp_path,
        """
import torch
from apex import amp

model = torch.nn.Linear(4, 2)
model, optimizer = amp.initialize(model, torch.optim.SGD(model.parameters(), lr=0.1), opt_level="O1")
with amp.scale_loss(model(torch.randn(3, 4)).sum(), optimizer) as scaled:
    scaled.backward()
torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
optimizer.step()
""",
    )
    assert kinds(one) == ["Backward", "Clip", "OptimizerStep"]
    assert loss_of(one).requires_grad


STEPS = ["Backward", "OptimizerStep", "ZeroGrad"]
SPELT = {
    "an engine by its name": (
        "def train(model_engine, x):\n    model_engine.backward(model_engine(x))\n"
        "    model_engine.step()",
        STEPS,
    ),
    "an engine with an optimizer": (
        "import deepspeed\nengine, optimizer, _, _ = deepspeed.initialize(None, model, optimizer)\n"
        "if engine.is_gradient_accumulation_boundary():\n"
        "    engine.backward(engine(x).sum())\nengine.step()",
        STEPS,
    ),
    "an engine that takes all parameters": (
        "import deepspeed\nengine, _, _, _ = deepspeed.initialize(model=model)\n"
        "engine.backward(engine(x).sum())\nengine.step()",
        STEPS,
    ),
    "a fabric by its name": (
        "def train(fabric, x):\n    fabric.backward(model(x).sum())\n    optimizer.step()\n"
        "    optimizer.zero_grad()",
        STEPS,
    ),
    "a fabric by its type": (
        "from lightning import Fabric\n"
        "def train(f: Fabric, x):\n    with f.autocast():\n        loss = model(x).sum()\n"
        "    f.backward(f.all_reduce(loss))\n    optimizer.step()\n    optimizer.zero_grad()",
        STEPS,
    ),
    "a fabric that launches": (
        "import lightning as L\n"
        "def run(fabric, net):\n    net, o = fabric.setup(net, optimizer)\n"
        "    fabric.backward(net(x).sum())\n"
        "    o.step()\n    o.zero_grad()\nL.Fabric().launch(run, model)",
        STEPS,
    ),
    "a scaler class of the program": (
        "class Scaler(torch.amp.GradScaler):\n    pass\ns = Scaler('cpu')\n"
        "s.scale(model(x).sum()).backward()\n"
        "s.unscale_(optimizer)\ns.step(optimizer)\ns.update()",
        ["Backward", "Unscale", "OptimizerStep", "ScalerUpdate"],
    ),
    "a wrapper that clips": (
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
        "w = FSDP(model)\nw(x).sum().backward()\n"
        "w.clip_grad_norm_(1.0)\noptimizer.step()\noptimizer.zero_grad()",
        ["Backward", "Clip", "OptimizerStep", "ZeroGrad"],
    ),
    "a wrapper class of the program": (
        "class Own(nn.DataParallel):\n    pass\n"
        "Own(model)(x).sum().backward()\noptimizer.step()\noptimizer.zero_grad()",
        STEPS,
    ),
    "an autocast class of the program": (
        "class Half(torch.autocast):\n    def __init__(self):\n"
        "        super().__init__('cpu', dtype=torch.bfloat16)\n"
        "with Half():\n    loss = model(x).sum()\nloss.backward()\noptimizer.step()\n"
        "optimizer.zero_grad()",
        STEPS,
    ),
}


@pytest.mark.parametrize("name", SPELT)
def test_a_step_is_told_however_it_is_spelt(tmp_path: Path, name: str) -> None:
    program, steps = SPELT[name]
    found = tapes(
        tmp_path, f"{SETUP}optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{program}\n"
    )
    one = next(each for each in found if list(each.backwards()))
    assert kinds(one) == steps
    assert loss_of(one).requires_grad


KNOWN_RANKS = """\
torch.randn(2, 3).ndim
torch.randn(2, 3).dim()
torch.full((2, 3, 4), 0.5).ndim
torch.full([2, 2], 1).ndim
torch.zeros((2, 3)).ndim
torch.zeros(5).ndim
torch.zeros(2, 3).view(2, -1, 1).ndim
torch.zeros(2, 3).reshape((3, 2)).clone().ndim
torch.randn(2, 3).unsqueeze(0).ndim
torch.empty(2, 3, 4).permute(2, 0, 1).ndim
torch.ones(3).expand(2, 3).ndim
nn.Linear(3, 2)(torch.randn(5, 3)).relu().ndim
torch.randn(*(2, 3)).ndim
torch.zeros(2, 3).reshape(-1).ndim
""".splitlines()
UNKNOWN_RANKS = """\
torch.randn(2, *rest).ndim
torch.zeros(rest).ndim
torch.full(rest, 1).ndim
torch.zeros([2, *rest]).ndim
torch.zeros(size=rest).ndim
torch.zeros(2, 3).view(2, *rest).ndim
torch.zeros(2, 3).view(rest).ndim
torch.zeros(2, 3)[rest].ndim
""".splitlines()


@pytest.mark.parametrize("asked", KNOWN_RANKS)
def test_how_many_axes_a_tensor_has_is_as_torch_says(asked: str) -> None:
    assert made(f"result = {asked}") == eval(asked, {"torch": torch, "nn": torch.nn})


@pytest.mark.parametrize("asked", UNKNOWN_RANKS)
def test_of_sizes_that_are_not_seen_the_axes_are_not_counted(asked: str) -> None:
    assert made(f"import unseen\nrest = unseen.sizes()\nresult = {asked}") is None


def made(text: str) -> object:
    """The constant that a script leaves as its result; None of what is not known."""
    result = run(f"import torch\nfrom torch import nn\n{text}")["result"]
    return result.value if isinstance(result, Const) else None
