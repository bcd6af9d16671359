"""`gradlint trace`: scripts in, reports out."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import textwrap

import pytest
from traced import Traced, plain, trace

HEAD = """
import sys
import torch
import torch.nn.functional as F
torch.manual_seed(0)
"""
TRAIN = """
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print(*sys.argv, __name__, __file__)
"""


def write(folder: pathlib.Path, body: str, name: str = "train.py") -> list[str]:
    """Put a script into `folder`; gives its lines, to look markers up in."""
    text = HEAD + textwrap.dedent(body)
    (folder / name).write_text(text)
    return text.splitlines()


def marked(lines: list[str], mark: str) -> int:
    """The number of the line that ends in `# mark`."""
    return next(number for number, line in enumerate(lines, start=1) if line.endswith(f"# {mark}"))


def json_of(folder: pathlib.Path, *words: str) -> Traced:
    """A traced run with its report on standard output."""
    return trace(folder, "--output-format", "json", *words, "train.py")


@pytest.mark.parametrize("level", ["auto", "watch", "record"])
def test_the_numbers_the_output_and_the_exit_code_are_those_of_the_plain_run(
    tmp_path: pathlib.Path, level: str
) -> None:
    write(tmp_path, TRAIN)
    alone, watched = (
        plain(tmp_path, "train.py", "--x"),
        trace(tmp_path, "--level", level, "train.py", "--x"),
    )
    assert watched.out.replace(str(tmp_path) + "/", "") == alone.out.replace(
        str(tmp_path) + "/", ""
    )
    assert (watched.code, "No finding" in watched.err) == (0, True), watched.err


@pytest.mark.parametrize(
    ("ending", "code"),
    [("sys.exit(3)", 3), ("sys.exit('bye')", 1), ("1 / 0", 1), ("sys.exit()", 0)],
)
def test_the_exit_code_of_the_script_wins(tmp_path: pathlib.Path, ending: str, code: int) -> None:
    write(tmp_path, TRAIN + ending)
    assert trace(tmp_path, "train.py").code == code


def test_an_exception_is_shown_without_our_frames_and_then_explained(
    tmp_path: pathlib.Path,
) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(torch.randn(8, 4)).mean()
        loss = loss.detach() * 2  # cut
        loss.backward()
        """,
    )
    ran = trace(tmp_path, "train.py")
    assert ran.code == 1
    assert "gradlint/trace" not in ran.err
    assert ran.err.index(
        "RuntimeError: element 0 of tensors does not require grad"
    ) < ran.err.index("error[GL102]")
    assert f"train.py:{marked(lines, 'cut')}:" in ran.err
    assert "loss.backward()" in ran.err


def test_findings_make_the_exit_code_one_unless_told_otherwise(tmp_path: pathlib.Path) -> None:
    lines = write(
        tmp_path,
        """
        encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        for _ in range(3):
            loss = head(encoder(torch.randn(8, 4)).detach()).mean()  # cut
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    ran = json_of(tmp_path)
    assert (ran.code, ran.codes) == (1, [("GL106", marked(lines, "cut"))])
    finding = ran.report["findings"][0]
    assert finding["step"] == 0
    assert finding["unreached"] == ["encoder.weight", "encoder.bias"]
    assert [value["op"] for value in ran.report["routes"][0]["values"]][-1] == "torch.Tensor.detach"
    assert json_of(tmp_path, "--fail-on", "never").code == 0


def test_a_cut_that_begins_late_is_located_although_the_run_is_only_watched_by_then(
    tmp_path: pathlib.Path,
) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(20):
            loss = model(torch.randn(8, 4)).mean()
            if step == 12:
                loss = torch.tensor(loss.item())  # cut
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    ran = json_of(tmp_path)
    assert ran.codes == [("GL102", marked(lines, "cut"))]
    assert ran.report["findings"][0]["step"] == 12


def test_a_saved_tensor_that_is_overwritten_names_both_lines(tmp_path: pathlib.Path) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 4)
        y = model(torch.randn(8, 4)).exp()  # saved
        y += 1  # written
        y.sum().backward()
        """,
    )
    ran = json_of(tmp_path)
    assert ran.codes == [("GL201", marked(lines, "written"))]
    assert marked(lines, "saved") in [
        each["location"]["row"] for each in ran.report["findings"][0]["related"]
    ]


