"""What gradlint knows of Lightning's automatic optimization. Each claim was seen to hold in
Lightning 2.6.
"""

from __future__ import annotations

import pathlib

import pytest

from gradlint.analysis import analyze
from gradlint.finding import Severity

MODULE = """\
import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 1), nn.Linear(4, 1)
        {init}

    def training_step(self, batch, batch_idx):
        loss = self.body(batch[0]).square().mean()
        head_loss = self.head(batch[0]).abs().mean()
        return loss + {weight} * head_loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    {hook}


loader = DataLoader(TensorDataset(torch.randn(24, 4)), batch_size=8)
lightning.Trainer(max_epochs=1, {settings}).fit(Net(), loader)
"""
CHECKED = """\
import lightning
import torch
from torch import nn


class Net(lightning.LightningModule):
    def __init__(self, body, mode, alpha=None):
        super().__init__()
        if body.width != mode.width:
            raise ValueError(mode)
        self.body = body
        self.automatic_optimization = False
        if mode == "constant" and alpha is None:
            raise ValueError(alpha)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        loss = self.body(batch[0]).square().mean()
        self.manual_backward(loss)
        optimizer.step()
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""
WIPES = "def on_train_batch_start(self, batch, batch_idx):\n        self.optimizers().zero_grad()"
CLIPS = "def {name}(self{more}):\n        nn.utils.clip_grad_norm_(self.parameters(), 1.0)"
EARLY = CLIPS.format(name="on_after_backward", more="")
LATE = CLIPS.format(name="on_before_optimizer_step", more=", optimizer")
ACCUMULATED, SCALED = "accumulate_grad_batches=2", 'precision="16-mixed"'


@pytest.mark.parametrize(
    ("settings", "hook", "init", "told"),
    [
        (ACCUMULATED, "", "", []),
        (f"{ACCUMULATED}, {SCALED}", "", "", []),
        ("", WIPES, "", []),
        (ACCUMULATED, WIPES, "", ["GL505"]),
        (ACCUMULATED, EARLY, "", ["GL509"]),
        (SCALED, EARLY, "", ["GL403"]),
        (SCALED, LATE, "", []),
        (SCALED, "", "self.half()", ["GL408"]),
        ("", "", "self.half()", []),
    ],
)
def test_lightning_accumulates_and_scales_by_itself(
    settings: str, hook: str, init: str, told: list[str], tmp_path: pathlib.Path
) -> None:
    assert _told(tmp_path, settings=settings, hook=hook, init=init) == told


def test_a_loss_that_training_step_leaves_out_of_its_result_is_told(tmp_path: pathlib.Path) -> None:
    program = MODULE.replace(" + {weight} * head_loss", "")
    assert _told(tmp_path, program) == ["GL111"]


def test_a_module_is_not_trained_half_made_where_its_init_refuses_a_setting(
    tmp_path: pathlib.Path,
) -> None:
    assert _told(tmp_path, CHECKED) == []


def _told(folder: pathlib.Path, program: str = MODULE, **parts: str) -> list[str]:
    path = folder / "train.py"
    words = {"settings": "", "hook": "", "init": "", "weight": "0.5", **parts}
    path.write_text(program.format(**words), encoding="utf-8")
    found = analyze([path], select=lambda code: True).findings
    return [finding.code for finding in found if finding.severity is not Severity.NOTE]


MANUAL = """\
import lightning
import torch
from torch import nn


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def training_step(self, batch, batch_idx):
        loss = self.body(batch).square().mean()
        optimizer = self.optimizers()
        optimizer.zero_grad()
        {}
        optimizer.step()
        return loss * loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("backward", "codes"), [("loss.backward()", ["GL507"]), ("self.manual_backward(loss)", [])]
)
def test_who_calls_manual_backward_leaves_nothing_to_the_trainer(
    backward: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    """Automatic optimization refuses it, so it was switched off: before Lightning 1.2, the Trainer
    could be told so.
    """
    program = tmp_path / "net.py"
    program.write_text(MANUAL.format(backward))
    found = analyze([program], select=lambda code: code == "GL507")
    assert [finding.code for finding in found.findings] == codes


BASE = """\
import lightning
import torch


class Forecaster(lightning.LightningModule):
    def __init__(self, loss):
        super().__init__()
        self.loss, self.logs = loss, []

    def forward(self, x):
        raise NotImplementedError

    def training_step(self, batch, batch_idx):
        x, y = batch
        log = {{"loss": self.loss(self(x)["power"], y), "rows": len(x)}}
        self.logs.append({})
        return log

    def on_train_epoch_end(self):
        self.logs.clear()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("kept", "codes"),
    [("log", ["GL508"]), ('log["rows"]', []), ('log["loss"].detach()', []), ("len(x)", [])],
)
def test_what_a_base_class_keeps_of_a_step_is_kept_whoever_computes_it(
    kept: str, codes: list[str], tmp_path: pathlib.Path
) -> None:
    program = tmp_path / "net.py"
    program.write_text(BASE.format(kept))
    found = analyze([program], select=lambda code: code == "GL508")
    assert [finding.code for finding in found.findings] == codes
