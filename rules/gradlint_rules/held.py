"""Whether parameters are the same or overlap: those that an optimizer holds, a loss reaches, a clip
bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gradlint.finding import Span
from gradlint.tape import Backward, Kind, Module, Optimizer, OptimizerStep, Parameter, Tape, Value

STAYS = "stays-put"  # `.cpu()`, `.float()`: the same tensor, but for one that was made otherwise


def overlap(one: Parameter, other: Parameter) -> bool:
    """Whether the two are one parameter, or one of them stands for all the parameters of a module
    around the other.

    They may be of two paths: there it is known by where it is made, and what it is called.
    """
    return meet(one, other) or one.identity == other.identity


def meet(one: Parameter, other: Parameter) -> bool:
    """Whether the two, of one path, overlap."""
    return one is other or _covers(one, other) or _covers(other, one)


class Overlapping:
    """Some parameters, of any paths, against which many others are held: the answer of `overlap`
    with any of them.
    """

    __slots__ = (
        "_around",
        "_makings",
        "_named_around",
        "_same",
        "_whole",
        "_whole_named",
        "_whole_unseen",
        "_within",
    )

    def __init__(self, parameters: Iterable[Parameter]) -> None:
        self._same: set[object] = set()  # what they are, by identity
        self._whole: set[int] = set()  # the modules that one of them stands for all of
        self._makings: set[int] = set()  # and what code out of view made these of
        self._whole_named: set[str] = set()
        self._whole_unseen: set[str] = set()
        self._around: set[int] = set()  # the modules that one of them is a part of, or made of
        self._within: set[int] = set()  # those that are made with all that is in them
        self._named_around: dict[bool, set[str]] = {False: set(), True: set()}  # by what is unseen
        for each in {id(one): one for one in parameters}.values():
            self._same |= {id(each), each.identity}
            module = each.module
            if module is None:
                continue
            if not each.name:
                self._whole.add(id(module))
                self._makings.update(map(id, _makings(module)))
                self._whole_named.add(module.path)
                self._whole_unseen |= {module.path} if module.unseen else set()
            self._around.update(map(id, _inside(module)))
            self._within.update(map(id, _taken_along(module)))
            self._named_around[module.unseen].update(_prefixes(module.path))

    def overlaps(self, parameter: Parameter) -> bool:
        """Whether the parameter overlaps with one of them."""
        if id(parameter) in self._same or parameter.identity in self._same:
            return True
        return parameter.module is not None and (
            self._covers(parameter.module) or (not parameter.name and self._meets(parameter.module))
        )

    def _covers(self, module: Module) -> bool:
        if any(id(each) in self._whole for each in _inside(module)):
            return True
        if any(id(each) in self._makings for each in _taken_along(module)):
            return True
        known = self._whole_named if module.unseen else self._whole_unseen
        return bool(known) and not known.isdisjoint(_prefixes(module.path))

    def _meets(self, whole: Module) -> bool:
        if id(whole) in self._around or whole.path in self._named_around[True]:
            return True
        if any(id(each) in self._within for each in _makings(whole)):
            return True
        return whole.unseen and whole.path in self._named_around[False]


def _outwards(module: Module | None) -> Iterator[Module]:
    while module is not None:
        yield module
        module = module.parent


def _inside(module: Module) -> Iterator[Module]:
    """What a module is a part of, and what code out of view made these of: `wrap(model)` can give
    `model` back, or a part of it.
    """
    for outer in _outwards(module):
        yield outer
        yield from _makings(outer)


def _makings(module: Module) -> Iterator[Module]:
    """What code out of view made a module of, which it can hold, and what that was made of."""
    found = set(map(id, module.made_of))
    waiting = [*module.made_of]
    while waiting:
        made = waiting.pop()
        yield made
        waiting += [each for each in made.made_of if id(each) not in found]
        found.update(map(id, made.made_of))


def _taken_along(module: Module) -> Iterator[Module]:
    """The modules with which a module goes where something is made of them: those around it that
    are in view; of something unknown, a part need not be in what is made of it.
    """
    return (outer for outer in _outwards(module) if outer is module or not outer.unseen)


def _prefixes(path: str) -> list[str]:
    """`a`, `a.b` and `a.b.c` of `a.b.c`."""
    return [f"{path}."[:end] for end, letter in enumerate(f"{path}.") if letter == "."]


def _covers(whole: Parameter, part: Parameter) -> bool:
    if whole.name or whole.module is None or part.module is None:
        return False
    return _is_within(part.module, whole.module)


def _is_within(module: Module, other: Module) -> bool:
    if any(each is other for each in _inside(module)):
        return True
    if other.made_of and not set(map(id, _makings(other))).isdisjoint(
        map(id, _taken_along(module))
    ):
        return True
    is_known_by_name = module.unseen or other.unseen
    return is_known_by_name and f"{module.path}.".startswith(f"{other.path}.")


def reached(sink: Backward) -> list[Parameter]:
    """The parameters that a backward gives a gradient."""
    return identities(sink.leaves)


def distinct(values: Iterable[Value]) -> list[Parameter]:
    """The parameters that some values are, each once."""
    return list(
        {
            id(value.parameter): value.parameter for value in values if value.parameter is not None
        }.values()
    )


def identities(values: Iterable[Value]) -> list[Parameter]:
    """The parameters that some values are."""
    return [value.parameter for value in values if value.parameter is not None]


def share(some: Iterable[Parameter], others: Iterable[Parameter]) -> bool:
    """Whether the two, of one path, have a parameter in common."""
    return _have_in_common(some, others, meet)


def share_across(some: Iterable[Parameter], others: Iterable[Parameter]) -> bool:
    """Whether the two, of any paths, have a parameter in common."""
    return _have_in_common(some, others, overlap)


def _have_in_common(
    some: Iterable[Parameter],
    others: Iterable[Parameter],
    are_one: Callable[[Parameter, Parameter], bool],
) -> bool:
    these, known = list(some), list(others)
    if {id(one) for one in these} & {id(other) for other in known}:
        return True
    return any(are_one(one, other) for one in these for other in known)


def optimizes(optimizer: Optimizer, parameters: Iterable[Parameter], tape: Tape) -> bool:
    """Whether an optimizer holds one of these, or is the only one there is and not known to hold
    others.
    """
    if optimizer.parameters:
        held = identities(optimizer.parameters)
        return any(meet(one, other) for one in parameters for other in held)
    stepped = {id(step.optimizer) for step in tape.of(OptimizerStep)}
    return not optimizer.complete and stepped <= {id(optimizer)}


def is_meant_as_leaf(value: Value) -> bool:
    """Whether it was computed from leaves that the program made itself, and from nothing else with
    a gradient.
    """
    if value.assumed or value.kind is not Kind.OPERATION or STAYS in value.flags:
        return False
    sources = [source for source in value.inputs if source.requires_grad]
    while len(sources) == 1 and sources[0].kind is Kind.OPERATION:  # x.to(device) * 0.02
        sources = [source for source in sources[0].inputs if source.requires_grad]
    return bool(sources) and all(
        source.kind in (Kind.LEAF, Kind.PARAMETER) and not source.assumed for source in sources
    )


def common_place(parameters: Sequence[Value]) -> tuple[Span, tuple[Span, ...]]:
    """Where all of them are made: the innermost call that they share, and the calls that led
    there.
    """
    ways = [(*leaf.stack, leaf.at) for leaf in parameters]
    shared = [steps[0] for steps in zip(*ways, strict=False) if len(set(steps)) == 1] or [
        ways[0][0]
    ]
    return shared[-1], tuple(shared[:-1])


def frozen_before(order: int, tape: Tape) -> set[int]:
    """The parameters, by their identity, that were frozen before so many events of a path."""
    frozen = (fact.value for fact in tape.facts("frozen") if fact.order < order)
    parameters = (value.parameter for value in frozen if value is not None)
    return {id(parameter) for parameter in parameters if parameter is not None}
