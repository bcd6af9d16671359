"""What is a note in a part with no trainer in view, and what torch does with it."""

from __future__ import annotations

import pathlib

import pytest
from truth import observe

HEAD = "import torch\nfrom collections.abc import Sequence\nfrom torch import Tensor, nn\n"
SYSTEM = (
    "class Rollout(nn.Module):\n    def __init__(self, system, steps: int):\n"
    "        super().__init__()\n        self.system, self.steps = system, steps\n"
    "    def forward(self, first: Tensor, controls: Tensor):\n"
    "        states = torch.zeros(first.size(0), self.steps + 1, first.size(1))\n"
    "        states[:, 0] = state = first\n        for step in range(self.steps):\n            "
)
ROLLED = "Rollout(nn.Linear(3, 3), 4)(torch.randn(2, 3), torch.randn(2, 4, 3)).sum().backward()\n"
ENTRIES = (
    "def entries(stack: Tensor):\n    flat = stack.view(-1, stack.size(-1))\n"
    "    places = flat.nonzero().t()\n    found = flat[places[0], places[1]]\n    "
)
ENTERED = "entries(torch.eye(3).repeat(2, 1, 1).requires_grad_())[1].sum().backward()\n"
MASKED = (
    "class Shelf(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.table = nn.Parameter(torch.randn(4, 3))\n"
    "    def masked(self, chosen: Tensor):\n        mask = chosen > 0\n        "
)
SHELVED = "Shelf().masked(torch.arange(4)).sum().backward()\n"
ADDING = (
    "class Adding(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.mix = nn.Linear(3, 3)\n    def forward(self, x):\n        "
)
ADDED = "Adding()(torch.randn(2, 3, requires_grad=True)).sum().backward()\n"
WRITTEN = {  # what writes, how it is used, and how often that is reported
    f"{SYSTEM}states[:, step + 1] = self.system(states[:, step]) + controls[:, step]\n"
    "        return states\n": (ROLLED, 1),
    f"{SYSTEM}state = self.system(state) + controls[:, step]\n"
    "            states[:, step + 1] = state\n        return states\n": (ROLLED, 0),
    f"{SYSTEM}states[:, step + 1] = self.system(states[:, step].clone())\n"
    "        return states\n": (ROLLED, 0),
    f"{ENTRIES}places[1] += places[0] * 2\n    return places, found\n": (ENTERED, 1),
    f"{ENTRIES}places = torch.stack([places[0], places[1] * 2])\n    places += 1\n"
    "    return places, found\n": (ENTERED, 0),
    f"{MASKED}rows = self.table[mask]\n        mask[0] = True\n        return rows * mask.sum()\n": (
        SHELVED,
        1,
    ),
    f"{ADDING}y = x.relu()\n        y += self.mix(x)\n        return y\n": (ADDED, 1),
    f"{ADDING}y = x * 2\n        z = y.sin()\n        y += self.mix(z)\n        return y\n": (
        ADDED,
        1,
    ),
    f"{ADDING}y = x.relu()\n        y = y + self.mix(x)\n        return y\n": (ADDED, 0),
    f"{ADDING}y = x * 2\n        y += self.mix(x)\n        return y\n": (ADDED, 0),
    f"{MASKED}rows = self.table[mask.clone()]\n        mask[0] = True\n"
    "        return rows * mask.sum()\n": (SHELVED, 0),
}


def told(folder: pathlib.Path, program: str) -> list[tuple[str, str]]:
    """The codes and severities of what is found in a program."""
    from gradlint.analysis import analyze

    path = folder / "part.py"
    path.write_text(HEAD + program, encoding="utf-8")
    found = analyze([path], select=lambda code: True).findings
    return [(each.code, each.severity.label) for each in found]


@pytest.mark.parametrize("program", WRITTEN)
def test_a_write_into_what_was_read_is_a_note(program: str, tmp_path: pathlib.Path) -> None:
    _, times = WRITTEN[program]
    assert told(tmp_path, program) == [("GL201", "note")] * times


@pytest.mark.parametrize("program", WRITTEN)
def test_torch_raises_where_that_is_used(program: str, tmp_path: pathlib.Path) -> None:
    use, times = WRITTEN[program]
    (tmp_path / "use.py").write_text(HEAD + program + use, encoding="utf-8")
    exception = observe(tmp_path, "use.py").exception
    assert ("modified by an inplace operation" in exception) is bool(times)


LAYERS = {  # what a constructor takes, keeps and uses, and whether that is registered
    ("layers: Sequence[nn.Module]", "layers"): False,
    ("layers: list[Scale]", "layers"): False,
    ("layers: tuple[Scale, ...]", "layers"): False,
    ("*layers: nn.Module", "layers"): False,
    ("layers: list[nn.Module]", "nn.ModuleList(layers)"): True,
    ("*layers: nn.Module", "nn.ModuleList(layers)"): True,
}
SCALE = (
    "class Scale(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.factor = nn.Parameter(torch.ones(3))\n"
    "    def forward(self, x):\n        return x * self.factor\n"
)


def mixture(taken: str, kept: str) -> str:
    """A module that keeps what it takes, and adds up what these layers give."""
    return (
        f"{SCALE}class Mixture(nn.Module):\n    def __init__(self, {taken}):\n"
        f"        super().__init__()\n        self.layers = {kept}\n"
        "    def forward(self, x):\n        return sum(layer(x) for layer in self.layers)\n"
    )


@pytest.mark.parametrize(("taken", "kept"), LAYERS)
def test_layers_that_are_handed_in_and_kept_in_a_list_are_a_note(
    taken: str, kept: str, tmp_path: pathlib.Path
) -> None:
    expected = [] if LAYERS[taken, kept] else [("GL514", "note")]
    assert told(tmp_path, mixture(taken, kept)) == expected


@pytest.mark.parametrize(("taken", "kept"), LAYERS)
def test_torch_registers_them_in_a_module_list_alone(
    taken: str, kept: str, tmp_path: pathlib.Path
) -> None:
    given = "Scale(), Scale()" if taken.startswith("*") else "[Scale(), Scale()]"
    use = f"held = list(Mixture({given}).parameters())\n"
    use += f"assert len(held) == {2 if LAYERS[taken, kept] else 0}\n"
    (tmp_path / "use.py").write_text(HEAD + mixture(taken, kept) + use, encoding="utf-8")
    assert observe(tmp_path, "use.py").exception == ""


def test_a_list_of_numbers_holds_no_layers(tmp_path: pathlib.Path) -> None:
    assert told(tmp_path, mixture("layers: list[int]", "layers")) == []
