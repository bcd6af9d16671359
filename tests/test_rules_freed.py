"""What a second backward finds freed: GL507 tells of it exactly where torch raises."""

from __future__ import annotations

import pathlib
import textwrap
import warnings

import pytest

from gradlint.analysis import analyze

BODY = """\
w = torch.rand(3, requires_grad=True)
h = w.exp()
p = h.prod()
q = p.exp()
slope = lambda y, x: torch.autograd.grad(y, x, create_graph=True)[0]
"""
BACKWARDS = """\
p.backward(); q.backward()
p.backward(retain_graph=True); q.backward()
p.backward(create_graph=True); q.backward()
p.backward(); h.sum().backward()
q.backward(); h.sum().backward()
h.sum().backward(); h.sum().backward()
h.detach().clone().requires_grad_().exp().sum().backward(); p.backward()
torch.autograd.grad(p, h); h.sum().backward()
torch.autograd.grad(p, h); p.backward()
torch.autograd.grad(p, h, retain_graph=True); p.backward()
torch.autograd.grad(p, w); h.sum().backward()
torch.autograd.grad(p, w, retain_graph=True); h.sum().backward()
torch.autograd.grad(p, w, create_graph=True); h.sum().backward()
torch.autograd.grad(p, [h, w]); h.sum().backward()
torch.autograd.grad(q, p); p.backward()
torch.autograd.grad(q, [p]); q.backward()
torch.autograd.grad(q, [p, h]); p.backward()
torch.autograd.grad(q, h); h.sum().backward()
torch.autograd.grad(q, h); p.backward()
u = torch.rand(3, requires_grad=True); torch.autograd.grad(p, u, allow_unused=True); p.backward()
u = torch.rand(3, requires_grad=True); torch.autograd.grad(p, [u, h], allow_unused=True); p.backward()
u = torch.rand(3, requires_grad=True); torch.autograd.grad(p, [u, h], allow_unused=True); h.sum().backward()
u = torch.rand(3, requires_grad=True); torch.autograd.grad(q, [u, p], allow_unused=True); p.backward()
torch.autograd.grad([p], [h]); torch.autograd.grad(h.sum(), w)
torch.autograd.grad([p, q], [h]); h.sum().backward()
torch.autograd.backward([p, q])
torch.autograd.backward(p); torch.autograd.backward(q)
torch.autograd.backward([p], retain_graph=True); q.backward()
(h * 2).sum().backward(); p.backward()
(w * 2).sum().backward(); p.backward()
(w + 1).sum().backward(); p.backward()
p.detach(); p.backward()
q.backward(retain_graph=False); torch.autograd.grad(p, h)
q.backward(retain_graph=True); q.backward(retain_graph=True); q.backward()
q.backward(None, True); q.backward()
q.backward(None, False); q.backward()
torch.autograd.grad(p, h, None, True); p.backward()
torch.autograd.grad(p, h, None, False); p.backward()
torch.autograd.grad(p, h, None, None, True); p.backward()
p.backward(); h = w.exp(); h.prod().backward()
h.relu().sum().backward(); h.relu().sum().backward()
g = slope((w ** 3).sum(), w); g.sum().backward(); g.sum().backward()
l = (w ** 3).sum(); g = slope(l, w); l.backward(); g.sum().backward()
l = (w ** 3).sum(); g = slope(l, w); g.sum().backward(); l.backward()
l = w.exp().sum(); g = slope(l, w); l.backward(); g.sum().backward()
l = (h ** 3).sum(); g = slope(l, w); l.backward(); g.sum().backward()
l = (h ** 3).sum(); g = slope(l, h); l.backward(); g.sum().backward()
l = ((w + 2) ** 3).sum(); g = slope(l, w); l.backward(); g.sum().backward()
l = (w ** 2 * torch.rand(3)).sum(); g = slope(l, w); l.backward(); g.sum().backward()
l = ((w - 1) ** 2).mean(); g = slope(l, w); l.backward(); g.norm().backward()
l = (w ** 4).sum(); g = slope(l, w); k = slope(g.sum(), w); l.backward(); k.sum().backward()
l = (w ** 4).sum(); g = slope(l, w); k = slope(g.sum(), w); g.sum().backward(); k.sum().backward()
f = torch.nn.Linear(3, 1); l = f(w).sum(); g = slope(l, w); l.backward(); g.norm().backward()
f = torch.nn.Linear(3, 1); l = f(w).tanh().sum(); g = slope(l, w); l.backward(); g.norm().backward()
c = torch.nn.CrossEntropyLoss(); l = c(w[None], torch.tensor([1])); g = slope(l, w); l.backward(); g.norm().backward()
(w + w).relu().sum().backward(); h.sum().backward()"""

