"""How long an editor waits: `python benchmarks/editor.py FILE...`, over standard input and output, with a warm server.

Opens each file, changes it a few times, and prints the medians from a change to its diagnostics (less the pause that
the server waits for further changes), of a hover and of the code actions for the whole file when these are there, and
of a hover right behind a change. On a busy machine the processor time that the server took for a change (on Linux) says
more than the time that passed.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path

from lsprotocol import types

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from editor import Editor, editor

from gradlint.lsp.server import DEBOUNCE

TIMES = 7
WHOLE = types.Range(types.Position(0, 0), types.Position(100_000, 0))


async def main(files: list[Path]) -> None:
    """Prints a line for each file."""
    columns = ("lines", "change", "its CPU", "hover", "actions", "look")
    print(f"{'file':30}", *(f"{column:>8}" for column in columns), "  milliseconds")
    async with editor(Path.cwd()) as at:
        for file in files:
            print(await _measured(at, file), flush=True)


async def _measured(at: Editor, file: Path) -> str:
    name, text = str(file.resolve()), file.read_text(encoding="utf-8")
    at.open(name, text)
    await at.diagnostics(name)
    changes, used, hovers, actions, looks = [], [], [], [], []
    for number in range(TIMES):
        began, before = time.perf_counter(), _cpu(at.server.pid)
        at.change(name, f"{text}\n# {number}\n")
        await at.diagnostics(name)
        changed = time.perf_counter()
        used.append(_cpu(at.server.pid) - before)
        await at.hover(name, 0, 0)
        hovered = time.perf_counter()
        await at.actions(name, WHOLE)
        changes.append(changed - began - DEBOUNCE)
        hovers.append(hovered - changed)
        actions.append(time.perf_counter() - hovered)
        at.change(name, f"{text}\n# {number}, again\n")
        began = time.perf_counter()
        await at.hover(name, 0, 0)
        looks.append(time.perf_counter() - began)
        await at.diagnostics(name)
    at.close(name)
    told = " ".join(f"{1000 * statistics.median(each):8.0f}" for each in (changes, used, hovers, actions, looks))
    return f"{file.name:30} {len(text.splitlines()):8} {told}"


def _cpu(process: int) -> float:
    """The seconds that the threads of a process have run."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


if __name__ == "__main__":
    asyncio.run(main([Path(each) for each in sys.argv[1:]]))
