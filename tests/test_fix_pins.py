"""A fix writes only what every torch has that the project supports."""

from __future__ import annotations

import pathlib

import pytest
from commandline import Run

from gradlint.fix.pins import allows_torch

TRAIN = """\
import torch
from torch.cuda.amp import autocast

model = torch.nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for x in torch.randn(8, 4, 2):
    with autocast():
        loss = model(x.cuda()).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
NEW_SCALER = ("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")')
NEW_AUTOCAST = ("with autocast()", 'with autocast("cuda")')


@pytest.mark.parametrize(
    ("name", "text", "allows"),
    [
        ("pyproject.toml", "", True),
        ("pyproject.toml", "[project]\ndependencies = ['torch']", True),
        ("pyproject.toml", "[project]\ndependencies = ['torch>=2.3']", True),
        (
            "pyproject.toml",
            "[project]\ndependencies = ['Torch[opt] >= 2.4, <3 ; python_version > \"3\"']",
            True,
        ),
        ("pyproject.toml", "[project]\ndependencies = ['torch>=2.0,<3']", False),
        ("pyproject.toml", "[project]\ndependencies = ['torch<2.3']", False),
        ("pyproject.toml", "[project]\ndependencies = ['torch<=2.3']", True),
        ("pyproject.toml", "[project]\ndependencies = ['torchvision==0.1', 'torch!=2.1']", True),
        ("pyproject.toml", "[project.optional-dependencies]\ntrain = ['torch~=2.1']", False),
        ("pyproject.toml", "[project]\nrequires-python = '>=3.7'", False),
        ("pyproject.toml", "[project]\nrequires-python = '>=3.8'", True),
        (
            "pyproject.toml",
            "[project]\nrequires-python = '>=3.7'\ndependencies = ['torch>=2.4']",
            True,
        ),
        ("pyproject.toml", "[tool.poetry.dependencies]\npython = '^3.9'\ntorch = '^2.1'", False),
        (
            "pyproject.toml",
            "[tool.poetry.dependencies]\ntorch = {version = '>=2.5', source = 'cpu'}",
            True,
        ),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntorch = '~2.4'", True),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntorch = '~2.2'", False),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntorch = '2.6 || ^2.4.1'", True),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntorch = '^1.13 || ^2.4'", False),
        ("pyproject.toml", "[tool.poetry.dependencies]\npython = '*'\ntorch = '>=2.4 <3.0'", True),
        ("pyproject.toml", "[project]\ndependencies = ['torch>2.2']", False),
        ("pyproject.toml", "[project]\ndependencies = ['torch==2.6.*']", True),
        (
            "pyproject.toml",
            "[project]\ndependencies = ['torch>=2.1.*', 'torch of another kind']",
            False,
        ),
        ("pyproject.toml", "[project]\nrequires-python = 'three'", True),
        ("pyproject.toml", "no toml", True),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.8\n", False),
        ("setup.cfg", "[options]\npython_requires = >=3.6\n", False),
        (
            "setup.py",
            "from setuptools import setup\nsetup(install_requires=['torch>=1.13'])\n",
            False,
        ),
        ("setup.py", "setup(python_requires='>=3.10', install_requires=['torch>=2.6'])", True),
        ("setup.py", "def (", True),
        ("requirements.txt", "# torch==1.0\nnumpy\ntorch==2.6.0+cu124\n", True),
        ("requirements.txt", "torch==2.2.1  # pinned\n", False),
        ("requirements.txt", "--index-url x\ntorch == 2.2.1 --hash=sha256:0\n", False),
        ("requirements.txt", "torch @ https://example.org/torch-2.0-py3-none-any.whl\n", True),
    ],
)
def test_what_a_project_says_of_torch(
    tmp_path: pathlib.Path, name: str, text: str, allows: bool
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "src").mkdir()
    assert allows_torch(tmp_path / "src" / "train.py", (2, 3)) is allows


def test_the_oldest_of_all_that_is_said_counts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = ['torch>=2.0']")
    (tmp_path / "requirements.txt").write_text("torch==2.6")
    assert not allows_torch(tmp_path / "train.py", (2, 3))
    assert allows_torch(tmp_path / "train.py", (1, 12))


@pytest.mark.parametrize(
    ("torch", "changes"),
    [
        ("torch>=2.3", (NEW_SCALER, NEW_AUTOCAST, ("torch.cuda.amp import", "torch.amp import"))),
        ("torch>=1.12", (NEW_AUTOCAST, ("torch.cuda.amp import", "torch.amp import"))),
        ("torch>=1.10", (NEW_AUTOCAST, ("torch.cuda.amp import", "torch import"))),
        ("torch>=1.6", ()),
    ],
)
def test_mixed_precision_is_written_for_the_oldest_torch(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
    torch: str,
    changes: tuple[tuple[str, str], ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(f"[project]\nname = 'x'\ndependencies = ['{torch}']\n")
    (tmp_path / "train.py").write_text(TRAIN)
    run("check", "--fix", "--select", "GL402", "--no-cache", "train.py")
    expected = TRAIN
    for old, new in changes:
        expected = expected.replace(old, new)
    assert (tmp_path / "train.py").read_text() == expected


def test_a_name_that_stands_for_a_fallback_too_is_left_alone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    fallback = "else:\n    def autocast(enabled=True):\n        return torch.no_grad()\n"
    imported = "from torch.cuda.amp import autocast\n"
    text = TRAIN.replace(imported, f"if torch.rand(1) < 2:\n    {imported}{fallback}")
    (tmp_path / "train.py").write_text(text)
    run("check", "--fix", "--select", "GL402", "--no-cache", "train.py")
    assert (tmp_path / "train.py").read_text() == text.replace(*NEW_SCALER)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.cuda.amp.GradScaler(1024.0, 2.0)", 'torch.amp.GradScaler("cuda", 1024.0, 2.0)'),
        ("torch.cuda.amp.GradScaler(enabled=True)", 'torch.amp.GradScaler("cuda", enabled=True)'),
        ("torch.cuda.amp.autocast(True)", 'torch.amp.autocast("cuda", enabled=True)'),
        (
            "torch.cuda.amp.autocast(True, torch.bfloat16)",
            'torch.amp.autocast("cuda", enabled=True, dtype=torch.bfloat16)',
        ),
        (
            "torch.cuda.amp.autocast(dtype=torch.half)",
            'torch.amp.autocast("cuda", dtype=torch.half)',
        ),
    ],
)
def test_the_device_stands_before_what_was_given(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, run: Run, old: str, new: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(f"import torch\n\nmade = {old}\nprint(made)\n")
    run("check", "--fix", "--unsafe-fixes", "--select", "GL402", "--no-cache", "train.py")
    assert (tmp_path / "train.py").read_text() == f"import torch\n\nmade = {new}\nprint(made)\n"
