"""What other linters say of the same programs: `python benchmarks/peers.py --tools FOLDER [--bench
FOLDER] [--write]`.

Each folder of a bench is a case: `before/` has a defect that was executed, and `after/` is the same
program without it; some cases are sound from the start. A defect has its code and the lines at
fault: in marks (`# expect: CODE`), or in `case.toml`. Counted are, for each tool,

- the defects that it names: it reports, anywhere in the program, what `MEANS` maps to the code of
  the defect;
- the defects of which it reports a line at fault, whatever it says of it;
- in the sound programs, the lines that it reports by a rule of `MEANS`, and by any rule;
- the CPU seconds that all this takes it.

FOLDER of `--tools` holds the tools' commands
(`pip install torch-preflight torchfix ruff pylint mldoct`, in an environment of their own); what is
not there is left out. `--write` puts the tables into `docs/comparison.md`.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "fixtures" / "bench"
PAGE = ROOT / "docs" / "comparison.md"
PLACEHOLDER = [1]  # lines of a case whose place nobody wrote down

_GRADLINT = ("gradlint", "check", "--no-cache", "--output-format", "concise")
_RUFF = ("ruff", "check", "--isolated", "--no-cache", "--output-format", "concise")
_PYLINT = (
    "pylint",
    "--rcfile=/dev/null",
    "--score=n",
    "--msg-template={path}:{line}: {msg_id}",
    "--jobs=2",
)
_MLDOCT = """
import sys
from mldoctor.linter import lint_script
for path in sys.argv[1:]:
    for found in lint_script(path)[0]:
        print(f"{path}:{found['line'] or 1}: {found['type']}")
