"""Which versions of a package a project wants, by what it says of its dependencies and of
Python.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import pathlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

Allowed = tuple[SpecifierSet, ...]  # versions that one of them allows: poetry knows an "or"
_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt")
_STAR = re.compile(r"([<>]=?|~=)(\s*[\d.]+)\.\*")  # what pip has taken once: `>=1.8.*`
_POETRY = re.compile(r"([\^~])?\s*(\d+(?:\.\d+)*)")
_OPTIONS = re.compile(r"\s(?:#|--).*")  # of a line of requirements.txt
# The last torch that runs on a version of Python.
_NEWEST_TORCH = (
    (Version("3.6"), Version("1.10")),
    (Version("3.7"), Version("1.13")),
    (Version("3.8"), Version("2.4")),
    (Version("3.9"), Version("2.8")),
)
_NONE, _NEWEST = Version("0"), Version("9999")  # older and newer than all that there are


def allows_torch(file: pathlib.Path, version: tuple[int, ...]) -> bool:
    """Whether every torch that the project around `file` supports is at least `version`, as far as
    it says.
    """
    project = _project(file)
    if project is None:
        return True
    wanted = list(_wanted(project))
    least = Version(".".join(map(str, version)))
    torches = [allowed for name, allowed in wanted if name == "torch"]
    lowest = [_lowest(allowed) for allowed in torches]
    if any(each < least for each in lowest if each) or not all(
        _reaches(allowed, least) for allowed in torches
    ):
        return False
    if any(lowest):
        return True
    pythons = (_lowest(allowed) for name, allowed in wanted if name == "python")
    newest = (
        torch
        for python in pythons
        if python
        for last, torch in _NEWEST_TORCH
        if python.release[:2] <= last.release
    )
    return next(newest, least) >= least


def _lowest(allowed: Allowed) -> Version | None:
    """The oldest version that is allowed; None where nothing bounds it from below."""
    if any(each.contains(_NONE) for each in allowed):
        return None
    return min(_fitting(allowed), default=None)


def _reaches(allowed: Allowed, version: Version) -> bool:
    """Whether this version, or a later one, is allowed."""
    return any(each.contains(later) for each in allowed for later in (version, _NEWEST)) or any(
        fitting >= version for fitting in _fitting(allowed)
    )


def _fitting(allowed: Allowed) -> Iterator[Version]:
    """Of the versions that are named, and of those right behind them, what is allowed."""
    for each in allowed:
        named = [Version(one.version.removesuffix(".*")) for one in each if one.operator != "==="]
        behind = [Version(f"{version.base_version}.1") for version in named]
        yield from each.filter([*named, *behind], prereleases=True)


def _project(file: pathlib.Path) -> pathlib.Path | None:
    """The nearest folder around a file that says what it needs."""
    for folder in file.absolute().parents:
        if any((folder / name).is_file() for name in _FILES):
            return folder
        if (folder / ".git").exists():
            return None
    return None


@functools.lru_cache(maxsize=64)
def _read(path: pathlib.Path, _changed: int) -> tuple[tuple[str, Allowed], ...]:
    text = path.read_bytes().decode(errors="replace")
    readers = {"pyproject.toml": _pyproject, "setup.cfg": _setup_cfg, "setup.py": _setup_py}
    return tuple(readers.get(path.name, _requirements)(text))


def _wanted(project: pathlib.Path) -> Iterator[tuple[str, Allowed]]:
    """The packages (and `python`) that a project names, each with its versions."""
    named = [project / name for name in _FILES]
    others = [*project.glob("requirements*.txt"), *project.glob("requirements/*.txt")]
    for path in dict.fromkeys([*named, *sorted(others)]):
        try:
            yield from _read(path, path.stat().st_mtime_ns)
        except (OSError, ValueError, RecursionError, SyntaxError):
            continue  # a file that cannot be read says nothing


def _parsed(lines: Iterable[object]) -> Iterator[tuple[str, Allowed]]:
    """The names and versions of requirements; of torch alone, for of others nothing is asked."""
    for line in lines:
        if isinstance(line, str) and line.strip().lower().startswith("torch"):
            with contextlib.suppress(InvalidRequirement):
                found = Requirement(_STAR.sub(r"\1\2", _OPTIONS.sub("", line.strip())))
                yield found.name.lower(), (found.specifier,)


def _of_python(wanted: object) -> Iterator[tuple[str, Allowed]]:
    if isinstance(wanted, str):
        with contextlib.suppress(InvalidSpecifier):
            yield "python", (SpecifierSet(_STAR.sub(r"\1\2", wanted)),)


def _requirements(text: str) -> Iterator[tuple[str, Allowed]]:
    return _parsed(text.splitlines())


def _pyproject(text: str) -> Iterator[tuple[str, Allowed]]:
    stated = tomllib.loads(text)
    project = _table(stated, "project")
    yield from _of_python(project.get("requires-python"))
    yield from _parsed(_list(project.get("dependencies")))
    for group in _table(project, "optional-dependencies").values():
        yield from _parsed(_list(group))
    poetry = _table(stated, "tool", "poetry")
    groups = [_table(group, "dependencies") for group in _table(poetry, "group").values()]
    for table in [_table(poetry, "dependencies"), *groups]:
        for name, wanted in table.items():
            version = wanted.get("version", "") if isinstance(wanted, dict) else wanted
            if name.lower() in ("torch", "python"):
                yield from _of_poetry(name.lower(), str(version))


def _of_poetry(name: str, wanted: str) -> Iterator[tuple[str, Allowed]]:
    """What poetry's own signs say: `^2.1` is `>=2.1,<3`, `~2.1` is `>=2.1,<2.2`, `2.1` is `==2.1`,
    `||` is "or".
    """
    ways = (way.strip() for way in wanted.split("||"))
    with contextlib.suppress(InvalidSpecifier):
        yield name, tuple(SpecifierSet(",".join(_clauses(way))) for way in ways)


def _clauses(wanted: str) -> Iterator[str]:
    for clause in re.split(r",|(?<=[\d*])\s+(?=\D)", wanted):
        found = _POETRY.fullmatch(clause.strip())
        if found is None:
            yield _STAR.sub(r"\1\2", clause.strip()) if clause.strip() != "*" else ""
        elif found[1] is None:
            yield f"=={found[2]}"
        else:
            yield f">={found[2]},<{_end(found[1], list(map(int, found[2].split('.'))))}"


def _end(sign: str, numbers: list[int]) -> str:
    """The first version that `^` or `~` leaves out."""
    first = next((at for at, number in enumerate(numbers) if number), 0)
    last = first if sign == "^" else min(1, len(numbers) - 1)
    return ".".join(map(str, [*numbers[:last], numbers[last] + 1]))


def _setup_cfg(text: str) -> Iterator[tuple[str, Allowed]]:
    import configparser  # few projects have such a file

    stated = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        stated.read_string(text)
    except configparser.Error as error:
        raise ValueError(error.message) from error
    yield from _of_python(stated.get("options", "python_requires", fallback=None))
    yield from _parsed(stated.get("options", "install_requires", fallback="").splitlines())
    if stated.has_section("options.extras_require"):
        for _, extra in stated.items("options.extras_require"):
            yield from _parsed(extra.splitlines())


def _setup_py(text: str) -> Iterator[tuple[str, Allowed]]:
    """The requirements among the strings of a `setup.py`, which is read and not run."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.keyword(arg="python_requires", value=ast.Constant(value=str(wanted))):
                yield from _of_python(wanted)
            case ast.Constant(value=str(string)):
                yield from _parsed([string])


def _table(stated: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        stated = stated.get(key) if isinstance(stated, dict) else None
    return stated if isinstance(stated, dict) else {}


def _list(stated: object) -> list[object]:
    return stated if isinstance(stated, list) else []
