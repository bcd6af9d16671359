"""What torch does with a generated program under every setting of its flags."""

from __future__ import annotations

import ast
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from differential.generator import Program

KINDS = {
    "does not require grad and does not have a grad_fn": "gradient",
    "object has no attribute 'backward'": "gradient",
    "'int' object is not iterable": "gradient",  # torch.autograd.backward(0)
    "'float' object is not iterable": "gradient",
    "modified by an inplace operation": "saved",
    "a leaf Variable that requires grad": "leaf",
    "a view of a leaf Variable that requires grad": "leaf",
    "backward through the graph a second time": "freed",
    "nference tensor": "inference",
    "Inplace update to inference tensor": "inference",
    "out=... arguments don't support automatic differentiation": "without a rule",
    "A view was created in": "without a rule",
    "is a view and is being modified inplace": "without a rule",
}


def kind_of(error: Exception) -> str:
    """The kind of an exception, or its text."""
    text = f"{type(error).__name__}: {error}"
    return next((kind for part, kind in KINDS.items() if part in text), text)


def reached(loss: Any) -> set[Any]:
    """The leaves that a backward of `loss` comes to, as torch's graph has them."""
    if not torch.is_tensor(loss) or not loss.requires_grad:
        return set()
    if loss.grad_fn is None:
        return {loss}
    seen, pending = {loss.grad_fn}, [loss.grad_fn]
    for function in pending:
        for source, _ in function.next_functions:
            if source is not None and source not in seen:
                seen.add(source)
                pending.append(source)
    return {function.variable for function in pending if hasattr(function, "variable")}


def module_of(path: str) -> str:
    """The module that a parameter belongs to; a parameter of the model itself stands for itself."""
    return path.rpartition(".")[0] or path


@dataclass
class Run:
    """What one run showed."""

    kinds: set[str] = field(default_factory=set)  # of exceptions
    # the losses that came to leaves, and to no parameter
    cut_off: list[float] = field(default_factory=list)
    parameters: list[Any] = field(default_factory=list)  # what the optimizer holds
    reached: list[set[Any]] = field(default_factory=list)  # what each backward came to


