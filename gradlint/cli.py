"""The commands. What they do stands elsewhere; here are their options and exit codes.

Exit codes: 0 when nothing at or above `--fail-on` was found, 1 when something was, 2 when the
command could not run.
"""

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
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gradlint import __version__, completion, config
from gradlint.errors import UserError, needing
from gradlint.guess import did_you_mean
from gradlint.mending import fix, write_fixed
from gradlint.options import (
    STDIN,
    cache_folder,
    codes_option,
    complain,
    cores,
    files_to_check,
    parsed,
    refuse_misplaced,
    settings_finder,
)
from gradlint.report import formats, render, shows_fixes
from gradlint.report._place import shown_path
from gradlint.trace.command import trace
from gradlint.writing import (
    list_gaps,
    reported_outcome,
    tell_own_mistakes,
    write,
    write_baseline,
    write_ignores,
)

if TYPE_CHECKING:
    from gradlint.checker import Checked
    from gradlint.config import Settings
    from gradlint.source.files import SettingsFor
_FORMATS = f"How to report: {', '.join(formats())}."
_FILE = click.Path(dir_okay=False, path_type=pathlib.Path)
_FOLDER = click.Path(file_okay=False, path_type=pathlib.Path)
BAR = 30  # characters
MEANT = {
    "help": "--help",
    "explain": "rule",
    "rules": "rule",
    "lint": "check",
    "run": "trace",
    "lsp": "server",
}
PATIENCE = 1.0  # seconds before a terminal is shown how far we are


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = gradlint.main(args=arguments, prog_name="gradlint", standalone_mode=False)
    except click.NoSuchOption as error:
        options = (
            [name for option in error.ctx.command.params for name in option.opts]
            if error.ctx
            else []
        )
        code = complain(
            f"no such option {error.option_name!r}{did_you_mean(error.option_name, options)}"
        )
    except click.ClickException as error:
        code = complain(error.format_message())
    except UserError as error:
        code = complain(str(error))
    except click.Abort:
        code = complain("interrupted")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # whoever read our output has seen enough
        code = 2
    except Exception:  # Python would leave with 1, which says that the code checked has findings
        import traceback

        traceback.print_exc()
        code = complain("this is a bug in gradlint, not in the code that it checks")
    sys.exit(code or 0)


