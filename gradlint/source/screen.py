"""What the bytes of a file say without a parser, in a thousandth of its time: whether the file can
matter at all.

A file that is screened out is not entered by the analysis (it is still followed by imports). The
screen may let through too much, never too little, so its words are short and its answer is yes when
in doubt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from gradlint.dataclass import dataclass

# With a word of the first kind a file matters by itself: it trains, whatever it calls its
# framework.
_SINKS = (
    b"autograd zero_grad training_step compute_loss requires_grad no_grad set_grad_enabled "
    b"enable_grad inference_mode"
    b" set_to_none GradScaler autocast scale_loss unscale_ clip_grad all_gather no_sync "
    b"save_for_backward mark_dirty"
    b" checkpoint_sequential use_reentrant"
).split()
_BACKWARD = re.compile(rb"backward\s*\(|\.backward\b")
_FRAMEWORKS = re.compile(
    rb"torch|lightning|accelerate|deepspeed|transformers|diffusers|fairscale|megatron"
    rb"|gpytorch|Fabric|Trainer"
    rb"|\b(?:apex|fabric|peft|trl|ignite|fastai|catalyst|composer|monai|kornia|timm|pyro)\b"
)
_TRIGGERS = re.compile(
    rb"grad|loss|[Oo]ptim|[Tt]rain|Module|[Pp]arameter|forward|[Ss]cal(?:e|er)|Function|Dataset"
    rb"|\.step|\.eval\(|detach|\.data\b|\.item|cuda|amp\b|half|[Ss]oftmax|sigmoid|where|sqrt|log"
    rb"|norm|mean|_\(|out=|inplace|\bdist|DDP"
)
# Frameworks whose losses have a `backward()` of another kind: some overwrite gradients where torch
# adds to them.
_NAMES = (b"mxnet", b"paddle", b"tinygrad", b"mindspore", b"jittor", b"chainer", b"oneflow")
_OTHERS = re.compile(rb"^[ \t]*(?:import|from)[ \t]+(?:%s)\b" % b"|".join(_NAMES), re.M)
_TORCH = re.compile(rb"torch|lightning|deepspeed|(?:import|from)[ \t]+accelerate\b")
# possessive: read once
_IMPORT = re.compile(rb"\b(?:from|import)\b((?:[^\n(\\]|\\\r?\n)*+(?:\([^)]*+\)?)?)")
_EXEC = re.compile(rb"\bexec\b")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_SPEAKS = re.compile(rb"gradlint:|noqa\b.*?\bgl[0-9]{3}")  # in lower case


@dataclass(frozen=True, slots=True)
class Gist:
    """What the bytes of a file say."""

    matters: bool
    is_of_another: bool  # framework: nobody who imports it trains with torch through it
    # the modules, of those that are asked for, whose names stand in its imports
    imported: frozenset[str]
    speaks: bool  # to us, by name: a comment of it can suppress something or be wrong


def gist(content: bytes, modules: AbstractSet[str]) -> Gist:
    """What the screen has to know of a file with these bytes; `modules` are the names of those that
    are checked.
    """
    words = frozenset(map(bytes.decode, imported_words(content)))
    is_of_another = _is_of_another(content)
    return Gist(
        not is_of_another and _has_words(content),
        is_of_another,
        words & modules,
        _speaks(content.lower()),
    )


def can_matter(content: bytes) -> bool:
    """Whether a file with these bytes can hold a place that some rule reports."""
    return not _is_of_another(content) and _has_words(content)


def _has_words(content: bytes) -> bool:
    if any(word in content for word in _SINKS) or (
        b"backward" in content and _BACKWARD.search(content)
    ):
        return True
    return bool(_FRAMEWORKS.search(content) and _TRIGGERS.search(content))


def _is_of_another(content: bytes) -> bool:
    # a pattern that begins with no word takes ten times as long
    is_named = any(name in content for name in _NAMES)
    return is_named and bool(_OTHERS.search(content) and not _TORCH.search(content))


def _speaks(lowered: bytes) -> bool:
    return (b"gradlint:" in lowered or b"noqa" in lowered) and _SPEAKS.search(lowered) is not None


def is_dynamic(content: bytes) -> bool:
    """Whether modules can be named by strings."""
    by_name = b"import_module" in content or b"__import__" in content
    return by_name or (b"exec" in content and _EXEC.search(content) is not None)


def screen(gists: Mapping[str, Gist]) -> tuple[str, ...]:
    """The paths of the files that can matter, of those that import one of them, and of all that
    these import.
    """
    gists = {path: each for path, each in gists.items() if not each.is_of_another}
    named = {path: module_name(path) for path in gists}
    matters = {path for path, each in gists.items() if each.matters}
    fresh = matters
    while fresh:  # who imports them
        names = {named[path] for path in fresh}
        fresh = {
            path for path in gists.keys() - matters if not gists[path].imported.isdisjoint(names)
        }
        matters |= fresh
    fresh = matters
    while fresh:  # whom they import
        names = set().union(*(gists[path].imported for path in fresh))
        fresh = {path for path in gists.keys() - matters if named[path] in names}
        matters |= fresh
    return tuple(path for path in gists if path in matters)


def module_name(path: str) -> str:
    """The word by which an import can name the file at `path`: its stem, or the package that it
    makes.
    """
    folder, name = os.path.split(path)
    stem = name.partition(".")[0]
    return os.path.basename(folder) if stem == "__init__" else stem


def imported_words(content: bytes) -> frozenset[bytes]:
    """The words of a file's imports, comments and all; every word where modules are named by
    strings.
    """
    if is_dynamic(content):
        return frozenset(_WORD.findall(content))
    return frozenset(_WORD.findall(b" ".join(_IMPORT.findall(content))))
