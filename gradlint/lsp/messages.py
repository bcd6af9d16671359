"""The messages of the client, and what the server does with each."""

from __future__ import annotations

import os
from collections.abc import Iterator

from lsprotocol import types

from gradlint.errors import UserError
from gradlint.lsp.actions import FIX_ALL, QUICK_FIX, wants
from gradlint.lsp.convert import overlap
from gradlint.lsp.documents import View, override
from gradlint.lsp.server import Server
from gradlint.rule import rules


def serve() -> None:
    """Answer a client on standard input and output until it says that it is done."""
    made().start_io()


def made() -> Server:
    """A server that knows what to do with each message."""
    server = Server()
    server.feature(types.INITIALIZE)(_initialize)
    server.feature(types.INITIALIZED)(_initialized)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_changed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(_saved)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_closed)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_files_changed)
    server.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
    offered = types.CodeActionOptions([QUICK_FIX, FIX_ALL], resolve_provider=True)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, offered)(_code_actions)
    server.feature(types.CODE_ACTION_RESOLVE)(_resolved)
    return server


def _initialize(server: Server, params: types.InitializeParams) -> None:
    root = server.workspace.root_path
    if root is not None and os.path.isdir(root):
        os.chdir(root)  # as if `gradlint check` was run there
    try:
        server.outweigh = override(params.initialization_options or {})
    except UserError as error:
        server.complain(error)


def _initialized(server: Server, _params: types.InitializedParams) -> None:
    workspace = server.client_capabilities.workspace
    watched = workspace and workspace.did_change_watched_files
    if watched and watched.dynamic_registration:
        watchers = [
            types.FileSystemWatcher(pattern) for pattern in ("**/*.py", "**/pyproject.toml")
        ]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        wish = types.Registration("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        server.client_register_capability(types.RegistrationParams([wish]))


def _opened(server: Server, params: types.DidOpenTextDocumentParams) -> None:
    server.opened(params.text_document)


def _changed(server: Server, params: types.DidChangeTextDocumentParams) -> None:
    server.changed(params.text_document.uri)


def _saved(server: Server, params: types.DidSaveTextDocumentParams) -> None:
    server.check_all(first=params.text_document.uri)


def _closed(server: Server, params: types.DidCloseTextDocumentParams) -> None:
    server.closed(params.text_document.uri)


def _files_changed(server: Server, params: types.DidChangeWatchedFilesParams) -> None:
    if any(change.uri not in server.names for change in params.changes):
        server.check_all()


async def _hover(server: Server, params: types.HoverParams) -> types.Hover | None:
    """The page of the rule of what was found at a place."""
    uri = params.text_document.uri
    try:
        view = await server.soon(uri, server.settled(uri))
    except TimeoutError:
        view = server.remembered(uri)
    if view is None:
        return None
    still, client, cursor = (
        server.still(uri, view),
        server.client(view),
        types.Range(params.position, params.position),
    )
    found = [
        (each, still(client.range(each.at)))
        for each in view.findings
        if server.uri(each.at.path) == uri
    ]
    here = [(finding, place) for finding, place in found if place and overlap(place, cursor)]
    if not here:
        return None
    pages = dict.fromkeys(rules()[finding.code].page for finding, _ in here)
    return types.Hover(
        types.MarkupContent(types.MarkupKind.Markdown, "\n---\n\n".join(pages)), here[0][1]
    )


async def _code_actions(server: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri, asked, only = params.text_document.uri, params.range, params.context.only
    is_a_look = server.makes_edits_later and (only is None or not wants(only, FIX_ALL))
    try:
        proved = server.proved(uri)
        view = await (server.soon(uri, proved) if is_a_look else proved)
    except TimeoutError:
        view = await server.recalled(uri)
        return (
            list(_promised(server, view, uri, asked))
            if view is not None and wants(only, QUICK_FIX.value)
            else []
        )
    if view is None:
        return []
    menu = server.menu(uri, view)
    return list(menu.actions(menu.at(asked), only))


def _promised(
    server: Server, view: View, uri: str, asked: types.Range
) -> Iterator[types.CodeAction]:
    """The actions for what was last found at a place of a document, whose edits are made when one
    is chosen.
    """
    still, menu = server.still(uri, view), server.menu(uri, view)
    for finding in menu.findings:
        place = still(menu.client.range(finding.at))
        if place is not None and overlap(place, asked):
            for action in menu.actions([finding], [QUICK_FIX.value]):
                for diagnostic in action.diagnostics or ():
                    diagnostic.range = place
                action.edit, action.data = None, uri
                yield action


async def _resolved(server: Server, action: types.CodeAction) -> types.CodeAction:
    """An action with its edit; without one where what it was promised for is not found any more."""
    uri = action.data
    if not isinstance(uri, str) or not action.diagnostics:
        return action
    place = action.diagnostics[0].range
    view = await server.proved(uri)
    if view is None:
        return action
    menu = server.menu(uri, view)
    return next(
        (
            each
            for each in menu.actions(menu.at(place), [QUICK_FIX.value])
            if each.title == action.title
        ),
        action,
    )
