"""What an annotation says of a parameter beyond the name of a class:
`block: type[Basic | Bottleneck]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.lineage import canonical
from gradlint.interpret.values import Class, Lib
from gradlint.ir import nodes as ir

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine
    from gradlint.interpret.scopes import Frame

_OF_CLASSES = frozenset(["builtins.type", "typing.Type"])
_TUPLES = frozenset(["builtins.tuple", "typing.Tuple"])
_LISTS = frozenset(
    f"{home}.{name}"
    for home, names in (
        ("builtins", ("list",)),
        ("typing", ("List", "Sequence", "Iterable", "Collection")),
        ("collections.abc", ("Sequence", "Iterable", "Collection")),
    )
    for name in names
)
_CHOICES = frozenset(["typing.Union", "typing.Optional"])


def classes(m: Machine, annotation: ir.Node, frame: Frame, *, within: bool = False) -> list[Class]:
    """The classes of the program one of which a parameter is, in order; `within`: what `type[…]` is
    of.

    None for `block: Basic`, which is an object of that class.
    """
    match annotation:
        case ir.Subscript(target=target, index=index):
            name = _library_name(m, target, frame)
            is_of_classes = name in _OF_CLASSES
            if is_of_classes or name in _CHOICES:
                return classes(m, index, frame, within=within or is_of_classes)
        case ir.Display(items=items):
            return [cls for item in items for cls in classes(m, item, frame, within=within)]
        case ir.Binary(op="|", left=left, right=right):
            return [cls for side in (left, right) for cls in classes(m, side, frame, within=within)]
        case ir.Name() | ir.Attribute():
            found = m.evaluate(annotation, frame) if within else None
            return [found] if isinstance(found, Class) else []
    return []


def of_tuple(m: Machine, annotation: ir.Node, frame: Frame) -> list[ir.Node]:
    """What the items of a tuple are annotated with: `tuple[Optimizer, LRScheduler]`; none of
    another annotation.
    """
    match annotation:
        case ir.Subscript(target=target, index=ir.Display(items=items)) if (
            _library_name(m, target, frame) in _TUPLES
        ):
            return items
    return []


def of_list(m: Machine, annotation: ir.Node, frame: Frame) -> ir.Node | None:
    """What all items of a list are annotated with: `list[nn.Module]`, `tuple[nn.Module, ...]`."""
    match annotation:
        case ir.Subscript(target=target, index=ir.Display(items=[item, ir.Literal(value=end)])) if (
            end is ... and _library_name(m, target, frame) in _TUPLES
        ):
            return item
        case ir.Subscript(target=target, index=item) if _library_name(m, target, frame) in _LISTS:
            return item
    return None


def is_tensor(m: Machine, name: str, frame: Frame) -> bool:
    """Whether the function that is run declares a parameter a tensor: so is what the name is given
    later.
    """
    function = frame.function
    if function is None:
        return False
    for parameter in function.node.parameters:
        if parameter.name == name and parameter.annotation is not None:
            found = m.evaluate(parameter.annotation, function.scope)
            return isinstance(found, Lib) and canonical(found.name) == "torch.Tensor"
    return False


def _library_name(m: Machine, node: ir.Node, frame: Frame) -> str:
    found = m.evaluate(node, frame)
    return found.name if isinstance(found, Lib) else ""
