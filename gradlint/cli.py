"""The commands of gradlint, with their options and exit codes; `check` and `trace` have files of
their own.

Exit codes: 0 when nothing at or above `--fail-on` was found, 1 when something was, 2 when the
command could not run.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from gradlint import __version__, completion, config
from gradlint.checking import check
from gradlint.errors import UserError, needing
from gradlint.guess import did_you_mean
from gradlint.mending import write_fixed
from gradlint.options import FILE, FOLDER, complain, cores, files_to_check, parsed
from gradlint.settings import Threshold
from gradlint.trace.command import trace
from gradlint.writing import write

MEANT = {
    "help": "--help",
    "explain": "rule",
    "rules": "rule",
    "lint": "check",
    "run": "trace",
    "lsp": "server",
}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = gradlint.main(args=arguments, prog_name="gradlint", standalone_mode=False)
    except click.NoSuchOption as error:
        parameters = error.ctx.command.params if error.ctx else []
        known = [name for option in parameters for name in option.opts]
        meant = did_you_mean(error.option_name, known)
        code = complain(f"no such option {error.option_name!r}{meant}")
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
    # versions of click differ in how they take a bare command
    if context.invoked_subcommand is None:
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


gradlint.add_command(check)


@gradlint.command(short_help="Join the reports of the shards of a check.")
@click.argument("reports", nargs=-1, required=True, metavar="REPORT...", type=FILE)
@click.option("--output-file", type=FILE, help="Write the report to this file.")
@click.option(
    "--fail-on", metavar="SEVERITY", callback=parsed(config.parse_threshold),
    help="Exit with 1 from this severity on, or never.  [default: warning]",
    shell_complete=completion.words(lambda: (*config.SEVERITIES, "never")),
)  # fmt: skip
def merge(
    reports: tuple[pathlib.Path, ...],
    output_file: pathlib.Path | None,
    fail_on: Threshold | None,
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
@click.option("--cache-dir", type=FOLDER, help="The cache to remove.  [default: .gradlint_cache]")
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
