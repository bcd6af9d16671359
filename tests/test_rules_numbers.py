"""Losses of one line, which torch differentiates of zeros among others: GL701 to GL703 name those
that give no number.

GL702 speaks of what underflows, which takes data far from zero.
"""

from __future__ import annotations

import math
import pathlib
from typing import Any

import pytest
from gradlint_rules import signs

from gradlint.analysis import analyze
from gradlint.config import settings_finder
from gradlint.fix.apply import Task, repair
from gradlint.settings import Selection
from gradlint.tape import Value

BEFORE = """\
import os

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
m = nn.Linear(4, 3, bias=False)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
x = SCALE * torch.randn(8, 4)
x[0] = 0
h, g = m(x), 2 * m(x)
y = torch.zeros(8, 3)
ok = h.sum(1, keepdim=True) > 0
eps = float(os.environ.get("NOWHERE", "1e-6"))
"""
AFTER = """
opt.zero_grad()
loss.backward()
opt.step()
"""
FAR = 400

LOSSES = {
    "GL701": """\
torch.where(h > 0, torch.sqrt(h + 1e-6), y)
torch.where(h > 1, torch.acosh(h), y)
torch.nan_to_num(h.log())
torch.nan_to_num(h.sqrt())
h.log().nan_to_num(0.0, 0.0, 0.0)
h.sqrt().masked_fill(h.sqrt().isnan(), 0.0)
torch.nan_to_num(h / h.norm(dim=1, keepdim=True))
(1 - h.acos()).nan_to_num()
torch.where(ok, h.abs().sqrt(), y)
torch.where(h > 0, h.sqrt(), y)
torch.where(h > 0, h.log(), y)
torch.where(h != 0, h / h.abs(), y)
torch.where(h != 0, 1 / h, y)
torch.where(h == 0, y, 1 / h)
torch.where(h == 0, y, y / h)
torch.where(h.abs() < 1, h.acos(), y)
torch.where(h.abs() < 1, torch.asin(h), y)
torch.where(h > 0, h.clamp(min=0).log(), y)
torch.where(h > 0, h.clamp(min=0).sqrt(), y)
torch.where(h > 0, h ** 0.5, y)
torch.where(h > 0, h.pow(0.5), y)
torch.where(h > 0, h.pow(-1), y)
torch.where(h > 0, h.rsqrt(), y)
torch.where(h > 0, h.reciprocal(), y)
torch.where(h > 0, h.square().sqrt(), y)
h.log().masked_fill(h <= 0, 0.0)
h.sqrt().masked_fill(h <= 0, 0.0)
(1 / h).masked_fill(h == 0, 0.0)
torch.where(h > 0, h.square().sum(1, keepdim=True).sqrt(), y)
torch.where(h > 0, h.log() * 2, y)
torch.where(h > 0, h.log().exp(), y)
h.sqrt().where(h > 0, y)
h.log().where(h > 0, torch.zeros(()))
torch.where(~(h > 0), y, h.log())
torch.where(torch.logical_not(h > 0), y, h.sqrt())
torch.where((h > 0) & (h < 9), h.log(), y)
torch.where((h > 0) & ok, h.sqrt(), y)
torch.where(torch.logical_and(h > 0, ok), 1 / h, y)
torch.where((h <= 0) | (h > 9), y, h.log())
torch.where(torch.logical_or(h <= 0, h > 1e9), y, h.log())
torch.where(0 < h, h.log(), y)
torch.where(0 >= h, y, h.sqrt())
torch.where(torch.gt(h, 0), h.log(), y)
torch.where(h.gt(0), h.log(), y)
torch.where(h > eps, h.log(), y)
torch.where(h >= eps, 1 / h, y)
torch.where(h < eps, y, h.log())
torch.where(h <= eps, y, h.sqrt())
torch.where(h.abs() < eps, y, 1 / h)
torch.where(h.ge(1e-6), h.log(), y)
torch.where(h.le(0), y, h.log())
torch.where(h.eq(0), y, 1 / h)
torch.where(h.ne(0), 1 / h, y)
torch.where(h.abs() > 1e-6, 1 / h, y)
torch.where(h.abs() < 1e-6, y, h / h)
torch.where(h.square() > 0, 1 / h, y)
torch.where(h > 5, h.log(), y)
torch.where(torch.isfinite(1 / h), 1 / h, y)
torch.where((1 / h).isinf(), y, 1 / h)
(1 / h).masked_fill((1 / h).isinf(), 0.0)
h.log().masked_fill(h.log().isinf(), 0.0)
(1 / h).masked_fill(1 / h == float('inf'), 0.0)
torch.where(h > 0, h.pow(1.5), y)
torch.where(h > 0, h.pow(-0.5), y)
torch.where(h > 0, h ** -2, y)
torch.where(h != 0, h.norm(dim=1, keepdim=True) / h, y)
torch.where(h > 0, torch.div(1, h), y)
torch.where(h != 0, torch.div(h, h), y)
torch.where(h.abs() <= 1, torch.acos(h), y)
torch.where(h > 0, h.log2(), y)
torch.where(h > 0, torch.log10(h), y)
torch.where(h > 0, h / h.relu(), y)
torch.where(h > 0, h.abs().log(), y)
torch.where(h != 0, h.abs().sqrt(), y)
torch.where(h != 0, h.abs().pow(0.5), y)
torch.where((h > 0) | (h > 5), h.log(), y)
torch.where(torch.logical_or(h > 0, h > 1e9), 1 / h, y)
torch.where((h > 0) & (h > 5), h.sqrt(), y)
torch.where(h == float('inf'), h.log(), y)
torch.where(h >= float('inf'), 1 / h, y)
""",
    "GL702": """\
torch.log(1 + torch.exp(h))
h.exp().add(1).log()
torch.log1p(torch.exp(-h))
h.softmax(1).log()
h.softmax(1).log2()
torch.log10(torch.softmax(h, 1))
h.sigmoid().log()
torch.sigmoid(h).log()
(1 - h.sigmoid()).log()
(1.0 - torch.sigmoid(h)).log()
torch.log(torch.rsub(h.sigmoid(), 1))
torch.log1p(-h.sigmoid())
h.softmax(1)[:, 0].log()
h.softmax(1).gather(1, torch.zeros(8, 1, dtype=torch.long)).log()
nn.Sigmoid()(h).log()
nn.Softmax(dim=1)(h).log()
F.softmax(h, 1).log()[:, 0]
torch.softmax(h / 2, 1).log()
torch.log(torch.sub(1, h.sigmoid()))
torch.log1p(torch.neg(h.sigmoid()))
nn.Softmax2d()(h[None, :, :, None]).log()
torch.special.expit(h).log()
torch.sigmoid(200 * h.tanh()).log()
torch.softmax(h.sin() / 0.005, 1).log()
(1 - torch.sigmoid(30 * h.tanh())).log()
""",
    "GL703": """\
h.masked_fill(h > 0, -1e9).softmax(1).square().sqrt()
h.pow(2).sum(1).sqrt()
h.pow(4).sum(1).sqrt()
h.pow(2.0).mean(1).sqrt()
(h ** 2).sum(1) ** 0.5
(h ** 2).sum(1).pow(exponent=0.5)
torch.sqrt(h.square().sum(1))
torch.sqrt((h * h).sum(1))
h.square().rsqrt()
torch.hypot(h, g)
(h.square() + g.square()).sqrt()
(h.square() + 0.0).sqrt()
(h.square().sum(1) / 3).sqrt()
(3 * h.square()).sqrt()
h.square().clamp(min=0).sqrt()
h.square().clamp(max=5).sqrt()
(h - h.detach()).pow(2).mean().sqrt()
F.mse_loss(h, h.detach()).sqrt()
F.mse_loss(h, h * 1).sqrt()
torch.sqrt(nn.MSELoss()(h, h * 1))
torch.einsum('ij,ij->i', h, h).sqrt()
torch.stack([h.square(), g.square()]).sqrt()
torch.cat([h.square(), g.square()]).sum(1).sqrt()
h.square().cumsum(1).sqrt()
h.square().nansum(1).sqrt()
h.square().view(-1).sqrt()
h.square()[0].sqrt()
h.square().T.sqrt()
h.square().unsqueeze(0).expand(2, 8, 3).sqrt()
h.square().flatten().double().sqrt()
h.var(1).sqrt()
torch.sqrt(h[0].dot(h[0]))
(h.square().sum(1).sqrt() + 1e-8)
(h.square().sum(1, keepdim=True) + g.square().sum(1) - 2 * h @ g.T).clamp(min=0).sqrt()
h.square().sum(1).pow(0.5).mean()
h.amax(1).square().sqrt()
h.max(1)[0].square().sqrt()
torch.max(h, g).square().sum(1).sqrt()
h.sort(1)[0].square().sum(1).sqrt()
h.chunk(3, 1)[0].square().sqrt()
h.index_select(0, torch.tensor([0])).square().sum(1).sqrt()
h.gather(1, torch.zeros(8, 1, dtype=torch.long)).square().sqrt()
h[:, :2].square().sum(-1).sqrt()
(h[:, 0] - g[:, 0]).square().sqrt()
(h / 2).square().sum(1).sqrt()
(h * 3).square().sum(1).sqrt()
(-h).square().sum(1).sqrt()
(h * ok).square().sum(1).sqrt()
h.abs().square().sum(1).sqrt()
h.tanh().square().sum(1).sqrt()
(h.square().sum(1) / h.exp().sum(1)).sqrt()
(h.square().sum(1) * h.exp().sum(1)).sqrt()
torch.stack([h[:, 0] ** 2, h[:, 1] ** 2]).sum(0).sqrt()
h.square().sum(1).double().sqrt()
torch.addmm(h.square().sum(1, keepdim=True) + g.square().sum(1), h, g.T, alpha=-2).clamp_min(0).sqrt()
torch.baddbmm(h[None].square().sum(2, keepdim=True), h[None], g[None].transpose(1, 2), alpha=-2).clamp(min=0.0).sqrt()
torch.einsum('ij,ij->i', h - g, h - g).sqrt()
torch.inner(h[0], h[0]).sqrt()
torch.vdot(h[0], h[0]).sqrt()
torch.sum(h * h, dim=1) ** (1 / 2)
torch.pow(h.square().sum(1), 0.5)
h.square().sum(1).sqrt_()
torch.maximum(h, torch.tensor(0.0)).square().sqrt()
(h.clamp(min=0) + h.abs()).square().sum(1).sqrt()
(h.clamp(min=0) + 0.0).square().sum(1).sqrt()
(h.abs() * 0.5).square().sum(1).sqrt()
h.square().clamp(min=0, max=1).sqrt()
h.square().clip(0).sqrt()
(h * h * 2).sum(1).sqrt()
(h.square() * h.square()).sqrt()
(h.square() / h.exp()).sqrt()
(h.square() + g.square() + 0).sqrt()
h.pow(6).sqrt()
h.square().amin(1).sqrt()
h.square().topk(2, 1).values.sqrt()
h.square().unbind(1)[0].sqrt()
h.square().split(1, 1)[2].sqrt()
h.square().movedim(0, 1).sqrt()
h.square().reshape_as(g).sqrt()
h.square().repeat(2, 1).flip(0).roll(1, 0).sqrt()
nn.Unflatten(1, (3, 1))(h.square()).sqrt()
F.mse_loss(h, y, reduction='none').sqrt()
torch.einsum('i,i->', h[0], h[0]).sqrt()
(h - g.detach() / 2).square().sqrt()
h.var(1, unbiased=False).sqrt()
""",
    "finite": """\
torch.distributions.Normal(h, 1.0).rsample().square().sum().sqrt()
torch.sigmoid(F.cosine_similarity(h, y, dim=1)).log()
torch.softmax(10 * h.tanh(), 1).log()
torch.softmax(h.clamp(-1, 1) / 0.1, 1).log()
(1 - torch.sigmoid(h.sin() / 0.1)).log()
(h ** 2).sum(1) ** 1.5
torch.rsqrt(h.square() + 1e-8)
(h.square() + 1e-12).sqrt()
(1.0 / (h.square().sum(1) + 1)).sqrt()
h.square().clamp(min=1e-6).sqrt()
h.square().clamp(1e-6).sqrt()
h.square().clamp_min(1e-6).sqrt()
torch.clamp(h.square(), min=1e-6).sqrt()
torch.maximum(h.square(), torch.tensor(1e-6)).sqrt()
h.exp().square().sqrt()
h.sigmoid().pow(2).sum(1).sqrt()
h.softmax(1).pow(2).sum(1).sqrt()
F.softplus(h).square().sqrt()
h.relu().square().sqrt()
F.relu(h).pow(2).sum(1).sqrt()
h.relu().sqrt()
h.norm(dim=1)
h.norm(dim=1) ** 2
(h + 1e-8).square().sqrt()
(h + 1e-8).pow(2).sum(1).sqrt()
(h - 1e-10).square().sqrt()
h.std(1)
torch.dist(h, g)
F.pairwise_distance(h, h * 1)
(1 / (h + 1)).square().sqrt()
m.weight.square().sum().sqrt()
h.square().detach().sqrt() + h.sum()
h.square().sum(1).add(1e-6).sqrt()
(h.square().sum(1) - 1e-6).abs().sqrt()
(h.square().sum(1, keepdim=True) + g.square().sum(1) - 2 * h @ g.T).clamp(min=1e-9).sqrt()
h.cosh().square().sqrt()
F.softmax(h, dim=1).clamp(min=1e-6).log()
(h.softmax(1) + 1e-8).log()
h.log_softmax(1)
F.logsigmoid(h)
(2 - h.sigmoid()).log()
torch.log1p(h.sigmoid())
h.softmax(1).mean(0).log()
h.clamp(-5, 5).softmax(1).log()
h.tanh().sigmoid().log()
h.detach().sigmoid().log() + h.sum()
torch.where(h > 0, h.log1p(), y)
torch.where(h > 0, h / 2, y)
torch.where(h > 0, h.clamp(min=1e-6).log(), y)
torch.where(h > 0, (h.abs() + 1e-6).log(), y)
torch.where(h > 0, torch.where(h > 0, h, 1.0).log(), y)
torch.where(h > 0, h.masked_fill(h <= 0, 1.0).log(), y)
torch.where(h > 0, h.exp().log(), y)
torch.where(h > 0, h.relu().sqrt(), y)
torch.where(h > 0, h.relu().log(), y)
torch.where(h > 0, h.pow(2), y)
torch.where(h != 0, h.relu().pow(1.5), y)
torch.where(h != 0, h.abs().pow(1.5), y)
torch.where(h > 0, h.norm(dim=1, keepdim=True), y)
torch.where(h > 1, (h - 1).log(), y)
torch.where(h > 0, h ** 3, y)
torch.where(h > 0, torch.atan2(h, h), y)
torch.where(h.abs() < 1, torch.atanh(h), y)
torch.where(h > -1, torch.log1p(h), y)
torch.where(h > 0, h.tan(), y)
torch.where(h > 0, torch.sqrt(h.square() + 1e-6), y)
torch.where(h > 0, h / (h.abs() + 1), y)
torch.where(h > 0, y / h.detach(), y) + h
torch.where(h > 0, 1 / h.relu(), y)
h.masked_fill(h <= 0, 1.0).log()
torch.where(h > 0, h, torch.ones(())).log()
torch.logsumexp(h, 1)
torch.max(h, y + 1e-6).log()
h.clamp(min=y + 1e-6).log()
torch.clamp(h, 1e-6, 1.0).log()
torch.clamp(h, min=1e-6, max=1.0).log()
torch.clip(h.square(), 1e-6).sqrt()
F.relu6(h).square().sum(1).sqrt()
nn.ReLU()(h).square().sum(1).sqrt()
torch.log(1 + torch.exp(-h.abs()))
torch.log1p(torch.exp(-h.square()))
torch.log(1 + torch.exp(h.clamp(max=9)))
torch.log(1 + torch.exp(h.log_softmax(1)))
torch.log1p((h - h.amax(1, keepdim=True)).exp())
F.softplus(h).log()
nn.Softplus()(h).sqrt()
h.sigmoid().square().sum(1).sqrt()
(h.square() + h.exp()).sqrt()
(h.square().sum(1) + g.square().sum(1) + 1).sqrt()
(1 + h.square().sum(1)).sqrt()
torch.linalg.norm(h) ** 0.5
torch.softmax(h, 1).detach().log() + h.sum()
(0.5 * h.softmax(1)).log()
torch.log(h.softmax(1).clamp(1e-6, 1.0))
torch.log(torch.clamp(h.sigmoid(), min=1e-6))
torch.log1p(-h.tanh().sigmoid())
(h.sigmoid() - 1).neg().log()
F.hardtanh(h, -5, 5).sigmoid().log()
(h.clamp(min=0) + 1e-6).sqrt()
(h.clamp(0) + 1e-6).log()
(h.clip(min=0.5) + 1e-6).log()
torch.where(h > 0, (h.clamp(min=0) + 1e-6).log(), y)
torch.where(h > 0, (h.clip(0) + 1e-6).sqrt(), y)
torch.where(h > 0, (h.clamp_min(0) + 1e-6).sqrt(), y)
torch.maximum(h, torch.tensor(0.5)).square().sqrt()
torch.max(torch.tensor(0.5), h.relu()).square().sum(1).sqrt()
torch.max(h.relu(), torch.tensor(0.0)).square().sqrt()
(h.clamp(min=0) + 0.1).square().sqrt()
(h.clamp(min=0.5) + 0.1).square().sqrt()
(h.clamp(0, 9) + 0.1).square().sqrt()
(h.abs() + 0.1).square().sum(1).sqrt()
(h.square() + 0.1).square().sqrt()
(h.norm() + 0.1).square().sqrt()
(2 / (h.abs() + 1)).square().sqrt()
h.masked_fill(h > 0, -9.0).softmax(1).square().sqrt()
(h.relu() * 2).square().sqrt()
(h.relu() / 2).square().sum(1).sqrt()
h.relu().norm(dim=1).square().sqrt()
h.relu().mean(1).pow(2).sqrt()
(h + 0.01).square().sum(1).sqrt()
(h / 2 + 1e-9).square().sqrt()
F.mse_loss(h, y) ** 1.5
h.square().sum().pow(2)
""",
    "not told": """\
h.pow(3).sum(1).sqrt()
torch.sqrt((h * g).sum(1).abs())
torch.maximum(h.square(), torch.tensor(0.0)).sqrt()
h.norm(dim=1).sqrt()
torch.linalg.vector_norm(h, dim=1).sqrt()
h.abs().sqrt()
torch.einsum('ij,ij->i', h, g).abs().sqrt()
h.pow(-2).sqrt()
h.square().pow(0.25)
torch.where(ok, y, h.abs().sqrt())
torch.where(torch.isnan(h.log()), y, h.log())
torch.where(h > 0, 3.0, h.log())
torch.where((h > 0) | (h < 9), h.log().clamp(min=-9), y)
torch.where(h > y, h.log(), y)
torch.where(h != 0, h.pow(1.5), y)
torch.where(h.log() > 5, h.log(), y)
torch.where(h != 0, h.pow(2.5), y)
torch.where(h.isnan(), y, h.log())
torch.where(torch.isnan(h), y, h.log())
h.log().masked_fill(h.log().isnan(), 0.0)
torch.where(h > 0, h.pow(torch.tensor(0.5)), y)
torch.where(ok, y, 1 / h)
torch.where(h > 0, torch.xlogy(h, h), y)
torch.special.xlogy(h.square(), h.square())
torch.maximum(h, y).sqrt()
(h.square() + h.abs()).sqrt()
(h.square().sum(1) - 0).sqrt()
torch.float_power(h.square().sum(1), 0.5)
(h.softmax(1) * ok).sum(1).log()
torch.where(h > 0, (h.clamp(min=-9) + 1e-6).sqrt(), y)
torch.where(h > 0, (h.clip(-0.5, 9) + 1e-6).sqrt(), y)
torch.where(h > 0, (h.clamp(max=9) + 1e-6).sqrt(), y)
torch.where(h > 0, (h.clamp(min=0) - 1e-6).sqrt(), y)
torch.where(h > 0, (h.clamp(min=0) + 0.0).log(), y)
h.square().clamp(min=-1).sqrt()
(2 * h * h).sum(1).sqrt()
(1 / h.square()).rsqrt()
(h.square() + 1 - 1).sqrt()
h.pow(1).abs().sqrt()
h.pow(-4).sqrt()
h.pow(2.5).sqrt()
(h[0] @ h[0]).sqrt()
torch.einsum('ij,ij->i', h, y).sqrt()
torch.stack([h.square(), h.abs()]).sum(0).sqrt()
""",
}


