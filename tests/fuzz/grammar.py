"""Modules made up of Python's grammar, as hypothesmith has it for lark.

hypothesis draws from the same grammar in a hundred choices for each line end: a module takes it a
tenth of a second, and four of five hold no statement.
"""

from __future__ import annotations

import ast
import functools
import random
import warnings
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

from lark import Lark

DEPTHS = range(6, 34)  # of the expansions of a statement; any expression is 17 deep
PLAIN = 0.6  # how often a symbol is the shortest that it can be
ENDLESS = 1_000_000
INDENT, DEDENT, LINE = "_INDENT", "_DEDENT", "_NEWLINE"
SPELLINGS = {
    "NAME": ["x", "y", "self", "loss", "model", "torch", "_", "é", "𝔁", "print"],
    "STRING": [
        "''",
        '"a"',
        "b'\\x00'",
        "r'\\d'",
        "f'{x}'",
        "f'{x!r:>{y}}'",
        "'\\N{EN DASH}'",
        "u'é'",
    ],
    "LONG_STRING": ['"""\n"""', "'''a'''", 'f"""{x}\n"""', 'rb"""\\""""'],
    "DEC_NUMBER": ["0", "1", "1_000", "00", "9" * 40],
    "HEX_NUMBER": ["0xF_f", "0X0"],
    "OCT_NUMBER": ["0o7", "0O1_2"],
    "BIN_NUMBER": ["0b1", "0B0_1"],
    "FLOAT_NUMBER": [".5", "1.", "1e9", "1_0.0E-1_0", "1e999"],
    "IMAG_NUMBER": ["0j", "1.5J"],
    LINE: ["\n", "\r\n", "\n\n", "  # a comment\n", "\n\x0c\n", " \\\n\n"],
}


class Grammar:
    """The grammar's rules: what each symbol can be, and how deep its shallowest expansion is."""

    def __init__(self) -> None:
        package = find_spec("hypothesmith")  # which takes seconds to be imported
        assert package is not None
        assert package.origin is not None
        text = Path(package.origin).with_name("python.lark").read_text(encoding="utf-8")
        terminals, rules, _ = Lark(text, start="file_input").grammar.compile(["file_input"], ())
        self.words = {
            each.name: SPELLINGS.get(each.name, [each.pattern.value]) for each in terminals
        }
        self.expansions: dict[str, list[list[str]]] = defaultdict(list)
        for rule in rules:
            self.expansions[rule.origin.name].append([symbol.name for symbol in rule.expansion])
        for ways in self.expansions.values():
            ways.sort()
        self.depths = dict.fromkeys([*self.words, INDENT, DEDENT], 0)
        while missing := self.expansions.keys() - self.depths:
            found = {name: min(map(self._depth, self.expansions[name])) for name in missing}
            self.depths |= {name: 1 + depth for name, depth in found.items() if depth < ENDLESS}

    def _depth(self, expansion: list[str]) -> int:
        return max((self.depths.get(name, ENDLESS) for name in expansion), default=0)

    def tokens(self, choose: random.Random, name: str, depth: int) -> list[str]:
        """Some expansion of the symbol `name`, no deeper than `depth` unless it has to be."""
        if name not in self.expansions:
            return [choose.choice(self.words[name])] if name in self.words else [name]
        most = max(depth, self.depths[name]) - 1
        fitting = [each for each in self.expansions[name] if self._depth(each) <= most]
        if choose.random() < PLAIN:  # `a` rather than `a + a`, of which each is as much again
            least = min(len(each) for each in fitting)
            fitting = [each for each in fitting if len(each) == least]
        return [
            token for each in choose.choice(fitting) for token in self.tokens(choose, each, most)
        ]


@functools.cache
def _grammar() -> Grammar:
    return Grammar()


def module(seed: int) -> str:
    """A module of up to six statements that Python parses; the same for the same seed."""
    choose = random.Random(seed)
    return "".join(_statement(choose) for _ in range(choose.randrange(1, 7)))


def _statement(choose: random.Random) -> str:
    while True:
        text = _text(_grammar().tokens(choose, "stmt", choose.choice(DEPTHS)), choose)
        if _parses(text):
            return text


def _text(tokens: list[str], choose: random.Random) -> str:
    """The tokens as text: blanks between them, and each line as deep as its block."""
    step, deep, text, starts = choose.choice(["    ", " ", "\t"]), 0, "", True
    for token in tokens:
        if token in (INDENT, DEDENT):
            deep += 1 if token == INDENT else -1
            continue
        ends = token in SPELLINGS[LINE]
        text += token if ends else f"{step * deep if starts else ' '}{token}"
        starts = ends
    return text


def _parses(text: str) -> bool:
    """Python's grammar does not say all that its parser asks for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of literals that Python will refuse one day
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True
