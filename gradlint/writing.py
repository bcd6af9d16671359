"""What a check writes beside its report: baselines, ignored codes, and what was not looked at."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from gradlint.errors import UserError
from gradlint.options import complain, cores, has_color
from gradlint.report import shows_fixes
from gradlint.report._place import count, printable

if TYPE_CHECKING:
    from gradlint.checker import Checked
    from gradlint.finding import Finding
    from gradlint.interpret.gaps import Gap
    from gradlint.report import Outcome
    from gradlint.settings import Settings


def reported_outcome(checked: Checked, settings: Settings, options: Mapping[str, Any]) -> Outcome:
    """What is to be reported, with fixes where the format shows them."""
    found: Iterable[Finding] = checked.shown(settings)
    if checked.findings and shows_fixes(settings.output_format):
        from gradlint.fix.offers import offered

        found = offered(checked, settings, options["jobs"] or cores())
    color = options["output_file"] is None and has_color(options["color"])
    return checked.outcome(settings, color=color, quiet=options["quiet"], findings=found)


def write_baseline(file: pathlib.Path, checked: Checked, settings: Settings) -> int:
    """Writes a baseline of what was found; the exit code."""
    from gradlint import baseline
    from gradlint.fingerprint import fingerprints

    names = fingerprints(checked.outcome(settings).findings, checked.texts.quoted, settings.root)
    size, gone = baseline.write(file, names, checked.files, settings.root)
    click.echo(f"{file}: {size} in the baseline, {gone} gone.")
    return 0


def write_ignores(findings: Sequence[Finding], reason: str, settings: Settings) -> int:
    """Writes a comment with a reason on the line of each finding; the exit code."""
    from gradlint.annotate import add_ignores

    if "\n" in reason or not reason.strip():
        raise UserError("--add-ignore: the reason must be one line of text")
    written, left = add_ignores(findings, reason.strip(), settings.root)
    for finding in left:
        complain(f"{finding.at}: {finding.code} is left: no comment can stand there")
    click.echo(f"Suppressed: {written}.")
    return int(bool(left))


def write(
    text: str, file: pathlib.Path | None, settings: Settings, option: str = "--output-file"
) -> None:
    """Writes a text to a file, or to standard output where none is given."""
    if file is None:
        click.echo(text, nl=False, color=True)
        return
    from gradlint import output

    try:
        output.write(file, text, settings.root)
    except UserError as error:
        raise UserError(f"{option}: {error}") from None


def report_internal_errors(gaps: Sequence[Gap]) -> None:
    """Says that something was not looked at: silence about it would be taken for praise."""
    mistakes = [gap for gap in gaps if gap.kind == "internal"]
    if mistakes:
        complain(
            f"a bug in gradlint kept it from analysing {count(len(mistakes), 'place')}; "
            "--gaps says where"
        )


def list_gaps(gaps: Sequence[Gap]) -> None:
    """Lists where the analysis gave up, and why."""
    for gap in gaps:
        click.echo(printable(f"{gap.at}: gap[{gap.kind}] {gap.detail}"), err=True)
    for kind, number in sorted(collections.Counter(gap.kind for gap in gaps).items()):
        click.echo(f"{number:6} {kind}", err=True)
    click.echo(f"{len(gaps):6} gaps in all", err=True)
