"""OpenMMLab: a block of a convolution ends in a ReLU, unless it is told otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradlint.analysis import analyze

PROGRAM = """\
import torch
from mmcv.cnn import ConvModule
from mmcv.runner import BaseModule


class Fuse(BaseModule):
    def __init__(self, settings):
        super().__init__()
        self.block = ConvModule(4, 4, 3, {given})

    def forward(self, x, y):
        out = self.block(x)
        if self.block.with_activation:
            out {deed} y
        return out
"""


@pytest.mark.parametrize(
    ("given", "deed", "codes"),
    [
        ("padding=1", "+=", ["GL201"]),
        ("norm_cfg=dict(type='BN')", "+=", ["GL201"]),
        ("norm_cfg=dict(type='GN', num_groups=2), act_cfg=dict(type='Sigmoid')", "+=", ["GL201"]),
        ("padding=1", "= out +", []),
        ("act_cfg=None", "+=", []),
        ("act_cfg=dict(type='GELU')", "+=", []),
        ("act_cfg=settings.act", "+=", []),
        ("order=('act', 'conv', 'norm')", "+=", []),
    ],
)
def test_a_block_ends_in_its_activation(
    given: str, deed: str, codes: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "fuse.py"
    path.write_text(PROGRAM.format(given=given, deed=deed))
    assert [finding.code for finding in analyze([path], select="GL201".__eq__).findings] == codes
