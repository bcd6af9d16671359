"""`check --fix`: files are mended at once or not at all, and a second run finds nothing to do."""

from __future__ import annotations

import os
import pathlib

import pytest
from commandline import Run

BROKEN = """\
import torch

model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for valid in (True, False):
    logits = model(torch.randn(2, 4))
    loss = logits.sum() if valid else torch.tensor(0.0)  # keep this: é
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FIXED = BROKEN.replace("torch.tensor(0.0)", "0.0 * logits.sum()")
UNSAFE = BROKEN.replace("torch.tensor(0.0)", "logits.detach().mean()")


@pytest.fixture
def file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_bytes(BROKEN.encode())
    return path


def test_a_safe_fix_is_applied(run: Run, file: pathlib.Path) -> None:
    ran = run("check", "--fix", ".")
    assert (ran.code, file.read_text(encoding="utf-8")) == (0, FIXED)
    assert "Fixed: 1. Left: 0." in ran.err


def test_a_second_run_changes_nothing(run: Run, file: pathlib.Path) -> None:
    run("check", "--fix", "--unsafe-fixes", ".")
    before = file.stat().st_mtime_ns
    run("check", "--fix", "--unsafe-fixes", ".")
    assert file.stat().st_mtime_ns == before


def test_an_unsafe_fix_waits_for_its_option(run: Run, file: pathlib.Path) -> None:
    file.write_text(UNSAFE, encoding="utf-8")
    assert run("check", "--fix", ".").code == 1
    assert file.read_text(encoding="utf-8") == UNSAFE
    assert run("check", "--fix", "--unsafe-fixes", ".").code == 0
    assert "logits.mean()" in file.read_text(encoding="utf-8")


def test_a_diff_is_shown_and_nothing_changed(run: Run, file: pathlib.Path) -> None:
    ran = run("check", "--diff", ".")
    assert ran.code == 1
    assert "+    loss = logits.sum() if valid else 0.0 * logits.sum()  # keep this: é\n" in ran.out
    assert file.read_text(encoding="utf-8") == BROKEN


def test_without_anything_to_fix_a_diff_is_empty(run: Run, file: pathlib.Path) -> None:
    file.write_text(FIXED, encoding="utf-8")
    ran = run("check", "--diff", ".")
    assert (ran.code, ran.out) == (0, "")


@pytest.mark.parametrize(
    ("head", "encoding", "newline"),
    [("", "utf-8", "\r\n"), ("", "utf-8-sig", "\n"), ("# coding: latin-1\n", "latin-1", "\n")],
)
def test_encodings_and_line_ends_stay(run: Run, file: pathlib.Path, head: str, encoding: str, newline: str) -> None:
    file.write_bytes((head + BROKEN).replace("\n", newline).encode(encoding))
    run("check", "--fix", ".")
    assert file.read_bytes() == (head + FIXED).replace("\n", newline).encode(encoding)


def test_tabs_stay(run: Run, file: pathlib.Path) -> None:
    file.write_text(BROKEN.replace("    ", "\t"), encoding="utf-8")
    run("check", "--fix", ".")
    assert file.read_text(encoding="utf-8") == FIXED.replace("    ", "\t")


def test_the_mode_of_a_file_stays(run: Run, file: pathlib.Path) -> None:
    file.chmod(0o750)
    run("check", "--fix", "--no-cache", ".")
    assert file.stat().st_mode & 0o777 == 0o750
    assert os.listdir(file.parent) == [file.name]


def test_a_link_out_of_the_tree_is_not_written_through(run: Run, file: pathlib.Path, tmp_path: pathlib.Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.py"
    file.rename(outside)
    file.symlink_to(outside)
    (tmp_path / "pyproject.toml").write_text("[tool.gradlint]\n", encoding="utf-8")
    ran = run("check", "--fix", "train.py")
    assert ran.code == 2
    assert "left as it was" in ran.err
    assert outside.read_text(encoding="utf-8") == BROKEN


def test_what_is_suppressed_is_not_fixed(run: Run, file: pathlib.Path) -> None:
    text = BROKEN.replace("# keep this: é", "# gradlint: ignore[GL101] on purpose")
    file.write_text(text, encoding="utf-8")
    run("check", "--fix", ".")
    assert file.read_text(encoding="utf-8") == text


def test_a_finding_has_its_fix_in_json(run: Run, file: pathlib.Path) -> None:
    assert '"content": "0.0 * logits.sum()"' in run("check", "--output-format", "json", ".").out


def test_a_fix_is_taken_back_that_lets_later_rounds_into_a_freed_graph(run: Run, file: pathlib.Path) -> None:
    kept = BROKEN[: BROKEN.index("for valid")] + (
        "window = []\n"
        "for x in torch.randn(5, 2, 4):\n"
        "    window.append(model(x).exp().mean().item())\n"
        "    loss = torch.tensor(window[-3:]).mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    file.write_text(kept, encoding="utf-8")
    assert run("check", "--fix", "--unsafe-fixes", ".").code == 1
    assert file.read_text(encoding="utf-8") == kept


def test_a_fix_is_taken_back_that_leaves_a_loss_without_a_gradient(run: Run, file: pathlib.Path) -> None:
    """Whether `values` is a list that `torch.stack` takes, its callers know."""
    kept = BROKEN[: BROKEN.index("for valid")] + (
        "def as_tensor(values, trainable=False):\n"
        "    tensor = torch.as_tensor(values, dtype=torch.float32)\n"
        "    if trainable:\n"
        "        tensor.requires_grad_()\n"
        "    return tensor\n"
        "for x in torch.randn(5, 2, 4):\n"
        "    loss = as_tensor([max(0.0, each.item()) for each in model(x).flatten()], trainable=True).mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    file.write_text(kept, encoding="utf-8")
    assert run("check", "--fix", "--unsafe-fixes", ".").code == 1
    assert file.read_text(encoding="utf-8") == kept
