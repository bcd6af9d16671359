"""`gradlint trace`: what becomes of the gradients of a step, and at which step a finding
happened.
"""

from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys
import textwrap

import pytest
from traced import trace

HALVES = """
import torch

torch.manual_seed(0)
body, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
parameters = [*body.parameters(), *head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)
seen = []
{before}
for x in torch.randn({rounds}, 8, 4):
    hidden = body(x).tanh()
    {hook}
    first, second = head(hidden).square().mean(0)
    first.backward(retain_graph=True)
    {use}
    optimizer.zero_grad()
    second.backward()
    optimizer.step()
"""


def report(folder: pathlib.Path, text: str) -> tuple[list[tuple[str, int]], dict[str, int | None]]:
    """The findings above notes by code and line, and the step of each code, of a traced run of a
    program.
    """
    (folder / "train.py").write_text(text)
    findings = trace(folder, "--output-format", "json", "train.py").report["findings"]
    shown = [each for each in findings if each["severity"] != "note"]
    return [(each["code"], each["location"]["row"]) for each in shown], {
        each["code"]: each["step"] for each in shown
    }


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if part in line)


@pytest.mark.parametrize("rounds", [3, 20])
def test_what_is_cleared_between_two_losses_of_a_step_is_told(
    tmp_path: pathlib.Path, rounds: int
) -> None:
    text = HALVES.format(before="", rounds=rounds, hook="", use="")
    assert report(tmp_path, text)[0] == [("GL502", line_of(text, "zero_grad"))]


@pytest.mark.parametrize(
    ("before", "hook", "use"),
    [
        ("", "", "seen.append(body.weight.grad.clone())"),
        ("", "", "torch.nn.utils.clip_grad_norm_(parameters, 1.0)"),
        ("", "hidden.register_hook(seen.append)", ""),
        ("", "hidden.retain_grad()", ""),
        ("body.weight.register_hook(seen.append)", "", ""),
        ("head.register_full_backward_hook(lambda module, given, came: seen.append(came))", "", ""),
        ("body.weight.grad = held = torch.zeros(8, 4)", "", "seen.append(held.clone())"),
        ("", "hidden = hidden + x.requires_grad_()[:, :1]", ""),
    ],
    ids=[
        "read",
        "clipped",
        "hook",
        "retained",
        "hook of a parameter",
        "hook of a module",
        "shared",
        "of an input",
    ],
)
def test_gradients_that_are_put_to_use_before_they_are_cleared_are_no_mistake(
    tmp_path: pathlib.Path, before: str, hook: str, use: str
) -> None:
    assert report(tmp_path, HALVES.format(before=before, rounds=20, hook=hook, use=use))[0] == []