@pytest.mark.parametrize("group", LOSSES)
def test_torch_finds_no_finite_gradient_exactly_where_something_is_said(group: str) -> None:
    scale = FAR if group == "GL702" else 2
    finite = {loss for loss in LOSSES[group].splitlines() if _is_finite(loss, scale)}
    assert finite == (set(LOSSES[group].splitlines()) if group == "finite" else set())


def _is_finite(loss: str, scale: int) -> bool:
    names: dict[str, Any] = {}
    exec(BEFORE.replace("SCALE", str(scale)), names)
    eval(loss, names).sum().backward()
    return bool(names["m"].weight.grad.isfinite().all())


def _program(group: str, scale: int) -> str:
    losses = LOSSES[group].splitlines()
    lines = [f"loss_{number} = ({loss}).sum()" for number, loss in enumerate(losses)]
    return "\n".join(
        [BEFORE.replace("SCALE", str(scale)), *lines, f"loss = {' + '.join(_names(group))}", AFTER]
    )


def _names(group: str) -> list[str]:
    return [f"loss_{number}" for number, _ in enumerate(LOSSES[group].splitlines())]


@pytest.mark.parametrize("group", LOSSES)
def test_each_line_is_told_under_its_code_alone(group: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(_program(group, 2), encoding="utf-8")
    found = analyze([path], select=lambda code: code.startswith("GL7")).findings
    losses, first = LOSSES[group].splitlines(), BEFORE.count("\n") + 2
    assert [
        (losses[at.line - first], code)
        for at, code in sorted((each.at, each.code) for each in found)
    ] == [(loss, group) for loss in losses if group.startswith("GL")]


@pytest.mark.parametrize("group", [group for group in LOSSES if group.startswith("GL")])
def test_a_mended_line_has_a_finite_gradient_and_its_value(
    group: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(_program(group, 2), encoding="utf-8")
    settings_for = settings_finder(
        lambda settings: settings.overridden(Selection((group,), (), ()), (), {})
    )
    repaired = repair(Task([path], settings_for, settings_for(tmp_path), unsafe=True))
    mended = repaired.contents[path].decode().removesuffix(AFTER)
    left = {finding.at.line for finding in repaired.checked.findings}
    before, after = _values(group, _program(group, 2).removesuffix(AFTER)), _values(group, mended)
    far = _values(group, mended.replace("x = 2 *", f"x = {FAR} *")) if group == "GL702" else after
    lines = {
        name: number
        for number, line in enumerate(mended.splitlines(), 1)
        for name in [line.partition(" = ")[0]]
    }
    for name in _names(group):
        value, slope = after[name]
        assert value == pytest.approx(before[name][0], rel=1e-4, abs=1e-2) or not math.isfinite(
            before[name][0]
        )
        is_finite = math.isfinite(slope) and math.isfinite(far[name][1])
        assert is_finite != (lines[name] in left), mended.splitlines()[lines[name] - 1]


def _values(group: str, program: str) -> dict[str, tuple[float, float]]:
    """For each loss its value and the sum of its gradient."""
    names: dict[str, Any] = {}
    exec(program, names)
    grad = names["torch"].autograd.grad
    return {
        name: (
            names[name].item(),
            float(grad(names[name], names["m"].weight, retain_graph=True)[0].sum()),
        )
        for name in _names(group)
    }


def test_a_root_of_a_long_sum_is_judged_term_by_term(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The norm of many parameters, added up one by one: no term is looked at again and again."""
    looked_at, is_square = [0], signs.is_square

    def counted(value: Value, depth: int = 0) -> bool:
        looked_at[0] += 1
        return is_square(value, depth)

    monkeypatch.setattr(signs, "is_square", counted)
    terms = [f"        total = total + self.layer(x[{row}]).sum().pow(2)" for row in range(60)]
    program = tmp_path / "loss.py"
    program.write_text(LONG_SUM.format(terms="\n".join(terms)), encoding="utf-8")
    assert not analyze([program], select=lambda code: code == "GL703").findings
    assert 0 < looked_at[0] < 2_000


LONG_SUM = """\
from torch import nn


class NormLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        total = self.layer(x[60]).sum().pow(2)
{terms}
        return total.sqrt()
"""
