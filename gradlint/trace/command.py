"""`gradlint trace`: run a program, watch what autograd does, and report."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import click

from gradlint import completion
from gradlint.config import SEVERITIES
from gradlint.errors import NEEDS_TORCH, needing
from gradlint.report import formats

# which is about the files of a check
_FORMATS = [name for name in formats() if name != "statistics"]
_FOLDER = click.Path(path_type=pathlib.Path, file_okay=False)
_FILE = click.Path(path_type=pathlib.Path, dir_okay=False)


class _Before(click.Command):
    """A command whose options end with the script, or with the module that `-m` names: the rest is
    the program's.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Ends the options behind `-m MODULE`, as Python does."""
        taking = {
            name
            for each in self.params
            if isinstance(each, click.Option) and not each.is_flag
            for name in each.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-", "--"):
            word = args[at]
            at += 2 if word in taking else 1
            if word.startswith("-m"):
                args = [*args[:at], "--", *args[at:]]
                break
        return super().parse_args(ctx, args)


@click.command(
    cls=_Before,
    short_help="Run a script and report where its gradients are lost.",
    context_settings={"allow_interspersed_args": False},
    epilog="Options of gradlint stand before SCRIPT, those of the script after it.",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m MODULE` does.")
@click.option(
    "--part", metavar="FILE:NAME",
    help="Run one model, loss or function as the driver of its contract calls it: "
        "losses.py:ContrastiveLoss, or with "
    "what it is made of, 'losses.py:ContrastiveLoss(0.2)'.",
)  # fmt: skip
@click.option(
    "--args", "given", default="", metavar="VALUES",
    help="With --part: what it is called with, 'torch.randn(8, 16), torch.arange(8)'.",
)  # fmt: skip
@click.option(
    "--level", type=click.Choice(["auto", "watch", "record"]), default="auto", show_default=True,
    help="Record every operation, only watch, or record the first steps and again when something "
        "changes.",
)  # fmt: skip
@click.option("--steps", type=click.IntRange(min=1), help="Stop after this many optimizer steps.")
@click.option(
    "--confirm",
    is_flag=True,
    help="Check the same files as `gradlint check` does, and say which findings the run confirms.",
)
@click.option("--output-format", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option(
    "--verbose", is_flag=True, help="With text: each finding with its whole route and all names."
)
@click.option(
    "--output-file",
    type=_FILE,
    help="Write the report to this file, not to standard error or standard output.",
)
@click.option(
    "--html",
    type=_FILE,
    help="Write a page with the graph, the timeline, the gradients and the findings.",
)
@click.option(
    "--show-graph",
    is_flag=True,
    help="Show the chain of operations behind each loss, and the parameters it reaches.",
)
@click.option("--dot", type=_FILE, help="Write that chain as a DOT file.")
@click.option(
    "--values", is_flag=True, help="With json: each loss, and which parameters got a gradient."
)
@click.option(
    "--log",
    type=_FOLDER,
    metavar="DIR",
    help="Write the norms of each step's gradients, by module, as JSON lines and for TensorBoard.",
)
@click.option("--seed", type=int, help="Seed random, NumPy and torch before the program runs.")
@click.option(
    "--select",
    multiple=True,
    metavar="CODE,...",
    help="Use these rules only.",
    shell_complete=completion.codes,
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="CODE,...",
    help="Leave these rules out.",
    shell_complete=completion.codes,
)
@click.option(
    "--fail-on", metavar="SEVERITY",
    help="Exit with 1 from this severity on, or never.  [default: warning]",
    shell_complete=completion.words(lambda: (*SEVERITIES, "never")),
)  # fmt: skip
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARG]...")
def trace(words: tuple[str, ...], **options: Any) -> None:
    """Run SCRIPT and report where its gradients are lost, with the line that cut them.

    The script's output, its numbers and its exit code stay its own; where that is 0, findings at or
    above --fail-on make it 1. The report goes to standard error. A document (all formats but text,
    concise and github) goes to standard output, and the script's own output to standard error
    (--output-file leaves both alone).
    """
    if options["part"] and (words or options["module"]):
        raise click.UsageError("--part takes no SCRIPT: --args says what the part is called with")
    if options["given"] and not options["part"]:
        raise click.UsageError("--args says what a --part is called with")
    if not words and not options["module"] and not options["part"]:
        raise click.UsageError("name a SCRIPT to run, a module with -m, or a part with --part")
    with needing("torch", told=NEEDS_TORCH):
        from gradlint.trace import run
    sys.exit(run.run(words, options))
