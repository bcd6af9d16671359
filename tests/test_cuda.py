"""What only a CUDA device shows: `GRADLINT_TEST_CUDA=1 pytest tests/test_cuda.py`; skipped without
one.
"""

from __future__ import annotations

import copy
import json
import pathlib
import textwrap
import typing

import pytest
import torch
from small_training import Pair, large_batches, largest_difference, model_of, samples, sgd, squared
from torch import nn
from traced import plain, trace

from gradlint.training import Trainer, choose_precision
from gradlint.training.precision import Wish

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a CUDA device, and GRADLINT_TEST_CUDA=1"
)

DEVICE = torch.device("cuda")
GRAPH = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x = torch.randn(4, 8, device="cuda")
def step():
    loss = (model(x).square() + 1e-3).sqrt().div(2).mean()
    loss.backward()
    optimizer.step()
    return loss
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(2):
        optimizer.zero_grad()
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad()
with torch.cuda.graph(graph):
    loss = step()
for turn in range(6):
    x.copy_(torch.randn(4, 8, device="cuda"))
    graph.replay()
    print(turn, loss.item().hex())
"""
WATCHED = """
import warnings
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
x, y = torch.randn(4, 8, device="cuda"), torch.randint(0, 3, (4,), device="cuda")
counts = []
torch.cuda.set_sync_debug_mode("warn")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for step in range(12):
        optimizer.zero_grad()
        loss = -(model(x).softmax(-1).gather(1, y[:, None]) + 1e-6).log().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        counts.append(len(caught))
