"""A page of the site in a headless browser, with a reader in it that reports what it sees."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import pathlib
import shutil
import subprocess
import threading
from collections.abc import Iterator
from queue import Queue
from typing import Any

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PLAIN = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the files of a site; in the pages stands the reader, which posts what it has seen."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def __init__(self, *given: Any, reader: str, posted: Queue[Any], **named: Any) -> None:
        self.reader, self.posted = reader, posted
        super().__init__(*given, **named)

    def do_GET(self) -> None:
        if not self.path.endswith("/"):
            return super().do_GET()
        page = pathlib.Path(self.translate_path(self.path)) / "index.html"
        content = (
            page.read_text(encoding="utf-8").replace("</body>", self.reader + "</body>").encode()
        )
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        return None

    def do_POST(self) -> None:
        self.posted.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Says nothing."""


@contextlib.contextmanager
def served(site: pathlib.Path, reader: str) -> Iterator[tuple[str, Queue[Any]]]:
    """The address of a site, and what the reader in its pages posts."""
    posted: Queue[Any] = Queue()
    handler = functools.partial(_Handler, directory=str(site), reader=reader, posted=posted)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", posted
        server.shutdown()


def told(address: str, posted: Queue[Any], folder: pathlib.Path, seconds: int) -> Any:
    """What the reader of a page posts when the browser opens it."""
    assert BROWSER is not None
    command = [BROWSER, *PLAIN, f"--user-data-dir={folder / 'profile'}", address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
        try:
            return posted.get(timeout=seconds)
        finally:
            browser.kill()
