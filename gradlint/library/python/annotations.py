"""What a parameter is by its annotation, where that is a class of Python's own, or one of tensors
that carry no gradient.
"""

from __future__ import annotations

from gradlint.interpret.registry import typed
from gradlint.interpret.symbols import Symbol
from gradlint.interpret.values import Abstract, Unknown

_KINDS = {
    "builtins.int": "number", "builtins.float": "number", "builtins.bool": "bool",
    "builtins.str": "str",
    "pathlib.Path": "object", "argparse.Namespace": "object",
    "omegaconf.DictConfig": "object", "logging.Logger": "object",
}  # fmt: skip


def _register(name: str, kind: str) -> None:
    @typed(name)
    def handler(m: object, symbol: Symbol, function: object, parameter: object) -> Abstract:
        return Unknown(symbol, data=True, type=kind)


# of numbers that carry no gradient: masks, labels, indices
_WIDTHS = ("", "8", "16", "32", "64")
_WHOLE = (
    *(f"torch.{kind}Tensor" for kind in ("Bool", "Byte", "Char", "Int", "Long", "Short")),
    *(f"jaxtyping.{kind}{width}" for kind in ("Int", "UInt") for width in _WIDTHS),
    "jaxtyping.Bool",
    "jaxtyping.Integer",
)

for _name, _kind in _KINDS.items():
    _register(_name, _kind)
for _name in _WHOLE:
    _register(_name, "tensor")
