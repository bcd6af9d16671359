"""What the backward of a custom function returns for two inputs: GL802 tells of it exactly where
torch raises.
"""

from __future__ import annotations

import pathlib
import textwrap
from typing import Any

from gradlint.analysis import analyze

FUNCTION = """
class Own{number}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
{body}
"""
RETURNS = [
    "return g, g",
    "return g, None",
    "return g, g, None",
    "return tuple([g, g])",
    "return (g, g) if g.sum() > -1e9 else (g, None)",
    "grads = [g]\ngrads.append(g)\nreturn tuple(grads)",
    "grads = (g, g)\nreturn grads",
    "first, *rest = g, g\nreturn first, rest[0]",
    "a, b = ctx.saved_tensors\nreturn g * b, g * a",
    "return (*(g, g),)",
    "if (half := g / 2) is not None:\n    return half, half\nreturn None, None",
    "try:\n    return g, g\nexcept ValueError:\n    return None, None",
    "with torch.no_grad():\n    return g, g",
    "for each in (g, g):\n    return each, each",
    "def inner():\n    return g\nreturn inner(), inner()",
    "if g.sum() < -1e9:\n    raise ValueError\n    return g\nreturn g, g",
    "while True:\n    break\n    return g\nreturn g, g",
    "return g",
    "return -g",
    "return g.clone()",
    "return torch.zeros_like(g)",
    "return 2 * g",
    "return g, g, g",
    "return g, None, g",
    "return [g for _ in range(2)]",
    "grads = [g, g]\nreturn grads",
    "return [g, g]",
    "grads = g * 2\nreturn grads",
    "return g if g.sum() > -1e9 else g * 2",
    "return None",
    "a, b = ctx.saved_tensors\nreturn g * a",
    "return (g,)",
    "try:\n    return g\nexcept ValueError:\n    return g, g",
    "return g.sum() * g",
    "return g.pow(2)",
    "return (-g).abs()",
    "a = g\nb = a\na = b\na = (a, b)\nreturn a",
    "a = -g\na = -a\nreturn a, a",
    "return -(-g)",
    "return torch.cat([g])",
    "return ctx.saved_tensors",
    "return g * 2 if g.sum() > -1e9 else None",
    "return (g if g.sum() > -1e9 else g * 2), None",
    "return g, g, g * 2",
    "return g, g, None, None",
    "a, b = ctx.saved_tensors\nreturn torch.mul(g, a)",
    "return torch.stack([g, g])",
    "return torch.stack([g, g]).unbind(0)",
]


def _program() -> str:
    bodies = (textwrap.indent(body, " " * 8) for body in RETURNS)
    return "import torch\n" + "".join(
        FUNCTION.format(number=n, body=body) for n, body in enumerate(bodies)
    )


def _raises(function: Any, torch: Any) -> bool:
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    try:
        function.apply(a, b).sum().backward()
    except (RuntimeError, TypeError):
        return True
    return False


def test_a_return_is_told_where_torch_refuses_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "functions.py"
    path.write_text(_program(), encoding="utf-8")
    lines = _program().splitlines()
    found = analyze([path], select=lambda code: code == "GL802").findings
    heads = [
        [line for line in lines[: finding.at.line] if line.startswith("class")][-1]
        for finding in found
    ]
    told = {RETURNS[int(head.removeprefix("class Own").partition("(")[0])] for head in heads}
    names: dict[str, Any] = {}
    exec(_program(), names)
    assert told == {
        body
        for number, body in enumerate(RETURNS)
        if _raises(names[f"Own{number}"], names["torch"])
    }


OF_ONE = """
class One{number}(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2

    @staticmethod
    def backward(ctx, g):
        {body}
"""


def test_a_gradient_of_one_input_may_be_none_where_nobody_needs_it(tmp_path: pathlib.Path) -> None:
    bodies = [
        "return g * 2 if ctx.needs_input_grad[0] else None",
        "if not ctx.needs_input_grad[0]: return None\n        return g * 2",
        "return None",
    ]
    path = tmp_path / "functions.py"
    made = "".join(OF_ONE.format(number=number, body=body) for number, body in enumerate(bodies))
    used = "".join(
        f"(One{number}.apply(net(x)) + net(x)).sum().backward()\n" for number in range(len(bodies))
    )
    path.write_text(
        f"import torch\n{made}\nnet, x = torch.nn.Linear(2, 2), torch.ones(2)\n{used}",
        encoding="utf-8",
    )
    found = analyze([path], select=lambda code: code == "GL802").findings
    assert [finding.message.partition(".")[0] for finding in found] == ["`One2"]
