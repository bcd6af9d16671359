"""Sides of branches that a rule's question hangs on are run, however few paths the search before
has run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.analysis import analyze
from gradlint.finding import Severity
from gradlint.interpret import calm, running, search, settling, sweeps

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = self.body(x)
        cut = h.detach()
        {side}
        return self.head(cut)


def train(settings):
    net = Net(settings)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 2, 4):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
QUIET = "if self.settings.quiet: pass\n        else: name = 'loud'"
REFUSED = "if self.settings.new: pass\n        else: name = 'old'; raise ValueError(name)"
CAUGHT = """try:
            if self.settings.new: pass
            else: raise ValueError("old")
        except ValueError:
            cut = h"""
LOUD = """if self.settings.quiet: pass
        else:
            name = 'loud'
            if self.settings.short: pass
            else: name += 'long'"""


@pytest.fixture(autouse=True)
def _one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BUDGET", 1)


def take_no_more_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the sides untaken that rules ask for."""
    monkeypatch.setattr(settling, "MOST_STEPS", -1)
    monkeypatch.setattr(sweeps, "IN_VAIN", 0)


def codes(side: str, folder: Path) -> set[str]:
    path = folder / "train.py"
    path.write_text(PROGRAM.format(side=side))
    found = analyze(
        [path], select=lambda code: code.startswith("GL1"), without_parts=[path]
    ).findings
    return {finding.code for finding in found if finding.severity > Severity.NOTE}


@pytest.mark.parametrize(
    ("side", "code"),
    [
        ("pass", "GL106"),
        (QUIET, "GL106"),
        (LOUD, "GL106"),
        (QUIET + "\n        if self.settings.short: pass\n        else: name += 'long'", "GL106"),
        ("if self.settings.frozen: pass\n        else: cut = h", ""),
        ("cut = cut if self.settings.frozen else h", ""),
        (
            "if self.settings.quiet: pass\n        elif self.settings.frozen: pass\n"
            "        else: cut = h",
            "",
        ),
        (REFUSED, "GL106"),  # what is bound before an exception is not seen behind it
        (CAUGHT, ""),
    ],
)
def test_a_claim_about_all_paths_waits_for_the_sides_that_could_refute_it(
    side: str, code: str, tmp_path: Path
) -> None:
    assert codes(side, tmp_path) == ({code} if code else set())


def test_the_steps_for_it_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    take_no_more_sides(monkeypatch)
    assert codes(QUIET, tmp_path) == set()


KEPT = """\
import torch
from torch import nn


def train(settings):
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    {before}
    for x in torch.randn(3, 2, 4):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    {behind}
"""
ASKS = "if settings.plain: pass\n    else: settings.use(net)"


