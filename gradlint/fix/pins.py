"""Which versions of a package a project wants, by what it says of its dependencies and of Python."""

from __future__ import annotations

import ast
import functools
import pathlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any

Version = tuple[int, ...]
_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt")
_CLAUSE = re.compile(r"(===|==|~=|!=|<=|>=|\^|~|<|>|=)?\s*v?(\d+(?:\.\d+)*)")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?\s*([^;#)@]*)")
# The last torch that runs on a version of Python.
_NEWEST_TORCH: tuple[tuple[Version, Version], ...] = (
    ((3, 6), (1, 10)),
    ((3, 7), (1, 13)),
    ((3, 8), (2, 4)),
    ((3, 9), (2, 8)),
)


def allows_torch(file: pathlib.Path, version: Version) -> bool:
    """Whether every torch that the project around `file` supports is at least `version`, as far as it says."""
    project = _project(file)
    if project is None:
        return True
    wanted = list(_wanted(project))
    torches = [specifier for name, specifier in wanted if name == "torch" and _CLAUSE.search(specifier)]
    if any(_is_newer(version, _highest(each)) or _is_older(_lowest(each), version) for each in torches):
        return False
    if any(_lowest(each) is not None for each in torches):
        return True
    pythons = [_lowest(specifier) for name, specifier in wanted if name == "python"]
    newest = (torch for lowest in pythons if lowest for python, torch in _NEWEST_TORCH if lowest[:2] <= python)
    return next(newest, version) >= version


def _is_older(lowest: Version | None, version: Version) -> bool:
    return lowest is not None and lowest < version


def _is_newer(version: Version, highest: tuple[Version, bool] | None) -> bool:
    """Whether nothing from `version` on is allowed."""
    if highest is None:
        return False
    limit, included = highest
    return version > limit if included else version >= limit


def _lowest(specifier: str) -> Version | None:
    """The oldest version that is allowed; None where none is named."""
    found = [
        _numbers(v)
        for sign, v in _CLAUSE.findall(specifier)
        if sign in ("==", "===", ">=", ">", "~=", "^", "~", "=", "")
    ]
    if "||" in specifier or " or " in specifier:
        return min(found, default=None)
    return max(found, default=None)


def _highest(specifier: str) -> tuple[Version, bool] | None:
    """The end of what is allowed, and whether it belongs to it."""
    found = [(_numbers(v), sign == "<=") for sign, v in _CLAUSE.findall(specifier) if sign in ("<", "<=")]
    return min(found, default=None)


def _numbers(version: str) -> Version:
    return tuple(map(int, version.split(".")))


def _project(file: pathlib.Path) -> pathlib.Path | None:
    """The nearest folder around a file that says what it needs."""
    for folder in file.absolute().parents:
        if any((folder / name).is_file() for name in _FILES):
            return folder
        if (folder / ".git").exists():
            return None
    return None


@functools.lru_cache(maxsize=64)
def _read(path: pathlib.Path, _changed: int) -> tuple[tuple[str, str], ...]:
    text = path.read_bytes().decode(errors="replace")
    readers = {"pyproject.toml": _pyproject, "setup.cfg": _setup_cfg, "setup.py": _setup_py}
    return tuple(readers.get(path.name, _requirements)(text))


def _wanted(project: pathlib.Path) -> Iterator[tuple[str, str]]:
    """The packages (and `python`) that a project names, each with its versions."""
    named = [project / name for name in _FILES]
    others = [*project.glob("requirements*.txt"), *project.glob("requirements/*.txt")]
    for path in dict.fromkeys([*named, *sorted(others)]):
        try:
            yield from _read(path, path.stat().st_mtime_ns)
        except (OSError, ValueError, RecursionError, SyntaxError):
            continue  # a file that cannot be read says nothing


def _parsed(lines: Iterable[object]) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = _REQUIREMENT.match(line) if isinstance(line, str) else None
        if match:
            yield match[1].lower(), match[2].strip()


def _requirements(text: str) -> Iterator[tuple[str, str]]:
    return _parsed(text.splitlines())


def _pyproject(text: str) -> Iterator[tuple[str, str]]:
    told = tomllib.loads(text)
    project = _table(told, "project")
    yield "python", str(project.get("requires-python", ""))
    yield from _parsed(_list(project.get("dependencies")))
    for group in _table(project, "optional-dependencies").values():
        yield from _parsed(_list(group))
    poetry = _table(told, "tool", "poetry")
    groups = [_table(group, "dependencies") for group in _table(poetry, "group").values()]
    for table in [_table(poetry, "dependencies"), *groups]:
        for name, wanted in table.items():
            version = wanted.get("version", "") if isinstance(wanted, dict) else wanted
            yield name.lower(), str(version)


def _setup_cfg(text: str) -> Iterator[tuple[str, str]]:
    import configparser  # few projects have such a file

    told = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        told.read_string(text)
    except configparser.Error as error:
        raise ValueError(error.message) from error
    yield "python", told.get("options", "python_requires", fallback="")
    yield from _parsed(told.get("options", "install_requires", fallback="").splitlines())
    if told.has_section("options.extras_require"):
        for _, extra in told.items("options.extras_require"):
            yield from _parsed(extra.splitlines())


def _setup_py(text: str) -> Iterator[tuple[str, str]]:
    """The requirements among the strings of a `setup.py`, which is read and not run."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.keyword(arg="python_requires", value=ast.Constant(value=str(wanted))):
                yield "python", wanted
            case ast.Constant(value=str(string)) if re.match(r"torch\s*[=<>~!]", string):
                yield from _parsed([string])


def _table(told: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        told = told.get(key) if isinstance(told, dict) else None
    return told if isinstance(told, dict) else {}


def _list(told: object) -> list[object]:
    return told if isinstance(told, list) else []
