"""gradlint: the linter that understands autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradlint.api import Traced as Traced
    from gradlint.api import Tracing as Tracing
    from gradlint.api import check as check
    from gradlint.api import trace as trace
    from gradlint.errors import UserError as UserError
    from gradlint.finding import Applicability as Applicability
    from gradlint.finding import Edit as Edit
    from gradlint.finding import Finding as Finding
    from gradlint.finding import Fix as Fix
    from gradlint.finding import Related as Related
    from gradlint.finding import Severity as Severity
    from gradlint.finding import Span as Span

__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(("Traced", "Tracing", "check", "trace"), "api"),
    **dict.fromkeys(
        ("Applicability", "Edit", "Finding", "Fix", "Related", "Severity", "Span"), "finding"
    ),
    "UserError": "errors",
}
__all__ = [
    "Applicability", "Edit", "Finding", "Fix", "Related", "Severity", "Span", "Traced", "Tracing",
    "UserError",
    "__version__", "check", "trace",
]  # fmt: skip


if not TYPE_CHECKING:  # where a module has this function, every name is taken to be there

    def __getattr__(name: str) -> object:
        """What is public, imported when it is first asked for: `import gradlint` itself costs
        nothing.
        """
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
