"""Training loops whose step a counter lets through, made up from a seed: counted up, down or by a
list's length, asked before or after it is counted on, and set back by any spelling.
"""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass

HEADER = """\
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""
STEP = "optimizer.step()\noptimizer.zero_grad()\n"
REACHED = ("{c} == {n}", "{c} >= {n}", "{n} == {c}", "{c} > {n} - 1", "not {c} < {n}")
SHORT = ("{c} < {n}", "{c} != {n}", "{c} <= {n} - 1", "not {c} == {n}", "{n} > {c}")
EMPTY = ("{c} == 0", "not {c}", "{c} <= 0", "{c} < 1")
FULL = ("len({c}) == {n}", "len({c}) >= {n}", "{n} == len({c})", "len({c}) > {n} - 1")
EVERY = ("{c} % {n} == 0", "not {c} % {n}")
WRAPPED = ("{c} == 0", "not {c}")
ASKED_AFTER = "{on}if {reached}:\n{block}"
ASKED_BEFORE = "if {reached}:\n{block}else:\n{counts}"
WAITS_AFTER = "{on}if {short}:\n    continue\n{rest}"
WAITS_BEFORE = "if {short}:\n{counts}    continue\n{rest}"
COUNTS_BEHIND = "if {reached}:\n{block}{on}"
UP = {
    ASKED_AFTER: 0,
    ASKED_BEFORE: 1,
    WAITS_AFTER: 0,
    WAITS_BEFORE: 1,
    COUNTS_BEHIND: 0,
}  # rounds more than it counts
OVER = (
    ("data = torch.randn({length}, 3, 2)\n", "for x in data:\n"),
    ("data = [torch.randn(3, 2) for _ in range({length})]\n", "for x in data:\n"),
    (
        "data = []\nfor _ in range({length}):\n    data.append(torch.randn(3, 2))\n",
        "for x in data:\n",
    ),
    (
        "data = torch.utils.data.DataLoader(torch.randn({length} * 2, 2), batch_size=2)\n",
        "for x in data:\n",
    ),
    ("", "for _ in range({length}):\n    x = torch.randn(3, 2)\n"),
)
STATE = """\
class State:
    def __init__(self):
        self.micro = {start}

    def update(self):
{update}

state = State()
"""


@dataclass(frozen=True)
class _Counter:
    """What a counter begins with, what sets it back, what a round does, and how many rounds it
    takes to come round.
    """

    start: object
    back: str
    body: str
    period: int


def generate(seed: int) -> str:
    """The program of a seed."""
    choose = random.Random(seed)
    number = choose.choice([2, 3, 4, 5, 7, 8, 12, 16, 32])
    kind = choose.choice([_up, _up, _down, _listed, _wrapped])
    holders = (
        ["micro", "state.micro"] if kind is _listed else ["micro", "state.micro", 'state["micro"]']
    )
    held = choose.choice(holders)
    written = choose.choice([str(number), "accumulate"])
    counter = kind(choose, held, number, written)
    in_method = held == "state.micro" and choose.random() < 0.5
    update = STEP + counter.back
    block = "state.update()\n" if in_method else update
    rounds = counter.period * choose.choice([2, 3]) + choose.choice(
        [0, 0, 0, 1, -1, choose.randrange(counter.period)]
    )
    data, loop = choose.choice(OVER)
    setup = data.format(length=rounds) + (
        f"accumulate = {number}\n" if written == "accumulate" else ""
    )
    if held == "state.micro":
        method = update.replace("state.", "self.") if in_method else "pass\n"
        setup += STATE.format(start=counter.start, update=_indented(method, 2))
    else:
        setup += (
            f'state = {{"micro": {counter.start}}}\n'
            if "[" in held
            else f"micro = {counter.start}\n"
        )
    loss = f"loss = model(x).square().mean() / {counter.period}\nloss.backward()\n"
    body = counter.body.replace("    BLOCK\n", _indented(block)).replace("BLOCK\n", block)
    return HEADER + setup + loop.format(length=rounds) + _indented(loss + body)


def _up(choose: random.Random, held: str, number: int, written: str) -> _Counter:
    begin = choose.choice([0, 0, 0, -1, *([1] if number > 2 else [])])
    form = choose.choice(list(UP))
    is_even = begin == 0 and UP[form] == 0 and choose.random() < 0.3
    back = f"{held} -= {written}\n" if is_even else f"{held} = {begin}\n"
    start = choose.choice([begin, begin, 0])
    return _Counter(
        start, back, _filled(choose, form, held, written, REACHED, SHORT), number - begin + UP[form]
    )


def _down(choose: random.Random, held: str, number: int, written: str) -> _Counter:
    form = choose.choice([ASKED_AFTER, ASKED_BEFORE])
    body = _filled(choose, form, held, written, EMPTY, ()).replace(" += 1", " -= 1")
    return _Counter(written, f"{held} = {written}\n", body, number + UP[form])


def _listed(choose: random.Random, held: str, number: int, written: str) -> _Counter:
    form = choose.choice([ASKED_AFTER, ASKED_BEFORE])
    body = _filled(choose, form, held, written, FULL, ()).replace(
        f"{held} += 1", f"{held}.append(loss.item())"
    )
    back = choose.choice([f"{held}.clear()\n", f"{held} = []\n", f"del {held}[:]\n"])
    return _Counter("[]", back, body, number + UP[form])


def _wrapped(choose: random.Random, held: str, number: int, written: str) -> _Counter:
    if choose.random() < 0.5:
        return _Counter(0, "", _filled(choose, ASKED_AFTER, held, written, EVERY, ()), number)
    body = _filled(choose, ASKED_AFTER, held, written, WRAPPED, ())
    return _Counter(
        0, "", body.replace(f"{held} += 1", f"{held} = ({held} + 1) % {written}"), number
    )


def _filled(
    choose: random.Random,
    form: str,
    held: str,
    written: str,
    reached: tuple[str, ...],
    short: tuple[str, ...],
) -> str:
    """What a round does, `BLOCK` where the step is."""
    on = f"{held} += 1\n"
    asked, waits = (
        choose.choice(each).format(c=held, n=written) if each else "" for each in (reached, short)
    )
    return form.format(
        on=on, reached=asked, short=waits, block="    BLOCK\n", counts=_indented(on), rest="BLOCK\n"
    )


def _indented(text: str, levels: int = 1) -> str:
    return textwrap.indent(text, "    " * levels)
