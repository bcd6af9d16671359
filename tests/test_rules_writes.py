"""Writes in place, and tensors of inference mode: GL201 to GL204 and GL302 tell of them exactly
where torch shows it.

Where torch raises it says why; where it does not, what a write through `.data` did to a gradient
shows without it.
"""

from __future__ import annotations

import bisect
import itertools
import pathlib
import re
import textwrap
import warnings
from typing import Any

import torch

from gradlint.analysis import analyze

SETUP = """\
import torch
from torch import nn
from torch.nn import functional as F

def {}():
    torch.manual_seed(0)
    w = leaf = torch.rand(3, requires_grad=True)
    x = torch.rand(3)
    m = torch.rand(4, 3)
"""
AFTER = (
    "\n    (w * 2).sum().backward()\n    return leaf.grad if leaf.grad is not None else leaf\n\n"
)
RAISED = {
    "modified by an inplace": "GL201",
    "a leaf Variable": "GL202",
    "a view of a leaf": "GL202",
    "nference tensor": "GL302",
}
WRITES = """\
y = w.exp(); y.mul_(2); y.sum().backward()
y = w.exp(); y.add_(1); y.sum().backward()
y = w.exp(); z = y * 1; z.mul_(2); z.sum().backward()
y = w.exp(); y += 1; y.sum().backward()
y = w.exp(); y = y + 1; y.sum().backward()
y = w.exp(); y[0] = 0; y.sum().backward()
y = w.exp(); y[0] += 1; y.sum().backward()
y = w.exp(); y.detach().mul_(2); y.sum().backward()
y = w.exp(); y.data.mul_(2); y.sum().backward()
y = w.exp(); y.detach()[0] = 0; y.sum().backward()
y = w.exp().clone(); y.mul_(2); y.sum().backward()
y = w.exp(); y.clone().mul_(2); y.sum().backward()
y = w.exp(); z = y.view(3); z.mul_(2); y.sum().backward()
y = w.exp(); z = y[:2]; z.mul_(2); y.sum().backward()
y = w.sigmoid(); y.clamp_(0, 1); y.sum().backward()
y = w.tanh(); y.neg_(); y.sum().backward()
y = w.sqrt(); y.div_(2); y.sum().backward()
y = w.relu(); y.mul_(2); y.sum().backward()
y = w.relu(); y.add_(1); y.sum().backward()
y = w.softmax(0); y.mul_(2); y.sum().backward()
y = w * 2; y **= 2; y.add_(1); y.sum().backward()
y = w * 2; y **= 2.0; y.square_(); y.sum().backward()
y = w * 2; y **= x; y.add_(1); y.sum().backward()
y = w * 2; y.pow_(2); y.add_(1); y.sum().backward()
y = w * 2; y /= 2; y.add_(1); y.sum().backward()
y = w * 2; y %= 2; y.add_(1); y.sum().backward()
y = w.log(); y.mul_(2); y.sum().backward()
y = w.sin(); y.mul_(2); y.sum().backward()
y = w * 2; y.mul_(3); y.sum().backward()
y = w * w; y.mul_(3); y.sum().backward()
y = w + 1; y.mul_(3); y.sum().backward()
y = w + 1; z = y * y; y.mul_(3); z.sum().backward()
y = w + 1; z = y * 2; y.mul_(3); z.sum().backward()
y = w + 1; z = y + 2; y.mul_(3); z.sum().backward()
y = w + 1; z = y.exp(); y.mul_(3); z.sum().backward()
y = w + 1; z = y.sin(); y.mul_(3); z.sum().backward()
y = w + 1; z = y.pow(2); y.mul_(3); z.sum().backward()
y = w + 1; z = y.sum(); y.mul_(3); z.backward()
y = w + 1; z = y.prod(); y.mul_(3); z.backward()
y = w + 1; z = y.abs(); y.mul_(3); z.sum().backward()
y = w + 1; z = y.mean(); y.zero_(); z.backward()
y = w + 1; z = y @ y; y.zero_(); z.backward()
y = w + 1; z = y @ x; y.zero_(); z.backward()
y = w + 1; z = y @ x; x.zero_(); z.backward()
y = w * x; x.zero_(); y.sum().backward()
y = w + x; x.zero_(); y.sum().backward()
y = w * x; x += 1; y.sum().backward()
y = w * x; x = x + 1; y.sum().backward()
y = w * x; x[0] = 1; y.sum().backward()
y = w * x.clone(); x.zero_(); y.sum().backward()
y = w * x[:3]; x.zero_(); y.sum().backward()
y = w * x; x.data.zero_(); y.sum().backward()
y = w * x; x.copy_(torch.ones(3)); y.sum().backward()
y = w / x; x.add_(1); y.sum().backward()
y = x / w; x.add_(1); y.sum().backward()
y = w - x; x.add_(1); y.sum().backward()
y = torch.where(x > 0, w, x); x.zero_(); y.sum().backward()
y = F.linear(w[None], m); m.zero_(); y.sum().backward()
y = F.linear(w[None], m); m.mul_(2); y.sum().backward()
y = F.mse_loss(w * 1, x); x.zero_(); y.backward()
y = F.relu(w + 1, inplace=True); y.sum().backward()
y = w.exp(); F.relu(y, inplace=True); y.sum().backward()
y = w.exp(); F.relu_(y); y.sum().backward()
y = w.exp(); torch.relu_(y); y.sum().backward()
y = w.exp(); nn.ReLU(inplace=True)(y); y.sum().backward()
y = w * 2; nn.ReLU(inplace=True)(y).sum().backward()
y = w + 1; z = y.relu(); F.relu(y, inplace=True); z.sum().backward()
y = w + 1; z = y.exp() + F.relu(y, inplace=True); z.sum().backward()
y = w + 1; z = y.square() + F.relu(y, inplace=True); z.sum().backward()
y = w + 1; F.dropout(y, 0.5, True, inplace=True); y.sum().backward()
y = w.exp(); y.sum().backward(); y.mul_(2)
y = w.exp(); y.detach_(); y.mul_(2)
y = w.exp(); y.requires_grad_(); y.sum().backward()
y = w.exp(); z = y.sum(); y.mul_(2); z.backward()
y = (w + 1).unbind(0); z = y[0] * y[1]; z.backward()
y = w + 1; a, b = y.chunk(2); z = (a * 2).sum() + b.sum(); y.mul_(2); z.backward()
y = w + 1; z = y[0] * y[1]; y[2] = 5; z.backward()
y = w + 1; z = y[0] + y[1]; y[2] = 5; z.backward()
h = torch.zeros(3); h[0] = w[0]; h[1] = h[0] * 2; h.sum().backward()
h = torch.zeros(3); h[0] = w[0]; h[1] = h[0].exp(); h[0] = 1; h.sum().backward()
h = torch.zeros(3); h += w; h.sum().backward()
h = torch.zeros(3); h += w; h *= w; h.sum().backward()
h = torch.ones(3); h = h * w; h *= h; h.sum().backward()
h = torch.ones(3); h.add_(w); h.mul_(w); h.mul_(w); h.sum().backward()
y = w.exp(); y.contiguous().mul_(2); y.sum().backward()
y = w.exp(); y.unsqueeze(0).contiguous().mul_(2); y.sum().backward()
y = w.exp(); y[:, None].contiguous().mul_(2); y.sum().backward()
y = w.exp(); y[1:].contiguous().mul_(2); y.sum().backward()
y = w.exp(); y[::2].contiguous().mul_(2); y.sum().backward()
y = w.exp(); y[:, None].expand(3, 2).contiguous().mul_(2); y.sum().backward()
y = (w * m).exp(); y[0].contiguous().mul_(2); y.sum().backward()
y = (w * m).exp(); y[:, 0].contiguous().mul_(2); y.sum().backward()
y = (w * m).exp(); y.t().contiguous().mul_(2); y.sum().backward()
y = (w * m).exp(); y.T.contiguous().mul_(2); y.sum().backward()
y = (w * m).exp(); y.permute(1, 0)[None].contiguous().mul_(2); y.sum().backward()
y = (w * m).exp(); z = y.t().contiguous(); z.exp_(); z.mul_(2); z.sum().backward()
y = (w * m).exp(); z = y.t(); z.add_(1); z.contiguous().mul_(2); z.sum().backward()
y = w + 1; z = y.view(3, 1).contiguous(); v = y.exp(); z.add_(1); v.sum().backward()
y = w * m; z = y.t().contiguous(); v = y.sin(); z.add_(1); v.sum().backward()
w.add_(1)
w += 1
w[0] = 1
w.mul_(2)
w.data.add_(1)
w.detach().add_(1)
w.zero_()
w.view(3).add_(1)
w[:2].add_(1)
w.clone().add_(1)
w.contiguous().add_(1)
w.unsqueeze(-1).contiguous().add_(1)
w.unsqueeze(-1).expand(3, 2).contiguous()[..., 1:] = 0
w.expand(2, 3).contiguous().add_(1)
w[::2].contiguous().add_(1)
w[:2].contiguous().add_(1)
w.copy_(x)
w.fill_(1)
F.relu(w, inplace=True)
F.relu_(w)
nn.ReLU(True)(w)
nn.init.zeros_(w)
nn.init.normal_(w)
with torch.no_grad(): w.add_(1)
with torch.no_grad(): w[0] = 1
with torch.no_grad(): w.copy_(x)
with torch.enable_grad(): w.add_(1)
with torch.inference_mode(): w.add_(1)
y = w.exp().sum(); torch.nn.init.zeros_(w); y.backward()
y = w.exp()\\nwith torch.no_grad(): y.mul_(2)\\ny.sum().backward()
y = w.exp()\\nwith torch.no_grad(): w.mul_(2)\\ny.sum().backward()
y = w.sin()\\nwith torch.no_grad(): w.mul_(2)\\ny.sum().backward()
y = w.sin()\\nwith torch.no_grad(): w.data.mul_(2)\\ny.sum().backward()
y = (w * w).sum()\\nw.data.sub_(1)\\ny.backward()
y = (w * w).sum()\\nwith torch.no_grad(): w -= 1\\ny.backward()
y = (w * 3).sum()\\nwith torch.no_grad(): w -= 1\\ny.backward()
y = (w + 3).sum()\\nwith torch.no_grad(): w -= 1\\ny.backward()
y = (w * w).sum()\\nw = w - 1\\ny.backward()
with torch.inference_mode(): i = x * 2\\n(w * i).sum().backward()
with torch.inference_mode(): i = x * 2\\n(w + i).sum().backward()
with torch.inference_mode(): i = x * 2\\n(w * i.clone()).sum().backward()
with torch.inference_mode(): i = x * 2\\ni.add_(1)
with torch.inference_mode(): i = x * 2\\ni.data.add_(1)
with torch.inference_mode(): i = x * 2\\ni.detach().zero_()
with torch.inference_mode(): i = x * 2\\ni.detach().view(3).zero_()
with torch.inference_mode(): i = x * 2\\ni.data.index_fill_(0, torch.tensor([1]), 0.0)
with torch.inference_mode(): i = x * 2\\ni.data[0] = 1
with torch.inference_mode(): i = x * 2\\ni.data[1:] = 1
with torch.inference_mode(): i = x * 2\\ni.data[:] = 1
with torch.inference_mode(): i = x * 2\\ni.data[m[0] > 0] = 1
with torch.inference_mode(): i = x * 2\\ni.data[0] += 1
with torch.inference_mode(): i = x * 2\\n(w * i.data).sum().backward()
with torch.inference_mode(): i = x * 2\\ni.requires_grad_()
with torch.inference_mode(): i = x * 2\\ni.clone().requires_grad_()
with torch.inference_mode(): i = x * 2\\ni + 1
with torch.inference_mode(): i = x * 2\\nwith torch.inference_mode(): i.add_(1)
with torch.inference_mode(): i = x * 2\\nwith torch.no_grad(): i.add_(1)
with torch.inference_mode(): i = x * 2\\nwith torch.no_grad(): i + w
with torch.inference_mode(False): i = x * 2\\n(w * i).sum().backward()
with torch.inference_mode(): i = x\\n(w * i).sum().backward()
with torch.inference_mode(): i = x.view(3)\\n(w * i).sum().backward()
with torch.inference_mode(): i = x[:3].exp()\\n(w * i).sum().backward()
with torch.no_grad(): i = x * 2\\n(w * i).sum().backward()
with torch.inference_mode(): i = w * 2\\n(w * i).sum().backward()
with torch.inference_mode(): i = torch.ones(3)\\n(w * i).sum().backward()
with torch.inference_mode(): i = torch.ones(3)\\n(w / i).sum().backward()
with torch.inference_mode(): i = torch.ones(3)\\n(i / w).sum().backward()
with torch.inference_mode(): i = torch.ones(3)\\nF.mse_loss(w, i).backward()
with torch.inference_mode(): i = torch.ones(3)\\nF.linear(i[None], w[None]).sum().backward()
with torch.inference_mode(): i = torch.ones(3)\\n(w @ i).backward()
with torch.inference_mode(): i = torch.ones(3)\\n(w - i).sum().backward()
with torch.inference_mode(): i = torch.ones(3)\\ntorch.cat([w, i]).sum().backward()
with torch.inference_mode(): i = torch.ones(3)\\ni = i + 1\\n(w * i).sum().backward()
with torch.inference_mode(): i = x + 1\\ni += 1
with torch.inference_mode(): i = x + 1\\ni[0] = 2
with torch.inference_mode(): i = torch.zeros(3)\\ni.add_(1)
with torch.inference_mode(): i = torch.rand(3)\\ni[0] = 2
with torch.inference_mode(): i = torch.zeros_like(x)\\nwith torch.no_grad(): i.add_(1)
with torch.inference_mode(): i = torch.zeros(3).add_(1)
with torch.inference_mode(): i = torch.zeros(3)\\ni = i.clone().add_(1)
w = w.detach().requires_grad_(False); w.add_(1); w.requires_grad_()
"""


