"""One part driven for real: the driver of its contract, run by torch on what the user says that it
is given.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import pathlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import torch

from gradlint import evidence
from gradlint.contracts import contracts
from gradlint.errors import UserError
from gradlint.program.entries import Entry, entries
from gradlint.source import document
from gradlint.source.parse import Source, parse
from gradlint.trace import frames
from gradlint.trace.launch import Program
from gradlint.trace.outcomes import (
    can_carry,
    copied,
    each_tensor,
    put_back,
    results,
    state,
    summed,
    tensors,
)
from gradlint.trace.records import Driven
from gradlint.trace.session import Session

_RUN = "__gradlint_part__"
_PREDICTED = "predicted"
_LOOP = 0  # the number of the driver's loop
_BEGIN = "def begin(drive, helpers, given):\n    drive(*helpers, **given())\n"


class Part:
    """A part as it was asked for: `losses.py:Loss(0.2)`, an expression in a file, and what it is
    called with.
    """

    def __init__(self, asked: str, given: str) -> None:
        path, _, self.expression = asked.partition(":")
        self.given, self.asked = given, asked
        self.file = os.path.abspath(path)
        self.driven: Driven | None = None  # once it is known
        self.session: Session | None = None
        if not self.expression or not os.path.isfile(path):
            raise UserError(
                f"--part {asked}: name a file and what is in it, as in losses.py:ContrastiveLoss"
            )

    def program(self) -> Program:
        """The program that drives it."""
        if not frames.is_users_path(self.file):
            frames.adopt(self.file)
        code = compile(f"{_RUN}()", "<part>", "exec")
        return Program(
            self.asked, code, self.file, None, _root(self.file), (self.file,), {_RUN: self._run}
        )

    def _run(self) -> None:
        """Import the file, make the part, and run the driver of its contract."""
        module = _imported(self.file)
        entry, called, owner = _found(self._evaluated(self.expression, module), module)
        name = entry.contract
        if (
            name == "comparison"
            and owner is not None
            and any(each.requires_grad for each in owner.parameters())
        ):
            name = "forward"
        drive, begin = _driver(name, inspect.getfile(module), entry.line)
        taken = inspect.signature(drive).parameters
        batches = _Batches(owner, self._bound(called, module), is_loss=_PREDICTED in taken)
        helpers = _Helpers(called, owner, batches, self._begin_round)
        codes = drive.__code__, begin.__code__
        self.driven = Driven(codes, entry.part, contracts()[name], _extent(module, entry))
        begin(
            drive,
            [getattr(helpers, each) for each in taken if hasattr(helpers, each)],
            batches.first,
        )

    def _begin_round(self) -> None:
        """A round of the driver begins: as below a call of a library's, which gets batches."""
        if self.session is not None:
            self.session.batched.add(_LOOP)
            self.session.note("batch", frames.here()[-1:], loops=(_LOOP,))

    def _evaluated(self, expression: str, module: ModuleType) -> Any:
        """What an expression is among the names of the file."""
        names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, **vars(module)}
        try:
            return eval(compile(expression, "<part>", "eval"), names)
        except SyntaxError as error:
            raise UserError(f"{expression}: {error.msg}") from None
        except (NameError, AttributeError) as error:
            raise UserError(f"{self.asked}: {error}") from None

    def _bound(self, called: Callable[..., Any], module: ModuleType) -> inspect.BoundArguments:
        """The arguments that it is called with, by the names of its parameters."""
        given, named = self._evaluated(
            f"(lambda *given, **named: (given, named))({self.given})", module
        )
        written = called.forward if isinstance(called, torch.nn.Module) else called
        try:
            return inspect.signature(written).bind(*given, **named)
        except TypeError as error:
            raise UserError(f"{self.asked}: {error}; --args says what it is called with") from None


