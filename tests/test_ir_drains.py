"""A `while` that takes items by `next` until there are none is read as the `for` that it is."""

from __future__ import annotations

import ast

import pytest

from gradlint.ir import drains

DRAINED = """\
while {test}:
    try:
        x, y = next({iterator})
    except {error}:
        {leaves}
    {rest}
"""


def read(**parts: str) -> str:
    """The `for` that such a loop is read as; "" where it stays a `while`."""
    own = {
        "test": "True",
        "iterator": "batches",
        "error": "StopIteration",
        "leaves": "break",
        "rest": "step(x, y)",
    }
    loop = ast.parse(DRAINED.format(**own | parts)).body[0]
    assert isinstance(loop, ast.While)
    made = drains.as_for(loop)
    return ast.unparse(made) if made is not None else ""


def test_the_items_are_run_over() -> None:
    assert read() == "for x, y in batches:\n    step(x, y)"
    assert read(iterator="self.batches") == "for x, y in self.batches:\n    step(x, y)"
    assert read(leaves="break\n    else:\n        seen += 1") == (
        "for x, y in batches:\n    seen += 1\n    step(x, y)"
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"test": "not done"},
        {"iterator": "make()"},
        {"error": "KeyError"},
        {"leaves": "batches = iter(loader)"},
        {"rest": "z = next(batches)"},
        {"rest": "batches = iter(loader)"},
        {"iterator": "batches, None"},
        {"leaves": "break\n    finally:\n        close()"},
    ],
    ids=lambda parts: " ".join(parts.values()),
)
def test_another_loop_stays_as_it_is(parts: dict[str, str]) -> None:
    assert not read(**parts)
