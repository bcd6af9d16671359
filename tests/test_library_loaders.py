"""How many batches a loader gives: a window of three that leaves a rest is told, exactly where
torch leaves one.
"""

from __future__ import annotations

import pathlib
from typing import Any

from gradlint.analysis import analyze

SETUP = """\
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler, SequentialSampler, TensorDataset, random_split

torch.manual_seed(0)
twelve, ten, thirty = torch.zeros(12, 4), torch.zeros(10, 4), torch.zeros(30, 4)


class Own(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.zeros(4)


first, second = random_split(TensorDataset(thirty), [12, 18])
"""
ROUNDS = """
def train_{}():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, batch in enumerate({}):
        (model(batch[0]).mean() / 3).backward()
        if (i + 1) % 3 == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
KNOWN = """\
DataLoader(TensorDataset(twelve), 4)
DataLoader(TensorDataset(twelve), batch_size=4)
DataLoader(TensorDataset(twelve), batch_size=3)
DataLoader(TensorDataset(twelve), 3)
DataLoader(TensorDataset(twelve), 3, True)
DataLoader(TensorDataset(twelve), 2, shuffle=True)
DataLoader(TensorDataset(thirty), batch_size=7, drop_last=True)
DataLoader(TensorDataset(thirty), batch_size=7, drop_last=False)
DataLoader(TensorDataset(thirty), batch_size=8, drop_last=True)
DataLoader(TensorDataset(ten), 3)
DataLoader(TensorDataset(ten), 3, drop_last=True)
DataLoader(TensorDataset(twelve, twelve), 4)
DataLoader(dataset=TensorDataset(twelve), batch_size=4)
DataLoader(TensorDataset(twelve))
DataLoader(TensorDataset(ten))
DataLoader(twelve, 4)
DataLoader(ten, 2)
DataLoader([torch.zeros(4)] * 12, 4)
DataLoader([torch.zeros(4)] * 13, 4)
DataLoader(Own(12), 4)
DataLoader(Own(9), 4)
DataLoader(Own(10), 2)
DataLoader(Own(12), sampler=SequentialSampler(Own(12)), batch_size=4)
DataLoader(Own(12), sampler=SequentialSampler(Own(20)), batch_size=4)
DataLoader(Own(12), sampler=RandomSampler(Own(12), num_samples=9), batch_size=3)
DataLoader(Own(12), sampler=RandomSampler(Own(12), num_samples=8), batch_size=2)
DataLoader(torch.full((12, 4), 0.5), 4)
DataLoader(torch.full([20, 4], 0.5), 4)
DataLoader(torch.zeros((12, 4)), 4)
DataLoader(torch.ones([15, 4]), 3)
DataLoader(torch.rand((20, 4), dtype=torch.float64), 4)
DataLoader(torch.randperm(12), 4)
DataLoader(torch.randperm(20), 4)
DataLoader(TensorDataset(torch.randn(12, 4, 2), torch.zeros(12, dtype=torch.long)), 4)
DataLoader(first, 4)
DataLoader(second, 6)
DataLoader(second, 4)
""".splitlines()


def test_a_rest_is_told_where_torch_leaves_one(tmp_path: pathlib.Path) -> None:
    names: dict[str, Any] = {}
    exec(SETUP, names)
    path = tmp_path / "train.py"
    path.write_text(
        SETUP + "".join(ROUNDS.format(*each) for each in enumerate(KNOWN)), encoding="utf-8"
    )
    found = analyze([path], select=lambda code: code == "GL504").findings
    first, length = SETUP.count("\n") + 1, ROUNDS.count("\n")
    told = {KNOWN[(finding.at.line - first) // length] for finding in found}
    assert told == {
        loader for loader in KNOWN if (count := len(eval(loader, names))) > 3 and count % 3
    }
