"""Whatever a program gives to a function or method that the library models is no mistake of
gradlint's own.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from fuzz.test_fuzz import mistakes

from gradlint import library
from gradlint.interpret.registry import FUNCTIONS, METHODS

library.load()
ODD = (
    "5",
    "[1]",
    "{}",
    "x",
    "torch.ones(2)",
    "torch.nn.Linear(2, 2)",
    "None",
    "lambda y: y",
    "Kind()",
    "*x",
)
PARTS = 4


def _program(imports: str, base: str, calls: list[str]) -> str:
    """A program that makes each of the calls in a function of its own."""
    head = f"import torch\n{imports}\n\nclass Kind({base}):\n    pass\n\n"
    text = head + "\n".join(
        f"def f{number}(x, loss):\n    y = {call}\n    y(x)\n    loss.backward()\n"
        for number, call in enumerate(calls)
    )
    compile(text, "calls.py", "exec")  # what does not parse is not analysed, and has no mistakes
    return text


def _written(name: str) -> tuple[str, str]:
    """The import that a name of the library's model takes, and how it is written then."""
    module, _, plain = name.rpartition(".")
    return ("", plain) if module in ("", "builtins") else (f"import {module}", name)


@pytest.mark.parametrize("part", range(PARTS))
def test_functions_take_any_arguments(part: int) -> None:
    for name in sorted(FUNCTIONS)[part::PARTS]:
        if not name.replace(".", "").isidentifier():  # what only the model itself calls
            continue
        imports, function = _written(name)
        calls = [f"{function}()", f"{function}(**x)"]
        calls += [f"{function}({odd}{rest})" for odd in ODD for rest in ("", ", x, [1], None")]
        assert not mistakes(_program(imports, "object", calls)), name


def _real(name: str) -> Any:
    module, _, plain = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), plain, None)
    except ImportError:
        return None


METHODS_OF_CLASSES = sorted(
    {(cls, name) for cls, name in METHODS if "." in cls and hasattr(_real(cls), name)}
)


def test_there_are_methods_to_call() -> None:
    assert len(METHODS_OF_CLASSES) > 200


@pytest.mark.parametrize("part", range(PARTS))
def test_methods_take_any_receiver_and_any_arguments(part: int) -> None:
    for cls, name in METHODS_OF_CLASSES[part::PARTS]:
        imports, base = _written(cls)
        calls = [f"Kind.{name}()", f"Kind().{name}()"]
        for odd in ODD:
            calls += [f"Kind.{name}({odd})", f"{base}.{name}({odd}, x, 3)", f"Kind().{name}({odd})"]
            calls += [f"Kind().{name}({odd}, x, *x)"]
        assert not mistakes(_program(imports, base, calls)), f"{cls}.{name}"
