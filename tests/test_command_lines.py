"""Settings that a library reads into a dataclass of the program."""

import pathlib

import pytest

from gradlint import analyzer

TRAINING = """
import torch
from dataclasses import dataclass, field
{imports}

@dataclass
class Rates:
    warm: bool = False

@dataclass
class Settings:
    half: bool = False
    doubled: bool = True
    rates: Rates = field(default_factory=Rates)
    count: int = 3

    def __post_init__(self):
        self.total = 2 * self.count

settings{more} = {read}
model = torch.nn.Linear(3, 1)
if settings.half:
    model.half()
if settings.doubled:
    model.double()
if settings.rates.warm:
    print("warm")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(settings.total):
    optimizer.zero_grad()
    model(torch.randn(2, 3)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("imports", "more", "read"),
    [
        ("import tyro", "", "tyro.cli(Settings)"),
        ("import pyrallis", "", "pyrallis.parse(config_class=Settings)"),
        (
            "from transformers import HfArgumentParser",
            ",",
            "HfArgumentParser((Settings,)).parse_args_into_dataclasses()",
        ),
        (
            "import trl",
            ", left",
            "trl.TrlParser(Settings).parse_args_and_config(return_remaining_strings=True)",
        ),
    ],
)
def test_fields_are_what_they_are_by_default_on_the_first_path_and_else_on_others(
    tmp_path: pathlib.Path, imports: str, more: str, read: str
) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAINING.format(imports=imports, more=more, read=read))
    first, *others = analyzer.tapes_of(program)
    defaults = {
        "settings.half": False,
        "settings.doubled": True,
        "settings.rates.warm": False,
    }
    assert {decision.text: decision.holds for decision in first.decisions} == defaults
    for text, holds in defaults.items():
        turned = (decision for tape in others for decision in tape.decisions)
        assert any(each.text == text and each.holds is not holds for each in turned)


def test_a_function_that_is_given_an_object_too_fills_none(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        TRAINING.format(imports="import dacite", more="", read="dacite.merge(Settings(), Settings)")
    )
    first = next(iter(analyzer.tapes_of(program)))
    assert {decision.text: decision.holds for decision in first.decisions}["settings.half"]
