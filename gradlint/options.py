"""Options of the commands: their callbacks, and the settings and files that they name."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from gradlint import completion, config
from gradlint.errors import UserError
from gradlint.report._place import printable
from gradlint.settings import Selection, Settings

if TYPE_CHECKING:
    from gradlint.source.files import SettingsFor

STDIN = "-"
FILE = click.Path(dir_okay=False, path_type=pathlib.Path)
FOLDER = click.Path(file_okay=False, path_type=pathlib.Path)
_Command = Callable[..., object]


def complain(message: str) -> int:
    """Says what is wrong with a call of the command; its exit code."""
    click.echo(f"gradlint: {printable(message)}", err=True)
    return 2


def parsed(
    parse: Callable[[Any], object],
) -> Callable[[click.Context, click.Parameter, Any], object]:
    """An option's callback: what `parse` makes of its value, whose complaint then names the
    option.
    """

    def callback(_context: click.Context, option: click.Parameter, value: Any) -> object:
        try:
            return None if value is None else parse(value)
        except UserError as error:
            raise UserError(f"{option.opts[-1]}: {error}") from None

    return callback


def codes_option(name: str, help_text: str) -> Callable[[_Command], _Command]:
    """An option that takes codes, separated by commas, once or more often."""
    return click.option(
        name, multiple=True, metavar="CODE,...", callback=parsed(config.split_codes),
        help=help_text,
        shell_complete=completion.codes,
    )  # fmt: skip


def refuse_misplaced(options: Mapping[str, Any], given: Mapping[pathlib.Path, bytes]) -> None:
    """Options that would do nothing are the user's mistake."""
    if options["verify"] and (options["diff"] or not options["fix"] or given):
        raise UserError("--verify goes with --fix, and with files")
    if options["command"] and not options["verify"]:
        raise UserError("--run goes with --verify")
    if options["unsafe_fixes"] and not (options["fix"] or options["diff"]):
        raise UserError("--unsafe-fixes goes with --fix or --diff")
    if options["statistics"] and options["output_format"] not in (None, "statistics"):
        raise UserError(
            "--statistics is a report of its own, beside --output-format "
            f"{options['output_format']}"
        )
    asked = [
        f"--{name.replace('_', '-')}"
        for name in ("fix", "diff", "write_baseline", "add_ignore")
        if options[name]
    ]
    if {"--write-baseline", "--add-ignore"} & set(asked) and len(asked) > 1:
        raise UserError(f"{' and '.join(asked)} are for runs of their own")
    if options["diff_base"] and {"--fix", "--diff", "--write-baseline"} & set(asked):
        raise UserError(f"--diff-base says what is reported: it is of no use with {asked[0]}")
    if options["shard"] and asked:
        raise UserError(f"--shard does a part of the work: it is of no use with {asked[0]}")
    silent = [f"--{name}" for name in ("gaps", "coverage") if options[name]]
    if silent and asked:
        raise UserError(f"{silent[0]} says nothing beside {asked[0]}")


def cache_folder(options: Mapping[str, Any], settings: Settings) -> pathlib.Path | None:
    """Where results are kept; nowhere with --no-cache, and for what comes from standard input."""
    from gradlint.cache import FOLDER

    if options["no_cache"] or STDIN in options["paths"]:
        return None
    return (options["cache_dir"] or settings.root / FOLDER).absolute()


def settings_finder(options: Mapping[str, Any]) -> SettingsFor:
    """The settings by folder, with what the command line says on top."""
    selection = Selection(options["select"] or None, options["extend_select"], options["ignore"])
    include = options["extend_include"]
    if options["statistics"]:
        options = {**options, "output_format": "statistics"}
    keys = ("baseline", "force_exclude", "parts", "output_format", "min_severity", "fail_on")
    values = {key: options[key] for key in keys if options[key] is not None}
    if options["write_baseline"]:
        values["baseline"] = None

    def override(settings: Settings) -> Settings:
        if options["assigned"]:
            settings = config.over(settings, options["assigned"], "--config", pathlib.Path.cwd())
        return settings.overridden(selection, options["exclude"], values, include)

    return config.settings_finder(override, isolated=options["isolated"])


def files_to_check(paths: Sequence[str], settings_for: SettingsFor) -> Sequence[pathlib.Path]:
    """The files to check under `paths`; a path that is not there, or nothing under any, is the
    user's fault.
    """
    from gradlint.source.files import discover, nearest

    for path in paths:
        if not os.path.lexists(path):
            raise UserError(f"{path}: no such file or folder{nearest(path)}")
    found = discover([pathlib.Path(path) for path in paths], settings_for)
    if paths and not found.files:
        message = f"nothing to check: no Python file under {', '.join(paths)}"
        message += (
            f" ({found.left_out} left out by settings or .gitignore)" if found.left_out else ""
        )
        if not found.left_out:
            raise UserError(message)
        complain(message)  # what was named is excluded on purpose
    return found.files


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_color(asked: str) -> bool:
    """Colours as asked, else for a terminal, unless NO_COLOR says otherwise; FORCE_COLOR wants them
    in a pipe, too.
    """
    if asked != "auto":
        return asked == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (
        sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    )
