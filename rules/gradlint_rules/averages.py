"""Fixes of a loss that NumPy or Python computed of numbers: computed by torch of the tensors.

`torch.tensor(np.mean([x.item() for x in terms]))` is `torch.stack([x for x in terms]).mean()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradlint.dataclass import dataclass
from gradlint.finding import Edit
from gradlint.operations import Trait, has
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import calls_of
from gradlint_rules.uncut import DROPPED, is_copy, values_of

_PACKAGES = {"numpy", "statistics"}
_ALIKE = (Trait.MEANS, Trait.SUMS)  # what NumPy and torch compute alike


@dataclass(frozen=True, slots=True)
class _Average:
    """A copy of what a reduction of NumPy gives, and what that is taken of."""

    copy: ast.Call
    name: str
    given: ast.expr


def averaged(node: ast.expr, source: FixSource) -> tuple[Edit, ...]:
    """The reduction by torch where `node` copies one of NumPy, or is a number that one is taken of;
    nothing where there is none.
    """
    found = next(_averages(node, source), None)
    if found is None:
        return ()
    numbers = list(_numbers(found.given, found, source))
    if not numbers:
        raise NoFixError("what is averaged is not seen to come from torch")
    edits = [source.replace(number, source.text(tensor)) for number, tensor in numbers]
    whole = [tensor for number, tensor in numbers if number is found.given]
    if whole:
        content = f"{source.operand(whole[0])}.{found.name}()"
        return (source.replace(found.copy, content),)
    stack, imports = source.reference("torch.stack")
    if isinstance(found.given, ast.Name):
        content = f"{stack}({found.given.id}).{found.name}()"
        return (source.replace(found.copy, content), *edits, *imports)
    text = source.text(found.given)
    for number, tensor in numbers:
        text = text.replace(source.text(number), source.text(tensor))
    return (source.replace(found.copy, f"{stack}({text}).{found.name}()"), *imports)


def _averages(node: ast.expr, source: FixSource) -> Iterator[_Average]:
    """The copy that `node` is or stands in, or one of the function that copies the average of a
    list by its name.
    """
    own = [node, *(outer for outer in source.around(node) if isinstance(outer, ast.expr))]
    elsewhere = [each for each in ast.walk(source.scope(node)) if isinstance(each, ast.Call)]
    for call in [*own, *elsewhere]:
        match call:
            case ast.Call(args=[ast.Call(func=func, args=[given], keywords=[])]) if is_copy(
                call, source
            ):
                package, _, name = source.called(func).rpartition(".")
                if package in _PACKAGES and any(has(name, trait) for trait in _ALIKE):
                    found = _Average(call, name, given)
                    if call in own or any(
                        number is node for number, _ in _numbers(given, found, source)
                    ):
                        yield found


def _numbers(
    given: ast.expr, found: _Average, source: FixSource
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The numbers that a reduction is given, each with the tensor that it was taken out of."""
    if (tensor := _tensor(given, source)) is not given:
        yield given, tensor
        return
    match given:
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item):
            yield from _item(item, source)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                yield from _item(item, source)
        case ast.Name(id=name):
            _is_for_this_alone(name, found, source)
            for value in values_of(given, source, found.copy):
                if not isinstance(value, ast.Name):
                    yield from _numbers(value, found, source)
            for call in calls_of(source.scope(found.copy), "append"):
                if isinstance(call.func, ast.Attribute) and source.text(call.func.value) == name:
                    for item in call.args:
                        yield from _item(item, source)


def _item(item: ast.expr, source: FixSource) -> Iterator[tuple[ast.expr, ast.expr]]:
    if (tensor := _tensor(item, source)) is item:
        raise NoFixError("a number that is not taken out of a tensor here")
    yield item, tensor


def _takes_out(name: str) -> bool:
    """Whether a method without arguments gives the same numbers, with a gradient or without."""
    return name == "numpy" or name in DROPPED or has(name, Trait.CASTS)


def _tensor(number: ast.expr, source: FixSource) -> ast.expr:
    """What a number or array is taken out of: `x` of `float(x)` and `x.detach().cpu().numpy()`."""
    while True:
        match number:
            case ast.Call(func=ast.Attribute(attr=name, value=value), args=[]) if _takes_out(name):
                number = value
            case ast.Call(func=ast.Name(id="float"), args=[value], keywords=[]):
                number = value
            case ast.Call(func=func, args=[value], keywords=[]) if source.called(func) in (
                "numpy.asarray",
                "numpy.array",
            ):
                number = value
            case _:
                return number


def _is_for_this_alone(name: str, found: _Average, source: FixSource) -> None:
    """Raises where something else reads the list of numbers, which would get tensors then."""
    for node in ast.walk(source.scope(found.copy)):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            match next(source.around(node)):
                case ast.Attribute(attr="append"):
                    continue
                case ast.Call(func=ast.Name(id="len")):
                    continue
                case _ if node is found.given:
                    continue
            raise NoFixError("something else reads the numbers")
