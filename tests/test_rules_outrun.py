"""A step that outruns a backward through models that are handed in; torch says what comes of it."""

from __future__ import annotations

import pathlib

import pytest
import torch
from torch import nn

import gradlint

ACTOR = """\
def learn(actor, actor_optimizer, critic, critic_optimizer, states, actions, wanted):
    {before}
    critic_loss = (critic(states + actions) - wanted).pow(2).mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    {after}
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
"""
GAN = """\
def learn(actor, actor_optimizer, critic, critic_optimizer, states, actions, wanted):
    made = actor(states)
    critic_loss = critic(made.detach()).mean() - critic(actions).mean()
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    actor_loss = -critic(made).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()
"""
LOSS = "actor_loss = -critic(states + actor(states)).mean()"
PROGRAMS = {
    "built before": (ACTOR.format(before=LOSS, after="pass"), True),
    "built behind": (ACTOR.format(before="pass", after=LOSS), False),
    "of what was made before": (GAN, False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_between_a_loss_and_its_backward_is_told(name: str, tmp_path: pathlib.Path) -> None:
    text, is_wrong = PROGRAMS[name]
    path = tmp_path / "sac.py"
    path.write_text(text)
    found = [(each.code, each.severity.label) for each in gradlint.check([path])]
    assert found == ([("GL203", "warning")] if is_wrong else [])


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_agrees(name: str) -> None:
    text, is_wrong = PROGRAMS[name]
    scope: dict[str, object] = {}
    exec(text, scope)
    learn = scope["learn"]
    assert callable(learn)
    actor, critic = (
        nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, last)) for last in (3, 1)
    )
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (actor, critic)]
    given = (
        actor,
        optimizers[0],
        critic,
        optimizers[1],
        torch.randn(5, 3),
        torch.randn(5, 3),
        torch.randn(5, 1),
    )
    if is_wrong:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            learn(*given)
    else:
        learn(*given)
