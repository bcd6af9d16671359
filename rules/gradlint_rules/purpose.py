"""Whether a cut in a module that no trainer in view runs can be meant: then the module says nothing of its training."""

from __future__ import annotations

from gradlint.tape import Cut, Module, Parameter, Value
from gradlint_rules.starved import are_meant, is_meant

_DELIBERATE = (Cut.DETACH, Cut.GRAD_MODE)


def is_of_the_part(cut: Value, parameter: Parameter) -> bool:
    """Whether a parameter is the module's own and nobody can mean to cut it off: a frozen encoder is made elsewhere,
    or is a module of several layers."""
    owners = _owners(parameter)
    if not owners or any(owner.unseen for owner in owners) or is_meant(cut) or are_meant(cut.inputs):
        return False
    return cut.cut not in _DELIBERATE or len(owners) <= _OF_A_LAYER


_OF_A_LAYER = 2  # the layer, and the module whose attribute it is


def _owners(parameter: Parameter) -> list[Module]:
    """The modules that a parameter is in, innermost first."""
    found: list[Module] = []
    module = parameter.module
    while module is not None:
        found.append(module)
        module = module.parent
    return found
