"""Programs of plain Python: what the interpreter says of their `result` is what Python gives, as
far as it says anything.
"""

from __future__ import annotations

import pytest
from test_library_python import result

PROGRAMS = {
    # lists, sets, deques
    "append, extend, insert": "x = [1]\nx.append(2)\nx.extend((3, 4))\nx.insert(-1, 9)\nresult = x",
    "pop": "x = [1, 2, 3, 4]\nresult = (x.pop(), x.pop(0), x.pop(-2), x)",
    "remove the first of two": "x = [1, 2, 1]\nx.remove(1)\nresult = x",
    "index, count": "x = [3, 1, 3]\nresult = (x.index(1), x.count(3), (1, 2).index(2), (1, "
    "1).count(1), "
    "x.count(7))",
    "reverse, sort": "x = [3, 1, 2]\nx.sort()\ny = x.copy()\ny.reverse()\nresult = (x, y)",
    "sort by a key": "x = ['bb', 'a']\nx.sort(key=len, reverse=True)\nresult = x",
    "clear": "x = [1]\nx.clear()\nresult = (x, len(x))",
    "a copy is another list": "x = [1]\ny = x.copy()\ny.append(2)\nresult = (x, y)",
    "appendleft, popleft": "import collections\nx = collections.deque([1])\nx.appendleft(0)\n"
    "result = (x.popleft(), x.popleft(), len(x))",
    "extendleft": "import collections\nx = collections.deque([1])\nx.extendleft([2, 3])\n"
    "result = list(x)",
    "rotate": "import collections\nx = collections.deque([1, 2, 3])\nx.rotate(1)\nresult = x[0]",
    "rotate back": "import collections\nx = collections.deque([1, 2, 3])\nx.rotate(-1)\n"
    "result = list(x)",
    "a set has each once": "x = {1}\nx.add(1)\nx.add(2)\nx.update([2, 3])\nx.discard(7)\n"
    "x.remove(1)\n"
    "result = sorted(x)",
    "set operations": "a, b = {1, 2}, {2, 3}\nresult = (sorted(a.union(b)), "
    "sorted(a.intersection(b)), "
    "sorted(a.difference(b)))",
    "set in": "result = (1 in {1}, 2 in {1}, 2 not in [1], {1}.__contains__(1))",
    "dunder length": "result = [1, 2].__len__()",
    "dunder iter": "result = next([7].__iter__())",
    "set operators": "a, b = {1, 2}, {2, 3}\nresult = (sorted(a - b), sorted(a & b), sorted(a ^ "
    "b), sorted(a "
    "| b), sorted(a.symmetric_difference(b)))",
    "set operators in place": "a, b, c, d = {1, 2}, {1, 2}, {1, 2}, {1, 2}\na -= {2}\nb &= {2}\n"
    "c ^= {2, 3}\nd |= {3}\n"
    "result = [sorted(x) for x in (a, b, c, d)]",
    "keys like sets": "a, b = {'x': 1, 'y': 2}, {'y': 3}\nresult = (sorted(a.keys() - b.keys()), "
    "sorted(a.keys() & b), sorted(a.keys() ^ {'z'}), sorted(a.keys() - {'x'}))",
    "tuples in order": "result = (sorted([(2, 'a'), (1, 'b'), (1, 'a')]), sorted([[2], [1, 3], "
    "[1]], "
    "reverse=True), sorted([('b', 1), ('a', 2)], key=lambda x: (x[1], x[0])))",
    "own truth": "class No:\n    def __bool__(self):\n        return False\nclass Full:\n"
    "    def __init__(self):\n        self.n = 1\n    def __bool__(self):\n"
    "        return self.n > 0\nf = Full()\nr = [bool(No()), bool(f), not No(), No() or 3, f "
    "and 4, 1 if No() else 2, any([No()])]\nf.n = 0\nr.append(bool(f))\nresult = r",
    "delete": "x = [0, 1, 2]\ndel x[1]\nd = {'a': 1, 'b': 2}\ndel d['a']\nresult = (x, d)",
    "delete under None": "d = {None: 1, 'a': 2}\ndel d[None]\nresult = (len(d), None in d)",
    "slices": "x = [0, 1, 2, 3]\nresult = (x[::-1], x[-2:], x[:1], x[1:3], (1, 2)[1:])",
    "sorted by length": "result = sorted(['bb', 'a'], key=len)",
    "refused lengths": "import itertools\nresult = len(list(itertools.combinations([], 2)))",
    "multiplied": "result = ([0] * 3, (1,) * 2, 'ab' * 2, 2 * [1])",
    "added": "x = [1]\ny = x\nx += [2]\nz = x + [3]\nresult = (x, y, z)",
    # dicts
    "get, setdefault, pop": "d = {'a': 1}\nresult = (d.get('a'), d.get('b'), d.get('b', 2), "
    "d.setdefault('c', 3), "
    "d.pop('a'), d.pop('z', 4), d)",
    "keys, values, items": "d = {'a': 1, 'b': 2}\nresult = (list(d), list(d.keys()), "
    "list(d.values()), "
    "list(d.items()))",
    "merged": "a, b = {'x': 1}, {'x': 2, 'y': 3}\nresult = (a | b, {**a, **b})",
    "merged in place": "a = {'x': 1}\na |= {'y': 2}\na.update(z=3)\nresult = a",
    "nothing under a key that nobody knows": "import os\nk = os.environ.get('NOWHERE', 'a')\n"
    "result = ({}.get(k, 3), {}.pop(k, 4), {}.get(k), dict().setdefault(k, 5))",
    "a defaultdict without a default": "import collections\nd, e = collections.defaultdict(), "
    "collections.defaultdict(None, "
    "a=1)\nd['b'] = 2\nresult = (dict(d), dict(e), d.get('c'), collections.defaultdict(int, "
    "{'x': 3})['x'], collections.defaultdict(list)['y'])",
    "popitem": "d = {'a': 1, 'b': 2}\nresult = (d.popitem(), d)",
    "dict copy": "d = {'a': 1}\ne = d.copy()\ne['a'] = 2\nresult = (d, e)",
    "dict in": "d = {'a': 1}\nresult = ('a' in d, 'b' in d, len(d))",
    "comprehension": "result = {k: v + 1 for k, v in {'a': 1}.items() if v}",
    "defaultdict": "import collections\nd = collections.defaultdict(int)\nd['a'] += 2\n"
    "result = d['a']",
    "OrderedDict": "import collections\nd = collections.OrderedDict(a=1)\nd['b'] = 2\n"
    "result = list(d)",
    "ChainMap": "import collections\nresult = collections.ChainMap({'a': 1}, {'a': 2, 'b': 3})['b']",
    # iterators
    "repeat": "import itertools\nresult = list(itertools.repeat(1, 3))",
    "count by": "import itertools\nresult = [x for x, _ in zip(itertools.count(5, 2), 'abc')]",
    "next of count": "import itertools\nc = itertools.count(1, 3)\n"
    "result = (next(c), next(c), next(c))",
    "starmap": "import itertools\nresult = list(itertools.starmap(lambda a, b: a + b, [(1, 2), "
    "(3, 4)]))",
    "combinations": "import itertools\nresult = list(itertools.combinations([1, 2, 3], 2))",
    "permutations": "import itertools\nresult = list(itertools.permutations([1, 2, 3]))",
    "permutations of two": "import itertools\nresult = list(itertools.permutations([1, 2, 3], 2))",
    "product repeat": "import itertools\nresult = list(itertools.product([0, 1], repeat=2))",
    "zip_longest": "import itertools\nresult = list(itertools.zip_longest([1, 2], 'a', "
    "fillvalue='-'))",
    "accumulate with a function": "import itertools\nresult = list(itertools.accumulate([1, 2, "
    "3], lambda a, b: a * b, "
    "initial=2))",
    "tee": "import itertools\na, b = itertools.tee([1, 2])\nresult = (list(a), list(b))",
    "islice with a step": "import itertools\nresult = list(itertools.islice(range(10), 1, 8, 3))",
    "takewhile": "import itertools\nresult = list(itertools.takewhile(lambda x: x < 2, [1, 2, 1]))",
    "dropwhile": "import itertools\nresult = list(itertools.dropwhile(lambda x: x < 2, [1, 2, 1]))",
    "compress": "import itertools\nresult = list(itertools.compress('abc', [1, 0, 1]))",
    "filterfalse": "import itertools\nresult = list(itertools.filterfalse(lambda x: x > 1, [1, 2]))",
    "chained": "import itertools\nresult = [x for x in itertools.chain('ab', [1], range(2))]",
    "a generator's send": "def g():\n    x = yield 1\n    yield x\nresult = next(g())",
    "next of zip": "z = zip([1, 2, 3], 'abc')\na = next(z)\nresult = (a, next(z), list(z), list(z))",
    "next of enumerate": "e = enumerate('abc', 1)\na = next(e)\nresult = (a, list(e), list(e))",
    "next of map": "m = map(lambda x: x * 2, [1, 2, 3])\na, b = next(m), next(m)\n"
    "result = (a, b, [x for x in m])",
    "next of a range": "i = iter(range(4))\na, b = next(i), next(i)\nresult = (a, b, list(i))",
    "next of a dict": "i = iter({'a': 1, 'b': 2})\nresult = (next(i), next(i), next(i, 0))",
    "next until it raises": "z, r = zip([1, 2], [3, 4]), []\ntry:\n    while True:\n"
    "        r.append(next(z))\n"
    "except StopIteration:\n    r.append('end')\nresult = r",
    "zip of different lengths": "result = list(zip([1, 2, 3], 'ab', (True, False)))",
    "enumerate from": "result = list(enumerate('ab', start=3))",
    "map of two": "result = list(map(lambda a, b: a - b, [5, 6], [1, 2]))",
    "reversed range": "result = list(reversed(range(3)))",
    "max by": "result = (max(['a', 'bbb'], key=len), min(3, 1), min([], default=0))",
    "any, all": "result = (any(x > 1 for x in [1, 2]), all(x > 1 for x in [1, 2]))",
    "unpacked": "a, *b, c = range(5)\nresult = (a, b, c)",
    # numbers and strings
    "math": "import math\nresult = (math.ceil(1.2), math.floor(-1.2), math.prod([2, 3]), "
    "math.gcd(4, "
    "6), math.log2(8), math.isnan(1.0))",
    "number operators": "result = (7 // 2, -7 // 2, 7 % 3, -7 % 3, 2 ** 3, 1 << 3, 6 & 3, 6 | 1, "
    "6 ^ 3, ~1, 7 / "
    "2)",
    "compared": "result = (1 < 2 < 3, 1 < 2 > 3, 1 == 1.0, 'a' < 'b', None is None, [] == [], "
    "(1, 2) < "
    "(1, 3))",
    "chosen": "result = (0 or 5, 1 and 0, not [], 1 if '' else 2)",
    "rounded": "result = (round(2.567, 2), round(2.5), round(-1.5), int(-2.7), int('7'), "
    "float('1.5'))",
    "string methods": "s = ' Ab_c '\nresult = (s.strip(), s.lower(), s.upper(), s.strip().title(), "
    "s.replace('_', '-'), s.strip().split('_'))",
    "string tests": "s = 'a.b.c'\nresult = (s.startswith('a'), s.endswith(('x', 'c')), "
    "s.find('b'), "
    "s.rfind('.'), s.count('.'), 'b' in s, s.isdigit())",
    "string parts": "s = 'a.b.c'\nresult = (s.partition('.'), s.rpartition('.'), s.rsplit('.', "
    "1), s[0], "
    "s[-1], s[::2], len(s))",
    "lines": "result = ('a\\nb'.splitlines(), 'a b  c'.split(), 'x'.center(3), "
    "'abc'.removeprefix('a'), 'abc'.removesuffix('c'))",
    # classes and functions
    "a class": "class A:\n    n = 1\n    def f(self):\n        return self.n + 1\nclass B(A):\n"
    "    n = 2\n    def f(self):\n        return super().f() + 10\n"
    "result = (A().f(), B().f(), isinstance(B(), A), issubclass(B, A))",
    "getattr, setattr": "class A:\n    pass\na = A()\nsetattr(a, 'x', 1)\n"
    "result = (a.x, getattr(a, 'y', 2), hasattr(a, 'x'), hasattr(a, 'y'), vars(a))",
    "delattr": "class A:\n    pass\na = A()\na.x = 1\ndelattr(a, 'x')\nresult = hasattr(a, 'x')",
    "static and class methods": "class A:\n    n = 3\n    @staticmethod\n    def f(x):\n"
    "        return x\n"
    "    @classmethod\n    def g(cls):\n        return cls.n\n"
    "result = (A.f(1), A.g(), A().g())",
    "dunder call, getitem, len": "class A:\n    def __call__(self, x):\n        return x + 1\n"
    "    def __getitem__(self, i):\n        return i * 2\n    def __len__(self):\n"
    "        return 5\n    def __contains__(self, x):\n        return x == 1\na = A()\n"
    "result = (a(1), a[2], len(a), 1 in a, 2 in a)",
    "dunder operators": "class A:\n    def __init__(self, n):\n        self.n = n\n"
    "    def __add__(self, o):\n"
    "        return A(self.n + o.n)\n    def __eq__(self, o):\n        return self.n == o.n\n"
    "    def __lt__(self, o):\n        return self.n < o.n\n"
    "result = ((A(1) + A(2)).n, A(1) == A(1), A(1) < A(2))",
    "dunder iter class": "class A:\n    def __iter__(self):\n        yield 1\n        yield 2\n"
    "result = list(A())",
    "properties": "class A:\n    @property\n    def x(self):\n        return 4\nresult = A().x",
    "slots and class attributes": "class A:\n    items = []\n    def add(self, x):\n"
    "        self.items.append(x)\n"
    "A().add(1)\nA().add(2)\nresult = A.items",
    "closures": "def outer():\n    n = 0\n    def inner():\n        nonlocal n\n        n += 1\n"
    "        return n\n    return inner\nf = outer()\nresult = (f(), f())",
    "defaults are shared": "def f(x, seen=[]):\n    seen.append(x)\n    return seen\nf(1)\n"
    "result = f(2)",
    "arguments": "def f(a, /, b=2, *c, d, e=5, **g):\n    return (a, b, c, d, e, g)\n"
    "result = (f(1, d=4), f(1, 2, 3, d=4, z=6))",
    "partial": "import functools\nf = functools.partial(lambda a, b, c=0: (a, b, c), 1, c=3)\n"
    "result = f(2)",
    "reduce with a start": "import functools\nresult = functools.reduce(lambda a, b: a + b, [1, "
    "2], 10)",
    "with": "import contextlib\nlog = []\n@contextlib.contextmanager\ndef c():\n    log.append(1)\n"
    "    yield 2\n    log.append(3)\nwith c() as x:\n    log.append(x)\nresult = log",
    "suppressed": "import contextlib\nresult = 0\nwith contextlib.suppress(ValueError):\n"
    "    raise ValueError\n    result = 1",
    "while else": "n = 0\nwhile n < 3:\n    n += 1\nelse:\n    n = 10\nfor i in range(3):\n"
    "    if i == 1:\n"
    "        break\nelse:\n    i = 9\nresult = (n, i)",
    "walrus": "result = [y for x in [1, 2, 3] if (y := x * 2) > 2]",
    "dataclass": "import dataclasses\n@dataclasses.dataclass(order=True)\nclass A:\n    x: int\n"
    "    y: list = dataclasses.field(default_factory=list)\na = A(1)\na.y.append(2)\n"
    "result = (dataclasses.astuple(a), A(1) == A(1), [f.name for f in dataclasses.fields(A)])",
    "enum": "import enum\nclass C(enum.Enum):\n    A = 1\n    B = 2\n"
    "result = (C.A.value, C.B.name, C.A is C.A, C['A'].value, C(2).name)",
    "named tuple": "import collections\nP = collections.namedtuple('P', ['x', 'y'], defaults=[5])\n"
    "p = P(1)\nresult = (p.x, p.y, p._replace(x=3).x, p._asdict(), P._fields)",
    "a named tuple item by item": "import collections\nP = collections.namedtuple('P', 'x y')\n"
    "p = P(1, 2)\n"
    "result = ([x for x in p], list(p), len(p), p[-1])",
    "namespace": "import types\nn = types.SimpleNamespace(a=1)\nn.b = 2\nresult = (n.a, n.b)",
    "deepcopy": "import copy\nx = [[1]]\na, b = copy.copy(x), copy.deepcopy(x)\nx[0].append(2)\n"
    "result = (a, b)",
    "operator": "import operator\nresult = (operator.mul(2, 3), operator.itemgetter('a', "
    "'b')({'a': 1, "
    "'b': 2}), operator.attrgetter('real')(3), operator.not_(1))",
    "type": "result = (type('a') is str, type(1) == int, isinstance(True, int), type([]).__name__)",
    "global": "n = 1\ndef f():\n    global n\n    n = 5\nf()\nresult = n",
    "lambda defaults": "result = [f() for f in [lambda i=i: i for i in range(3)]]",
    "late binding": "result = [f() for f in [lambda: i for i in range(3)]]",
    "yield from": "def a():\n    yield 1\n    return 2\ndef b():\n    x = yield from a()\n"
    "    yield x\n"
    "result = list(b())",
    "any order of keys": "def f(**k):\n    return sorted(k)\nresult = f(b=1, a=2)",
    "operators as functions": "import operator as o\nresult = (o.sub(5, 2), o.floordiv(7, 2), "
    "o.getitem([4, 5], 1), "
    "o.lt(1, 2), o.ge(1, 2), o.eq(1, 1), o.ne(1, 1))",
    "a method by name": "import operator\nresult = operator.methodcaller('upper')('a')",
    "an attribute of an attribute": "import operator, types\na = "
    "types.SimpleNamespace(b=types.SimpleNamespace(c=3))\n"
    "result = operator.attrgetter('b.c')(a)",
    "what a partial holds": "import functools\nf = functools.partial(max, 1, key=None)\n"
    "result = (f.keywords, f.args)",
    "is a dataclass": "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\n"
    "class B:\n"
    "    pass\nresult = (dataclasses.is_dataclass(A), dataclasses.is_dataclass(A()), "
    "dataclasses.is_dataclass(B))",
    "dataclass in a dataclass": "import dataclasses\n@dataclasses.dataclass\nclass A:\n"
    "    x: int = 1\n"
    "@dataclasses.dataclass\nclass B(A):\n    y: int = 2\n"
    "result = (dataclasses.asdict(B()), dataclasses.astuple(B(3)), B(x=5).x)",
    "dataclass after its making": "import dataclasses\n@dataclasses.dataclass\nclass A:\n"
    "    x: int\n"
    "    y: int = dataclasses.field(init=False, default=0)\n    def __post_init__(self):\n"
    "        self.y = self.x + 1\nresult = A(1).y",
    "numbers of an enum": "import enum\nclass C(enum.IntEnum):\n    A = 1\n    B = 2\n"
    "result = C.A + 1",
    "enum by itself": "import enum\nclass C(enum.Enum):\n    A = enum.auto()\n    B = enum.auto()\n"
    "result = (C.A.value, C.B.value, [c.name for c in C])",
    "enum by itself after a number": "import enum\nclass C(enum.Enum):\n    A = 5\n"
    "    B = enum.auto()\n    D = enum.auto()\n"
    "result = (C.B.value, C.D.value)",
    "pairs into a dict": "d = {'a': 1}\nd.update([('b', 2)])\nresult = d",
    "an emptied dict": "d = {'a': 1}\nd.clear()\nd['b'] = 2\nresult = d",
    "dict length, dunder in": "d = {'a': 1}\nresult = (d.__len__(), d.__contains__('a'), "
    "list(d.fromkeys('ab', 1)))",
    "setdefault of what is there": "d = {'a': 1}\nresult = (d.setdefault('a', 2), "
    "d.setdefault('b'), d)",
    "order of keys": "import collections\nd = collections.OrderedDict([('a', 1), ('b', 2)])\n"
    "d.move_to_end('a')\nresult = list(d)",
    "popped at the front": "import collections\nd = collections.OrderedDict([('a', 1), ('b', 2)])\n"
    "result = (d.popitem(last=False), d)",
    "a copied object": "import copy\nclass A:\n    pass\na = A()\na.x = [1]\n"
    "b, c = copy.copy(a), copy.deepcopy(a)\na.x.append(2)\nresult = (b.x, c.x, b is a)",
    "copied twice is one": "import copy\nx = [1]\ny = copy.deepcopy([x, x])\ny[0].append(2)\n"
    "result = y",
    "nothing entered": "import contextlib\nwith contextlib.nullcontext(3) as x:\n    pass\n"
    "result = x",
    "a stack of contexts": "import contextlib\nwith contextlib.ExitStack() as s:\n"
    "    x = s.enter_context(contextlib.nullcontext(2))\nresult = x",
    "own context": "log = []\nclass A:\n    def __enter__(self):\n        log.append(1)\n"
    "        return 5\n"
    "    def __exit__(self, *e):\n        log.append(2)\n        return True\n"
    "with A() as x:\n    raise ValueError\nresult = (x, log)",
    "default of a default": "import collections\nd = collections.defaultdict(lambda: "
    "collections.defaultdict(list))\n"
    "d['a']['b'].append(1)\nresult = d['a']['b']",
    "kinds": "import collections.abc\nresult = (isinstance([], collections.abc.Sequence), "
    "isinstance({}, collections.abc.Mapping), isinstance(3, (str, float)), isinstance(len, "
    "type), isinstance(int, type))",
    "subclasses": "class A(dict):\n    pass\nresult = (issubclass(A, dict), issubclass(bool, int), "
    "isinstance(A(), dict))",
    "several bases": "class A:\n    def f(self):\n        return 'a'\nclass B(A):\n"
    "    def f(self):\n"
    "        return 'b' + super().f()\nclass C(A):\n    def f(self):\n"
    "        return 'c' + super().f()\nclass D(B, C):\n    pass\nresult = D().f()",
    "missing attributes": "class A:\n    def __getattr__(self, name):\n        return name + '!'\n"
    "result = (A().x, getattr(A(), 'y', 0))",
    "class called through type": "class A:\n    def __init__(self, x=1):\n        self.x = x\n"
    "a = A(2)\n"
    "result = (type(a)(3).x, a.__class__().x, type(a).__name__)",
    "a counter of its own": "class A:\n    def __init__(self):\n        self.n = 0\n"
    "    def __iter__(self):\n"
    "        return self\n    def __next__(self):\n        self.n += 1\n"
    "        if self.n > 2:\n            raise StopIteration\n        return self.n\n"
    "result = [x for x in A()]",
    "items by index": "class A:\n    def __getitem__(self, i):\n        if i > 1:\n"
    "            raise IndexError\n        return i * 10\nresult = list(A())",
    "sums": "result = (sum(x * x for x in range(4)), sum([[1], [2]], []), max(x for x in (3, 9, "
    "2)))",
    "zip back": "a, b = zip(*[(1, 'x'), (2, 'y')])\nresult = (a, b)",
    "nested unpacking": "(a, (b, *c)), d = (1, (2, 3, 4)), 5\nresult = (a, b, c, d)",
    "finally after return": "log = []\ndef f():\n    try:\n        return 1\n    finally:\n"
    "        log.append(2)\n"
    "result = (f(), log)",
    "raised again": "log = []\ntry:\n    try:\n        raise KeyError\n    except KeyError:\n"
    "        log.append(1)\n        raise ValueError\nexcept ValueError:\n    log.append(2)\n"
    "result = log",
    "decorated with arguments": "def times(n):\n    def wrap(f):\n        def inner(x):\n"
    "            return f(x) * n\n"
    "        return inner\n    return wrap\n@times(3)\ndef f(x):\n    return x + 1\n"
    "result = f(1)",
    "keywords handed on": "def f(*a, **k):\n    return g(*a, **k)\ndef g(x, y=0, *, z=0):\n"
    "    return (x, y, z)\n"
    "result = (f(1, z=2), f(*[1, 2], **{'z': 3}))",
    "a generator with a state": "def g(n):\n    while n:\n        yield n\n        n -= 1\n"
    "result = list(g(3))",
    "kinds of dicts": "import collections\nd = collections.OrderedDict(a=1)\n"
    "result = (isinstance(d, collections.OrderedDict), isinstance(d, dict), isinstance({}, "
    "list), isinstance(collections.defaultdict(int), dict))",
    "a number is no object of a class": "import os\nclass A:\n    pass\n"
    "result = (isinstance(len(os.listdir('.')), A), "
    "isinstance(A(), A), isinstance([A()], A), isinstance(A, A))",
    "roots of large numbers": "import math\nresult = (math.sqrt(10.0**12), math.ceil(1000.5), "
    "math.isnan(5000.0), "
    "math.pow(2, 10))",
    "a generator expression once": "g = (x for x in [1, 2])\nresult = (list(g), list(g))",
    "pop at an unknown place": "import os\nx = [1, 1]\nx.pop(len(os.listdir('.')) * 0)\nresult = x",
    "dunder next": "x = (i for i in [1, 2])\nresult = (x.__next__(), x.__next__())",
    "ended generator": "x = (i for i in [1])\nnext(x)\ntry:\n    x.__next__()\n    y = 0\n"
    "except StopIteration:\n    y = 1\nresult = y",
    "closed": "def g():\n    yield 1\nx = g()\nx.close()\nresult = 1",
    "relations of sets": "result = ({1}.issubset({1, 2}), {1, 2}.issuperset({3}), "
    "{1}.isdisjoint({2}))",
    "a set of objects": "class A:\n    pass\na = A()\nx = set()\nx.add(a)\nx.add(a)\n"
    "result = len(x)",
    "shallow copies": "import copy\na, b, c = [1], {'k': [1]}, 3\n"
    "x, y, z = copy.copy(a), copy.copy(b), "
    "copy.copy(c)\na.append(2)\nb['k'].append(2)\nb['l'] = 1\nresult = (x, y, z)",
    "a shallow copy of a partial": "import copy, functools\nf = functools.partial(max, 3)\n"
    "result = (copy.copy(f)(1), f.func(1, 2), f.args, f.keywords)",
    "deep copies of parts": "import copy\nclass A:\n    def __init__(self):\n"
    "        self.x = [1, {'k': [2]}]\n"
    "a = A()\nb = copy.deepcopy(a)\nb.x[1]['k'].append(3)\nb.x.append(4)\nresult = (a.x, b.x)",
    "defaultdict of pairs": "import collections\nd = collections.defaultdict(int, {'a': 1}, "
    "b=2)\nd['c'] += 1\n"
    "result = dict(d)",
    "defaultdict of none": "import collections\nd = collections.defaultdict(None, {'a': 1})\n"
    "result = (d.get('b', 7), d['a'])",
    "counter": "import collections\nc = collections.Counter('aab')\n"
    "result = (c['a'], c['z'], c.most_common(1), c.total(), sorted(c.elements()))",
    "closing": "import contextlib\nclass A:\n    def close(self):\n        pass\na = A()\n"
    "with contextlib.closing(a) as b:\n    x = b is a\nresult = x",
    "redirected": "import contextlib, io\nout = io.StringIO()\n"
    "with contextlib.redirect_stdout(out):\n"
    "    x = 1\nresult = x",
    "a context as a decorator": "import contextlib\nlog = []\n@contextlib.contextmanager\n"
    "def around():\n"
    "    log.append(1)\n    yield\n    log.append(3)\n@around()\ndef f():\n"
    "    log.append(2)\nf()\nresult = log",
    "called at the end of a stack": "import contextlib\nlog = []\nwith contextlib.ExitStack() as "
    "s:\n    s.callback(print)\n"
    "    x = s.push(contextlib.nullcontext())\nresult = 1",
    "suppressed again": "import contextlib\nwith contextlib.suppress(KeyError):\n    {}['a']\n"
    "result = 1",
    "partial of nothing but keywords": "import functools\nf = functools.partial(dict, a=1)\n"
    "result = (f(b=2), f(a=3), f.keywords)",
    "cached with settings": "import functools\n@functools.lru_cache(maxsize=None)\ndef f(x):\n"
    "    return x + 1\n"
    "@functools.lru_cache\ndef g(x):\n    return x + 2\n@functools.cache\ndef h(x):\n"
    "    return x\nresult = (f(1), g(1), h(1))",
    "reduce": "import functools, operator\nresult = (functools.reduce(lambda a, b: a + b, [1, 2, "
    "3]), "
    "functools.reduce(operator.mul, [2, 3], 10))",
    "operators": "import operator\nresult = (operator.add(1, 2), operator.lt(1, 2), "
    "operator.eq(1, 2), "
    "operator.truediv(1, 2), operator.floordiv(7, 2), operator.mod(7, 4), operator.ge(2, 2), "
    "operator.ne(1, 1))",
    "getters": "import operator\nclass A:\n    x = 3\n    def f(self, y):\n        return y\n"
    "result = (operator.itemgetter(1)([1, 2]), operator.itemgetter(0, 1)([1, 2]), "
    "operator.attrgetter('x')(A()), operator.methodcaller('f', 4)(A()))",
    "wrapped": "import functools\ndef d(f):\n    @functools.wraps(f)\n    def g(*a):\n"
    "        return f(*a) + 1\n    return g\n@d\ndef f(x):\n    return x\nresult = f(1)",
    "has": "class A:\n    x = 1\n    def f(self):\n        pass\na = A()\na.y = 2\ndef g():\n"
    "    pass\ng.z = 1\nresult = (hasattr(a, 'x'), hasattr(a, 'y'), hasattr(a, 'w'), "
    "hasattr(A, 'x'), hasattr(A, 'y'), hasattr(A, 'f'), hasattr([], 'append'), hasattr(3, "
    "'append'), hasattr({}, 'keys'), hasattr(range(2), 'start'), hasattr(g, 'z'), hasattr(g, "
    "'w'), hasattr(g, '__name__'), hasattr('', 'join'))",
    "has of modules": "import math\nresult = (hasattr(math, 'pi'), hasattr(math, 'nothing'))",
    "functions, methods and classes": "import inspect\nclass A:\n    def f(self):\n        pass\n"
    "result = (inspect.isfunction(lambda: 1), inspect.isfunction(A.f), "
    "inspect.isfunction(A().f), inspect.ismethod(A().f), inspect.isclass(A), "
    "inspect.isclass(A()), inspect.isfunction('f'))",
    "kinds of things": "import types\ndef f():\n    pass\nclass A:\n    def g(self):\n"
    "        pass\n"
    "result = (isinstance(f, types.FunctionType), isinstance(A().g, types.MethodType), "
    "isinstance(range(1), range), isinstance(None, type(None)), isinstance(A, type), "
    "isinstance(A, object), isinstance(A(), object), isinstance(f, int), isinstance((1,), "
    "tuple), isinstance({1}, set), isinstance('', str))",
    "kinds of several": "result = (isinstance(True, int), isinstance(1.0, (int, float)), "
    "isinstance(1, bool), "
    "isinstance(b'', bytes), isinstance(1j, complex))",
    "kinds by abstract classes": "import collections.abc as c\ndef g():\n    yield 1\nclass A:\n"
    "    def __iter__(self):\n"
    "        return iter([])\n    def __len__(self):\n        return 0\n"
    "result = (isinstance(A(), c.Iterable), isinstance(3, c.Iterable), isinstance([], "
    "c.Iterable), isinstance('', c.Sequence), isinstance({}, c.Sequence), isinstance(len, "
    "c.Callable), isinstance(g(), c.Iterator), isinstance({1}, c.Set))",
    "subclasses of several": "class A:\n    pass\nclass B(A):\n    pass\nclass E(ValueError):\n"
    "    pass\n"
    "result = (issubclass(B, A), issubclass(A, B), issubclass(B, (int, A)), issubclass(E, "
    "Exception), issubclass(A, object), issubclass(bool, float), issubclass(KeyError, "
    "LookupError))",
    "powers": "result = (pow(2, 3), pow(2, 3, 5), 2 ** -1, pow(2, -1), 7 % 3, -7 // 2, -7 % 3, "
    "divmod(7, 2))",
    "rounded again": "result = (round(2.5), round(2.567, 1), round(-1.5), round(1234, -2), "
    "abs(-2.5), "
    "int(-1.7), float('1.5'), int('12'), int('11', 2), bool(''), bool([0]))",
    "spelled": "result = (bin(3), hex(255), oct(8), chr(97), ord('a'), repr('a'), str(1.0), "
    "ascii('a'))",
    "extremes": "result = (max([1, 3, 2], key=lambda x: -x), min('b', 'a'), max((1, 2), (1, 1)), "
    "min([], "
    "default=None), max({'a': 1, 'b': 0}), max([[1], [2]]), min(3, 1, 2), max(['bb', 'a'], "
    "key=len))",
    "lengths": "class A:\n    def __len__(self):\n        return 4\n"
    "result = (len(A()), bool(A()), len('abc'), len(range(0, 10, 3)), len({1: 2}), len({1, "
    "2}), len(()), len(range(5, 0, -2)), len(b'ab'))",
    "methods of numbers": "result = ((5).bit_length(), (2.0).is_integer(), (1.5).is_integer())",
    "strings": "result = ('a,b'.split(','), 'ab'.upper(), ' a '.strip(), 'abc'.replace('b', 'x'), "
    "'-'.join(['a', 'b']), 'abc'.startswith(('x', 'a')), 'abc'.endswith('bc'), "
    "'abc'.find('c'), 'a'.isdigit(), 'abc'.__len__(), 'x%sy' % 1, '%d-%s' % (1, 'a'), 'a' in "
    "'abc', 'a.b.c'.rpartition('.'), 'a_b'.partition('_'), 'AbC'.lower(), 'ab'.title(), 'a "
    "b'.split(), 'abc'[1], 'abc'[::-1], 'a'.zfill(3), 'ab'.center(4, '.'), 'aXb'.swapcase())",
    "formats": "x = 3\nresult = (f'{x}-{x + 1}', '{} {}'.format(1, 2), '{1} {0}'.format(1, 2), "
    "'{a}'.format(a=5), f'{x!r}', format(3, 'd'))",
    "wide formats": "result = ('{:>5}'.format('a'), 'a'.ljust(3), 'a'.rjust(3), "
    "'a\\tb'.expandtabs(4))",
    "bytes": "result = (len(bytes(3)), bytes([1, 2])[0])",
    "asdict, replace, fields": "import dataclasses\n@dataclasses.dataclass\nclass A:\n"
    "    x: int\n    y: int = 2\n"
    "    z: list = dataclasses.field(default_factory=list)\na = A(1)\n"
    "b = dataclasses.replace(a, y=5)\nresult = (dataclasses.asdict(a), b.y, b.x, "
    "dataclasses.is_dataclass(a), dataclasses.is_dataclass(A), dataclasses.is_dataclass(3), "
    "[f.name for f in dataclasses.fields(A)], dataclasses.astuple(a), a == A(1), a == b)",
    "frozen": "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass A:\n    x: int = 1\n"
    "    def __post_init__(self):\n        object.__setattr__(self, 'y', self.x + 1)\n"
    "result = (A().y, A(3).y, A(x=4).x)",
    "derived records": "import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int = 1\n"
    "@dataclasses.dataclass\nclass B(A):\n    y: int = 2\n"
    "result = (B().x, B(3, 4).y, dataclasses.asdict(B(y=5)))",
    "named tuples": "import collections\nP = collections.namedtuple('P', 'x y')\np = P(1, y=2)\n"
    "q = p._replace(x=5)\nresult = (p.x, p[1], q.x, q[1], len(p), p._asdict(), P._fields, p "
    "== (1, 2), max(p))",
    "named tuples with defaults": "import collections\nP = collections.namedtuple('P', ['x', "
    "'y'], defaults=[7])\n"
    "x, y = P(1)\nresult = (x, y)",
    "typed named tuples": "import typing\nclass P(typing.NamedTuple):\n    x: int\n    y: int = 3\n"
    "    def total(self):\n        return self.x + self.y\np = P(1)\n"
    "result = (p.y, p.total(), p[0], p._replace(y=4).y, [v for v in p])",
    "enums": "import enum\nclass M(enum.Enum):\n    A = 1\n    B = enum.auto()\n    _x = 3\n"
    "    def both(self):\n        return (self.name, self.value)\nclass N(enum.IntEnum):\n"
    "    P = 2\n    Q = enum.auto()\nresult = (M(1) is M.A, M.A.name, M.A.value, M['A'] is "
    "M.A, M.A == M.B, N.Q.value, N.P < N.Q, N.P + 1, [m.name for m in N], len(M), "
    "M.A.both(), M.A in (M.A,))",
    "an enum of text": "import enum\nclass M(str, enum.Enum):\n    A = 'a'\n"
    "result = (M.A == 'a', M('a') is M.A, M.A.value)",
    "chains and slices": "import itertools as i\nresult = (list(i.chain([1], (2,))), "
    "list(i.chain.from_iterable([[1], [2, 3]])), list(i.islice([1, 2, 3], 2)), "
    "list(i.islice(range(9), 1, 8, 3)), list(i.zip_longest([1], [2, 3], fillvalue=0)), "
    "list(i.repeat(1, 2)), list(i.accumulate([1, 2, 3])), list(i.starmap(pow, [(2, 3)])), "
    "list(i.pairwise([1, 2, 3])))",
    "accumulated": "import itertools as i, operator\nresult = (list(i.accumulate([1, 2, 3], "
    "operator.mul)), "
    "list(i.accumulate([1, 2], initial=5)), list(i.accumulate([3, 1], func=max)))",
    "teed": "import itertools as i\na, b = i.tee([1, 2])\n"
    "result = (list(a), list(b), len(i.tee([], 3)))",
    "lazy": "result = (list(map(lambda a, b: a + b, [1, 2], [3, 4])), list(filter(None, [0, 1, "
    "2])), "
    "list(filter(lambda x: x > 1, [1, 2])), list(enumerate('ab', 1)), list(enumerate('ab', "
    "start=2)), list(zip([1, 2], 'ab')), list(reversed([1, 2])), list(zip()), dict(zip('ab', "
    "[1, 2])))",
    "any and all": "result = (any([0, 1]), any([]), all([]), all([1, 0]), any(x > 2 for x in [1, "
    "3]), all(x "
    "for x in [1, 2]))",
    "next of several": "x = iter([1, 2])\nresult = (next(x), next(x), next(x, 9), "
    "next(iter({'a': 1})), next((i "
    "for i in [1, 2] if i > 1), None), next((i for i in [] if i), 5))",
    "dicts of pairs": "result = (dict([('a', 1)], b=2), dict({'a': 1}, a=2), dict.fromkeys('ab', "
    "0), {k: v for "
    "k, v in [('a', 1)]}, dict(a=1) == {'a': 1}, 'a' in {'a': 1}, list(reversed({'a': 1, "
    "'b': 2})))",
    "keys that are not plain": "class A:\n    pass\na = A()\nd = {a: 1, (1, 'x'): 2, None: 3}\n"
    "result = (d[a], d[(1, 'x')], d[None], d.get(A(), 5), d.setdefault(a, 6))",
    "a dict that is emptied": "d = {'a': 1}\nd.clear()\nresult = (d, len(d), bool(d), d.pop('a', "
    "None), d.get('a', 3))",
    "maths": "import math\nresult = (math.floor(1.5), math.ceil(1.2), math.log(1.0), math.exp(0), "
    "math.pi > 3, math.prod([2, 3]), math.gcd(4, 6), math.fabs(-1), math.hypot(3, 4), "
    "math.isclose(1.0, 1.0), math.inf > 1, math.log2(8), math.trunc(1.9), math.factorial(4), "
    "math.comb(4, 2), math.cos(0))",
    "chosen at random": "import random\nx = random.choice(['a'])\ny = random.sample([1, 1], 2)\n"
    "result = (isinstance(x, str), len(random.choices([1], k=3)), "
    "isinstance(random.choice([1, 2.0]), (int, float)))",
    "parsed arguments": "import argparse\np = argparse.ArgumentParser()\n"
    "g = p.add_argument_group('x')\n"
    "g.add_argument('--a', type=int, default=1)\np.add_argument('--b', action='store_true')\n"
    "p.add_argument('--flag', action=argparse.BooleanOptionalAction)\np.set_defaults(c=5)\n"
    "args = p.parse_args([])\nother, rest = p.parse_known_args([])\n"
    "result = (args.c, isinstance(args.b, bool), isinstance(args.a, int), other.c)",
    "reflection": "class A:\n    x = 1\na = A()\nsetattr(a, 'y', 2)\nb = vars(a)\ndelattr(a, 'y')\n"
    "result = (getattr(a, 'x'), getattr(a, 'z', 5), hasattr(a, 'y'), callable(len), "
    "callable(3), callable(A), type(a) is A, type(3) is int, isinstance(type(a), type), "
    "a.__class__.__name__, id(a) == id(a))",
    "properties again": "class A:\n    def __init__(self):\n        self._x = 1\n    @property\n"
    "    def x(self):\n        return self._x\n    @x.setter\n    def x(self, value):\n"
    "        self._x = value * 2\n    @staticmethod\n    def f(y):\n        return y\n"
    "    @classmethod\n    def make(cls):\n        return cls()\na = A.make()\na.x = 3\n"
    "result = (a.x, A.f(4), a.f(5), hasattr(a, 'x'))",
    "cached properties": "import functools\nlog = []\nclass A:\n    @functools.cached_property\n"
    "    def x(self):\n"
    "        log.append(1)\n        return 3\na = A()\nresult = (a.x + a.x, log)",
    "dispatched": "import functools\n@functools.singledispatch\ndef f(x):\n    return 'other'\n"
    "@f.register\ndef _(x: int):\n    return 'int'\nresult = (f('a'),)",
    "signatures": "import inspect\ndef f(a, b=1, *c, d, **e):\n    pass\n"
    "result = (list(inspect.signature(f).parameters), 'b' in "
    "inspect.signature(f).parameters, inspect.isfunction(f), inspect.isclass(f), "
    "inspect.isclass(int))",
    "regular expressions": "import re\np = re.compile('blocks?[.]([0-9]+)[.](.*)')\n"
    "m = p.match('blocks.12.norm.weight')\n"
    "result = (m.group(1), m.groups(), m[2], m.start(), p.match('head') is None, "
    "bool(re.search('bn|bias', 'layer.bias')), re.fullmatch('a+', 'ab'), "
    "re.sub('[.]', '_', 'a.b.c'), re.split(',', 'a,b'), re.findall('[0-9]', 'a1b2'), "
    "[n for n in ('fc.weight', 'conv.weight') if re.search('^fc', n)], "
    "re.search('FC', 'fc', re.IGNORECASE) is not None, re.match('(?P<k>.)', 'x').groupdict())",
    "parts of regular expressions": "import re\n"
    "result = (re.sub('a', 'b', 'aaa', count=1), re.compile('a').sub('b', 'aaa', count=1), "
    "re.split(',', 'a,b,c', 1), re.sub('A', 'b', 'aA', flags=re.IGNORECASE))",
    "slow regular expressions": "import re\n"
    "result = (bool(re.match('(a+)+$', 'a' * 20)), re.match('a', 'a' * 300) is not None)",
    "kinds of parameters": "import inspect\ndef f(a, *b, c, **d):\n    pass\n"
    "p = list(inspect.signature(f).parameters.values())\n"
    "result = ([e.kind == e.KEYWORD_ONLY for e in p], [e.kind is e.VAR_KEYWORD for e in p], "
    "p[1].kind == inspect.Parameter.VAR_POSITIONAL)",
    "signatures in full": "import abc, inspect\nclass A:\n"
    "    def f(self, x: int, y: 'str' = 'a', z=None) -> None:\n        pass\n"
    "    @abc.abstractmethod\n    def g(self, e):\n        raise NotImplementedError\n"
    "s = inspect.signature(A().f)\np = s.parameters\n"
    "result = (p['z'].annotation is inspect._empty, p['x'].annotation in (int, 'int'), "
    "p['x'].annotation is inspect.Parameter.empty, p['x'].default is inspect._empty, "
    "isinstance(p['y'].annotation, str), s.return_annotation is inspect.Signature.empty, "
    "list(inspect.signature(A().g).parameters), 'f' in A.__dict__, "
    "'h' in A().__class__.__dict__, A.g.__isabstractmethod__, "
    "getattr(A.f, '__isabstractmethod__', False), int.__module__, str.__qualname__, "
    "A in {int, object, A}, A in {int, object}, int in (str, float))",
    "globals": "y = 3\ndef f():\n    global y\n    y += 1\n    return y\n"
    "result = (f(), y, 'y' in globals())",
    "nonlocal": "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n"
    "        return n\n    return g\ng = f()\nresult = (g(), g())",
    "paths": "import os, pathlib\nresult = (os.path.join('a', 'b'), os.path.basename('a/b.txt'), "
    "os.path.splitext('a.txt'), os.path.dirname('a/b'))",
    "pop of a set": "x = {1}\nresult = (x.pop(), len(x))",
    "grouped values": "import itertools as i\nresult = [v for _, g in i.groupby([1, 1]) for v in "
    "g][:2]",
    "counted without end": "import itertools as i\nresult = (list(zip(i.count(3), 'ab')), [x for "
    "x, _ in "
    "zip(i.cycle([1, 2]), range(3))])",
    "large powers": "result = (pow(2, 3), len(str(2 ** 70)), 2 ** 10, round(1.5, 1))",
    "endings of lists": "x = [1, 2]\nx.insert(0, 0)\nx.insert(99, 3)\ny = [i for i in x if i]\n"
    "result = (x, y, x.index(3), (1, 2, 3).index(2), x.count(9))",
    "empty iterators": "import itertools as i\nresult = (list(i.chain()), list(i.islice([], 3)), "
    "list(i.islice([1, 2, 3], 0)), list(i.chain([], [1])), list(i.islice([1, 2], None)), "
    "list(i.islice([1, 2, 3], 1, None)))",
    "first of many": "import itertools as i\nfor a in i.chain([1], [2]):\n    break\n"
    "for b in i.islice([5, 6], 2):\n    break\nfor c, d in zip(i.count(2, 3), 'x'):\n"
    "    pass\nresult = (a, b, c, d)",
    "first of a named tuple": "import collections\nP = collections.namedtuple('P', 'x y')\n"
    "for a in P(1, 2):\n"
    "    break\nresult = a",
    "maps of several": "result = (dict(map(lambda k: (k, 1), 'ab')), list(map(str, [1, 2])), "
    "list(zip('ab', "
    "range(2))), list(enumerate([5])), sorted({'b': 1, 'a': 2}), sorted([3, 1], "
    "reverse=True), sorted('ba'))",
    "iterators of a class": "class A:\n    def __iter__(self):\n        return iter([1, 2])\n"
    "i = iter(A())\n"
    "j = iter(i)\nresult = (next(i), next(j), list(A()))",
    "callables": "class A:\n    def __call__(self):\n        return 1\nclass B:\n    pass\n"
    "import functools\nresult = (callable(A()), callable(B()), callable(A), callable(lambda: "
    "1), callable(functools.partial(max)), callable([]), callable('a'), A()())",
    "attributes by computed names": "class A:\n    pass\na = A()\nfor name in ('x', 'y'):\n"
    "    setattr(a, name, name + '!')\n"
    "result = (a.x, a.y, vars(a), [getattr(a, n) for n in ('x', 'y')], a.__dict__)",
    "fields that are made": "import dataclasses\nfrom dataclasses import field\n"
    "@dataclasses.dataclass\nclass A:\n"
    "    x: list = field(default_factory=list)\n    y: int = field(default=3)\n"
    "    z: int = field(init=False, default=5)\n    k: int = field(default=7, init=True)\n"
    "a, b = A([1], 2, 4), A()\nb.x.append(9)\nresult = (a.x, a.y, a.z, a.k, b.x, b.y, b.z, "
    "A().x, A(y=6, k=8).k, dataclasses.replace(a, y=1).y)",
    "dataclasses of others": "import dataclasses\n@dataclasses.dataclass()\nclass A:\n"
    "    x: int = 1\n"
    "    y: str = 'a'\nresult = (A(2).x, A(y='b').y, dataclasses.replace(A(), x=3).x, "
    "isinstance(A(), A))",
    "moved in an ordered dict": "import collections\nd = collections.OrderedDict([('a', 1), "
    "('b', 2)])\n"
    "d.move_to_end('a')\ne = list(d)\nd.move_to_end('a', last=False)\n"
    "result = (e, list(d), d.popitem())",
    "keys of objects": "class A:\n    pass\na, b = A(), A()\nd = {a: 1}\nd.setdefault(b, 2)\n"
    "result = (d[b], d.get(a), len(d), a in d)",
    "rotated not at all": "import collections\nx = collections.deque()\nx.rotate(2)\n"
    "y = collections.deque([1, 2])\ny.rotate(0)\nresult = (len(x), list(y))",
    "batched": "def batched(x, n):\n    for i in range(0, len(x), n):\n        yield x[i : i + n]\n"
    "result = list(batched([1, 2, 3], 2))",
    "strings that are long": "result = (len('ab' * 500), 'x'.center(3), 'a'.ljust(2, '-'), '%5d' "
    "% 3, "
    "'ab'.encode().decode(), len('a'.ljust(50)))",
    "slices assigned": "x = [1, 2, 3, 4]\nx[1:3] = [9]\na = list(x)\nx[:] = []\nb = list(x)\n"
    "x[0:0] = [7, 8]\n"
    "x[::2] = ['z']\nresult = (a, b, x)",
    "slices assigned by others": "x = [1, 2, 3]\nx[1:] = (5, 6, 7)\ny = x[:]\ny[:] = y\n"
    "y[1:2] = []\nresult = (x, y)",
    "slices of unequal steps": "x = [1, 2, 3, 4]\ntry:\n    x[::2] = [9, 9]\n    x[::2] = [8]\n"
    "except ValueError:\n"
    "    pass\nresult = x[0]",
    "formats of parts": "x = 7\ny = 2.5\nresult = (f'{x:03d}', f'{y:.2f}', f'{x!r:>4}', "
    "f'{x:{x}}', "
    "'{:03d}'.format(x), f'{y:8.1f}|', f'{x=}', f'{\"a\"!r}')",
    "formats that fail": "r = []\nfor f in (lambda: f'{10**400:.2f}', lambda: f'{None:d}', "
    "lambda: f\"{'a':d}\", "
    "lambda: f'{-1:c}'):\n    try:\n        f()\n        r.append(0)\n"
    "    except (ValueError, TypeError, OverflowError):\n        r.append(1)\n"
    "result = f'{len(r)}|{3:>{4}}|{None}|{None!s:>6}|{True:d}'",
    "closing closes": "import contextlib\nlog = []\nclass A:\n    def close(self):\n"
    "        log.append(1)\n"
    "with contextlib.closing(A()) as a:\n    log.append(0)\nresult = log",
    "closing after a raise": "import contextlib\nlog = []\nclass A:\n    def close(self):\n"
    "        log.append(1)\n"
    "try:\n    with contextlib.closing(A()) as a:\n        raise ValueError\n"
    "except ValueError:\n    log.append(2)\nresult = log",
    "a bounded deque": "import collections\nd = collections.deque([1, 2, 3], maxlen=2)\n"
    "d.append(4)\n"
    "a = list(d)\nd.appendleft(5)\nb = list(d)\nd.extend([6, 7, 8])\ne = d.copy()\n"
    "e.append(9)\nd.extendleft([1])\nresult = (a, b, list(d), list(e), len(d))",
    "a deque of nothing": "import collections\nd = collections.deque(maxlen=0)\nd.append(1)\n"
    "e = collections.deque(maxlen=None)\ne.append(1)\n"
    "f = collections.deque(iterable=[1, 2], maxlen=1)\nresult = (len(d), list(e), list(f))",
    "a deque with room": "import collections\nd = collections.deque([1, 2, 3], maxlen=9)\n"
    "d.append(4)\n"
    "e = collections.deque([1, 2, 3], 3)\nresult = (list(d), list(e), "
    "list(collections.deque([], 2)))",
    "a bounded deque copied": "import collections, copy\nd = collections.deque([1, 2], 2)\n"
    "e, f = copy.copy(d), copy.deepcopy(d)\ne.append(3)\nf.append(4)\n"
    "result = (list(d), list(e), list(f))",
    "combinations of a counter of items": "import collections, itertools\n"
    "c = collections.Counter('aab')\n"
    "result = list(itertools.combinations([3, 1, 2], 2))",
    "combinations of what goes on": "import itertools\nresult = "
    "(list(itertools.combinations(itertools.islice(itertools.count(1), 2), 2)), "
    "list(itertools.permutations(range(3), 2))[:3], list(itertools.product(range(2), 'ab')), "
    "list(itertools.combinations_with_replacement('ab', 2)), "
    "list(itertools.combinations(range(2), 3)), list(itertools.product([1], repeat=3)), "
    "list(itertools.permutations([1, 2])))",
    "counters side by side": "import itertools\na, b = itertools.count(5), itertools.count(1, 2)\n"
    "result = ([next(a), next(a), next(b), next(b)], list(zip(itertools.count(10, 10), "
    "'abc')), list(zip('ab', itertools.count(), itertools.count(3, 3))), [i for i, _ in "
    "zip(itertools.count(step=5), range(3))])",
    "a counter goes on": "import itertools\nc = itertools.count(1)\n"
    "a = list(itertools.islice(c, 2))\n"
    "result = (a, [x for x, y in zip(itertools.count(1), 'ab')])",
    "partial with several": "import functools\ndef f(a, b, c=0, *d, k=1, **e):\n"
    "    return (a, b, c, d, k, e)\n"
    "g = functools.partial(f, 1, 2)\nh = functools.partial(f, 1, k=5, z=6)\n"
    "i = functools.partial(g, 3, k=7)\nresult = (g(), g(3, 4), h(2), h(2, k=8, y=9), i(), "
    "i(9, 9, k=0), g.func is f, h.keywords, functools.partial(f, *[1, 2], **{'k': 3})(4))",
    "partial of methods and classes": "import functools\nclass A:\n    def __init__(self, x, "
    "y=0):\n"
    "        self.x, self.y = x, y\n    def f(self, a, b):\n        return (self.x, a, b)\n"
    "    g = functools.partialmethod(f, 7)\nm = functools.partial(A, y=3)\n"
    "result = (m(1).y, functools.partial(A(2).f, 4)(5), functools.partial(max, 3)(1, 2), "
    "sorted([1, 2, 3], key=functools.partial(lambda s, v: s * v, -1)), "
    "list(map(functools.partial(pow, 2), [1, 2])))",
    "names of random": "import random\nr = random.Random(0)\nx = random.choice(['a', 'b'])\n"
    "y = random.sample([1, 2, 3], 2)\nz = random.choices([1], k=3)\nl = [1, 2, 3]\n"
    "random.shuffle(l)\nresult = (isinstance(x, str), len(x), isinstance(random.random(), "
    "float), isinstance(random.choice([1, 2]), int), random.seed(3), "
    "isinstance(random.randint(1, 2), int), isinstance(random.uniform(0, 1), float), x in "
    "('a', 'b'), z[0], z[-1])",
    "added to in a method": "class A:\n    total = 0\n    items = ()\n    def __init__(self):\n"
    "        self.n, self.x, self.s, self.d = 0, [], '', {1: 0}\n    def add(self, v):\n"
    "        self.n += v\n        self.x += [v]\n        self.s += str(v)\n"
    "        self.d[1] += v\n        A.total += v\n        self.items += (v,)\n"
    "        return self\na = A().add(1).add(2)\nb = A().add(5)\n"
    "result = (a.n, a.x, a.s, a.d, A.total, a.items, b.items, A.items, b.x)",
    "added to by a method": "class A:\n    def __init__(self, n):\n        self.n = n\n"
    "    def __iadd__(self, o):\n"
    "        self.n += o\n        return self\n    def __isub__(self, o):\n"
    "        return A(self.n - o)\n    def __add__(self, o):\n"
    "        return A(self.n + 100)\na = b = A(1)\na += 2\nc = a\na -= 1\n"
    "result = (a.n, b.n, c is b, a is b)",
    "added to in place or not": "x = y = [1]\nx += (2,)\nx += 'a'\ns = t = (1,)\ns += (2,)\n"
    "q = r = {1}\nq |= {2}\n"
    "d = e = {1: 1}\nd |= {2: 2}\nn = m = 3\nn **= 2\nn //= 2\nn <<= 1\nn ^= 1\nn %= 5\n"
    "result = (x is y, y, s, t, n, m, len(q), d)",
    "of an engine by add": "import collections\nc = collections.deque([1])\nc += [2, 3]\n"
    "l = [1]\nl *= 3\n"
    "result = (list(c), l)",
    "deleted attributes": "class A:\n    x = 1\na = A()\na.x = 2\nb = a.x\ndel a.x\na.y = 3\n"
    "del a.y\n"
    "result = (b, a.x, hasattr(a, 'y'))",
    "deleted items": "x = [1, 2, 3, 4]\ndel x[0]\ndel x[-1]\nd = {'a': 1, 'b': 2}\ndel d['a']\n"
    "log = []\n"
    "class B:\n    def __delitem__(self, i):\n        log.append(i)\n"
    "    def __setitem__(self, i, v):\n        log.append((i, v))\nb = B()\ndel b[3]\n"
    "b[1] = 2\nb[1, 2] = 3\ny = [1, 2, 3]\ndel y[:]\nz = [1, 2, 3]\ndel z[1:]\nn = 1\ndel n\n"
    "result = (x, d, log, y, z)",
    "raised in every way": "log = []\nclass Own(ValueError):\n    def __init__(self, n=0):\n"
    "        self.n = n\n"
    "for what in (ValueError, Own, Own(3), KeyError('a'), RuntimeError('b'), "
    "StopIteration):\n    try:\n        raise what\n    except Own as e:\n"
    "        log.append(('own', e.n))\n    except (KeyError, IndexError):\n"
    "        log.append('lookup')\n    except ValueError as e:\n        log.append('value')\n"
    "    except Exception:\n        log.append('other')\n    else:\n"
    "        log.append('none')\n    finally:\n        log.append('end')\nresult = log",
    "raised anew": "log = []\ndef f(n):\n    try:\n        try:\n            if n:\n"
    "                raise ValueError\n            log.append('fine')\n"
    "        except KeyError:\n            log.append('wrong')\n        else:\n"
    "            log.append('else')\n        finally:\n            log.append('inner')\n"
    "    except ValueError as e:\n        log.append('outer')\n"
    "        raise RuntimeError from e\n    return 1\nfor n in (0, 1):\n    try:\n"
    "        log.append(f(n))\n    except RuntimeError:\n        log.append('caught')\n"
    "result = log",
    "left by return": "def f(x):\n    for i in range(3):\n        while True:\n"
    "            with open('/dev/null') as g:\n                try:\n"
    "                    if i == x:\n                        return ('in', i)\n"
    "                    break\n                finally:\n                    i += 10\n"
    "        else:\n            return 'never'\n    return 'end'\nresult = (f(0), f(1), f(7))",
    "loops with an end": "log = []\nfor x in []:\n    log.append(1)\nelse:\n    log.append(2)\n"
    "n = 2\nwhile n:\n"
    "    n -= 1\n    if n == 1:\n        continue\n    log.append(n)\nelse:\n"
    "    log.append('done')\nwhile True:\n    break\nelse:\n    log.append('never')\n"
    "for a, (b, *c) in [(1, (2, 3, 4)), (5, [6])]:\n    log.append((a, b, c))\nresult = log",
    "targets of every sort": "class A:\n    pass\na = A()\nx = [0, 0]\n"
    "(a.n, x[0]), *rest, last = (1, 2), 3, 4, 5\n"
    "[p, q] = 'ab'\nu = v = w = [1]\n*front, end = range(3)\nA.n = 9\nb = A()\n"
    "result = (a.n, x, rest, last, p, q, u is w, front, end, b.n)",
    "names two scopes up": "def outer():\n    n = 1\n    def middle():\n        def inner():\n"
    "            nonlocal n\n            n += 1\n            return n\n        return inner\n"
    "    f = middle()\n    f()\n    return (f(), n)\nresult = outer()",
    "called on a class": "class A:\n    n = 2\n    def f(self, x):\n        return self.n + x\n"
    "    @classmethod\n"
    "    def g(cls, x):\n        return cls.n * x\n    @staticmethod\n    def h(x):\n"
    "        return x\nclass B(A):\n    n = 5\n    def f(self, x):\n"
    "        return A.f(self, x) + super(B, self).f(x)\nx = []\nlist.append(x, 1)\n"
    "result = (A.f(A(), 1), B().f(1), B.g(2), B.h(3), B().g(4), str.upper('a'), x, "
    "dict.get({'a': 1}, 'a'), A.__name__, B.f.__name__)",
    "classes made on the way": "log = []\nclass Base:\n    def __init_subclass__(cls, **k):\n"
    "        log.append(cls.__name__)\n        super().__init_subclass__()\nclass A(Base):\n"
    "    items = [i * 2 for i in range(3)]\n    total = sum(items)\n    def f(self):\n"
    "        return self.__class__.__name__\nclass B(A):\n    pass\n"
    "result = (log, A.items, A.total, B().f(), B.items is A.items)",
    "spread out": "def f(*a, **k):\n    return (a, k)\nd = {'a': 1}\n"
    "result = (f(*range(3)), f(*'ab', *[1]), f(**d, b=2), [*'ab', *(1, 2)], {**d, 'c': 3}, "
    "(*d,), {**d, **{'a': 5}}, f(*{'x': 1}), f(*(i for i in range(2))))",
    "operators of the right": "class A:\n    def __init__(self, n):\n        self.n = n\n"
    "    def __radd__(self, o):\n"
    "        return o + self.n\n    def __rmul__(self, o):\n        return ('r', o)\n"
    "    def __neg__(self):\n        return A(-self.n)\n    def __truediv__(self, o):\n"
    "        return self.n / o\n    def __matmul__(self, o):\n        return 'at'\n"
    "    def __mod__(self, o):\n        return self.n % o\n"
    "result = (1 + A(2), 3 * A(1), A(6) / 2, A(1) @ 2, A(7) % 4, sum([A(1), A(2)]))",
    "numbers of every sort": "result = (7 // 2, -7 // 2, -7 % 3, 2 ** -1, 1 << 3, 255 >> 4, 6 & "
    "3, 6 | 1, 6 ^ 3, ~5, "
    "-(-3), +4, not 0, 1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2, 1 == 1.0 != 2, 0.1 + 0.2 == 0.3, "
    "True + True, 10 ** 3, 5 / 2, 'a' < 'b', [1, 2] < [1, 3], (1,) == (1,), not [])",
    "words and bytes": "result = ('%s-%d' % ('a', 3), '%05.1f' % 2.5, '%(x)s' % {'x': 1} if "
    "False else 'x', "
    "'ab' * 2 if False else 'abab', b'ab'[0], b'ab' + b'c', 'a' 'b', 'abc'[::-1], 'abc'[1:], "
    "'a,b'.split(','), ','.join(['a', 'b']), 'x' in 'xyz', 'q' not in 'xyz')",
    "keys of every sort": "d = {1: 'a', (1, 2): 'b', None: 'c', True: 'd', 'k': 'e', 1.5: 'f', "
    "((1,), 2): 'g'}\n"
    "result = (d[1], d[1, 2], d[None], d['k'], d[1.5], d[((1,), 2)], len(d), list(d)[1], "
    "d.get((9, 9), 'none'))",
    "classes compared": "class A:\n    pass\nclass B(A):\n    pass\na = B()\n"
    "result = (type(a) is B, type(a) == A, type(a) in (A, B), a.__class__ is B, "
    "isinstance(a, (int, A)), issubclass(B, (int, A)), issubclass(B, int), type(3) in (int, "
    "float), type('a') is not str, A is not B, a is not None, None is a, a == a, a != a)",
    "conditions within": "x, y, z = 0, [], 'a'\nresult = (x or y or z, x and y, z and 1, x or 0, "
    "(1 if x else 2 "
    "if y else 3), not (x or y), [a for a in range(6) if a % 2 if a > 1], any(a > 4 for a in "
    "range(6)), all(a < 4 for a in range(6)), (x is None) == (y is None), None or z)",
    "a module in itself": "import math as m, os.path\nimport collections.abc\n"
    "from math import floor as f, pi\n"
    "result = (f(2.5), m.floor(3.5), round(pi, 2), os.path.basename('a/b'), m.pi == pi, m.e "
    "> 2)",
    "functions with attributes": "def f():\n    f.n += 1\n    return f.n\nf.n = 0\nf()\n"
    "g = lambda: None\ng.x = 5\n"
    "result = (f(), f.n, g.x, getattr(f, 'n'), hasattr(f, 'q'), f.__name__, g.__name__, "
    "f.__doc__)",
    "typed attributes": "import dataclasses, typing\n@dataclasses.dataclass\nclass A:\n    x: int\n"
    "    y: typing.List[int] = dataclasses.field(default_factory=list)\n"
    "    z: int = dataclasses.field(init=False, default=7)\n    k: typing.ClassVar[int] = 4\n"
    "    def __post_init__(self):\n        self.x += 1\na, b = A(1), A(2, [3])\n"
    "a.y.append(1)\nresult = (a.x, b.x, a.y, b.y, a.z, A.k)",
    "contexts that raise": "import contextlib\nlog = []\nclass C:\n"
    "    def __init__(self, swallows):\n"
    "        self.swallows = swallows\n    def __enter__(self):\n        log.append('in')\n"
    "        return self\n    def __exit__(self, kind, value, trace):\n"
    "        log.append(kind is None)\n        return self.swallows\nwith C(True) as c:\n"
    "    raise ValueError\ntry:\n    with C(False):\n        raise ValueError\n"
    "except ValueError:\n    log.append('through')\nwith C(False), C(True) as d:\n"
    "    log.append(d.swallows)\n@contextlib.contextmanager\ndef g():\n    try:\n"
    "        yield 1\n    except ValueError:\n        log.append('handled')\n    finally:\n"
    "        log.append('out')\nwith g():\n    raise ValueError\nresult = log[:3]",
    "asked of containers": "x = [1, 2, 2]\ns = {1, 2}\nresult = (x.count(2), x.index(2), 3 in x, "
    "1 in s, len({*x}), "
    "sorted(x, reverse=True), x[-1], x[::2], min(x), max(x, default=0), sum(x, 10), (1, 2) + "
    "(3,), [0] * 3, [1, 2] == [1, 2], min([], default=5), list(reversed(x)), list(zip(x, "
    "'ab')), dict(zip('ab', x)), list(enumerate('a', 1)), dict(a=1, **{'b': 2}))",
    "sets of the same": "x = [1, 2, 2]\ny = (1, True, 1.0)\na = object()\n"
    "result = (len({*x}), len(set(x)), len(set(y)), len({i % 2 for i in range(5)}), len({a, "
    "a}), len({1, 2} | {2, 3}), sorted({3, 1, 3}), len(frozenset('aab')), [*{'k': 1, 'j': "
    "2}], (*{'k': 1},))",
    # all sorts, and what nobody knows
    "lists of what nobody knows": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "x = [n, 1, w]\nx.append(n)\nx.insert(1, 5)\ny = x.copy()\ny.reverse()\nx.remove(1)\n"
    "result = (len(x), x[1], y[2], x.pop(1), len(x), (1, n, 2)[2], [n, 3][-1], x.index(w) if "
    "False else 0)",
    "removed at unknown places": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "x = [1, 1, 1]\nx.insert(n, 1)\nx.pop(n)\nx.pop()\nresult = (len(x), x)",
    "found among the unknown": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "x = [n, 1]\nresult = (1 in x, x.count(7) >= 0, [1, 2].index(2), (3, 4).count(3), "
    "[1].count(n) >= 0)",
    "sets of what nobody knows": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "x = {1, 2}\nx.add(n)\nx.discard(2)\ny = {1} | {3}\n"
    "result = (1 in x, len({1, 2, 1}), 1 in y, 9 in {1, 2}, n in {n})",
    "sets made of others": "a, b = {1, 2, 3}, {2, 3, 4}\nc = a.copy()\nc.update(b)\n"
    "d = a.intersection(b, {3})\n"
    "e = a.union([9], (8,))\nf = a.difference({1}, {2})\na.clear()\n"
    "result = (sorted(c), sorted(d), sorted(e), sorted(f), len(a))",
    "dicts of what nobody knows": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "d = {'a': n, 'b': 2}\nd[w] = 3\ne = {'x': 1, **{'y': n}}\n"
    "result = (d['b'] if w != 'b' else 0, e['x'], 'x' in e, len(e), list(e), e.pop('x'), "
    "list(e), e.get('z', 4), e.setdefault('x', 5))",
    "keys that nobody knows": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "d = {'k': 1}\nd[w] = 2\nresult = (d.get('k'), 'k' in d, d.get('zz', 7) if w != 'zz' "
    "else 7)",
    "texts of what nobody knows": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "s = f'{w}-{n}'\nresult = (isinstance(s, str), isinstance(len(s), int), "
    "isinstance(s.split('-'), list), isinstance(str(n), str), isinstance(n, int), "
    "isinstance(w, (int, str)), isinstance(w.upper(), int))",
    "numbers of what nobody knows": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "result = (n * 0 == 0 or True, isinstance(n + 1, int), isinstance(n / 2, float), "
    "isinstance(min(n, 3), int), isinstance(abs(n), int), isinstance(round(n * 1.5), int), "
    "isinstance(divmod(n, 2), tuple), len(divmod(n, 2)))",
    "the same for the same": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "result = (n == n, w == w, n + 1 == n + 1, len(w) == len(w), w.upper() == w.upper(), n "
    "is n, (n > 1) == (n > 1), abs(n) == abs(n), max(n, 1) == max(n, 1), str(n) == str(n))",
    "extremes by a key": "x = [(1, 'b'), (3, 'a'), (2, 'c')]\n"
    "result = (max(x), min(x), max(x, key=lambda p: "
    "p[1]), min(x, key=lambda p: -p[0]), max('a', 'bb', key=len), min([3, 1, 2], key=lambda "
    "v: -v), max([1], key=abs), max([], default='d'), min({'b': 1, 'a': 2}), max({'b': 1, "
    "'a': 2}.values()))",
    "extremes of mixed": "import os\nn = int(os.environ.get('NOWHERE', '2'))\n"
    "w = os.environ.get('NOWHERE', 'a')\n"
    "result = (max([5]), min((7,)), max(1, 2, 3), min(2.5, 1), max(*[1, 4]), max([n], "
    "default=1) == n, max('abc'), min([[2], [1]]))",
    "rounded and powered": "result = (round(2.5), round(3.5), round(1.25, 1), round(-2.567, 1), "
    "pow(2, 10), pow(2, "
    "-1), pow(3, 4, 5), abs(-3.5), divmod(7, 2), divmod(-7, 2), round(1234, -2), abs(-0), "
    "pow(0, 0))",
    "conversions": "result = (int(3.9), int(-3.9), int('12'), int('11', 2), int(), float(), "
    "float('1e3'), "
    "float(2), bool(), bool(0), bool('a'), bool([]), int(True), float('inf') > 9, complex(1, "
    "2).real, str(), str(1.5), repr('a'), int(' 7 '))",
    "conversions that fail": "r = []\nfor f in (lambda: int('x'), lambda: float('y'), lambda: "
    "int(None), lambda: "
    "[1][5], lambda: {}['a'], lambda: 1 / 0, lambda: 'a' + 1):\n    try:\n        f()\n"
    "        r.append(0)\n    except (ValueError, TypeError, LookupError, "
    "ZeroDivisionError):\n        r.append(1)\nresult = len(r)",
    "lengths of all sorts": "class A:\n    def __len__(self):\n        return 4\n"
    "result = (len('abc'), len([1]), len((1, 2)), len({1, 2}), len({'a': 1}), len(range(3)), "
    "len(range(1, 9, 3)), len(range(5, 0, -2)), len(b'ab'), len(A()), len(range(3, 1)), "
    "len('') , len([[]]))",
    "ranges": "r = range(2, 10, 3)\nresult = (list(r), r[1], r[-1], 5 in r, 6 in r, len(r), "
    "list(reversed(r)), r.start, r.stop, r.step, list(range(3))[::-1], sum(range(4)), "
    "list(range(4, 0, -2)), range(3)[1:])",
    "sorted by several": "x = [('b', 2), ('a', 2), ('a', 1)]\n"
    "result = (sorted(x, key=lambda p: p[1]), sorted(x, "
    "key=lambda p: -p[1]), sorted(x, key=lambda p: p[0], reverse=True), sorted('cab'), "
    "sorted({3, 1, 2}), sorted([2, 1], key=None), sorted([1, 2], key=lambda v: -v, "
    "reverse=True), sorted((0.5, -1)))",
    "sorted in place": "x = ['bb', 'a', 'ccc']\nx.sort(key=len)\ny = x.copy()\n"
    "y.sort(reverse=True)\n"
    "z = [3, 1]\nz.sort(key=lambda v: -v)\nresult = (x, y, z, sorted(x) == x)",
    "methods of texts": "result = ('a,b,c'.split(',', 1), 'a-b'.rsplit('-'), 'abc'.find('z'), "
    "'abcb'.rfind('b'), "
    "'abcb'.index('b'), 'aXbX'.replace('X', '', 1), ' a '.lstrip(), ' a '.rstrip(), "
    "'xxaxx'.strip('x'), 'Ab'.swapcase(), 'ab cd'.title(), 'ab'.capitalize(), '-'.join(['a', "
    "'b']), '-'.join('ab'), 'ab'.zfill(4), 'a'.rjust(3, '.'), 'a1'.isalnum(), "
    "'ab'.isalpha(), '12'.isdigit(), 'a b'.isidentifier(), 'A'.isupper(), 'a'.islower(), ' "
    "'.isspace(), 'ab'.encode() == b'ab', 'abc'.startswith('b', 1), 'abc'.endswith('b', 0, "
    "2), 'a\\tb'.expandtabs(2), 'ab'.translate({97: 'z'}), 'aa'.count('a', 1))",
    "texts formatted": "result = ('%s %d' % ('a', 3), '%.2f' % 1.234, '{} {}'.format(1, 'b'), "
    "'{0}{1}{0}'.format('a', 'b'), '{x}'.format(x=3), f'{3:>5}|', f'{1.5:.1f}', format(3, "
    "'03d'), format('a', '>3'), '%5.1f|' % 2.25, '{:,}'.format(1234567), '{:%}'.format(0.5), "
    "f'{\"a\":^3}', '%(k)s' % {'k': 1})",
    "copies of dicts": "import copy\nd = {'a': [1]}\ne, f, g = d.copy(), dict(d), {**d}\n"
    "h = copy.deepcopy(d)\n"
    "d['a'].append(2)\nd['b'] = 3\nresult = (e, f, g, h, d, e is d, e['a'] is d['a'], h['a'] "
    "is d['a'])",
    "dict views": "d = {'a': 1, 'b': 2}\nk, v, i = d.keys(), d.values(), d.items()\n"
    "result = (list(k), list(v), list(i), 'a' in k, 2 in v, ('a', 1) in i, len(k), "
    "sorted(v), [x for x, _ in i], dict(i), {y: x for x, y in d.items()}, list(d.__iter__()))",
    "dicts compared": "result = ({'a': 1} == {'a': 1}, {'a': 1} != {'a': 2}, {} == {}, {'a': 1, "
    "'b': 2} == "
    "{'b': 2, 'a': 1}, {'a': [1]} == {'a': [1]}, bool({}), bool({'a': 0}), {'a': 1} | {'b': "
    "2} == {'a': 1, 'b': 2})",
    "dicts made": "result = (dict(), dict(a=1), dict([('a', 1), ('b', 2)]), dict({'a': 1}, b=2), "
    "dict(zip('ab', (1, 2))), dict.fromkeys(['a', 'b']), dict.fromkeys('ab', 0), {i: i * i "
    "for i in range(3)}, dict([['x', 1]]), dict(map(lambda x: (x, x), [1])))",
    "popped and moved": "import collections\nd = collections.OrderedDict(a=1, b=2, c=3)\n"
    "d.move_to_end('b')\n"
    "a = list(d)\nd.move_to_end('c', False)\nb = list(d)\nc = d.popitem(False)\n"
    "e = d.popitem(True)\nd.move_to_end('a', last=True)\n"
    "result = (a, b, c, e, list(d), d.pop('zz', None), d.pop('a', None))",
    "defaults of dicts": "import collections\nd = collections.defaultdict(list, {'a': [1]})\n"
    "d['a'].append(2)\n"
    "d['b'].append(3)\ne = collections.defaultdict(lambda: 7)\nf = d.get('zz')\n"
    "result = (dict(d), e['q'], f, 'zz' in d, len(d), list(d), e.get('r', 1), "
    "d.setdefault('c', 5), 'q' in e)",
    "generators of several": "def g(n):\n    for i in range(n):\n        x = yield i\n"
    "result = (list(g(3)), max(g(3)), [a + b for a, b in zip(g(2), g(3))], next(g(1)), "
    "sorted(g(3), reverse=True), any(g(2)), all(g(2)), list(map(str, g(2))), [*g(2), *g(1)])",
    "generators that end": "def g():\n    yield 1\n    return 5\n"
    "a, b = next(g()), next(iter([]), 'end')\ndef h():\n"
    "    r = yield from g()\n    yield r\nc = list(h())\nd = [x for x in g()]\n"
    "for x in g():\n    pass\nresult = (a, b, c, d, x)",
    "iterators twice": "i = iter([1, 2, 3])\na = next(i)\nb = list(i)\nc = list(i)\n"
    "d, f = next(zip([1, 2], 'ab')), next(map(abs, [-1, -2]))\n"
    "g, h = next(enumerate('ab')), next(reversed([1, 2]))\n"
    "result = (a, b, c, d, f, g, h, next(iter('x')), next(iter({1: 2})))",
    "stars": "def f(*a, **k):\n    return a, k\na, *b = [1, 2, 3]\n*c, d = 'xyz'\n"
    "e, *g, h = (1, 2)\n"
    "result = (a, b, c, d, e, g, h, f(*[1, 2], 3, *'x'), f(**{'a': 1}, b=2), [*range(2), "
    "*'a'], {**{'a': 1}, 'a': 2}, (*[1],), {*[1, 2, 1]} == {1, 2})",
    "conditions joined": "r = []\ndef t(x):\n    r.append(x)\n    return x\na = t(0) or t(5)\n"
    "b = t(1) and t(0)\n"
    "c = t(2) if t(0) else t(3)\nd = not t(0)\ne = 1 < t(2) < 3\nf = 3 < t(2) < t(9)\n"
    "result = (a, b, c, d, e, f, r)",
    "loops left": "r = []\nfor i in (0, 1, 2, 3, 4):\n    if i == 1:\n        continue\n"
    "    if i == 3:\n"
    "        break\n    r.append(i)\nelse:\n    r.append('no')\nfor j in []:\n    pass\n"
    "else:\n    r.append('empty')\nn = 3\nwhile n:\n    n -= 1\n    if n == 1:\n"
    "        break\nelse:\n    r.append('no')\nresult = (r, i, n)",
    "loops in loops": "r = []\nfor i in range(3):\n    for j in range(3):\n        if j > i:\n"
    "            break\n        if (i + j) % 2:\n            continue\n"
    "        r.append((i, j))\nresult = (r, [(a, b) for a in range(2) for b in range(a + "
    "1)], [x for x in range(6) if x % 2 if x > 1], {a: [b for b in range(a)] for a in "
    "range(3)})",
    "exceptions of several": "r = []\ndef f(e):\n    try:\n        raise e\n"
    "    except (KeyError, IndexError) as x:\n"
    "        r.append(type(x).__name__)\n    except ValueError:\n        r.append('v')\n"
    "        return 1\n    else:\n        r.append('else')\n    finally:\n"
    "        r.append('f')\n    return 2\na = [f(KeyError('a')), f(ValueError()), "
    "f(IndexError())]\ntry:\n    f(TypeError())\nexcept TypeError:\n    r.append('t')\n"
    "result = (a, r)",
    "exceptions with parts": "class E(Exception):\n    def __init__(self, code):\n"
    "        super().__init__(code)\n"
    "        self.code = code\ntry:\n    try:\n        raise E(3)\n    except E as e:\n"
    "        raise ValueError(e.code) from e\nexcept ValueError as v:\n    x = v.args[0]\n"
    "result = (x, isinstance(E(1), Exception), E(2).code, E(5).args)",
    "nothing raised": "r = []\ntry:\n    r.append(1)\nexcept Exception:\n    r.append(2)\nelse:\n"
    "    r.append(3)\nfinally:\n    r.append(4)\ndef f():\n    for i in range(3):\n"
    "        try:\n            continue\n        finally:\n            r.append(i)\n"
    "    return 'x'\nresult = (f(), r)",
    "match": "def f(x):\n    match x:\n        case 0:\n            return 'zero'\n"
    "        case [a, *b]:\n            return (a, b)\n        case {'k': v}:\n"
    "            return v\n        case str() as s if s:\n            return s\n"
    "        case (1 | 2) as n:\n            return n\n        case _:\n"
    "            return None\nresult = (f(0), f([1, 2, 3]), f({'k': 5}), f('a'), f(''), "
    "f(2), f(7), f([]))",
    "classes in depth": "class A:\n    n = 1\n    def __init__(self, x):\n        self.x = x\n"
    "    def __repr__(self):\n        return 'A'\n    def __eq__(self, o):\n"
    "        return isinstance(o, A) and self.x == o.x\n    def __hash__(self):\n"
    "        return 1\n    def __iter__(self):\n        yield self.x\n"
    "    def __enter__(self):\n        return self\n    def __exit__(self, *a):\n"
    "        return False\na = A(1)\na.n = 5\nwith A(3) as b:\n    pass\n"
    "result = (a.n, A.n, A(1) == A(1), A(1) == 1, list(a), b.x, [*A(4)])",
    "attributes of classes": "class A:\n    x = [1]\n    def f(self):\n"
    "        return type(self).x\nclass B(A):\n"
    "    x = [2]\nA.x = A.x + [3]\nB.y = 4\nb = B()\nb.x = 5\ndel b.x\n"
    "result = (A().f(), B().f(), b.x, b.y, hasattr(A, 'y'), hasattr(B, 'y'), getattr(B, 'z', "
    "6), B.__name__, b.__class__ is B, issubclass(B, A), A in B.__mro__)",
    "calls by name": "class A:\n    def f(self, x=1, *, y=2):\n        return (x, y)\na = A()\n"
    "result = (getattr(a, 'f')(3), a.f(y=5), A.f(a, 4), (lambda *a, **k: (a, k))(1, b=2), "
    "[g(2) for g in (abs, str, lambda v: v * 2)], {'f': a.f}['f'](y=0), (a.f if True else "
    "None)(x=7))",
    "functools of several": "import functools\n@functools.lru_cache(maxsize=None)\ndef f(x):\n"
    "    return x * 2\n"
    "@functools.cache\ndef g(x):\n    return [x]\n@functools.wraps(f)\ndef h(x):\n"
    "    return x + 1\nresult = (f(2), f(3), g(1), h(1), functools.reduce(lambda a, b: a * "
    "b, [1, 2, 3, 4]), functools.reduce(max, [3, 1, 5]))",
    "operators by function": "import operator as o\nresult = (o.add(1, 2), o.neg(3), "
    "o.truediv(3, 2), o.mod(7, 3), "
    "o.pow(2, 3), o.and_(6, 3), o.or_(1, 2), o.xor(3, 1), o.contains([1], 1), o.is_(None, "
    "None), o.is_not(1, None), o.truth([]), o.concat([1], [2]), o.itemgetter(1)([4, 5]), "
    "o.itemgetter(0, 2)('abc'), o.gt(2, 1), o.le(2, 1), o.abs(-2), o.iadd(1, 2), o.index(3))",
    "strings of several": "s = 'hello'\nresult = (s[1:3], s[::-1], s[-3:], s * 2, 'l' in s, 'z' "
    "not in s, s < 'z', "
    "[c for c in s if c != 'l'], s.upper()[0], max(s), sorted(s), list(enumerate(s))[1], "
    "''.join(reversed(s)), s[0] + s[-1], len(s), s == 'hello', s is s, tuple(s)[:2], "
    "set('aa') == {'a'})",
    "numbers of several": "x = 5\nx += 2\nx *= 3\nx -= 1\nx //= 2\nx **= 2\nx %= 7\ny = 7\n"
    "y /= 2\nz = 6\nz &= 3\n"
    "z |= 8\nz ^= 1\nz <<= 1\nz >>= 2\nresult = (x, y, z, -x, +y, ~z, 10 // 3, -10 // 3, 10 "
    "% -3, 2 ** -1, 0.1 + 0.2 > 0.3, 1e3, 0x10, 0b11, 1_000, 5 / 2, 1 == True, 3 != 3.0)",
}

