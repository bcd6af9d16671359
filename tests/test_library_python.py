"""Programs of plain Python, run by the interpreter: what their names are bound to in the end."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from gradlint import library
from gradlint.interpret.machine import Machine, Raised, Stop
from gradlint.interpret.paths import Oracle
from gradlint.interpret.scopes import Frame
from gradlint.interpret.session import Session
from gradlint.interpret.values import (
    Abstract,
    Class,
    Const,
    Instance,
    Lib,
    Mapping,
    Object,
    Range,
    Sequence,
    Tensor,
    Unknown,
)
from gradlint.program.modules import Program
from gradlint.tape import Cut, Kept, Tape


def run(text: str) -> dict[str, Abstract]:
    """The names of a script, as its first path leaves them."""
    return _ran(text)[1].locals


def tape_of(text: str) -> Tape:
    """What the first path of a script writes down."""
    return _ran(text)[0].tape


def _ran(text: str) -> tuple[Machine, Frame]:
    library.load()
    source = textwrap.dedent(text)
    program = Program(
        lambda path: (source, ast.parse(source)) if path.name == "script.py" else None
    )
    found = program.source(Path("script.py"))
    assert found is not None
    machine = Machine("script", Oracle(frozenset(), {}), Session(program))
    frame = Frame(found.code, {})
    machine.frames.append(frame)
    machine.execute(found.statements, frame)
    return machine, frame


def shown(value: Abstract | None) -> object:
    """A value as plain Python, as far as it is known: `...` for what is not."""
    match value:
        case Const():
            return value.value
        case Sequence():
            items = [shown(item) for item in value.items] + ([...] if value.open else [])
            return tuple(items) if value.kind == "tuple" else items
        case Mapping():
            return {key: shown(item) for key, item in value.items.items()} | (
                {...: ...} if value.open else {}
            )
        case Range():
            return tuple(shown(bound) for bound in (value.start, value.stop, value.step))
        case Object():
            return value.cls
        case Instance():
            return value.cls.name
        case Lib() | Class():
            return value.name
        case Tensor():
            return "tensor"
    return ...


def result(text: str) -> object:
    """What the script leaves in `result`."""
    return shown(run(text)["result"])


def unknown(text: str) -> Unknown:
    """The unknown that the script leaves in `result`."""
    found = run(text)["result"]
    assert isinstance(found, Unknown)
    return found


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("len([1, 2, 3])", 3),
        ("len('four')", 4),
        ("len({'a': 1})", 1),
        ("len(range(2, 10, 3))", 3),
        ("sum([1, 2, 3])", 6),
        ("sum((1, 2), 10)", 13),
        ("sum([])", 0),
        ("max(1, 5, 3)", 5),
        ("min([4, 2])", 2),
        ("max([], default=7)", 7),
        ("abs(-3)", 3),
        ("round(2.6)", 3),
        ("divmod(7, 2)", (3, 1)),
        ("int('12') + int(3.9)", 15),
        ("float('inf')", float("inf")),
        ("bool([])", False),
        ("bool('x')", True),
        ("str(1) + repr('a')", "1'a'"),
        ("list(range(3))", [0, 1, 2]),
        ("tuple('ab')", ("a", "b")),
        ("dict([('a', 1)], b=2)", {"a": 1, "b": 2}),
        ("sorted([3, 1, 2], reverse=True)", [3, 2, 1]),
        ("list(reversed([1, 2]))", [2, 1]),
        ("list(zip([1, 2, 3], 'ab'))", [(1, "a"), (2, "b")]),
        ("list(enumerate('ab', 1))", [(1, "a"), (2, "b")]),
        ("list(map(lambda x: x + 1, [1, 2]))", [2, 3]),
        ("list(filter(lambda x: x > 1, [1, 2]))", [2]),
        ("any([0, 1]), all([]), all([1, 0])", (True, True, False)),
        ("callable(len), callable(3)", (True, False)),
        ("next(iter([5]))", 5),
        ("next(iter([]), 'none')", "none"),
        ("[*{'a': 1}.items()]", [("a", 1)]),
        ("{'a': 1}.get('b', 2)", 2),
        ("'a,b'.split(',')", ["a", "b"]),
        ("'-'.join(['a', 'b'])", "a-b"),
        ("'{}!'.format('x').upper()", "X!"),
        ("'loss'.startswith('lo')", True),
        ("isinstance(1, (int, float))", True),
        ("isinstance('a', int)", False),
        ("isinstance([], (tuple, list))", True),
        ("isinstance(None, str)", False),
        ("hasattr('', 'join'), hasattr([], 'keys')", (True, False)),
        ("type(1)", "builtins.int"),
        ("type([]) == list", True),
    ],
)
def test_builtins_of_known_values_give_what_python_gives(expression: str, value: object) -> None:
    assert result(f"result = {expression}") == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (
            "isinstance(Recorded(), gymnasium.Env), issubclass(Recorded, gymnasium.core.Env)",
            (True, True),
        ),
        (
            "isinstance(Recorded(), gymnasium.vector.VectorEnv), issubclass(Recorded, "
            "gymnasium.Space)",
            (..., ...),
        ),
        (
            "isinstance(Recorded(), pandas.DataFrame), issubclass(Recorded, pandas.DataFrame)",
            (False, False),
        ),
        ("isinstance(pandas.DataFrame(), pandas.core.generic.NDFrame)", ...),
        ("isinstance(Net(), torch.nn.Linear), issubclass(Net, torch.nn.Linear)", (False, False)),
    ],
)
def test_a_class_of_a_library_may_inherit_from_another_of_the_same_library(
    expression: str, value: object
) -> None:
    program = f"""
        import gymnasium, pandas, torch
        class Recorded(gymnasium.Wrapper):
            def __init__(self):
                pass
        class Net(torch.nn.Module):
            pass
        result = {expression}
    """
    assert result(program) == value


@pytest.mark.parametrize(
    ("imports", "expression", "value"),
    [
        ("math", "math.sqrt(9) + math.floor(2.5)", 5.0),
        ("math", "math.inf", float("inf")),
        ("itertools", "list(itertools.chain([1], (2, 3)))", [1, 2, 3]),
        ("itertools", "list(itertools.chain.from_iterable([[1], [2]]))", [1, 2]),
        ("itertools", "list(itertools.islice([1, 2, 3], 2))", [1, 2]),
        ("itertools", "list(itertools.islice(itertools.count(), 1, 2))", [1]),
        ("itertools", "list(itertools.product([1, 2], 'a'))", [(1, "a"), (2, "a")]),
        ("itertools", "list(itertools.pairwise([1, 2, 3]))", [(1, 2), (2, 3)]),
        ("itertools", "list(itertools.accumulate([1, 2, 3]))", [1, 3, 6]),
        ("itertools", "[x for _, x in zip(range(3), itertools.cycle('ab'))]", ["a", "b", "a"]),
        ("functools", "functools.reduce(lambda a, b: a + b, [1, 2, 3])", 6),
        ("functools", "functools.partial(max, 3)(2)", 3),
        ("functools", "functools.partial(sorted, reverse=True)([1, 2])", [2, 1]),
        ("operator", "operator.add(1, 2)", 3),
        ("operator", "operator.itemgetter(1)([4, 5])", 5),
        ("copy", "copy.deepcopy([1, [2]])", [1, [2]]),
        ("collections", "collections.deque([1, 2]).popleft()", 1),
        ("tqdm", "[x for x in tqdm.tqdm([1, 2], desc='x')]", [1, 2]),
        ("tqdm", "list(tqdm.trange(2))", [0, 1]),
        ("dataclasses", "[f for f in dataclasses.fields(int)]", [..., ...]),
    ],
)
def test_the_standard_library_gives_what_python_gives(
    imports: str, expression: str, value: object
) -> None:
    assert result(f"import {imports}\nresult = {expression}") == value


def test_a_bar_of_ones_own_hands_on_what_it_wraps() -> None:
    source = """
        from tqdm import tqdm
        class Bar(tqdm):
            def __init__(self, iterable, name):
                super().__init__(iterable, name)
        class Late(tqdm):
            def __init__(self, name):
                self.name = name
        result = [list(zip(Bar([1, 2], "x"), "ab")), len(Bar([1, 2], "x"))]
        for unknown in Late("y"):
            break
    """
    assert result(source) == [[(1, "a"), (2, "b")], 2]


def test_a_list_is_changed_by_its_methods() -> None:
    source = """
        result = [1]
        result.append(2)
        result.extend([3, 4])
        result.insert(0, 0)
        result.remove(3)
        result.pop()
    """
    assert result(source) == [0, 1, 2]


def test_a_dict_is_changed_by_its_methods() -> None:
    source = """
        result = dict(a=1)
        result.update({"b": 2}, c=3)
        result.setdefault("d", []).append(4)
        result.pop("a")
    """
    assert result(source) == {"b": 2, "c": 3, "d": [4]}


def test_an_object_is_a_key_of_a_dict_or_is_none() -> None:
    names = run("""
        class Key:
            pass
        a, b = Key(), Key()
        known = {a: 1}
        before, other = a in known, b not in known
        known[input()] = 2
        after, unsure = a in known, b in known
    """)
    assert [shown(names[name]) for name in ("before", "other", "after", "unsure")] == [
        True,
        True,
        True,
        ...,
    ]


def test_a_defaultdict_makes_what_is_missing() -> None:
    source = """
        from collections import defaultdict
        result = defaultdict(list)
        result["a"].append(1)
    """
    assert result(source) == {"a": [1]}


def test_an_iterator_is_used_up() -> None:
    source = """
        it = iter([1, 2])
        first = next(it)
        try:
            next(it)
            next(it)
        except StopIteration:
            result = first
    """
    assert result(source) == 1


def test_the_next_item_of_a_generator_is_what_it_yields_first() -> None:
    source = """
        def numbers():
            yield 1
            yield 2
        result = next(numbers())
    """
    assert result(source) == 1


def test_enumerate_counts_in_plain_constants() -> None:
    count = run("for count, letter in enumerate('ab'):\n    pass")["count"]
    assert isinstance(count, Const)
    assert (count.value, count.at) == (1, None)


def test_the_sum_of_nothing_is_a_constant_made_at_the_call() -> None:
    total = run("losses = []\nresult = sum(losses)")["result"]
    assert isinstance(total, Const)
    assert total.at is not None
    assert total.at.line == 2


def test_command_line_arguments_are_unknown_typed_and_stable() -> None:
    names = run("""
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--learning-rate", "-l", type=float, default=0.1)
        parser.add_argument("--amp", action="store_true")
        parser.add_argument("--name", choices=["a", "b"])
        args = parser.parse_args()
        rate, again, amp, name, other = args.learning_rate, args.learning_rate, args.amp, args.name, args.other
    """)
    rate, again, amp, name, other = (names[n] for n in ("rate", "again", "amp", "name", "other"))
    assert all(
        isinstance(value, Unknown) and value.data for value in (rate, again, amp, name, other)
    )
    assert isinstance(rate, Unknown)
    assert isinstance(again, Unknown)
    assert rate.symbol is again.symbol
    assert [getattr(value, "type", None) for value in (rate, amp, name)] == [
        "number",
        "bool",
        "str",
    ]


def test_the_same_question_has_the_same_answer_and_another_draw_is_another_number() -> None:
    names = run("""
        import os, random
        a, b = os.path.exists("x"), os.path.exists("x")
        c, d = random.random(), random.random()
    """)
    a, b, c, d = (names[n] for n in "abcd")
    assert isinstance(a, Unknown)
    assert isinstance(b, Unknown)
    assert isinstance(c, Unknown)
    assert isinstance(d, Unknown)
    assert a.symbol is b.symbol
    assert c.symbol is not d.symbol
    assert all(value.data for value in (a, c))


def test_libraries_without_autograd_give_data() -> None:
    assert unknown("import pandas as pd\nresult = pd.read_csv('x.csv')['y'].values").data


def test_a_dataclass_has_its_fields() -> None:
    source = """
        from dataclasses import asdict, dataclass, field, replace

        @dataclass(frozen=True)
        class Settings:
            rate: float
            names: list = field(default_factory=list)

        result = asdict(replace(Settings(0.1), rate=0.2))
    """
    assert result(source) == {"rate": 0.2, "names": []}


def test_named_tuples_unpack() -> None:
    source = """
        from collections import namedtuple
        from typing import NamedTuple
        Point = namedtuple("Point", "x y")

        class Batch(NamedTuple):
            first: int
            second: int = 4

        x, y = Point(1, y=2)
        first, second = Batch(3)
        result = (x, y, first, second, Point(5, 6).y, Batch(7)[0])
    """
    assert result(source) == (1, 2, 3, 4, 6, 7)


def test_partials_decorators_and_properties() -> None:
    source = """
        import functools

        def logged(f):
            @functools.wraps(f)
            def inner(*args):
                return f(*args)
            return inner

        class Counter:
            def __init__(self):
                self._n = 1

            @property
            def n(self):
                return self._n

            @n.setter
            def n(self, value):
                self._n = value + 1

            @logged
            @functools.lru_cache(maxsize=None)
            def add(self, x):
                return self._n + x

            @staticmethod
            def two():
                return 2

            @classmethod
            def make(cls):
                return cls()

            def __len__(self):
                return 9

        counter = Counter.make()
        counter.n = 4
        result = (counter.n, counter.add(1), Counter.two(), len(counter), hasattr(counter, "m"))
    """
    assert result(source) == (5, 6, 2, 9, False)


def test_getattr_and_setattr_by_known_names() -> None:
    source = """
        class Box:
            pass

        box = Box()
        setattr(box, "a", 1)
        result = (getattr(box, "a"), getattr(box, "b", 2), vars(box)["a"])
    """
    assert result(source) == (1, 2, 1)


def test_super_finds_the_next_class() -> None:
    source = """
        class A:
            def value(self):
                return 1

        class B(A):
            def value(self):
                return super().value() + super(B, self).value()

        result = B().value()
    """
    assert result(source) == 2


def test_a_context_manager_runs_around_its_body() -> None:
    source = """
        from contextlib import ExitStack, contextmanager, nullcontext, suppress
        result = []

        @contextmanager
        def noted(name):
            result.append(name)
            yield name + "!"
            result.append("end")

        with noted("a") as entered:
            result.append(entered)
        with nullcontext(1) as one:
            result.append(one)
        with suppress(ValueError):
            raise ValueError("x")
        with ExitStack() as stack:
            stack.enter_context(nullcontext())

        @noted("b")
        def work():
            return 3

        result.append(work())
    """
    assert result(source) == ["a", "a!", "end", 1, "b", "end", 3]


def test_a_number_of_a_tensor_is_a_copy() -> None:
    number = unknown("""
        import torch
        w = torch.ones(2, requires_grad=True)
        result = float((w * 2).sum())
    """)
    assert number.origin is not None
    assert number.origin.cut is Cut.COPY


def test_a_copied_number_is_followed_through_math() -> None:
    number = unknown("""
        import math, torch
        w = torch.ones(2, requires_grad=True)
        result = math.log((w * 2).sum())
    """)
    assert number.data
    assert number.origin is not None


def test_tensors_are_told_from_numbers() -> None:
    source = """
        import torch
        x = torch.ones(2)
        result = (isinstance(x, torch.Tensor), isinstance(x, (int, float)), isinstance(0.0, torch.Tensor))
    """
    assert result(source) == (True, False, False)


def test_a_deep_copy_of_a_leaf_is_another_leaf() -> None:
    names = run("""
        import copy, torch
        w = torch.ones(2, requires_grad=True)
        v = copy.deepcopy(w)
    """)
    w, v = names["w"], names["v"]
    assert isinstance(w, Tensor)
    assert isinstance(v, Tensor)
    assert v.node is not w.node
    assert v.node.requires_grad
    assert v.node.is_leaf
    assert v.node.storage is not w.node.storage


def test_exit_ends_the_program() -> None:
    with pytest.raises(Stop):
        run("import sys\nsys.exit(1)")


def test_what_is_raised_is_an_object_of_its_class() -> None:
    with pytest.raises(Raised) as raised:
        run("raise ValueError('x')")
    assert shown(raised.value.value) == "builtins.ValueError"


NAMES = """
    abs all any bool dict divmod enumerate filter float getattr hasattr int isinstance issubclass iter len list map max
    min next pow print range repr reversed round set setattr sorted str sum super tuple type vars zip
