"""Names decide no error and no warning: a program of the fixtures in which every name of its own
says nothing gets the same ones, at the same lines.

`GRADLINT_RENAMED` says how many programs of each seed are renamed (40), `GRADLINT_SEED` which are
drawn. Parts and pasted snippets are not among them: which of these are losses is known by name.
"""

from __future__ import annotations

import ast
import os
import pathlib
import random
import re
from collections.abc import Iterator, Mapping

import pytest
from differential.renaming import renamed
from programs import Program, cases
from seeds import SEEDS

from gradlint.analysis import analyze
from gradlint.finding import Severity

PROGRAMS = int(os.environ.get("GRADLINT_RENAMED", "40"))
# What is known by name alone; it is a note, or not said, under another name.
BY_NAME = {
    "GL111": "a loss that nobody back-propagates is one by its name",
    "GL503": "a loop over the parts of a batch is one by the words in its range",
    "GL511": "that nothing is back-propagated is said where a loss is computed, known by its name",
    "GL601": "what flags a label that was made up is known by its name",
}
Said = set[tuple[str, int, str, str]]


def _programs() -> list[Program]:
    own = ("parts/", "seeds/")
    found = [program for case in cases() for program in case.programs()]
    return [each for each in found if not each.name.startswith(own) and _texts(each)]


def _texts(program: Program) -> dict[str, str]:
    """The files of a program, if this Python can read all of them; notebooks and others not."""
    files = {
        path.relative_to(program.folder).as_posix(): path.read_text(encoding="utf-8")
        for path in map(pathlib.Path, program.files())
        if path.suffix == ".py"
    }
    try:
        for text in files.values():
            ast.parse(text)
    except SyntaxError:
        return {}
    return files


def _said(folder: pathlib.Path, files: Mapping[str, str]) -> Said:
    """The errors and warnings of a program: file, line, code and severity."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    analysis = analyze([folder / name for name in files], select=lambda code: True)
    assert not [gap for gap in analysis.gaps if gap.kind == "internal"]
    return {
        (str(pathlib.Path(found.at.path).relative_to(folder)), found.at.line, found.code,
         found.severity.label)
        for found in analysis.findings
        if found.severity > Severity.NOTE
    }  # fmt: skip


def _differences(program: Program, folder: pathlib.Path) -> Iterator[str]:
    files = _texts(program)
    other = renamed(files, program.name)
    before = _said(folder / "before", files)
    after = _said(folder / "after", other)
    apart = before ^ after
    if any(code == "GL111" for _, _, code, _ in apart):
        return  # what is wrong is reported in another way where the loss is none by its name
    for file, line, code, severity in sorted(apart):
        if code not in BY_NAME:
            kept = "lost" if (file, line, code, severity) in before else "new"
            yield f"{program.name}: {kept}: {code} {severity} at {file}:{line}\n{other[file]}"


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS.keys())
def test_no_name_decides_an_error_or_a_warning(seed: int, tmp_path: pathlib.Path) -> None:
    programs = _programs()
    chosen = random.Random(seed).sample(programs, min(PROGRAMS, len(programs)))
    found = [
        difference
        for program in chosen
        for difference in _differences(program, tmp_path / program.name.replace("/", "-"))
    ]
    assert not found, f"seed {seed}\n" + "\n\n".join(found)


def test_every_name_of_its_own_is_another_and_what_others_prescribe_stays() -> None:
    written = (
        "import torch\n"
        "from net import Net\n"
        "def fit(net, optimizer, share=0.5):\n"
        "    share_loss = net(torch.ones(2), size=3).mean() * share\n"
        "    optimizer.zero_grad(set_to_none=True)\n"
        "fit(Net(), None, share=1.0)\n"
    )
    other = "class Net(torch.nn.Module):\n    def forward(self, x, size):\n        return x\n"
    made = renamed({"train.py": written, "net.py": other}, "a")
    left = {"share_loss", "fit", "share", "Net", "optimizer"}
    assert not any(left & set(re.findall(r"\w+", text)) for text in made.values())
    assert all(
        word in made["train.py"]
        for word in ("torch", ".zero_grad(set_to_none=True)", ".mean()", "from net import")
    )
    assert "def forward(self, x, " not in made["net.py"]
    assert ast.dump(ast.parse(written)).count("(") == ast.dump(ast.parse(made["train.py"])).count(
        "("
    )
