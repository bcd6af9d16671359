"""gradlint finds nothing wrong in its own training loop, whichever way it looks."""

import pathlib
import subprocess
import sys

from commandline import Run

ROOT = pathlib.Path(__file__).parents[1]
SCRIPT = """
import torch
from torch import nn

from gradlint.training import Trainer

torch.manual_seed(0)
batches = [(torch.randn(size, 3), torch.randn(size, 1)) for size in (4, 4, 4, 2, 4)]


def loss(model, batch):
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def train(precision):
    model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    trainer = Trainer(
        model, optimizer, batches, loss, accumulate=2, weight=lambda batch: len(batch[0]), clip_norm=1.0,
        precision=precision, scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 1), show_progress=False,
    )
    while trainer.progress.epoch < 3:
        trainer.epoch()


for precision in ("float32", "bfloat16", "float16"):
    train(precision)
print("trained")
"""


def test_tracing_the_loop_gives_no_finding(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "gradlint", "trace", str(script)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout == "trained\n"
    assert "No finding." in ran.stderr
    assert ran.returncode == 0


def test_checking_the_loop_gives_no_finding(run: Run) -> None:
    assert run("check", str(ROOT / "gradlint" / "training")).code == 0
