"""Writes what a new rule begins with: its file with the headings of its page, and a fixture.

    python tools/new_rule.py GL115 lost-gradient
    python tools/new_rule.py TM002 late-clip --rules gradlint_team   # of a plugin: its file alone

What is to be filled in is marked `TODO`. Until the check is written, the fixture says `# miss:`,
which fails as soon as the line is reported: then it becomes `# expect:`.
"""

from __future__ import annotations

import argparse
import pathlib
import re
from collections.abc import Mapping

ROOT = pathlib.Path(__file__).parents[1]
RULES, FIXTURES = ROOT / "rules" / "gradlint_rules", ROOT / "fixtures" / "own"
CODE = re.compile(r"[A-Z]{2,}[0-9]{3}")
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

RULE = '''"""# {name} ({code})

TODO: what is wrong with the program, in one sentence.

## What it does
TODO: what it reports, with the calls that it looks at.

## Why it matters
TODO: what the program then does, and what the user sees of it.

## Example
```python
{bad}```

## Use instead
```python
{good}```

## What it does not report
- TODO: what looks like it and is right.

## Limits
TODO: what it cannot see.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Severity
from gradlint.paths import Paths
from gradlint.rule import Report

SEVERITY = Severity.WARNING
AT_RUN_TIME = False  # TODO: true where a traced run shows it, too


def check(paths: Paths) -> Iterator[Report]:
    """TODO: what is reported, one finding for each of them."""
    for fact in paths.some(lambda tape: tape.facts("{name}")):
        yield Report(fact.at, "TODO: what happens", "TODO: what to do.")
'''

PROGRAM = """import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x = torch.randn(8, 4)
    loss = model(x).square().mean(){marker}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

CASE = """title = "TODO: what is wrong with the program, as its author would say it"

[before]
outcome = "latent"
why = "TODO: an outcome that torch shows, or why a run does not show it"
"""


def files(code: str, name: str) -> dict[str, str]:
    """The texts of a rule and of its fixture, by their paths below the two folders."""
    case = f"{code}-{name}"
    return {
        f"{code}_{name.replace('-', '_')}.py": RULE.format(
            code=code,
            name=name,
            bad=PROGRAM.format(marker=f"  # expect: {code}"),
            good=PROGRAM.format(marker=""),
        ),
        f"{case}/case.toml": CASE,
        f"{case}/before/train.py": '"""TODO: what the program is for."""\n\n'
        + PROGRAM.format(marker=f"  # miss: {code} its check is to be written"),
        f"{case}/after/train.py": '"""TODO: what the program is for."""\n\n'
        + PROGRAM.format(marker=""),
    }


def write(
    code: str, name: str, rules: pathlib.Path, fixtures: pathlib.Path | None
) -> list[pathlib.Path]:
    """Writes the files of a new rule; raises ValueError where the code or a name is no good."""
    if not CODE.fullmatch(code):
        raise ValueError(f"{code} is no code: capital letters and three digits")
    if not NAME.fullmatch(name):
        raise ValueError(f"{name} is no name: words in lower case with hyphens between them")
    taken = sorted(rules.glob(f"{code}_*.py"))
    if taken:
        raise ValueError(f"{code} is taken by {taken[0].name}")
    written = []
    for path, text in _places(files(code, name), rules, fixtures).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _places(
    texts: Mapping[str, str], rules: pathlib.Path, fixtures: pathlib.Path | None
) -> dict[pathlib.Path, str]:
    """The texts by where they go: a rule has no folder of its own, a fixture has."""
    return {
        (fixtures or rules) / path if "/" in path else rules / path: text
        for path, text in texts.items()
        if "/" not in path or fixtures is not None
    }


def main() -> None:
    """Writes a rule as the command line asks for it, and says what is left to do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("code", help="GL115: the first free one of its family")
    parser.add_argument("name", help="lost-gradient: what is wrong, in two or three words")
    parser.add_argument("--rules", type=pathlib.Path, help="the package of a plugin")
    options = parser.parse_args()
    fixtures = FIXTURES if options.rules is None else None
    try:
        written = write(options.code, options.name, options.rules or RULES, fixtures)
    except ValueError as error:
        parser.error(str(error))
    for path in written:
        print("wrote", path)
    print("Fill in what says TODO; then: pytest tests -k", options.code)


if __name__ == "__main__":
    main()
