"""Figures of style, side by side: how long functions, files and lines are, how dense decisions.

    python tools/style.py [NAME=FOLDER ...]

The first column is this project without its tests; behind it stand mypy, Fixit and pytype where
they are installed, and the packages whose folders are given. A decision is whatever gives a
function another way to go: `if`, a loop, `except`, `case`, a conditional expression, the `for` and
`if` of a comprehension, and each further operand of `and` and `or`.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import io
import pathlib
import statistics
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).parents[1]
OWN = (ROOT / "gradlint", ROOT / "rules" / "gradlint_rules")
BESIDE = ("mypy", "fixit", "pytype")
LONG_FUNCTION, LONG_LINE, LONG_FILE = 35, 100, 400
MOST_DECISIONS = 40  # in 100 lines of function bodies: the project's own bound

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_ONE_MORE_WAY = (
    ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case,
)  # fmt: skip
_NO_CODE = (
    tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
)  # fmt: skip


@dataclass
class Figures:
    """What is counted in the files of one package."""

    files: int = 0
    lines: int = 0
    function_lengths: list[int] = field(default_factory=list)
    body_lines: int = 0
    decisions: int = 0
    long_lines: int = 0
    comments: int = 0
    documented: int = 0
    to_document: int = 0
    longest_file: int = 0
    long_files: dict[str, int] = field(default_factory=dict)
    circles: list[list[str]] = field(default_factory=list)
    lazy_circles: list[list[str]] = field(default_factory=list)
    test_lines: int = 0


def measure(folders: Sequence[pathlib.Path], tests: Sequence[pathlib.Path] = ()) -> Figures:
    """The figures of the packages in `folders`; `tests` are the folders of their tests."""
    found = Figures()
    modules: dict[str, ast.Module] = {}
    for folder in folders:
        for path in sources(folder, tests):
            text = path.read_text(encoding="utf-8", errors="replace")
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError):  # a file that a test of the package refuses
                continue
            modules[_module_name(path, folder)] = tree
            _count_file(found, str(path.relative_to(folder.parent)), text, tree)
    found.circles = circles(_imports(modules, lazy=False))
    found.lazy_circles = circles(_imports(modules, lazy=True))
    found.test_lines = sum(
        len(path.read_text(encoding="utf-8", errors="replace").splitlines())
        for folder in tests
        for path in folder.rglob("*.py")
    )
    return found


def sources(folder: pathlib.Path, tests: Sequence[pathlib.Path] = ()) -> Iterator[pathlib.Path]:
    """The Python files of a package, but for its tests and what they are given."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).parts
        is_test = any(part in ("test", "tests", "testdata", "test-data") for part in parts[:-1])
        is_test = is_test or path.name.startswith("test_") or path.name.endswith("_test.py")
        if not is_test and not any(path.is_relative_to(other) for other in tests):
            yield path


def _count_file(found: Figures, name: str, text: str, tree: ast.Module) -> None:
    lines = text.splitlines()
    found.files += 1
    found.lines += len(lines)
    found.long_lines += sum(len(line) > LONG_LINE for line in lines)
    comments, code = _lines_of(text)
    found.comments += len(comments)
    found.longest_file = max(found.longest_file, len(lines))
    if len(lines) > LONG_FILE:
        found.long_files[name] = len(lines)
    for node in ast.walk(tree):
        if isinstance(node, Documented):
            found.to_document += 1
            found.documented += ast.get_docstring(node, clean=False) is not None
        if isinstance(node, Function):
            found.function_lengths.append(_length(node))
    for function in _outermost_functions(tree):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        found.body_lines += sum(
            line in code
            for statement in body
            for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
        )
        found.decisions += sum(map(decisions, body))


def _length(function: Function) -> int:
    """How many lines a function has, from its `def` to its end."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _outermost_functions(tree: ast.AST) -> Iterator[Function]:
    """The functions that stand in no other: what stands in those is part of them."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, Function):
            yield child
        else:
            yield from _outermost_functions(child)


def decisions(node: ast.AST) -> int:
    """How many ways more there are through `node` than one."""
    count = 0
    for each in ast.walk(node):
        if isinstance(each, _ONE_MORE_WAY):
            count += 1
        elif isinstance(each, ast.BoolOp):
            count += len(each.values) - 1
        elif isinstance(each, ast.comprehension):
            count += 1 + len(each.ifs)
    return count


def _lines_of(text: str) -> tuple[set[int], set[int]]:
    """The lines with a comment, alone or behind code, and those with code."""
    comments, code = set[int](), set[int]()
    for token in _tokens(text):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return comments, code


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, IndentationError):
        return


