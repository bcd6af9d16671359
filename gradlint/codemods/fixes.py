"""The rules that have a fix, each as a command of libcst.

`python -m libcst.tool codemod -x gradlint.codemods.fixes.GL102 src/`; with `gradlint.codemods`
among the modules of `.libcst.codemod.yaml`, `libcst.tool list` lists them, and `fixes.GL102` is
enough.
"""

from __future__ import annotations

import argparse
import pathlib
from typing import ClassVar

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext

from gradlint.codemods.run import Run
from gradlint.rule import Rule, rules


class _FixCommand(CodemodCommand):
    RULE: ClassVar[Rule]

    def __init__(self, context: CodemodContext, unsafe_fixes: bool = False) -> None:
        super().__init__(context)
        self.unsafe = unsafe_fixes

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        wanted = "Mend what changes more than the bug, too."
        arg_parser.add_argument("--unsafe-fixes", action="store_true", help=wanted)

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        path = pathlib.Path(self.context.filename or "stdin.py")
        repaired = Run(self.RULE, [path], self.unsafe, given={path: tree.bytes}).repaired()
        if repaired.contents.keys() - {path}:
            self.warn(f"{self.RULE.code}: the fix changes other files, too: run `gradlint codemod`")
            return tree
        return cst.parse_module(repaired.contents[path]) if path in repaired.contents else tree


def _command(rule: Rule) -> type[_FixCommand]:
    return type(
        rule.code,
        (_FixCommand,),
        {"RULE": rule, "DESCRIPTION": rule.summary, "__module__": __name__},
    )


globals().update((rule.code, _command(rule)) for rule in rules().values() if rule.fix is not None)
