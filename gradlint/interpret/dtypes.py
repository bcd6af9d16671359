"""The dtypes that a program names."""

from __future__ import annotations

from gradlint.interpret.values import Abstract, Lib, Object
from gradlint.tape import DType

DTYPES = {
    "float": DType.FLOAT,
    "float32": DType.FLOAT,
    "float64": DType.DOUBLE,
    "double": DType.DOUBLE,
    "half": DType.HALF,
    "float16": DType.HALF,
    "bfloat16": DType.BFLOAT,
    "long": DType.INTEGER,
    "int": DType.INTEGER,
    "int64": DType.INTEGER,
    "int32": DType.INTEGER,
    "int16": DType.INTEGER,
    "int8": DType.INTEGER,
    "uint8": DType.INTEGER,
    "short": DType.INTEGER,
    "bool": DType.BOOL,
}


def dtype_of(value: Abstract | None) -> DType | None:
    """The dtype that an argument such as `torch.long` names."""
    if isinstance(value, Lib):
        return DTYPES.get(value.name.rpartition(".")[2])
    if isinstance(value, Object) and "dtype" in value.state:
        found = value.state["dtype"]
        return found if isinstance(found, DType) else None
    return None
