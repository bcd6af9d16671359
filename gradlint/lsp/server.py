"""The server: its open documents, when each is checked, and what was found in it."""

from __future__ import annotations

import asyncio
import functools
import operator
import os
import pathlib
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from difflib import SequenceMatcher

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from gradlint import __version__
from gradlint.errors import UserError
from gradlint.finding import Finding
from gradlint.lsp.actions import Menu
from gradlint.lsp.convert import Client, moved
from gradlint.lsp.documents import Held, Override, View, encoded, examine, name, override, tried
from gradlint.source.lines import split_lines

_FIRST = "import torch\n\nloss = torch.zeros(())\nloss.backward()\n"
DEBOUNCE = 0.05  # seconds without a further change before a document is checked
# seconds, `DEBOUNCE` among them, that who looks at a place waits for the check of what was changed
LOOK = 0.08
STACK = 64 << 20  # bytes, for the thread in which the interpreter nests deeply


class Server(LanguageServer):
    """The language server: the open documents, what was found in each, and the checks that are
    under way.
    """

    def __init__(self) -> None:
        super().__init__(
            "gradlint", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full
        )
        self.names: dict[str, str] = {}  # the paths of the open documents, by their URI
        self.views: dict[str, View] = {}
        self.pending: dict[str, asyncio.Task[None]] = {}
        # of the fixes of a view, by its URI
        self.trials: dict[str, tuple[View, asyncio.Future[View]]] = {}
        self.sent: dict[str, Sequence[types.Diagnostic]] = {}
        self.outweigh: Override = override({})
        self.thread_of_checks = _thread()

    # --- documents

    def opened(self, document: types.TextDocumentItem) -> None:
        """A document is there; other than Python files have nothing to check."""
        path = name(document.uri)
        if document.language_id == "python" and path is not None:
            self.names[document.uri] = path
            self.check(document.uri, 0.0)

    def changed(self, uri: str) -> None:
        """A document has a new text: it is checked, and so are those in whose checks something was
        found in it.

        Nothing is said of what is no Python file, or none on disk: Markdown, `git:`, a cell of a
        notebook.
        """
        for each in self._about(uri):
            self.check(each, DEBOUNCE)

    def check_all(self, first: str = "") -> None:
        """Check all open documents, `first` before the others."""
        for uri in sorted(self.names, key=lambda each: each != first):
            self.check(uri, 0.0)

    def closed(self, uri: str) -> None:
        """A document is gone, and with it what was found in it and through it."""
        if self.names.pop(uri, None) is not None:
            self.views.pop(uri, None)
            self.trials.pop(uri, None)
            if task := self.pending.pop(uri, None):
                task.cancel()
            self.publish(uri)

    # --- checks

    def check(self, uri: str, delay: float) -> None:
        """Check a document after `delay` seconds, instead of any check of it that is not yet
        done.
        """
        if task := self.pending.get(uri):
            task.cancel()
        self.pending[uri] = task = asyncio.create_task(self._check(uri, delay))
        task.add_done_callback(functools.partial(self._checked, uri))

    async def _check(self, uri: str, delay: float) -> None:
        await asyncio.sleep(delay)
        texts = {
            self.names[each]: self.workspace.get_text_document(each).source for each in self.names
        }
        job = functools.partial(examine, self.names[uri], self._version(uri), texts, self.outweigh)
        try:
            self.views[uri] = await asyncio.get_running_loop().run_in_executor(
                self.thread_of_checks, job
            )
        except UserError as error:  # in the settings of the project
            self.complain(error)
            self.views.pop(uri, None)

    def complain(self, error: UserError) -> None:
        """Show what is wrong with the settings."""
        self.window_show_message(
            types.ShowMessageParams(types.MessageType.Error, f"gradlint: {error}")
        )

    def _checked(self, uri: str, task: asyncio.Task[None]) -> None:
        """A check is done, cancelled, or has met a bug of ours, which costs this document what was
        found in it.
        """
        if task.cancelled():
            return
        if error := task.exception():
            self.views.pop(uri, None)
            self._log(error)
        self.publish(uri)
        if (view := self.views.get(uri)) is not None and view.findings and uri in self.names:
            self.begin_trial(uri, view)

    def begin_trial(self, uri: str, view: View) -> asyncio.Future[View]:
        """Try the fixes of a view, once, whoever asks: before the check of a text that is written
        next.
        """
        if uri not in self.trials or self.trials[uri][0] is not view:
            job = asyncio.get_running_loop().run_in_executor(self.thread_of_checks, tried, view)
            job.add_done_callback(functools.partial(self._was_tried, uri, view))
            self.trials[uri] = view, job
        return self.trials[uri][1]

    def _was_tried(self, uri: str, view: View, job: asyncio.Future[View]) -> None:
        """A trial is done; a bug of ours in it costs the fixes."""
        error = None if job.cancelled() else job.exception()
        if error is not None:
            self._log(error)
        if self.views.get(uri) is view and not job.cancelled():
            self.views[uri] = replace(view, held=Held()) if error is not None else job.result()
            del self.trials[uri]

    def _log(self, error: BaseException) -> None:
        told = "".join(traceback.format_exception(error, limit=-20))
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, told))

    async def settled(self, uri: str) -> View | None:
        """What was found in the text that the document has now, by its own check and by those of
        others; None where it could not be checked.
        """
        while tasks := [
            self.pending[each] for each in self._about(uri) if not self.pending[each].done()
        ]:
            await asyncio.wait(tasks)
        if uri not in self.names:
            return None
        content = encoded(self.workspace.get_text_document(uri).source)
        return self._joined(
            uri, [view for view in self._seen(uri) if self._content(view, uri) == content]
        )

    async def proved(self, uri: str) -> View | None:
        """What is settled of a document, once the fixes of all that was found in it were tried."""
        while (view := await self.settled(uri)) is not None:
            if not await self._tried_about(uri):
                break
        return view

    async def _tried_about(self, uri: str) -> bool:
        """Whether fixes of what was found in a document had not yet been tried; now they were."""
        untried = [
            each
            for each in self._about(uri)
            if each in self.views and self.views[each].held is None
        ]
        if untried:
            await asyncio.wait([self.begin_trial(each, self.views[each]) for each in untried])
        return bool(untried)

    async def soon(self, uri: str, view: Awaitable[View | None]) -> View | None:
        """The view; TimeoutError where it takes too long for one of a document that was checked
        before.
        """
        async with asyncio.timeout(LOOK if uri in self.views else None):
            return await view

    async def recalled(self, uri: str) -> View | None:
        """What is remembered of a document, once the fixes of it were tried."""
        await self._tried_about(uri)
        return self.remembered(uri)

    def remembered(self, uri: str) -> View | None:
        """What was found in the document when it was last checked, whatever text it has now."""
        own = self.views.get(uri)
        of_then = [
            view
            for view in self._seen(uri)
            if own and self._content(view, uri) == self._content(own, uri)
        ]
        return self._joined(uri, of_then)

    def still(self, uri: str, view: View) -> Callable[[types.Range], types.Range | None]:
        """Where a place in the text that a view is of lies in the document now; None where its
        lines have changed.
        """
        now = split_lines(self.workspace.get_text_document(uri).source)
        same = SequenceMatcher(
            None, view.checked.texts.lines(self.names[uri]), now
        ).get_matching_blocks()
        return lambda place: moved(place, same)

    def _seen(self, uri: str) -> Sequence[View]:
        """The last views of what says something of a document, its own first."""
        return [self.views[each] for each in self._about(uri) if each in self.views]

    def _content(self, view: View, uri: str) -> object:
        return view.checked.texts.content(self.names[uri])

    def _joined(self, uri: str, views: Sequence[View]) -> View | None:
        if not views:
            return None
        findings = dict.fromkeys(finding for view in views for finding in view.findings)
        held = functools.reduce(operator.or_, (view.held or Held() for view in views))
        return replace(views[0], version=self._version(uri), findings=tuple(findings), held=held)

    def _about(self, uri: str) -> Sequence[str]:
        """The documents whose checks say something of the document `uri`: itself before the
        others.
        """
        path = self.names.get(uri)
        if path is None:
            return ()
        about = [
            each
            for each in self.names
            if each == uri or (each in self.views and self.views[each].speaks_of(path))
        ]
        return sorted(about, key=lambda each: each != uri)

    def _version(self, uri: str) -> int | None:
        return self.workspace.get_text_document(uri).version if uri in self.names else None

    # --- what the client is told

    def publish(self, uri: str) -> None:
        """Send what was found in the document `uri`, and wherever else something is new."""
        found: dict[str, dict[Finding, types.Diagnostic]] = {each: {} for each in (uri, *self.sent)}
        for view in self.views.values():
            client = self.client(view)
            for finding in view.findings:
                found.setdefault(self.uri(finding.at.path), {}).setdefault(
                    finding, client.diagnostic(finding)
                )
        for each, diagnostics in found.items():
            told = [
                diagnostics[finding]
                for finding in sorted(diagnostics, key=lambda finding: finding.sort_key)
            ]
            if each == uri or told != self.sent.get(each):
                self._send(each, told)

    def _send(self, uri: str, diagnostics: Sequence[types.Diagnostic]) -> None:
        self.sent[uri] = diagnostics
        if not diagnostics:
            del self.sent[uri]
        version = self.views[uri].version if uri in self.views else self._version(uri)
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics, version)
        )

    def client(self, view: View) -> Client:
        """How to tell the client of what was found."""
        capabilities = self.client_capabilities
        published = capabilities.text_document and capabilities.text_document.publish_diagnostics
        edit = capabilities.workspace and capabilities.workspace.workspace_edit
        return Client(
            self.uri,
            view.checked.texts.lines,
            self.workspace.position_codec,
            takes_related=bool(published and published.related_information),
            takes_versions=bool(edit and edit.document_changes),
        )

    @property
    def makes_edits_later(self) -> bool:
        """Whether the client asks for the edit of an action that came without one."""
        document = self.client_capabilities.text_document
        actions = document.code_action if document is not None else None
        later = actions.resolve_support if actions is not None else None
        return later is not None and "edit" in later.properties

    def menu(self, uri: str, view: View) -> Menu:
        """What can be offered for the findings of a view."""
        document = types.OptionalVersionedTextDocumentIdentifier(uri, view.version)
        return Menu(self.names[uri], view, self.client(view), document)

    def uri(self, path: str) -> str:
        """What the client calls the file at `path`: it may have opened a folder by a link, which a
        path never holds.
        """
        if opened := next((uri for uri, known in self.names.items() if known == path), None):
            return opened
        file = pathlib.Path(os.path.abspath(path))
        folders = [uris.to_fs_path(folder.uri) for folder in self.workspace.folders.values()]
        for folder in filter(None, (*folders, self.workspace.root_path)):
            if file.is_relative_to(linked := pathlib.Path(folder).resolve()):
                file = folder / file.relative_to(linked)
                break
        return str(uris.from_fs_path(str(file)))


def _thread() -> ThreadPoolExecutor:
    """The thread that checks, with a stack of its own; it begins with what the first check would
    wait for.
    """
    before = threading.stack_size(STACK)
    executor = ThreadPoolExecutor(1)
    executor.submit(examine, "begin.py", None, {"begin.py": _FIRST}, override({}))
    threading.stack_size(before)
    return executor
