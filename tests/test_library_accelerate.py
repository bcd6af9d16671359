"""Accelerate: gradients of float16 are unscaled once in a window, at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.analysis import analyze
from gradlint.finding import Severity

PROGRAM = """\
import argparse
import torch
from accelerate import Accelerator

parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=1)
parser.add_argument("--precision", default="no", choices=["no", "fp16"])
args = parser.parse_args()
accelerator = Accelerator({made})
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
for x in torch.randn(8, 2, 4):
    with accelerator.accumulate(model):
        accelerator.backward(model(x).pow(2).mean())
        {clip}
        optimizer.step()
        optimizer.zero_grad()
"""
CLIP = "accelerator.clip_grad_norm_(model.parameters(), 1.0)"
WRITTEN = "gradient_accumulation_steps=4, mixed_precision='fp16'"
SETTINGS = "gradient_accumulation_steps=args.rounds, mixed_precision=args.precision"


@pytest.mark.parametrize(
    ("made", "clip", "severity"),
    [
        (WRITTEN, CLIP, Severity.ERROR),
        (SETTINGS, CLIP, Severity.WARNING),
        ("gradient_accumulation_steps=args.rounds, mixed_precision='fp16'", CLIP, Severity.WARNING),
        (WRITTEN, f"if accelerator.sync_gradients: {CLIP}", None),
        (WRITTEN, "pass", None),
        ("gradient_accumulation_steps=1, mixed_precision='fp16'", CLIP, None),
        ("gradient_accumulation_steps=4, mixed_precision='bf16'", CLIP, None),
        ("gradient_accumulation_steps=4", CLIP, None),
        ("mixed_precision='fp16'", CLIP, None),
    ],
)
def test_a_clip_in_every_round_of_a_window_unscales_again(
    made: str, clip: str, severity: Severity | None, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.format(made=made, clip=clip))
    found = analyze([path], select="GL406".__eq__, without_parts=[path]).findings
    assert [(finding.at.line, finding.severity) for finding in found] == (
        [(16, severity)] if severity else []
    )