CACHED = """\
from weakref import WeakKeyDictionary, WeakSet, ref
import torch

class Neuron(torch.nn.Module):
    voltage = 0.0

    def forward(self, x):
        self.voltage = (self.voltage + x).sigmoid()
        return self.voltage

    def reset(self):
        self.voltage = 0.0

cache, everything = WeakKeyDictionary(), WeakSet()

def cached(net):
    if net in cache:
        return [each() for each in cache[net]]
    found = [each for each in net.modules() if isinstance(each, Neuron)]
    cache[net] = [ref(each) for each in found]
    return found

net = torch.nn.Sequential(torch.nn.Linear(3, 3), Neuron())
everything.add(net[1])
for x in torch.rand(4, 2, 3):
    net(x).sum().backward()
"""
RESETS = """\
pass
for each in cached(net): each.reset()
for each in cached(net): each.voltage + 1
for each in everything: each.reset()
for each in WeakSet(): each.reset()
ref(net[1])().reset()"""


def _raises(program: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of create_graph
        try:
            exec(program, {})
        except RuntimeError as error:
            return "a second time" in str(error)
    return False


def test_what_is_freed_is_told_exactly_where_torch_raises(tmp_path: pathlib.Path) -> None:
    cases = BACKWARDS.splitlines()
    bodies = [textwrap.indent(BODY + case.replace("; ", "\n"), "    ") for case in cases]
    text = "import torch\n" + "".join(
        f"\n\ndef f{number}():\n{body}\n" for number, body in enumerate(bodies)
    )
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL507").findings
    starts = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("def ")]
    told = {sum(start <= finding.at.line for start in starts) - 1 for finding in found}
    assert [cases[number] for number in sorted(told)] == [
        case for case in cases if _raises(f"import torch\n{BODY}{case}")
    ]


@pytest.mark.parametrize("reset", RESETS.splitlines())
def test_a_state_that_is_reset_through_weak_references_is_reset(
    reset: str, tmp_path: pathlib.Path
) -> None:
    program = f"{CACHED}    {reset}\n"
    path = tmp_path / "train.py"
    path.write_text(program, encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL507").findings
    assert bool(found) is _raises(program)


READ = """\
import torch


class Tuner:
    def __init__(self, model, tokenizer, optimizer):
        self.model, self.tokenizer, self.optimizer = model, tokenizer, optimizer

    def learn(self, texts):
        self.model.train()
        read = self.tokenizer(texts)
        weight = {weight} * torch.ones(4, 1)
        for start in range(0, 4, 2):
            part = slice(start, start + 2)
            loss = (self.model(read["ids"][part]) * weight[part]).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""
USED = """
tokenizer = lambda texts: {"ids": torch.rand(4, 3), "mask": torch.ones(4, 1)}
model = torch.nn.Linear(3, 1)
Tuner(model, tokenizer, torch.optim.SGD(model.parameters(), lr=0.1)).learn(["a", "b", "c", "d"])
"""


@pytest.mark.parametrize("weight", ['read["mask"]', 'self.model(read["ids"])'])
def test_of_two_unknown_things_that_are_called_the_one_that_is_trained_has_a_graph(
    weight: str, tmp_path: pathlib.Path
) -> None:
    program = READ.format(weight=weight)
    path = tmp_path / "train.py"
    path.write_text(program, encoding="utf-8")
    found = analyze([path], select=lambda code: code == "GL507").findings
    assert bool(found) is _raises(program + USED)
