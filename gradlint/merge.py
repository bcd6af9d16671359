"""The reports of the shards of a check as the report of one run: `gradlint merge`.

What is found is found by any shard. That a comment suppresses nothing, or that no path came to a
training step, is said by every shard of all files, as far as it has seen: it holds where all say
so.
"""

from __future__ import annotations

import json
import os
import pathlib
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from gradlint.errors import UserError
from gradlint.finding import Severity, Span
from gradlint.fingerprint import name
from gradlint.report._object import UNREACHED, finding_of
from gradlint.source.lines import split_lines
from gradlint.suppress import UNKNOWN, UNUSED

Object = dict[str, Any]
Key = tuple[object, ...]
_ABSENT = (UNUSED, UNREACHED)
_OF_COMMENTS = (UNUSED, UNKNOWN)  # of which one place can have several
_LEVELS = {"note": Severity.NOTE, "warning": Severity.WARNING, "error": Severity.ERROR}


def merged(files: Sequence[pathlib.Path]) -> tuple[str, frozenset[Severity]]:
    """The report that joins those in `files`, in their format, and the severities that are in
    it.
    """
    texts = [_read(file) for file in files]
    if all(isinstance(each, list) for each in texts):
        found = _joined(texts, _key, lambda each: Severity.parse(each["severity"]), _wording)
        ordered = sorted(
            found, key=lambda each: (each["code"] == UNREACHED, finding_of(each).sort_key)
        )
        return json.dumps(ordered, indent=2) + "\n", _severities(
            each["severity"] for each in ordered
        )
    if all(isinstance(each, dict) and "runs" in each for each in texts):
        return _merged_sarif(texts)
    raise UserError("the reports are of different formats: all must be JSON, or all SARIF")


def _read(file: pathlib.Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UserError(f"{file} is no report in JSON or SARIF") from None


def _severities(words: Iterable[str]) -> frozenset[Severity]:
    return frozenset(_LEVELS[word] for word in words)


def _joined(
    reports: Sequence[Sequence[Object]],
    key: Callable[[Object], Key],
    severity: Callable[[Object], Severity],
    wording: Callable[[Object], Key],
) -> list[Object]:
    """What any of the reports says, once: the worst of what is said of one place, of equals the
    first by its words.
    """
    by_key = [{key(each): each for each in report} for report in reports]
    found: dict[Key, Object] = {}
    for report in by_key:
        for place, each in report.items():
            known = found.get(place)
            if known is None or severity(known) < severity(each):
                found[place] = each
            elif severity(known) is severity(each):
                found[place] = min(known, each, key=wording)
    return [
        each
        for place, each in found.items()
        if place[0] not in _ABSENT or _is_in_all(place, by_key)
    ]


def _is_in_all(place: Key, reports: Iterable[Collection[Key]]) -> bool:
    return all(place in report for report in reports)


def _key(found: Object) -> Key:
    """What one finding is told from another by."""
    places = (
        found["filename"],
        found["cell"],
        *found["location"].values(),
        *found["end_location"].values(),
    )
    return (found["code"], *places, found["message"] if found["code"] in _OF_COMMENTS else "")


def _wording(found: Object) -> Key:
    return finding_of(found).wording


def _merged_sarif(reports: Sequence[Object]) -> tuple[str, frozenset[Severity]]:
    """One run with the results of all, and the rules that these break."""
    runs = [run for report in reports for run in report["runs"]]
    results = _joined(
        [run["results"] for run in runs],
        _sarif_key,
        lambda each: _LEVELS[each["level"]],
        _sarif_wording,
    )
    results.sort(key=_sarif_order)
    rules = {rule["id"]: rule for run in runs for rule in run["tool"]["driver"]["rules"]}
    broken = [rules[code] for code in sorted({each["ruleId"] for each in results})]
    indices = {rule["id"]: index for index, rule in enumerate(broken)}
    roots = runs[0]["originalUriBaseIds"]
    renamed = _made_distinct(
        results, pathlib.Path(urllib.parse.unquote(roots["SRCROOT"]["uri"].removeprefix("file://")))
    )
    driver = {**runs[0]["tool"]["driver"], "rules": broken}
    run = {
        **runs[0],
        "tool": {"driver": driver},
        "results": [{**each, "ruleIndex": indices[each["ruleId"]]} for each in renamed],
    }
    text = json.dumps({**reports[0], "runs": [run]}, indent=2) + "\n"
    return text, _severities(each["level"] for each in results)


def _place(result: Object) -> tuple[str, Mapping[str, int]]:
    """The file that a result is about, from its root, and the region in it."""
    physical = result["locations"][0]["physicalLocation"]
    return os.fsdecode(
        urllib.parse.unquote_to_bytes(physical["artifactLocation"]["uri"])
    ), physical["region"]


def _sarif_key(result: Object) -> Key:
    path, region = _place(result)
    message = result["message"]["text"] if result["ruleId"] in _OF_COMMENTS else ""
    return (result["ruleId"], path, *region.values(), message)


def _sarif_wording(result: Object) -> Key:
    """As `Finding.wording` orders them: the help stands on a line of its own behind the message."""
    places = []
    for each in result.get("relatedLocations", ()):
        region = each["physicalLocation"]["region"]
        said = each["message"]["text"].replace("\\", "")
        places.append((region["startLine"], region["startColumn"], said))
    message = result["message"]["text"].partition("\n")[0].replace("\\", "")
    return message, -len(places), tuple(places)


def _sarif_order(result: Object) -> tuple[str, int, int, str, str]:
    path, region = _place(result)
    return (
        path,
        region["startLine"],
        region["startColumn"],
        result["ruleId"],
        result["message"]["text"],
    )


def _made_distinct(results: Sequence[Object], root: pathlib.Path) -> Sequence[Object]:
    """The results with fingerprints of their own: what each shard has counted alone is counted over
    all of them.
    """
    given = [each["partialFingerprints"]["gradlint/v1"] for each in results]
    if len(set(given)) == len(given):
        return results
    seen: dict[tuple[str, str, str], int] = {}
    found: list[Object] = []
    for each in results:
        path, region = _place(each)
        text = _text(
            root / path, Span(path, region["startLine"], 1, region["endLine"], region["endColumn"])
        )
        identity = each["ruleId"], path, text
        seen[identity] = seen.get(identity, 0) + 1
        found.append(
            {**each, "partialFingerprints": {"gradlint/v1": name(*identity, seen[identity])}}
        )
    return found


def _text(file: pathlib.Path, at: Span) -> str:
    try:
        lines = split_lines(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return " ".join(" ".join(lines[at.line - 1 : at.last_line]).split())
