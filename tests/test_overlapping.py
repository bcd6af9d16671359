"""Sets of parameters answer as the pairs do: `Overlapping` as `overlap`, `Held` as
`Optimizer.holds`.
"""

from __future__ import annotations

import random

from gradlint_rules.held import Overlapping, overlap

from gradlint.finding import Span
from gradlint.tape import Kind, Module, Optimizer, Parameter, Value
from gradlint.tape.held import Held

AT = [Span("train.py", line, 1, line, 9) for line in range(1, 4)]


def drawn(chance: random.Random) -> list[Parameter]:
    """Parameters of a few modules that stand in each other, some of them out of view."""
    modules: list[Module | None] = [None]
    for _ in range(6):
        name = chance.choice(["model", "body", "body.head", "0", "self"])
        modules.append(Module(name, chance.choice(modules), unseen=chance.random() < 0.4))
    return [
        Parameter(chance.choice(["", "", "weight"]), chance.choice(modules), chance.choice(AT))
        for _ in range(8)
    ]


def test_a_set_overlaps_where_one_of_it_does() -> None:
    chance, answers = random.Random(0), set()
    for _ in range(400):
        parameters = drawn(chance)
        some = chance.sample(parameters, 3)
        asked = Overlapping(some)
        for parameter in parameters:
            answer = any(overlap(parameter, other) for other in some)
            assert asked.overlaps(parameter) is answer
            answers.add(answer)
    assert answers == {True, False}


def test_a_set_of_optimizers_holds_what_one_of_them_does() -> None:
    chance, answers = random.Random(1), set()
    for _ in range(400):
        parameters = drawn(chance)
        optimizers = [
            Optimizer(
                "opt",
                "SGD",
                AT[0],
                [Value("p", Kind.PARAMETER, (), AT[0], parameter=one) for one in some],
            )
            for some in (chance.sample(parameters, 2), chance.sample(parameters, 1))
        ]
        held = Held(optimizers)
        for parameter in parameters:
            answer = any(each.holds(parameter) for each in optimizers)
            assert held.holds(parameter) is answer
            answers.add(answer)
    assert answers == {True, False}
