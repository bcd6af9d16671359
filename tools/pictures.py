"""Draws the pictures of the documentation: `python tools/pictures.py`.

The report is what gradlint says of `docs/examples/first`, as SVG; the page of a traced run of it,
which takes torch and a Chromium, is a PNG.
"""

from __future__ import annotations

import html
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
EXAMPLE = ROOT / "docs" / "examples" / "first"
COMMAND = ("check", "--no-cache", "train.py")
WIDTH = 100  # characters of a line
ADVANCE, HEIGHT, MARGIN = 8.4, 19, 16  # pixels of a character, of a line and around all
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
INK, PAPER = "#d4d4d4", "#1b1f24"
COLORS = {"31": "#ff7b72", "33": "#e3b341", "34": "#79c0ff", "36": "#56d4dd"}
_ESCAPE = re.compile(r"\x1b\[([\d;]*)m|\x1b\]8;;.*?\x1b\\")
Cell = tuple[str, str]  # a character, and the numbers of its style


def _cells(line: str) -> Iterator[Cell]:
    """The characters of a line of a terminal, each with its style."""
    style, at = "0", 0
    for escape in _ESCAPE.finditer(line):
        yield from ((character, style) for character in line[at : escape.start()])
        style, at = escape[1] or style, escape.end()
    yield from ((character, style) for character in line[at:])


def _wrapped(cells: list[Cell]) -> Iterator[list[Cell]]:
    """The lines that a line takes in a terminal, broken at spaces."""
    while len(cells) > WIDTH:
        spaces = (place for place in range(WIDTH, 0, -1) if cells[place][0] == " ")
        cut = next(spaces, WIDTH)
        yield cells[:cut]
        cells = cells[cut:][1:] if cells[cut][0] == " " else cells[cut:]
    yield cells


def _spans(cells: list[Cell]) -> str:
    """The text of a line with its styles, as SVG has it."""
    spans = []
    for style, held in itertools.groupby(cells, key=lambda cell: cell[1]):
        numbers = style.split(";")
        bold = ' font-weight="bold"' if "1" in numbers else ""
        color = next((f' fill="{COLORS[number]}"' for number in numbers if number in COLORS), "")
        text = html.escape("".join(character for character, _ in held), quote=False)
        spans.append(f"<tspan{bold}{color}>{text}</tspan>" if bold or color else text)
    return "".join(spans)


def picture(said: str) -> str:
    """What a terminal shows, as SVG."""
    lines = [
        line for text in said.rstrip("\n").split("\n") for line in _wrapped(list(_cells(text)))
    ]
    width, height = round(WIDTH * ADVANCE) + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    texts = [
        f'<text x="{MARGIN}" y="{MARGIN + HEIGHT * number - 5}" '
        f'xml:space="preserve">{_spans(line)}</text>'
        for number, line in enumerate(lines, 1)
        if line
    ]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">',
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
        f'<g font-family="{FONT}" font-size="14" fill="{INK}">',
        *texts,
        "</g>",
        "</svg>\n",
    ])  # fmt: skip


def report() -> str:
    """What gradlint says of the example in a terminal, behind the command."""
    environment = {**os.environ, "FORCE_COLOR": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "gradlint", *COMMAND]
    ran = subprocess.run(
        command, cwd=EXAMPLE, env=environment, capture_output=True, text=True, check=False
    )
    return shown(ran.stdout)


def shown(said: str) -> str:
    """The report as a terminal shows it: behind the command."""
    return f"$ gradlint check train.py\n{said}"


def _photograph(browser: str, target: pathlib.Path) -> None:
    """The page of a traced run, as a browser shows it."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        command = [sys.executable, "-m", "gradlint", "trace", "--html", str(page), "train.py"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run(command, cwd=EXAMPLE, env=environment, capture_output=True, check=False)
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,1900"]
        subprocess.run(
            [browser, *options, f"--screenshot={target}", page.as_uri()],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "report.svg").write_text(picture(report()), encoding="utf-8")
    names = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    if found := next(filter(None, names), None):
        _photograph(found, IMAGES / "page.png")