class _Model(torch.nn.Module):
    """What stands in front of a part: what it gives carries a gradient, and no operation has saved
    that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor * self.scale


class _Batches:
    """The batches that a part is called with, each of new tensors.

    A loss is given one prediction: in the first argument that is not called a target, a mask or a
    weight. To anything else all that can carry a gradient does.
    """

    def __init__(self, owner: Any, bound: inspect.BoundArguments, *, is_loss: bool) -> None:
        self.owner, self.bound = owner, bound
        self._model = _Model()
        names = [
            name for name, value in bound.arguments.items() if any(map(can_carry, tensors(value)))
        ]
        predicted = [name for name in names if not evidence.is_compared_with(name)] or names
        self._carrying = frozenset(predicted[:1] if is_loss else names)
        self._before: list[tuple[torch.nn.Module, dict[str, Any]]] = []
        self._current: dict[str, Any] = {}

    def first(self) -> Mapping[str, Any]:
        """What the part is called with, by the names of its parameters."""
        self._current = {
            name: each_tensor(value, self._carried if name in self._carrying else copied)
            for name, value in self.bound.arguments.items()
        }
        return self._current

    def now(self) -> inspect.BoundArguments:
        """The arguments of a call with the batch that is given now."""
        bound = inspect.BoundArguments(self.bound.signature, self.bound.arguments.copy())
        bound.arguments.update(self._current)
        return bound

    def another(self) -> None:
        """Give what is of another batch. Who calls a module puts back what that keeps of a batch,
        but no buffer.
        """
        if self._before:
            for module, kept in self._before:
                put_back(module, kept)
        else:
            self._before = [(module, state(module)) for module in self.owner.modules()]
        self.first()

    def _carried(self, tensor: torch.Tensor) -> torch.Tensor:
        carried: torch.Tensor = self._model(copied(tensor)) if can_carry(tensor) else tensor
        return carried


class _Helpers:
    """What drivers take beside the arguments of a part; see `gradlint/contracts`."""

    def __init__(
        self,
        called: Callable[..., Any],
        owner: Any,
        batches: _Batches,
        begin_round: Callable[[], None],
    ) -> None:
        self._called, self._batches, self._begin_round = called, batches, begin_round
        self._losses: list[torch.Tensor] = []
        self.owner = _Owner(owner)

    def another_batch(self) -> None:
        """Begins a round."""
        self._begin_round()
        self._batches.another()

    def part(self, **_: Any) -> Any:
        """Calls the part with the batch that it is given now."""
        bound = self._batches.now()
        return self._called(*bound.args, **bound.kwargs)

    def saved(self, value: Any) -> None:
        """Computes a loss that has saved what a model gave."""
        self._losses += [_Model()(each).sum() for each in tensors(value) if each.requires_grad]

    def minimised(self, result: Any) -> list[torch.Tensor]:
        """The losses in what a part gives: the `loss`, or else what carries a gradient, or any."""
        found = self._losses or list(results(result))
        if not found:
            raise UserError("the part gives no tensor: nothing can be back-propagated")
        return [
            summed(each) for each in [each for each in found if each.requires_grad] or found[:1]
        ]

    def reduced(self, result: Any) -> Any:
        """What a comparison gives: `minimised` adds up what is no number."""
        return result

    def untrained(self) -> None:
        """That there is something to train has been asked before."""


class _Owner:
    """A module as a driver sees it: with something to give an optimizer, where it has no
    parameters.
    """

    def __init__(self, module: Any) -> None:
        self._module = module

    def train(self) -> None:
        """Puts it into train mode."""
        self._module.train()

    def parameters(self) -> list[torch.nn.Parameter]:
        """Its parameters, or one that holds nothing."""
        return list(self._module.parameters()) or [torch.nn.Parameter(torch.empty(0))]


def _root(file: str) -> str:
    """The folder from which a file is imported: the one around its outermost package."""
    folder = pathlib.Path(file).parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return str(folder)


def _imported(file: str) -> ModuleType:
    """The module of a file, by the name under which its package knows it."""
    name = ".".join(pathlib.Path(file).relative_to(_root(file)).with_suffix("").parts).removesuffix(
        ".__init__"
    )
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or not os.path.samefile(spec.origin, file):
        spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    if name in sys.modules and getattr(sys.modules[name], "__spec__", None) is spec:
        return sys.modules[name]
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module


def _found(thing: Any, module: ModuleType) -> tuple[Entry, Callable[..., Any], Any]:
    """The part that an object is: how it is entered, what is called, and the object whose method
    that is.
    """
    if inspect.isfunction(thing):
        return _entry(module, (thing.__name__,), thing, "loss"), thing, None
    if inspect.ismethod(thing):
        path = type(thing.__self__).__name__, thing.__name__
        return _entry(module, path, thing, "loss"), thing, thing.__self__
    if isinstance(thing, type):
        constructor = _entry(module, (thing.__name__,), thing, "")
        if constructor.contract == "constructor":
            return constructor, thing, None
        thing = _made(thing)
    is_module = isinstance(thing, torch.nn.Module)
    method = "forward" if is_module else "__call__"
    entry = _entry(
        module,
        (type(thing).__name__,),
        getattr(type(thing), method, None),
        "forward" if is_module else "",
    )
    own = entry.function[1] if len(entry.function) > 1 else method
    called = thing if own == method else getattr(thing, own)
    if not callable(called):
        raise UserError(
            f"{type(thing).__name__} cannot be called: name a method of it, Name().method"
        )
    return entry, called, thing


def _made(cls: type[Any]) -> Any:
    try:
        return cls()
    except TypeError as error:
        raise UserError(f"{error}; say how it is made: {cls.__name__}(…)") from None


def _source(module: ModuleType) -> Source | None:
    file = inspect.getfile(module)
    text = document.decode(file, pathlib.Path(file).read_bytes())
    source = parse(file, text) if isinstance(text, str) else None
    return source if isinstance(source, Source) else None


def _extent(module: ModuleType, entry: Entry) -> tuple[int, int]:
    """The lines of the function or class that a part is of."""
    source = _source(module)
    for node in source.tree.body if source is not None else ():
        if getattr(node, "name", "") == entry.function[0]:
            return node.lineno, node.end_lineno or node.lineno
    return entry.line, entry.line


def _entry(module: ModuleType, path: tuple[str, ...], written: Any, otherwise: str) -> Entry:
    """How `check` enters a part of a module; what it leaves alone is driven under the contract
    `otherwise`.
    """
    source = _source(module)
    known = entries(source) if source is not None else ()
    code = getattr(inspect.unwrap(written), "__code__", None)
    line = (
        code.co_firstlineno
        if code is not None and code.co_filename == inspect.getfile(module)
        else 1
    )
    fitting = [each for each in known if each.contract and _is_within(each, path)]
    return min(
        fitting,
        key=lambda each: each.contract == "constructor",
        default=Entry(path, line, False, otherwise),
    )


def _is_within(entry: Entry, path: tuple[str, ...]) -> bool:
    """Whether an entry is what a path names, or what is called of it; a loss that is a method is
    named by itself.
    """
    is_called = entry.contract != "method" and entry.function[: len(path)] == path
    return entry.function == path or is_called


def _driver(contract: str, file: str, line: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The driver of a contract, and what begins it: all they do is said to happen at the definition
    of the part.
    """
    written = inspect.getsource(importlib.import_module(f"gradlint.contracts.{contract}"))
    body = [
        each
        for each in ast.parse(written).body
        if isinstance(each, ast.FunctionDef) and each.name == "drive"
    ]
    tree = ast.Module([*body, *ast.parse(_BEGIN).body], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.name = f"<{node.name}>"  # the name of no function in the file
            node.returns = None
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    names: dict[str, Any] = {}
    exec(compile(tree, file, "exec"), names)
    return names["<drive>"], names["<begin>"]
