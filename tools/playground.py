"""A hook of mkdocs: what the playground loads, made at each build: gradlint itself, the examples,
where Python is.

Python comes from Pyodide's own address, and from this site where `npm ci` was run in
`tools/browser`; then there is no libcst, without which no fix moves statements.
"""

from __future__ import annotations

import io
import json
import pathlib
import re
import zipfile
from collections.abc import Iterator

import gradlint_rules
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import gradlint
from gradlint.rule import Rule, rules

FOLDER = "playground"
BROWSER = pathlib.Path(__file__).parent / "browser"
VERSION = json.loads((BROWSER / "package.json").read_text(encoding="utf-8"))["dependencies"][
    "pyodide"
]
ELSEWHERE = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
PARTS = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)
_EXAMPLE = re.compile(r"^## Example\n.*?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "  # expect: "
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # of every file, so that the archive of one text is one file


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the archive, the examples and the address, and Python where that is here."""
    here = BROWSER / "node_modules" / "pyodide"
    local = [(name, here / name) for name in PARTS if here.is_dir()]
    address = json.dumps({"pyodide": "pyodide/" if local else ELSEWHERE})
    listed = json.dumps(
        [{"code": rule.code, "name": rule.name, "program": text} for rule, text in examples()]
    )
    made: dict[str, str | bytes] = {
        "config.json": address,
        "examples.json": listed,
        "gradlint.zip": archive(),
    }
    for name, content in made.items():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
    for name, path in local:
        files.append(File.generated(config, f"{FOLDER}/pyodide/{name}", abs_src_path=str(path)))
    return files


def examples() -> Iterator[tuple[Rule, str]]:
    """The first bad program of each page of a rule, without the marks of the tests."""
    for rule in rules().values():
        if rule.source.startswith("gradlint_rules.") and (found := _EXAMPLE.search(rule.page)):
            yield rule, "".join(f"{line.partition(_MARK)[0]}\n" for line in found[1].splitlines())


def archive() -> bytes:
    """gradlint and its rules, as they are installed, in a ZIP archive."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as held:
        for package in (gradlint, gradlint_rules):
            assert package.__file__ is not None
            root = pathlib.Path(package.__file__).parent
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    name = file.relative_to(root.parent).as_posix()
                    held.writestr(
                        zipfile.ZipInfo(name, _LONG_AGO), file.read_bytes(), zipfile.ZIP_DEFLATED
                    )
    return written.getvalue()
