"""What each layer of `torch.nn` computes and holds: read from `torch/layers.toml`."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from gradlint.dataclass import dataclass
from gradlint.library.effects import Effect, lookup, read, saves


@dataclass(frozen=True, slots=True)
class LayerEffect:
    """What a call of a `torch.nn` layer does. In `effect`, the argument `weight` is any parameter
    of the layer.
    """

    name: str
    effect: Effect
    function: str = ""  # the function of torch.nn.functional that it applies
    # the names of its own; `#` counts layers, `*` is what is not known of a name
    parameters: tuple[str, ...] = ()
    integer_input: bool = False
    # what a call returns, where that is not one tensor
    outputs: tuple[str | tuple[str, ...], ...] = ()
    takes_inplace: bool = False  # has an argument `inplace`
    positions: tuple[tuple[str, int], ...] = ()  # where the arguments stand that decide what it has
    # the arguments that are its attributes: where they stand, and the defaults (`...` for none)
    settings: tuple[tuple[str, int, object], ...] = ()
    on_request: bool = False  # has parameters where they are asked for
    training: _ByMode = ""  # what differs between train and eval mode
    container: bool = False
    reduction: str = ""  # of a loss: the default

    @property
    def has_parameters(self) -> bool:
        return bool(self.parameters)

    @property
    def is_loss(self) -> bool:
        return bool(self.reduction)

    def in_place(self) -> Effect:
        """The effect of the layer made with `inplace=True`."""
        return lookup(f"{self.function}_") or replace(
            self.effect, view="always", in_place=True, saves=()
        )


@functools.cache
def _layer_file() -> dict[str, Any]:
    return read("layers.toml")


@functools.cache
def _layer_groups() -> dict[str, Mapping[str, Any]]:
    return {name: group for group in _layer_file()["group"] for name in group["layers"].split()}


_ByMode = Literal["", "dropout", "statistics"]
# what a layer does in training mode alone
_BY_MODE: tuple[_ByMode, ...] = ("dropout", "statistics")


def _by_mode(layer: str) -> _ByMode:
    for kind in _BY_MODE:
        if layer in _flagged(kind):
            return kind
    return ""


@functools.cache
def _flagged(flag: str) -> frozenset[str]:
    return frozenset(_layer_file()["flags"][flag].split())


@functools.cache
def layer_bases() -> dict[str, str]:
    """The class of `torch.nn` that a layer, or another base, is derived from, where that is not
    `Module`.
    """
    return {name: base for base, names in _layer_file()["bases"].items() for name in names.split()}


@functools.cache
def _positions() -> dict[str, tuple[tuple[str, int], ...]]:
    """For each layer, the arguments that decide what it has, and where they stand."""
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for argument, places in _layer_file()["positions"].items():
        for position, names in places.items():
            for name in names.split():
                found[name] = (*found.get(name, ()), (argument, int(position)))
    return found


@functools.cache
def _settings() -> dict[str, tuple[tuple[str, int, object], ...]]:
    """For each layer, what it keeps of its arguments: their names, where they stand, and their
    defaults (`...` for none).
    """
    return {
        name: tuple(
            (setting.partition("=")[0], place, _default(setting))
            for place, setting in enumerate(settings.split())
            if setting != "."
        )
        for settings, names in _layer_file()["settings"].items()
        for name in names.split()
    }


def _default(setting: str) -> object:
    _, _, written = setting.partition("=")
    return ast.literal_eval(written) if written else ...


@functools.cache
def parameters() -> frozenset[str]:
    """The names of the parameters of layers: `weight`, `in_proj_weight`."""
    groups = (group.get("parameters", "").split() for group in _layer_groups().values())
    return frozenset(name for names in groups for name in names)


def _function(name: str) -> str:
    """`ReLU` → `relu`, `Conv2d` → `conv2d`, `ZeroPad2d` → `pad`."""
    functions = _layer_file()["functions"]
    if name in functions:
        return str(functions[name])
    family, rank = name[:-2], name[-2:]
    function = str(_layer_file()["ranked"].get(family, "")) if rank in ("1d", "2d", "3d") else ""
    return (
        function
        if not function or "pad" in function or function.endswith("norm")
        else function + rank
    )


def _parts(outputs: str) -> tuple[str | tuple[str, ...], ...]:
    """`"output (hidden cell)"` → `("output", ("hidden", "cell"))`."""
    flat, _, nested = outputs.partition("(")
    inner = tuple(nested.rstrip(")").split())
    return (*flat.split(), inner) if inner else tuple(flat.split())


@functools.cache
def layer(name: str) -> LayerEffect | None:
    """The effect of a layer of `torch.nn` by its name (`torch.nn.Linear`, `nn.Linear`), or None for
    an unknown one.
    """
    short = name.rpartition(".")[2].removeprefix("Lazy")
    group, function, container = (
        _layer_groups().get(short, {}),
        _function(short),
        short in _flagged("containers"),
    )
    if not (group or function or container):
        return None
    own = Effect(short, saves=saves(group["saves"])) if "saves" in group else None
    base, _, form = function.partition(".") if function.startswith("pad.") else (function, "", "")
    return LayerEffect(
        short, own or lookup(base, form) or Effect(short), base,
        parameters=tuple(group.get("parameters", "").split()),
        integer_input=group.get("integer_input", False),
        outputs=_parts(group.get("outputs", "")),
        takes_inplace=short in _flagged("inplace"),
        positions=_positions().get(short, ()),
        settings=_settings().get(short, ()),
        on_request=short in _flagged("on_request"),
        training=_by_mode(short),
        container=container,
        reduction="mean" if short in _flagged("mean_loss") else "",
    )  # fmt: skip


@functools.cache
def _loss_functions() -> frozenset[str]:
    return frozenset(_function(name) for name in _flagged("mean_loss"))


def is_loss_function(name: str) -> bool:
    """Whether an operation or a layer is a loss: `torch.nn.functional.mse_loss`,
    `torch.nn.MSELoss`.
    """
    short = name.rpartition(".")[2]
    return short in _loss_functions() or short in _flagged("mean_loss")
