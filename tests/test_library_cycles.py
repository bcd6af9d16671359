"""Lists, dicts, objects and functions that hold themselves: whatever is handed them comes to an
end.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_library_python import run
from test_library_torch import tapes

from gradlint import tape
from gradlint.interpret.values import Mapping, Sequence

PROGRAMS = {
    "a group of parameters": "g = {}\ng['params'] = g\nresult = torch.optim.SGD([g], lr=0.1)",
    "an array": "import numpy as np\na = [1]\na.append(a)\nd = {'a': a}\nd['d'] = d\n"
    "result = np.array([a, d])",
    "what is handed out of view": "a = [[]]\na.append(a)\nd = {'a': a, 'b': {}}\nd['d'] = d\n"
    "unseen.f(a, d)\n"
    "result = len(d)",
    "an object that is handed out of view": "class A:\n    pass\nx = A()\nx.x = x\nx.l = [x]\n"
    "x.d = {'x': x}\nunseen.f(x)\n"
    "unseen.f([x])\nresult = x",
    "functions that call each other": "def f():\n    return g()\ndef g():\n    return f()\n"
    "unseen.on('a', f)\n"
    "unseen.on('a', lambda: f())\nresult = f",
    "methods that call each other": "class A:\n    def f(self):\n        return self.g()\n"
    "    def g(self):\n"
    "        return self.f()\nunseen.on('a', A().f)\nresult = A",
    "a module": "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.parts = [nn.Linear(2, 2)]\n        self.parts.append(self.parts)\n"
    "        self.d = {}\n        self.d['d'] = self.d\nm = M()\nunseen.f(m)\n"
    "unseen.f(m.parts)\nresult = len(list(m.parameters()))",
    "a product": "import math\na = [torch.zeros(1)]\na.append(a)\n"
    "result = (math.prod(a), str(a), len(a))",
    "a copy": "import copy\na = [1]\na.append(a)\nb = copy.deepcopy(a)\n"
    "result = (len(b), b[1] is b, b is a)",
    "a sample": "from torch.utils.data import Dataset, DataLoader\nclass D(Dataset):\n"
    "    def __getitem__(self, i):\n        a = {}\n        a['a'] = (a,)\n        return a\n"
    "    def __len__(self):\n        return 3\nfor x in DataLoader(D()):\n    result = x",
    "a default": "import collections\nd = collections.defaultdict(list)\nd['a'].append(d)\n"
    "unseen.f(d)\n"
    "result = len(d)",
    "what holds a gradient": "a = [torch.zeros(2, requires_grad=True)]\na.append(a)\n"
    "torch.save(a, 'a')\n"
    "unseen.f(loss=a)\nresult = a[0].requires_grad",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_holds_itself_comes_to_an_end(name: str) -> None:
    assert (
        run("import torch\nimport unseen\nfrom torch import nn\n" + PROGRAMS[name])["result"]
        is not None
    )


HELD = """\
import torch
from torch import nn
net = nn.Linear(2, 2)
held = [net.weight]
held.append(held)
named = {"weight": net.weight}
named["named"] = named
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.rand(1, 2)).sum().backward()
torch.nn.utils.clip_grad_norm_(CLIPPED, 1.0)
optimizer.step()
"""


@pytest.mark.parametrize("clipped", ["held", "named"])
def test_a_list_of_parameters_that_holds_itself_ends_no_analysis(
    clipped: str, tmp_path: Path
) -> None:
    (path,) = tapes(tmp_path, HELD.replace("CLIPPED", clipped))
    assert path.complete
    assert any(isinstance(event, tape.Backward) for event in path.events)


def test_what_is_empty_in_what_is_handed_out_of_view_may_be_filled_there() -> None:
    handed = run("import unseen\nhanded = [[], {'k': []}, [1], [[[]]]]\nunseen.f(handed)")["handed"]
    assert isinstance(handed, Sequence)
    empty, named, full, deep = handed.items
    assert isinstance(empty, Sequence)
    assert isinstance(named, Mapping)
    assert isinstance(full, Sequence)
    assert isinstance(deep, Sequence)
    assert not any(each.open for each in (handed, named, full, deep))
    for held in (empty, named.items["k"], deep.items[0]):
        assert isinstance(held, Sequence)
        assert held.open == (held is not deep.items[0])


def test_a_list_that_holds_itself_is_shown_as_it_is() -> None:
    held = run("held = [1]\nheld.append(held)\nother = list(held)\n")["other"]
    assert isinstance(held, Sequence)
    assert isinstance(held.items[1], Sequence)
    assert held.items[1].items[1] is held.items[1]
