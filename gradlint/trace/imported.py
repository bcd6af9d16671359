"""What is to be watched in a module that the program may import later on."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType

from gradlint.trace.session import Session


def when_imported(session: Session, name: str, watch: Callable[[ModuleType], None]) -> None:
    """Calls `watch` with a module: now, where it is imported, else right after it is."""
    known = sys.modules.get(name)
    if known is not None:
        watch(known)
        return
    finder = _Finder(session, name, watch)
    sys.meta_path.insert(0, finder)
    session.on_end.append(lambda: sys.meta_path.remove(finder) if finder in sys.meta_path else None)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module as Python would, and has its loader tell when it was executed."""

    def __init__(self, session: Session, name: str, watch: Callable[[ModuleType], None]) -> None:
        self.session, self.name, self.watch = session, name, watch

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of the one module; of any other, none."""
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        loader = spec.loader if spec is not None else None
        if isinstance(loader, importlib.machinery.SourceFileLoader):
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                if not self.session.quiet:
                    self.session.guarded(self.watch, module)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
