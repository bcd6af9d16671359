"""Short programs that would cost a reader of their every step its memory or its day."""

from __future__ import annotations

GROWTH = 60  # doublings: a quintillion


def _again(start: str, statement: str, *after: str, times: int = GROWTH) -> str:
    return "\n".join([start, *[statement] * times, *after]) + "\n"


_LINEAR = "import torch.nn as nn\nm = nn.Linear(2, 2)"
_NAMES = "abcdefghijklmnopq"

BOMBS = {
    # constants
    "string-doubled": _again("s = 'a'", "s = s + s"),
    "string-added-to-itself": _again("s = 'a'", "s += s"),
    "string-formatted-twice": _again("s = 'a'", "s = f'{s}{s}'"),
    "string-replaced": _again("s = 'a'", "s = s.replace('a', 'aaaaaaaaaaaaaaaaaaaaaa')"),
    "string-joined": _again("s = 'aaaaaaaaaaaaaaaaa'", "s = s.join(s)"),
    "string-widths": "a = '{:>99999999999}'.format(1)\nb = f'{1:>99999999999}'\n"
        "c = '\\t'.expandtabs(99999999999)\n",
    "integer-squared": _again("n = 7", "n = n * n", "print(n)"),
    "integer-multiplied": _again("n = 7", "n *= n", "print(f'{n}')"),
    "integer-powers": "a = 2 ** 2 ** 100\nb = 10 ** 10 ** 10\nc = pow(10, 10 ** 9)\n"
        "d = 1 << 10 ** 10\n",
    "integer-functions": "import math\na = math.factorial(10 ** 7)\nb = math.comb(10**8, 10**7)\n"
        "c = round(5, -10 ** 10)\n",
    "integer-literal": f"n = 0x{'f' * 6000}\nprint(str(n))\nfor i in range(n):\n    pass\n"
        f"d = {{n: n % 3}}\n",
    "integer-bounds": "a = [1][10 ** 30]\nb = range(10 ** 30)[5]\nc = len(range(10 ** 30))\n"
        "d = torch.zeros(10 ** 30)\n",
    "numbers-refused": "a = 1 / 0\nb = 'abc'[::0]\nc = [1][::0]\nd = range(0, 5, 0)\n"
        "for i in d:\n    pass\n"
        "e = 0.0 ** -1\n",
    "class-unknown": "n = unknown()\nkinds = unknown()\nif not isinstance(n, kinds[0]):\n"
        "    n = int(n)\n",
    # containers
    "list-doubled": _again("l = [1]", "l = l + l"),
    "list-added-to-itself": _again("l = [1]", "l += l"),
    "list-extended-by-itself": _again("l = [1]", "l.extend(l)"),
    "list-unpacked-twice": _again("l = [1]", "l = [*l, *l]"),
    "list-of-zeros": "a = [0] * 10 ** 12\nb = bytes(10 ** 12)\nc = list(range(10 ** 12))\n",
    "list-in-itself": "l = []\nl.append(l)\nl += [l, l]\nprint(l, str(l))\ntorch.stack(l)\n"
        "unknown(l)\n"
        "for a in l:\n    print(a)\n",
    "dict-in-itself": "d = {}\nd['a'] = d\nimport copy\nc = copy.deepcopy(d)\nunknown(d)\n"
        "x = d['a']['a']\n",
    "tuple-of-itself-twice": _again("t = (1,)", "t = (t, t)", "d = {t: 1}", "print(t, f'{t}')",
        "isinstance(1, t)"),
    "list-of-itself-twice": _again("t = [model]", "t = [t, t]", "torch.tensor(t)",
        "torch.optim.SGD(t, lr=1)", "sum(t)"),
    "list-of-tensors": _again("t = (torch.zeros(1),)", "t = (t, t)", "torch.stack(t)", "model(t)",
        "unknown(t)"),
    "dict-of-itself-twice": _again("t = {'a': model}", "t = {'a': t, 'b': t}", "print(t)",
        "unknown(t)"),
    "list-literal": f"l = [{'1, ' * 100_000}]\n",
    "itertools": "import itertools\na = itertools.product('ab', repeat=99)\nb = list(a)\n"
        "c = itertools.tee(b, 10 ** 9)\n",
    "itertools-refused": "import itertools\na = list(itertools.product('ab', repeat=-1))\n"
        "b = list(itertools.combinations('ab', -1))\nc = list(itertools.permutations('ab', "
        "'x'))\nd = list(itertools.product('ab', repeat=10 ** 9))\n",
    "comprehension": f"x = [1 {' '.join(f'for {name} in {_NAMES!r}' for name in _NAMES)}]\n",
    # modules and graphs
    "module-in-a-module-twice": _again(_LINEAR, "m = nn.Sequential(m, m)", "m(torch.zeros(2, 2))",
        "m.eval()", times=40),
    "module-repeated": f"{_LINEAR}\nl = nn.ModuleList([m] * 10 ** 9)\n"
        "s = nn.Sequential(*[m for _ in range(10 ** 9)])\n",
    "sum-of-itself": _again("y = model(torch.zeros(2, 2))", "y = y + y",
        "y.sum().sqrt().backward()"),
    "product-of-itself": _again("y = model(torch.zeros(2, 2))", "y = y * y",
        "y.sum().sqrt().backward()"),
    "stack-of-itself": _again("y = model(torch.zeros(2, 2))", "y = torch.cat([y * y, y, y, y])",
        "y.sum().sqrt().backward()"),
    "choices": _again("y = model(torch.zeros(2, 2))",
        "y = torch.where(y > 0, y / (y * y), y.log())", "y.sum().backward()"),
    # calls and loops
    "function-of-itself": _again("f = lambda x: x", "f = (lambda g: lambda x: g(g(x)))(f)", "f(1)",
        times=40),
    "recursion": "def f(n):\n    return f(n - 1) + f(n - 2) + g(n)\ndef g(n):\n"
        "    return f(n) + f(n)\n"
        "f(100)\n",
    "self-application": "(lambda x: x(x))(lambda x: x(x))\ndef h():\n    yield from h()\n"
        "list(h())\n",
    "attributes-of-itself": "class A:\n    def __getattr__(self, name):\n"
        "        return getattr(self, name)\n"
        "    def __call__(self):\n        return self()\nA().x\nA()()\nclass B(B): pass\nB()\n",
    "object-called-by-itself": "class A:\n    pass\nA.__call__ = A()\nA()()\n",
    "loops": "".join(f"{'    ' * depth}for i{depth} in range(9):\n" for depth in range(18)) + "    " * 18 + "pass\n",
    "branches": "".join(f"if flag{number}:\n    x = {number}\n" for number in range(600)),
    "branches-nested": "".join(f"{' ' * depth}if flag{depth}:\n" for depth in range(90)) + " " * 90 + "pass\n",
    # expressions
    "attributes-in-a-row": f"x = a{'.b' * 900}\n",
    "calls-in-a-row": f"x = a{'()' * 900}\n",
    "additions-in-a-row": f"x = {'+'.join(['a'] * 900)}\n",
    "bases-in-a-row": f"class Data({'a.' * 900}Dataset):\n    def __getitem__(self, i):\n"
        "        return i\n",
    "names-in-a-row": "".join(f"class C{n}({'C' + str(n - 1) if n else 'object'}): pass\n" for n in range(600)) + "C599().x\n",
}  # fmt: skip

_HEAD = (
    "import torch\nmodel = torch.nn.Linear(2, 2)\noptimizer = "
    "torch.optim.SGD(model.parameters(), lr=0.1)\n"
)
_TAIL = (
    "\noptimizer.zero_grad()\nmodel(torch.zeros(2, 2)).mean().detach().backward()\n"
    "optimizer.step()\n"
)


def programs() -> dict[str, str]:
    """Each bomb in a script whose last backward has no gradient, and which is found if the bomb did
    not go off.
    """
    return {name: _HEAD + bomb + _TAIL for name, bomb in BOMBS.items()}