# Of how many values in a result nothing is said:
UNSAID = {
    "multiplied": 1, "repeat": 1, "compress": 1, "math": 1, "compared": 2, "string tests": 1,
    "dunder call, getitem, len": 2, "dunder operators": 2, "dunder iter class": 1, "dataclass": 1,
    "enum": 1, "named tuple": 3, "a named tuple item by item": 1, "operator": 2, "yield from": 2,
    "what a partial holds": 1, "enum by itself": 2, "kinds": 2, "subclasses": 1,
    "items by index": 1, "a generator with a state": 1, "kinds of dicts": 1,
    "relations of sets": 3, "a shallow copy of a partial": 1, "counter": 7, "has of modules": 2,
    "kinds by abstract classes": 3, "subclasses of several": 1, "rounded again": 1, "spelled": 6,
    "extremes": 2, "methods of numbers": 3, "strings": 1, "formats": 2, "bytes": 2,
    "asdict, replace, fields": 3, "frozen": 2, "named tuples": 2, "named tuples with defaults": 1,
    "enums": 7, "an enum of text": 2, "chains and slices": 1, "lazy": 1, "dicts of pairs": 2,
    "maths": 1, "chosen at random": 1, "parsed arguments": 1, "reflection": 1, "signatures": 7,
    "globals": 1, "paths": 4, "large powers": 1, "iterators of a class": 1, "callables": 1,
    "keys of objects": 1, "batched": 1, "strings that are long": 2, "names of random": 6,
    "added to in place or not": 1, "called on a class": 3, "numbers of every sort": 2,
    "classes compared": 1, "a module in itself": 1, "contexts that raise": 1,
    "asked of containers": 1, "found among the unknown": 2, "sets of what nobody knows": 1,
    "keys that nobody knows": 1, "texts of what nobody knows": 5,
    "numbers of what nobody knows": 5, "the same for the same": 9, "extremes by a key": 2,
    "extremes of mixed": 2, "conversions": 2, "ranges": 5, "sorted in place": 1,
    "methods of texts": 1, "texts formatted": 5, "dict views": 1, "dicts compared": 6,
    "dicts made": 2, "generators of several": 3, "generators that end": 2, "stars": 1,
    "exceptions with parts": 1, "classes in depth": 2, "attributes of classes": 1,
    "slow regular expressions": 2, "parts of regular expressions": 3,
    "kinds of parameters": 3, "operators by function": 5, "strings of several": 2,
}  # fmt: skip


