"""How long an editor waits: `python benchmarks/editor.py FILE...`, over standard input and output,
with a warm server.

Opens each file, changes it a few times, and prints the medians from a change to its diagnostics
(less the pause that the server waits for further changes); when these are there, of a hover, of the
quick fixes at a finding (another one each time), and of the code actions for the whole file; and of
a hover and of the quick fixes at a finding right behind a change. The client is one that asks for
the edit of what was chosen, as most do; `choose` is that answer. On a busy machine the processor
time that the server took for a change (on Linux) says more than the time that passed.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from editor import Editor, editor

from gradlint.lsp.server import DEBOUNCE

TIMES = 7
WHOLE = types.Range(types.Position(0, 0), types.Position(100_000, 0))


LATER = types.ClientCapabilities(
    text_document=types.TextDocumentClientCapabilities(
        code_action=types.CodeActionClientCapabilities(
            resolve_support=types.ClientCodeActionResolveOptions(["edit"])
        )
    )
)
COLUMNS = ("change", "its CPU", "hover", "fix", "actions", "look", "its fix", "choose")


async def main(files: list[Path]) -> None:
    """Prints a line for each file."""
    print(f"{'file':30} {'lines':>8}", *(f"{column:>8}" for column in COLUMNS), "  milliseconds")
    async with editor(Path.cwd(), capabilities=LATER) as at:
        for file in files:
            print(await _measured(at, file), flush=True)


async def _measured(at: Editor, file: Path) -> str:
    name, text = str(file.resolve()), file.read_text(encoding="utf-8")
    at.open(name, text)
    found = await at.diagnostics(name)
    taken: dict[str, list[float]] = {column: [] for column in COLUMNS}

    @contextlib.contextmanager
    def timed(column: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        taken[column].append(time.perf_counter() - began)

    for number in range(TIMES):
        place = found[number * 5 % len(found)].range if found else None
        before = _cpu(at.server.pid)
        with timed("change"):
            at.change(name, f"{text}\n# {number}\n")
            await at.diagnostics(name)
        taken["its CPU"].append(_cpu(at.server.pid) - before)
        with timed("hover"):
            await at.hover(name, 0, 0)
        if place:
            with timed("fix"):
                await at.actions(name, place, ["quickfix"])
        with timed("actions"):
            await at.actions(name, WHOLE)
        at.change(name, f"{text}\n# {number}, again\n")
        with timed("look"):
            await at.hover(name, 0, 0)
        await at.diagnostics(name)
        if place:
            at.change(name, f"{text}\n# {number}, and again\n")
            with timed("its fix"):
                promised = await at.actions(name, place, ["quickfix"])
            with timed("choose"):
                await at.resolved(promised[0])
            await at.diagnostics(name)
    at.close(name)
    taken["change"] = [each - DEBOUNCE for each in taken["change"]]
    told = (
        f"{1000 * statistics.median(taken[column]):8.0f}" if taken[column] else f"{'':8}"
        for column in COLUMNS
    )
    return f"{file.name:30} {len(text.splitlines()):8} {' '.join(told)}"


def _cpu(process: int) -> float:
    """The seconds that the threads of a process have run."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


if __name__ == "__main__":
    asyncio.run(main([Path(each) for each in sys.argv[1:]]))
