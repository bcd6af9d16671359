"""Steps with a GradScaler: GL405 and GL406 tell of what torch refuses, GL403, GL404 of who meets
scaled gradients.
"""

from __future__ import annotations

import pathlib
import traceback
from typing import Any

from gradlint.analysis import analyze

SETUP = """\
import torch
from torch.nn.utils import clip_grad_norm_ as clip, clip_grad_value_ as clip_value

def {}():
    a, b = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
    o, p = torch.optim.SGD(a.parameters(), lr=0.1), torch.optim.SGD(b.parameters(), lr=0.1)
    x = torch.ones(2, 4)
    s, t = torch.amp.GradScaler("cpu"), torch.amp.GradScaler("cpu")
    off = torch.amp.GradScaler("cpu", enabled=False)
"""
WORDS = {
    "A.": "s.scale(a(x).mean()).backward()",
    "B.": "s.scale(b(x).mean()).backward()",
    "AB.": "s.scale((a(x) + b(x)).mean()).backward()",
    "all.": "[*a.parameters(), *b.parameters()]",
}
STEPS = """\
A.; s.step(o); s.update()
A.; s.unscale_(o); s.step(o); s.update()
A.; s.unscale_(o); clip(a.parameters(), 1.0); s.step(o); s.update()
A.; clip(a.parameters(), 1.0); s.step(o); s.update()
A.; clip_value(a.parameters(), 1.0); s.step(o); s.update()
A.; clip(a.parameters(), 1.0); s.unscale_(o); s.step(o); s.update()
A.; s.unscale_(p); clip(a.parameters(), 1.0); s.step(o); s.update()
A.; s.unscale_(o); clip(b.parameters(), 1.0); s.step(o); s.update()
A.; clip(b.parameters(), 1.0); s.step(o); s.update()
AB.; s.unscale_(o); clip(all., 1.0); s.step(o); s.step(p); s.update()
AB.; s.unscale_(o); s.unscale_(p); clip(all., 1.0); s.step(o); s.step(p); s.update()
AB.; s.unscale_(o); clip(a.parameters(), 1.0); s.step(o); s.step(p); s.update()
AB.; s.unscale_(o); clip(b.parameters(), 1.0); s.step(o); s.step(p); s.update()
AB.; s.step(o); clip(b.parameters(), 1.0); s.step(p); s.update()
AB.; s.step(o); s.unscale_(p); clip(b.parameters(), 1.0); s.step(p); s.update()
AB.; s.step(o); s.step(p); s.update()
AB.; s.step(o); s.update(); p.zero_grad()
A.; o.step()
A.; p.step(); s.step(o); s.update()
AB.; s.step(o); p.step(); s.update()
AB.; p.zero_grad(); p.step(); s.step(o); s.update()
AB.; a.zero_grad(); o.step(); s.step(p); s.update()
A.; o.zero_grad(); clip(a.parameters(), 1.0); A.; s.step(o); s.update()
A.; p.zero_grad(); clip(a.parameters(), 1.0); s.step(o); s.update()
A.; s.step(o); o.zero_grad(); a(x).mean().backward(); o.step(); s.update()
a(x).mean().backward(); clip(a.parameters(), 1.0); o.step()
off.scale(a(x).mean()).backward(); clip(a.parameters(), 1.0); off.step(o); off.update()
off.scale(a(x).mean()).backward(); o.step()
off.scale(a(x).mean()).backward(); off.step(o); off.step(o)
off.scale(a(x).mean()).backward(); off.unscale_(o); off.unscale_(o); off.step(o)
A.; s.unscale_(o); s.unscale_(o); s.step(o); s.update()
A.; s.unscale_(o); s.unscale_(p); s.step(o); s.update()
AB.; s.unscale_(o); s.unscale_(p); s.step(o); s.step(p); s.update()
A.; s.step(o); s.unscale_(o); s.update()
AB.; s.step(o); s.unscale_(p); s.step(p); s.update()
A.; s.unscale_(o); s.step(o); s.update(); A.; s.unscale_(o); s.step(o); s.update()
A.; s.unscale_(o); A.; s.unscale_(o); s.step(o); s.update()
A.; s.unscale_(o); s.update(); A.; s.unscale_(o); s.step(o); s.update()
A.; s.step(o); s.step(o); s.update()
A.; s.step(o); s.update(); o.zero_grad(); A.; s.step(o); s.update()
A.; s.step(o); o.zero_grad(); A.; s.step(o); s.update()
AB.; s.step(o); s.step(p); s.update(); o.zero_grad(); A.; s.step(o); s.update()
A.; t.scale(b(x).mean()).backward(); s.step(o); t.step(p); s.update(); t.update()
A.; t.scale(b(x).mean()).backward(); s.step(o); t.step(p); t.update(); o.zero_grad(); A.; s.step(o); s.update()
A.; t.scale(b(x).mean()).backward(); s.unscale_(o); t.unscale_(p); s.step(o); t.step(p); s.update(); t.update()
A.; t.scale(b(x).mean()).backward(); s.unscale_(o); clip(b.parameters(), 1.0); s.step(o); t.step(p); s.update()
for _ in range(2): o.zero_grad(); A.; s.step(o); s.update()
for _ in range(2): o.zero_grad(); A.; s.step(o)
for _ in range(2): o.zero_grad(); A.; s.unscale_(o); s.step(o)
for _ in range(2): o.zero_grad(); A.; s.unscale_(o); s.step(o); s.update()
for _ in range(2): A.; s.unscale_(o)
for _ in range(2): o.zero_grad(); A.; s.unscale_(o); clip(a.parameters(), 1.0); s.step(o); s.update()
for _ in range(2): o.zero_grad(); A.; clip(a.parameters(), 1.0); s.step(o); s.update()
for _ in range(2): o.zero_grad(); A.; s.step(o); s.update(); clip(a.parameters(), 1.0)
for _ in range(2): o.zero_grad(); A.; o.step()
for _ in range(2): o.zero_grad(); p.zero_grad(); AB.; s.step(o); s.step(p); s.update()
for _ in range(2): o.zero_grad(); p.zero_grad(); AB.; s.step(o); s.update(); s.step(p); s.update()
for _ in range(2): o.zero_grad(); A.; s.step(o); p.zero_grad(); B.; s.step(p); s.update()
for _ in range(2): o.zero_grad(); A.; s.step(o); p.zero_grad(); B.; p.step(); s.update()
for c in (o, p): c.zero_grad(); AB.; s.step(c); s.update()
for c in (o, p): AB.; s.unscale_(c); s.step(c); s.update()
"""


