"""What gradlint takes something unknown for by its name: by its words, and by none that only lies
inside one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gradlint import evidence, names
from gradlint.analysis import analyze
from gradlint.finding import Severity

SCALES = """\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    loss = model(x).square().mean()
    optimizer.zero_grad()
    NAME.scale(loss).backward()
    optimizer.step()
"""
TAKES_THE_LOSS = """\
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    loss = model(x).square().mean()
    optimizer.zero_grad()
    NAME(loss)
    optimizer.step()
"""
TAKES_ANOTHER_LOSS = """\
model, tail = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD([*model.parameters(), *tail.parameters()], lr=0.1)
for x in loader:
    loss = model(x).square().mean()
    side_loss = tail(x).abs().mean()
    optimizer.zero_grad()
    NAME(side_loss)
    loss.backward()
    optimizer.step()
"""
STEPS = """\
for x in loader:
    loss = model(x).square().mean()
    loss.backward()
    NAME.step()
"""
GIVES_A_SECOND = """\
model, tail = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD([*model.parameters(), *tail.parameters()], lr=0.1)
for x in loader:
    loss = model(x).square().mean()
    NAME = tail(x) * 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(NAME.shape)
"""
GIVES_A_SECOND_MEAN = GIVES_A_SECOND.replace("* 2", ".mean() * 2")

# What is written for NAME, and what is reported then.
SHAPES = {
    SCALES: {
        "GL404": ["scaler", "grad_scaler", "scaler_d", "lossScaler", "self.scaler",
            "state['scaler']"],
        "": ["scalers", "grade_scale", "model_scale", "upscaler", "escalation", "loss_scale",
            "scaler.cam"],
    },
    STEPS: {
        "GL501": ["opt", "optD", "opt1", "g_optim", "warmup_optimizer", "self.optimizers[0]",
            "optims.get(0)", "adam"],
        "": ["option", "options", "adopted", "madam", "optical", "scheduler", "opt_scheduler",
            "opt.environment"],
    },
    TAKES_THE_LOSS: {
        "GL511": ["log", "server.log_train_loss", "logger.push", "meter.update",
            "self.train_meter.update"],
        "": ["server.parameter_push", "server.update", "server.step", "catalog.push",
            "server.log_prob"],
    },
    TAKES_ANOTHER_LOSS: {
        "GL111": ["logger.update", "loss_meter.update", "tracker.log_loss", "history.append",
            "writer.add_scalar"],
        "": ["learner.update", "learner.step", "parameter.accept", "pending.append",
            "learner.print_shop"],
    },
    GIVES_A_SECOND: {"": ["glossiness", "reg", "loss_two", "penalty", "side_loss"]},
    GIVES_A_SECOND_MEAN: {
        "GL111": ["side_loss", "loss2", "lossG", "reg_loss", "penalty", "KLLoss"],
        "": ["glossiness", "reg", "loss_weight", "gloss"],
    },
}  # fmt: skip
CASES = [
    (body, name, code)
    for body, wanted in SHAPES.items()
    for code, called in wanted.items()
    for name in called
]


@pytest.mark.parametrize(("body", "name", "code"), CASES)
def test_what_is_reported_hangs_on_the_words_of_a_name(
    body: str, name: str, code: str, tmp_path: Path
) -> None:
    stranger = name.partition(".")[0].partition("[")[0].partition("(")[0]
    given = "_" if body in (GIVES_A_SECOND, GIVES_A_SECOND_MEAN) else stranger
    path = tmp_path / "train.py"
    text = f"import torch\n\n\ndef train(model, {given}, loader):\n" + textwrap.indent(body, "    ")
    path.write_text(text.replace("NAME", name), encoding="utf-8")
    found = analyze([path], select=lambda _: True).findings
    assert {each.code for each in found if each.severity > Severity.NOTE} == {code} - {""}


class Learner:
    """Something that trains by whatever it is given, and says nothing of it by the names of its
    methods.
    """

    def __init__(self) -> None:
        self.taken = 0

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        def take(loss: Any) -> Any:
            self.taken += 1
            if name != "scale":
                loss.backward()
            return loss

        return take


@pytest.mark.parametrize("body", [SCALES, TAKES_THE_LOSS, TAKES_ANOTHER_LOSS])
def test_such_programs_train_where_the_thing_is_a_learner(body: str) -> None:
    torch.manual_seed(0)
    model, learner, loader = torch.nn.Linear(4, 3), Learner(), torch.randn(3, 8, 4)
    known: dict[str, Any] = {"torch": torch, "model": model, "thing": learner, "loader": loader}
    exec(body.replace("NAME", "thing" if body is SCALES else "thing.update"), known)
    assert learner.taken == len(loader)
    trained = [known[name].weight.grad for name in ("model", "tail") if name in known]
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in trained)


UNSCALED = """\
import torch


def train(model, optimizer, thing, loader):
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        thing.scale(loss).backward()
        thing.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        thing.step(optimizer)
        thing.update()
"""


def test_a_scaler_of_any_name_is_known_by_what_it_unscales(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    twice = UNSCALED.replace(
        "        torch.nn", "        thing.unscale_(optimizer)\n        torch.nn"
    )
    for text, wanted in [(UNSCALED, set()), (twice, {"GL406"})]:
        path.write_text(text, encoding="utf-8")
        assert {each.code for each in analyze([path], select=lambda _: True).findings} == wanted


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("self.opt", ("self", "opt")),
        ("self.opts[i + 1]", ("self", "opts")),
        ("state['optimizer']", ("state_optimizer",)),
        ("make(model, lr=f(1)[0]).opt", ("make", "opt")),
        ("optims.get('x')", ("optims",)),
        ("make(model, lr=0.1, weight_dec…", ("make",)),
        ("(a or b)", ()),
    ],
)
def test_the_names_of_an_expression(text: str, found: tuple[str, ...]) -> None:
    assert names.parts(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("self.lr_scheduler", ("lr", "scheduler")),
        ("optD", ("opt", "d")),
        ("LambdaLR", ("lambda", "lr")),
        ("loss1", ("loss", "1")),
        ("KLLoss", ("kl", "loss")),
        ("", ()),
    ],
)
def test_the_words_of_a_name(text: str, found: tuple[str, ...]) -> None:
    assert names.words(text) == found


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("get_cosine_schedule_with_warmup", "scheduler"),
        ("ReduceLROnPlateau", "scheduler"),
        ("warmup_optimizer", "optimizer"),
        ("optimizer_scheduler", "scheduler"),
        ("filtered", ""),
        ("copters", ""),
        ("already", ""),
    ],
)
def test_the_last_word_that_says_something_is_what_a_thing_is(text: str, role: str) -> None:
    assert evidence.role(text) == role


def test_names_of_losses() -> None:
    told = [
        "loss",
        "cls_loss",
        "loss1",
        "losses",
        "lossG",
        "L1Loss",
        "celoss",
        "kl",
        "nll_1",
        "elbo",
        "reg_loss",
    ]
    silent = [
        "reg",
        "cls",
        "glossiness",
        "gloss",
        "blossom",
        "colossus",
        "skill",
        "loss_weight",
        "loss_fn",
        "klass",
    ]
    assert [name for name in told + silent if evidence.is_loss_variable(name)] == told
