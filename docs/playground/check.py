"""What the playground asks of gradlint, in the browser: the findings in a program, and the program
with its fixes.
"""

from __future__ import annotations

import json
import pathlib
import sys
import types

sys.path.insert(0, "/gradlint")

try:
    import libcst  # noqa: F401  where it could be loaded

    ALL_FIXES = True
except ImportError:
    ALL_FIXES = False
    # reads what is newer than this Python, which is the newest
    _second = types.ModuleType("gradlint.source.concrete")
    _second.read = lambda _text: types.SimpleNamespace(line=None, newer=())
    _second.comments = lambda _text: None
    sys.modules[_second.__name__] = _second

    def _moves_nothing(*_: object) -> None:
        """In the place of what moves, wraps and removes statements."""
        raise NoFixError

    _blocks = types.ModuleType("gradlint.fix.blocks")
    _blocks.Draft = _moves_nothing
    sys.modules[_blocks.__name__] = _blocks

from gradlint import checker, config
from gradlint.errors import UserError
from gradlint.finding import Finding
from gradlint.fix.attach import Files
from gradlint.fix.offers import Trials, offered
from gradlint.fix.trial import changed
from gradlint.report._object import as_object, not_reached
from gradlint.rule import NoFixError

FILE = pathlib.Path("train.py")


def check(text: str) -> str:
    """The findings in a program, and the program with all of their fixes (null where there is
    none), as JSON.
    """
    settings_for = config.settings_finder(lambda settings: settings, isolated=True)
    try:
        checked = checker.check(
            [FILE], settings_for, given={FILE: text.encode("utf-8", "replace")}, jobs=1
        )
        settings = settings_for(pathlib.Path.cwd())
        found = checked.shown(settings)
        shown = {each.code for each in found}
        found = tuple(each for each in offered(checked, settings) if each.code in shown)
        outcome = checked.outcome(settings, findings=found)
        mended = _mended(checked, [each for each in found if each.fix is not None])
    except UserError as error:
        return json.dumps(
            {"findings": [], "mended": None, "error": str(error), "all_fixes": ALL_FIXES}
        )
    findings = [as_object(each) for each in (*outcome.findings, *not_reached(outcome))]
    return json.dumps(
        {"findings": findings, "mended": mended, "error": None, "all_fixes": ALL_FIXES}
    )


def _mended(checked: checker.Checked, found: list[Finding]) -> str | None:
    files = Files(checked.texts.text)
    together = Trials(checked, files).together(found)
    given = {pathlib.Path(path): content for path, content in checked.texts.given.items()}
    after = changed(checked, given, together, files).contents[FILE]
    return None if after == given[FILE] else after.decode()
