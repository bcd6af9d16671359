"""Rules see the paths of an entry by `some`, `never` and `turns` alone: nothing else can be done
with `Paths`.
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gradlint.finding import Span
from gradlint.paths import Paths
from gradlint.tape import Clip, May, Tape

ROOT = pathlib.Path(__file__).parents[1]
RULES = [
    *sorted(ROOT.glob("rules/gradlint_rules/*.py")),
    *sorted(ROOT.glob("docs/examples/*/*/*.py")),
]
QUERIES = {"some", "never", "turns"}
NOTHING = May(0)
AT = Span("train.py", 1, 1, 1, 2)


def tape(*, clips: int = 0, complete: bool = True, unrun: May = NOTHING) -> Tape:
    path = Tape("train.py", complete=complete, unrun=lambda effects, _: bool(effects & unrun))
    for _ in range(clips):
        path.write(Clip(at=AT))
    return path


def has_clip(path: Tape) -> bool:
    return bool(path.of(Clip))


def test_some_gives_what_is_found_path_by_path() -> None:
    first, second = tape(clips=2), tape(clips=1)
    assert list(Paths([first, tape(), second]).some(lambda path: path.of(Clip))) == [
        *first.of(Clip),
        *second.of(Clip),
    ]


@pytest.mark.parametrize(
    ("tapes", "answer"),
    [
        ([tape(), tape()], True),
        ([tape(), tape(clips=1)], False),
        ([tape(clips=1, complete=False)], False),
        ([tape(), tape(complete=False)], None),
        ([tape(unrun=May.STEP)], None),
        ([tape(unrun=May.CLEAR)], True),
    ],
)
def test_never_knows_of_what_was_not_run(tapes: list[Tape], answer: bool | None) -> None:
    assert Paths(tapes).never(has_clip, May.STEP) is answer


def test_a_branch_that_no_path_turns_is_asked_for() -> None:
    paths = Paths([tape(), tape()])
    assert not paths.turns(has_clip, AT)
    assert paths.unturned == {AT}
    paths = Paths([tape(), tape(clips=1)])
    assert paths.turns(has_clip, AT)
    assert not paths.unturned


@pytest.mark.parametrize(
    "use", [iter, len, list, reversed, lambda paths: paths[0], lambda paths: tape() in paths]
)
def test_paths_cannot_be_gone_through(use: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        use(Paths([tape()]))


def misuses(source: str) -> Iterator[int]:
    """The lines where `paths` is used for anything but a query, an argument of a rule's function,
    or its memo.
    """
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id != "paths":
            continue
        match parents[node]:
            case ast.Attribute(attr=name) if name in QUERIES:
                continue
            case ast.Call(args=arguments) if node in arguments:
                continue
        yield node.lineno


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_no_rule_goes_through_paths(rule: pathlib.Path) -> None:
    source = rule.read_text(encoding="utf-8")
    assert "._tapes" not in source
    assert rule.name == "cached.py" or list(misuses(source)) == []
    assert not any(
        text in source
        for text in ("Sequence[Tape]", "list[Tape]", "tuple[Tape, ...]", "Iterable[Tape]")
    )


@pytest.mark.parametrize(
    "source",
    [
        "for tape in paths: pass",
        "[tape for tape in paths]",
        "paths[0]",
        "all_of = [*paths]",
        "paths._tapes",
        "if paths: pass",
        "others = paths",
    ],
)
def test_the_test_can_fail(source: str) -> None:
    assert list(misuses(source)) == [1]
