"""What a rule is, and the registry of those that are there.

A rule is one module of `gradlint_rules` (or of a plugin) named after its code:
`GL101_constant_loss`. From the module come its code and name (the file's name), its page (the
docstring), its severity (`SEVERITY`), its check (`check(paths)`), whether a traced run shows it too
(`AT_RUN_TIME`) and, where one exists, its fix (`fix(finding, source)`). Being there is being
registered.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import ModuleType
from typing import TYPE_CHECKING, Protocol

from gradlint.dataclass import dataclass
from gradlint.finding import Edit, Finding, Fix, Related, Severity, Span
from gradlint.plugins import installed

if TYPE_CHECKING:
    from gradlint.paths import Paths
    from gradlint.tape import Tape

CODE = re.compile(r"[A-Z]{2,}[0-9]{3}")
_MODULE = re.compile(r"([A-Z]{2,}[0-9]{3})_([a-z0-9_]+)")
SETTLING = 3  # times that rules are asked, with more paths each time
DOCS = "https://torch-gradlint.readthedocs.io/rules/"  # where the site is to be published


@dataclass(frozen=True, slots=True)
class Report:
    """What a check yields: a finding before its rule's code, name and usual severity are added."""

    at: Span
    message: str
    help: str = ""
    related: tuple[Related, ...] = ()
    severity: Severity | None = None
    step: int | None = None
    fix: Fix | None = None
    # what only the tape knows and a fix needs
    hints: Mapping[str, str] = field(default_factory=dict)


class NoFixError(Exception):
    """The source does not have the shape that a fix knows how to mend."""


Edits = tuple[Edit, ...]


