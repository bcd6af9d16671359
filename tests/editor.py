"""An editor as a gradlint server sees one: pygls' own client, over standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import pathlib
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

PATIENCE = 120  # seconds for any one answer: the machine that tests may be busy


class Editor:
    """Opens and changes documents, and remembers what it is told about them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.client = LanguageClient("editor", "1")
        self.shown: dict[str, types.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self.watched: list[str] = []
        self.versions: dict[str, int] = {}
        self.news = asyncio.Event()
        listeners: dict[str, Callable[[Any], None]] = {
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: self._told,
            types.WINDOW_SHOW_MESSAGE: self._message,
            types.WINDOW_LOG_MESSAGE: self._message,
            types.CLIENT_REGISTER_CAPABILITY: self._registered,
        }
        for told, listener in listeners.items():
            self.client.feature(told)(functools.partial(listener))

    @property
    def server(self) -> asyncio.subprocess.Process:
        """The process of the server."""
        assert self.client._server
        return self.client._server

    def _told(self, params: types.PublishDiagnosticsParams) -> None:
        self.shown[params.uri] = params
        self.news.set()

    def _message(self, params: types.ShowMessageParams | types.LogMessageParams) -> None:
        self.messages.append(params.message)
        self.news.set()

    def _registered(self, params: types.RegistrationParams) -> None:
        self.watched += [each.method for each in params.registrations]
        self.news.set()

    def uri(self, name: str) -> str:
        return name if ":" in name else (self.folder / name).as_uri()

    def open(self, name: str, text: str, language: str = "python") -> None:
        self.versions[name] = 1
        document = types.TextDocumentItem(self.uri(name), language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def change(self, name: str, text: str) -> None:
        self.versions[name] += 1
        document = types.VersionedTextDocumentIdentifier(self.versions[name], self.uri(name))
        whole = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    def save(self, name: str) -> None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(self._identifier(name)))

    def close(self, name: str) -> None:
        self.versions.pop(name)
        self.client.text_document_did_close(
            types.DidCloseTextDocumentParams(self._identifier(name))
        )

    def changed_on_disk(self, name: str) -> None:
        """Something else than the editor has written a file."""
        event = types.FileEvent(self.uri(name), types.FileChangeType.Changed)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    def lines(self, name: str) -> list[int] | None:
        """Where something is shown in a document at this moment; None where nothing was ever said
        of it.
        """
        shown = self.shown.get(self.uri(name))
        return None if shown is None else [each.range.start.line for each in shown.diagnostics]

    def _identifier(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    async def diagnostics(self, name: str) -> list[types.Diagnostic]:
        """What the server says of the document as it is now."""
        uri = self.uri(name)

        def is_current() -> bool:
            return uri in self.shown and self.shown[uri].version == self.versions.get(name)

        await self.until(is_current)
        return list(self.shown[uri].diagnostics)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something that is told makes `holds()` true."""
        while not holds():
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), PATIENCE)

    async def codes(self, name: str) -> list[object]:
        """The codes of what is found in the document as it is now."""
        return [each.code for each in await self.diagnostics(name)]

    async def actions(
        self, name: str, at: types.Range, only: Sequence[str] | None = None
    ) -> list[types.CodeAction]:
        """What is offered at a place."""
        params = types.CodeActionParams(
            self._identifier(name), at, types.CodeActionContext([], only=only)
        )
        answer = await asyncio.wait_for(
            self.client.text_document_code_action_async(params), PATIENCE
        )
        return [each for each in answer or () if isinstance(each, types.CodeAction)]

    async def resolved(self, action: types.CodeAction) -> types.CodeAction:
        """An action that was chosen, as it is to be carried out."""
        return await asyncio.wait_for(self.client.code_action_resolve_async(action), PATIENCE)

    async def hover(self, name: str, line: int, character: int) -> types.Hover | None:
        """What is shown over a place."""
        params = types.HoverParams(self._identifier(name), types.Position(line, character))
        return await asyncio.wait_for(self.client.text_document_hover_async(params), PATIENCE)


@contextlib.asynccontextmanager
async def editor(
    folder: pathlib.Path, options: Any = None, capabilities: types.ClientCapabilities | None = None
) -> AsyncIterator[Editor]:
    """An editor whose workspace is `folder`, from the first message to the last."""
    made = Editor(folder)
    await made.client.start_io(sys.executable, "-m", "gradlint", "server", cwd=folder)
    params = types.InitializeParams(
        capabilities or types.ClientCapabilities(),
        root_uri=folder.as_uri(),
        initialization_options=options,
    )
    try:
        await asyncio.wait_for(made.client.initialize_async(params), PATIENCE)
        made.client.initialized(types.InitializedParams())
        yield made
        await asyncio.wait_for(made.client.shutdown_async(None), PATIENCE)
        made.client.exit(None)
        assert await asyncio.wait_for(made.server.wait(), PATIENCE) == 0
    finally:
        if made.server.returncode is None:
            made.server.kill()
        await made.client.stop()  # type: ignore[no-untyped-call]


def edited(text: str, action: types.CodeAction) -> str:
    """What the edits of an action make of an ASCII text."""
    assert action.edit
    changes = action.edit.document_changes or ()
    edits = [
        each
        for change in changes
        if isinstance(change, types.TextDocumentEdit)
        for each in change.edits
    ]
    edits += [each for changed in (action.edit.changes or {}).values() for each in changed]
    lines = text.splitlines(keepends=True)
    for edit in sorted(
        edits, key=lambda each: (each.range.start.line, each.range.start.character), reverse=True
    ):
        first, last = edit.range.start, edit.range.end
        assert isinstance(edit, types.TextEdit)
        before, after = (
            lines[first.line][: first.character],
            [*lines, ""][last.line][last.character :],
        )
        lines[first.line : last.line + 1] = (before + edit.new_text + after).splitlines(
            keepends=True
        )
    return "".join(lines)
