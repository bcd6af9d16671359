"""How many small mistakes planted in the rules and in the model of operations their fast tests notice.

    PYTHONPATH=tests python tools/mutation.py 300 --seed 0 rules/gradlint_rules gradlint/library

Places are drawn at random, and at each one of the mistakes that cosmic-ray knows there (it has to be installed, as has
coverage). A mistake is planted in a fork of this process, into the functions that are loaded: what a module does while
it is imported is not mutated. It is noticed where a program under `fixtures/` or an example of a rule's page that runs
through its line is not judged as it is marked, or where one of TESTS fails.
"""

from __future__ import annotations

import argparse
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
import test_fixtures
import test_rules_examples
from cosmic_ray.commands.init import _all_work_items  # type: ignore[import-not-found]

from gradlint import library
from gradlint.rule import rules

TESTS = {
    "gradlint_rules": ["test_rules_tapes", "test_rules_devices", "test_rules_shapes", "test_fix_rules"],
    "library": ["test_library_python", "test_library_names", "test_library_lightning", "test_rules_shapes"],
}
SECONDS = 240  # of CPU for one mistake: a program that has become endless is noticed
NEAR = 12  # lines, from one that is run back to the beginning of its statement
Place = tuple[str, int]  # a file and a line
Check = Callable[[], object]  # raises where a program is not judged as it is marked


def checks() -> list[Check]:
    """Every program and every example, to be judged one by one."""
    folder = pathlib.Path(tempfile.mkdtemp())
    judge = test_fixtures.test_check_says_what_the_markers_say
    bad = test_rules_examples.test_a_bad_example_is_reported_at_its_marked_lines_alone
    good = test_rules_examples.test_what_a_page_advises_is_free_of_errors_and_warnings
    return [
        *(partial(judge, program) for program in test_fixtures.PROGRAMS),
        *(partial(bad, example, folder) for example in test_rules_examples.BAD),
        *(partial(good, example, folder) for example in test_rules_examples.GOOD),
    ]


# --- in forks


def forked(work: Callable[[], object]) -> Any:
    """What a function gives in a fork of this process, or None where that dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        with os.fdopen(writer, "wb") as stream:
            pickle.dump(work(), stream)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    return pickle.loads(content) if content else None


def covering(known: Sequence[Check], files: Sequence[str]) -> dict[Place, list[int]]:
    """For each line of the files, the checks that run through it, the shortest first."""
    measured = coverage.Coverage(data_file=None, include=files)
    measured.start()
    for number, check in enumerate(known):
        measured.switch_context(str(number))
        check()
    measured.stop()
    read = measured.get_data()
    found = {
        (file, line): sorted(map(int, filter(None, contexts)))
        for file in read.measured_files()
        for line, contexts in read.contexts_by_lineno(file).items()
    }
    length = Counter(itertools.chain.from_iterable(found.values()))
    return {place: sorted(numbers, key=length.__getitem__) for place, numbers in found.items()}


# --- mistakes


@dataclass(frozen=True)
class Mistake:
    """A file with one thing changed."""

    path: pathlib.Path
    line: int
    original: str
    text: str

    def __str__(self) -> str:
        changed = difflib.unified_diff(self.original.splitlines(), self.text.splitlines(), n=0, lineterm="")
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
        if text and replacements(mistake):
            yield mistake


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
    changed = {_key(old): new for old, new in zip(codes, made, strict=True) if _acts(old) != _acts(new)}
    functions = [each for each in gc.get_objects() if isinstance(each, types.FunctionType)]
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
    constants = tuple(_acts(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_exceptiontable


def is_noticed(mistake: Mistake, known: Sequence[Check], numbers: Sequence[int]) -> bool:
    """Whether a check or a test fails with the mistake."""
    for function, code in replacements(mistake) if mistake.text else ():
        function.__code__ = code
    try:
        for number in numbers:
            known[number]()
    except Exception:
        return True
    folder = pathlib.Path(test_fixtures.__file__).parent
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        tests = [str(folder / f"{name}.py") for part in TESTS if part in mistake.path.parts for name in TESTS[part]]
        return bool(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "-k", "not pytorch", *tests]))


def main() -> None:
    """Prints what no test notices, and how many mistakes are noticed."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("count", type=int)
    reader.add_argument("folders", nargs="+", type=pathlib.Path)
    reader.add_argument("--seed", type=int, default=0)
    given = reader.parse_args()
    library.load()
    rules()
    sys.setrecursionlimit(6_000)
    files = sorted(path for folder in given.folders for path in folder.rglob("*.py"))
    known = checks()
    runs = forked(partial(covering, known, [str(path.resolve()) for path in files]))
    unchanged = [Mistake(folder, 0, "", "") for folder in given.folders]
    if any(forked(partial(is_noticed, each, known, ())) is not False for each in unchanged):
        sys.exit("the tests fail without a mistake")
    counted: Counter[bool] = Counter()
    for mistake in itertools.islice(mistakes(files, given.seed), given.count):
        lines = range(mistake.line, mistake.line - NEAR, -1)
        near = (runs[place] for line in lines if (place := (str(mistake.path.resolve()), line)) in runs)
        numbers: list[int] = next(near, [])
        noticed = forked(partial(is_noticed, mistake, known, numbers)) is not False
        counted[noticed] += 1
        if not noticed:
            print(f"{mistake}\n  {len(numbers)} programs run through it\n", flush=True)
        print(f"noticed {counted[True]}, not noticed {counted[False]}", end="\r", file=sys.stderr, flush=True)
    print(f"noticed {counted[True]}, not noticed {counted[False]}")


if __name__ == "__main__":
    main()
