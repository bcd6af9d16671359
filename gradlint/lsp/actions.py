"""What an editor offers at a place: the fixes of what was found there, all safe fixes at once, and
suppressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsprotocol import types

from gradlint.annotate import suppressed
from gradlint.finding import Finding
from gradlint.fix.attach import with_fixes
from gradlint.fix.edits import joined
from gradlint.lsp.convert import Client, overlap
from gradlint.lsp.documents import Held, View, is_safe

QUICK_FIX = types.CodeActionKind.QuickFix
FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.gradlint"


@dataclass(frozen=True, slots=True)
class Menu:
    """Makes the actions for one document, which is at `path` and has this version for the
    client.
    """

    path: str
    view: View
    client: Client
    document: types.OptionalVersionedTextDocumentIdentifier

    @property
    def findings(self) -> list[Finding]:
        """What was found in the document; nothing where it does not parse, and so cannot be mended
        or commented.
        """
        if self.view.files.file(self.path) is None:
            return []
        return [finding for finding in self.view.findings if finding.at.path == self.path]

    def at(self, asked: types.Range) -> list[Finding]:
        """What was found at a place."""
        return [
            finding for finding in self.findings if overlap(self.client.range(finding.at), asked)
        ]

    def actions(
        self, here: Sequence[Finding], only: Sequence[str] | None
    ) -> Iterator[types.CodeAction]:
        """The actions for these findings, and for all of them, of the kinds that are wanted."""
        if wants(only, QUICK_FIX.value):
            yield from self._fixes(here)
            yield from self._suppressions(here)
        if wants(only, FIX_ALL):
            yield from self._all_safe_fixes()

    @property
    def _held(self) -> Held:
        return self.view.held or Held()

    def _fixes(self, here: Sequence[Finding]) -> Iterator[types.CodeAction]:
        for finding in with_fixes(here, self.view.files):
            if (
                finding.fix is not None
                and finding in self._held.alone
                and finding.fix.edits[0].at.path == finding.at.path
            ):
                title = (
                    f"{finding.code}: "
                    f"{finding.fix.message}{'' if is_safe(finding) else ' (unsafe)'}"
                )
                edits = self.client.text_edits(finding.fix.edits)
                yield self._action(title, edits, [finding], is_preferred=is_safe(finding))

    def _suppressions(self, here: Sequence[Finding]) -> Iterator[types.CodeAction]:
        file = self.view.files.file(self.path)
        if file is None:
            return
        for finding in here:
            if place := suppressed(file.layout.text, finding, file.layout.in_strings):
                number, line = place
                before = self.client.lines(self.path)[number - 1]
                kept = next(
                    (
                        n
                        for n, (one, other) in enumerate(zip(before, line, strict=False))
                        if one != other
                    ),
                    len(before),
                )
                edits = [
                    types.TextEdit(
                        self.client.rest_of_line(self.path, number, kept + 1), line[kept:]
                    )
                ]
                yield self._action(f"{finding.code}: Suppress it on this line", edits, [finding])

    def _all_safe_fixes(self) -> Iterator[types.CodeAction]:
        """Those that hold when all of them are made at once."""
        safe = [
            each
            for each in with_fixes(self.findings, self.view.files)
            if each in self._held.together
            and each.fix is not None
            and each.fix.edits[0].at.path == each.at.path
        ]
        file = self.view.files.file(self.path)
        if not safe or file is None:
            return
        _, kept = joined(file.layout, [each.fix for each in safe if each.fix])
        if kept:
            edits = self.client.text_edits(edit for fix in kept for edit in fix.edits)
            mended = [each for each in safe if each.fix in kept]
            yield self._action("gradlint: Apply all safe fixes", edits, mended, kind=FIX_ALL)

    def _action(
        self,
        title: str,
        edits: Sequence[types.TextEdit],
        findings: Sequence[Finding],
        *,
        kind: str = QUICK_FIX.value,
        is_preferred: bool = False,
    ) -> types.CodeAction:
        change = (
            types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(self.document, edits)])
            if self.client.takes_versions
            else types.WorkspaceEdit(changes={self.document.uri: edits})
        )
        solved = [self.client.diagnostic(each) for each in findings]
        return types.CodeAction(
            title, kind=kind, diagnostics=solved, is_preferred=is_preferred or None, edit=change
        )


def wants(only: Sequence[str] | None, kind: str) -> bool:
    """Whether a kind is one of those asked for; `source` asks for `source.fixAll.gradlint`, too."""
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in only)