def test_a_step_between_forward_and_backward_is_the_finding(tmp_path: pathlib.Path) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        one, two = model(torch.randn(8, 4)).mean(), model(torch.randn(8, 4)).mean()
        one.backward()
        optimizer.step()  # step
        two.backward()
        """,
    )
    assert ("GL203", marked(lines, "step")) in json_of(tmp_path).codes


def test_a_write_through_data_before_the_backward_is_found_although_nothing_raises(
    tmp_path: pathlib.Path,
) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        y = model(torch.randn(8, 4)).exp()
        y.data.add_(1)  # written
        y.sum().backward()
        optimizer.step()
        """,
    )
    assert ("GL204", marked(lines, "written")) in json_of(tmp_path).codes


def test_a_decorator_that_switches_grad_mode_off_is_named(tmp_path: pathlib.Path) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        @torch.no_grad()  # off
        def loss_of(x):
            return model(x).mean()
        loss_of(torch.randn(8, 4)).backward()
        """,
    )
    assert json_of(tmp_path).codes == [("GL103", marked(lines, "off"))]


def test_steps_stop_the_run_after_so_many_optimizer_steps(tmp_path: pathlib.Path) -> None:
    write(tmp_path, TRAIN)
    ran = json_of(tmp_path, "--steps", "2")
    assert (ran.code, ran.report["steps"]) == (0, 2)


def test_json_in_a_file_leaves_standard_output_to_the_script(tmp_path: pathlib.Path) -> None:
    write(tmp_path, TRAIN)
    ran = trace(tmp_path, "--output-format", "json", "--output-file", "report.json", "train.py")
    assert ran.out.count("0x") == 6
    assert '"findings": []' in (tmp_path / "report.json").read_text()


def test_json_on_a_file_moves_the_output_of_the_script_to_a_pipe(tmp_path: pathlib.Path) -> None:
    write(tmp_path, TRAIN)
    command = [sys.executable, "-m", "gradlint", "trace", "--output-format", "json", "train.py"]
    with (tmp_path / "report.json").open(
        "w"
    ) as report:  # a file can seek, and the pipe that takes its place cannot
        ran = subprocess.run(
            command, cwd=tmp_path, stdout=report, stderr=subprocess.PIPE, text=True, timeout=300
        )
    assert (ran.returncode, ran.stderr.count("0x")) == (0, 6), ran.stderr
    assert json.loads((tmp_path / "report.json").read_text())["steps"] == 6


def test_a_module_runs_as_python_m_runs_it(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "proj"
    package.mkdir()
    (package / "__init__.py").write_text("")
    write(package, TRAIN + "print(__package__)\n", "__main__.py")
    ran = trace(tmp_path, "-m", "proj", "--epochs", "1")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "proj"
    assert ran.out.splitlines()[-2].split()[1:4] == ["--epochs", "1", "__main__"]


def test_ctrl_c_ends_the_run_by_the_signal_and_still_reports(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        TRAIN
        + "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor _ in range(10**9): pass\n",
    )
    ran = trace(tmp_path, "train.py")
    assert ran.code == -2
    assert ran.err.index("KeyboardInterrupt") < ran.err.index(
        "6 optimizer steps, ended by KeyboardInterrupt"
    )


def test_dataloader_workers_checkpoints_functions_and_functorch_run_as_they_do_alone(
    tmp_path: pathlib.Path,
) -> None:
    write(
        tmp_path,
        """
        from torch.utils.checkpoint import checkpoint
        from torch.utils.data import DataLoader, TensorDataset

        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, gradient):
                return gradient * 2

        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters())
        data = DataLoader(TensorDataset(torch.randn(24, 4)), batch_size=8, num_workers=2)
        for (x,) in data:
            hidden = checkpoint(model[0], x, use_reentrant=False)
            loss = Double.apply(model[2](model[1](hidden))).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
        print(torch.func.grad(lambda x: (x ** 2).sum())(torch.ones(3)).tolist())
        print(torch.func.vmap(torch.sin)(torch.ones(3)).tolist())
        """,
    )
    alone, watched = plain(tmp_path, "train.py"), trace(tmp_path, "train.py")
    assert watched.out == alone.out
    assert (watched.code, "No finding" in watched.err, "failed" in watched.err) == (
        0,
        True,
        False,
    ), watched.err


def test_the_graph_the_dot_file_and_the_page_show_the_route(tmp_path: pathlib.Path) -> None:
    write(tmp_path, TRAIN)
    ran = trace(tmp_path, "--show-graph", "--dot", "graph.dot", "--html", "page.html", "train.py")
    assert "[model.0.bias, model.0.weight, model.2.bias, model.2.weight]" in ran.err
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    page = (tmp_path / "page.html").read_text()
    assert "model.0.weight, step 3: 0." in page
    assert "http" not in page.replace("http-equiv", "")


def test_a_static_finding_is_confirmed_by_the_run_that_shows_it(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(torch.randn(8, 4)).mean().detach()
        loss.backward()
        optimizer.step()
        """,
    )
    confirmations = json_of(tmp_path, "--confirm").report["confirmations"]
    assert [(each["code"], each["verdict"]) for each in confirmations] in (
        [("GL102", "confirmed")],
        [],
    )


