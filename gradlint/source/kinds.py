"""The kinds of node that newer Pythons have: of `ast` where it has them, or by the same names and
fields.
"""

from __future__ import annotations

import ast
from typing import Any


def _kind(name: str, base: type[ast.AST], *fields: str) -> Any:
    """The kind of this name. A tree can hold what is no kind of `ast`; only Python itself cannot
    compile that.
    """
    own = {
        "_fields": fields,
        "_attributes": ast.expr._attributes,
        "__doc__": f"{name}({', '.join(fields)})",
    }
    return getattr(ast, name, None) or type(name, (base,), own)


_TYPE_PARAM: type[ast.AST] = _kind("type_param", ast.AST)
TypeVar = _kind("TypeVar", _TYPE_PARAM, "name", "bound", "default_value")
TypeVarTuple = _kind("TypeVarTuple", _TYPE_PARAM, "name", "default_value")
ParamSpec = _kind("ParamSpec", _TYPE_PARAM, "name", "default_value")
TypeAlias = _kind("TypeAlias", ast.stmt, "name", "type_params", "value")
TemplateStr = _kind("TemplateStr", ast.expr, "values")
Interpolation = _kind("Interpolation", ast.expr, "value", "str", "conversion", "format_spec")
