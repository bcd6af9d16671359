"""One self-contained page: the findings, the chain of each loss as a picture, the steps, the
gradients' norms.
"""

from __future__ import annotations

import html
import math
import os
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gradlint.finding import Span
from gradlint.owners import grouped
from gradlint.report._place import count
from gradlint.tape import (
    Backward,
    Clip,
    Event,
    OptimizerStep,
    ScalerUpdate,
    SchedulerStep,
    Tape,
    Unscale,
    ZeroGrad,
)
from gradlint.trace import source, trainers
from gradlint.trace.findings import Told
from gradlint.trace.routes import Stop, fold, layers, losses

Norms = Sequence[tuple[int, dict[str, float | None]]]
_CONTEXT = 3
_WIDE, _HIGH, _GAP, _ROW = 270, 62, 36, 16
_FITS = 35  # characters of a line in a box
_MOST_STEPS, _MOST_PARAMETERS = 60, 60
_MARKS: tuple[tuple[type[Event], str], ...] = (
    (ZeroGrad, "zero"), (Backward, "backward"), (Unscale, "unscale"), (Clip, "clip"),
    (OptimizerStep, "step"),
    (ScalerUpdate, "update"), (SchedulerStep, "scheduler"),
)  # fmt: skip

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem}
body{color:#1c1e21;background:#fff}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
code,pre,text{font-family:ui-monospace,monospace;font-size:12px}
details{border:1px solid #d0d4da;border-radius:6px;margin:.5rem 0;padding:.4rem .8rem}
summary{cursor:pointer}
.error{border-left:5px solid #c62828}.warning{border-left:5px solid #ef8f00}
.note{border-left:5px solid #1976d2}
pre{background:#f5f6f8;padding:.6rem;overflow-x:auto}
mark{background:#ffd9d6;display:inline-block;min-width:100%}
.scroll{overflow-x:auto}rect.cut{stroke:#c62828;stroke-width:2}rect.dead{stroke-dasharray:4 3}
text.without{fill:#c62828}
.zero{fill:#90a4ae}
.backward{fill:#1976d2}.unscale{fill:#7b1fa2}.clip{fill:#ef8f00}
.step{fill:#2e7d32}.update{fill:#00838f}
.scheduler{fill:#8d6e63}
@media(prefers-color-scheme:dark){body{background:#16181c;color:#e4e6ea}pre{background:#22252b}
mark{background:#5c2320;color:inherit}text{fill:#e4e6ea}
rect.stop{fill:#22252b!important}td,th{border-color:#3a3f47}}
table{border-collapse:collapse}td,th{border:1px solid #d0d4da;padding:.2rem .6rem;text-align:left}
@media print{body{max-width:none;color:#000;background:#fff}
.scroll{overflow:visible}svg{max-width:100%;height:auto}}
"""
# The cut comes into view, and on paper every finding is open.
_SCRIPT = """
for (const box of document.querySelectorAll(".scroll")) {
  const cut = box.querySelector("rect.cut");
  if (cut) box.scrollLeft = cut.x.baseVal.value - box.clientWidth / 2 + cut.width.baseVal.value / 2;
}
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
"""
_KEY = (
    '<svg width="14" height="14"><rect class="{}" x="1" y="1" width="12" height="12" '
    'fill="none" stroke="#607d8b"/>'
    "</svg>"
)
_COLORS = (
    f"<p>{_KEY.format('cut')} the gradient is cut here {_KEY.format('dead')} carries no gradient. "
    "The loss is at the left; a box has the module, the line, the code.</p>"
)


def page(tape: Tape, told: Sequence[Told], steps: dict[int, int], norms: Norms, taken: int) -> str:
    """The page as text; `taken` is the number of optimizer steps."""
    parts = [
        f"<h1>gradlint trace: <code>{_text(tape.entry)}</code></h1>",
        _totals(told, taken),
        "<h2>Findings</h2>", *_findings(told),
        "<h2>Who trains what</h2>", _table(trainers.table(tape)),
        "<h2>Graph</h2>", _COLORS, *(_graph(sink) for sink in losses(tape)),
        "<h2>Steps</h2>", _timeline(tape, steps),
        "<h2>Gradient norms</h2>", _norms(norms),
    ]  # fmt: skip
    script = f"<script>{_SCRIPT}</script>"
    head = f'<meta charset="utf-8"><title>gradlint trace</title><style>{_STYLE}</style>'
    return (
        "<!doctype html><html "
        f'lang="en"><head>{head}</head><body>{"".join(parts)}{script}</body></html>\n'
    )


def _text(text: object) -> str:
    return html.escape(str(text))


def _totals(told: Sequence[Told], taken: int) -> str:
    """How long the run was, and how much was found."""
    kinds = Counter(each.finding.severity for each in told)
    found = ", ".join(count(kinds[kind], kind.label) for kind in sorted(kinds, reverse=True))
    return f"<p>{count(taken, 'optimizer step')}; {found or 'no finding'}.</p>"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, of which the first is the head."""
    lines = (
        "".join(f"<{cell}>{_text(text)}</{cell}>" for text in row)
        for row, cell in zip(rows, ["th", *["td"] * len(rows)], strict=False)
    )
    return (
        f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
        if rows
        else "<p>No parameter was seen.</p>"
    )


def _findings(told: Sequence[Told]) -> Iterator[str]:
    if not told:
        yield "<p>None.</p>"
    for number, each in enumerate(told):
        finding = each.finding
        step = "" if finding.step is None else f", step {finding.step}"
        title = (
            f"<b>{finding.severity.label} {finding.code}</b> {_text(finding.at)}{step}: "
            f"{_text(finding.message)}"
        )
        related = "".join(
            f"<p>{_text(other.message)}: <code>{_text(other.at)}</code></p>{_source(other.at)}"
            for other in finding.related
        )
        route = "".join(
            f"<li><code>{_text(place.at)}</code> <code>{_text(place.text)}</code></li>"
            for place in each.stops
        )
        missed = _text(", ".join(grouped(each.unreached, each.held))) if each.cuts else ""
        names = f"<p>Parameters not reached: <code>{missed}</code></p>" if missed else ""
        advice = f"<p>{_text(finding.help)}</p>" if finding.help else ""
        route = f"<p>Route from the loss:</p><ol>{route}</ol>" if route else ""
        is_open = "" if number else " open"
        yield (
            f'<details class="{finding.severity.label}"{is_open}><summary>{title}</summary>'
            f"{_source(finding.at)}{advice}{names}{route}{related}</details>"
        )


def _source(at: Span) -> str:
    """The lines around a place, its own marked."""
    lines = source.lines(at)
    shown = range(max(1, at.line - _CONTEXT), min(len(lines), at.end_line + _CONTEXT) + 1)
    rows = []
    for number in shown:
        row = f"{number:5} {_text(lines[number - 1].rstrip())}"
        rows.append(f"<mark>{row}</mark>" if at.line <= number <= at.end_line else row)
    return f"<pre>{chr(10).join(rows)}</pre>" if rows else ""


def _graph(sink: Backward) -> str:
    """The chain of one loss: the loss at the left, what it was computed from to its right."""
    spots, wide, high = arranged(layers(fold(sink.value)))
    edges = "".join(_edge(spot, other) for spot in spots for other in spot.to)
    boxes = "".join(_box(spot.stop, spot.x, spot.y) for spot in spots if spot.stop is not None)
    title = f"<p><code>{_text(sink.at)}</code> <code>{_text(sink.text)}</code></p>"
    return title + _drawing(wide, high, edges + boxes)


def _edge(one: Spot, other: Spot) -> str:
    x, y, to_x, to_y = one.x + _WIDE, one.y + one.high // 2, other.x, other.y + other.high // 2
    middle = (x + to_x) // 2
    along = f"H{to_x + _WIDE}" if other.stop is None else ""
    return (
        f'<path d="M{x} {y}C{middle} {y} {middle} {to_y} {to_x} {to_y}{along}" fill="none" '
        'stroke="#90a4ae"/>'
    )


@dataclass(eq=False, slots=True)
class Spot:
    """A place in the picture: that of a stop, or of a line that passes a column on its way to a
    later one.
    """

    stop: Stop | None
    column: int
    y: int = 0
    to: list[Spot] = field(default_factory=list)

    @property
    def x(self) -> int:
        return self.column * (_WIDE + _GAP)

    @property
    def high(self) -> int:
        return _ROW if self.stop is None else _HIGH


def arranged(columns: Sequence[Sequence[Stop]]) -> tuple[list[Spot], int, int]:
    """Where each stop stands, and where lines pass between the stops; with the width and the height
    of it all.

    A column is ordered by where its spots are reached from: few lines cross.
    """
    rows: list[list[Spot]] = [
        [Spot(stop, number) for stop in column] for number, column in enumerate(columns)
    ]
    of = {id(spot.stop): spot for row in rows for spot in row}
    for spot in list(of.values()):
        for below in spot.stop.inputs if spot.stop is not None else ():
            goal, last = of[id(below)], spot
            for number in range(
                spot.column + 1, goal.column
            ):  # none back to an earlier one: a line that comes again
                last.to.append(passing := Spot(None, number))
                rows[number].append(passing)
                last = passing
            last.to.append(goal)
    reached: dict[int, list[int]] = {}
    high = 0
    for row in rows:
        row.sort(key=lambda spot: statistics.fmean(reached.get(id(spot), [0])))
        y = 0
        for spot in row:
            spot.y = y
            y += spot.high + 12
            for other in spot.to:
                reached.setdefault(id(other), []).append(spot.y + spot.high // 2)
        high = max(high, y)
    return [spot for row in rows for spot in row], len(rows) * (_WIDE + _GAP), high


def _box(stop: Stop, x: int, y: int) -> str:
    kind = "stop cut" if stop.cut else "stop" if stop.carries else "stop dead"
    names = ", ".join(stop.parameters)
    title = (
        f"{stop.text}\n{stop.at}"
        + (f"\nparameters: {names}" if names else "")
        + (f"\ncut: {stop.cut}" if stop.cut else "")
    )
    lines = (stop.label, f"{os.path.basename(stop.at.path)}:{stop.at.line}", stop.text)
    weights = (' font-weight="bold"', "", "")
    texts = "".join(
        f'<text x="{x + 8}" y="{y + 19 + 17 * row}"{weight}>{_text(_cropped(line))}</text>'
        for row, (line, weight) in enumerate(zip(lines, weights, strict=True))
    )
    return (
        f'<g><title>{_text(title)}</title><rect class="{kind}" x="{x}" y="{y}" '
        f'width="{_WIDE}" height="{_HIGH}" rx="6" '
        f'fill="#eef2f7" stroke="#607d8b"/>{texts}</g>'
    )


def _cropped(text: str) -> str:
    return text if len(text) <= _FITS else text[: _FITS - 1] + "…"


def _timeline(tape: Tape, steps: dict[int, int]) -> str:
    """What happened in each optimizer step, in order."""
    rows: dict[int, list[tuple[str, Event]]] = {}
    for event in tape.events:
        kind = next((name for cls, name in _MARKS if isinstance(event, cls)), "")
        if kind and not (isinstance(event, Clip) and event.reads_only):
            rows.setdefault(steps.get(event.order, 0), []).append((kind, event))
    shown = list(rows.items())[:_MOST_STEPS]
    drawn = "".join(_events(index, step, events) for index, (step, events) in enumerate(shown))
    wide = 60 + 22 * max((len(events) for _, events in shown), default=1)
    legend = " ".join(
        f'<svg width="12" height="12"><rect class="{name}" width="12" height="12"/></svg> {name}'
        for _, name in _MARKS
    )
    more = (
        f"<p>The first {_MOST_STEPS} of {len(rows)} steps.</p>" if len(rows) > _MOST_STEPS else ""
    )
    return f"<p>{legend}</p>{_drawing(wide, _ROW * len(shown) + 4, drawn)}{more}"


def _drawing(wide: int, high: int, drawn: str) -> str:
    return (
        f'<div class="scroll"><svg width="{wide}" height="{high}" viewBox="0 0 {wide} '
        f'{high}">{drawn}</svg></div>'
    )


def _events(index: int, step: int, events: Sequence[tuple[str, Event]]) -> str:
    y = index * _ROW
    boxes = "".join(
        f'<rect class="{kind}" x="{50 + 22 * x}" y="{y}" width="18" height="{_ROW - 3}">'
        f"<title>{_text(event.at)} {_text(event.text)}</title></rect>"
        for x, (kind, event) in enumerate(events)
    )
    return f'<text x="0" y="{y + 11}">{step}</text>{boxes}'


def _norms(norms: Norms) -> str:
    """A row a parameter, a column a step; the darker, the larger the norm of its gradient, on a
    logarithmic scale.

    Where there are too many parameters, those that never got a gradient come first.
    """
    every = list(dict.fromkeys(name for _, row in norms for name in row))
    if not every:
        return "<p>No gradient was seen at a step.</p>"
    without = {name for name in every if all(row.get(name) is None for _, row in norms)}
    names = (
        every
        if len(every) <= _MOST_PARAMETERS
        else sorted(every, key=lambda name: name not in without)
    )
    names = names[:_MOST_PARAMETERS]
    columns = norms[:: max(1, math.ceil(len(norms) / _MOST_STEPS))]
    sizes = [
        math.log10(value)
        for _, row in columns
        for value in row.values()
        if value and math.isfinite(value)
    ]
    low, high = min(sizes, default=0.0), max(sizes, default=1.0)
    left = 8 + 8 * max(len(name) for name in names)
    cells = "".join(
        _cell(left + 12 * x, _ROW * y, name, step, row.get(name), low, high)
        for y, name in enumerate(names)
        for x, (step, row) in enumerate(columns)
    )
    labels = "".join(
        '<text x="0" '
        f'y="{_ROW * y + 11}"{" class=without" if name in without else ""}>{_text(name)}</text>'
        for y, name in enumerate(names)
    )
    wide = left + 12 * len(columns)
    more = f"<p>{len(names)} of {len(every)} parameters.</p>" if len(names) < len(every) else ""
    never = (
        f"<p>{len(without)} of {len(every)} parameters never got a gradient.</p>" if without else ""
    )
    scale = (
        f"<p>From {10**low:.2g} (light) to {10**high:.2g} (dark); yellow: zero; red: not finite; "
        "empty: none.</p>"
    )
    return never + scale + _drawing(wide, _ROW * len(names), labels + cells) + more


def _cell(
    x: int, y: int, name: str, step: int, value: float | None, low: float, high: float
) -> str:
    if value is None:
        said, color = "no gradient", "transparent"
    elif not math.isfinite(value):
        said, color = str(value), "#c62828"
    else:
        share = 0.0 if value <= 0 else (math.log10(value) - low) / ((high - low) or 1.0)
        said, color = (
            f"{value:.3g}",
            f"hsl(210 70% {92 - round(62 * share)}%)" if value > 0 else "#fff3c4",
        )
    title = f"<title>{_text(name)}, step {step}: {said}</title>"
    return (
        f'<rect x="{x}" y="{y}" width="11" height="{_ROW - 2}" fill="{color}" '
        f'stroke="#d0d4da">{title}</rect>'
    )
