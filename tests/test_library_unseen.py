"""What is said of programs that are built on code out of view: nothing of what that code can have
done.
"""

from __future__ import annotations

import pathlib

import pytest

import gradlint

SETUP = """\
import torch
import unseen
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

net = nn.Linear(4, 4)
optimizer = torch.optim.Adam(net.parameters())
"""
FROZEN = """
model = unseen.Model.from_pretrained("small")
model.requires_grad_(False)
{}
for x in torch.randn(3, 2, 4):
    F.mse_loss(model(x), x).backward()
"""
HOOKED = """
model = unseen.Model.from_pretrained("small")
model.requires_grad_(False)
seen = []
parts = {{name: model.base.get_submodule(name) for name in unseen.names()}}

def hook(module, inputs, output):
    {}

for x in torch.randn(3, 2, 4):
    handles = [part.register_forward_hook(hook) for part in parts.values()]
    F.mse_loss(model(x), x).backward()
"""
DEFAULTS = """
def train(loader, rate=None):
    for x in loader:
        loss = (net(x) * ({})).mean().detach()
        loss.backward()
"""
ENGINES = """
engine = unseen.Engine()
{}
for x in torch.randn(3, 2, 4):
    loss = F.mse_loss(net(x), x)
    optimizer.zero_grad()
    loss.backward()
    engine.fire("batch")
"""
MESSAGES = """
for near, far, x in DataLoader(unseen.graphs()):
    near.ndata["h"] = far.ndata["h"] = net(x)
    {}
    score = torch.cat([near.edata["score"], far.edata["score"]])
    label = torch.cat([torch.ones_like(score), torch.zeros_like(score)])
    optimizer.zero_grad()
    F.binary_cross_entropy_with_logits(score, label).backward()
    optimizer.step()
"""
PARTS = """
losses = unseen.losses()
for x in torch.randn(3, 2, 4):
    made = net(x).relu()
    optimizer.zero_grad()
    losses(x, made, 0, split="train").backward()
    optimizer.step()
    losses(x, made, {}, split="train").backward()
"""
POLICIES = """
def log_probability(policy, x):
    found = torch.zeros(4)
    if policy is None:
        return found
    return found + policy(x)

policy = unseen.policy()
for x in torch.randn(3, 4):
    loss = log_probability(policy, x).mean()
    {}
    loss.backward()
"""
PLAYERS = """
class Play(unseen.Base):
    def run(self, batches):
        for x, y in batches:
            self.teacher_scheduler.step()
            loss = ((self.student(x) - y).square() * self.teacher(x).sigmoid()).mean()
            self.student_optimizer.zero_grad()
            loss.backward()
            self.student_optimizer.step()
            {}
"""
STATES = """
class Neuron(nn.Module):
    def __init__(self):
        super().__init__()
        self.voltage, self.state = 0.0, {{"spike": 0.0}}

    def forward(self, x):
        self.voltage = (self.voltage + x).sigmoid()
        self.state["spike"] = (self.state["spike"] + x).exp()
        return self.voltage + self.state["spike"]

    def reset(self):
        self.voltage, self.state = 0.0, {{"spike": 0.0}}


class Spiking(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([net, Neuron()])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


model = Spiking()
for x in torch.randn(3, 2, 4):
    loss = F.mse_loss(model(x), x)
    {}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PACKED = """
import einops

codes = nn.Parameter(torch.randn(8, 4))
for x in torch.randn(3, 2, 4):
    y = net(x)
    {}
    F.mse_loss(code, y.detach()).backward()
    optimizer.zero_grad()
    F.mse_loss(code.detach(), y).backward()
    optimizer.step()
