"""How many small mistakes planted in the rules and in the model of operations their fast tests
notice.

    PYTHONPATH=tests python tools/mutation.py 300 --seed 0 rules/gradlint_rules gradlint/library

Places are drawn at random, and at each one of the mistakes that cosmic-ray knows there (it has to
be installed, as has coverage). A mistake is planted in a fork of this process, into the functions
that are loaded: what a module does while it is imported is not mutated. It is noticed where one of
those of TESTS fails that run through its line; they are run alone, the shortest first.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gc
import itertools
import os
import pathlib
import pickle
import random
import resource
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import cosmic_ray.mutating  # type: ignore[import-not-found]
import cosmic_ray.plugins  # type: ignore[import-not-found]
import coverage  # type: ignore[import-not-found]
import pytest
import truth
from cosmic_ray.commands.init import _all_work_items  # type: ignore[import-not-found]

from gradlint import library
from gradlint.rule import rules

TESTS = (
    "test_fixtures", "test_rules_examples", "test_rules_tapes", "test_rules_devices",
    "test_rules_shapes",
    "test_rules_random_tapes", "test_fix_rules", "test_fix_layouts", "test_fix_pins",
    "test_fix_runs",
    "test_library_python", "test_library_names", "test_library_lightning", "test_library_torch",
    "test_python_programs",
    "test_torch_programs", "test_rules_words", "test_rules_numbers", "test_library_steps",
    "test_fix_spellings",
    "test_library_loaders", "test_rules_returns", "test_rules_gathered", "test_rules_freed",
    "test_rules_obstacles",
    "test_same_questions", "test_rules_holdings", "test_library_unseen", "test_programs_of_files",
    "test_rules_scaler",
    "test_rules_windows", "test_library_data", "test_library_cycles", "test_rules_steps",
    "test_rules_writes",
    "test_rules_frozen",
)  # fmt: skip
OF_TORCH_ALONE = "pytorch or torch_shows"
# times as long as without a mistake, and SECONDS: a program that has become endless is noticed
PATIENCE = 5
SECONDS = 60
NEAR = 12  # lines, from one that is run back to the beginning of its statement
Place = tuple[str, int]  # a file and a line


# --- in forks


def forked(work: Callable[[], object], seconds: float) -> Any:
    """What a function gives in a silent fork of this process, or None where that dies or takes too
    long.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        with os.fdopen(writer, "wb") as stream:
            pickle.dump(work(), stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    return pickle.loads(content) if content else None


@dataclass
class Measured:
    """For each line, the numbers of the tests that run through it; how long each takes; those that
    fail.
    """

    through: dict[Place, list[int]]
    seconds: list[float]
    failed: list[str]


def measured(tests: Sequence[pytest.Item], files: Sequence[str]) -> Measured:
    """What the tests run through while nothing is mistaken."""
    watched = coverage.Coverage(data_file=None, include=files)
    seconds, failed = [], []
    watched.start()
    for number, test in enumerate(tests):
        watched.switch_context(str(number))
        begun = time.process_time()
        failed += [test.nodeid] * fails(test)
        seconds.append(time.process_time() - begun)
    watched.stop()
    read = watched.get_data()
    through = {
        (file, line): sorted(map(int, filter(None, contexts)), key=seconds.__getitem__)
        for file in read.measured_files()
        for line, contexts in read.contexts_by_lineno(file).items()
    }
    return Measured(through, seconds, failed)


def fails(test: pytest.Item) -> bool:
    """Whether a test fails where it is run alone."""
    before = test.session.testsfailed
    test.ihook.pytest_runtest_protocol(item=test, nextitem=None)
    return test.session.testsfailed > before


# --- mistakes


@dataclass(frozen=True)
class Mistake:
    """A file with one thing changed."""

    path: pathlib.Path
    line: int
    original: str
    text: str

    def __str__(self) -> str:
        changed = difflib.unified_diff(
            self.original.splitlines(), self.text.splitlines(), n=0, lineterm=""
        )
        lines = [line for line in changed if line[0] in "+-" and line[:3] not in ("+++", "---")]
        return "\n".join([f"{self.path}:{self.line}", *lines])


def mistakes(files: Sequence[pathlib.Path], seed: int) -> Iterator[Mistake]:
    """Mistakes at places in random order, one a place, that change what some function does."""
    choose = random.Random(seed)
    work = [item.mutations[0] for item in _all_work_items(files, {})]
    by_place = [list(each) for _, each in itertools.groupby(sorted(work, key=_place), key=_place)]
    choose.shuffle(by_place)
    for known in by_place:
        spec = choose.choice(known)
        operator = cosmic_ray.plugins.get_operator(spec.operator_name)(**spec.operator_args)
        path = pathlib.Path(spec.module_path)
        original = path.read_text(encoding="utf-8")
        text = cosmic_ray.mutating.mutate_code(original, operator, spec.occurrence)
        mistake = Mistake(path, spec.start_pos[0], original, text)
        if text and replacements(mistake) and _bare(text) != _bare(original):
            yield mistake


class _Annotations(ast.NodeTransformer):
    """Takes annotations away: what stands there is not run."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def _bare(text: str) -> str:
    return ast.dump(_Annotations().visit(ast.parse(text)))


def _place(spec: Any) -> tuple[str, tuple[int, int]]:
    return str(spec.module_path), spec.start_pos


def replacements(mistake: Mistake) -> list[tuple[types.FunctionType, types.CodeType]]:
    """The loaded functions that the mistake changes, and what becomes of them."""
    name = str(mistake.path.resolve())
    try:
        made = list(_codes(compile(mistake.text, name, "exec", dont_inherit=True)))
    except SyntaxError:
        return []
    codes = list(_codes(compile(mistake.original, name, "exec", dont_inherit=True)))
    if len(made) != len(codes):
        return []
    changed = {
        _key(old): new for old, new in zip(codes, made, strict=True) if _acts(old) != _acts(new)
    }
    functions = [each for each in gc.get_objects() if type(each) is types.FunctionType]
    return [
        (function, changed[_key(function.__code__)])
        for function in functions
        if function.__code__.co_filename == name and _key(function.__code__) in changed
    ]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _key(code: types.CodeType) -> object:
    return code.co_qualname, tuple(code.co_positions())


def _acts(code: types.CodeType) -> object:
    """What a function does, wherever it stands."""
    constants = tuple(
        _acts(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts
    )
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_exceptiontable


def is_noticed(mistake: Mistake, tests: Sequence[pytest.Item]) -> bool:
    """Whether one of the tests fails with the mistake."""
    for function, code in replacements(mistake):
        function.__code__ = code
    return any(fails(test) for test in tests)


class Planting:
    """Plants mistakes where pytest would run its tests."""

    def __init__(self, folders: Sequence[pathlib.Path], count: int, seed: int) -> None:
        self.files = sorted(path for folder in folders for path in folder.rglob("*.py"))
        self.count, self.seed = count, seed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        tests = session.items
        known = forked(
            partial(measured, tests, [str(path.resolve()) for path in self.files]), 3_600
        )
        if not known or known.failed:
            sys.exit(f"fails without a mistake: {known and known.failed}")
        noticed: Counter[bool] = Counter()
        for mistake in itertools.islice(mistakes(self.files, self.seed), self.count):
            numbers = through(mistake, known)
            limit = SECONDS + PATIENCE * sum(known.seconds[number] for number in numbers)
            is_seen = (
                forked(partial(is_noticed, mistake, [tests[number] for number in numbers]), limit)
                is not False
            )
            noticed[is_seen] += 1
            if not is_seen:
                print(f"{mistake}\n  {len(numbers)} tests run through it\n", flush=True)
            print(
                f"noticed {noticed[True]}, not noticed {noticed[False]}",
                end="\r",
                file=sys.stderr,
                flush=True,
            )
        print(f"noticed {noticed[True]}, not noticed {noticed[False]}")
        return True


def through(mistake: Mistake, known: Measured) -> list[int]:
    """The tests that run through the statement of a mistake."""
    lines = range(mistake.line, mistake.line - NEAR, -1)
    places = ((str(mistake.path.resolve()), line) for line in lines)
    return next((known.through[place] for place in places if place in known.through), [])


def main() -> None:
    """Prints what no test notices, and how many mistakes are noticed."""
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("count", type=int)
    reader.add_argument("folders", nargs="+", type=pathlib.Path)
    reader.add_argument("--seed", type=int, default=0)
    given = reader.parse_args()
    library.load()
    rules()
    sys.setrecursionlimit(6_000)
    files = [str(pathlib.Path(truth.__file__).with_name(f"{name}.py")) for name in TESTS]
    with tempfile.TemporaryDirectory() as folder:
        truth.observe(pathlib.Path(folder))  # its process serves every fork
        options = [
            "-s",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--assert=plain",
            f"--basetemp={folder}",
        ]
        planting = Planting(given.folders, given.count, given.seed)
        pytest.main([*options, "-k", f"not ({OF_TORCH_ALONE})", *files], plugins=[planting])


if __name__ == "__main__":
    main()
