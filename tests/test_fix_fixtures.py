"""Programs of the collection whose bugs a fix mends, each in a shape of its own: all findings
go.
"""

from __future__ import annotations

import pathlib
import shutil

import pytest

from gradlint.config import settings_finder
from gradlint.finding import Severity
from gradlint.fix.apply import Task, repair
from gradlint.settings import Selection
from gradlint.source.files import discover

OWN = pathlib.Path(__file__).parents[1] / "fixtures" / "own"
NAMES = (
    "GL101-bounds-of-what-is-drawn",
    "GL101-match-on-the-mode",
    "GL101-parent-of-the-exception",
    "GL101-schedule-of-weights",
    "GL102-accelerator-backward",
    "GL102-base-for-a-type",
    "GL102-detach-as-a-function",
    "GL103-both-distillation-terms",
    "GL103-decorator-of-the-project",
    "GL103-frozen-statistics",
    "GL103-loss-inside-a-context-of-the-project",
    "GL103-stack-of-contexts",
    "GL105-flag-where-none-is",
    "GL105-mean-by-numpy",
    "GL107-history-of-a-frozen-model",
    "GL112-flattened-behind-the-critic",
    "GL112-weights-of-a-copy",
    "GL203-critic-steps-before-the-actor",
    "GL203-step-between-two-views",
    "GL301-module-of-a-package",
    "GL401-amp-is-an-option",
    "GL403-helper-of-another-file",
    "GL406-norm-of-each-micro-batch",
    "GL409-positions-of-a-module",
    "GL502-cleared-for-every-task",
    "GL502-step-before-the-backward",
    "GL502-windows-cleared-and-not-stepped",
    "GL503-chunks-of-a-batch",
    "GL503-criterion-of-the-project",
    "GL503-plates-gathered-first",
    "GL505-cleared-by-hand-in-each-round",
    "GL507-features-outside-the-closure",
    "GL507-one-backward-per-head",
    "GL507-prior-outside-the-loop",
    "GL508-losses-of-a-comprehension",
    "GL509-clipped-piece-by-piece",
    "GL509-hook-after-the-step",
    "GL511-backward-not-called",
    "GL511-cleared-through-the-model",
    "GL512-counted-by-a-describer",
    "GL513-head-replaced-at-the-sixth-epoch",
    "GL513-stages-added-by-and-by",
    "GL514-pairs-of-layers",
    "GL514-temperature-that-is-no-parameter",
    "GL516-compared-not-assigned",
    "GL516-new-words-of-a-frozen-table",
    "GL516-rows-that-stay",
    "GL517-adapters-before-the-freezing",
    "GL517-new-layer-frozen-with-the-rest",
    "GL520-trunk-of-two-heads",
    "GL702-softmax-layer-then-log",
    "GL703-pairwise-by-expansion",
    "GL704-softmax-ends-the-network",
    "GL801-pair-kept-by-setup-context",
    "GL801-pair-of-outputs",
    "GL802-backward-without-return",
    "GL802-gradients-of-a-helper",
    "GL802-one-too-many",
    "GL901-forward-by-its-other-name",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_fix_mends_it(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(OWN / name / "before", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    settings_for = settings_finder(lambda settings: settings.overridden(Selection(), (), {}))
    files = discover([pathlib.Path()], settings_for).files
    repaired = repair(Task(files, settings_for, settings_for(tmp_path), unsafe=True))
    left = [finding for finding in repaired.checked.findings if finding.severity > Severity.NOTE]
    assert repaired.fixed
    assert left == []