"""
MASKED = (
    "mask = x > 0; code = einops.rearrange(torch.where(einops.rearrange(mask, '{0}'), "
    "einops.rearrange(codes[:2], '{0}'), 0.0), 'd b -> b d'); mask &= x < 2"
)
EPOCHS = """
graph = unseen.Cora()[0]
for epoch in range(3):
    with graph.local_scope():
        graph.ndata["h"] = net(graph.ndata["feat"])
        graph.update_all("h", "mean")
        loss = F.cross_entropy(graph.ndata["mean"], graph.ndata["label"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SIZES = """
model = unseen.Model.from_pretrained("small")
for x in torch.randn(3, 2, 4):
    loss = F.mse_loss(model(x, unseen.rotary({})), x)
    loss.backward()
"""
MODELS = """
models = unseen.build(unseen.load("encoder"))
optimizer.add_param_group({{"params": [p for name in models for p in models[name].parameters()]}})
levels = {}
for x, sizes in DataLoader(unseen.pairs()):
    loss = (models.decoder(x) * (sizes // 2**levels)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MEMORY = """
memory = unseen.Memory(4)
for x in torch.randn(3, 2, 4):
    optimizer.zero_grad()
    h = {}
    loss = net(h).mean()
    loss.backward()
    optimizer.step()
    memory.detach()
"""
METERS = """
total = 0
for x in torch.randn(3, 2, 4):
    y = net(x)
    loss = F.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += {}
"""
SCALED = """
for number, x in enumerate(torch.randn(8, 2, 4)):
    loss = F.mse_loss(net(x), x) {}
    with unseen.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    if (number + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
SCHEDULES = """
scheduler = {}
for x in torch.randn(3, 2, 4):
    optimizer.zero_grad()
    net(x).mean().backward()
    scheduler.step()
    optimizer.step()
"""
NUMBERS = """
def train(loader, epoch, damping):
    for x in loader:
        loss = net(x).mean() + {} * net(x).square().mean()
        loss.backward()
"""
SHOWN = """
import wandb
import matplotlib.pyplot as plt
for x in torch.randn(3, 2, 4):
    y = net(x)
    optimizer.zero_grad()
    F.mse_loss(y, x).backward()
    optimizer.step()
    {}
"""
CONFIGURED = """
from hydra.utils import instantiate
def train(settings):
    model = {}(settings)
    for x in torch.randn(3, 2, 4):
        loss = F.mse_loss(model.decode(x), net(x).detach())
        loss.backward()
"""
IMAGES = """
from PIL import Image
from torchvision import transforms
def fit(frames, settings):
    field = eval(settings.name)(settings)
    updates = torch.optim.Adam(field.groups(settings.rate))
    image = {}.view(4, -1).permute(1, 0)
    pixels = field.filtered(torch.cat([image[:, :3] * image[:, -1:]], 0))
    for x in torch.randn(3, 2, 3):
        updates.zero_grad()
        F.mse_loss(field(x), pixels[:2]).backward()
        updates.step()
"""
POINTS = """
def fit(image):
    width, height = {}
    for x in torch.randn(3, 2, 4):
        places = torch.ones(2, 4)
        places[..., 0] = places[..., 0] / width
        optimizer.zero_grad()
        F.mse_loss(net(places), x).backward()
        optimizer.step()
"""
BALANCED = """
class Balanced(torch.optim.Optimizer):
    def __init__(self, optimizer, weights):
        super().__init__(optimizer.param_groups, dict())
        self.optimizer, self.weights = optimizer, weights

    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            closure(skip_backward=True)
            terms = self.losses / {}
        for number in range(1, len(self.weights)):
            with torch.enable_grad():
                self.zero_grad()
                terms[number].backward(retain_graph=True)
            self.weights[number] = 0.9 * self.weights[number]
        self.optimizer.step()
"""


CRITICS = """
agent = unseen.Agent()
critic_optimizer = torch.optim.Adam([*agent.critic.parameters(), *{}.parameters()])
for x in torch.randn(3, 2, 4):
    value = agent.critic(x).detach()
    loss = agent.loss(x, value).mean()
    critic_optimizer.zero_grad()
    loss.backward()
    critic_optimizer.step()
"""
UNPICKLED = """
for x in torch.randn(3, 2, 4):
    optimizer.zero_grad()
    net(x).mean().backward()
    optimizer.step()
model = torch.load("model.pt")
model.requires_grad_(False)
{}
model.eval().to("cpu")
"""
REPLAYED = """
class Learner:
    def __init__(self, buffer):
        self.buffer, self.net = buffer, nn.Linear(4, 1)
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def learn(self):
        batch = self.buffer.sample(32)
        seen = {}
        loss = (self.net(torch.randn(32, 4)) * seen).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


STATISTICS = """
@torch.inference_mode()
def evaluate(metric):
    for x in DataLoader(unseen.samples()):
        metric.update(net(x))
    return metric.compute().mean()

best = evaluate(unseen.Metric())
{}
print(best)
"""
QUANTIZED = """
layer = nn.Linear(4, 4)
layer.weight = {}
layer.weight.cuda()
"""
HEADS = """
heads = nn.ModuleDict()
heads.update({})
others = torch.optim.SGD([*heads.parameters(), *net.parameters()], lr=0.1)
for x in torch.randn(3, 2, 4):
    loss = sum(head(x).mean() for head in heads.values())
    others.zero_grad()
    loss.backward()
    others.step()
"""
SAMPLES = """
parameters = list(net.parameters())
for x, y in DataLoader(unseen.data()):
    gradients = torch.func.vmap(torch.func.grad(unseen.loss_of), in_dims=(None, 0, 0))(parameters, x, y)
    for parameter, gradient in zip(parameters, gradients):
        {}
    loss = F.cross_entropy(net(x), y)
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("program", "filled", "code"),
    [
        (CRITICS, "agent.loss", "GL106"),
        (CRITICS, "net", ""),
        (UNPICKLED, "model = model.eval()", ""),
        (REPLAYED, "torch.tensor(self.net(batch).mean())", "GL109"),
        (REPLAYED, "torch.tensor(batch['a'])", ""),
        (REPLAYED, "torch.FloatTensor([each.reward for each in batch])", ""),
        (REPLAYED, "torch.from_numpy(batch['a'].numpy())", ""),
        (REPLAYED, "torch.from_numpy(unseen.np.stack(batch['a']))", ""),
        (REPLAYED, "batch['a'].detach()", ""),
        (FROZEN, "model.eval()", "GL107"),
        (FROZEN, "model.enable_slicing()", "GL107"),
        (FROZEN, "model.training = False", "GL107"),
        (FROZEN, "model.add_adapter(2)", ""),
        (FROZEN, "model.unfreeze()", ""),
        (FROZEN, "model.head = nn.Linear(4, 4)", ""),
        (FROZEN, "model.blocks[0].attention = unseen.Attention()", ""),
        (FROZEN, "unseen.inject(model, rank=4)", ""),
        (HOOKED, "return output + net(output)", ""),
        (HOOKED, "seen.append(output)", "GL107"),
        (ENGINES, "", "GL511"),
        (ENGINES, "engine.optimizer = optimizer", ""),
        (ENGINES, "engine.after = optimizer.step", ""),
        (ENGINES, "engine.on('batch', lambda: optimizer.step())", ""),
        (ENGINES, "engine.on('end', lambda: print(optimizer.state_dict()))", "GL511"),
        (MESSAGES, "", "GL101"),
        (
            MESSAGES,
            "near.apply_edges('h', 'score'), far.apply_edges('h', 'score')\n"
            "    near.apply_edges('h')",
            "",
        ),
        (EPOCHS, "", ""),
        (SIZES, "model(x).loss // 2", "GL104"),
        (SIZES, "480 // model.config.patch_size", ""),
        (SIZES, "480 // (model.config.patch_size * 2)", ""),
        (SIZES, "model(x).loss.shape[0] // 2", ""),
        (MODELS, "models.encoder.levels", ""),
        (STATISTICS, "best[0] = 0.1", "GL302"),
        (STATISTICS, "best['rate'] = 0.1", ""),
        (QUANTIZED, "nn.Parameter(torch.zeros(4, 4))", "GL206"),
        (QUANTIZED, "unseen.Params4bit(torch.zeros(4, 4))", ""),
        (HEADS, "nn.ModuleDict()", "GL101"),
        (HEADS, "nn.ModuleDict({'head': nn.Linear(4, 1)})", ""),
        (HEADS, "{'head': nn.Linear(4, 1)}", ""),
        (HEADS, "unseen.heads()", ""),
        (SAMPLES, "print(gradient)", "GL511"),
        (SAMPLES, "parameter.grad_sample = gradient", ""),
        (MEMORY, "x * memory", "GL206"),
        (MEMORY, "memory(x)", ""),
        (SCHEDULES, "torch.optim.lr_scheduler.StepLR(optimizer, 2)", "GL510"),
        (SCHEDULES, "unseen.LinearWarmUp(optimizer, warmup=0.1)", ""),
        (PARTS, "0", "GL507"),
        (PARTS, "1", ""),
        (POLICIES, "print(policy)", "GL101"),
        (POLICIES, "policy.zero_grad()", ""),
        (POLICIES, "policy(x)", ""),
        (POLICIES, "policy is None or policy.zero_grad()", "GL101"),
        (PLAYERS, "pass", "GL510"),
        (PLAYERS, "self.teacher_optimizer.zero_grad()", ""),
        (SCALED, "* 1", "GL503"),
        (SCALED, "/ 4", ""),
        (
            SCALED,
            "/ (unseen.Settings().size // unseen.Settings().micro // unseen.State().processes)",
            "",
        ),
        (DEFAULTS, "rate / 2", "GL102"),
        (DEFAULTS, "None / 2", ""),
        (METERS, "loss", "GL508"),
        (METERS, "loss * 2", "GL508"),
        (METERS, "unseen.accuracy(y, x)", ""),
        (NUMBERS, "net(x).mean().item()", "GL109"),
        (NUMBERS, "float(damping)", ""),
        (NUMBERS, "int(len(x) * (5 - epoch))", ""),
        (SHOWN, "y.log()", "GL206"),
        (SHOWN, "wandb.init(config=y).log(data=y)", ""),
        (SHOWN, "run = wandb.init(config=y)\n    run.log(data=y)", ""),
        (SHOWN, "axes = plt.subplots(int(y.max()))[1]\n    axes.flatten()[0].scatter(x, y)", ""),
        (CONFIGURED, "instantiate", ""),
        (IMAGES, "unseen.Reader()(frames[0])", "GL507"),
        (IMAGES, "unseen.read(frames[0])", ""),
        (IMAGES, "transforms.ToTensor()(Image.open(frames[0]))", ""),
        (IMAGES, "transforms.functional.to_tensor(Image.open(frames[0]))", ""),
        (POINTS, "net(image)", "GL201"),
        (POINTS, "image.size", ""),
        (BALANCED, "torch.as_tensor(self.weights)", ""),
        (
            PACKED,
            "flat, shapes = einops.pack([y], '* d'); code = einops.unpack(codes[:2], shapes, "
            "'* d')[0]",
            "",
        ),
        (
            PACKED,
            "sizes = einops.parse_shape(y, 'b d'); code = einops.repeat(codes[0], 'd -> b "
            "d', b=sizes['b'])",
            "GL519",
        ),
        (PACKED, "flat, shapes = einops.pack([y], '* d'); code = codes[:2] * flat", "GL507"),
        (PACKED, MASKED.format("b d -> d b"), "GL201"),
        (PACKED, MASKED.format("b d -> (b d)"), ""),
        (STATES, "", "GL507"),
        (STATES, "unseen.log(loss.item(), optimizer)", "GL507"),
        (STATES, "model.layers[1].reset()", ""),
        (STATES, "unseen.reset(model)", ""),
        (STATES, "unseen.reset([model.layers[1]])", ""),
        (STATES, "unseen.call(model.layers[1].reset)", ""),
    ],
)
def test_code_out_of_view_is_not_second_guessed(
    program: str, filled: str, code: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(SETUP + program.format(filled or "pass"))
    found = gradlint.check(path, min_severity="note", ignore=["GL305"])
    assert {finding.code for finding in found} == ({code} if code else set())


MEMORY = """
class Memory:
    def __init__(self, seen):
        self.rows = []
        {}

    def learn(self, index):
        loss = net(self.rows[index]).detach().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    "filled",
    ["pass", "self.rows.extend(seen)", "self.rows = [row for row in seen if row is not None]"],
)
def test_a_list_that_only_others_fill_is_not_taken_to_be_empty(
    filled: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "memory.py").write_text(SETUP + MEMORY.format(filled))
    assert [finding.code for finding in gradlint.check([tmp_path])] == ["GL102"]


SELECTED = """
settings = unseen.Settings(unseen.values())
gate = nn.Linear(4, 1)
optimizer.add_param_group({{"params": gate.parameters()}})
for x in torch.randn(3, 2, 4):
    error = (net(x) - x).square()
    loss = error[error < error.median()].mean() * {}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("factor", "is_learned"),
    [
        ("gate(x).mean()", True),
        ("settings.weight", False),
        ("0.5", False),
        ("unseen.weight(x)", False),
    ],
)
def test_what_an_empty_mean_is_multiplied_by_is_learned_where_it_is_in_view(
    factor: str, is_learned: bool, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(SETUP + SELECTED.format(factor))
    (found,) = gradlint.check(path, select=["GL602"], min_severity="note")
    assert ("and so is its gradient" in found.message) is is_learned
