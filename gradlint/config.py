"""`[tool.gradlint]` of the nearest pyproject.toml as frozen settings; every complaint names the
file and the key.
"""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gradlint.errors import UserError
from gradlint.finding import Severity
from gradlint.guess import did_you_mean
from gradlint.parallel import Shard
from gradlint.report import formats
from gradlint.report._place import shown_path
from gradlint.rule import rules
from gradlint.settings import EVERY, Selection, Settings, Threshold, patterns

SEVERITIES = tuple(severity.label for severity in Severity)


def settings_finder(
    override: Callable[[Settings], Settings], *, isolated: bool = False
) -> Callable[[pathlib.Path], Settings]:
    """Tells the settings that hold in a folder: those of the nearest pyproject.toml that has any,
    else the defaults.

    `isolated`: no file is read.
    """

    @functools.cache
    def settings_for(folder: pathlib.Path) -> Settings:
        if isolated:
            return override(Settings(pathlib.Path.cwd()))
        file = folder / "pyproject.toml"
        if file.is_file() and (table := _table(file)) is not None:
            return override(read(table, file))
        return (
            override(Settings(pathlib.Path.cwd()))
            if folder == folder.parent
            else settings_for(folder.parent)
        )

    return settings_for


def read(table: Mapping[str, Any], file: pathlib.Path) -> Settings:
    """The settings in the table `[tool.gradlint]` of `file`."""
    return over(
        Settings(file.parent), table, f"{shown_path(str(file))}: [tool.gradlint]", file.parent
    )


def over(settings: Settings, table: Mapping[str, Any], place: str, root: pathlib.Path) -> Settings:
    """These settings with those of a table on top: `place` says where it stands, and paths in it
    begin at `root`.
    """
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise UserError(f"{place} has no setting {key!r}{did_you_mean(key, _KEYS)}")
        try:
            values[key.replace("-", "_")] = _KEYS[key](value)
        except UserError as error:
            raise UserError(f"{place} {key}: {error}") from None
    if "baseline" in values:
        values["baseline"] = root / values["baseline"]
    select, extend, ignore = (values.pop(key, default) for key, default in _SELECTION)
    kept = () if select is not None else settings.selections
    return replace(settings, selections=(*kept, Selection(select, extend, ignore)), **values)


def assigned(words: Iterable[str]) -> Mapping[str, Any]:
    """The table that `KEY=VALUE` words make: a value is written as in TOML, or is a plain word."""
    table: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise UserError(f"must be KEY=VALUE, not {word!r}")
        table[key.strip()] = _toml(value.strip())
    return table


def _toml(text: str) -> object:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def shown(settings: Settings) -> str:
    """The settings as a table of TOML that brings them about; the rules by their codes."""
    values = {
        key: getattr(settings, key.replace("-", "_"))
        for key in _KEYS
        if key not in ("select", *_ADDED)
    }
    values = {"select": [code for code in rules() if settings.selects(code)], **values}
    lines = [f"{key} = {_as_toml(value)}" for key, value in values.items() if value is not None]
    return (
        "\n".join(
            [f"# of the files below {shown_path(str(settings.root))}", "[tool.gradlint]", *lines]
        )
        + "\n"
    )


def _as_toml(value: object) -> str:
    import json

    if isinstance(value, Mapping):
        rows = (f"{json.dumps(key)} = {_as_toml(held)}" for key, held in value.items())
        return f"{{{', '.join(rows)}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_as_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value.label if isinstance(value, Severity) else str(value))


def parse_codes(words: Sequence[str]) -> tuple[str, ...]:
    """Codes or beginnings of codes, each held against the rules that there are."""
    for word in words:
        if word != EVERY and not (word and any(code.startswith(word) for code in rules())):
            raise UserError(f"no rule has the code {word!r}{did_you_mean(word, (*rules(), EVERY))}")
    return tuple(words)


def split_codes(words: Sequence[str]) -> tuple[str, ...]:
    """The codes in the words of a command line, each of which can hold several, in either case,
    between commas.
    """
    return parse_codes(
        [code.strip().upper() for word in words for code in word.split(",") if code.strip()]
    )


def parse_format(word: object) -> str:
    """The report format that `word` names."""
    return _one_of(formats())(word)


def parse_severity(word: object) -> Severity:
    """The severity that `word` names."""
    return Severity.parse(_one_of(SEVERITIES)(word))


def parse_shard(word: str) -> Shard:
    """The part of the work that `K/N` names."""
    number, slash, of = word.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise UserError(f"must be K/N, the K-th of N parts, not {word!r}")
    return Shard(int(number), int(of))


def parse_threshold(word: object) -> Threshold:
    """The least severity that fails, or that none does."""
    return "never" if _one_of((*SEVERITIES, "never"))(word) == "never" else parse_severity(word)


def _table(file: pathlib.Path) -> Mapping[str, Any] | None:
    import tomllib

    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except RecursionError:
        raise UserError(f"{shown_path(str(file))}: cannot be read: nested too deeply") from None
    except (ValueError, OSError) as error:
        raise UserError(f"{shown_path(str(file))}: cannot be read: {error}") from None
    table = tool.get("gradlint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UserError(f"{shown_path(str(file))}: tool.gradlint must be a table")
    return table


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UserError(f"must be a list of strings, not {value!r}")
    return tuple(value)


def _globs(value: object) -> tuple[str, ...]:
    globs = _strings(value)
    patterns(globs)
    return globs


def _codes(value: object) -> tuple[str, ...]:
    return parse_codes(_strings(value))


def _codes_by_pattern(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise UserError(f"must be a table from patterns to codes, not {value!r}")
    patterns(value)
    return {pattern: _codes(codes) for pattern, codes in value.items()}


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise UserError(f"must be a string, not {value!r}")
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise UserError(f"must be true or false, not {value!r}")
    return value


def _one_of(words: Sequence[str]) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if _string(value) not in words:
            raise UserError(
                f"must be one of {', '.join(words)}, not {value!r}{did_you_mean(str(value), words)}"
            )
        return str(value)

    return parse


def _version(value: object) -> str:
    """Which versions of gradlint may run here, as in requirements; a version by itself is the only
    one.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from gradlint import __version__

    text = _string(value)
    try:
        allowed = SpecifierSet(f"=={text}" if text[:1].isdigit() else text, prereleases=True)
    except InvalidSpecifier:
        raise UserError(f"must say versions as requirements do (`>=0.1`), not {value!r}") from None
    if __version__ not in allowed:
        raise UserError(f"this is gradlint {__version__}, and {text!r} is asked for")
    return text


_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "select": _codes,
    "extend-select": _codes,
    "ignore": _codes,
    "exclude": _globs,
    "extend-exclude": _globs,
    "extend-include": _strings,
    "per-file-ignores": _codes_by_pattern,
    "respect-gitignore": _boolean,
    "force-exclude": _boolean,
    "parts": _boolean,
    "exclude-parts": _globs,
    "output-format": parse_format,
    "min-severity": parse_severity,
    "fail-on": parse_threshold,
    "baseline": _string,
    "required-version": _version,
}
_ADDED = ("extend-select", "ignore")
_SELECTION: tuple[tuple[str, Any], ...] = (("select", None), ("extend_select", ()), ("ignore", ()))


def keys() -> frozenset[str]:
    """The names of all settings."""
    return frozenset(_KEYS)
