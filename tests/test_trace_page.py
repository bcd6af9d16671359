"""The page of `gradlint trace --html` in a browser without a window; skipped where there is
none.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest
from traced import trace

from gradlint.finding import Span
from gradlint.trace.html import arranged
from gradlint.trace.routes import Stop, layers

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PROGRAM = """
import torch

torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 8, bias=False), torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(3, 8, 4):
    hidden = encoder(x).detach()
    loss = head(hidden).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# Appended to the page: does what a reader does, and writes down what there is to see.
READER = """
<script>
const seen = element => element !== null && element.checkVisibility();
const finding = document.querySelector("details");
const line = finding.querySelector("mark");
const before = seen(line);
finding.querySelector("summary").click();
const told = {before, after: seen(line), line: line.textContent, title: finding.querySelector("summary").textContent,
              drawn: [...document.querySelectorAll("svg")].filter(seen).length,
              boxes: [...document.querySelectorAll("rect.stop")].filter(seen).length,
              without: [...document.querySelectorAll("text.without")].filter(seen).map(text => text.textContent),
              table: [...document.querySelectorAll("td:first-child")].map(cell => cell.textContent),
              steps: document.querySelectorAll("rect.step").length};
const out = document.createElement("pre");
out.id = "told";
out.textContent = JSON.stringify(told);
document.body.append(out);
</script>
"""


def test_a_click_on_a_finding_shows_its_line(tmp_path: pathlib.Path) -> None:
    empty = tmp_path / "empty.html"
    empty.write_text("<p>here</p>")
    if "here" not in _shown(empty):
        pytest.skip("there is no browser that starts")
    (tmp_path / "train.py").write_text(PROGRAM)
    trace(tmp_path, "--html", "page.html", "train.py")
    page = tmp_path / "page.html"
    page.write_text(page.read_text().replace("</body>", READER + "</body>"))
    told = _open(page)
    assert (told["before"], told["after"]) == (True, False)  # the worst finding is open
    assert told["table"] == ["head", "encoder"]
    assert "hidden = encoder(x).detach()" in told["line"]
    assert re.search(r"^warning GL\d{3} train.py:8:\d+, step 0: ", told["title"])
    assert told["drawn"] >= 3
    assert told["boxes"] >= 2
    assert told["steps"] >= 3
    assert told["without"] == ["encoder.weight"]


def test_lines_go_around_what_they_do_not_lead_to() -> None:
    stops = [Stop(Span("train.py", number, 1, number, 2), str(number)) for number in range(7)]
    for one, others in enumerate(((1, 2, 6), (3, 5), (6,), (4,), (5, 6), (6,), ())):
        stops[one].inputs.extend(stops[other] for other in others)
    spots, wide, high = arranged(layers(stops))
    assert [spot.stop for spot in spots if spot.stop is not None and not spot.to] == [stops[6]]
    assert all(other.column == spot.column + 1 for spot in spots for other in spot.to)
    assert all(0 <= spot.x < wide and 0 <= spot.y < spot.y + spot.high <= high for spot in spots)
    for spot in spots:
        beside = [other for other in spots if other is not spot and other.column == spot.column]
        assert all(
            other.y + other.high < spot.y or spot.y + spot.high < other.y for other in beside
        )


def _shown(page: pathlib.Path) -> str:
    """The elements of a page as a browser shows it, or nothing."""
    if BROWSER is None:
        return ""
    plain = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    told = [
        "--virtual-time-budget=5000",
        "--dump-dom",
        f"--user-data-dir={page.parent / 'profile'}",
    ]
    words = [BROWSER, *plain, *told, page.as_uri()]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _open(page: pathlib.Path) -> dict[str, Any]:
    """What the reader in the page wrote down."""
    shown = _shown(page)
    found = re.search(r'<pre id="told">(.*?)</pre>', shown, re.DOTALL)
    assert found is not None, shown[-2000:]
    told: dict[str, Any] = json.loads(
        found[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")
    )
    return told
