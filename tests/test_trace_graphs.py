"""CUDA graphs, played by a stand-in: what is captured is seen once, and a replay comes past no
Python.

`test_cuda.py` has the same with a device.
"""

from __future__ import annotations

import pytest
import torch

import gradlint


class Graph:
    """Captures nothing, and counts its replays."""

    def __init__(self) -> None:
        self.replays = 0

    def capture_begin(self) -> None:
        """Begins a capture."""

    def capture_end(self) -> None:
        """Ends a capture."""

    def replay(self) -> None:
        """Would run what was captured."""
        self.replays += 1


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)


class Training:
    """Warms up, captures a part of a step, and replays it."""

    def __init__(self, *, steps_inside: bool = False, backward_inside: bool = True) -> None:
        self.steps_inside, self.backward_inside = steps_inside, backward_inside
        self.model = torch.nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.graph = Graph()

    def part(self) -> None:
        """What is captured."""
        loss = self.model(torch.randn(2, 4)).square().mean()
        if self.backward_inside:
            self.optimizer.zero_grad()
            loss.backward()
        if self.steps_inside:
            self.optimizer.step()

    def __call__(self) -> int:
        self.part()
        self.graph.capture_begin()
        self.part()
        self.graph.capture_end()
        for _ in range(8):
            self.graph.replay()
            if not self.backward_inside:
                loss = self.model(torch.randn(2, 4)).square().mean()
                loss.backward()  # nothing clears the gradients: GL501
            if not self.steps_inside:
                self.optimizer.step()
        return self.graph.replays


@pytest.mark.parametrize(("steps_inside", "steps"), [(True, 10), (False, 8)])
def test_what_a_replay_does_unseen_is_no_finding_and_its_steps_are_counted(
    steps_inside: bool, steps: int
) -> None:
    traced = gradlint.trace(Training(steps_inside=steps_inside))
    assert (traced.value, traced.error, traced.findings, traced.steps) == (8, "", [], steps)


def test_a_replay_ends_the_run_when_it_has_made_the_last_of_the_steps() -> None:
    training = Training(steps_inside=True)
    gradlint.trace(training, steps=5)
    assert training.graph.replays == 3  # 1 to warm up, 1 captured


def test_a_graph_without_a_backward_leaves_the_rest_of_the_run_to_be_seen() -> None:
    traced = gradlint.trace(Training(backward_inside=False))
    assert [finding.code for finding in traced.findings] == ["GL501"]
    assert traced.steps == 8
