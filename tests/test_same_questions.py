"""What nobody knows is taken to be one thing or another: the same question goes the same way,
another one need not.

An optimizer is cleared where the first question of a function is answered with yes, and stepped
where the second is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from test_library_torch import tapes

from gradlint import tape

HEAD = """
import math, operator, os, random, time
import torch
"""
FUNCTION = """
def f{number}(cfg, key, optimizer: torch.optim.Optimizer):
    x = torch.as_tensor(key)
    if {first}:
        optimizer.zero_grad()
    {between}
    if {second}:
        optimizer.step()
"""
TOGETHER = {(), ("ZeroGrad", "OptimizerStep")}
APART = TOGETHER | {("ZeroGrad",), ("OptimizerStep",)}

SAME = """\
cfg.a
not cfg.a
cfg["a"]
cfg.get("a")
cfg.get("a", False)
cfg.get(key)
cfg.a.b
cfg.f()
cfg.f(1)
cfg(1)
cfg > 1
cfg == "a"
cfg.a is None
cfg is not None
"a" in cfg
cfg in ("a", "b")
isinstance(cfg, dict)
hasattr(cfg, "a")
getattr(cfg, "a")
getattr(cfg, "a", False)
len(cfg)
len(cfg) > 2
cfg.size(0) > 1
cfg % 2
cfg % 2 == 0
cfg + 1 > 2
any([cfg.a, cfg.b])
os.environ.get("A")
os.environ["A"]
os.getenv("A")
os.path.exists("a")
cfg.name.startswith("a")
cfg.lower() == "a"
int(cfg) > 1
float(cfg) > 1
bool(cfg)
max(cfg, 1) > 2
abs(cfg) > 2
round(cfg) > 2
min(cfg, key) > 2
str(cfg) == "a"
f"{cfg}" == "a"
f"{cfg:.2f}" == "a"
math.sqrt(cfg) > 2
math.isnan(cfg)
cfg[0]
cfg[key]
cfg[-1] > 0
cfg[1:]
cfg[0][1]
cfg and key
cfg or key
cfg if key else cfg.a
cfg is key
cfg == key
cfg < key
callable(cfg)
torch.cuda.is_available()
torch.cuda.device_count() > 1
operator.itemgetter("a")(cfg)
operator.attrgetter("a")(cfg)
operator.lt(cfg, 2)
x.sum() > 0
x.any()
x.shape[0] > 2
x.size(0) > 2
x.dim() == 2
x.is_cuda
x.requires_grad
x.numel() > 1
len(x) > 2
x.item() > 1
isinstance(x, torch.FloatTensor)
isinstance(x, torch.cuda.FloatTensor)
"""
OTHERS = """\
cfg.a | cfg.b
cfg["a"] | cfg["b"]
cfg.get("a") | cfg.get("b")
cfg.f(1) | cfg.f(2)
cfg.f(1) | cfg.g(1)
cfg.f(k=1) | cfg.f(j=1)
cfg[0] | cfg[1]
cfg.a | key.a
cfg(1) | cfg(2)
cfg == "a" | key == "a"
isinstance(cfg, dict) | isinstance(key, dict)
isinstance(cfg, dict) | isinstance(cfg, list)
isinstance(cfg, torch.optim.Adam) | isinstance(cfg, torch.optim.AdamW)
"a" in cfg | "b" in cfg
hasattr(cfg, "a") | hasattr(cfg, "b")
getattr(cfg, "a") | getattr(cfg, "b")
os.environ.get("A") | os.environ.get("B")
os.path.exists("a") | os.path.exists("b")
cfg.startswith("a") | cfg.endswith("a")
f"{cfg}" == "a" | f"{key}" == "a"
f"{cfg:.1f}" == "a" | f"{cfg:.2f}" == "a"
random.random() < 0.5 | random.random() < 0.5
random.choice([0, 1]) | random.choice([0, 1])
random.randint(0, 1) | random.randint(0, 1)
input() | input()
time.time() > 5 | time.time() > 5
x.sum() > 0 | x.mean() > 0
x[0] > 0 | x[1] > 0
x.isnan().any() | x.isinf().any()
torch.rand(1) > 0.5 | torch.rand(1) > 0.5
len(cfg) | len(key)
cfg.a is None | cfg.b is None
cfg % 2 == 0 | cfg % 3 == 0
cfg.get(key.a) | cfg.get(key.b)
cfg[key.a] | cfg[key.b]
cfg.get(key) | key.get(cfg)
cfg[key] | cfg[0]
cfg.f(key.a) | cfg.f(key.b)
getattr(cfg, key.a) | getattr(cfg, key.b)
max(cfg, 1) > 2 | min(cfg, 1) > 2
cfg + 1 > 2 | cfg - 1 > 2
cfg + 1 > 2 | cfg + 2 > 2
cfg * 2 > 2 | cfg // 2 > 2
str(cfg) == "a" | repr(cfg) == "a"
math.sqrt(cfg) > 2 | math.log(cfg) > 2
cfg.a.b | cfg.b.a
cfg.size(0) > 1 | cfg.size(1) > 1
cfg[1:] | cfg[:1]
abs(cfg) > 2 | cfg > 2
next(cfg) | next(cfg)
cfg.pop() | cfg.pop()
cfg.popleft() | cfg.popleft()
cfg.pop("a") | cfg.pop("b")
cfg.pop(0) | cfg.pop(0)
"""

ONE = """\
cfg.get("a") | cfg["a"]
cfg["a"] | cfg.pop("a")
cfg.a is not None | not cfg.a is None
cfg > 2 | not cfg <= 2
cfg > 2 | 2 < cfg
cfg <= 2 | 2 >= cfg
cfg == "a" | "a" == cfg
cfg.a | getattr(cfg, "a")
cfg.a | bool(cfg.a)
not not cfg.a | cfg.a
isinstance(cfg, dict) | isinstance(cfg, (dict,))
cfg != 3 | not cfg == 3
cfg.a if True else cfg.b | cfg.a
(lambda: cfg.a)() | cfg.a
[cfg.a][0] | cfg.a
any([cfg.a]) | cfg.a
cfg.a and True | cfg.a
cfg.a or False | cfg.a
operator.attrgetter("a")(cfg) | cfg.a
operator.itemgetter("a")(cfg) | cfg["a"]
operator.gt(cfg, 2) | cfg > 2
"""
IMPLIED = """\
cfg > 2 | cfg > 1
cfg > 2 | cfg >= 2
cfg == 3 | cfg > 2
cfg == 3 | cfg < 9
cfg == 3 | cfg != 4
cfg == "a" | cfg in ("a", "b")
cfg == "a" | cfg != "b"
cfg == "a" | cfg
cfg is None | not cfg
cfg | cfg is not None
cfg < 1 | cfg <= 2
cfg <= 1 | cfg < 2
cfg >= 5 | cfg > 4
cfg == 0 | not cfg
cfg > 2 | cfg != 1
cfg > 0 | cfg
cfg.a and cfg.b | cfg.b
cfg.a | cfg.a or cfg.b
not (cfg.a or cfg.b) | not cfg.b
cfg is not None and cfg > 2 | cfg is not None
len(cfg) > 2 | len(cfg) > 0
len(cfg) == 0 | not len(cfg)
cfg is True | cfg
cfg == True | cfg
"""
EXCLUDED = """\
cfg == "a" | cfg == "b"
cfg == 1 | cfg == 2
cfg > 2 | cfg < 1
cfg > 2 | cfg == 1
cfg is None | cfg
cfg == 1 | cfg > 1
cfg.a and cfg.b | not cfg.a
cfg == "a" | cfg is None
cfg is False | cfg
len(cfg) == 0 | len(cfg) > 0
cfg % 2 == 0 | cfg % 2 == 1
isinstance(cfg, torch.optim.Adam) | isinstance(cfg, torch.optim.LBFGS)
isinstance(optimizer, torch.optim.Adam) | isinstance(optimizer, torch.optim.LBFGS)
isinstance(cfg, torch.nn.Linear) | isinstance(cfg, torch.nn.Conv2d)
"""
TURNED = """\
cfg > 2 | cfg <= 2
cfg is None | cfg is not None
cfg in ("a", "b") | cfg not in ("a", "b")
"a" in cfg | "a" not in cfg
cfg.a | not cfg.a
"""


def ways(
    folder: Path, questions: Sequence[tuple[str, str]], between: str = "pass"
) -> list[set[tuple[str, ...]]]:
    """For each pair of questions, what happens on the paths of a function that asks them."""
    functions = (
        FUNCTION.format(number=n, first=a, second=b, between=between)
        for n, (a, b) in enumerate(questions)
    )
    found: dict[str, set[tuple[str, ...]]] = {}
    for path in tapes(folder, HEAD + "".join(functions)):
        events = (
            event for event in path.events if isinstance(event, tape.ZeroGrad | tape.OptimizerStep)
        )
        found.setdefault(path.entry.rpartition("f")[2], set()).add(
            tuple(type(event).__name__ for event in events)
        )
    return [found[str(number)] for number in range(len(questions))]


def test_the_same_question_goes_the_same_way(tmp_path: Path) -> None:
    questions = [(each, each) for each in SAME.splitlines()]
    assert [
        a
        for (a, _), seen in zip(questions, ways(tmp_path, questions), strict=True)
        if seen != TOGETHER
    ] == []


def test_another_question_goes_either_way(tmp_path: Path) -> None:
    questions = [(a, b) for a, _, b in (each.partition(" | ") for each in OTHERS.splitlines())]
    assert [
        pair
        for pair, seen in zip(questions, ways(tmp_path, questions), strict=True)
        if seen != APART
    ] == []


def test_what_was_assigned_in_between_is_asked_anew(tmp_path: Path) -> None:
    questions = [
        (each, each)
        for each in ("cfg.a", "cfg[0]", "cfg[0].b", "not cfg", "cfg.a > 2", "cfg[0] is None")
    ]
    between = "cfg, cfg.a, cfg[0] = key.c, key.a, key.b"
    assert ways(tmp_path, questions, between) == [APART] * len(questions)


@pytest.mark.parametrize(
    ("questions", "left"),
    [
        (ONE, TOGETHER),
        (IMPLIED, APART - {("ZeroGrad",)}),
        (EXCLUDED, APART - {("ZeroGrad", "OptimizerStep")}),
        (TURNED, {("ZeroGrad",), ("OptimizerStep",)}),
    ],
    ids=["one", "implied", "excluded", "turned"],
)
def test_an_answer_says_something_of_the_next(
    questions: str, left: set[tuple[str, ...]], tmp_path: Path
) -> None:
    pairs = [(a, b) for a, _, b in (each.partition(" | ") for each in questions.splitlines())]
    assert [
        pair for pair, seen in zip(pairs, ways(tmp_path, pairs), strict=True) if seen != left
    ] == []
