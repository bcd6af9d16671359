"""Generators of parameters that were used up before something is given them."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradlint.trace.session import Session


def is_spent(session: Session, parameters: Any) -> bool:
    """Whether a generator, or what filters one, was used up before; one that gives nothing by
    itself was not.
    """
    if any(parameters is each for each in session.read_out):
        return True
    if isinstance(parameters, types.GeneratorType):
        return parameters.gi_frame is None
    sources = parameters.__reduce__()[1] if isinstance(parameters, (filter, map, zip)) else ()
    return any(is_spent(session, each) for each in sources)


def handed(parameters: Any) -> list[Any]:
    """What an optimizer is given to hold: what its groups name, or all at once."""
    groups = parameters if isinstance(parameters, list | tuple) else ()
    named = [each["params"] for each in groups if isinstance(each, dict) and "params" in each]
    return named or [parameters]


def used_up(session: Session) -> None:
    """A generator of parameters gives none any more."""
    session.happened("fact", what="exhausted", detail="")
