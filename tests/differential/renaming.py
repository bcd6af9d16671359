"""The same program under names that say nothing: `optimizer` becomes `bivoka`, wherever it stands.

What torch, Python or another library prescribes keeps its name, and so does what a string, a
keyword for a library's function or an import may speak of.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import collections
import copy
import functools
import io
import keyword
import math
import os
import pathlib
import random
import re
import tokenize
from collections.abc import Iterator, Mapping

import torch
import torch.utils.checkpoint

_TYPES = (
    torch.Tensor,
    torch.autograd.Function,
    torch.autograd.function.FunctionCtx,
    torch.amp.GradScaler,
    torch.utils.data.DataLoader,
    torch.utils.data.Sampler,
    torch.distributions.Distribution,
    torch.utils.checkpoint,
    torch.nn.utils,
    torch.nn.functional,
    torch.nn,
    torch.optim,
    torch.distributed,
    torch.cuda,
    torch.backends,
    torch,
    argparse.ArgumentParser,
    collections.OrderedDict,
    collections.deque,
    pathlib.Path,
    random.Random,
    copy,
    math,
    os,
)
_HOOKS = frozenset(
    [
        "self",
        "cls",
        "param_groups",
        "state",
        "defaults",
        "initial_lr",
        "base_lrs",
        "last_epoch",
        "training_step",
        "validation_step",
        "test_step",
        "predict_step",
        "configure_optimizers",
        "compute_loss",
        "setup",
        "prepare_data",
        "train_dataloader",
        "val_dataloader",
        "on_train_epoch_end",
        "on_train_epoch_start",
        "on_before_optimizer_step",
        "on_after_backward",
        "optimizer_step",
        "optimizer_zero_grad",
        "backward",
        "automatic_optimization",
        "manual_backward",
        "hparams",
        "current_epoch",
        "global_step",
        "trainer",
        "log",
        "accumulate",
        "prepare",
        "gather",
        "clip_grad_norm_",
        "lr_schedulers",
        "optimizers",
        "toggle_optimizer",
        "untoggle_optimizer",
    ]
)
_SYLLABLES = [a + b for a in "bdfgjkmpqvxz" for b in "aeiou"]


def renamed(files: Mapping[str, str], seed: str) -> dict[str, str]:
    """The texts of a program's files, each with names that say nothing."""
    kept = _kept(files)
    drawn = random.Random(seed)
    names: dict[str, str] = {}
    taken = {word for text in files.values() for word in re.findall(r"\w+", text)}
    for name in sorted({name for text in files.values() for name in _bound(text)} - kept):
        while (word := _word(drawn, name)) in taken:
            pass
        taken.add(word)
        names[name] = word
    return {path: _written(text, names) for path, text in files.items()}


def _word(drawn: random.Random, name: str) -> str:
    """A word of the same kind: a constant, a class, a private name or another."""
    word = "".join(drawn.choices(_SYLLABLES, k=3))
    bare = name.strip("_")
    if bare.isupper():
        word = word.upper()
    elif bare[:1].isupper():
        word = word.capitalize()
    return name[: len(name) - len(name.lstrip("_"))] + word


def _bound(text: str) -> Iterator[str]:
    """The names that a file gives to something of its own."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
                yield node.attr
            case ast.ExceptHandler(name=str(name)):
                yield name


def _attributes(text: str) -> Iterator[str]:
    """The attributes that the classes of a file have of its own."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
                yield node.attr
            case ast.ClassDef():
                yield from (each.name for each in node.body if isinstance(each, ast.FunctionDef))
                yield from (
                    each.target.id
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                )


def _kept(files: Mapping[str, str]) -> set[str]:
    """The names that something out of the program prescribes, or can speak of."""
    kept = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *_prescribed(), *_HOOKS}
    defined = {
        node.name
        for text in files.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    attributes = {name for text in files.values() for name in _attributes(text)}
    for text in files.values():
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Load()) if name not in attributes:
                    kept.add(name)
                case ast.JoinedStr():
                    kept.update(re.findall(r"\w+", ast.unparse(node)))
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    kept.update((getattr(node, "module", None) or "").split("."))
                    for each in names:
                        if not (isinstance(node, ast.ImportFrom) and each.name in defined):
                            kept.update([*each.name.split("."), each.asname or each.name])
                case ast.Attribute(value=ast.Name(id=str(owner)), ctx=ast.Store()):
                    if owner != "self":
                        kept.add(node.attr)
                case ast.ClassDef() if any(map(_is_of_library, node.bases)):
                    kept.update(each.name for each in node.body if hasattr(each, "name"))
                case ast.Call(func=func, keywords=given):
                    called = func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")
                    if called not in defined or called in kept:
                        kept.update(each.arg for each in given if each.arg)
    kept.update(name for name in list(kept) if name.startswith("__"))
    bound = {name for text in files.values() for name in _bound(text)}
    said = [word for text in files.values() for word in _said(text)]
    kept |= {name for name in bound if any(word in name for word in said)}
    return kept | {name for name in bound if name.startswith("__")}


def _said(text: str) -> Iterator[str]:
    """The words of a file's strings but its docstrings, which can be beginnings of names:
    `if name.startswith("encoder")`.
    """
    tree = ast.parse(text)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield from (word for word in re.findall(r"\w+", node.value) if len(word) > 2)


def _is_of_library(base: ast.expr) -> bool:
    """Whether a class is derived from one of a framework, which prescribes its hooks:
    `L.LightningModule`.
    """
    return isinstance(base, ast.Attribute) and not ast.unparse(base).startswith(("nn.", "torch."))


@functools.cache
def _prescribed() -> frozenset[str]:
    parameter = torch.nn.Parameter(torch.ones(4, 4))
    made = [
        torch.nn.Linear(1, 1),
        torch.nn.BatchNorm1d(1),
        torch.nn.LSTM(1, 1),
        torch.nn.MultiheadAttention(2, 1),
        torch.nn.Conv2d(1, 1, 1),
        torch.nn.Embedding(1, 1),
        torch.optim.SGD([parameter], lr=0.1),
        torch.nn.ModuleDict(),
        torch.nn.Sequential(),
        torch.finfo(),
        torch.return_types.max,
        torch.Generator(),
        argparse.Namespace(),
    ]
    return frozenset(name for each in (*_TYPES, *made) for name in dir(each))


def _written(text: str, names: Mapping[str, str]) -> str:
    """A file with other names, the same line for line."""
    lines = text.splitlines(keepends=True)
    found = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and token.string in names
    ]
    for token in reversed(found):
        row, column = token.start
        line = lines[row - 1]
        end = column + len(token.string)
        lines[row - 1] = line[:column] + names[token.string] + line[end:]
    return "".join(lines)
