"""The example of a package with rules: installed as a user would, it is found by its entry
point.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from truth import observe

EXAMPLE = pathlib.Path(__file__).parents[1] / "docs" / "examples" / "gradlint-team-rules"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = (EXAMPLE / "gradlint_team" / "TM001_unclipped_step.py").read_text(encoding="utf-8")
BAD, GOOD = BLOCK.findall(PAGE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder where pip has put the package, built from a copy and without asking any index."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "--isolated",
        "install",
        "--quiet",
    ]
    alone = [
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(folder / "installed"),
    ]
    ran = subprocess.run(
        [*pip, *alone, str(folder / "source")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return folder / "installed"


def gradlint(installed: pathlib.Path, folder: pathlib.Path, *words: str) -> str:
    """What a gradlint says that has the package."""
    script = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); from gradlint.cli import main; main()"
    )
    command = [sys.executable, "-c", script, *words]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return ran.stdout


def test_its_rule_is_one_of_the_rules(installed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert "\nTM001  warning  unclipped-step\n" in gradlint(installed, tmp_path, "rule")
    assert gradlint(installed, tmp_path, "rule", "TM001") == PAGE.split('"""')[1]


def test_its_finding_is_reported_and_can_be_suppressed(
    installed: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    ignored = BAD.replace("# expect: TM001", "# gradlint: ignore[TM001] a demonstration")
    for name, program in (("bad", BAD), ("good", GOOD), ("ignored", ignored)):
        (tmp_path / f"{name}.py").write_text(program)
    told = "bad.py:8:5: warning[TM001] `optimizer` steps with gradients that nothing has clipped\n"
    concise = gradlint(installed, tmp_path, "check", "--output-format", "concise")
    assert concise.startswith(told)
    assert concise.count("TM001") == 1
    assert "TM001" not in gradlint(installed, tmp_path, "check", "--ignore", "TM")
    (tmp_path / "pyproject.toml").write_text('[tool.gradlint]\nselect = ["TM"]\n')
    assert gradlint(installed, tmp_path, "check", "--output-format", "concise").startswith(told)


def test_a_run_is_judged_by_its_rule_as_well(
    installed: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for name, program, told in (("bad", BAD, ["TM001"]), ("good", GOOD, [])):
        (tmp_path / f"{name}.py").write_text(program)
        gradlint(
            installed,
            tmp_path,
            "trace",
            "--output-format",
            "json",
            "--output-file",
            "report.json",
            f"{name}.py",
        )
        report = json.loads((tmp_path / "report.json").read_text())
        assert [finding["code"] for finding in report["findings"]] == told


@pytest.mark.parametrize("program", [BAD, GOOD], ids=["bad", "good"])
def test_its_examples_run(program: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(program)
    assert observe(tmp_path).exception == ""


def test_a_package_that_cannot_be_loaded_is_named(
    installed: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(installed, broken)
    shutil.rmtree(broken / "gradlint_team")
    script = (
        f"import sys; sys.path.insert(0, {str(broken)!r}); from gradlint.cli import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, "rule"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith(
        "gradlint: the rules of gradlint-team-rules cannot be loaded: No module named"
    )