torch.cuda.set_sync_debug_mode("default")
print(counts[-1] - counts[-6])
"""


def pairs(sizes: list[int]) -> list[Pair]:
    torch.manual_seed(1)
    made = [
        (torch.randn(size, 3, dtype=torch.float64), torch.randn(size, 1, dtype=torch.float64))
        for size in sizes
    ]
    return [(x.to(DEVICE), y.to(DEVICE)) for x, y in made]


@pytest.mark.parametrize("clip_norm", [float("inf"), 0.05])
def test_accumulated_updates_are_those_of_one_large_batch(clip_norm: float) -> None:
    model = model_of().to(DEVICE)
    reference = copy.deepcopy(model)
    batches = pairs([4, 2, 5, 1, 3, 6, 2])
    Trainer(
        model,
        sgd(model),
        batches,
        squared,
        accumulate=3,
        weight=samples,
        clip_norm=clip_norm,
        show_progress=False,
    ).epoch()
    large_batches(reference, [batches[:3], batches[3:6], batches[6:]], clip_norm)
    assert largest_difference(model.parameters(), reference.parameters()) < 1e-12


def test_the_device_gets_the_format_that_is_wished_and_the_fastest_that_it_has() -> None:
    fast = torch.bfloat16 if torch.cuda.get_device_capability() >= (8, 0) else torch.float16
    assert choose_precision("auto", DEVICE).dtype == fast
    half = choose_precision("float16", DEVICE)
    assert (str(half), half.scaler().is_enabled()) == ("float16 autocast on cuda", True)


@pytest.mark.parametrize("precision", typing.get_args(Wish))
def test_training_resumes_to_the_bit_with_dropout_on_the_device(precision: Wish) -> None:
    batches = [(x.float(), y.float()) for x, y in pairs([4] * 8)]

    def trainer() -> Trainer[Pair]:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(3, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, 1)).to(
            DEVICE
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
        return Trainer(
            model,
            optimizer,
            batches,
            squared,
            accumulate=2,
            clip_norm=1.0,
            precision=precision,
            show_progress=False,
        )

    whole = trainer()
    whole.epoch()
    state = copy.deepcopy(whole.state_dict())
    whole.epoch()
    resumed = trainer()
    resumed.load_state_dict(state)
    resumed.epoch()
    assert largest_difference(whole.model.parameters(), resumed.model.parameters()) == 0


def test_a_scaler_that_looks_for_its_scale_skips_its_first_windows_and_then_trains() -> None:
    batches = [(x.float(), y.float()) for x, y in pairs([4] * 12)]
    model = model_of(torch.float32).to(DEVICE)
    trainer = Trainer(model, sgd(model), batches, squared, precision="float16", show_progress=False)
    trainer.scaler = torch.amp.GradScaler("cuda", init_scale=2.0**30)
    for _ in range(3):
        trainer.epoch()
    assert 0 < trainer.progress.skipped_steps < 36
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())


@pytest.mark.parametrize(
    "options", [(), ("--level", "record"), ("--html", "page.html")], ids=" ".join
)
def test_a_captured_step_is_captured_and_computes_the_same(
    tmp_path: pathlib.Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "train.py").write_text(GRAPH)
    alone, watched = plain(tmp_path, "train.py"), trace(tmp_path, *options, "train.py")
    assert (watched.code, watched.out) == (alone.code, alone.out) == (0, alone.out), watched.err
    assert "No finding" in watched.err
    assert "a CUDA graph" in watched.err
    assert "gradlint failed" not in watched.err


def test_steps_that_a_graph_replays_are_counted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(GRAPH)
    # 2 to warm up, 1 captured, 2 replays
    assert len(trace(tmp_path, "--steps", "5", "train.py").out.splitlines()) == 1


def test_a_watched_step_waits_for_the_device_no_more_than_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(WATCHED)
    alone, watched = plain(tmp_path, "train.py"), trace(tmp_path, "train.py")
    assert watched.out == alone.out != "", watched.err


def test_gradients_that_are_set_to_zeros_are_cleared(tmp_path: pathlib.Path) -> None:
    program = """
        import torch
        model = torch.nn.Linear(4, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(12):
            loss = model(torch.randn(2, 4, device="cuda")).square().mean()
            loss.backward()
            optimizer.step()
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    assert trace(tmp_path, "--output-format", "json", "train.py").codes == []


@pytest.mark.parametrize(
    ("statement", "code"), [("h = h.detach()", "GL106"), ("h.mul_(2)", "GL201")]
)
def test_the_line_that_cuts_or_overwrites_is_named(
    tmp_path: pathlib.Path, statement: str, code: str
) -> None:
    program = f"""
        import torch
        encoder, head = torch.nn.Linear(4, 8).cuda(), torch.nn.Linear(8, 1).cuda()
        optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], fused=True)
        for step in range(4):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                h = encoder(torch.randn(2, 4, device="cuda")).sigmoid()
                {statement}
                loss = head(h).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    assert (code, 8) in trace(tmp_path, "--output-format", "json", "train.py").codes


def test_a_backward_that_cudnn_refuses_in_eval_mode_is_explained(tmp_path: pathlib.Path) -> None:
    program = """
        import torch
        tagger = torch.nn.LSTM(4, 8).cuda()
        tagger.eval()
        tagger(torch.randn(2, 3, 4, device="cuda"))[0].sum().backward()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    ran = trace(tmp_path, "train.py")
    assert ran.code == 1
    assert "tagger is in it, since train.py:4 `tagger.eval()`" in ran.err


def test_a_model_that_is_taken_to_another_device_in_the_end_has_moved(
    tmp_path: pathlib.Path,
) -> None:
    """As Lightning's trainer leaves it."""
    program = """
        import torch
        model = torch.nn.Linear(4, 1).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            model(torch.randn(2, 4, device="cuda")).square().mean().backward()
            optimizer.step()
        model.cpu()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    ran = trace(tmp_path, "--output-format", "json", "train.py")
    assert json.loads(ran.out)["moved"] is True
    assert "while watching" not in ran.out


def test_attention_of_nothing_is_told_on_the_device(tmp_path: pathlib.Path) -> None:
    program = """
        import torch
        attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).cuda()
        optimizer = torch.optim.SGD(attention.parameters(), lr=0.1)
        padding = torch.tensor([[False] * 3, [True] * 3], device="cuda")
        for step in range(2):
            x = torch.randn(2, 3, 4, device="cuda")
            out, _ = attention(x, x, x, key_padding_mask=padding)
            loss = torch.where(out.isnan(), 0.0, out.square()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    assert trace(tmp_path, "--output-format", "json", "train.py").codes == [("GL705", 8)]
