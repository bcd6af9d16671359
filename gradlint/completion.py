"""What a shell completes the values of options with: formats, severities, codes and names of
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

Complete = Callable[["click.Context", "click.Parameter", str], "list[CompletionItem]"]
SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_GRADLINT_COMPLETE"  # by which click asks


def words(known: Callable[[], Sequence[str]]) -> Complete:
    """Completes one of the `known` words."""

    def complete(
        _context: click.Context, _option: click.Parameter, begun: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(word) for word in known() if word.startswith(begun)]

    return complete


def codes(_context: click.Context, _option: click.Parameter, begun: str) -> list[CompletionItem]:
    """The codes of rules, behind those that stand before a comma already."""
    from click.shell_completion import CompletionItem

    from gradlint.rule import rules

    before, comma, last = begun.rpartition(",")
    known = {**{code: rule.name for code, rule in rules().items()}, "ALL": "every rule"}
    return [
        CompletionItem(f"{before}{comma}{code}", help=name)
        for code, name in known.items()
        if code.startswith(last.upper())
    ]


def rule_names(
    _context: click.Context, _option: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The codes and the names of rules."""
    from click.shell_completion import CompletionItem

    from gradlint.rule import rules

    known = {
        **{code: rule.name for code, rule in rules().items()},
        **{rule.name: "" for rule in rules().values()},
    }
    return [
        CompletionItem(word, help=told or None)
        for word, told in known.items()
        if word.lower().startswith(begun.lower())
    ]


def script(command: click.Command, shell: str) -> str:
    """What a shell reads to complete the words of `command`."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the shells that are offered"
    return kind(command, {}, "gradlint", VARIABLE).source()
