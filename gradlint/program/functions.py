"""Plain functions of tensors that are worth entering: they choose around an operation that is not defined everywhere.

    def ratio(a: Tensor, b: Tensor) -> Tensor:
        return torch.where(b > 0, a / b, torch.zeros_like(a))

A hazard decides what is run, never what is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from gradlint.program.losses import Definition, Part

_CHOICE = re.compile(r"\b(?:where|masked_fill_?|nan_to_num|isnan|isinf|isfinite)\(")
_SINGULAR = re.compile(r"/|sqrt|log|pow|\*\*|acos|asin|reciprocal")
_TENSOR = "Tensor"


def speaks_of_choices(text: str) -> bool:
    """Whether a file can hold such a function, by its text alone."""
    return "torch" in text and _TENSOR in text and _CHOICE.search(text) is not None


def choosing(definitions: Sequence[Definition]) -> Iterator[Part]:
    """The functions that say of a parameter that it is a tensor, and hold a choice and what it is made around."""
    for each in definitions:
        is_function = len(each.path) == 1 and isinstance(each.node, ast.FunctionDef)
        if is_function and _takes_tensor(each.node) and _CHOICE.search(each.text) and _SINGULAR.search(each.text):
            if "no_grad" not in each.text and "inference_mode" not in each.text:
                yield Part(each.path, each.line)


def _takes_tensor(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    taken = (*function.args.posonlyargs, *function.args.args)
    return any(each.annotation is not None and _TENSOR in ast.unparse(each.annotation) for each in taken)
