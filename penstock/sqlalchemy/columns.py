"""SQLAlchemy's types as Penstock's columns have them, and back."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import types
from sqlalchemy.exc import CompileError
from sqlalchemy.sql.compiler import GenericTypeCompiler
from sqlalchemy.types import TypeEngine

#: of a text or bytes without a length of its own: the longest there is
LONGEST = 65_517
_SHAPE = re.compile(r"(?P<name>[A-Z ]+?)(?:\((?P<sizes>[\d, ]+)\))?")
_SQL: dict[str, type[TypeEngine[Any]]] = {
    "BOOL": types.Boolean,
    "TINYINT": types.SmallInteger,
    "SMALLINT": types.SmallInteger,
    "INT": types.Integer,
    "BIGINT": types.BigInteger,
    "TINYINT UNSIGNED": types.SmallInteger,
    "SMALLINT UNSIGNED": types.Integer,
    "INT UNSIGNED": types.BigInteger,
    "BIGINT UNSIGNED": types.BigInteger,
    "FLOAT": types.Float,
    "DOUBLE": types.Double,
    "TIMESTAMP": types.TIMESTAMP,
    "JSON": types.JSON,
}


def type_of(text: str, length: int | None) -> TypeEngine[Any]:
    """Return the type of a column as DESCRIBE says it.

    Args:
        text: such as `INT` or `DECIMAL(10,2)`.
        length: of a text or bytes.
    """
    shape = _SHAPE.fullmatch(text.upper())
    name = shape["name"] if shape is not None else text.upper()
    if name in ("VARCHAR", "NCHAR"):
        return types.String(length)
    if name == "VARBINARY":
        return types.LargeBinary(length)
    if name == "DECIMAL" and shape is not None and shape["sizes"]:
        precision, scale = (int(size) for size in shape["sizes"].split(","))
        return types.Numeric(precision, scale)
    if name == "TIMESTAMP":
        return types.TIMESTAMP(timezone=True)
    return _SQL.get(name, types.NullType)()


class PenstockTypes(GenericTypeCompiler):
    """Names of types for CREATE TABLE and CAST."""

    def visit_BOOLEAN(self, type_: Any, **kw: Any) -> str:  # noqa: N802 - SQLAlchemy's name
        return "BOOL"

    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "INT"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        # a float of Python's has more digits than a FLOAT
        return "FLOAT" if type_.precision is not None and type_.precision <= 24 else "DOUBLE"

    def visit_DOUBLE_PRECISION(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "DOUBLE"

    visit_REAL = visit_FLOAT
    visit_DOUBLE = visit_DOUBLE_PRECISION

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        if type_.precision is None:
            return "DOUBLE"
        return f"DECIMAL({type_.precision}, {type_.scale or 0})"

    visit_DECIMAL = visit_NUMERIC

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return f"VARCHAR({type_.length or LONGEST})"

    visit_TEXT = visit_VARCHAR
    visit_CHAR = visit_VARCHAR
    visit_CLOB = visit_VARCHAR

    def visit_NVARCHAR(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return f"NCHAR({type_.length or LONGEST // 4})"

    visit_NCHAR = visit_NVARCHAR

    def visit_VARBINARY(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return f"VARBINARY({type_.length or LONGEST})"

    visit_BLOB = visit_VARBINARY
    visit_BINARY = visit_VARBINARY

    def visit_large_binary(self, type_: Any, **kw: Any) -> str:
        return self.visit_VARBINARY(type_, **kw)

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        return "TIMESTAMP"

    visit_TIMESTAMP = visit_DATETIME

    def visit_DATE(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        raise CompileError("Penstock has no DATE: use DateTime, whose column is a TIMESTAMP")

    def visit_TIME(self, type_: Any, **kw: Any) -> str:  # noqa: N802
        raise CompileError("Penstock has no TIME: use an integer, or DateTime")
