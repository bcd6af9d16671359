"""OpenMMLab: the block of a convolution that its models are made of, and the module that they are
derived from.

    ConvModule(64, 64, 3, norm_cfg=dict(type="BN"))  # convolution, normalisation, ReLU in place
    ConvModule(64, 64, 3, act_cfg=None)              # no activation

As in mmcv 1.7 and 2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret.lineage import alias, parent
from gradlint.interpret.registry import function
from gradlint.interpret.values import TRUE, Abstract, Call, Const, Lib, Mapping, Object
from gradlint.library.layer_effects import layer
from gradlint.library.python.results import text

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

BLOCK = "mmcv.cnn.ConvModule"
for _module in ("mmcv.cnn.bricks", "mmcv.cnn.bricks.conv_module"):
    alias(f"{_module}.ConvModule", BLOCK)
for _base in (
    "mmcv.runner",
    "mmcv.runner.base_module",
    "mmengine.model",
    "mmengine.model.base_module",
):
    parent(f"{_base}.BaseModule", "torch.nn.Module")
_NORMS = {"BN": "BatchNorm2d", "BN2d": "BatchNorm2d", "BN1d": "BatchNorm1d", "BN3d": "BatchNorm3d"}
_NORMS |= {"SyncBN": "SyncBatchNorm"}
_NEVER_IN_PLACE = ("Tanh", "PReLU", "Sigmoid", "GELU")


@function(BLOCK)
def conv_module(m: Machine, call: Call) -> Abstract:
    """`ConvModule(in_channels, out_channels, kernel_size, …)`; something unknown with an order of
    its own.
    """
    if "order" in call.kwargs or call.open:
        return m.unknown(text(call))
    layers = {"conv": _convolution(m, call)}
    normalised = call.get(9, "norm_cfg")
    if normalised is not None and not _is_none(normalised):
        layers["bn"] = _layer(
            m, _NORMS.get(_kind(normalised), ""), [call.get(1, "out_channels")], call
        )
    activated = call.get(10, "act_cfg")
    if activated is None or not _is_none(activated):
        layers["activate"] = _activation(m, activated, call)
    given = Mapping(dict(layers))
    made = m.call(
        Lib("torch.nn.Sequential"), Call("torch.nn.Sequential", [given], {}, call.node, call.frame)
    )
    if isinstance(made, Object):
        made.attrs |= {
            "with_norm": Const("bn" in layers),
            "with_activation": Const("activate" in layers),
        }
    return made


def _convolution(m: Machine, call: Call) -> Abstract:
    given = call.get(8, "conv_cfg")
    name = "Conv2d" if given is None or _is_none(given) else _kind(given)
    sizes = [call.get(0, "in_channels"), call.get(1, "out_channels"), call.get(2, "kernel_size")]
    return _layer(m, name, sizes, call)


def _activation(m: Machine, given: Abstract | None, call: Call) -> Abstract:
    """A ReLU where nothing is said; in place, but for those that cannot be."""
    name = "ReLU" if given is None else _kind(given)
    in_place = call.get(11, "inplace") or TRUE
    return _layer(m, name, [], call, **({} if name in _NEVER_IN_PLACE else {"inplace": in_place}))


def _kind(settings: Abstract) -> str:
    """The name of a class of torch's that `dict(type="BN")` asks for; "" where that is not
    known.
    """
    name = settings.items.get("type") if isinstance(settings, Mapping) else None
    return name.value if isinstance(name, Const) and isinstance(name.value, str) else ""


def _is_none(settings: Abstract) -> bool:
    return isinstance(settings, Const) and settings.value is None


def _layer(
    m: Machine, name: str, args: list[Abstract | None], call: Call, **kwargs: Abstract
) -> Abstract:
    """A layer of torch's by the name of its class; something unknown where it has none of this
    name.
    """
    full = f"torch.nn.{name}"
    if not name or layer(full) is None:
        return m.unknown(text(call))
    given = [
        each if each is not None else m.unknown("size", data=True, type="number") for each in args
    ]
    return m.call(Lib(full), Call(full, given, kwargs, call.node, call.frame))