class _Commands(click.Group):
    """The commands; of a word that stands for one elsewhere, it is said what it is called here."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            meant = (
                f"; `gradlint {MEANT[args[0]]}` is meant"
                if args[0] in MEANT
                else did_you_mean(args[0], self.commands)
            )
            raise click.UsageError(f"no such command {args[0]!r}{meant}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="gradlint", message="%(prog)s %(version)s")
@click.pass_context
def gradlint(context: click.Context) -> None:
    """Find where training code breaks autograd."""
    if (
        context.invoked_subcommand is None
    ):  # versions of click differ in how they take a bare command
        click.echo(context.get_help())


gradlint.add_command(trace)


@gradlint.command(
    short_help="Mend a copy of SCRIPT, run both, and compare.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def verify(words: tuple[str, ...]) -> int:
    """Mend a copy of SCRIPT, run both, and show side by side what they did."""
    from gradlint.fix.verify import verify as command

    code: int = command.main(args=list(words), prog_name="gradlint verify", standalone_mode=False)
    return code


@gradlint.command(short_help="Check Python files and notebooks.")
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
@click.option("--output-file", type=_FILE, help="Write the report to this file.")
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
@click.option("--cache-dir", type=_FOLDER, help="Where to keep them.  [default: .gradlint_cache]")
@click.option(
    "--statistics",
    is_flag=True,
    help="Count the findings by rule, as --output-format statistics does.",
)
@click.option("--coverage", type=_FILE, help="Write what was looked at to this file, as JSON.")
@click.option("--baseline", type=_FILE, help="Do not report the findings that this file holds.")
@click.option(
    "--diff-base", metavar="REV", help="Report only what is new since this commit of git."
)
@click.option("--importers", is_flag=True, help="Check the files that import PATH, too.")
@click.option(
    "--write-baseline", type=_FILE, help="Write the findings to this file, and leave with 0."
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
    from gradlint import checker, garbage
    from gradlint.source.document import file_of

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
    given = (
        {pathlib.Path(options["stdin_filename"] or STDIN): sys.stdin.buffer.read()}
        if STDIN in paths
        else {}
    )
    files = [*given, *_named(options, settings_for)]
    if options["show_files"]:
        click.echo("".join(f"{shown_path(str(file))}\n" for file in files), nl=False)
        return 0
    if not files:
        return 0
    refuse_misplaced(options, given)
    if options["fix"] or options["diff"]:
        return fix(files, settings_for, settings, given, options)
    cache = cache_folder(options, settings)
    with _progress(options) as progress:
        checked = checker.check(
            files, settings_for, given=given, jobs=options["jobs"] or cores(), cache=cache,
            progress=progress,
            keeps=cache is not None or shows_fixes(settings.output_format), shard=options["shard"],
        )  # fmt: skip
    if options["diff_base"] and checked.findings:
        checked = replace(checked, before=_before(files, settings_for, settings, options))
    if options["write_baseline"]:
        return write_baseline(options["write_baseline"], checked, settings)
    if options["add_ignore"]:
        on_disk = [
            each
            for each in checked.wanted(settings)
            if pathlib.Path(file_of(each.at.path)) not in given
        ]
        return write_ignores(on_disk, options["add_ignore"], settings)
    return _tell(checked, settings, options)


def _tell(checked: Checked, settings: Settings, options: Mapping[str, Any]) -> int:
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
        tell_own_mistakes(checked.gaps)
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
    """Checks, and checks again as soon as a file has changed: of the rest, what was found before is
    taken.
    """
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
        _tell(checked, settings, options)
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


@gradlint.command(short_help="Join the reports of the shards of a check.")
@click.argument("reports", nargs=-1, required=True, metavar="REPORT...", type=_FILE)
@click.option("--output-file", type=_FILE, help="Write the report to this file.")
@click.option(
    "--fail-on", metavar="SEVERITY", callback=parsed(config.parse_threshold),
    help="Exit with 1 from this severity on, or never.  [default: warning]",
    shell_complete=completion.words(lambda: (*config.SEVERITIES, "never")),
)  # fmt: skip
def merge(
    reports: tuple[pathlib.Path, ...],
    output_file: pathlib.Path | None,
    fail_on: config.Threshold | None,
) -> int:
    """Join the REPORTs (JSON or SARIF) of all shards of a check (`check --shard K/N`) into that of
    one run.
    """
    from gradlint.merge import merged

    text, severities = merged(reports)
    settings = config.settings_finder(lambda found: found)(pathlib.Path.cwd())
    write(text, output_file, settings)
    least = settings.fail_on if fail_on is None else fail_on
    return int(least != "never" and any(each >= least for each in severities))


@gradlint.command()
@click.option("--cache-dir", type=_FOLDER, help="The cache to remove.  [default: .gradlint_cache]")
def clean(cache_dir: pathlib.Path | None) -> None:
    """Remove the results that earlier runs have kept."""
    from gradlint import cache

    folder = (
        cache_dir
        or config.settings_finder(lambda settings: settings)(pathlib.Path.cwd()).root / cache.FOLDER
    )
    click.echo(f"Removed {folder}." if cache.clean(folder) else f"Nothing kept in {folder}.")


@gradlint.command(short_help="Run the fix of one rule over a tree.")
@click.argument("code")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--unsafe-fixes", is_flag=True, help="Mend what changes more than the bug, too.")
@click.option("--diff", is_flag=True, help="Show what would change, and change nothing.")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="How many processes to use.  [default: one a core]"
)
def codemod(
    code: str, paths: tuple[str, ...], unsafe_fixes: bool, diff: bool, jobs: int | None
) -> int:
    """Run the fix of the rule CODE (a code or a name) over the Python files under PATH."""
    from gradlint.codemods.run import Run, rule_of, settings_of

    rule = rule_of(code)
    settings_for = settings_of(rule)
    run = Run(rule, files_to_check(paths, settings_for), unsafe_fixes, jobs or cores())
    repaired = run.repaired()
    if diff:
        click.echo("".join(repaired.diff()), nl=False)
    failed = not diff and not write_fixed(repaired, {}, settings_for(pathlib.Path.cwd()))
    click.echo(run.summary(repaired, "would mend" if diff else "mended"), err=True)
    return 2 if failed else int(diff and bool(repaired.contents))


@gradlint.command(short_help="Print the page of a rule, or the list of all.")
@click.argument("code", required=False, shell_complete=completion.rule_names)
@click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def rule(code: str | None, output_format: str) -> None:
    """Print the page of the rule CODE (a code or a name), or the list of all rules."""
    from gradlint.report._object import rules_as_json
    from gradlint.rule import rules

    if code is not None:
        known = {name: each for each in rules().values() for name in (each.code, each.name)}
        found = known.get(code.upper()) or known.get(code.lower())
        if found is None:
            raise UserError(f"no rule has the code or name {code!r}{did_you_mean(code, known)}")
        click.echo(rules_as_json(found) if output_format == "json" else found.page, nl=False)
    elif output_format == "json":
        click.echo(rules_as_json(tuple(rules().values())), nl=False)
    else:
        for each in rules().values():
            click.echo(f"{each.code}  {each.severity.label:7}  {each.name}")


@gradlint.command("completion", short_help="Print what a shell completes gradlint's words with.")
@click.argument("shell", type=click.Choice(completion.SHELLS))
def completion_script(shell: str) -> None:
    """Print the completion of SHELL, for its settings: `eval "$(gradlint completion bash)"`."""
    click.echo(completion.script(gradlint, shell))


@gradlint.command(short_help="Answer an editor (the language server).")
def server() -> None:
    """Answer an editor on standard input and output (the Language Server Protocol)."""
    with needing(
        "pygls",
        "lsprotocol",
        told="the language server needs pygls: pip install 'torch-gradlint[lsp]'",
    ):
        from gradlint.lsp.messages import serve
    serve()


@gradlint.command(short_help="Answer a coding agent (the Model Context Protocol).")
def mcp() -> None:
    """Answer a coding agent on standard input and output (the Model Context Protocol)."""
    with needing(
        "mcp", "mcp_types", "anyio", told="the server needs mcp: pip install 'torch-gradlint[mcp]'"
    ):
        from gradlint.agents import serve
    serve()
