"""The work of a check in parts: each is done once, and the reports together are that of one run."""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest
from commandline import Run

from gradlint import cache, parallel
from gradlint.parallel import Shard

LAYER = "torch.nn.Linear(2, 1)(torch.randn(3, 2))"
FILES = {
    "lib/__init__.py": "",
    # What a script finds here, another shard does not see: comments that are used, steps that are
    # reached, two findings of one text whose numbers differ, and a place that two scripts lead to.
    "lib/helper.py": (
        "import torch\n\n\ndef cut(y):\n    return y.detach().mean()\n\n\ndef hidden(y):\n"
        "    return y.detach().mean()  # gradlint: ignore[GL102] on purpose\n\n\ndef shared(y):\n"
        "    return y.detach().sum()\n\n\ndef again(y):\n    return y.detach().sum()\n\n\n"
        "def step(loss):\n"
        "    loss.backward()\n\n\ndef never(loss):\n    raise ValueError\n    loss.backward()\n"
    ),
    "lib/unused.py": "import torch\nx = torch.ones(3, requires_grad=True)  # gradlint: "
    "ignore[GL102, GL101]\n",
    "a/one.py": f"import torch\nfrom lib.helper import cut, again\n\ncut({LAYER}).backward()\n",
    "b/two.py": f"import torch\nfrom lib.helper import hidden\n\nhidden({LAYER}).backward()\n",
    "c/three.py": f"import torch\nfrom lib.helper import again\n\nagain({LAYER}).backward()\n",
    "d/four.py": f"import torch\nfrom lib.helper import shared\n\nshared({LAYER}).backward()\n",
    "e/five.py": "import torch\nfrom lib.helper import shared, step\n\nif step:\n"
    f"    shared({LAYER}).backward()\n",
    "f/six.py": f"import torch\nfrom lib.helper import step\n\nstep({LAYER}.mean())\n",
    "g/seven.py": "x = (\n",
    "h/eight.py": "import torch\n\n\ndef train(loss):\n    raise NotImplementedError\n"
    "    loss.backward()\n",
}


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parallel, "SIZE", 1)  # a batch for each folder
    return tmp_path


def in_shards(run: Run, number: int, output: str) -> list[str]:
    """The names of the reports of so many shards."""
    names = [f"{output}-{each}" for each in range(1, number + 1)]
    for each, name in enumerate(names, 1):
        arguments = ("--no-cache", "--jobs", "1", "--output-format", output, "--output-file", name)
        assert run("check", "--shard", f"{each}/{number}", *arguments).code in (0, 1)
    return names


@pytest.mark.parametrize(("output", "number"), [("json", 4), ("sarif", 4), ("json", 20)])
def test_the_reports_of_all_shards_are_that_of_one_run(
    folder: pathlib.Path, run: Run, output: str, number: int
) -> None:
    whole = run("check", "--no-cache", "--jobs", "1", "--output-format", output)
    joined = run("merge", *in_shards(run, number, output))
    assert joined.out == whole.out
    assert (joined.code, joined.err) == (1, "")
    told = json.loads(whole.out)
    codes = (
        [each["code"] for each in told]
        if output == "json"
        else [each["ruleId"] for each in told["runs"][0]["results"]]
    )
    assert {"GL001", "GL002", "GL102"} <= set(codes)
    assert codes.count("GL004") == (3 if output == "json" else 0)


def test_one_shard_alone_says_more_is_missing(folder: pathlib.Path, run: Run) -> None:
    first, *_ = in_shards(run, 4, "json")
    codes = [each["code"] for each in json.loads((folder / first).read_text())]
    assert codes.count("GL004") > 3


def test_a_merge_fails_as_a_check_does(folder: pathlib.Path, run: Run) -> None:
    names = in_shards(run, 2, "json")
    assert run("merge", *names, "--fail-on", "never").code == 0
    assert run("merge", *names, "--output-file", "all.json").out == ""
    assert json.loads((folder / "all.json").read_text())
    (folder / "pyproject.toml").write_text("[tool.gradlint]\nfail-on = 'never'\n")
    assert run("merge", *names).code == 0


@pytest.mark.parametrize("word", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/4/5"])
def test_a_shard_is_one_of_those_there_are(folder: pathlib.Path, run: Run, word: str) -> None:
    ran = run("check", f"--shard={word}")
    assert (ran.code, ran.err) == (
        2,
        f"gradlint: --shard: must be K/N, the K-th of N parts, not {word!r}\n",
    )


def test_what_is_no_report_is_told(folder: pathlib.Path, run: Run) -> None:
    (folder / "x.json").write_text("{}")
    assert run("merge", "x.json").err.endswith("all must be JSON, or all SARIF\n")
    (folder / "x.json").write_text("{")
    assert run("merge", "x.json").err == "gradlint: x.json is no report in JSON or SARIF\n"
    assert run("merge", "nowhere.json").code == 2
    assert run("check", "--shard", "1/2", "--fix").code == 2


def test_each_batch_is_in_one_shard_and_shards_are_alike() -> None:
    paths = [pathlib.Path(f"{number:04}.py") for number in range(1000)]
    costs = {path: 1000 + (number * 7919) % 1000 for number, path in enumerate(paths)}
    parts = [tuple(paths[first : first + 10]) for first in range(0, 1000, 10)]
    shards = [Shard(number, 4).share(parts, costs) for number in (1, 2, 3, 4)]
    assert sorted(part for shard in shards for part in shard) == parts
    assert all({*parts[:10]} & {*shard} for shard in shards)  # what lies side by side is spread
    sums = [sum(costs[path] for part in shard for path in part) for shard in shards]
    assert max(sums) < 1.05 * min(sums)
    assert Shard(2, 2).share([], {}) == []


def test_a_cache_goes_with_the_files_to_another_machine(
    folder: pathlib.Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As CI does: the same folder, a gradlint that was installed at another time."""
    before = run("check").out
    kept = {file.name: file.read_bytes() for file in (folder / ".gradlint_cache").iterdir()}
    shutil.rmtree(folder / ".gradlint_cache")
    (folder / ".gradlint_cache").mkdir()
    for name, content in kept.items():
        if name != "stamp":
            (folder / ".gradlint_cache" / name).write_bytes(content)
    monkeypatch.setattr(parallel, "spread", None)  # by which all is analysed that is not kept
    assert run("check").out == before


def test_a_stamp_is_that_of_the_texts(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = cache._stamp(tmp_path / "nowhere")
    assert cache._stamp(tmp_path) == cache._stamp(tmp_path) == fresh
    for content in ("", "[]", '{"state": 1}', "[" * 100_000):
        (tmp_path / "stamp").write_text(content)
        assert cache._stamp(tmp_path) == fresh
    assert json.loads((tmp_path / "stamp").read_text())["texts"] == fresh