"""


@dataclass(frozen=True)
class Tool:
    """A tool: its command, and what each of its rules about autograd says in the codes of ours."""

    name: str
    command: Sequence[str]
    package: str
    means: Mapping[str, Sequence[str]]


_PREFLIGHT = {
    "TG001": ["GL508"],
    "TG002": ["GL305"],
    "TG003": ["GL501"],
    "TG005": ["GL704"],
    "TG006": ["GL704"],
    "TG011": ["GL304"],
    "TG014": ["GL503"],
}
_UNUSED_VALUE = ["GL206", "GL303", "GL511"]  # an expression by itself
TOOLS = [
    Tool("gradlint", _GRADLINT, "torch-gradlint", {}),
    Tool(
        "gradlint, `--min-severity warning`",
        (*_GRADLINT, "--min-severity", "warning"),
        "torch-gradlint",
        {},
    ),
    Tool(
        "torch-preflight",
        ("torch-preflight", "check", "--no-color", "-f", "github"),
        "torch-preflight",
        _PREFLIGHT,
    ),
    Tool(
        "TorchFix, every rule",
        ("torchfix", "--select", "ALL"),
        "torchfix",
        {"TOR002": ["GL516"], "TOR003": ["GL110"], "TOR101": ["GL402"]},
    ),
    Tool(
        "mldoct",
        ("python", "-c", _MLDOCT),
        "mldoct",
        {"missing_zero_grad": ["GL501"], "double_softmax": ["GL704"], "oom_leak": ["GL508"]},
    ),
    Tool("ruff, its defaults", _RUFF, "ruff", {"B018": _UNUSED_VALUE}),
    Tool("ruff, every rule", (*_RUFF, "--select", "ALL"), "ruff", {"B018": _UNUSED_VALUE}),
    Tool(
        "pylint, its defaults", _PYLINT, "pylint", {"W0104": _UNUSED_VALUE, "W0106": _UNUSED_VALUE}
    ),
]
_REPORT = re.compile(
    r"(?:file=)?([^\s:,=]+\.py)(?::|,line=)(\d+).*?\b([A-Z]{1,4}\d{3,4}|[a-z]+(?:_[a-z]+)+)\b"
)
_EXPECTED = re.compile(r"# expect: (GL\d{3})")


@dataclass(frozen=True)
class Defect:
    """A defect: its code, and the places at fault, any of which counts."""

    case: Path
    code: str
    places: frozenset[tuple[Path, int]]


@dataclass(frozen=True)
class Said:
    """A report of a tool: the file and the line, and the rule."""

    file: Path
    line: int
    rule: str


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--bench", type=Path, default=BENCH)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = []
    for line in tables(options.bench.resolve(), options.tools):
        print(line, flush=True)
        lines.append(line)
    if options.write:
        before, start, rest = PAGE.read_text(encoding="utf-8").partition("<!-- peers -->\n")
        _, end, after = rest.partition("<!-- end of peers -->\n")
        PAGE.write_text(before + start + "\n".join(lines) + "\n" + end + after, encoding="utf-8")


def tables(bench: Path, folder: Path) -> Iterator[str]:
    """The figures of each tool that is there, and what was taken for what."""
    cases = sorted(path for path in bench.iterdir() if (path / "after").is_dir())
    defects = [defect for case in cases for defect in defects_of(case)]
    sound = f"lines in {len(cases)} sound programs, by rules that are compared"
    yield (
        f"| | names, of {len(defects)} defects | reports a line at fault | {sound} | by any rule "
        "| CPU |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    there = [(tool, command) for tool in TOOLS if (command := _command(tool, folder)) is not None]
    for tool, command in there:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = list(reports(command, bench))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        yield (
            f"| {tool.name} | {' | '.join(map(str, figures(tool, defects, said, bench)))} | "
            f"{seconds:.1f} s |"
        )
    yield ""
    yield "| rule | taken for |"
    yield "| --- | --- |"
    told = dict.fromkeys(
        (tool.package, rule, tuple(codes))
        for tool, _ in there
        for rule, codes in tool.means.items()
    )
    yield from (f"| {package} {rule} | {', '.join(codes)} |" for package, rule, codes in told)


def figures(
    tool: Tool, defects: Sequence[Defect], said: Sequence[Said], bench: Path
) -> tuple[int, int, int, int]:
    """The defects that are named, and met; the lines in sound programs, by the rules of the
    mapping, and by any.
    """
    by_side: dict[tuple[str, str], list[Said]] = {}
    for each in said:
        case, side = each.file.relative_to(bench).parts[:2]
        by_side.setdefault((case, side), []).append(each)
    named = met = 0
    for defect in defects:
        here = by_side.get((defect.case.name, "before"), [])
        named += any(defect.code in meaning(tool, each.rule) for each in here)
        met += any((each.file, each.line) in defect.places for each in here)
    sound = [each for (_, side), found in by_side.items() if side == "after" for each in found]
    mapped = {(each.file, each.line) for each in sound if meaning(tool, each.rule)}
    return named, met, len(mapped), len({(each.file, each.line) for each in sound})


def meaning(tool: Tool, rule: str) -> Sequence[str]:
    """What a rule of a tool says, in our codes."""
    return tool.means.get(rule, ()) if tool.package != "torch-gradlint" else [rule]


def defects_of(case: Path) -> Iterator[Defect]:
    """The defects of a case, by marks in its program, or by its description."""
    marked = list(_marked(case / "before"))
    if marked:
        for code in dict.fromkeys(code for code, _ in marked):
            yield Defect(case, code, frozenset(place for other, place in marked if other == code))
        return
    spec = tomllib.loads((case / "case.toml").read_text(encoding="utf-8"))
    for expected in spec.get("before", {}).get("expect", ()):
        if expected["lines"] != PLACEHOLDER:
            file = case / "before" / expected["file"]
            yield Defect(
                case, expected["code"], frozenset((file, line) for line in expected["lines"])
            )


def _marked(folder: Path) -> Iterator[tuple[str, tuple[Path, int]]]:
    for file in sorted(folder.rglob("*.py")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if found := _EXPECTED.search(line):
                yield found[1], (file, number)


def _command(tool: Tool, folder: Path) -> list[str] | None:
    """The command of a tool, where it is there."""
    name, *options = tool.command
    own = shutil.which(name, path=str(folder))
    if tool.package == "mldoct" and not (own and _imports(own, "mldoctor")):
        return None
    path = own or shutil.which(name)
    return None if path is None else [path, *options]


def _imports(python: str, module: str) -> bool:
    return (
        subprocess.run(
            [python, "-c", f"import {module}"], capture_output=True, check=False
        ).returncode
        == 0
    )


def reports(command: Sequence[str], bench: Path) -> Iterator[Said]:
    """What a tool reports in the programs of a bench, of which it gets all in one run."""
    files = [str(file.relative_to(bench)) for file in sorted(bench.rglob("*.py"))]
    ran = subprocess.run([*command, *files], cwd=bench, capture_output=True, text=True, check=False)
    yield from _read(ran.stdout.splitlines(), bench)


def _read(lines: Iterable[str], bench: Path) -> Iterator[Said]:
    for line in lines:
        if found := _REPORT.search(line):
            yield Said(bench / found[1], int(found[2]), found[3])


if __name__ == "__main__":
    main()
