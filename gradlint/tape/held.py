"""Which parameters some optimizers hold, where many are asked about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradlint.tape.values import Module, Optimizer, Parameter


class Held:
    """What some optimizers hold at this moment: the answer of `Optimizer.holds`, without going
    through all of their parameters each time.
    """

    __slots__ = ("_modules", "_parameters")

    def __init__(self, optimizers: Iterable[Optimizer]) -> None:
        held = [
            value.parameter
            for optimizer in optimizers
            for value in optimizer.parameters
            if value.parameter is not None
        ]
        self._parameters = {id(parameter) for parameter in held}
        # a parameter without a name stands for all those of its module
        self._modules = {id(one.module) for one in held if not one.name and one.module is not None}

    def holds(self, parameter: Parameter) -> bool:
        """Whether an optimizer holds it, or all of a module that it is a part of."""
        return id(parameter) in self._parameters or any(
            id(module) in self._modules for module in _outwards(parameter.module)
        )


def _outwards(module: Module | None) -> Iterator[Module]:
    while module is not None:
        yield module
        module = module.parent
