"""The pytest plugin, as the tests of a project meet it."""

import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

import gradlint.trace.flow  # noqa: F401  # pytester forgets what a run has imported; torch cannot be imported twice

pytest_plugins = ["pytester"]

MODEL = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(FEATURES)

def test_the_model_is_trained(assert_gradients_flow):
    model = Model()
    assert_gradients_flow(LOSS, model)
"""
CONSTANT = """\
import torch

model = torch.nn.Linear(3, 1)
for features in torch.randn(9, 5, 3):
    loss = torch.zeros(()) if features.isnan().all() else model(features).square().mean()
    loss.backward()
"""


def model(
    features: str = "self.encoder(x).relu()", loss: str = "model(torch.randn(2, 3)).square().mean()"
) -> str:
    return MODEL.replace("FEATURES", features).replace("LOSS", loss)


@pytest.fixture
def told(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose pytest reads no settings of ours and colours nothing."""
    for name in ("PYTEST_ADDOPTS", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:xdist --strict-markers")
    return pytester


def failure(project: pytest.Pytester, program: str) -> str:
    """What pytest says of a test that fails."""
    project.makepyfile(test_model=program)
    ran = project.runpytest()
    ran.assert_outcomes(failed=1)
    return "\n".join(
        line.removeprefix("E").strip() for line in ran.outlines if line.startswith("E")
    )


def test_a_model_whose_parameters_all_get_a_gradient_passes(told: pytest.Pytester) -> None:
    told.makepyfile(
        model() + "    model(torch.randn(2, 3)).sum().backward()\n"
        "    assert model.head.bias.grad is not None"
    )
    told.runpytest().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("features", "why"),
    [
        ("self.encoder(x).detach()", "detached from the graph"),
        ("torch.tensor(self.encoder(x).tolist())", "copied out of torch, without its graph"),
        ("self.encoder(x).round()", "a derivative of zero"),
        ("(self.encoder(x) > 0).float()", "no derivative"),
    ],
)
def test_the_line_that_cuts_the_gradient_is_named(
    told: pytest.Pytester, features: str, why: str
) -> None:
    said = failure(told, model(features))
    assert said.startswith(
        "AssertionError: no gradient reaches 2 of 4 parameters: encoder.weight, encoder.bias\n"
    )
    assert "\ntest_model.py:9:" in said
    assert f": {why}\n" in said
    assert said.endswith(f"return self.head({features})")


def test_what_switches_grad_mode_off_is_named(told: pytest.Pytester) -> None:
    program = model().replace(
        "        return",
        "        with torch.no_grad():\n            x = self.encoder(x)\n        return",
    )
    said = failure(told, program.replace("self.encoder(x).relu()", "x"))
    assert said.splitlines()[1:] == [
        "test_model.py:9:14: grad mode is off",
        "with torch.no_grad():",
    ]


def test_a_loss_without_a_gradient_is_told_with_its_reason(told: pytest.Pytester) -> None:
    said = failure(told, model(loss="torch.zeros(()) + 0 * len(list(model.parameters()))"))
    assert said.splitlines()[0].endswith("no gradient reaches 4 of 4 parameters: " + ", ".join(
        ["encoder.weight", "encoder.bias", "head.weight", "head.bias"]
    ))  # fmt: skip
    assert said.splitlines()[1] == "test_model.py:13:27: a constant"


def test_a_parameter_that_nothing_uses_is_told_as_that(told: pytest.Pytester) -> None:
    said = failure(told, model("torch.cat([x, x[:, :1]], 1)"))
    assert (
        said.splitlines()[1]
        == "nothing that the loss is computed from uses encoder.bias, encoder.weight"
    )


def test_what_is_frozen_or_named_is_left_out(told: pytest.Pytester) -> None:
    program = model("self.encoder(x).detach()")
    named = program.replace(", model)", ", model, except_for=['encoder'])")
    frozen = program.replace(
        "model = Model()", "model = Model(); model.encoder.requires_grad_(False)"
    )
    told.makepyfile(
        test_named=named, test_one=named.replace("['encoder']", "'encoder'"), test_frozen=frozen
    )
    told.runpytest().assert_outcomes(passed=3)
    for path in told.path.glob("test_*.py"):
        path.unlink()
    everything = program.replace("model = Model()", "model = Model().requires_grad_(False)")
    assert (
        failure(told, everything)
        == "AssertionError: the model has no parameter that requires a gradient"
    )


def test_a_gradient_that_happens_to_be_zero_is_a_gradient(told: pytest.Pytester) -> None:
    told.makepyfile(
        model().replace(
            "model = Model()", "model = Model(); torch.nn.init.zeros_(model.head.weight)"
        )
    )
    told.runpytest().assert_outcomes(passed=1)