def test_a_torch_without_a_private_part_gives_the_symptom_without_the_line(
    tmp_path: pathlib.Path,
) -> None:
    write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        out = model(torch.randn(8, 4)).exp()
        out += 1
        out.sum().backward()
        """,
    )
    program = (
        "import torch; del torch.autograd._get_sequence_nr; from gradlint.cli import main; "
        "main(['trace', 'train.py'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 1
    assert "modified by an inplace operation" in ran.stderr
    assert "this torch does not number the operations" in ran.stderr
    assert "this backward failed on a tensor that was overwritten" in ran.stderr
    assert "while watching" not in ran.stderr


def test_a_plain_tensor_that_an_optimizer_holds_is_a_parameter_with_its_name(
    tmp_path: pathlib.Path,
) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 1)
        temperature = torch.log(torch.ones(1)).requires_grad_(True)
        weights = torch.zeros(8, requires_grad=True)
        own = torch.optim.Adam([temperature], lr=0.1)
        optimizer = torch.optim.SGD([weights, *model.parameters()], lr=0.1)
        for _ in range(4):
            score = model(torch.randn(8, 4)).squeeze(1)
            tuned = -(temperature * (score.mean() - 1).detach()).mean()
            own.zero_grad()
            tuned.backward()
            own.step()
            loss = (score * weights.detach()).mean()  # cut
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """,
    )
    ran = json_of(tmp_path)
    assert ran.codes == [("GL106", marked(lines, "cut"))]
    assert ran.report["findings"][0]["unreached"] == ["temperature", "weights"]


def test_a_number_that_is_only_printed_is_not_taken_for_one_that_comes_back(
    tmp_path: pathlib.Path,
) -> None:
    write(
        tmp_path,
        """
        import random
        random.seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            scale = random.random()
            loss = (model(torch.randn(8, 4)) * torch.tensor([scale, 2 * scale])).pow(2).mean() * scale
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item())
            history = [loss.item() / 2]
        """,
    )
    assert (
        trace(tmp_path, "--output-format", "json", "--output-file", "report.json", "train.py").code
        == 0
    )
    assert '"findings": []' in (tmp_path / "report.json").read_text()


