"""`check --fix`: files are mended at once or not at all, and a second run finds nothing to do."""

from __future__ import annotations

import json
import os
import pathlib

import pytest
from commandline import Run

from gradlint.fix import apply

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
def test_encodings_and_line_ends_stay(
    run: Run, file: pathlib.Path, head: str, encoding: str, newline: str
) -> None:
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


def test_a_link_out_of_the_tree_is_not_written_through(
    run: Run, file: pathlib.Path, tmp_path: pathlib.Path
) -> None:
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


def test_a_fix_is_taken_back_that_lets_later_rounds_into_a_freed_graph(
    run: Run, file: pathlib.Path
) -> None:
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


def test_a_fix_is_taken_back_that_another_one_undoes(run: Run, file: pathlib.Path) -> None:
    """Without the `detach()` a graph is kept from round to round, and what mends that writes it
    again.
    """
    kept = BROKEN[: BROKEN.index("for valid")] + (
        "head = torch.nn.Linear(3, 1)\n"
        "optimizer.add_param_group({'params': list(head.parameters())})\n"
        "rows, seen = torch.randn(5, 4), {}\n"
        "for index in torch.randint(0, 5, (12,)):\n"
        "    if index.item() not in seen:\n"
        "        features = model(rows[index]).exp()\n"
        "        seen[index.item()] = features.detach()\n"
        "    loss = head(seen[index.item()]).square().mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    file.write_text(kept, encoding="utf-8")
    assert run("check", "--fix", "--unsafe-fixes", ".").code == 1
    assert file.read_text(encoding="utf-8") == kept


def test_a_fix_is_taken_back_that_leaves_a_loss_without_a_gradient(
    run: Run, file: pathlib.Path
) -> None:
    """Whether `values` is a list that `torch.stack` takes, its callers know."""
    kept = BROKEN[: BROKEN.index("for valid")] + (
        "def as_tensor(values, trainable=False):\n"
        "    tensor = torch.as_tensor(values, dtype=torch.float32)\n"
        "    if trainable:\n"
        "        tensor.requires_grad_()\n"
        "    return tensor\n"
        "for x in torch.randn(5, 2, 4):\n"
        "    loss = as_tensor([max(0.0, each.item()) for each in model(x).flatten()], "
        "trainable=True).mean()\n"
        "    optimizer.zero_grad()\n"
        "    loss.backward()\n"
        "    optimizer.step()\n"
    )
    file.write_text(kept, encoding="utf-8")
    assert run("check", "--fix", "--unsafe-fixes", ".").code == 1
    assert file.read_text(encoding="utf-8") == kept


WINDOW = BROKEN[: BROKEN.index("for valid")] + (
    "window = []\n"
    "for x in torch.randn(5, 2, 4):\n"
    "    window.append(model(x).exp().mean().item())\n"
    "    loss = torch.tensor(window[-3:]).mean()\n"
    "    optimizer.zero_grad()\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
)
TWICE = BROKEN[: BROKEN.index("for valid")] + (
    "def kept():\n"
    "    window = []\n"
    "    for x in torch.randn(5, 2, 4):\n"
    "        window.append(model(x).exp().mean().detach())\n"
    "        loss = sum(window[-3:])\n"
    "        optimizer.zero_grad()\n"
    "        loss.backward()\n"
    "        optimizer.step()\n"
    "def forgotten():\n"
    "    for x in torch.randn(5, 2, 4):\n"
    "        optimizer.zero_grad()\n"
    "        model(x).cosh().mean().detach().backward()\n"
    "        optimizer.step()\n"
)
REVIVED = BROKEN[: BROKEN.index("for valid")] + (
    "for x in torch.randn(5, 2, 4):\n"
    "    loss = torch.tensor(float(model(x).argmax()), requires_grad=True)\n"
    "    optimizer.zero_grad()\n"
    "    loss.backward()\n"
    "    optimizer.step()\n"
)


def offers(run: Run, *options: str) -> list[tuple[str, bool]]:
    found = json.loads(run("check", "--output-format", "json", *options, ".").out)
    return [(each["code"], each["fix"] is not None) for each in found]


def test_a_fix_that_would_be_taken_back_is_not_offered(run: Run, file: pathlib.Path) -> None:
    file.write_text(WINDOW, encoding="utf-8")
    assert offers(run) == [("GL102", False)]
    assert "fixes" not in run("check", "--output-format", "sarif", ".").out


def test_of_two_fixes_only_the_one_that_spoils_is_taken_back(run: Run, file: pathlib.Path) -> None:
    file.write_text(TWICE, encoding="utf-8")
    assert offers(run) == [("GL102", False), ("GL102", True)]
    run("check", "--fix", "--unsafe-fixes", ".")
    assert file.read_text(encoding="utf-8") == TWICE.replace(
        "cosh().mean().detach()", "cosh().mean()"
    )


@pytest.mark.parametrize("options", [(), ("--select", "GL105"), ("--ignore", "GL104")])
def test_a_fix_is_judged_by_rules_that_are_not_selected_too(
    run: Run, file: pathlib.Path, options: tuple[str, ...]
) -> None:
    file.write_text(REVIVED, encoding="utf-8")
    assert offers(run, *options) == [("GL105", False)]
    ran = run("check", "--fix", "--unsafe-fixes", *options, ".")
    assert (ran.code, file.read_text(encoding="utf-8")) == (1, REVIVED)


def test_what_a_comment_suppresses_spoils_a_program_all_the_same(
    run: Run, file: pathlib.Path
) -> None:
    text = WINDOW.replace("loss.backward()", "loss.backward()  # gradlint: ignore[GL507] not now")
    file.write_text(text, encoding="utf-8")
    run("check", "--fix", "--unsafe-fixes", ".")
    assert file.read_text(encoding="utf-8") == text


def test_a_fix_is_taken_back_in_the_last_round(
    run: Run, file: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "ROUNDS", 2)
    file.write_text(WINDOW, encoding="utf-8")
    run("check", "--fix", "--unsafe-fixes", ".")
    assert file.read_text(encoding="utf-8") == WINDOW


def test_a_fix_in_an_imported_file_is_tried_in_what_imports_it(
    run: Run, file: pathlib.Path
) -> None:
    """Each kept value hangs on what is trained, once the helper lets it."""
    file.with_name("measures.py").write_text(
        "def measured(output):\n    return output.exp().mean().detach()\n"
    )
    text = WINDOW.replace("model(x).exp().mean().item()", "measured(model(x))").replace(
        "torch.tensor(", "sum("
    )
    file.write_text(
        "from measures import measured\n" + text.replace(").mean()", ")"), encoding="utf-8"
    )
    assert offers(run) == offers(run, "--no-cache") == [("GL102", False)]
