"""Trees of lists, tuples and dicts: `torch.utils._pytree`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gradlint.interpret import conditions
from gradlint.interpret.registry import function, method
from gradlint.interpret.values import NONE, Abstract, Call, Mapping, Object, Sequence
from gradlint.library.python.classes import belongs
from gradlint.library.python.results import argument, place, text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_TREES = "torch.utils._pytree"
_SPEC = f"{_TREES}.TreeSpec"
_NODES = ("list", "tuple", "deque")


@function(f"{_TREES}.tree_map", f"{_TREES}.tree_map_")
def tree_map(m: Machine, call: Call) -> Abstract:
    """`tree_map(f, tree, *others)`: the tree of what `f` makes of the leaves; with `_`, the tree
    itself.
    """
    called, *trees = call.args or [NONE]
    if not trees:
        return m.unknown(text(call))
    made = _mapped(
        lambda leaves: m.invoke(called, leaves, call), trees, lambda: m.unknown(text(call))
    )
    return trees[0] if call.called.endswith("_") else made


@function(f"{_TREES}.tree_map_only", f"{_TREES}.tree_map_only_")
def tree_map_only(m: Machine, call: Call) -> Abstract:
    """`tree_map_only(kind, f, tree)`: leaves of another kind stay."""
    kind, called, tree = (argument(m, call, position) for position in range(3))

    def make(leaves: list[Abstract]) -> Abstract:
        asked = belongs(m, leaves[0], kind, text(call))
        is_one = conditions.decide(m, asked, call.node, call.frame)
        return m.invoke(called, leaves, call) if is_one else leaves[0]

    made = _mapped(make, [tree], lambda: m.unknown(text(call)))
    return tree if call.called.endswith("_") else made


@function(f"{_TREES}.tree_leaves", f"{_TREES}.tree_iter")
def tree_leaves(m: Machine, call: Call) -> Abstract:
    """`tree_leaves(tree)`: the leaves, in order."""
    return Sequence("list", list(_leaves(argument(m, call))), at=place(call))


@function(f"{_TREES}.tree_structure")
def tree_structure(m: Machine, call: Call) -> Abstract:
    """`tree_structure(tree)`: the tree without its leaves."""
    return Object(_SPEC, place(call), {"tree": argument(m, call)})


@function(f"{_TREES}.tree_flatten")
def tree_flatten(m: Machine, call: Call) -> Abstract:
    """`tree_flatten(tree)`: the leaves and the structure."""
    return Sequence("tuple", [tree_leaves(m, call), tree_structure(m, call)])


@function(f"{_TREES}.tree_unflatten")
def tree_unflatten(m: Machine, call: Call) -> Abstract:
    """`tree_unflatten(leaves, spec)`: the tree with other leaves."""
    spec = argument(m, call, 1)
    if not isinstance(spec, Object) or spec.cls != _SPEC:
        return m.unknown(text(call))
    leaves = iter(m.items(argument(m, call), call))
    absent = m.unknown(text(call))
    return _mapped(lambda _: next(leaves, absent), [spec.state["tree"]], lambda: absent)


@method(_SPEC, "unflatten")
def unflatten(m: Machine, receiver: Object, call: Call) -> Abstract:
    """`spec.unflatten(leaves)`."""
    return tree_unflatten(
        m, Call(call.name, [argument(m, call), receiver], {}, call.node, call.frame)
    )


def _leaves(tree: Abstract) -> Iterator[Abstract]:
    if isinstance(tree, Sequence) and tree.kind in _NODES:
        for item in tree.items:
            yield from _leaves(item)
    elif isinstance(tree, Mapping):
        for item in tree.items.values():
            yield from _leaves(item)
    else:
        yield tree


def _mapped(
    make: Callable[[list[Abstract]], Abstract],
    trees: list[Abstract],
    absent: Callable[[], Abstract],
) -> Abstract:
    """The first tree, with what `make` gives for the leaves at the same place in all of them."""
    first = trees[0]
    if isinstance(first, Sequence) and first.kind in _NODES:
        parts = [
            [_at(tree, position, absent) for tree in trees] for position in range(len(first.items))
        ]
        return Sequence(
            first.kind, [_mapped(make, part, absent) for part in parts], first.open, at=first.at
        )
    if isinstance(first, Mapping):
        items = {key: [_at(tree, key, absent) for tree in trees] for key in first.items}
        return Mapping(
            {key: _mapped(make, part, absent) for key, part in items.items()},
            first.open,
            at=first.at,
        )
    return make(trees)


def _at(tree: Abstract, key: object, absent: Callable[[], Abstract]) -> Abstract:
    """What a tree has at a place of another one."""
    match tree:
        case Sequence() if isinstance(key, int) and key < len(tree.items):
            return tree.items[key]
        case Mapping() if key in tree.items:
            return tree.items[key]
    return absent()
