"""Which parts are worth entering, by what their code may do to tensors; and the data that it goes
by, held to torch.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
from gradlint_rules import guards

from gradlint.library import effects
from gradlint.program.entries import entries
from gradlint.source.parse import Source, parse

HEAD = """\
import torch
from torch import nn, sqrt as root
import torch.nn.functional as F
from project import helper


def twice(x):
    return x * 2


def halved(x):
    x /= 2
    return x


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        {made}

    def forward(self, x):
        size = x.size(0)
        if size > 1 and x.dim() == 2:
            x = self.first(x)
        {line}
        return F.relu(x)
"""
HEALTHY = [
    "pass",
    "x = x * 2 + size",
    "x = twice(x)",
    "x = x.view(size, -1)",
    "x = torch.cat([x, x])",
    "logger = self.first",
    "x, y = x.chunk(2)",
    "x = x[:, 0]",
    'label = "a / b, log_ = 1"',
]
HAZARDS = [
    "x += 1",
    "x[0] = 1",
    "x.mul_(2)",
    "x = F.relu(x, inplace=True)",
    "torch.add(x, 1, out=x)",
    "x = x / 2",
    "x = x ** 2",
    "x = root(x)",
    "x = x.log()",
    "x = x.detach()",
    "x = x.round()",
    "x = x * x.argmax()",
    "x = x * (x > 0)",
    "x = x[x > 0]",
    "x = x.data",
    "x = x.mean()",
    "x = halved(x)",
    "x = helper(x)",
    "x = Function.apply(x)",
    "with torch.no_grad(): x = x * 2",
    "x = torch.tensor(x)",
    "return F.cross_entropy(x, x)",
]
MAKERS = [
    "self.heads = [nn.Linear(4, 4), nn.Linear(4, 4)]",
    "self.heads = [nn.Linear(4, 4) for _ in range(2)]",
    "self.heads = dict(a=nn.Linear(4, 4))",
    "self.heads.append(nn.Linear(4, 4))",
    "self.first.weight.requires_grad = False",
    "self.scale = nn.Parameter(torch.ones(4)) * 2",
    "self.scale = torch.ones(4, requires_grad=True)",
    'setattr(self, "first", nn.Linear(4, 4))',
]


def is_entered(line: str = "pass", made: str = "pass") -> bool:
    text = textwrap.dedent(HEAD).format(line=line, made=made)
    source = parse("model.py", text)
    assert isinstance(source, Source)
    return any(entry.contract == "forward" for entry in entries(source))


@pytest.mark.parametrize("line", HEALTHY)
def test_a_healthy_module_is_not_entered(line: str) -> None:
    assert not is_entered(line)


@pytest.mark.parametrize("line", HAZARDS)
def test_a_module_with_a_hazard_is_entered(line: str) -> None:
    assert is_entered(line)


@pytest.mark.parametrize("made", MAKERS)
def test_a_module_that_is_made_with_a_hazard_is_entered(made: str) -> None:
    assert is_entered(made=made)


GRIDS = (
    torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0]),
    torch.zeros(3, 3),
    torch.ones(3, 3),
    torch.tensor(0.5).repeat(5),
)


def _is_singular(operation: Callable[..., Any]) -> bool:
    return any(_is_spoilt(operation, grid, further) for grid in GRIDS for further in range(5))


def _is_spoilt(operation: Callable[..., Any], grid: torch.Tensor, further: int) -> bool:
    """Whether the gradient of an operation is not finite, in one of the ways to call it."""
    x = grid.clone().requires_grad_()
    other = grid.clone()
    arguments: list[tuple[Any, ...]] = [(x,), (x, other), (other, x), (x, 0.5), (x, 0)]
    try:
        found = operation(*arguments[further])
        parts = [found] if isinstance(found, torch.Tensor) else list(found)
        live = [part.real.sum() for part in parts if part.requires_grad]
        torch.stack(live).sum().backward()  # type: ignore[no-untyped-call]
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        return False
    return x.grad is not None and not bool(torch.isfinite(x.grad).all())


def _operation(name: str) -> Callable[..., Any] | None:
    for root in (torch, torch.nn.functional, torch.Tensor):
        found: Any = root
        for part in name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


def test_what_is_called_singular_has_a_gradient_that_is_not_finite() -> None:
    operations = {name: _operation(name) for name in effects.singular()}
    sound = [name for name, each in operations.items() if each is None or not _is_singular(each)]
    assert sound == []


POINTWISE = (
    "abs acos asin atan atan2 cbrt ceil cos cosh erf erfc exp exp2 expm1 hypot log log1p neg pow "
    "reciprocal"
)
POINTWISE += (
    " relu rsqrt sigmoid sin sinh softplus sqrt square tan tanh div mul add sub maximum where "
    "prod norm std"
)


@pytest.mark.parametrize("name", POINTWISE.split())
def test_what_is_not_called_singular_has_a_finite_gradient(name: str) -> None:
    operation = _operation(name)
    assert operation is None or _is_singular(operation) == (name in effects.singular())


def test_where_the_rules_know_a_singular_point_the_library_does() -> None:
    assert guards._POINTS.keys() <= effects.singular()
