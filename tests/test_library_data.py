"""What is a number, a text or a batch holds no parameters: the interpreter takes it for data, as it
is in torch.
"""

from __future__ import annotations

from typing import Any

import torch
from test_library_python import run
from torch.utils import _pytree

from gradlint.interpret.values import Abstract, Const, Mapping, Sequence, Unknown

SETUP = """\
import argparse, collections, copy, dataclasses, itertools, os, random, string, sys, time
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

net = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.rand(3, 4)
y = net(x)
n = int(os.environ.get("NOWHERE", "2"))
word = os.environ.get("NOWHERE", "a")
scaler = torch.amp.GradScaler("cpu")
data = TensorDataset(x)
loader = DataLoader(data)
array = np.zeros((n, 2))
normal = torch.distributions.Normal(y, 1.0)
packed = nn.utils.rnn.pack_padded_sequence(torch.rand(2, 3, 4), torch.tensor([3, 2]), batch_first=True)
parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1)
arguments, rest = parser.parse_known_args([])
device = torch.device(word if word == "cpu" else "cpu")
try:
    raise ValueError(word)
except ValueError as caught:
    error = caught
"""
EXPRESSIONS = """\
os.environ.get("NOWHERE", "2")
os.getenv("NOWHERE", "2")
time.time()
random.random()
random.randint(1, 3)
n + 1
n * 2.5
-n
n > 1
n == 2
abs(n)
round(n * 0.5)
min(n, 3)
max(n, 1)
sum([n, 1])
len(word)
str(n)
float(n)
word.upper()
word + "b"
word.split(",")
word.join(["a", "b"])
word[0]
f"{n}"
repr(n)
type(n)
hash(word)
id(net)
sorted([n, 1])
next(itertools.count(n))
next(iter(range(n, 9)))
list(itertools.accumulate([n, 1]))
collections.Counter([n, 1]).most_common()
random.choice([n, 1])
error.__traceback__
error.__cause__
sys.argv
arguments.rate
arguments
rest
parser.parse_known_args([])
parser.format_help()
y.shape
y.shape[0]
y.size()
y.size(0)
y.dim()
y.ndim
y.numel()
y.nelement()
y.stride()
y.device
y.is_cuda
y.element_size()
y.data_ptr()
y.is_contiguous()
y.is_floating_point()
y.item() if y.numel() == 1 else 0
len(y)
y.tolist()
y.detach().numpy()
y.register_hook(lambda g: g) if y.requires_grad else None
torch.get_default_dtype()
torch.get_num_threads()
torch.initial_seed()
torch.get_rng_state()
torch.Generator()
torch.finfo(torch.float32)
torch.finfo(torch.float32).eps
torch.numel(y)
torch.are_deterministic_algorithms_enabled()
device.index
net.extra_repr()
net.load_state_dict(net.state_dict())
optimizer.state_dict()
optimizer.param_groups[0]["lr"]
optimizer.load_state_dict(optimizer.state_dict())
torch.optim.lr_scheduler.StepLR(optimizer, 1).get_last_lr()
torch.optim.lr_scheduler.StepLR(optimizer, 1).state_dict()
scaler.get_scale()
scaler.get_growth_factor()
torch.is_autocast_enabled()
data[0]
data.tensors
next(iter(loader))
[batch for batch in loader]
torch.utils.data.get_worker_info()
array.shape
array.shape[0]
array.ndim
array.size
array.dtype
array.sum()
array.T
array + 1
array[0]
array.tolist()
np.mean(array)
np.random.rand()
np.random.permutation(n)
normal.batch_shape
normal.event_shape
packed.batch_sizes
torch.distributed.is_available()
torch.distributed.is_initialized()
torch.load("nowhere") if n > 9 else 0
torch.save({}, "nowhere") if n > 9 else 0
torch.manual_seed(0)
torch.set_printoptions()
torch.get_default_device()
"""
FRAMEWORKS = """\
import accelerate, apex, deepspeed, lightning, torch, transformers
import torch.distributed as dist

net = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
accelerator = accelerate.Accelerator()
fabric = lightning.Fabric()
engine, optimizer, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters())
trainer = transformers.Trainer(model=net)
"""
TOLD = """\
dist.get_rank()
dist.get_world_size()
dist.is_initialized()
dist.is_available()
dist.get_backend()
dist.barrier()
dist.new_group([0])
dist.all_reduce(torch.zeros(1))
dist.broadcast(torch.zeros(1), 0)
accelerator.device
accelerator.is_main_process
accelerator.is_local_main_process
accelerator.num_processes
accelerator.process_index
accelerator.print("a")
accelerator.wait_for_everyone()
accelerator.save_state("a")
accelerator.log({})
fabric.device
fabric.is_global_zero
fabric.print("a")
fabric.save("a", {})
fabric.barrier()
engine.save_checkpoint("a")
engine.load_checkpoint("a")
engine.allreduce_gradients()
trainer.evaluate()
trainer.save_model("a")
trainer.log({})
trainer.state
trainer.args
trainer.train()
deepspeed.init_distributed()
"""


def requires_grad(value: object) -> bool:
    """Whether a gradient can come back to what torch gives."""
    return any(
        isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in _pytree.tree_leaves(value)
    )


def unknowns(value: Abstract | None) -> list[Unknown]:
    """What nothing is known of in a value."""
    match value:
        case Unknown():
            return [value]
        case Sequence():
            return [found for item in value.items for found in unknowns(item)]
        case Mapping():
            return [found for item in value.items.values() for found in unknowns(item)]
    return []


def told(setup: str, expressions: list[str]) -> dict[str, Abstract | None]:
    """What each of these expressions is taken for."""
    lines = (f"result_{number} = {expression}" for number, expression in enumerate(expressions))
    names = run("\n".join([setup, *lines]))
    return {expression: names[f"result_{number}"] for number, expression in enumerate(expressions)}


def test_what_no_gradient_comes_back_to_in_torch_is_data() -> None:
    names: dict[str, Any] = {}
    exec(SETUP, names)
    for expression, value in told(SETUP, EXPRESSIONS.splitlines()).items():
        found = unknowns(value)
        assert not requires_grad(eval(expression, names)), expression
        assert found or isinstance(value, Const), expression
        assert all(each.data for each in found), expression


def test_what_frameworks_tell_is_data() -> None:
    for expression, value in told(FRAMEWORKS, TOLD.splitlines()).items():
        found = unknowns(value)
        assert found, expression
        assert all(each.data for each in found), expression
