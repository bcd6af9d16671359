"""What `check --fix` does: files are mended, or it is shown what would change."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from gradlint.errors import UserError
from gradlint.options import cache_folder, complain, cores
from gradlint.report import render
from gradlint.writing import report_internal_errors, reported_outcome, write

if TYPE_CHECKING:
    from gradlint.fix.apply import Repaired
    from gradlint.settings import Settings
    from gradlint.source.files import SettingsFor


def fix(
    files: Sequence[pathlib.Path], settings_for: SettingsFor, settings: Settings,
    given: Mapping[pathlib.Path, bytes], options: Mapping[str, Any],
) -> int:  # fmt: skip
    """Mends the files, or shows what it would change; what comes from standard input goes to
    standard output.
    """
    from gradlint.fix.apply import Task, repair

    jobs = options["jobs"] or cores()
    cache = cache_folder(options, settings)
    repaired = repair(
        Task(files, settings_for, settings, options["unsafe_fixes"], jobs, given, cache)
    )
    if options["diff"]:
        click.echo("".join(repaired.diff()), nl=False)
        if not options["quiet"]:
            click.echo(f"Would fix: {repaired.fixed}.", err=True)
        return int(bool(repaired.contents))
    if options["verify"] and not _is_proved(files, repaired, settings, options):
        return 1
    failed = not write_fixed(repaired, given, settings)
    report_internal_errors(repaired.checked.gaps)
    outcome = reported_outcome(repaired.checked, settings, options)
    report = render(settings.output_format, outcome)
    if given:
        click.echo(report, nl=False, err=True)
    else:
        write(report, options["output_file"], settings)
    if not options["quiet"]:
        click.echo(f"Fixed: {repaired.fixed}. Left: {len(outcome.findings)}.", err=True)
    return 2 if failed else int(settings.fails(outcome.findings))


def _is_proved(
    files: Sequence[pathlib.Path],
    repaired: Repaired,
    settings: Settings,
    options: Mapping[str, Any],
) -> bool:
    """Whether the scripts that run what was mended do so cleanly, in a copy; nothing is written
    here.
    """
    import shlex

    from gradlint.fix.scripts import scripts_of
    from gradlint.fix.verify import compare, root_of

    if not repaired.contents:
        return True
    commands = [shlex.split(options["command"] or "")]
    if not commands[0]:
        commands = [
            [str(path)] for path in scripts_of(files, repaired.contents, repaired.checked.texts)
        ]
    if not commands:
        raise UserError(
            "--verify: no script here runs what was mended; name one: --run 'SCRIPT [ARG]...'"
        )
    compared = [compare(root_of(settings.root), repaired, words) for words in commands]
    for words, each in zip(commands, compared, strict=True):
        click.echo(f"{shlex.join(words)}\n{each.page()}", nl=False, err=True)
    if not all(each.holds for each in compared):
        click.echo(
            "gradlint: nothing is written, since a mended program does not run as it should",
            err=True,
        )
        return False
    return True


def write_fixed(
    repaired: Repaired, given: Mapping[pathlib.Path, bytes], settings: Settings
) -> bool:
    """Writes what was mended; whether all of it could be written."""
    from gradlint.output import remove_leftovers, replace_file

    remove_leftovers({file.parent for file in repaired.checked.files if file not in given})
    done = True
    for path, content in {**given, **repaired.contents}.items():
        if path in given:
            sys.stdout.buffer.write(content)
            continue
        try:
            replace_file(path, repaired.originals[path], content, settings.root)
        except UserError as error:
            done = False
            complain(str(error))
    return done
