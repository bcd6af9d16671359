"""Writes the manual page, from the commands themselves: `python tools/man_page.py`."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

import click

from gradlint import __version__
from gradlint.cli import gradlint

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "gradlint.1"
EXITS = {
    "0": "Nothing of severity warning or above was found; --fail-on moves that line.",
    "1": "Something was.",
    "2": "gradlint could not run.",
}


def page() -> str:
    """The manual page, in the macros of man."""
    lines = [
        f'.TH GRADLINT 1 "" "gradlint {__version__}" "User Commands"',
        ".SH NAME",
        "gradlint \\- find where PyTorch training code breaks autograd",
        ".SH SYNOPSIS",
        ".B gradlint\n.I COMMAND\n[\\fIOPTION\\fR]...",
        ".SH DESCRIPTION",
        _text("gradlint reads PyTorch training code, follows what autograd would record, and "
            "reports where the loss "
              "loses its parameters. It does so without running the program, and without "
                  "torch installed."),
        *(line for command in gradlint.commands.values() for line in _command(command)),
        ".SH EXIT STATUS",
        *(f".TP\n.B {code}\n{_text(meaning)}" for code, meaning in EXITS.items()),
        ".SH FILES",
        ".TP\n.I pyproject.toml\nSettings, in the table [tool.gradlint].",
        ".TP\n.I .gradlint_cache\nResults of earlier runs.",
        ".SH SEE ALSO",
        "https://torch\\-gradlint.readthedocs.io/",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _command(command: click.Command) -> Iterator[str]:
    """The section of one command: how it is called, what it does, its options."""
    arguments = [_value(each) for each in command.params if isinstance(each, click.Argument)]
    yield f".SH GRADLINT {(command.name or '').upper()}"
    yield f".B gradlint {command.name}\n{_text(' '.join(['[OPTION]...', *arguments]))}\n.PP"
    yield _text(command.help or "")
    for option in command.params:
        if isinstance(option, click.Option):
            default = f"  [default: {option.default}]" if option.show_default else ""
            words = f"{', '.join(option.opts)} {'' if option.is_flag else _value(option)}"
            yield f".TP\n.B {_text(words)}\n{_text((option.help or 'How to report.') + default)}"


def _value(parameter: click.Parameter) -> str:
    """What stands for the value of an option or argument."""
    if isinstance(parameter.type, click.Choice):
        return "|".join(parameter.type.choices)
    return parameter.metavar or (
        "N" if isinstance(parameter.type, click.types.IntParamType) else "FILE"
    )


def _text(text: str) -> str:
    """Words as the macros take them: in one line, no command at its beginning."""
    line = re.sub(r"\s+", " ", text).strip().replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line[:1] in ("'", ".") else line


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
