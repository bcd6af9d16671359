"""The cases that a test is run for:
`@pytest.mark.parametrize("size, bias", [(2, True), (3, False)])`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from gradlint.ir import nodes as ir


def is_a_case(test: ir.Function, name: str) -> bool:
    """Whether a parameter is one of a test that is run case by case."""
    return any(name in names for names, _ in _parametrized(test))


def cases(
    test: ir.Function, what: Callable[[ir.Node], object]
) -> Iterator[list[dict[str, object]]]:
    """What the parameters are in each case, as far as it is known of every one; of each decorator.

    What a case gives is a literal, or what `what` says that it is: None where that is not known.
    """
    for names, listed in _parametrized(test):
        rows = (
            [_row(names, item) for item in listed.items] if isinstance(listed, ir.Display) else []
        )
        written = [dict(_known(row, what)) for row in rows]
        common = [name for name in names if all(name in row for row in written)]
        if written and common:
            yield [{name: row[name] for name in common} for row in written]


def _known(
    row: Mapping[str, ir.Node], what: Callable[[ir.Node], object]
) -> Iterator[tuple[str, object]]:
    for name, node in row.items():
        if isinstance(node, ir.Literal):
            yield name, node.value
        elif (known := what(node)) is not None:
            yield name, known


def _parametrized(test: ir.Function) -> Iterator[tuple[list[str], ir.Node | None]]:
    """The names that a decorator parametrizes, and what it lists for them."""
    for node in test.decorators:
        if not (
            isinstance(node, ir.Call) and isinstance(node.function, ir.Attribute) and node.args
        ):
            continue
        if node.function.name == "parametrize":
            first = node.args[0]
            items = first.items if isinstance(first, ir.Display) else [first]
            said = " ".join(str(item.value) for item in items if isinstance(item, ir.Literal))
            yield re.findall(r"\w+", said), node.args[1] if len(node.args) > 1 else None


def _row(names: list[str], case: ir.Node) -> dict[str, ir.Node]:
    """What one case gives each name: `(2, True)`, `pytest.param(2, True, id="small")`."""
    if (
        isinstance(case, ir.Call)
        and isinstance(case.function, ir.Attribute)
        and case.function.name == "param"
    ):
        given = case.args
    else:
        given = case.items if len(names) > 1 and isinstance(case, ir.Display) else [case]
    return dict(zip(names, given, strict=False))