class Judge:
    """Runs one program as written, and once more with every statement that raises passed over.

    A loss that was made a leaf raises nothing: it counts as one without gradient where its value
    hangs on the parameters, which is seen by running the program again with other parameters.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        tree = ast.parse(program.text)
        self.code = compile(tree, "<program>", "exec")
        tolerant = ast.fix_missing_locations(_Tolerant().visit(ast.parse(program.text)))
        self.tolerant = compile(tolerant, "<program>", "exec")

    def raised(self) -> dict[str, list[dict[str, bool]]]:
        """The kinds of exception that end the program, each with the settings under which it
        does.
        """
        found: dict[str, list[dict[str, bool]]] = {}
        for setting in self.program.settings():
            run = self._run(self.code, setting)
            if run.cut_off and run.cut_off != self._run(self.code, setting, nudge=1.5).cut_off:
                run.kinds.add("gradient")
            for kind in run.kinds:
                found.setdefault(kind, []).append(setting)
        return found

    def possible(self) -> set[str]:
        """The kinds that come up if nothing that was raised ends the program, no freed graph hides
        another, and nothing that was overwritten hides a freed graph; and those of the module under
        a trainer, which need not run it.
        """
        runs = [
            self._run(self.tolerant, setting, retain=retain, mutable=mutable)
            for setting in self.program.settings()
            for retain, mutable in ((False, False), (True, False), (False, True))
        ]
        runs += [
            self._trained(flag, carries) for flag in (False, True) for carries in (False, True)
        ]
        return {
            kind for run in runs for kind in run.kinds | ({"gradient"} if run.cut_off else set())
        }

    def routes(self) -> set[tuple[frozenset[str], ...]]:
        """The modules that each backward of a run comes to, for every run that differs in these."""
        found = set()
        for setting in self.program.settings():
            scope: dict[str, Any] = {}
            run = self._run(self.code, setting, scope=scope)
            names = [name for name, _ in scope["Net"](False).named_parameters()]
            named = {
                id(parameter): module_of(name)
                for name, parameter in zip(names, run.parameters, strict=True)
            }
            found.add(
                tuple(
                    frozenset(named[id(leaf)] for leaf in leaves if id(leaf) in named)
                    for leaves in run.reached
                )
            )
        return found

    def _trained(self, flag: bool, carries: bool) -> Run:
        """What comes up where a trainer calls the module, with batches that carry a gradient or do
        not.
        """
        run = Run()
        scope = {"__name__": "part", "_tolerate": lambda error: run.kinds.add(kind_of(error))}
        arguments, sys.argv = sys.argv, ["program"]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(self.tolerant, scope)
                module = scope["Net"](flag)  # type: ignore[operator]
                optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
                for _ in range(2):
                    module(torch.randn(4, 3, requires_grad=carries) * 1.0).sum().backward()
                    optimizer.step()
        except Exception as error:
            run.kinds.add(kind_of(error))
        finally:
            sys.argv = arguments
            torch.set_grad_enabled(True)
        return run

    def _run(
        self,
        code: types.CodeType,
        setting: dict[str, bool],
        nudge: float = 1.0,
        *,
        retain: bool = False,
        mutable: bool = False,
        scope: Any = None,
    ) -> Run:
        run, scope = Run(), {} if scope is None else scope
        scope |= {"__name__": "__main__", "_tolerate": lambda error: run.kinds.add(kind_of(error))}
        arguments, sys.argv = (
            sys.argv,
            ["program", *(f"--{name}" for name, value in setting.items() if value)],
        )
        try:
            unchecked = (
                torch.autograd.graph.allow_mutation_on_saved_tensors() if mutable else nullcontext()
            )
            with warnings.catch_warnings(), unchecked, _watching(run, nudge, retain):
                warnings.simplefilter("ignore")
                exec(code, scope)
                if self.program.style == "arguments":
                    scope["train"](**setting)
                elif self.program.style == "options":
                    scope["train"](types.SimpleNamespace(**setting))
        except Exception as error:
            run.kinds.add(kind_of(error))
        finally:
            sys.argv = arguments
            torch.set_grad_enabled(True)
        return run


@contextmanager
def _watching(run: Run, nudge: float, retain: bool) -> Iterator[None]:
    """Notes where backwards come to; multiplies what an optimizer is given by `nudge`.

    Where `retain` holds, every graph is kept.
    """
    backward, grad, create = (
        torch.autograd.backward,
        torch.autograd.grad,
        torch.optim.Optimizer.__init__,
    )

    def watched(asked: Any) -> Any:
        def ask(loss: Any, *args: Any, **kwargs: Any) -> Any:
            run.reached.append(reached(loss))
            if run.reached[-1] and not any(
                isinstance(leaf, torch.nn.Parameter) for leaf in run.reached[-1]
            ):
                run.cut_off.append(float(loss))
            if retain:
                args, kwargs = args[:1], {**kwargs, "retain_graph": True}
            return asked(loss, *args, **kwargs)

        return ask

    def create_nudged(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        create(optimizer, *args, **kwargs)
        run.parameters = optimizer.param_groups[0]["params"]
        with torch.no_grad():
            for parameter in run.parameters:
                parameter.mul_(nudge)

    with (
        mock.patch.multiple(torch.autograd, backward=watched(backward), grad=watched(grad)),
        mock.patch.object(torch.optim.Optimizer, "__init__", create_nudged),
    ):
        yield


class _Tolerant(ast.NodeTransformer):
    """Wraps every simple statement of a function, so that what it raises is noted and passed over.

    So is what asks for a name then that such a statement was to bind.
    """

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        return self._wrapped(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        return self._wrapped(node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return node if isinstance(node.value, ast.Yield) else self._wrapped(node)

    def _wrapped(self, node: ast.stmt) -> ast.stmt:
        made = ast.parse(
            "try:\n    pass\nexcept (RuntimeError, NameError) as error:\n    _tolerate(error)"
        ).body[0]
        assert isinstance(made, ast.Try)
        made.body = [node]
        return made