@pytest.mark.parametrize(
    ("before", "behind", "code"), [(ASKS, "pass", "GL508"), ("pass", ASKS, "")]
)
def test_a_side_that_a_path_has_behind_it_is_no_matter(
    before: str, behind: str, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    take_no_more_sides(monkeypatch)
    path = tmp_path / "train.py"
    path.write_text(KEPT.format(before=before, behind=behind))
    found = analyze([path], select="GL508".__eq__, without_parts=[path]).findings
    assert {finding.code for finding in found} == ({code} if code else set())


LONG = """\
import torch
from torch import nn


def table(numbers):
    rows = {}
    for i in numbers:
        for j in numbers:
            for k in numbers:
                rows[i, j, k] = [i * j + k, i + j * k, i * k + j]
    return rows


def train(settings, tables):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    if settings.plain:
        rows = None
    else:
        rows = [[table(range(40)) for name in range(40)] for size in range(40)]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 2, 4):
        loss = net[1](net[0](x).detach()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_a_side_that_takes_all_the_steps_costs_no_other_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(calm, "SHARE", 0.001)  # no call ends early
    monkeypatch.setattr(running, "MAX_STEPS", 1_500)  # the side takes 2,700
    path = tmp_path / "train.py"
    path.write_text(LONG + "        torch.log(torch.softmax(net[1](x), dim=1)).sum().backward()\n")
    analysis = analyze([path], select=lambda code: code in ("GL106", "GL702"), without_parts=[path])
    assert {finding.code for finding in analysis.findings} == {"GL702"}
    assert not [gap for gap in analysis.gaps if gap.kind == "internal"]


TWICE = """\
import torch
from torch import nn


def table(numbers):
    rows = {}
    for i in numbers:
        for j in numbers:
            for k in numbers:
                rows[i, j, k] = [i * j + k, i + j * k, i * k + j]
    return rows


def tune(net, optimizer, batches):
    for x in batches:
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()


def train(settings):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if settings.plain:
        rows = None
    else:
        tune(net, optimizer, torch.randn(3, 2, 4))
        rows = [[table(range(40)) for name in range(40)] for size in range(40)]
    for x in torch.randn(3, 2, 4):
        loss = net[1](net[0](x).detach()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_what_only_a_path_that_was_given_up_came_to_is_entered_by_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(calm, "SHARE", 0.001)  # no call ends early
    monkeypatch.setattr(running, "MAX_STEPS", 1_500)
    path = tmp_path / "train.py"
    path.write_text(TWICE)
    analysis = analyze([path], select=lambda code: code in ("GL106", "GL501"), without_parts=[path])
    assert [(finding.code, finding.at.line) for finding in analysis.findings] == [("GL501", 17)]


MASKED = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        with torch.no_grad():
            x = x + self.layer(x)
        return x


class Net(nn.Module):
    def __init__(self, deep=True, wide=True):
        super().__init__()
        self.deep = nn.Linear(4, 4) if deep else nn.Identity()
        self.wide = nn.Linear(4, 4) if wide else nn.Identity()
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(4, 2)

    def forward(self, x, mask=None):
        x = self.wide(self.deep(x))
        if mask is not None:
            for block in self.blocks:
                x = block(x, mask)
        else:
            {other}
        return self.head(x)
"""


@pytest.mark.parametrize(
    ("other", "found"), [("x = self.blocks(x)", {"GL106"}), ("x = x * 2", set())]
)
def test_a_part_is_run_on_the_other_side_of_a_branch_that_a_rule_asks_for(
    other: str, found: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST_OF_A_PARTS_PATHS", 1)
    path = tmp_path / "net.py"
    path.write_text(MASKED.format(other=other))
    findings = analyze([path], select=lambda code: code == "GL106").findings
    assert {each.code for each in findings if each.severity > Severity.NOTE} == found


LISTED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, observer=None):
        super().__init__()
        self.observer = observer
        self.lift = nn.Linear(3, 4)
        self.blocks = [nn.Linear(4, 4) for _ in range(2)]

    def forward(self, x):
        x = self.lift(x)
        for block in self.blocks:
            x = block(x)
        if self.observer is not None:
            self.observer.note(x)
        return x
"""


def test_what_trains_a_part_is_assumed_whatever_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST_OF_A_PARTS_PATHS", 1)
    path = tmp_path / "net.py"
    path.write_text(LISTED)
    assert [
        each.at.line for each in analyze([path], select=lambda code: code == "GL514").findings
    ] == [10]


SCRIPT = """\
import torch


def report(loss):
    print(loss)


def train(model, loader, quiet):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if quiet:
            pass
        else:
            report(loss.item())
"""
FOREIGN = "def report(optimizer):\n    optimizer.zero_grad()\n"


@pytest.mark.parametrize(("importing", "found"), [("", {"GL501"}), ("import beside\n", set())])
def test_what_imports_do_not_connect_with_a_program_does_not_count(
    importing: str, found: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_no_more_sides(monkeypatch)
    script, beside = tmp_path / "train.py", tmp_path / "beside.py"
    script.write_text(importing + SCRIPT)
    beside.write_text(FOREIGN)
    findings = analyze([beside, script], select=lambda code: code == "GL501").findings
    assert {each.code for each in findings} == found


SCALED = """\
import torch
from torch import nn


def train(settings, scaler):
    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    {before}
    for x in torch.randn(3, 2, 4):
        loss = net(x).square().mean()
        scaler.scale(loss).backward()
        {between}
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    {behind}


def fit(settings, scaler):
    for epoch in range(3):
        train(settings, scaler)
"""


@pytest.mark.parametrize(
    ("sides", "code"),
    [
        ({"before": ASKS}, "GL403"),
        ({"behind": ASKS}, "GL403"),
        ({"between": ASKS.replace("\n", "\n    ")}, ""),
    ],
)
def test_a_side_is_no_matter_that_runs_before_the_gradients_or_behind_their_loop(
    sides: dict[str, str], code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    take_no_more_sides(monkeypatch)
    path = tmp_path / "train.py"
    nothing = {"before": "pass", "between": "pass", "behind": "pass"}
    path.write_text(SCALED.format(**nothing | sides))
    found = analyze([path], select=lambda each: each == "GL403").findings
    assert {finding.code for finding in found} == ({code} if code else set())


def test_a_path_that_was_given_up_behind_a_whole_round_has_shown_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    endless = "for _ in range(settings.n): net(x)\n    " * 40
    path.write_text(SCALED.format(before="pass", between="pass", behind=endless))
    monkeypatch.setattr(calm, "SHARE", 0.001)  # no call ends early
    monkeypatch.setattr(running, "MAX_STEPS", 600)
    found = analyze([path], select=lambda each: each == "GL403")
    assert [finding.code for finding in found.findings] == ["GL403"]
    assert any(gap.kind == "steps" for gap in found.gaps)


BOTH = """\
import torch
from torch import nn


def train(settings):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    if settings.plain:
        pass
    else:
        settings.use(net)
        return
    for x in torch.randn(3, 2, 4):
        loss = net[1](net[0](x).detach()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    if settings.quiet:
        pass
    else:
        settings.show(net)
"""


def test_what_is_asked_of_a_part_of_a_path_is_answered_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(settling, "MOST_STEPS", 0)  # one path more
    monkeypatch.setattr(sweeps, "IN_VAIN", 0)
    path = tmp_path / "train.py"
    path.write_text(BOTH)
    analysis = analyze([path], select=lambda code: code in ("GL106", "GL508"), without_parts=[path])
    assert "GL508" in {finding.code for finding in analysis.findings}
