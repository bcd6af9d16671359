"""What is not yet as it should be: each of these tests fails as soon as its program is understood."""

from __future__ import annotations

import ast
import json
import pathlib

import pytest
from commandline import Run
from mended import HEAD

HEADER = "".join(line[1:] + "\n" for line in HEAD.splitlines())
NEWER = {
    "type parameters (3.12)": "def first[T](xs: list[T]) -> T:\n    return xs[0]\ntype Batch = list[torch.Tensor]\n",
    "defaults of type parameters (3.13)": "class Box[T = int]:\n    pass\n",
    "quotes within an f-string (3.12)": 'lr = {"lr": 0.1}\nprint(f"lr {lr["lr"]}")\n',
    "a t-string (3.14)": 'name = "a"\nmessage = t"model {name}"\n',
    "exceptions without parentheses (3.14)": "try:\n    pass\nexcept ValueError, RuntimeError:\n    raise\n",
    "an unpacking comprehension, a lazy import (3.15)": "xs = [*ys for ys in [[1], [2]]]\nlazy import json\n",
}
DETACHED = HEADER + "loss = model(data[0][0]).detach().sum()\nloss.backward()\n"


def codes(run: Run, path: pathlib.Path) -> list[str]:
    return [each["code"] for each in json.loads(run("check", "--no-cache", "--output-format", "json", str(path)).out)]


@pytest.mark.parametrize("body", NEWER.values(), ids=NEWER)
def test_a_program_in_a_newer_python_is_checked(
    body: str, tmp_path: pathlib.Path, run: Run, request: pytest.FixtureRequest
) -> None:
    try:
        ast.parse(body)
    except SyntaxError:
        request.applymarker(pytest.mark.xfail(strict=True, reason="only what this Python parses is read"))
    path = tmp_path / "train.py"
    path.write_text(body + DETACHED)
    assert codes(run, path) == ["GL102"]


@pytest.mark.parametrize("body", ["xs = [x async for x in g()]\n", "try:\n    pass\nexcept* ValueError:\n    pass\n"])
def test_a_program_in_the_syntax_of_the_oldest_python_is_checked(body: str, tmp_path: pathlib.Path, run: Run) -> None:
    path = tmp_path / "train.py"
    path.write_text(DETACHED + (f"async def f():\n    {body}" if "async" in body else body))
    assert codes(run, path) == ["GL102"]
