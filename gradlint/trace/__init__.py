"""Watching the real program: launch it, record what autograd did, and write the tape that the rules
read.

This package bears the name of `gradlint.trace(...)`, and Python puts it in that function's place
once it is imported; so it can be called as the function can.
"""

from __future__ import annotations

import importlib
import sys
import types


class _Trace(types.ModuleType):
    def __call__(self, *arguments: object, **options: object) -> object:
        return importlib.import_module("gradlint.api").trace(*arguments, **options)


sys.modules[__name__].__class__ = _Trace
