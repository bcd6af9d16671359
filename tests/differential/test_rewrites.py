"""Programs of the fixtures, written otherwise: `check` says of them what it says of them as they
are.

`GRADLINT_REWRITTEN` says how many programs of each seed are rewritten (8), `GRADLINT_SEED` which
are drawn.
"""

from __future__ import annotations

import ast
import collections
import itertools
import os
import pathlib
import random
from collections.abc import Iterator

import pytest
from differential.restyled import ALL as REWRITES
from programs import ROOT
from seeds import SEEDS

from gradlint.analysis import analyze
from gradlint.finding import Severity

PROGRAMS = int(os.environ.get("GRADLINT_REWRITTEN", "8"))
# Where it is not the same program to `check`: what is told there goes by how the program is
# written.
OTHERWISE = {
    ("parts_by_name", "GL515"): "the rule reads the statement that makes the parameter",
    (
        "functions_for_methods",
        "GL206",
    ): "a method looks as if it worked in place, a function does not",
    (
        "contexts_on_a_stack",
        "GL303",
    ): "the rule asks of `with` alone; a class that is not called raises on a stack",
    (
        "contexts_on_a_stack",
        "GL505",
    ): "a context that is a generator of the program's own is not run on a stack",
    (
        "batches_from_a_generator",
        "GL503",
    ): "what a generator hands on of a part of a stream is not known for one",
    ("drained_iterator", "GL503"): "a loop over a range is told from one over batches by its text",
}


def sources() -> list[pathlib.Path]:
    """The programs of one file, before their repair and after it."""
    return [
        path for path in sorted(ROOT.rglob("*.py")) if len(list(path.parent.rglob("*.py"))) == 1
    ]


def said(tree: ast.Module) -> collections.Counter[str]:
    """How often each code is reported of a program."""
    text = ast.unparse(ast.fix_missing_locations(tree))
    path = pathlib.Path("train.py")
    analysis = analyze([path], select=lambda code: True, sources={path: text})
    assert not any(gap.kind == "internal" for gap in analysis.gaps), f"{analysis.gaps}\n{text}"
    return collections.Counter(
        each.code for each in analysis.findings if each.severity > Severity.NOTE
    )


def differences(path: pathlib.Path) -> Iterator[str]:
    """What is said otherwise of a program that is written otherwise."""
    text = path.read_text()
    expected = said(ast.parse(text))
    for name, rewrite in REWRITES.items():
        made = rewrite(ast.parse(text))
        found = said(made) if made is not None else expected
        apart = {
            code
            for code in found | expected
            if found[code] != expected[code] and (name, code) not in OTHERWISE
        }
        if made is not None and apart:
            yield (
                f"{path.relative_to(ROOT)}, {name}: {', '.join(sorted(apart))}\n{ast.unparse(made)}"
            )


@pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS.keys())
def test_what_is_said_does_not_hang_on_how_it_is_written(seed: int) -> None:
    chosen = random.Random(seed).sample(sources(), min(PROGRAMS, len(sources())))
    assert not (found := [each for path in chosen for each in differences(path)]), (
        f"seed {seed}\n" + "\n\n".join(found)
    )


@pytest.mark.parametrize("name", REWRITES)
def test_each_rewrite_leaves_a_program_that_python_takes(name: str) -> None:
    trees = (
        REWRITES[name](ast.parse(path.read_text()))
        for path in random.Random(1).sample(sources(), len(sources()))
    )
    written = [
        ast.unparse(ast.fix_missing_locations(tree))
        for tree in itertools.islice(filter(None, trees), 10)
    ]
    assert len(written) == 10
    for text in written:
        compile(text, "train.py", "exec")
