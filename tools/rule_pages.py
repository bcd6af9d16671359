"""A hook of mkdocs: the pages of the rules and their list, made from the rules at each build, and
the schemas.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import gradlint
from gradlint.rule import Rule, rules

FAMILIES = {
    "GL0": "Files and comments",
    "GL1": "Is the loss connected?",
    "GL2": "Writes in place",
    "GL3": "Grad mode and train mode",
    "GL4": "Mixed precision and devices",
    "GL5": "The training step",
    "GL6": "Targets and means",
    "GL7": "Gradients that are NaN",
    "GL8": "Custom functions",
    "GL9": "Distributed training",
}
INDEX = "rules/index.md"
SCHEMAS = pathlib.Path(gradlint.__file__).parent / "schemas"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the rules into the navigation, behind the first page."""
    assert config.nav is not None, "mkdocs.yml has a navigation"
    families = [
        {FAMILIES[family]: [_path(rule) for rule in held]} for family, held in _by_family().items()
    ]
    config.nav.insert(1, {"Rules": [INDEX, *families]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the rules, and their list."""
    for rule in _ours().values():
        files.append(File.generated(config, _path(rule), content=with_trial(rule)))
    files.append(File.generated(config, INDEX, content=index()))
    for schema in sorted(SCHEMAS.glob("*.json")):
        files.append(
            File.generated(
                config, f"schemas/{schema.name}", content=schema.read_text(encoding="utf-8")
            )
        )
    return files


def with_trial(rule: Rule) -> str:
    """The page of a rule, with a link behind its first bad program that opens that in the
    playground.
    """
    before, heading, after = rule.page.partition("\n## Example\n")
    program, end, rest = after.partition("\n```\n")
    if not end or "```python" not in program:
        return rule.page
    link = f'<a href="../../playground/#rule={rule.code}">Try it in the browser</a>'
    return f"{before}{heading}{program}{end}\n{link}\n{rest}"


def index() -> str:
    """The list of all rules, as a page."""
    lines = [
        "# Rules",
        "",
        f"{len(_ours())} rules. `gradlint rule CODE` prints the page of one.",
        "",
    ]
    for family, held in _by_family().items():
        lines += [
            f"## {FAMILIES[family]}",
            "",
            "| code | name | severity | fix | |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_row(rule) for rule in held] + [""]
    return "\n".join(lines)


def _row(rule: Rule) -> str:
    link = f"[{rule.name}]({rule.name}.md)"
    summary = rule.summary.replace("|", "\\|")
    return (
        f"| {rule.code} | {link} | {rule.severity.label} | {'yes' if rule.fix else ''} | "
        f"{summary} |"
    )


def _ours() -> Mapping[str, Rule]:
    """The rules of gradlint itself, without those of plugins that happen to be installed."""
    return {
        code: rule for code, rule in rules().items() if rule.source.startswith("gradlint_rules.")
    }


def _by_family() -> Mapping[str, list[Rule]]:
    found: dict[str, list[Rule]] = {family: [] for family in FAMILIES}
    for code, rule in _ours().items():
        found[code[:3]].append(rule)
    return found


def _path(rule: Rule) -> str:
    return f"rules/{rule.name}.md"