class FixSource(Protocol):
    """The file of a finding, as its fix sees it: what stands where, and edits that keep all the
    rest as it is.

    Whatever is asked for and is not there raises `NoFixError`, which ends the fix.
    """

    @property
    def tree(self) -> ast.Module: ...

    @property
    def unit(self) -> str:
        """One step of indentation."""
        ...

    def elsewhere(self, path: str) -> FixSource:
        """Another file of the program: what calls this one. A fix edits one file."""
        ...

    def expression(self, at: Span) -> ast.expr:
        """The expression at exactly this place, or else the smallest around it."""
        ...

    def statement(self, place: Span | ast.AST) -> ast.stmt:
        """The innermost statement around a place or node."""
        ...

    def statement_on(self, line: int) -> ast.stmt:
        """The innermost statement on a line."""
        ...

    def scope(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module:
        """The innermost function around a node, or the module."""
        ...

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What `node` is part of, innermost first."""
        ...

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements of the block that `statement` stands in."""
        ...

    def text(self, node: ast.AST) -> str:
        """The source of a node, in parentheses where they stand around it."""
        ...

    def operand(self, node: ast.expr) -> str:
        """The source of an expression, fit to be an operand or to have an attribute."""
        ...

    def called(self, node: ast.AST) -> str:
        """What a name or attribute stands for by the file's imports: `torch.no_grad`; "" for what
        is no name.
        """
        ...

    def fresh(self, wish: str, near: ast.AST) -> str:
        """A name like `wish` that nothing around `near` uses."""
        ...

    def reference(self, name: str) -> tuple[str, tuple[Edit, ...]]:
        """How to write the dotted `name` (`torch.amp.GradScaler`) here, and the edits that import
        it.
        """
        ...

    def allows_torch(self, *version: int) -> bool:
        """Whether all versions of torch that the project supports are at least this one, as far as
        it says.
        """
        ...

    def replace(self, node: ast.expr, content: str) -> Edit:
        """Puts `content` in the place of an expression, in parentheses where it needs them."""
        ...

    def rewrite(self, statement: ast.stmt, content: str) -> Edit:
        """Puts `content` in the place of a statement; a comment behind it stays."""
        ...

    def before_text(self, node: ast.expr | ast.stmt | ast.keyword, content: str) -> Edit:
        """Puts `content` right before a node, on its line."""
        ...

    def behind_text(self, node: ast.expr, content: str) -> Edit:
        """Puts `content` right behind an expression and the parentheses around it, on its line."""
        ...

    def replace_name(self, named: ast.Attribute | ast.arg, name: str) -> Edit:
        """Puts another name behind the dot of `x.name`, or in the place of that of a parameter of a
        function.
        """
        ...

    def remove(self, statement: ast.stmt) -> Edits:
        """Takes a statement out; `pass` takes its place where nothing else would be left."""
        ...

    def remove_argument(self, call: ast.Call, argument: ast.expr | ast.keyword) -> Edit:
        """Takes an argument and its comma out of a call."""
        ...

    def add_argument(self, call: ast.Call, content: str) -> Edit:
        """Adds an argument at the end of a call."""
        ...

    def remove_decorator(self, decorator: ast.expr) -> Edits:
        """Takes the line of a decorator out."""
        ...

    def instead(self, statement: ast.stmt, *lines: str) -> Edits:
        """Puts lines of code in the place of a statement; a comment behind it stays."""
        ...

    def decorate(self, function: ast.FunctionDef | ast.AsyncFunctionDef, line: str) -> Edits:
        """Puts a decorator on a function, below those that it has."""
        ...

    def before(self, statement: ast.stmt, *lines: str) -> Edits:
        """Puts lines of code before a statement, at its indentation."""
        ...

    def after(self, statement: ast.stmt, *lines: str) -> Edits:
        """Puts lines of code after a statement, at its indentation."""
        ...

    def first(self, block: Sequence[ast.stmt], *lines: str) -> Edits:
        """Puts lines of code at the head of a block, below its docstring."""
        ...

    def move_before(self, statements: Sequence[ast.stmt], anchor: ast.stmt) -> Edits:
        """Moves statements, with the comments that stand right above them, before another."""
        ...

    def move_after(self, statements: Sequence[ast.stmt], anchor: ast.stmt) -> Edits:
        """Moves statements, with the comments that stand right above them, behind another."""
        ...

    def wrap(self, statements: Sequence[ast.stmt], header: str) -> Edits:
        """Puts neighbouring statements under a header: `with torch.no_grad():`."""
        ...

    def unwrap(
        self,
        compound: ast.With,
        item: ast.expr | None = None,
        inside: Sequence[ast.stmt] = (),
        kept: Sequence[ast.stmt] = (),
    ) -> Edits:
        """Takes statements of a `with`, or all, out of one of its contexts, or of all; they stay in
        their order.

        What is `kept`, neighbouring statements somewhere in these, is put under a context of its
        own.
        """
        ...


FixFunction = Callable[[Finding, FixSource], Fix | None]
Check = Callable[["Paths"], Iterator[Report]]


@dataclass(frozen=True)
class Rule:
    """A rule: its place in the catalogue; its module is imported where more than that is asked
    for.
    """

    code: str
    name: str
    source: str  # the name of the module

    @functools.cached_property
    def module(self) -> ModuleType:
        module = importlib.import_module(self.source)
        assert module.__doc__, f"{self.source} has no page"
        return module

    @property
    def severity(self) -> Severity:
        """How bad what it finds is, as a rule."""
        severity: Severity = self.module.SEVERITY
        return severity

    @property
    def at_run_time(self) -> bool:
        """Whether the tape of a traced run tells all that its check asks for; other rules are about
        the source.
        """
        return getattr(self.module, "AT_RUN_TIME", False)

    @property
    def is_quiet(self) -> bool:
        """Whether people are told what it finds only where they select it; formats for programs
        always have it.
        """
        return getattr(self.module, "QUIET", False)

    @property
    def raises(self) -> str:
        """What torch says in the error that it is about, if it is about one."""
        return str(getattr(self.module, "RAISES", ""))

    @property
    def page(self) -> str:
        """What a user reads of the rule."""
        return (self.module.__doc__ or "").strip() + "\n"

    @property
    def check(self) -> Check:
        """What the rule says of the paths of one entry."""
        check: Check = self.module.check
        return check

    @property
    def fix(self) -> FixFunction | None:
        """How the rule mends what it finds, if it can."""
        return getattr(self.module, "fix", None)

    @property
    def spoilt_by(self) -> frozenset[str]:
        """The codes of what its fix can bring about: where no other fix mends that, it is taken
        back.
        """
        return getattr(self.module, "SPOILT_BY", frozenset())

    @property
    def url(self) -> str:
        """Where its page can be read; a plugin says `URL`."""
        return str(getattr(self.module, "URL", f"{DOCS}{self.name}"))

    @property
    def summary(self) -> str:
        """The first sentence of the page, below its title."""
        body = self.page.split("\n", 1)[-1].strip()
        return body.split("\n\n")[0].split("\n# ")[0].replace("\n", " ")

    def findings(self, paths: Paths) -> Iterator[Finding]:
        """What this rule says of an entry: of each place the first report, whatever other paths and
        unrolled iterations say there.
        """
        reported: set[Span] = set()
        for report in self.check(paths):
            if report.at not in reported:
                reported.add(report.at)
                yield self.finding(report)

    def finding(self, report: Report) -> Finding:
        """The finding that `report` is, under this rule's code and name."""
        severity = self.severity if report.severity is None else report.severity
        return Finding(
            self.code, self.name, severity, report.message, report.at,
            report.help, report.related, report.fix, report.step, report.hints,
        )  # fmt: skip


def judge(
    chosen: Iterable[Rule],
    tapes: Sequence[Tape],
    more: Callable[[Sequence[Tape], Paths], Sequence[Tape]] | None = None,
) -> list[Finding]:
    """What these rules say of the tapes of one entry, which are let go of what the rules have
    worked out.

    One tape is one path; a traced run has one. Where what a rule asks for hangs on sides that no
    path took, `more` gives the tapes with those of further paths, and the rules are asked again.
    What was worked out speaks of the tapes in turn: they would stay in memory until a collection
    finds them.
    """
    from gradlint.paths import Paths

    chosen, asked = list(chosen), 0
    while True:
        paths = Paths(tapes)
        found = [finding for rule in chosen for finding in rule.findings(paths)]
        paths.answers.clear()
        asked += 1
        is_open = bool(paths.unsettled or paths.unturned)
        wider = more(tapes, paths) if more is not None and is_open and asked < SETTLING else tapes
        if len(wider) == len(tapes):
            break
        tapes = wider
    for tape in tapes:
        tape.answers.clear()
    return found


@functools.cache
def rules() -> dict[str, Rule]:
    """Every rule by its code, in the order of the codes; refuses two rules with one code."""
    found: dict[str, Rule] = {}
    for package in packages():
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            match = _MODULE.fullmatch(module.name.rpartition(".")[2])
            if match is None:
                continue
            rule = Rule(match[1], match[2].replace("_", "-"), module.name)
            if rule.code in found:
                raise ValueError(
                    f"{rule.code} is defined by {found[rule.code].source} and {rule.source}"
                )
            found[rule.code] = rule
    return dict(sorted(found.items()))


@functools.cache
def at_run_time() -> frozenset[str]:
    """The codes of the rules that a traced run is judged by."""
    return frozenset(rule.code for rule in rules().values() if rule.at_run_time)


@functools.cache
def packages() -> tuple[ModuleType, ...]:
    """The packages that hold rules: ours, and those of plugins."""
    return (importlib.import_module("gradlint_rules"), *installed())