class Watch:
    """What the steps of one program meet."""

    def __init__(self) -> None:
        self.codes: set[str] = set()

    def scaled(self, parameters: Any, code: str) -> None:
        norms = [each.grad.norm() for each in parameters if each.grad is not None]
        if any(norm > 1_000 for norm in norms):
            self.codes.add(code)

    def clip(self, parameters: Any, most: float) -> None:
        """Sees whether scaled gradients are clipped, and leaves them."""
        self.scaled(parameters, "GL403")

    def step(self, optimizer: Any, *_: Any) -> None:
        by_scaler = any("grad_scaler" in frame.filename for frame in traceback.extract_stack())
        if not by_scaler:
            self.scaled(optimizer.param_groups[0]["params"], "GL404")


def written(steps: str) -> str:
    """The steps in words that torch has."""
    for word in sorted(WORDS, key=len, reverse=True):
        steps = steps.replace(word, WORDS[word])
    return steps


def codes_of_torch(steps: str) -> set[str]:
    """The codes that say what happens in these steps."""
    watch, names = Watch(), dict[str, Any]()
    hooks = "    for each in (o, p): each.register_step_pre_hook(watch.step)\n"
    exec(f"{SETUP.format('run')}{hooks}    {written(steps)}\n", names)
    names |= {"watch": watch, "clip": watch.clip, "clip_value": watch.clip}
    try:
        names["run"]()
    except (RuntimeError, AssertionError) as error:
        # after the step: of the round before, or of this one
        late = "GL405" if steps.startswith("for") else "GL406"
        raised = {"step() has already": "GL405", "unscale_() has": "GL406", "unscale_() is": late}
        watch.codes |= {code for start, code in raised.items() if str(error).startswith(start)} or {
            str(error)
        }
    return watch.codes


def codes_of_gradlint(folder: pathlib.Path, cases: list[str]) -> list[set[str]]:
    """The codes of the findings in each of the programs."""
    path = folder / "train.py"
    text = "".join(
        f"{SETUP.format(f'run_{number}')}    {written(case)}\n\n"
        for number, case in enumerate(cases)
    )
    path.write_text(text, encoding="utf-8")
    codes = ("GL403", "GL404", "GL405", "GL406")
    found = analyze([path], select=lambda code: code in codes).findings
    lines = SETUP.count("\n") + 2
    return [
        {each.code for each in found if (each.at.line - 1) // lines == number}
        for number in range(len(cases))
    ]


def test_scaled_steps_are_told_exactly_where_torch_shows_a_fault(tmp_path: pathlib.Path) -> None:
    cases = STEPS.splitlines()
    told = codes_of_gradlint(tmp_path, cases)
    assert dict(zip(cases, told, strict=True)) == {case: codes_of_torch(case) for case in cases}