def agrees(said: object, true: object) -> bool:
    """Whether what is said is what is true; `...` says nothing, at the end of a list of what else
    may be in it.
    """
    if said is ...:
        return True
    if isinstance(said, list | tuple) and isinstance(true, list | tuple):
        is_open = said[-1:] in ([...], (...,)) and isinstance(said, list)
        lengths = len(said) - 1 <= len(true) if is_open else len(said) == len(true)
        return (
            lengths
            and type(said) is type(true)
            and all(map(agrees, said[:-1] if is_open else said, true))
        )
    if isinstance(said, dict) and isinstance(true, dict):
        return list(said) == list(true) and all(agrees(said[key], true[key]) for key in said)
    return type(said) is type(true) and said == true


def unsaid(said: object) -> int:
    """How many values nothing is said of."""
    inner = (
        said.values() if isinstance(said, dict) else said if isinstance(said, list | tuple) else ()
    )
    return int(said is ...) + sum(map(unsaid, inner))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_interpreter_says_of_a_program_is_what_python_gives(name: str) -> None:
    names: dict[str, object] = {}
    exec(PROGRAMS[name], names)
    said = result(PROGRAMS[name])
    assert said is not ...
    assert agrees(said, names["result"])
    assert unsaid(said) <= UNSAID.get(name, 0)