def test_a_number_that_the_source_computes_from_one_that_left_torch_is_a_cut(
    tmp_path: pathlib.Path,
) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        halves = []
        for out in model(torch.randn(2, 4)).pow(2):
            half = out.item() / 2 + 0.25  # cut
            halves.append(half)
        loss = torch.tensor(halves).mean()
        loss.backward()
        """,
    )
    assert [line for _, line in json_of(tmp_path).codes] == [marked(lines, "cut")]


def test_a_script_that_lies_among_installed_packages_is_the_program_nevertheless(
    tmp_path: pathlib.Path,
) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    lines = write(
        folder,
        """
        model = torch.nn.Linear(4, 1)
        model(torch.randn(8, 4)).mean().detach().backward()  # cut
        """,
    )
    assert json_of(folder).codes == [("GL102", marked(lines, "cut"))]


def test_columns_count_characters_in_statements_and_decorators(tmp_path: pathlib.Path) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        kept = []

        @torch.set_grad_enabled("größe" == "")
        def wrapped(x):
            return model(x)

        for _ in range(10):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 2)).pow(2).mean()
            loss.backward()
            optimizer.step()
            größe = "größe"; kept.append(loss)

        wrapped(torch.randn(4, 2)).mean().backward()
        """,
    )
    found = {finding["code"]: finding for finding in json_of(tmp_path).report["findings"]}
    for code, text in (
        ("GL508", "kept.append(loss)"),
        ("GL103", 'torch.set_grad_enabled("größe" == "")'),
    ):
        begin, end = found[code]["location"], found[code]["end_location"]
        assert lines[begin["row"] - 1][begin["column"] - 1 : end["column"] - 1] == text


EVALUATED = """
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

@torch.no_grad()
def evaluate():
    losses = []
    for _ in range(2):
        losses.append(model(torch.randn(4, 2)).pow(2).mean().item())
    return losses

def train():
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 2)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss)  # kept
    return losses

evaluate(), train()
"""


def test_what_keeps_losses_is_the_statement_of_the_function_that_trains(
    tmp_path: pathlib.Path,
) -> None:
    lines = write(tmp_path, EVALUATED)
    ran = json_of(tmp_path, "--confirm")
    assert ran.codes == [("GL508", marked(lines, "kept"))]
    assert [each["verdict"] for each in ran.report["confirmations"]] == ["confirmed"]


def test_a_list_of_the_module_is_not_taken_for_a_variable_of_that_name(
    tmp_path: pathlib.Path,
) -> None:
    lines = write(
        tmp_path, EVALUATED.replace("def train():\n    losses = []", "losses = []\ndef train():")
    )
    assert json_of(tmp_path).codes == [("GL508", marked(lines, "kept"))]


def test_of_several_statements_that_may_keep_losses_none_is_blamed(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        """
        class Log:
            def __init__(self):
                self.losses = []

        class Other(Log):
            def add(self, loss):
                self.losses.append(loss)

        log = Log()
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(10):
            optimizer.zero_grad()
            loss = model(torch.randn(4, 2)).pow(2).mean()
            loss.backward()
            optimizer.step()
            log.losses.append(loss)
        """,
    )
    assert json_of(tmp_path).codes == []


def test_a_loaded_model_in_the_place_of_the_one_that_the_optimizer_holds_is_told(
    tmp_path: pathlib.Path,
) -> None:
    body = """
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        torch.save(model, "model.pt")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model = torch.load("model.pt", weights_only=False)
        for x in torch.randn(4, 8, 4):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        """
    (tmp_path / "train.py").write_text(textwrap.dedent(body))
    assert trace(tmp_path, "--output-format", "json", "train.py").codes == [("GL513", 6)]


def test_a_write_that_breaks_a_late_step_is_found_although_the_run_is_only_watched(
    tmp_path: pathlib.Path,
) -> None:
    lines = write(
        tmp_path,
        """
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        row = torch.empty(4)
        def rows(numbers):
            for _ in range(numbers):
                row.copy_(torch.randn(4))  # write
                yield row
        for number in range(12):
            outs = [model(each) for each in rows(1 if number < 9 else 2)]
            optimizer.zero_grad()
            sum(outs).sum().backward()
            optimizer.step()
        """,
    )
    ran = json_of(tmp_path)
    assert ran.codes == [("GL201", marked(lines, "write"))], ran.err
    assert "an operation behind" in ran.report["findings"][0]["message"]