def program(write: str, name: str) -> str:
    """A function that does it, and gives the gradient of what it trains."""
    return SETUP.format(name) + textwrap.indent(write.replace("\\n", "\n"), "    ") + AFTER


def ran(write: str) -> torch.Tensor | str:
    """The gradient that comes back, or the code of why none does."""
    names: dict[str, Any] = {}
    exec(program(write, "run"), names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            gradient: torch.Tensor = names["run"]()
        except RuntimeError as error:
            return next(code for said, code in RAISED.items() if said in str(error))
    return gradient


def codes_of_torch(write: str) -> set[str]:
    """The codes that say what torch does with it."""
    gradient = ran(write)
    if isinstance(gradient, str):
        return {gradient}
    without = ran(re.sub(r"[^;\n]*\.data\.[^;\n]*", "pass", write.replace("\\n", "\n")))
    return set() if isinstance(without, str) or without.equal(gradient) else {"GL204"}


def codes_of_gradlint(folder: pathlib.Path, writes: list[str]) -> list[set[str]]:
    """The codes of the findings in each of the programs; a step that came too early is an
    overwritten tensor, too.
    """
    path = folder / "train.py"
    texts = [program(write, f"run_{number}") for number, write in enumerate(writes)]
    path.write_text("".join(texts), encoding="utf-8")
    codes = {
        "GL201": "GL201",
        "GL202": "GL202",
        "GL203": "GL201",
        "GL204": "GL204",
        "GL302": "GL302",
    }
    found = analyze([path], select=lambda code: code in codes).findings
    ends = list(itertools.accumulate(text.count("\n") for text in texts))
    told: list[set[str]] = [set() for _ in writes]
    for each in found:
        told[bisect.bisect_left(ends, each.at.line)].add(codes[each.code])
    return told


def test_writes_are_told_exactly_where_torch_shows_a_fault(tmp_path: pathlib.Path) -> None:
    writes = WRITES.splitlines()
    told = codes_of_gradlint(tmp_path, writes)
    assert dict(zip(writes, told, strict=True)) == {
        write: codes_of_torch(write) for write in writes
    }
