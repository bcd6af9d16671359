"""What each operation of torch does to the gradient: read from `torch/*.toml`, looked up by the
name a user writes.

`generated.toml` is measured on a running torch by `tools/generate_effects.py`; `composites.toml`
and `layers.toml` are written by hand. An operation is entered once, under its plain name; other
spellings are derived here.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from gradlint.dataclass import dataclass
from gradlint.tape import DType

View = Literal["", "maybe", "ordered", "always"]

_DATA = Path(__file__).parent / "torch"
_PREFIXES = ("torch.", "Tensor.", "nn.functional.", "functional.", "_C._nn.", "operator.")
_OPERATORS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "invert": "bitwise_not", "pos": "positive", "getitem": "index", "setitem": "index_put_",
    "rtruediv": "rdiv",
    "rmul": "mul", "radd": "add", "rmatmul": "rmatmul", "rpow": "rpow", "rsub": "rsub",
    "rfloordiv": "floor_divide",
    "rmod": "remainder", "rand": "bitwise_and", "ror": "bitwise_or", "rxor": "bitwise_xor",
}  # fmt: skip


# parameters that no operation of torch takes a tensor for: a number, a size, a flag
NO_TENSORS = frozenset([
    "align_corners", "axis", "chunks", "correction", "count_include_pad", "descending", "device",
    "dilation", "dim", "dim0", "dim1", "dims", "dtype", "end_dim", "generator", "groups",
    "hop_length", "keepdim", "kernel_size", "largest", "layout", "memory_format", "n_fft",
    "non_blocking", "num_classes", "ord", "output_padding", "output_size", "padding",
    "padding_mode", "rounding_mode", "scale_factor", "shifts", "size", "split_size", "start_dim",
    "stride", "unbiased", "win_length",
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Save:
    """A tensor kept for the backward: an argument, `result`, or `result.1` for the second of
    several outputs.

    It is kept when one of the arguments in `when` requires grad; with an empty `when`, whenever the
    operation is recorded. (`mul` keeps its input only for the gradient of the other factor.)
    """

    what: str
    when: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Effect:
    """What an operation does to the gradient, and what it keeps for the backward.

    Arguments go by name: `input` is the first tensor, `other` every further one. Where these have
    different effects, `arguments` names the parameters of the function in order and `saves` speaks
    of those.
    """

    name: str
    differentiable: bool = True  # False: no output ever requires grad (argmax, comparisons)
    zero_gradient: bool = False  # the derivative is zero wherever it exists (round, sign)
    missing_derivative: bool = False  # recorded, and its backward raises (heaviside, floor_divide)
    saves: tuple[Save, ...] = ()
    # the result shares the storage of the input: always, where that is in order, or by circumstance
    # (to)
    view: View = ""
    itself: bool = False  # what shares it is the very input
    unchanged: bool = False  # it can be the very input, where nothing has to change
    dtype: DType | None = None  # the dtype of the result, whatever the input's
    # several outputs: which of them are differentiable; None: all
    outputs: tuple[bool, ...] | None = None
    arguments: tuple[str, ...] = ()
    in_place: bool = False  # writes its input and returns it
    creates: bool = False  # the result is made from nothing: zeros, full_like
    random: bool = False  # made from nothing, by chance: randn, randint
    escapes: bool = False  # the result is no tensor: item, tolist, numpy
    # the result says what the tensor is like, and nothing of its numbers: size, dim
    describes: bool = False

    @property
    def maps_input(self) -> bool:
        """Whether the result hangs on the numbers of the input."""
        return self.differentiable and not self.zero_gradient and not self.creates

    @property
    def saves_input(self) -> bool:
        return any(save.what == self.argument(0) for save in self.saves)

    @property
    def saves_result(self) -> bool:
        return any(save.what.startswith("result") for save in self.saves)

    def argument(self, position: int, *, method: bool = False) -> str:
        """The name of the argument at `position`, as `saves` speaks of it; a method's own tensor
        has position 0.
        """
        names = self.arguments
        if method and "input" in names:
            names = ("input", *(name for name in names if name != "input"))
        if names:
            return names[position] if position < len(names) else names[-1]
        return "input" if position == 0 else "other"

    def saved(self, requiring: Collection[str]) -> tuple[str, ...]:
        """What is kept for the backward when the arguments named in `requiring` require grad."""
        return tuple(save.what for save in self.savings(requiring))

    def savings(self, requiring: Collection[str]) -> tuple[Save, ...]:
        """The same, with the arguments for whose gradients it is kept."""
        if not requiring:
            return ()
        return tuple(
            save
            for save in self.saves
            if not save.when or any(name in requiring for name in save.when)
        )


def saves(sentence: str) -> tuple[Save, ...]:
    """`"input if other, result"` as data."""
    return tuple(_save(clause) for clause in sentence.split(",")) if sentence else ()


def _save(clause: str) -> Save:
    what, _, when = clause.strip().partition(" if ")
    return Save(what, tuple(when.split(" or ")) if when else ())


def _effect(name: str, group: Mapping[str, Any]) -> Effect:
    facts = {key: fact for key, fact in group.items() if key != "ops"}
    facts["saves"] = saves(facts.get("saves", ""))
    if "dtype" in facts:
        facts["dtype"] = DType(facts["dtype"])
    if "outputs" in facts:
        facts["outputs"] = tuple(facts["outputs"])
    return Effect(name, **facts)


@functools.cache
def read(file: str) -> dict[str, Any]:
    with (_DATA / file).open("rb") as stream:
        return tomllib.load(stream)


def _groups() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for file in ("generated.toml", "composites.toml"):
        for group in read(file)["group"]:
            for name in group["ops"].split():
                yield name, group


@functools.cache
def _table() -> dict[str, Mapping[str, Any]]:
    return dict(_groups())


@functools.cache
def _arguments() -> dict[str, tuple[str, ...]]:
    tables = (read(file)["arguments"] for file in ("generated.toml", "composites.toml"))
    return {name: tuple(words.split()) for table in tables for name, words in table.items()}


@functools.cache
def _orders() -> dict[str, str]:
    kinds: dict[str, str] = read("composites.toml")["order"]
    return {name: kind for kind, names in kinds.items() for name in names.split()}


def order(name: str) -> str:
    """What an operation does to the order of elements in memory, as `[order]` has it; "" where that
    is not known.
    """
    return _orders().get(_plain(name), "")


@functools.cache
def singular() -> frozenset[str]:
    """The operations that have no finite gradient somewhere, by their plain names."""
    return frozenset(read("composites.toml")["singular"]["ops"].split())


@functools.cache
def _flattening() -> frozenset[str]:
    return frozenset(read("composites.toml")["flattens"]["ops"].split())


@functools.cache
def _joining_batches() -> frozenset[str]:
    return frozenset(read("composites.toml")["flattens"]["batches"].split())


def joins_batches(effect: Effect) -> bool:
    """Whether an operation joins all axes of its inputs but the last two before it saves them."""
    return effect.name in _joining_batches()


def flattens(effect: Effect) -> bool:
    """Whether an operation joins all axes of its input but the last before it saves it."""
    return effect.name in _flattening()


@functools.cache
def torch_version() -> str:
    """The version of torch that the table was measured on."""
    return str(read("generated.toml")["torch"])


def names() -> tuple[str, ...]:
    """The plain names of the operations that the table knows, sorted; forms such as `max.dim` among
    them.
    """
    return tuple(sorted(_table()))


def _plain(name: str) -> str:
    """`torch.nn.functional.relu` → `relu`, `__iadd__` → `add_`; what has an entry of its own stays
    what it is.
    """
    for prefix in _PREFIXES:
        name = name if name in _table() else name.removeprefix(prefix)
    if name.startswith("__") and name.endswith("__"):
        return _operator(name.strip("_"))
    return name


def _operator(word: str) -> str:
    if word not in _OPERATORS and word.startswith("i") and word not in ("index", "int", "invert"):
        return _OPERATORS.get(word[1:], word[1:]) + "_"
    return _OPERATORS.get(word, word)


def _entry(name: str) -> Effect | None:
    group = _table().get(name)
    if group is None:
        return None
    base = name.partition(".")[0].removesuffix("_")
    arguments = _arguments().get(name) or _arguments().get(base, ())
    return replace(_effect(name, group), arguments=arguments, in_place=name.endswith("_"))


def _formed(name: str, form: str) -> Effect | None:
    return (_entry(f"{name}.{form}") if form else None) or _entry(name)


def _twin(name: str, form: str) -> Effect | None:
    """The in-place twin of an operation: autograd keeps a copy of the input that it is about to
    overwrite.
    """
    base = _formed(name.removesuffix("_"), form) if name.endswith("_") else None
    if base is None:
        return None
    kept = tuple(save for save in base.saves if save.what != base.argument(0))
    return replace(base, name=name, saves=kept, view="always", in_place=True, dtype=None)


@functools.cache
def lookup(name: str, form: str = "") -> Effect | None:
    """The effect of an operation under any of its spellings, or None for one that the table does
    not know.

    `form` tells apart calls that differ in effect: `dim` (`max(x, dim)`), `other` (`max(x, y)`),
    `floor` and `trunc` (`div(x, y, rounding_mode=...)`), `indices`
    (`max_pool2d(x, 2, return_indices=True)`); where an operation has no such form, its effect is
    the same. `eval` is dropout in evaluation, `slice` indexing without tensors, `scalar` a Python
    number in the place of the other tensor, `reduce` and `reflect` are those of `scatter` and
    `pad`.
    """
    plain = _plain(name)
    return _formed(plain, form) or _twin(plain, form)


def may_be_tensors(kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keyword arguments in whose place an operation can take a tensor."""
    return ((name, given) for name, given in kwargs.items() if name not in NO_TENSORS)
