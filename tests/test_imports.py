"""Imports point one way, and what is heavy is not imported before it is needed."""

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# Who may import whom: each layer the ones before it (and itself). A name ending in `/` is a folder,
# less those of its modules that are layers of their own.
LAYERS = (
    "dataclass", "errors", "garbage", "guess", "memo", "names", "operations", "owners", "evidence",
    "output",
    "room", "watch",
    "parallel", "finding", "tape/", "coverage", "paths", "plugins", "rule", "rules/", "completion",
    "fingerprint", "report/",
    "ignore", "settings", "config", "source/", "library/effects", "library/layer_effects", "ir/",
    "interpret/", "program/", "contracts/",
    "program/entries", "interpret/driving", "interpret/session",
    "interpret/entering", "interpret/running", "library/", "digests", "records",
    "holding", "cache", "analyzer",
    "analysis", "suppress", "annotate", "baseline", "texts", "checker", "importers", "since",
    "merge",
    "fix/", "codemods/",
    "trace/", "api", "callbacks", "lsp/", "pytest_plugin", "agents", "options", "writing",
    "mending", "checking", "cli", "__main__",
)  # fmt: skip
ALONE: dict[str, set[str]] = {
    "rules/": {
        "dataclass",
        "evidence",
        "names",
        "operations",
        "owners",
        "tape/",
        "paths",
        "finding",
        "rule",
        "rules/",
    },
    "training/": {"training/"},
}
MAY_IMPORT_TORCH = (
    "gradlint/contracts/",
    "gradlint/trace/",
    "gradlint/training/",
    "gradlint/fix/verify",
)  # drivers of contracts are interpreted, or run by a trace


def layer(module: str) -> str | None:
    """The layer of `gradlint.source.files` is `source/`, that of `gradlint.cli` is `cli`; None for
    strangers.
    """
    if module == "gradlint_rules" or module.startswith("gradlint_rules."):
        return "rules/"
    package, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    if package != "gradlint" or name in ("", "__version__"):
        return None
    module_layer = "/".join(rest.split(".")[:2])
    if module_layer in LAYERS:
        return module_layer
    return f"{name}/" if (ROOT / "gradlint" / name).is_dir() else name


def imported(path: pathlib.Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it; what is there for type checkers only does
    not count.
    """
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        match pending.pop():
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
                pending += orelse
            case ast.Import(names=names):
                yield from (name.name for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                assert level == 0, f"{path}: relative imports hide the layer"
                yield from (f"{module}.{name.name}" for name in names)
            case node:
                pending += ast.iter_child_nodes(node)


def faults(module: str, imports: Iterator[str]) -> list[str]:
    """The imports of `module` that point the wrong way."""
    own = layer(module)
    below = LAYERS[: LAYERS.index(own) + 1] if own in LAYERS else ()
    allowed = ALONE.get(own or "", {None, *below})
    return [
        f"{module} imports {other}" for other in imports if layer(other) not in {None, *allowed}
    ]


def modules() -> Iterator[tuple[str, pathlib.Path]]:
    for top, folder in (("gradlint", ROOT), ("gradlint_rules", ROOT / "rules")):
        for path in sorted((folder / top).rglob("*.py")):
            yield ".".join(path.relative_to(folder).with_suffix("").parts), path


def test_imports_point_one_way() -> None:
    wrong = [fault for module, path in modules() for fault in faults(module, imported(path))]
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "other"),
    [
        ("gradlint.finding", "gradlint.cli.main"),
        ("gradlint.report.text", "gradlint.source.files.discover"),
        ("gradlint_rules.GL101_constant_loss", "gradlint.report.render"),
        ("gradlint.somewhere_new", "gradlint.finding.Span"),
    ],
)
def test_an_import_that_points_the_wrong_way_is_noticed(module: str, other: str) -> None:
    assert faults(module, iter([other])) == [f"{module} imports {other}"]


def test_only_what_runs_programs_imports_torch() -> None:
    wrong = [
        f"{path}: {name}"
        for _, path in modules()
        for name in imported(path)
        if name.partition(".")[0] == "torch"
        and not str(path.relative_to(ROOT)).startswith(MAY_IMPORT_TORCH)
    ]
    assert wrong == []


# What takes long to import, and what a command can do without.
CHECKING = (
    "gradlint.checker",
    "gradlint.tape",
    "gradlint.interpret",
    "gradlint.ir.nodes",
    "tomllib",
    "json",
)
STRANGERS = (
    "libcst",
    "importlib.metadata",
    "multiprocessing",
    "concurrent.futures",
    "email",
    "ssl",
    "shutil",
)
OTHER_COMMANDS = (
    "gradlint.fix.attach",
    "gradlint.report.sarif",
    "gradlint.trace.run",
    "gradlint.lsp",
    "logging",
)
TRAINING = "import torch\n\nloss = torch.zeros(3).sum()\nloss.backward()\n"


def loaded(
    watched: tuple[str, ...], *arguments: str, cwd: pathlib.Path, before: str = ""
) -> set[str]:
    """Which of the `watched` modules a gradlint command imports."""
    script = f"""
import atexit, sys
known = set(sys.modules)
{before}
atexit.register(lambda: print("loaded:", *sorted((set(sys.modules) - known) & set({watched!r}))))
from gradlint.cli import main
main({arguments!r})
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=cwd, capture_output=True, text=True, check=False
    )
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("loaded:")]
    return set(line.split()[1:])


def test_the_version_is_said_without_what_a_check_takes(tmp_path: pathlib.Path) -> None:
    watched = ("torch", "gradlint_rules", *CHECKING, *STRANGERS, *OTHER_COMMANDS)
    assert loaded(watched, "--version", cwd=tmp_path) == set()


def test_a_check_never_imports_torch(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    assert loaded(("torch", "numpy"), "check", ".", cwd=tmp_path) == set()


def test_a_clean_file_is_checked_without_what_it_does_not_need(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING.replace("zeros(3)", "zeros(3, requires_grad=True)"))
    assert (
        loaded((*STRANGERS, *OTHER_COMMANDS), "check", "--no-cache", "train.py", cwd=tmp_path)
        == set()
    )


def test_only_the_rules_that_are_selected_are_imported(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    watched = ("gradlint_rules.GL101_constant_loss", "gradlint_rules.GL702_unstable_log")
    assert loaded(watched, "check", "--select", "GL101", "train.py", cwd=tmp_path) == set(
        watched[:1]
    )


def test_nothing_that_checks_is_imported_where_nothing_has_changed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    watched = (
        "gradlint_rules.GL702_unstable_log",
        "gradlint.library.modules",
        "gradlint.analyzer",
        "gradlint.ir.lower",
    )
    assert loaded(watched, "check", "train.py", cwd=tmp_path) == set(watched)
    assert loaded(watched, "check", "train.py", cwd=tmp_path) == set()


def test_an_import_of_torch_would_be_noticed() -> None:
    stub = "import types; sys.modules['torch'] = types.ModuleType('torch')"
    assert loaded(("torch",), "--version", cwd=ROOT, before=stub) == {"torch"}


@pytest.mark.parametrize(("command", "frozen"), [("check", True), ("rule", False)])
def test_only_a_check_leaves_without_a_search_for_cycles(
    tmp_path: pathlib.Path, command: str, frozen: bool
) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    arguments = (command, "train.py") if command == "check" else (command,)
    script = f"""
import atexit, gc
atexit.register(lambda: print("frozen:", gc.get_freeze_count() > 0))
from gradlint.cli import main
main({arguments!r})
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.stdout.splitlines()[-1] == f"frozen: {frozen}"
