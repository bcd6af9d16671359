# ruff: noqa: E501 (one line a program)
"""Programs of plain Python: what the interpreter says of their `result` is what Python gives, as far as it says anything."""

from __future__ import annotations

import pytest
from test_library_python import result

PROGRAMS = {
    # lists, sets, deques
    "append, extend, insert": "x = [1]\nx.append(2)\nx.extend((3, 4))\nx.insert(-1, 9)\nresult = x",
    "pop": "x = [1, 2, 3, 4]\nresult = (x.pop(), x.pop(0), x.pop(-2), x)",
    "remove the first of two": "x = [1, 2, 1]\nx.remove(1)\nresult = x",
    "index, count": "x = [3, 1, 3]\nresult = (x.index(1), x.count(3), (1, 2).index(2), (1, 1).count(1), x.count(7))",
    "reverse, sort": "x = [3, 1, 2]\nx.sort()\ny = x.copy()\ny.reverse()\nresult = (x, y)",
    "sort by a key": "x = ['bb', 'a']\nx.sort(key=len, reverse=True)\nresult = x",
    "clear": "x = [1]\nx.clear()\nresult = (x, len(x))",
    "a copy is another list": "x = [1]\ny = x.copy()\ny.append(2)\nresult = (x, y)",
    "appendleft, popleft": "import collections\nx = collections.deque([1])\nx.appendleft(0)\nresult = (x.popleft(), x.popleft(), len(x))",
    "extendleft": "import collections\nx = collections.deque([1])\nx.extendleft([2, 3])\nresult = list(x)",
    "rotate": "import collections\nx = collections.deque([1, 2, 3])\nx.rotate(1)\nresult = x[0]",
    "rotate back": "import collections\nx = collections.deque([1, 2, 3])\nx.rotate(-1)\nresult = list(x)",
    "a set has each once": "x = {1}\nx.add(1)\nx.add(2)\nx.update([2, 3])\nx.discard(7)\nx.remove(1)\nresult = sorted(x)",
    "set operations": "a, b = {1, 2}, {2, 3}\nresult = (sorted(a.union(b)), sorted(a.intersection(b)), sorted(a.difference(b)))",
    "set in": "result = (1 in {1}, 2 in {1}, 2 not in [1], {1}.__contains__(1))",
    "dunder length": "result = [1, 2].__len__()",
    "dunder iter": "result = next([7].__iter__())",
    "delete": "x = [0, 1, 2]\ndel x[1]\nd = {'a': 1, 'b': 2}\ndel d['a']\nresult = (x, d)",
    "slices": "x = [0, 1, 2, 3]\nresult = (x[::-1], x[-2:], x[:1], x[1:3], (1, 2)[1:])",
    "sorted by length": "result = sorted(['bb', 'a'], key=len)",
    "refused lengths": "import itertools\nresult = len(list(itertools.combinations([], 2)))",
    "multiplied": "result = ([0] * 3, (1,) * 2, 'ab' * 2, 2 * [1])",
    "added": "x = [1]\ny = x\nx += [2]\nz = x + [3]\nresult = (x, y, z)",
    # dicts
    "get, setdefault, pop": "d = {'a': 1}\nresult = (d.get('a'), d.get('b'), d.get('b', 2), d.setdefault('c', 3), d.pop('a'), d.pop('z', 4), d)",
    "keys, values, items": "d = {'a': 1, 'b': 2}\nresult = (list(d), list(d.keys()), list(d.values()), list(d.items()))",
    "merged": "a, b = {'x': 1}, {'x': 2, 'y': 3}\nresult = (a | b, {**a, **b})",
    "merged in place": "a = {'x': 1}\na |= {'y': 2}\na.update(z=3)\nresult = a",
    "popitem": "d = {'a': 1, 'b': 2}\nresult = (d.popitem(), d)",
    "dict copy": "d = {'a': 1}\ne = d.copy()\ne['a'] = 2\nresult = (d, e)",
    "dict in": "d = {'a': 1}\nresult = ('a' in d, 'b' in d, len(d))",
    "comprehension": "result = {k: v + 1 for k, v in {'a': 1}.items() if v}",
    "defaultdict": "import collections\nd = collections.defaultdict(int)\nd['a'] += 2\nresult = d['a']",
    "OrderedDict": "import collections\nd = collections.OrderedDict(a=1)\nd['b'] = 2\nresult = list(d)",
    "ChainMap": "import collections\nresult = collections.ChainMap({'a': 1}, {'a': 2, 'b': 3})['b']",
    # iterators
    "repeat": "import itertools\nresult = list(itertools.repeat(1, 3))",
    "count by": "import itertools\nresult = [x for x, _ in zip(itertools.count(5, 2), 'abc')]",
    "next of count": "import itertools\nc = itertools.count(1, 3)\nresult = (next(c), next(c), next(c))",
    "starmap": "import itertools\nresult = list(itertools.starmap(lambda a, b: a + b, [(1, 2), (3, 4)]))",
    "combinations": "import itertools\nresult = list(itertools.combinations([1, 2, 3], 2))",
    "permutations": "import itertools\nresult = list(itertools.permutations([1, 2, 3]))",
    "permutations of two": "import itertools\nresult = list(itertools.permutations([1, 2, 3], 2))",
    "product repeat": "import itertools\nresult = list(itertools.product([0, 1], repeat=2))",
    "zip_longest": "import itertools\nresult = list(itertools.zip_longest([1, 2], 'a', fillvalue='-'))",
    "accumulate with a function": "import itertools\nresult = list(itertools.accumulate([1, 2, 3], lambda a, b: a * b, initial=2))",
    "tee": "import itertools\na, b = itertools.tee([1, 2])\nresult = (list(a), list(b))",
    "islice with a step": "import itertools\nresult = list(itertools.islice(range(10), 1, 8, 3))",
    "takewhile": "import itertools\nresult = list(itertools.takewhile(lambda x: x < 2, [1, 2, 1]))",
    "dropwhile": "import itertools\nresult = list(itertools.dropwhile(lambda x: x < 2, [1, 2, 1]))",
    "compress": "import itertools\nresult = list(itertools.compress('abc', [1, 0, 1]))",
    "filterfalse": "import itertools\nresult = list(itertools.filterfalse(lambda x: x > 1, [1, 2]))",
    "chained": "import itertools\nresult = [x for x in itertools.chain('ab', [1], range(2))]",
    "a generator's send": "def g():\n    x = yield 1\n    yield x\nresult = next(g())",
    "zip of different lengths": "result = list(zip([1, 2, 3], 'ab', (True, False)))",
    "enumerate from": "result = list(enumerate('ab', start=3))",
    "map of two": "result = list(map(lambda a, b: a - b, [5, 6], [1, 2]))",
    "reversed range": "result = list(reversed(range(3)))",
    "max by": "result = (max(['a', 'bbb'], key=len), min(3, 1), min([], default=0))",
    "any, all": "result = (any(x > 1 for x in [1, 2]), all(x > 1 for x in [1, 2]))",
    "unpacked": "a, *b, c = range(5)\nresult = (a, b, c)",
    # numbers and strings
    "math": "import math\nresult = (math.ceil(1.2), math.floor(-1.2), math.prod([2, 3]), math.gcd(4, 6), math.log2(8), math.isnan(1.0))",
    "number operators": "result = (7 // 2, -7 // 2, 7 % 3, -7 % 3, 2 ** 3, 1 << 3, 6 & 3, 6 | 1, 6 ^ 3, ~1, 7 / 2)",
    "compared": "result = (1 < 2 < 3, 1 < 2 > 3, 1 == 1.0, 'a' < 'b', None is None, [] == [], (1, 2) < (1, 3))",
    "chosen": "result = (0 or 5, 1 and 0, not [], 1 if '' else 2)",
    "rounded": "result = (round(2.567, 2), round(2.5), round(-1.5), int(-2.7), int('7'), float('1.5'))",
    "string methods": "s = ' Ab_c '\nresult = (s.strip(), s.lower(), s.upper(), s.strip().title(), s.replace('_', '-'), s.strip().split('_'))",
    "string tests": "s = 'a.b.c'\nresult = (s.startswith('a'), s.endswith(('x', 'c')), s.find('b'), s.rfind('.'), s.count('.'), 'b' in s, s.isdigit())",
    "string parts": "s = 'a.b.c'\nresult = (s.partition('.'), s.rpartition('.'), s.rsplit('.', 1), s[0], s[-1], s[::2], len(s))",
    "lines": "result = ('a\\nb'.splitlines(), 'a b  c'.split(), 'x'.center(3), 'abc'.removeprefix('a'), 'abc'.removesuffix('c'))",
    # classes and functions
    "a class": "class A:\n    n = 1\n    def f(self):\n        return self.n + 1\nclass B(A):\n    n = 2\n    def f(self):\n        return super().f() + 10\nresult = (A().f(), B().f(), isinstance(B(), A), issubclass(B, A))",
    "getattr, setattr": "class A:\n    pass\na = A()\nsetattr(a, 'x', 1)\nresult = (a.x, getattr(a, 'y', 2), hasattr(a, 'x'), hasattr(a, 'y'), vars(a))",
    "delattr": "class A:\n    pass\na = A()\na.x = 1\ndelattr(a, 'x')\nresult = hasattr(a, 'x')",
    "static and class methods": "class A:\n    n = 3\n    @staticmethod\n    def f(x):\n        return x\n    @classmethod\n    def g(cls):\n        return cls.n\nresult = (A.f(1), A.g(), A().g())",
    "dunder call, getitem, len": "class A:\n    def __call__(self, x):\n        return x + 1\n    def __getitem__(self, i):\n        return i * 2\n    def __len__(self):\n        return 5\n    def __contains__(self, x):\n        return x == 1\na = A()\nresult = (a(1), a[2], len(a), 1 in a, 2 in a)",
    "dunder operators": "class A:\n    def __init__(self, n):\n        self.n = n\n    def __add__(self, o):\n        return A(self.n + o.n)\n    def __eq__(self, o):\n        return self.n == o.n\n    def __lt__(self, o):\n        return self.n < o.n\nresult = ((A(1) + A(2)).n, A(1) == A(1), A(1) < A(2))",
    "dunder iter class": "class A:\n    def __iter__(self):\n        yield 1\n        yield 2\nresult = list(A())",
    "properties": "class A:\n    @property\n    def x(self):\n        return 4\nresult = A().x",
    "slots and class attributes": "class A:\n    items = []\n    def add(self, x):\n        self.items.append(x)\nA().add(1)\nA().add(2)\nresult = A.items",
    "closures": "def outer():\n    n = 0\n    def inner():\n        nonlocal n\n        n += 1\n        return n\n    return inner\nf = outer()\nresult = (f(), f())",
    "defaults are shared": "def f(x, seen=[]):\n    seen.append(x)\n    return seen\nf(1)\nresult = f(2)",
    "arguments": "def f(a, /, b=2, *c, d, e=5, **g):\n    return (a, b, c, d, e, g)\nresult = (f(1, d=4), f(1, 2, 3, d=4, z=6))",
    "partial": "import functools\nf = functools.partial(lambda a, b, c=0: (a, b, c), 1, c=3)\nresult = f(2)",
    "reduce with a start": "import functools\nresult = functools.reduce(lambda a, b: a + b, [1, 2], 10)",
    "with": "import contextlib\nlog = []\n@contextlib.contextmanager\ndef c():\n    log.append(1)\n    yield 2\n    log.append(3)\nwith c() as x:\n    log.append(x)\nresult = log",
    "suppressed": "import contextlib\nresult = 0\nwith contextlib.suppress(ValueError):\n    raise ValueError\n    result = 1",
    "while else": "n = 0\nwhile n < 3:\n    n += 1\nelse:\n    n = 10\nfor i in range(3):\n    if i == 1:\n        break\nelse:\n    i = 9\nresult = (n, i)",
    "walrus": "result = [y for x in [1, 2, 3] if (y := x * 2) > 2]",
    "dataclass": "import dataclasses\n@dataclasses.dataclass(order=True)\nclass A:\n    x: int\n    y: list = dataclasses.field(default_factory=list)\na = A(1)\na.y.append(2)\nresult = (dataclasses.astuple(a), A(1) == A(1), [f.name for f in dataclasses.fields(A)])",
    "enum": "import enum\nclass C(enum.Enum):\n    A = 1\n    B = 2\nresult = (C.A.value, C.B.name, C.A is C.A, C['A'].value, C(2).name)",
    "named tuple": "import collections\nP = collections.namedtuple('P', ['x', 'y'], defaults=[5])\np = P(1)\nresult = (p.x, p.y, p._replace(x=3).x, p._asdict(), P._fields)",
    "a named tuple item by item": "import collections\nP = collections.namedtuple('P', 'x y')\np = P(1, 2)\nresult = ([x for x in p], list(p), len(p), p[-1])",
    "namespace": "import types\nn = types.SimpleNamespace(a=1)\nn.b = 2\nresult = (n.a, n.b)",
    "deepcopy": "import copy\nx = [[1]]\na, b = copy.copy(x), copy.deepcopy(x)\nx[0].append(2)\nresult = (a, b)",
    "operator": "import operator\nresult = (operator.mul(2, 3), operator.itemgetter('a', 'b')({'a': 1, 'b': 2}), operator.attrgetter('real')(3), operator.not_(1))",
    "type": "result = (type('a') is str, type(1) == int, isinstance(True, int), type([]).__name__)",
    "global": "n = 1\ndef f():\n    global n\n    n = 5\nf()\nresult = n",
    "lambda defaults": "result = [f() for f in [lambda i=i: i for i in range(3)]]",
    "late binding": "result = [f() for f in [lambda: i for i in range(3)]]",
    "yield from": "def a():\n    yield 1\n    return 2\ndef b():\n    x = yield from a()\n    yield x\nresult = list(b())",
    "any order of keys": "def f(**k):\n    return sorted(k)\nresult = f(b=1, a=2)",
    "operators as functions": "import operator as o\nresult = (o.sub(5, 2), o.floordiv(7, 2), o.getitem([4, 5], 1), o.lt(1, 2), o.ge(1, 2), o.eq(1, 1), o.ne(1, 1))",
    "a method by name": "import operator\nresult = operator.methodcaller('upper')('a')",
    "an attribute of an attribute": "import operator, types\na = types.SimpleNamespace(b=types.SimpleNamespace(c=3))\nresult = operator.attrgetter('b.c')(a)",
    "what a partial holds": "import functools\nf = functools.partial(max, 1, key=None)\nresult = (f.keywords, f.args)",
    "is a dataclass": "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\nclass B:\n    pass\nresult = (dataclasses.is_dataclass(A), dataclasses.is_dataclass(A()), dataclasses.is_dataclass(B))",
    "dataclass in a dataclass": "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\n@dataclasses.dataclass\nclass B(A):\n    y: int = 2\nresult = (dataclasses.asdict(B()), dataclasses.astuple(B(3)), B(x=5).x)",
    "dataclass after its making": "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\n    y: int = dataclasses.field(init=False, default=0)\n    def __post_init__(self):\n        self.y = self.x + 1\nresult = A(1).y",
    "numbers of an enum": "import enum\nclass C(enum.IntEnum):\n    A = 1\n    B = 2\nresult = C.A + 1",
    "enum by itself": "import enum\nclass C(enum.Enum):\n    A = enum.auto()\n    B = enum.auto()\nresult = (C.A.value, C.B.value, [c.name for c in C])",
    "enum by itself after a number": "import enum\nclass C(enum.Enum):\n    A = 5\n    B = enum.auto()\n    D = enum.auto()\nresult = (C.B.value, C.D.value)",
    "pairs into a dict": "d = {'a': 1}\nd.update([('b', 2)])\nresult = d",
    "an emptied dict": "d = {'a': 1}\nd.clear()\nd['b'] = 2\nresult = d",
    "dict length, dunder in": "d = {'a': 1}\nresult = (d.__len__(), d.__contains__('a'), list(d.fromkeys('ab', 1)))",
    "setdefault of what is there": "d = {'a': 1}\nresult = (d.setdefault('a', 2), d.setdefault('b'), d)",
    "order of keys": "import collections\nd = collections.OrderedDict([('a', 1), ('b', 2)])\nd.move_to_end('a')\nresult = list(d)",
    "popped at the front": "import collections\nd = collections.OrderedDict([('a', 1), ('b', 2)])\nresult = (d.popitem(last=False), d)",
    "a copied object": "import copy\nclass A:\n    pass\na = A()\na.x = [1]\nb, c = copy.copy(a), copy.deepcopy(a)\na.x.append(2)\nresult = (b.x, c.x, b is a)",
    "copied twice is one": "import copy\nx = [1]\ny = copy.deepcopy([x, x])\ny[0].append(2)\nresult = y",
    "nothing entered": "import contextlib\nwith contextlib.nullcontext(3) as x:\n    pass\nresult = x",
    "a stack of contexts": "import contextlib\nwith contextlib.ExitStack() as s:\n    x = s.enter_context(contextlib.nullcontext(2))\nresult = x",
    "own context": "log = []\nclass A:\n    def __enter__(self):\n        log.append(1)\n        return 5\n    def __exit__(self, *e):\n        log.append(2)\n        return True\nwith A() as x:\n    raise ValueError\nresult = (x, log)",
    "default of a default": "import collections\nd = collections.defaultdict(lambda: collections.defaultdict(list))\nd['a']['b'].append(1)\nresult = d['a']['b']",
    "kinds": "import collections.abc\nresult = (isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Mapping), isinstance(3, (str, float)), isinstance(len, type), isinstance(int, type))",
    "subclasses": "class A(dict):\n    pass\nresult = (issubclass(A, dict), issubclass(bool, int), isinstance(A(), dict))",
    "several bases": "class A:\n    def f(self):\n        return 'a'\nclass B(A):\n    def f(self):\n        return 'b' + super().f()\nclass C(A):\n    def f(self):\n        return 'c' + super().f()\nclass D(B, C):\n    pass\nresult = D().f()",
    "missing attributes": "class A:\n    def __getattr__(self, name):\n        return name + '!'\nresult = (A().x, getattr(A(), 'y', 0))",
    "class called through type": "class A:\n    def __init__(self, x=1):\n        self.x = x\na = A(2)\nresult = (type(a)(3).x, a.__class__().x, type(a).__name__)",
    "a counter of its own": "class A:\n    def __init__(self):\n        self.n = 0\n    def __iter__(self):\n        return self\n    def __next__(self):\n        self.n += 1\n        if self.n > 2:\n            raise StopIteration\n        return self.n\nresult = [x for x in A()]",
    "items by index": "class A:\n    def __getitem__(self, i):\n        if i > 1:\n            raise IndexError\n        return i * 10\nresult = list(A())",
    "sums": "result = (sum(x * x for x in range(4)), sum([[1], [2]], []), max(x for x in (3, 9, 2)))",
    "zip back": "a, b = zip(*[(1, 'x'), (2, 'y')])\nresult = (a, b)",
    "nested unpacking": "(a, (b, *c)), d = (1, (2, 3, 4)), 5\nresult = (a, b, c, d)",
    "finally after return": "log = []\ndef f():\n    try:\n        return 1\n    finally:\n        log.append(2)\nresult = (f(), log)",
    "raised again": "log = []\ntry:\n    try:\n        raise KeyError\n    except KeyError:\n        log.append(1)\n        raise ValueError\nexcept ValueError:\n    log.append(2)\nresult = log",
    "decorated with arguments": "def times(n):\n    def wrap(f):\n        def inner(x):\n            return f(x) * n\n        return inner\n    return wrap\n@times(3)\ndef f(x):\n    return x + 1\nresult = f(1)",
    "keywords handed on": "def f(*a, **k):\n    return g(*a, **k)\ndef g(x, y=0, *, z=0):\n    return (x, y, z)\nresult = (f(1, z=2), f(*[1, 2], **{'z': 3}))",
    "a generator with a state": "def g(n):\n    while n:\n        yield n\n        n -= 1\nresult = list(g(3))",
    "kinds of dicts": "import collections\nd = collections.OrderedDict(a=1)\nresult = (isinstance(d, collections.OrderedDict), isinstance(d, dict), isinstance({}, list), isinstance(collections.defaultdict(int), dict))",
    "a number is no object of a class": "import os\nclass A:\n    pass\nresult = (isinstance(len(os.listdir('.')), A), isinstance(A(), A), isinstance([A()], A), isinstance(A, A))",
    "roots of large numbers": "import math\nresult = (math.sqrt(10.0**12), math.ceil(1000.5), math.isnan(5000.0), math.pow(2, 10))",
    "a generator expression once": "g = (x for x in [1, 2])\nresult = (list(g), list(g))",
}


def agrees(said: object, true: object) -> bool:
    """Whether what is said is what is true; `...` says nothing, at the end of a list of what else may be in it."""
    if said is ...:
        return True
    if isinstance(said, list | tuple) and isinstance(true, list | tuple):
        is_open = said[-1:] in ([...], (...,)) and isinstance(said, list)
        lengths = len(said) - 1 <= len(true) if is_open else len(said) == len(true)
        return lengths and type(said) is type(true) and all(map(agrees, said[:-1] if is_open else said, true))
    if isinstance(said, dict) and isinstance(true, dict):
        return list(said) == list(true) and all(agrees(said[key], true[key]) for key in said)
    return type(said) is type(true) and said == true


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_interpreter_says_of_a_program_is_what_python_gives(name: str) -> None:
    names: dict[str, object] = {}
    exec(PROGRAMS[name], names)
    said = result(PROGRAMS[name])
    assert said is not ...
    assert agrees(said, names["result"])
