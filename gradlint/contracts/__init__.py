"""Contracts of parts: what is assumed of the world around code that is judged with no trainer in
view.

A contract is one file here, and being here is being registered. It holds

- `SPEAKING`, the codes of the rules that may speak under it, and `MOST`, the worst that they may
  say, where that is less than an error; `ASKED`, those of them that may only speak of a place for
  which the part itself asks;
- `RANK`: a part is driven under the first contract that takes it, and where `IS_ALONE` is False,
  under the next one, too, if it was not called;
- `JUDGES`, False where a part that it runs through is still driven under its own contract, as
  nothing is back-propagated;
- `IS_TRAINED`, where a part is not judged that is only called with grad mode off in the files in
  view;
- `parts(source, definitions)`, which yields those of a file, each with its `path` (the names that
  lead to it) and its `line`;
- `drive`, the program that drives a part, interpreted like any other code. Its parameters are named
  after what they are: the `part`, the `owner` whose method it is, `minimised` (of what a part
  gives, what a loss is made of), `reduced` (ends a path on which the part gives no one number),
  `saved` (has a backward need something that a model gave), `another_batch` (what is given is of
  another batch from there on), `untrained` (ends a path on which the owner has something to train);
  and after `**` what the part is called with: `given`, of which nothing is known but its types, or
  `predicted`, of which the first carries a gradient.

All that a driver does is said to happen at the definition of the part; its events are `assumed`.
Torch runs the same drivers for `gradlint trace --part` (`gradlint/trace/part.py`).
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from gradlint.dataclass import dataclass
from gradlint.finding import Finding, Severity

Parts = Callable[[Any, Sequence[Any]], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Contract:
    """What is assumed of parts of one kind, and what may be said of them."""

    name: str
    speaking: frozenset[str]
    most: Severity
    rank: int
    is_alone: bool
    is_trained: bool  # else it is judged whoever calls it
    parts: Parts
    asked: frozenset[str] = frozenset()
    judges: bool = True  # what it runs

    def may_speak(self, code: str) -> bool:
        """Whether a rule may speak of what is entered under it."""
        return code in self.speaking

    def lets(self, finding: Finding) -> bool:
        """Whether a rule that may speak may say this."""
        return finding.code not in self.asked or "asked" in finding.hints


@functools.cache
def contracts() -> dict[str, Contract]:
    """Every contract by its name, in the order in which they take parts."""
    found = sorted(map(_contract, _modules()), key=lambda each: (each.rank, each.name))
    return {each.name: each for each in found}


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(__path__, __name__ + "."):
        yield importlib.import_module(found.name)


def _contract(module: ModuleType) -> Contract:
    name = module.__name__.rpartition(".")[2]
    most = getattr(module, "MOST", Severity.ERROR)
    is_alone, is_trained = getattr(module, "IS_ALONE", True), getattr(module, "IS_TRAINED", False)
    asked: frozenset[str] = getattr(module, "ASKED", frozenset())
    judges: bool = getattr(module, "JUDGES", True)
    return Contract(
        name, module.SPEAKING, most, module.RANK, is_alone, is_trained, module.parts, asked, judges
    )
