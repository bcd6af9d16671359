"""The language server, over standard input and output, as an editor meets it."""

import asyncio
import pathlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from commandline import Run
from editor import Editor, edited, editor
from lsprotocol import types

CONSTANT = """\
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for features, labels in loader:
    output = model(features)
    loss = torch.zeros(()) if labels.isnan().all() else (output - labels).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MENDED = CONSTANT.replace("torch.zeros(())", "0.0 * output.sum()")
LOSSES = "def squared(output, labels):\n    return (output.detach() - labels).square().mean()\n"
TRAIN = """\
import torch
from losses import squared

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for features in torch.randn(9, 5, 3):
    optimizer.zero_grad()
    squared(model(features), features.sum(1, keepdim=True)).backward()
    optimizer.step()
"""
EVERYWHERE = types.Range(types.Position(0, 0), types.Position(1000, 0))
MODERN = types.ClientCapabilities(
    types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
            dynamic_registration=True
        ),
    ),
    types.TextDocumentClientCapabilities(
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(related_information=True)
    ),
)


Scenario = Callable[[Editor], Awaitable[None]]
Play = Callable[..., None]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Editor]]:
    """One editor for the tests that ask nothing special of it."""
    with asyncio.Runner() as runner:
        opened = editor(tmp_path_factory.mktemp("workspace"), capabilities=MODERN)
        yield runner, runner.run(opened.__aenter__())
        runner.run(opened.__aexit__(None, None, None))


@pytest.fixture
def play(shared: tuple[asyncio.Runner, Editor], tmp_path: pathlib.Path) -> Play:
    """Plays what happens in an editor: the shared one, or one of its own, whose workspace is the
    test's folder.
    """
    runner, common = shared

    async def alone(scenario: Scenario, given: dict[str, Any]) -> None:
        async with editor(tmp_path, **given) as opened:
            await scenario(opened)

    async def together(scenario: Scenario) -> None:
        try:
            await scenario(common)
        finally:
            for name in list(common.versions):
                common.close(name)
                assert await common.codes(name) == []

    def play_scenario(scenario: Scenario, **given: Any) -> None:
        runner.run(alone(scenario, given) if given else together(scenario))

    return play_scenario


def span(found: types.Diagnostic) -> tuple[int, int, int, int]:
    return (
        found.range.start.line,
        found.range.start.character,
        found.range.end.line,
        found.range.end.character,
    )


def test_what_is_typed_is_checked_before_it_is_saved(play: Play) -> None:
    async def scenario(at: Editor) -> None:
        at.open("train.py", CONSTANT)
        (found,) = await at.diagnostics("train.py")
        assert (found.code, found.severity, found.source) == (
            "GL101",
            types.DiagnosticSeverity.Error,
            "gradlint",
        )
        assert span(found) == (6, 11, 6, 26)
        assert found.code_description
        assert found.code_description.href.endswith("/rules/constant-loss")
        at.change("train.py", MENDED)
        assert await at.codes("train.py") == []
        at.change("train.py", "# a line\n" + CONSTANT)
        assert [span(found) for found in await at.diagnostics("train.py")] == [(7, 11, 7, 26)]
        at.save("train.py")
        at.close("train.py")
        assert await at.codes("train.py") == []

    play(scenario)


def test_every_state_of_a_line_that_is_being_typed_is_survived(play: Play) -> None:
    async def scenario(at: Editor) -> None:
        at.open("train.py", "")
        assert await at.codes("train.py") == []
        for end in range(120, len(CONSTANT), 7):
            at.change("train.py", CONSTANT[:end])
        at.change("train.py", CONSTANT[:-14] + "(")
        assert await at.codes("train.py") == ["GL001"]
        assert await at.actions("train.py", EVERYWHERE) == []
        at.change("train.py", "def f(:\n\x00\ud800")
        assert await at.codes("train.py") == ["GL001"]
        at.change("train.py", CONSTANT)
        assert await at.codes("train.py") == ["GL101"]
        assert at.messages == []

    play(scenario)


WIDE = 'import torch\nname = "😀é"; loss = torch.zeros(()); loss.backward()\n'


def test_columns_are_counted_in_utf_16(play: Play) -> None:
    async def scenario(at: Editor) -> None:
        at.open("train.py", WIDE)
        assert [span(found) for found in await at.diagnostics("train.py")] == [(1, 21, 1, 36)]

    play(scenario)


def test_a_fix_a_suppression_and_all_safe_fixes_are_offered(play: Play) -> None:
    async def scenario(at: Editor) -> None:
        at.open("train.py", CONSTANT)
        (found,) = await at.diagnostics("train.py")
        mend, suppress, mend_all = await at.actions("train.py", found.range)
        assert mend.title == "GL101: Hang the zero on `output`"
        assert mend.is_preferred
        assert list(mend.diagnostics or ()) == [found]
        assert edited(CONSTANT, mend) == edited(CONSTANT, mend_all) == MENDED
        at.change("train.py", edited(CONSTANT, suppress))
        assert await at.codes("train.py") == []
        assert "mean()  # gradlint: ignore[GL101]\n" in edited(CONSTANT, suppress)

    play(scenario)


def test_a_suppression_leaves_what_the_declared_encoding_lacks(play: Play) -> None:
    text = (
        '# -*- coding: latin-1 -*-\nimport torch\nprice = "9 €"; loss = torch.zeros(()); '
        "loss.backward()\n"
    )

    async def scenario(at: Editor) -> None:
        at.open("train.py", text)
        (suppress,) = await at.actions("train.py", EVERYWHERE)
        assert edited(text, suppress) == text[:-1] + "  # gradlint: ignore[GL101]\n"

    play(scenario)


def test_actions_are_about_their_place_and_their_kind_and_this_version(play: Play) -> None:
    async def scenario(at: Editor) -> None:
        at.open("train.py", MENDED)
        at.change("train.py", CONSTANT)
        (mend_all,) = await at.actions("train.py", EVERYWHERE, ["source"])
        assert mend_all.kind == "source.fixAll.gradlint"
        assert mend_all.edit
        (change,) = mend_all.edit.document_changes or ()
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.version == 2
        elsewhere = types.Range(types.Position(0, 0), types.Position(0, 3))
        assert await at.actions("train.py", elsewhere, ["quickfix"]) == []

    play(scenario)


def test_an_unsafe_fix_says_so_and_is_no_part_of_all_safe_fixes(play: Play) -> None:
    text = TRAIN.replace("from losses import squared\n", "\n\n" + LOSSES)

    async def scenario(at: Editor) -> None:
        at.open("train.py", text)
        (found,) = await at.diagnostics("train.py")
        mend, _ = await at.actions("train.py", found.range)
        assert mend.title.endswith("(unsafe)")
        assert not mend.is_preferred
        assert edited(text, mend) == text.replace("output.detach()", "output")

    play(scenario)


WINDOW = TRAIN[: TRAIN.index("for")].replace("from losses import squared\n", "") + (
    "window = []\n"
    "for features in torch.randn(9, 5, 3):\n"
    "    window.append(model(features).exp().mean().detach())\n"
    "    optimizer.zero_grad()\n"
    "    sum(window[-3:]).backward()\n"
    "    optimizer.step()\n"
)
RESOLVING = types.ClientCapabilities(
    types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
    ),
    types.TextDocumentClientCapabilities(
        code_action=types.CodeActionClientCapabilities(
            resolve_support=types.ClientCodeActionResolveOptions(["edit"])
        )
    ),
)


@pytest.mark.parametrize("capabilities", [None, RESOLVING])
def test_a_fix_that_would_be_taken_back_is_not_made(
    play: Play, capabilities: types.ClientCapabilities | None
) -> None:
    """It lets later rounds into a freed graph."""

    async def scenario(at: Editor) -> None:
        at.open("train.py", WINDOW)
        assert await at.codes("train.py") == ["GL102"]
        promised = await at.actions("train.py", EVERYWHERE)
        made = [await at.resolved(each) if each.edit is None else each for each in promised]
        assert [each.title for each in made if each.edit] == ["GL102: Suppress it on this line"]
        if len(promised) == 2:  # while it was tried
            (left,) = await at.actions("train.py", EVERYWHERE)
            assert left.title == "GL102: Suppress it on this line"

    play(scenario, **({} if capabilities is None else {"capabilities": capabilities}))


def test_the_page_of_the_rule_is_shown_over_a_finding(play: Play, run: Run) -> None:
    async def scenario(at: Editor) -> None:
        at.open("train.py", CONSTANT)
        shown = await at.hover("train.py", 6, 15)
        assert shown
        assert isinstance(shown.contents, types.MarkupContent)
        assert shown.contents.value == run("rule", "GL101").out
        assert await at.hover("train.py", 0, 2) is None

    play(scenario)


NESTED = (
    "".join(f"{'    ' * n}for _ in range(3):\n" for n in range(12))
    + "    " * 12
    + "x = torch.rand(3)\n"
)
LONG = "import torch\n" + NESTED * 30  # takes longer to check than who looks at a place waits
DOWN = LONG.count("\n")


def test_who_looks_at_a_place_does_not_wait_for_a_long_check(play: Play) -> None:
    """What was found before in lines that are left is shown there, and mended when its check is
    done.
    """

    async def scenario(at: Editor) -> None:
        at.open("train.py", CONSTANT)
        assert await at.codes("train.py") == ["GL101"]
        at.change("train.py", LONG + CONSTANT)
        shown = await at.hover("train.py", DOWN + 6, 15)
        assert at.shown[at.uri("train.py")].version == 1, (
            "the check was over before it was waited for"
        )
        assert shown
        assert shown.range
        assert shown.range.start.line == DOWN + 6
        at.change("train.py", "# a comment\n" + CONSTANT)
        assert [span(each) for each in await at.diagnostics("train.py")] == [(7, 11, 7, 26)]
        at.change("train.py", CONSTANT.replace("loss =", "cost ="))
        assert await at.codes("train.py") == []
        assert await at.hover("train.py", 6, 15) is None

    play(scenario)


def test_an_action_that_was_promised_is_carried_out_where_it_still_holds(play: Play) -> None:
    there = types.Range(types.Position(DOWN + 6, 15), types.Position(DOWN + 6, 15))

    async def scenario(at: Editor) -> None:
        at.open("train.py", CONSTANT)
        await at.diagnostics("train.py")
        at.change("train.py", LONG + CONSTANT)
        mend, suppress = await at.actions("train.py", there)
        assert at.shown[at.uri("train.py")].version == 1, (
            "the check was over before it was waited for"
        )
        assert (mend.title, mend.edit, suppress.edit) == (
            "GL101: Hang the zero on `output`",
            None,
            None,
        )
        at.change("train.py", LONG.splitlines(keepends=True)[0] + "\n" * (DOWN - 1) + CONSTANT)
        text = "import torch\n" + "\n" * (DOWN - 1) + CONSTANT
        assert edited(text, await at.resolved(mend)) == text.replace(
            "torch.zeros(())", "0.0 * output.sum()"
        )
        assert "ignore[GL101]" in edited(text, await at.resolved(suppress))
        at.change("train.py", "\n" * DOWN + MENDED)
        assert (await at.resolved(mend)).edit is None
        assert (await at.resolved(types.CodeAction("of another server"))).edit is None
        assert await at.actions("train.py", EVERYWHERE, ["source"]) == []

    play(scenario, capabilities=RESOLVING)


def test_a_finding_in_an_imported_file_is_shown_there_and_follows_its_text(play: Play) -> None:
    async def scenario(at: Editor) -> None:
        (at.folder / "losses.py").write_text(LOSSES)
        at.open("train.py", TRAIN)
        assert await at.codes("train.py") == []
        (found,) = await at.diagnostics("losses.py")
        assert (found.code, found.range.start.line) == ("GL102", 1)
        assert found.related_information
        assert {each.location.uri for each in found.related_information} == {at.uri("train.py")}
        at.open("losses.py", LOSSES)
        assert await at.codes("losses.py") == ["GL102"]
        assert await at.hover("losses.py", 1, 20)
        mend, suppress = await at.actions("losses.py", EVERYWHERE)
        assert edited(LOSSES, mend) == LOSSES.replace(".detach()", "")
        at.change("losses.py", edited(LOSSES, suppress))
        await at.until(lambda: at.lines("losses.py") == [])
        assert await at.actions("losses.py", EVERYWHERE) == []
        at.change("losses.py", LOSSES)
        at.save("losses.py")
        await at.until(lambda: at.lines("losses.py") == [1])
        at.change("losses.py", "# not saved\n" + LOSSES)
        await at.until(lambda: at.lines("losses.py") == [2])
        at.change("losses.py", LOSSES.replace(".detach()", ""))
        await at.until(lambda: at.lines("losses.py") == [])
        at.change("losses.py", LOSSES)
        at.save("losses.py")
        await at.until(lambda: at.lines("losses.py") == [1])
        at.close("train.py")
        at.close("losses.py")
        await at.until(lambda: at.lines("losses.py") == [])

    play(scenario)


def test_a_file_in_a_folder_that_was_opened_by_a_link_is_shown_there(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "losses.py").write_text(LOSSES)
    (tmp_path / "home").symlink_to(tmp_path / "disk")

    async def scenario() -> None:
        async with editor(tmp_path / "home", capabilities=MODERN) as at:
            at.open("train.py", TRAIN)
            assert await at.codes("losses.py") == ["GL102"]
            at.open("losses.py", LOSSES)
            assert await at.hover("losses.py", 1, 20)
            assert [uri for uri, shown in at.shown.items() if shown.diagnostics] == [
                at.uri("losses.py")
            ]

    asyncio.run(scenario())


def test_the_settings_of_the_project_and_those_of_the_editor_hold(
    play: Play, tmp_path: pathlib.Path
) -> None:
    settings = tmp_path / "pyproject.toml"
    settings.write_text('[tool.gradlint]\nextend-exclude = ["vendored"]\n')
    (tmp_path / "vendored").mkdir()

    async def scenario(at: Editor) -> None:
        at.open("vendored/train.py", CONSTANT)
        assert await at.codes("vendored/train.py") == []
        at.open("train.py", CONSTANT + "x.detach().sum().backward()\n")
        assert await at.codes("train.py") == ["GL101"]
        await at.until(lambda: types.WORKSPACE_DID_CHANGE_WATCHED_FILES in at.watched)
        settings.write_text('[tool.gradlint]\nignore = ["GL101"]\n')
        at.changed_on_disk("pyproject.toml")
        await at.until(lambda: at.lines("train.py") == [])
        settings.write_text('[tool.gradlint]\nignored = ["GL101"]\n')
        at.changed_on_disk("pyproject.toml")
        await at.until(
            lambda: any(
                "has no setting 'ignored'; did you mean 'ignore'?" in each for each in at.messages
            )
        )
        settings.unlink()
        at.changed_on_disk("pyproject.toml")
        await at.until(lambda: at.lines("train.py") == [6])

    play(scenario, options={"ignore": ["GL102"]}, capabilities=MODERN)


def test_a_client_that_counts_bytes_and_gives_settings_that_do_not_exist_is_served(
    play: Play,
) -> None:
    async def scenario(at: Editor) -> None:
        await at.until(lambda: any("no setting 'selects'" in each for each in at.messages))
        at.open("train.py", WIDE)
        assert [span(found) for found in await at.diagnostics("train.py")] == [(1, 24, 1, 39)]
        (suppress,) = await at.actions("train.py", EVERYWHERE)
        assert suppress.edit
        assert list(suppress.edit.changes or ()) == [at.uri("train.py")]

    encodings = types.GeneralClientCapabilities(
        position_encodings=[types.PositionEncodingKind.Utf8]
    )
    play(
        scenario, options={"selects": []}, capabilities=types.ClientCapabilities(general=encodings)
    )


def test_what_was_never_saved_is_checked_and_what_is_not_python_is_not(play: Play) -> None:
    async def scenario(at: Editor) -> None:
        at.open("notes.md", CONSTANT, language="markdown")
        at.change("notes.md", CONSTANT)
        at.close("notes.md")
        at.open("untitled:Untitled-1", CONSTANT)
        assert await at.codes("untitled:Untitled-1") == ["GL101"]
        assert at.uri("notes.md") not in at.shown

    play(scenario)


@pytest.mark.parametrize(
    "name", ["notes.md", "git:/old/train.py?%7B%7D", "vscode-notebook-cell:/x/notes.ipynb#W0"]
)
def test_what_is_not_checked_is_of_no_account_beside_what_is(play: Play, name: str) -> None:
    async def scenario(at: Editor) -> None:
        at.open("train.py", CONSTANT)
        assert await at.codes("train.py") == ["GL101"]
        at.open(name, CONSTANT, language="markdown" if name.endswith(".md") else "python")
        at.change(name, CONSTANT + "\n")
        assert await at.hover(name, 0, 0) is None
        assert await at.actions(name, EVERYWHERE) == []
        at.save(name)
        at.close(name)
        at.change("train.py", CONSTANT.replace("zeros", "ones"))
        assert await at.codes("train.py") == ["GL101"]
        assert at.uri(name) not in at.shown
        assert at.messages == []

    play(scenario)


def test_a_program_that_nests_too_deeply_costs_the_server_nothing(play: Play) -> None:
    async def scenario(at: Editor) -> None:
        at.open(
            "deep.py", "import torch\nloss = " + "-" * 50_000 + "torch.zeros(())\nloss.backward()\n"
        )
        await at.diagnostics("deep.py")
        at.open(
            "sums.py",
            "import torch\nloss = " + "x + " * 3000 + "torch.zeros(())\nloss.backward()\n",
        )
        await at.diagnostics("sums.py")
        calls = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(500))
        at.open(
            "calls.py",
            f"import torch\n{calls}\ndef f500(x):\n    return x\nf0(torch.zeros(())).backward()\n",
        )
        await at.diagnostics("calls.py")
        at.open("train.py", CONSTANT)
        assert await at.codes("train.py") == ["GL101"]

    play(scenario)


def test_without_pygls_the_command_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "gradlint.lsp.server", raising=False)
    monkeypatch.setitem(sys.modules, "pygls", None)
    ran = run("server")
    assert (ran.code, ran.err) == (
        2,
        "gradlint: the language server needs pygls: pip install 'torch-gradlint[lsp]'\n",
    )
