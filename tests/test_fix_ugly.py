"""Programs that nobody would write so, with bugs of many rules: all are mended, and no safe fix
takes a comment.
"""

from __future__ import annotations

import collections
import io
import pathlib
import tokenize
from collections.abc import Callable

import pytest

from gradlint.config import settings_finder
from gradlint.finding import Severity
from gradlint.fix.apply import Repaired, Task, repair
from gradlint.settings import Selection

HEAD = '''\
import contextlib, functools; import torch  # all at once
import torch.nn.functional as F; from torch import nn
torch.manual_seed(0); LOW, HIGH = -1, 10 ** 6  # bounds
if LOW < 0 <= HIGH != 3: note = f"{f'{LOW:>{len(str(HIGH))}}'}"; data_of = """
  loss.backward()  # no comment, nor is optimizer.zero_grad()
"""
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)) # type: nn.Module
optimizer = torch.optim.SGD(model.parameters(), \\
    lr=0.1)  # plain
data = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(5)]
'''
STEP = "optimizer.zero_grad(); loss.backward(); optimizer.step()"
UGLY = {
    "GL101": f"""\
for i, (x, y) in enumerate(data):
    out = model(x); keep = torch.rand(5) > (2 if 1 < i <= 2 else 0.1)
    match bool(keep.any()):
        case True: loss = F.cross_entropy(out[keep], y[keep])  # some
        case _: loss = torch.tensor(0.)  # none
    {STEP}
""",
    "GL102": f"""\
def total(
    loss,  # of one batch
    *,
    scale=1,
): return (loss.detach()  # why
    * scale).mean()
for x, y in data: loss = total(F.cross_entropy(model(x), y, reduction="none")); {STEP}
""",
    "GL103": f"""\
right = 0
for x, y in data:
    with contextlib.nullcontext() as context, \\
         torch.no_grad():  # off
        out = model(x); loss = F.cross_entropy(out, y); right += (out.argmax(-1) == y).sum()  # how many
    {STEP}
""",
    "GL202": """\
weight = torch.zeros(4, 3, requires_grad=True); optimizer = torch.optim.SGD([weight], lr=0.1)
for x, y in data:
    loss = F.cross_entropy(x @ weight, y)
    optimizer.zero_grad(); loss.backward(); optimizer.step(); weight *= 0.99  # decay
""",
    "GL206": f"""\
for x, y in data:
    out = model(x)
    if 0 < len(x) < 9: out.clamp(  # bounds
        -3, 3)
    loss = F.cross_entropy(out, y); {STEP}
""",
    "GL301": f"""\
def validate(x):  # the best class
    'Says what is most probable.'; torch.set_grad_enabled(False)  # faster
    return model(x).argmax(-1)
for x, y in data: validate(x); loss = F.cross_entropy(model(x), y); {STEP}
""",
    "GL304": f"""\
model.append(nn.Dropout(0.5))
for epoch in range(2):
    # one epoch
    for x, y in data: loss = F.cross_entropy(model(x), y); {STEP}
    model.eval(); \\
        print(model(x).sum().item())  # seen
""",
    "GL501": """\
for x, y in data:
    # forwards
    loss = F.cross_entropy(model(x), y)  # and
    # backwards
    loss.backward()
    if LOW < 0 < HIGH: optimizer.step()  # type: ignore
""",
    "GL502": """\
for x, y in data:
    loss = F.cross_entropy(model(x), y); loss.backward(); optimizer.zero_grad(set_to_none=True); optimizer.step()  # x
""",
    "GL507": f"""\
cell = nn.GRUCell(4, 3); optimizer = torch.optim.SGD(cell.parameters(), lr=0.1); state = torch.zeros(5, 3)
for x, y in data: state = cell(x, state); loss = F.cross_entropy(state, y); {STEP}
""",
    "GL508": f"""\
history, total = [], 0  # type: list, int
for x, y in data:
    loss = F.cross_entropy(model(x), y); {STEP}; history.append(  # all of them
        (loss, f"{{len(x)}} {{'of' + f'{{LOW}}'}}")
    ); total += loss
""",
    "GL509": """\
for x, y in data:
    loss = F.cross_entropy(model(x), y); optimizer.zero_grad(); loss.backward()
    optimizer.step(); nn.utils.clip_grad_norm_(
        model.parameters(),  # all
        0.1)
""",
    "GL510": """\
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
for x, y in data:
    loss = F.cross_entropy(model(x), y); optimizer.zero_grad(); loss.backward(); scheduler.step(); optimizer.step()  # y
""",
    "GL514": f"""\
class Net(nn.Module):
    def __init__(self): super().__init__(); self.layers = [  # deep
        nn.Linear(4, 4),
        *(nn.Linear(4, 4) for _ in range(2))]; self.head = nn.Linear(4, 3)
    def forward(self, x):
        for layer in self.layers: x = layer(x).tanh()
        return self.head(x)
model = Net(); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data: loss = F.cross_entropy(model(x), y); {STEP}
""",
}


def as_it_is(text: str) -> bytes:
    return text.encode()


def tabs_and_crlf(text: str) -> bytes:
    return text.replace("    ", "\t").replace("\n", "\r\n").encode("utf-8-sig")


def comments_and_form_feeds(text: str) -> bytes:
    lines = [
        f"{line}  # é" if line.endswith((")", ":")) and "(" in line else line
        for line in text.splitlines()
    ]
    return (
        ("# -*- coding: latin-1 -*-\n" + "\n".join(lines) + "\n")
        .replace("\nfor ", "\n\f\n# rounds\nfor ")
        .encode("latin-1")
    )


DRESSES: tuple[Callable[[str], bytes], ...] = (as_it_is, tabs_and_crlf, comments_and_form_feeds)


@pytest.mark.parametrize("dress", DRESSES, ids=lambda dress: dress.__name__)
@pytest.mark.parametrize("code", UGLY)
def test_an_ugly_program_is_mended(
    code: str, dress: Callable[[str], bytes], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(dress(HEAD + UGLY[code]))
    safely = _mended(path, unsafe=False)
    assert _comments(path.read_bytes()) <= _comments(safely.contents.get(path, path.read_bytes()))
    mended = _mended(path, unsafe=True)
    assert code in mended.codes
    assert [
        finding for finding in mended.checked.findings if finding.severity > Severity.NOTE
    ] == []
    path.write_bytes(mended.contents[path])
    assert _mended(path, unsafe=True).contents == {}


def _mended(path: pathlib.Path, *, unsafe: bool) -> Repaired:
    settings_for = settings_finder(lambda settings: settings.overridden(Selection(), (), {}))
    return repair(Task([path], settings_for, settings_for(path.parent), unsafe=unsafe))


def _comments(content: bytes) -> collections.Counter[str]:
    tokens = tokenize.tokenize(io.BytesIO(content).readline)
    return collections.Counter(
        token.string.strip() for token in tokens if token.type == tokenize.COMMENT
    )
