"""Contracts of parts: what is assumed of the world around code that is judged with no trainer in view.

Each is a program that drives such a part, interpreted like any other code; its events are marked as assumed.
"""

from __future__ import annotations

_RAISES = frozenset(["GL110", "GL201", "GL202", "GL204", "GL303", "GL514", "GL515", "GL516"])
_SPOILS = frozenset(["GL602", "GL701", "GL702", "GL703", "GL704", "GL801", "GL802", "GL803", "GL804"])
_SPEAKING = {  # the rules that may speak of a part, by its contract
    "forward": _RAISES | _SPOILS,
    "loss": frozenset(["GL101", "GL102", "GL103", "GL104", "GL105", "GL109"]),
}


def may_speak(contract: str, code: str) -> bool:
    """Whether a rule may speak of what is entered under a contract; of a program (no contract) every rule may."""
    return not contract or code in _SPEAKING[contract]