def test_a_loss_from_before_the_recording_says_that_it_was_not_seen(told: pytest.Pytester) -> None:
    fixture = "\nimport pytest\n\n@pytest.fixture\ndef loss():\n    return torch.zeros(())\n"
    said = failure(
        told,
        fixture
        + model(loss="loss").replace("(assert_gradients_flow)", "(loss, assert_gradients_flow)"),
    )
    assert (
        said.splitlines()[1]
        == "how the loss was computed was not seen: record from before it is computed"
    )


def test_the_page_shows_what_happens(told: pytest.Pytester) -> None:
    page = (pathlib.Path(__file__).parents[1] / "docs" / "pytest.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (shown,) = re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (told.path / "test_detector.py").write_text(program)
    ran = told.runpytest()
    ran.assert_outcomes(failed=1)
    said = textwrap.dedent("\n".join(line[1:] for line in ran.outlines if line.startswith("E ")))
    assert said == shown.rstrip("\n")


def test_files_are_checked_as_items_of_their_own(told: pytest.Pytester) -> None:
    told.makepyfile(train=CONSTANT, clean="import torch\n", test_it="def test_nothing(): pass")
    told.mkdir("build")
    (told.path / "build" / "generated.py").write_text(CONSTANT)
    (told.path / "pyproject.toml").write_text('[tool.gradlint]\nextend-exclude = ["build"]\n')
    ran = told.runpytest_subprocess("--gradlint", "-v")
    ran.assert_outcomes(passed=3, failed=1)
    ran.stdout.fnmatch_lines(
        ["train.py::gradlint FAILED*", "error[[]GL101]: `loss` is a constant*", "*train.py:5:12"]
    )
    told.runpytest_subprocess(
        "--gradlint", "-m", "gradlint", "clean.py", "test_it.py"
    ).assert_outcomes(passed=2, deselected=1)
    told.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_finding_fails_the_file_that_it_is_in(told: pytest.Pytester) -> None:
    told.makepyfile(
        losses="def squared(output):\n    return output.detach().square().mean()\n",
        train="import torch\nfrom losses import squared\n\nmodel = torch.nn.Linear(3, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "squared(model(torch.randn(2, 3))).backward()\n"
        "optimizer.step()\n",
    )
    ran = told.runpytest_subprocess("--gradlint", "-v")
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(["losses.py::gradlint FAILED*", "*losses.py:2:12"])


COUNTING = """
import collections, sys

counted = collections.Counter()

def count(event, arguments):
    if event == "open" and str(arguments[0]).endswith("pyproject.toml"):
        counted["reads"] += 1

def pytest_collection(session):
    from gradlint.checker import Checked
    sys.addaudithook(count)
    tell = Checked.outcome
    def outcome(*arguments, **options):
        counted["outcomes"] += 1
        return tell(*arguments, **options)
    Checked.outcome = outcome

def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"counted {counted['reads']} {counted['outcomes']}")
"""


def test_what_many_files_share_is_done_once(told: pytest.Pytester) -> None:
    told.makeconftest(COUNTING)
    told.makepyfile(**{f"part{number}": "import torch\n" for number in range(8)}, train=CONSTANT)
    (told.path / "pyproject.toml").write_text("[tool.gradlint]\n")
    strict = told.mkdir("strict")
    (strict / "pyproject.toml").write_text('[tool.gradlint]\nignore = ["GL101"]\n')
    (strict / "train.py").write_text(CONSTANT)
    ran = told.runpytest_subprocess("--gradlint")
    ran.assert_outcomes(passed=10, failed=1)  # with conftest.py
    ran.stdout.fnmatch_lines(["counted 2 2"])  # there are two settings


def test_settings_that_are_wrong_are_a_usage_error(told: pytest.Pytester) -> None:
    told.makepyfile(train=CONSTANT)
    (told.path / "pyproject.toml").write_text("[tool.gradlint]\nselected = []\n")
    ran = told.runpytest_subprocess("--gradlint")
    assert ran.ret != 0
    ran.stdout.fnmatch_lines(["*has no setting 'selected'; did you mean 'select'?*"])


def test_a_project_that_does_not_use_the_plugin_pays_for_one_small_file(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_nothing():\n"
        "    ours = {name for name in sys.modules if name.startswith('gradlint')}\n"
        "    assert ours == {'gradlint', 'gradlint.pytest_plugin'}\n"
        "    assert 'torch' not in sys.modules\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run([*command, "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