@pytest.mark.parametrize(("when", "step"), [("== 2", 2), (">= 1", 1), (">= 7", 7)])
def test_an_unseen_write_is_told_with_the_step_at_which_it_happened(
    tmp_path: pathlib.Path, when: str, step: int
) -> None:
    text = textwrap.dedent(
        f"""
        import torch
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step, x in enumerate(torch.randn(12, 8, 4)):
            out = model(x).sigmoid()
            loss = out.square().mean()
            if step {when}:
                out.data.mul_(2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    assert report(tmp_path, text) == ([("GL204", line_of(text, "mul_"))], {"GL204": step})


@pytest.mark.parametrize(
    ("start", "used"),
    [
        (1.0, "self.layer(x) * self.scale.item()"),
        (1.0, "self.layer(x) * (2 - float(self.scale))"),
        (0.7, "torch.nn.functional.leaky_relu(self.layer(x), negative_slope=self.scale.item())"),
        (0.7, "self.layer(x) * np.mean([self.scale.item()])"),
    ],
    ids=["one", "computed", "by name", "by NumPy"],
)
def test_a_parameter_that_is_used_as_a_number_is_told(
    tmp_path: pathlib.Path, start: float, used: str
) -> None:
    text = textwrap.dedent(
        f"""
        import numpy as np
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.nn.Parameter(torch.tensor({start}))
                self.layer = torch.nn.Linear(4, 3)

            def forward(self, x):
                return {used}

        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in torch.randn(12, 8, 4):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    assert report(tmp_path, text)[0] == [("GL106", line_of(text, "return"))]


EVALUATED = """
import torch

torch.manual_seed(0)
model, other = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
on = []

@torch.no_grad()
def evaluate(x):
    on.append(torch._C._len_torch_function_stack())
    {inside}
    return other(x).tanh()

for step, x in enumerate(torch.randn(12, 8, 4)):
    loss = model(x).square().mean()
    value = evaluate(x)
    {after}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    model.train()
print(*on)
"""


@pytest.mark.parametrize(
    ("inside", "after", "left_out"),
    [
        ("", "", True),
        ("x = x * 2; x += 1", "", True),
        ("", "loss = loss + (model(x) - value).square().mean()", False),
        ("other.weight.mul_(0.9)", "", False),
    ],
    ids=["evaluation", "writes to its own", "a target", "writes a parameter"],
)
def test_a_region_without_grad_is_left_alone_where_no_loss_comes_out_of_it(
    tmp_path: pathlib.Path, inside: str, after: str, left_out: bool
) -> None:
    (tmp_path / "train.py").write_text(EVALUATED.format(inside=inside, after=after))
    ran = trace(tmp_path, "train.py")
    assert "No finding" in ran.err, ran.err
    assert ran.out.split() == ["1"] * 3 + ["0" if left_out else "1"] * 9


def test_a_loss_that_comes_late_out_of_a_region_that_is_left_alone_is_told_with_the_region(
    tmp_path: pathlib.Path,
) -> None:
    text = EVALUATED.format(inside="", after="loss = value.mean() if step == 9 else loss")
    (tmp_path / "train.py").write_text(text)
    ran = trace(tmp_path, "train.py")
    assert ran.code == 1
    assert f"grad mode was off, unseen, at train.py:{line_of(text, '@torch.no_grad')}" in ran.err


def test_a_region_that_feeds_a_loss_is_looked_into_wherever_its_context_is_made(
    tmp_path: pathlib.Path,
) -> None:
    text = textwrap.dedent(
        """
        import torch

        torch.manual_seed(0)
        body, head = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)

        def quiet():
            return torch.no_grad()  # made here

        for step, x in enumerate(torch.randn(12, 8, 4)):
            with quiet():
                seen = body(x)
            loss = seen.square().mean() if step == 9 else head(body(x)).square().mean() + head(seen).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    assert report(tmp_path, text)[0] == [("GL103", line_of(text, "made here"))]


def test_a_mode_that_is_left_late_is_told(tmp_path: pathlib.Path) -> None:
    text = textwrap.dedent(
        """
        import torch

        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(24):
            loss = model(torch.randn(8, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 3 == 2:
                model.eval()
                with torch.no_grad():
                    model(torch.randn(8, 4))
                if step < 12:
                    model.train()
        """
    )
    assert report(tmp_path, text)[0] == [("GL304", line_of(text, "model.eval"))]


def test_a_recursion_over_one_sequence_keeps_no_graphs(tmp_path: pathlib.Path) -> None:
    text = textwrap.dedent(
        """
        import torch

        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train(states, rewards):
            values, back, targets = model(states).squeeze(1), 0.0, []
            for value, reward in zip(values, rewards):
                back = reward + value + 0.9 * back
                targets.append(float(back))
            loss = (values - torch.tensor(targets)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        for _ in range(6):
            train(torch.randn(8, 4), torch.randn(8))
        """
    )
    assert "GL508" not in dict(report(tmp_path, text)[0])


def test_a_list_that_takes_the_place_of_another_in_memory_has_not_grown(
    tmp_path: pathlib.Path,
) -> None:
    text = textwrap.dedent(
        """
        import torch

        encoder = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh())
        head = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.01)
        window, recent = (), None
        for step in range(8):
            hidden = [encoder(torch.randn(5, 4)) for _ in range(step + 1)]
            loss = head(torch.cat(hidden)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            window = (*window, hidden[0])[-3:]
            parts = (*window, *hidden)
            del recent
            recent = []
            for each in parts:
                recent.append(each)
            optimizer.step()
            del parts, hidden, loss
        """
    )
    assert report(tmp_path, text)[0] == []


def test_a_name_that_has_a_number_later_on_says_nothing_of_the_tensor_that_it_has_now(
    tmp_path: pathlib.Path,
) -> None:
    text = textwrap.dedent(
        """
        import torch

        scale = 0.7
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train(states, reward):
            seen = []
            out = model(states).square().mean()
            seen.append(out.item())
            loss = reward + scale * out
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            out = torch.tensor(seen)

        for _ in range(6):
            train(torch.randn(8, 4), 0.3)
        """
    )
    (tmp_path / "train.py").write_text(text)
    assert trace(tmp_path, "--output-format", "json", "train.py").report["findings"] == []


def test_a_tensor_that_only_says_a_shape_is_nothing_that_its_namesake_cuts(
    tmp_path: pathlib.Path,
) -> None:
    text = textwrap.dedent(
        """
        import torch

        model = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        spread, flat, count = torch.rand(2), torch.rand(16), torch.arange(16).view(8, 2)
        for x in torch.randn(6, 8, 4):
            mean = model(x)
            known = spread.expand_as(mean) + flat.view_as(mean) + flat.reshape_as(mean)
            known = known + count.type_as(mean) + count.to(other=mean)
            loss = (mean - known).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    (tmp_path / "train.py").write_text(text)
    assert trace(tmp_path, "--output-format", "json", "train.py").report["findings"] == []


def test_a_route_names_an_expression_once(tmp_path: pathlib.Path) -> None:
    text = textwrap.dedent(
        """
        import torch

        model, base = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD([*model.parameters(), *base.parameters()], lr=0.1)
        for x in torch.randn(6, 8, 4):
            spread = torch.distributions.Categorical(logits=base(x).detach()).entropy()  # cut
        {scaled}
            loss = model(x).square().mean() - spread.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    for count in (0, 20):
        scaled = "\n".join(f"    spread = {number}.5 * spread" for number in range(count))
        (tmp_path / "train.py").write_text(text.format(scaled=scaled))
        _, told = trace(tmp_path, "--verbose", "train.py").err.split("route from the loss:\n")[:2]
        route = list(itertools.takewhile(lambda line: line.startswith("  "), told.splitlines()))
        assert len(route) > 2
        assert len(route) == len(set(route)) > count


def test_a_selection_behind_a_condition_about_its_mask_is_not_told(tmp_path: pathlib.Path) -> None:
    text = """\
import torch

def term(prediction, visible):
    if visible.sum() == 0:
        return prediction.sum() * 0
    return prediction[visible].square().mean()

def unguarded(prediction, kept):
    return prediction[kept].square().mean()

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x = torch.randn(8, 4)
    prediction = model(x).squeeze(1)
    loss = term(prediction, x[:, 0] > (9 if step == 1 else 0)) + unguarded(prediction, x[:, 1] > -9)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    (tmp_path / "train.py").write_text(text)
    assert trace(tmp_path, "--output-format", "json", "train.py").codes == [
        ("GL602", line_of(text, "prediction[kept]"))
    ]


CLEARED = """
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number, x in enumerate(torch.randn({rounds}, 8, 4)):
    for parameter in model.parameters():
        if parameter.grad is not None{condition}:
            parameter.grad.zero_()
    model(x).square().mean().backward()
    norms = [parameter.grad.norm() for parameter in model.parameters()]
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("rounds", "condition", "told"),
    [(24, "", []), (24, " and number < 20", [("GL501", 11)]), (3, "", [])],
)
def test_gradients_that_are_cleared_in_place_are_known_for_as_long_as_it_goes_on(
    rounds: int, condition: str, told: list[tuple[str, int]], tmp_path: pathlib.Path
) -> None:
    assert report(tmp_path, CLEARED.format(rounds=rounds, condition=condition))[0] == told


LATE = """\
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(12):
    p = (model(torch.randn(8, 4)) * (1.0 if step < 8 else 400.0)).softmax(-1)
    loss = LOSS
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("-p.log().mean()", "train.py:10 `loss.backward()`: this loss is not finite after 8 "),
        ("p.sqrt().mean().nan_to_num()", "parameters are not finite after 12 "),
        ("(p + 1e-6).log().mean()", ""),
    ],
)
def test_a_nan_behind_the_recorded_steps_is_said(
    loss: str, said: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "train.py").write_text(LATE.replace("LOSS", loss))
    unseen = trace(tmp_path, "--output-format", "json", "train.py").report["unseen"]
    assert [each for each in unseen if said in each] == unseen
    assert len(unseen) == bool(said)


FUSED = """\
import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}


def update(parameter):
    optimizers[parameter].step()
    CLEAR


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(update)
for x in torch.randn(6, 8, 4):
    loss = model(x).square().mean()
    loss.backward()
    print(loss.item())
"""


@pytest.mark.parametrize(
    ("clear", "told"),
    [("optimizers[parameter].zero_grad()", []), ("pass", [("GL501", 17)])],
)
def test_optimizers_that_step_in_hooks_of_a_backward_are_seen(
    clear: str, told: list[tuple[str, int]], tmp_path: pathlib.Path
) -> None:
    program = FUSED.replace("CLEAR", clear)
    assert report(tmp_path, program)[0] == told
    alone = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    traced = trace(tmp_path, "train.py")
    assert traced.out == alone.stdout
    assert "6 optimizer steps" in traced.err
    few = trace(tmp_path, "--steps", "2", "train.py")
    assert few.out == alone.stdout.partition("\n")[0] + "\n"
    assert "2 optimizer steps" in few.err


@pytest.mark.parametrize(
    "masks",
    [
        "key_padding_mask=torch.tensor([[False] * 3, [True] * 3])",
        "attn_mask=torch.eye(3).log()[[0, 1, 1]].masked_fill(torch.eye(3, dtype=bool), -math.inf)",
        "key_padding_mask=torch.tensor([[True, False, False]] * 2), "
        "attn_mask=torch.ones(3, 3, dtype=torch.bool).triu(1)",  # padding on the left
    ],
)
def test_attention_of_nothing_is_told_where_it_is_computed(
    tmp_path: pathlib.Path, masks: str
) -> None:
    program = f"""
        import math
        import torch
        attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        optimizer = torch.optim.SGD(attention.parameters(), lr=0.1)
        for step in range(2):
            x = torch.randn(2, 3, 4)
            out, _ = attention(x, x, x, {masks})
            loss = torch.where(out.isnan(), 0.0, out.square()).mean()
            assert step or loss.isfinite()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert attention.in_proj_weight.isnan().any()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    assert trace(tmp_path, "--output-format", "json", "train.py").codes == [("GL705", 8)]


def test_attention_that_leaves_each_query_a_key_is_no_attention_of_nothing(
    tmp_path: pathlib.Path,
) -> None:
    program = """
        import torch
        attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        optimizer = torch.optim.SGD(attention.parameters(), lr=0.1)
        shut, none = torch.ones(3, 3, dtype=torch.bool).triu(1), torch.ones(1, 3, dtype=torch.bool)
        for step in range(2):
            x = torch.randn(2, 3, 4)
            padding = torch.tensor([[False, False, True]] * 2)
            out, _ = attention(x, x, x, key_padding_mask=padding, attn_mask=shut)
            # without weights a row of nothing gives zeros
            whole, _ = attention(x, x, x, key_padding_mask=none.repeat(2, 1), need_weights=False)
            loss = out.square().mean() + whole.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert attention.in_proj_weight.isfinite().all()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    ran = trace(tmp_path, "--output-format", "json", "train.py")
    assert (ran.code, ran.codes) == (0, []), ran.err


def test_parameters_that_nothing_seen_made_infinite_are_told_in_words(
    tmp_path: pathlib.Path,
) -> None:
    program = """
        import torch
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e38)
        for step in range(4):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).square().mul(1e4).mean().backward()
            optimizer.step()
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    assert "parameters are not finite" in trace(tmp_path, "train.py").err


@pytest.mark.parametrize(("module", "codes"), [("site-packages", []), ("own", [("GL407", 13)])])
def test_an_autocast_that_a_library_makes_around_a_step_is_not_the_steps_to_leave(
    tmp_path: pathlib.Path, module: str, codes: list[tuple[str, int]]
) -> None:
    """A step of Lightning's manual optimization runs in the autocast of its precision plugin."""
    (tmp_path / module).mkdir()
    library = """
        import torch

        def fit(step):
            for batch in range(3):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    step(torch.randn(2, 4))
    """
    (tmp_path / module / "fitting.py").write_text(textwrap.dedent(library))
    program = f"""
        import sys
        import torch
        sys.path.append({module!r})
        from fitting import fit
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            loss = model(x).square().mean()
            # the gradient
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        fit(step)
    """
    (tmp_path / "train.py").write_text(textwrap.dedent(program))
    assert trace(tmp_path, "--output-format", "json", "train.py").codes == codes