def _module_name(path: pathlib.Path, folder: pathlib.Path) -> str:
    parts = path.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(modules: Mapping[str, ast.Module], *, lazy: bool) -> dict[str, set[str]]:
    """Which modules import which; `lazy`: with what functions import while they run."""
    return {
        name: {
            other
            for statement in _import_statements(tree, lazy=lazy)
            for other in _imported(statement, name, modules)
            if other != name
        }
        for name, tree in modules.items()
    }


def _import_statements(tree: ast.AST, *, lazy: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a module, but for those that are there for type checkers alone."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.orelse:
                yield from _import_statements(ast.Module([statement], []), lazy=lazy)
        elif lazy or not isinstance(child, Function | ast.Lambda):
            yield from _import_statements(child, lazy=lazy)


def _imported(
    statement: ast.Import | ast.ImportFrom, importer: str, modules: Mapping[str, ast.Module]
) -> Iterator[str]:
    """The modules among `modules` that a statement imports."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names if alias.name in modules)
        return
    home = statement.module or ""
    if statement.level:
        above = importer.split(".")[: -statement.level]
        home = ".".join([*above, *([home] if home else [])])
    for alias in statement.names:
        if f"{home}.{alias.name}" in modules:
            yield f"{home}.{alias.name}"
        elif home in modules:
            yield home


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of modules that import each other, by way of others too (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    found: list[list[str]] = []
    for start in imports:
        if start in order:
            continue
        order[start] = lowest[start] = len(order)
        open_modules.append(start)
        pending = [(start, iter(sorted(imports[start])))]
        while pending:
            module, others = pending[-1]
            other = next(others, None)
            if other is None:
                pending.pop()
                if pending:
                    above = pending[-1][0]
                    lowest[above] = min(lowest[above], lowest[module])
                if lowest[module] == order[module]:
                    position = open_modules.index(module)
                    group = sorted(open_modules[position:])
                    del open_modules[position:]
                    found += [group] if len(group) > 1 else []
            elif other not in order:
                order[other] = lowest[other] = len(order)
                open_modules.append(other)
                pending.append((other, iter(sorted(imports[other]))))
            elif other in open_modules:
                lowest[module] = min(lowest[module], order[other])
    return sorted(found)


ROWS = (
    "files",
    "lines",
    "function length, median",
    f"functions over {LONG_FUNCTION} lines, %",
    "decisions in 100 body lines",
    f"lines over {LONG_LINE} columns",
    "comments in 100 lines",
    "with a docstring, %",
    "file length, largest",
    f"files over {LONG_FILE} lines",
    "import circles",
    "import circles, lazy ones too",
    "lines of tests to one of code",
)


def cells(found: Figures) -> tuple[str, ...]:
    """The figures of a package as they are shown, one for each of ROWS."""
    lengths = found.function_lengths or [0]
    return (
        str(found.files),
        str(found.lines),
        f"{statistics.median(lengths):g}",
        f"{100 * sum(length > LONG_FUNCTION for length in lengths) / len(lengths):.1f}",
        f"{100 * found.decisions / max(found.body_lines, 1):.0f}",
        str(found.long_lines),
        f"{100 * found.comments / max(found.lines, 1):.1f}",
        f"{100 * found.documented / max(found.to_document, 1):.0f}",
        str(found.longest_file),
        str(len(found.long_files)),
        str(len(found.circles)),
        str(len(found.lazy_circles)),
        f"{found.test_lines / max(found.lines, 1):.1f}" if found.test_lines else "-",
    )


def table(columns: Mapping[str, Figures]) -> str:
    """A table with one column for each package."""
    shown = {name: (name, *cells(found)) for name, found in columns.items()}
    labels = ("", *ROWS)
    widths = [max(map(len, labels)), *(max(map(len, column)) for column in shown.values())]
    rows = zip(labels, *shown.values(), strict=True)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if position == 0 else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def installed(name: str) -> pathlib.Path | None:
    """The folder of a package that is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    return pathlib.Path(spec.origin).parent if spec is not None and spec.origin else None


def main() -> None:
    """Prints the table, and what stands in this project's circles."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("beside", nargs="*", metavar="NAME=FOLDER", help="another package")
    parser.add_argument("--long", action="store_true", help="list the files over 400 lines")
    options = parser.parse_args()
    columns = {"gradlint": measure(OWN, [ROOT / "tests"])}
    beside = {name: folder for name in BESIDE if (folder := installed(name)) is not None}
    for given in options.beside:
        name, _, folder = given.rpartition("=")
        path = pathlib.Path(folder)
        beside[name or path.name] = path
    columns |= {name: measure([folder]) for name, folder in beside.items()}
    print(table(columns))
    for group in columns["gradlint"].lazy_circles:
        print("circle:", " ".join(group))
    if options.long:
        for name, lines in sorted(columns["gradlint"].long_files.items()):
            print(f"{lines:5} {name}")


if __name__ == "__main__":
    main()
