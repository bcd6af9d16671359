"""The command `check`: its options, and what is done with what a check has found."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import pathlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from gradlint import completion, config
from gradlint.errors import UserError
from gradlint.mending import fix
from gradlint.options import (
    FILE,
    FOLDER,
    STDIN,
    cache_folder,
    codes_option,
    cores,
    files_to_check,
    parsed,
    refuse_misplaced,
    settings_finder,
)
from gradlint.report import formats, render, shows_fixes
from gradlint.report._place import shown_path
from gradlint.writing import (
    list_gaps,
    report_internal_errors,
    reported_outcome,
    write,
    write_baseline,
    write_ignores,
)

if TYPE_CHECKING:
    from gradlint.checker import Checked
    from gradlint.settings import Settings
    from gradlint.source.files import SettingsFor

_FORMATS = f"How to report: {', '.join(formats())}."
BAR = 30  # characters
PATIENCE = 1.0  # seconds before a terminal is shown how far we are


@click.command(short_help="Check Python files and notebooks.")
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(allow_dash=True))
@codes_option("--select", "Use these rules only: codes, their beginnings, or ALL.")
@codes_option("--extend-select", "Use these rules, too.")
@codes_option("--ignore", "Leave these rules out.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave out files and folders, as in a .gitignore.",
)
@click.option(
    "--extend-include", multiple=True, metavar="PATTERN", help="Check these files, too: '*.md'."
)
@click.option(
    "--force-exclude", is_flag=True, default=None, help="Exclude files that are named as PATH, too."
)
@click.option(
    "--no-parts",
    "parts",
    flag_value=False,
    default=None,
    help="Leave out what has no trainer in view.",
)
@click.option(
    "--output-format", metavar="FORMAT", callback=parsed(config.parse_format), help=_FORMATS,
    shell_complete=completion.words(formats),
)  # fmt: skip
@click.option("--output-file", type=FILE, help="Write the report to this file.")
@click.option(
    "--min-severity", metavar="SEVERITY", callback=parsed(config.parse_severity),
    help="Report nothing below note, warning or error.",
    shell_complete=completion.words(lambda: config.SEVERITIES),
)  # fmt: skip
@click.option(
    "--fail-on", metavar="SEVERITY", callback=parsed(config.parse_threshold),
    help="Exit with 1 from this severity on, or never.  [default: warning]",
    shell_complete=completion.words(lambda: (*config.SEVERITIES, "never")),
)  # fmt: skip
@click.option("--fix", is_flag=True, help="Mend what can be mended safely.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="With --fix or --diff: mend what changes more than the bug, too.",
)
@click.option("--diff", is_flag=True, help="Show what --fix would change, and change nothing.")
@click.option(
    "--verify",
    is_flag=True,
    help="With --fix: run the program before and after, and write only if all is well.",
)
@click.option(
    "--run", "command", metavar="COMMAND", help="What --verify runs: 'train.py --epochs 1'."
)
@click.option(
    "--jobs", type=click.IntRange(min=1), help="How many processes to use.  [default: one a core]"
)
@click.option(
    "--shard", metavar="K/N", callback=parsed(config.parse_shard),
    help="Do the K-th of N parts of the work; `gradlint merge` joins their reports.",
)  # fmt: skip
@click.option(
    "--no-cache", is_flag=True, help="Neither use nor keep the results of unchanged files."
)
@click.option("--cache-dir", type=FOLDER, help="Where to keep them.  [default: .gradlint_cache]")
@click.option(
    "--statistics",
    is_flag=True,
    help="Count the findings by rule, as --output-format statistics does.",
)
@click.option("--coverage", type=FILE, help="Write what was looked at to this file, as JSON.")
@click.option("--baseline", type=FILE, help="Do not report the findings that this file holds.")
@click.option(
    "--diff-base", metavar="REV", help="Report only what is new since this commit of git."
)
@click.option("--importers", is_flag=True, help="Check the files that import PATH, too.")
@click.option(
    "--write-baseline", type=FILE, help="Write the findings to this file, and leave with 0."
)
@click.option(
    "--add-ignore", metavar="REASON", help="Write a suppression with this reason for each finding."
)
@click.option("--gaps", is_flag=True, help="List on standard error where the analysis gave up.")
@click.option(
    "--stdin-filename", metavar="PATH", help="What to call standard input, which `-` reads."
)
@click.option(
    "--watch", is_flag=True, help="Check again what a change of a file touches, until Ctrl-C."
)
@click.option(
    "--show-files", is_flag=True, help="List the files that would be checked, and check nothing."
)
@click.option(
    "--show-settings", is_flag=True, help="Show the settings for the first PATH, and check nothing."
)
@click.option(
    "--config", "assigned", multiple=True, metavar="KEY=VALUE", callback=parsed(config.assigned),
    help="A setting, as in pyproject.toml, which it outweighs.",
)  # fmt: skip
@click.option("--isolated", is_flag=True, help="Read no settings from pyproject.toml.")
@click.option("-q", "--quiet", is_flag=True, help="Print findings, and nothing else.")
@click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
    help="Colours: for terminals, or as said.",
)  # fmt: skip
def check(paths: tuple[str, ...], **options: Any) -> int:
    """Check the Python files under PATH (by default, under this folder)."""
    from gradlint import garbage

    garbage.collect_seldom()
    # what is left dies with the process: the search for cycles in it was a fifth of a run
    atexit.register(gc.freeze)
    options["paths"] = paths
    settings_for = settings_finder(options)
    settings = settings_for(pathlib.Path.cwd())
    if options["show_settings"]:
        click.echo(config.shown(settings_for(_folder_of(paths))), nl=False)
        return 0
    if options["watch"]:
        return _watch(options)
    given = _from_standard_input(options)
    files = [*given, *_named(options, settings_for)]
    if options["show_files"]:
        click.echo("".join(f"{shown_path(str(file))}\n" for file in files), nl=False)
        return 0
    if not files:
        return 0
    refuse_misplaced(options, given)
    if options["fix"] or options["diff"]:
        return fix(files, settings_for, settings, given, options)
    return _written(_checked(files, settings_for, given, options), settings, given, options)


def _from_standard_input(options: Mapping[str, Any]) -> dict[pathlib.Path, bytes]:
    """What standard input holds, by the name that it goes by, where `-` is among the paths."""
    if STDIN not in options["paths"]:
        return {}
    return {pathlib.Path(options["stdin_filename"] or STDIN): sys.stdin.buffer.read()}


def _checked(
    files: Sequence[pathlib.Path],
    settings_for: SettingsFor,
    given: Mapping[pathlib.Path, bytes],
    options: Mapping[str, Any],
) -> Checked:
    """What is found in the files, and what was found in the base that they are compared with."""
    from gradlint import checker

    settings = settings_for(pathlib.Path.cwd())
    cache = cache_folder(options, settings)
    with _progress(options) as progress:
        checked = checker.check(
            files, settings_for, given=given, jobs=options["jobs"] or cores(), cache=cache,
            progress=progress,
            keeps=cache is not None or shows_fixes(settings.output_format), shard=options["shard"],
        )  # fmt: skip
    if options["diff_base"] and checked.findings:
        return replace(checked, before=_before(files, settings_for, settings, options))
    return checked


def _written(
    checked: Checked,
    settings: Settings,
    given: Mapping[pathlib.Path, bytes],
    options: Mapping[str, Any],
) -> int:
    """Writes what was found as a baseline, as suppressions or as a report; the exit code."""
    from gradlint.source.document import file_of

    if options["write_baseline"]:
        return write_baseline(options["write_baseline"], checked, settings)
    if options["add_ignore"]:
        on_disk = [
            each
            for each in checked.wanted(settings)
            if pathlib.Path(file_of(each.at.path)) not in given
        ]
        return write_ignores(on_disk, options["add_ignore"], settings)
    return _report(checked, settings, options)


def _report(checked: Checked, settings: Settings, options: Mapping[str, Any]) -> int:
    """Writes the report of a check, and what else is asked for beside it; the exit code."""
    from gradlint.coverage import as_json

    outcome = reported_outcome(checked, settings, options)
    write(render(settings.output_format, outcome), options["output_file"], settings)
    if options["coverage"]:
        write(
            as_json(checked.coverage, checked.texts.located),
            options["coverage"],
            settings,
            "--coverage",
        )
    if options["gaps"]:
        gaps = sorted((*checked.gaps, *checked.unreached), key=lambda gap: gap.sort_key)
        list_gaps([replace(gap, at=checked.texts.located(gap.at)) for gap in gaps])
    else:
        report_internal_errors(checked.gaps)
    return int(settings.fails(outcome.findings))


def _named(options: Mapping[str, Any], settings_for: SettingsFor) -> Sequence[pathlib.Path]:
    """The files that the command line names; standard input is none."""
    files = files_to_check(
        [path for path in options["paths"] or (".",) if path != STDIN], settings_for
    )
    if not options["importers"] or not files:
        return files
    from gradlint.importers import importers
    from gradlint.source.files import discover

    roots = dict.fromkeys(settings_for(file.absolute().parent).root for file in files)
    return [*files, *importers(files, discover(list(roots), settings_for).files)]


def _before(
    files: Sequence[pathlib.Path],
    settings_for: SettingsFor,
    settings: Settings,
    options: Mapping[str, Any],
) -> frozenset[str]:
    """The fingerprints of what was found in the commit that is the base."""
    from gradlint.since import found_before

    try:
        return found_before(
            options["diff_base"], files, settings_for, settings, options["jobs"] or cores()
        )
    except UserError as error:
        raise UserError(f"--diff-base: {error}") from None


def _folder_of(paths: Sequence[str]) -> pathlib.Path:
    """The folder of the first path: that itself, or where the file stands."""
    first = pathlib.Path(os.path.abspath(next((path for path in paths if path != STDIN), ".")))
    return first if first.is_dir() else first.parent


def _watch(options: Mapping[str, Any]) -> int:
    """Checks, and checks again once a file has changed; results of the other files are reused."""
    from gradlint import checker
    from gradlint.watch import wait, watch

    if refused := [
        name
        for name in ("fix", "diff", "write_baseline", "add_ignore", "diff_base", "shard")
        if options[name]
    ]:
        raise UserError(
            f"--watch tells all there is: it is of no use with --{refused[0].replace('_', '-')}"
        )
    if STDIN in options["paths"]:
        raise UserError("--watch goes with files")

    def look(before: Checked | None) -> tuple[Checked, Sequence[pathlib.Path]]:
        settings_for = settings_finder(options)
        settings = settings_for(pathlib.Path.cwd())
        files = _named(options, settings_for)
        cache = cache_folder(options, settings) if before is None else None
        with _progress(options) as progress:
            checked = checker.check(
                files, settings_for, given={}, jobs=options["jobs"] or cores(), cache=cache,
                progress=progress,
                before=before,
            )  # fmt: skip
        if sys.stdout.isatty():
            click.clear()
        _report(checked, settings, options)
        sys.stdout.flush()
        folders = {file.parent for file in files} | {settings.root}  # a new file changes its folder
        return checked, [*files, *checked.kept.records, *folders, settings.root / "pyproject.toml"]

    watch(look, wait)
    return 0


@contextlib.contextmanager
def _progress(options: Mapping[str, Any]) -> Iterator[Callable[[int, int], None]]:
    """Shows on a terminal how many files are done, once it takes long; it is gone again at the
    end.
    """
    began = time.monotonic()
    shown, wanted = False, sys.stderr.isatty() and not options["quiet"]

    def progress(done: int, size: int) -> None:
        nonlocal shown
        if wanted and (shown or time.monotonic() - began > PATIENCE):
            shown = True
            filled = BAR * done // max(size, 1)
            click.echo(
                f"\r[{'#' * filled}{'-' * (BAR - filled)}] {done}/{size} files", nl=False, err=True
            )

    try:
        yield progress
    finally:
        if shown:
            click.echo("\r\x1b[K", nl=False, err=True)
