"""Programs of two ranks: what a trace says of the gradients that DDP missed, and of collectives
that not all called.
"""

from __future__ import annotations

import json
import pathlib
import textwrap
from typing import Any

import pytest
from traced import plain, trace

# Two forks of a process that has torch, each with the environment that torchrun gives a rank.
LAUNCH = """
import os, sys
from gradlint.cli import main
children = []
for rank in range(2):
    child = os.fork()
    if child == 0:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", TORCHELASTIC_RUN_ID={name!r})
        code = 70
        try:
            options = ["--fail-on", "never", "--output-format", "json", "--output-file", f"{{rank}}.json"]
            main(["trace", *options, "train.py"])
        except SystemExit as stop:
            code = stop.code
        os._exit(code)
    children.append(child)
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
HEAD = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meet"), rank=rank, world_size=2)
torch.manual_seed(0)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(4, 8)
        self.extra = torch.nn.Linear(4, 8)
        self.head = torch.nn.Linear(8, 1)

    def forward(self, x, more):
        h = self.encoder(x)
        if more:  # condition
            h = h + self.extra(x)  # use
        return self.head(h.relu())

def train(model, more):
    loss = model(torch.randn(8, 4), more).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # backward
    optimizer.step()

"""


def run(folder: pathlib.Path, body: str) -> tuple[list[int], dict[str, Any], list[str]]:
    """Trace a program of two ranks; gives their exit codes, the merged report, and the program's
    lines.
    """
    text = HEAD + textwrap.dedent(body)
    (folder / "train.py").write_text(text)
    (folder / "launch.py").write_text(LAUNCH.format(name=f"test-{abs(hash(str(folder)))}"))
    launched = plain(folder, "launch.py", seconds=400)
    assert (folder / "0.json").is_file(), launched.err
    codes = [int(word) for word in launched.out.split()]
    return codes, json.loads((folder / "0.json").read_text()), text.splitlines()


def at(lines: list[str], mark: str) -> str:
    """`train.py:7`, the place of the line that ends in a mark."""
    return f"train.py:{next(number for number, line in enumerate(lines, 1) if line.endswith(f'# {mark}'))}"


def test_parameters_that_ddp_waited_for_are_named_with_the_line_that_left_them_out(
    tmp_path: pathlib.Path,
) -> None:
    codes, report, lines = run(
        tmp_path,
        """
        model = DistributedDataParallel(Net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            train(model, more=step < 1)
        """,
    )
    assert codes == [1, 1]
    assert len(report["explained"]) == 1
    told = report["explained"][0]
    assert told.startswith("rank 0, 1: DDP waited for gradients"), told
    for part in (
        "extra.weight, extra.bias",
        at(lines, "use"),
        at(lines, "condition"),
        at(lines, "backward"),
        "step 0",
    ):
        assert part in told, told


def test_parameters_that_nothing_uses_are_said_to_be_unused(tmp_path: pathlib.Path) -> None:
    codes, report, _ = run(
        tmp_path,
        """
        model = DistributedDataParallel(Net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(2):
            train(model, more=False)
        """,
    )
    assert codes == [1, 1]
    assert (
        "extra.weight, extra.bias; no operation that was recorded has used them"
        in report["explained"][0]
    )


def test_ranks_that_part_before_a_collective_are_told_where(tmp_path: pathlib.Path) -> None:
    codes, report, lines = run(
        tmp_path,
        """
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            train(model, more=True)
            if rank == 0 or step < 2:
                dist.all_reduce(model.head.weight.grad)  # collective
        """,
    )
    assert (codes[1], codes[0] != 0) == (0, True)
    parted = [line for line in report["explained"] if "part at collective 6" in line]
    assert len(parted) == 1, report["explained"]
    assert f"rank 0 calls all_reduce at {at(lines, 'collective')}" in parted[0]
    assert f"rank 1 calls no other after backward at {at(lines, 'backward')}" in parted[0]


def test_ranks_that_agree_have_nothing_explained(tmp_path: pathlib.Path) -> None:
    codes, report, _ = run(
        tmp_path,
        """
        model = DistributedDataParallel(Net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            train(model, more=True)
        if rank == 0:
            print("done")
        dist.destroy_process_group()
        """,
    )
    assert (codes, report["explained"], report["findings"], report["ended"]) == ([0, 0], [], [], "")
    assert not [line for line in report["unseen"] if "failed" in line or "rank" in line]


SHARDED = """
import os, sys
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meet"), rank=0, world_size=1)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)

    def forward(self, x):
        h = self.encoder(x)
        if sys.argv[2] == "cut":
            h = h.detach()  # cut
        return self.head(h.relu())

model = Net()
if sys.argv[1] == "fully_shard":
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
else:
    model = FullyShardedDataParallel(model, use_orig_params=True, device_id=torch.device("cpu"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in torch.randn(6, 8, 4):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("way", ["fully_shard", "wrapper"])
def test_a_cut_before_sharded_parameters_is_told(tmp_path: pathlib.Path, way: str) -> None:
    (tmp_path / "train.py").write_text(SHARDED)
    options = ("--fail-on", "never", "--output-format", "json", "--output-file", "report.json")
    for cuts in ("cut", "whole"):
        ran = trace(tmp_path, *options, "train.py", way, cuts)
        assert ran.code == 0, ran.err
        (tmp_path / "meet").unlink(missing_ok=True)
        report = json.loads((tmp_path / "report.json").read_text())
        assert [(each["code"], each["location"]["row"]) for each in report["findings"]] == (
            [("GL106", SHARDED[: SHARDED.index("# cut")].count("\n") + 1)] if cuts == "cut" else []
        )


RENAMED = {
    "fully_shard": "from torch.distributed.fsdp._fully_shard import _fsdp_param as part; del "
    "part.FSDPParam",
    "FullyShardedDataParallel": "from torch.distributed.fsdp import _flat_param as part; del "
    "part.FlatParamHandle",
    "fully_shard ": """
import inspect, re
from torch.distributed.fsdp._fully_shard import _fsdp_param as part, _fsdp_param_group as group
exec(re.sub(r"\\b_unsharded_param\\b", "_whole", inspect.getsource(part.FSDPParam)), vars(part))
group.FSDPParam = part.FSDPParam
""",
}


@pytest.mark.parametrize("way", RENAMED)
def test_a_torch_whose_sharding_has_other_names_gives_no_cut_and_says_so(
    tmp_path: pathlib.Path, way: str
) -> None:
    (tmp_path / "train.py").write_text(
        SHARDED.replace("model = Net()", f"{RENAMED[way]}\nmodel = Net()")
    )
    options = ("--fail-on", "never", "--output-format", "json", "--output-file", "report.json")
    for cuts in ("cut", "whole"):
        ran = trace(tmp_path, *options, "train.py", way.strip(), cuts)
        assert ran.code == 0, ran.err
        (tmp_path / "meet").unlink(missing_ok=True)
        report = json.loads((tmp_path / "report.json").read_text())
        told = (
            f"this torch does not show what {way.strip()} gathers: which of its parameters a cut "
            "starves is not told"
        )
        assert (report["findings"], [line for line in report["unseen"] if "torch" in line]) == (
            [],
            [told],
        )
        assert not [line for line in report["unseen"] if "fault" in line]