"""


@pytest.mark.parametrize(
    "arguments", ["", "3", "unknown", "*unknown", "unknown, 1", "None, None, None", "()", "len"]
)
@pytest.mark.parametrize("name", NAMES.split())
def test_no_arguments_are_too_odd(name: str, arguments: str) -> None:
    assert "result" in run(f"result = {name}({arguments})")


def test_members_of_an_enum_are_equal_to_themselves_alone() -> None:
    source = """
        from enum import Enum, auto

        class Mode(Enum):
            TRAIN = "train"
            EVAL = auto()

        mode = Mode("train")
        result = (mode == Mode.TRAIN, mode is Mode.TRAIN, mode == Mode.EVAL, mode.value, Mode.EVAL.name)
    """
    assert result(source) == (True, True, False, "train", "EVAL")


def test_a_list_that_outlives_a_round_keeps_the_graphs_it_is_given() -> None:
    source = """
        import torch
        w = torch.ones(2, requires_grad=True)
        losses = []
        for step in range(3):
            fresh = []
            fresh.append(w.sum())
            losses.append({})
        for step in range(3):
            losses.append(w.sum())
            w.sum().backward()
    """
    kept = [event for event in tape_of(source).events if isinstance(event, Kept)]
    assert kept
    assert {event.at.line for event in kept} == {10}


def test_constants_are_imported_with_their_value() -> None:
    source = """
        from math import inf
        from typing import TYPE_CHECKING
        result = (-inf < 0, TYPE_CHECKING)
    """
    assert result(source) == (True, False)


def test_copied_modules_have_parameters_of_their_own() -> None:
    names = run("""
        import copy
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(2, 2)])

        net = Net()
        target = copy.deepcopy(net)
        for p in target.parameters():
            p.requires_grad_(False)
        result = [p.requires_grad for p in [*net.parameters(), *target.parameters()]]
        pairs = [(p, q) for p, q in zip(net.parameters(), target.parameters())]
    """)
    found, pairs = shown(names["result"]), names["pairs"]
    assert isinstance(found, list)
    assert found == [True] * (len(found) // 2) + [False] * (len(found) // 2)
    assert isinstance(pairs, Sequence)
    paths = [
        part.node.parameter.path
        for part in _parts(pairs)
        if isinstance(part, Tensor) and part.node.parameter
    ]
    assert [path.partition(".")[0] for path in paths] == ["net", "target"] * (len(paths) // 2)


def _parts(pairs: Sequence) -> list[Abstract]:
    return [part for pair in pairs.items if isinstance(pair, Sequence) for part in pair.items]


def test_a_stack_of_contexts_ends_what_was_entered() -> None:
    names = run("""
        import contextlib, torch
        w = torch.ones(2, requires_grad=True)
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            inside = w * 2
        outside = w * 2
    """)
    inside, outside = names["inside"], names["outside"]
    assert isinstance(inside, Tensor)
    assert isinstance(outside, Tensor)
    assert (inside.node.requires_grad, outside.node.requires_grad) == (False, True)


def test_an_optimizer_chosen_by_name_is_an_optimizer() -> None:
    source = """
        import torch
        def train(name, model):
            return getattr(torch.optim, name)(model.parameters(), lr=0.1)
        result = train(name, model)
    """
    assert result(source) == "torch.optim.Optimizer"


LACKING = """\
functools.partial()
functools.reduce(max)
contextlib.contextmanager()
operator.add(1)
operator.lt(1)
divmod(1)
{}.pop()
{}.setdefault()
{}.popitem()
[].insert(1)
torch.vmap()
torch.func.grad()
torch.func.vjp()
torch.func.functional_call()
torch.autograd.functional.jacobian()
torch.utils.checkpoint.checkpoint()
torch.utils.checkpoint.checkpoint_sequential()
torch.nn.DataParallel()
torch.amp.GradScaler('cpu').scale(None)
torch.amp.GradScaler('cpu').step()
torch.optim.SGD(None).step
torch.optim.SGD(3)
torch.nn.utils.parametrizations.weight_norm()
torch.nn.utils.clip_grad_norm_(None, 1.0)
torch.nn.ModuleList().pop()
torch.nn.functional.relu_()
torch.autograd.backward('a')
torch.autograd.grad('a', [])
dataclasses.asdict(3)
dataclasses.replace(3)
dataclasses.is_dataclass()
""".splitlines()


@pytest.mark.parametrize("expression", LACKING)
def test_a_program_goes_on_behind_a_call_that_lacks_its_arguments(expression: str) -> None:
    head = (
        "import contextlib, dataclasses, functools, operator\nimport torch\n"
        "import torch.utils.checkpoint\n"
    )
    assert result(f"{head}{expression}\nresult = 1") == 1


@pytest.mark.parametrize(
    ("items", "kind"), [("[1, 2.0]", "number"), ("['a', 'b']", "str"), ("[1, 'a']", "")]
)
def test_what_is_chosen_at_random_is_not_known_but_for_its_type(items: str, kind: str) -> None:
    assert unknown(f"import random\nresult = random.choice({items})").type == kind
    assert result("import random\nresult = random.choice([[3], [4]])") == [3]


def test_what_a_function_reaches_that_is_handed_away_is_open() -> None:
    program = """
import somewhere
history, other = [], []

def outer():
    near = []
    def hook(x):
        history.append(x)
        near.append(x)
    somewhere.register(hook)
    return near

near = outer()
result = (history, near, other)
"""
    assert result(program) == ([...], [...], [])
