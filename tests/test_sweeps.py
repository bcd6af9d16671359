"""Many branches are turned on one path, so that each side is taken though no path is left for
it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint import analyzer
from gradlint.analysis import analyze
from gradlint.interpret import paths, sweeps

# No line of a branch speaks of a gradient: what `plain` does is seen where it is called.
PROGRAM = """\
import torch


def plain(x):
    return torch.tensor(x.tolist())


def train(settings, batches):
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        output = model(batch)
{branches}
        optimizer.zero_grad()
        output.mean().backward()
        optimizer.step()
"""
BRANCH = """\
        if settings.option_{n}:
            {action}"""
LAST = 11
ACTIONS = {
    "": set(),
    "output = plain(output)": {"GL102"},
    "raise ValueError(batch)": set(),
    "return": set(),
}


@pytest.fixture
def one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves no steps for a path that turns one branch."""
    monkeypatch.setattr(paths, "ENOUGH", (0, 0, 0, 0, 0))


def written(folder: Path, actions: dict[int, str]) -> Path:
    branches = [BRANCH.format(n=n, action=actions.get(n, "print(batch)")) for n in range(LAST + 1)]
    path = folder / "train.py"
    path.write_text(PROGRAM.format(branches="\n".join(branches)))
    return path


def found(path: Path) -> set[str]:
    findings = analyze([path], select=lambda _: True, without_parts=[path]).findings
    return {finding.code for finding in findings}


def both_sides(path: Path) -> int:
    """How many of the branches are taken both ways."""
    taken: dict[str, set[bool]] = {}
    for made in analyzer.tapes_of(path):
        for decision in made.decisions:
            taken.setdefault(decision.text, set()).add(decision.holds)
    return sum(len(sides) == 2 for sides in taken.values())


@pytest.mark.parametrize(("action", "codes"), ACTIONS.items())
@pytest.mark.usefixtures("one_path")
def test_every_side_is_taken_at_the_price_of_few_paths(
    action: str, codes: set[str], tmp_path: Path
) -> None:
    path = written(tmp_path, {LAST // 2: action} if action else {})
    assert found(path) == codes
    least = LAST if action.startswith("raise") else LAST + 1
    assert both_sides(path) >= least
    assert sum(1 for _ in analyzer.tapes_of(path)) < LAST


@pytest.mark.usefixtures("one_path")
def test_without_them_a_side_stays_untaken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "IN_VAIN", 0)
    path = written(tmp_path, {LAST // 2: "output = plain(output)"})
    assert both_sides(path) < LAST
