"""SARIF 2.1.0, which code scanning services and editors read."""

from __future__ import annotations

import json
import os
import re
import urllib.parse
from collections.abc import Sequence
from typing import Any

from gradlint import __version__
from gradlint.finding import Edit, Finding, Fix, Severity, Span
from gradlint.fingerprint import fingerprints, relative
from gradlint.report import Outcome
from gradlint.report._place import in_cell
from gradlint.rule import Rule, rules

SHOWS_FIXES = True
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LINK = re.compile(r"\[(?=[^\]]*\]\()")
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def render(outcome: Outcome) -> str:
    """One run with its rules, and one result a finding."""
    broken = [rules()[code] for code in sorted({finding.code for finding in outcome.findings})]
    names = fingerprints(outcome.findings, outcome.lines, outcome.root)
    indices = {rule.code: index for index, rule in enumerate(broken)}
    run = {
        "tool": {"driver": _driver(broken)},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": outcome.root.absolute().as_uri() + "/"}},
        "results": [
            _result(each, indices[each.code], names[each], outcome) for each in outcome.findings
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver(broken: Sequence[Rule]) -> dict[str, Any]:
    return {
        "name": "gradlint",
        "semanticVersion": __version__,
        "informationUri": "https://torch-gradlint.readthedocs.io",
        "rules": [_rule(rule) for rule in broken],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.page, "markdown": rule.page},
        "helpUri": rule.url,
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, index: int, fingerprint: str, outcome: Outcome) -> dict[str, Any]:
    text = _message(finding.at, finding.message + (f"\n{finding.help}" if finding.help else ""))
    related = [
        {
            "id": number,
            **_location(each.at, outcome),
            "message": {"text": _message(each.at, each.message)},
        }
        for number, each in enumerate(finding.related, 1)
    ]
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [_location(finding.at, outcome)],
        "partialFingerprints": {"gradlint/v1": fingerprint},
        **({"relatedLocations": related} if related else {}),
        **({"fixes": [_fix(finding.fix, outcome)]} if finding.fix else {}),
    }


def _message(at: Span, text: str) -> str:
    """The text with its cell; `[a](b)` would be a link to SARIF, and is code to us."""
    return in_cell(at) + _LINK.sub(r"\[", text)


def _location(at: Span, outcome: Outcome) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": _artifact(at.path, outcome),
            "region": _region(outcome.raw(at)),
        }
    }


def _artifact(path: str, outcome: Outcome) -> dict[str, str]:
    shown = relative(path, outcome.root)
    quoted = urllib.parse.quote(os.fsencode(shown))  # a name is bytes, which need not be text
    return (
        {"uri": f"file://{quoted}"}
        if shown.startswith("/")
        else {"uri": quoted, "uriBaseId": "SRCROOT"}
    )


def _region(at: Span) -> dict[str, int]:
    return {
        "startLine": at.line,
        "startColumn": at.column,
        "endLine": at.end_line,
        "endColumn": at.end_column,
    }


def _fix(fix: Fix, outcome: Outcome) -> dict[str, Any]:
    edits = outcome.raw_edits(fix)
    paths = sorted({edit.at.path for edit in edits})
    changes = [
        {
            "artifactLocation": _artifact(path, outcome),
            "replacements": [_replacement(edit) for edit in edits if edit.at.path == path],
        }
        for path in paths
    ]
    return {
        "description": {"text": f"{fix.message} ({fix.applicability.value})"},
        "artifactChanges": changes,
    }


def _replacement(edit: Edit) -> dict[str, Any]:
    return {"deletedRegion": _region(edit.at), "insertedContent": {"text": edit.content}}
