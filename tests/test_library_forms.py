"""What the library makes of rarer forms of a call: several results, two arguments where one is
usual.
"""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze

HEAD = """\
import torch


class Base(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


class Cutting(Base):
    def forward(self, x):
        return super().forward(x).detach()


class Skipping(Cutting):
    def forward(self, x):
        return super(Cutting, self).forward(x)


class Calling(Cutting):
    def forward(self, x):
        return super(Calling, self).forward(x)


def train(model, optimizer, batches, scores):
    for x, score in zip(batches, scores):
        optimizer.zero_grad()
"""
TAIL = """
        loss.backward()
        optimizer.step()


network = {network}()
train(network, torch.optim.SGD(network.parameters(), lr=0.1), torch.randn(6, 3, 4), torch.randn(6, 4))
"""


def found(body: str, folder: pathlib.Path, network: str = "Base") -> list[str]:
    path = folder / "train.py"
    text = (
        HEAD
        + "".join(f"        {line}\n" for line in body.splitlines())
        + TAIL.format(network=network)
    )
    path.write_text(text, encoding="utf-8")
    analysis = analyze([path], select=lambda code: True)
    assert analysis.gaps == ()
    return [finding.code for finding in analysis.findings]


@pytest.mark.parametrize(
    ("result", "codes"),
    [("factors", []), ("pivots.float()", ["GL104"]), ("info.float()", ["GL104"])],
)
def test_of_three_results_each_has_its_own_gradient(
    result: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    body = (
        "factors, pivots, info = torch.linalg.lu_factor_ex(model(x).T @ model(x))\n"
        f"loss = {result}.sum()"
    )
    assert found(body, tmp_path) == codes


@pytest.mark.parametrize(
    ("network", "codes"),
    [("Base", []), ("Cutting", ["GL102"]), ("Skipping", []), ("Calling", ["GL102"])],
)
def test_super_of_a_class_begins_behind_it(
    network: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    assert found("loss = model(x).square().mean()", tmp_path, network) == codes


@pytest.mark.parametrize(
    ("question", "codes"),
    [
        ("score.sum() > 0", []),
        ("torch.any(score)", []),
        ("torch.all(score)", ["GL101"]),
        ("torch.amax(score) > 0", ["GL101"]),
    ],
)
def test_what_is_reduced_in_another_way_is_another_question_but_for_any_and_sum_of_masks(
    question: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    body = (
        "loss = model(x).square().mean()\n"
        f"if {question}:\n    loss = torch.zeros(())\n"
        "if score.sum() > 0:\n    loss = loss + model(x).mean()"
    )
    assert found(body, tmp_path) == codes
