"""What `derivatives.yaml` inside the torch wheel says of an operation, as torch's own generator
reads it.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torchgen  # type: ignore[import-untyped]
from torchgen.packaged.autograd import load_derivatives  # type: ignore[import-untyped]

PACKAGED = Path(torchgen.__file__).parent / "packaged"
ZERO = ("zeros_like(grad)", "at::zeros", "self_info.zeros()", "self.zeros_like()")


@dataclass(frozen=True, slots=True)
class Definition:
    """One overload with an entry in `derivatives.yaml`; a tensor named `self` there is `input`
    here.
    """

    name: str
    # what is kept, and for the gradient of which arguments
    saves: tuple[tuple[str, tuple[str, ...]], ...]
    zero: bool
    view: bool
    arguments: tuple[str, ...]
    results: int
    only_in_place: bool


def _renamed(name: str) -> str:
    return "input" if name == "self" else name


def _results(info: Any) -> dict[str, str]:
    """The names that formulas give the outputs, and what `Effect.saves` calls them."""
    returns = info.func.func.returns
    if len(returns) == 1:
        return {returns[0].name or "result": "result", "result": "result"}
    names = {returned.name: f"result.{at}" for at, returned in enumerate(returns) if returned.name}
    return names | {f"result{at}": f"result.{at}" for at in range(len(returns))}


def _saves(info: Any) -> dict[str, set[str]]:
    results = _results(info)
    kept: dict[str, set[str]] = defaultdict(set)
    for derivative in info.derivatives:
        for attribute in derivative.saved_inputs:
            if "Tensor" in str(attribute.nctype.type) and attribute.expr == str(
                attribute.nctype.name
            ):
                kept[_renamed(attribute.expr)].update(map(_renamed, derivative.var_names))
        for attribute in derivative.saved_outputs:
            kept[results.get(attribute.expr, attribute.expr)].update(())
    return kept


def _definition(info: Any) -> Definition:
    schema = info.func.func
    able = {_renamed(name) for derivative in info.derivatives for name in derivative.var_names}
    kept = {
        what: () if when >= able else tuple(sorted(when)) for what, when in _saves(info).items()
    }
    return Definition(
        str(schema.name.name.base),
        tuple(sorted(kept.items())),
        all(derivative.formula.startswith(ZERO) for derivative in info.derivatives),
        bool(info.func.is_view_op),
        tuple(_renamed(argument.name) for argument in schema.arguments.flat_positional),
        len(schema.returns),
        bool(schema.name.name.inplace),
    )


@functools.cache
def definitions() -> dict[str, list[Definition]]:
    """Every overload with a derivative of its own on a CPU, by the plain name of the operation."""
    infos, _ = load_derivatives.load_derivatives(
        str(PACKAGED / "autograd/derivatives.yaml"),
        str(PACKAGED / "ATen/native/native_functions.yaml"),
        str(PACKAGED / "ATen/native/tags.yaml"),
    )
    found: dict[str, list[Definition]] = defaultdict(list)
    for info in _differentiable(infos):
        defined = _definition(info)
        found[_spelled(defined.name, info.func.python_module)].append(defined)
    return found


def _differentiable(infos: Any) -> Iterator[Any]:
    for kinds in infos.values():
        info = kinds.get("Default")
        composite = info is not None and info.func.has_composite_implicit_autograd_kernel
        if info is not None and info.derivatives and not composite:
            yield info


def _spelled(name: str, module: str | None) -> str:
    """`linalg_inv` is `linalg.inv` to users."""
    prefix = f"{module}_"
    return (
        name.replace(prefix, f"{module}.", 1)
        if module and module != "nn" and name.startswith(prefix)
        else name
    )
