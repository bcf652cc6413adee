"""Python values on their way into a table: numpy's and pandas' become Python's, NaN becomes NULL,
and types are checked.

The rules are the gateway's (`gateway.rows`): nothing is rounded, cut or guessed. All errors are
SchemaErrors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import SchemaError
from penstock.rows import python_values
from penstock.rows.parameters import Parameters

#: what libraries make of values that do not fit
_UNFIT = (pa.ArrowException, InvalidOperation, OverflowError, ValueError, TypeError)
_FLOAT32 = 3.4028235677973366e38


def _plain_datetime(value: np.datetime64) -> Any:
    if np.isnat(value):
        return None
    return f"{np.datetime_as_string(value)}Z" if _has_time(value) else value.item()


def plain(value: Any) -> Any:
    """Return a value as Python has it; NaN, NaT and NA are None."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, np.datetime64):
        return _plain_datetime(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return None if type(value).__name__ in ("NaTType", "NAType") else value


def plain_parameters(parameters: Parameters) -> Parameters:
    """Return *parameters* with Python's values for numpy's and pandas'."""
    if isinstance(parameters, Mapping):
        return {name: plain(value) for name, value in parameters.items()}
    if isinstance(parameters, list | tuple):
        return [plain(value) for value in parameters]
    return parameters


def _has_time(value: np.datetime64) -> bool:
    return np.datetime_data(value.dtype)[0] not in ("Y", "M", "W", "D")


def to_json(rows: Sequence[Any]) -> str:
    """Rows as the gateway reads them. Raises SchemaError."""
    try:
        try:
            return json.dumps(list(rows), default=_default, allow_nan=False)
        except ValueError:
            return json.dumps(
                [_without_nan(i, row) for i, row in enumerate(rows)],
                default=_default,
                allow_nan=False,
            )
    except (ValueError, TypeError, RecursionError) as wrong:
        raise SchemaError("the rows are not JSON", code="E_ROW", detail=str(wrong)[:200]) from None


def _default(value: Any) -> Any:
    """What JSON has no form for."""
    made = plain(value)
    if isinstance(made, bytes):
        return {python_values.BYTES: made.hex()}
    return made if made is None or isinstance(made, bool | int | float | str) else str(made)


def _without_nan(number: int, row: Any) -> Any:
    if not isinstance(row, Mapping):
        return row
    made = {name: plain(value) for name, value in row.items()}
    for name, value in made.items():
        if isinstance(value, float) and math.isinf(value):
            raise SchemaError(f'row {number}, column "{name}": {value} is infinite', code="E_ROW")
    return made


class _FloatingColumns:
    """Places of a schema's columns of floating-point numbers. Writers send one schema again and
    again, and a look at its types costs as much as one at 500 values.
    """

    def __init__(self) -> None:
        self._last: tuple[pa.Schema, tuple[int, ...]] = (pa.schema([]), ())

    def of(self, schema: pa.Schema) -> tuple[int, ...]:
        known, places = self._last
        if not schema.equals(known):
            places = tuple(i for i, k in enumerate(schema.types) if pa.types.is_floating(k))
            self._last = (schema, places)
        return places


_floating_columns = _FloatingColumns()


def without_nan(table: pa.Table) -> pa.Table:
    """*table* with NULL for NaN."""
    for place in _floating_columns.of(table.schema):
        column = table.column(place)
        if _has_nan(column):
            import pyarrow.compute as pc

            found = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
            field = pa.field(table.field(place).name, column.type)
            table = table.set_column(place, field, found)
    return table


def _has_nan(column: pa.ChunkedArray) -> bool:
    if any(
        bool(np.isnan(chunk.to_numpy(zero_copy_only=False)).any())
        for chunk in column.chunks
        if not chunk.null_count
    ):
        return True
    if not column.null_count:
        return False
    # a tenth of a second to load: a client that only asks pays nothing for it
    import pyarrow.compute as pc

    return bool(pc.any(pc.is_nan(column)).as_py())


def columns_of(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Rows that are objects as columns. Raises SchemaError."""
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise SchemaError(
                f"row {i} is not an object", code="E_ROW", hint='a row is {"column": value, …}'
            )
    return {
        str(k): [row.get(k) for row in rows] for k in dict.fromkeys(k for row in rows for k in row)
    }


def column(name: str, values: Any, kind: pa.DataType | None) -> pa.Array:
    """Make a column of Python, numpy, pandas, polars or Arrow values one of Arrow.

    Args:
        kind: of the table's column; by default what the values look like.

    Raises:
        SchemaError: a value does not fit.
    """
    try:
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if isinstance(values, str | bytes | Mapping):
            raise TypeError(f"{type(values).__name__} is no column")
        if isinstance(values, np.ndarray):
            if values.dtype.kind == "M":
                return pa.array(values)
            if values.dtype.kind in "iuf" and (kind is None or _numeric(kind)):
                return _numbers(name, pa.array(values, from_pandas=True), kind)
            values = values.tolist()
        items = [plain(v) for v in values]
    except _UNFIT as wrong:
        raise SchemaError(
            f'column "{name}" cannot be read', code="E_ROW", detail=str(wrong)[:200]
        ) from None
    try:
        return pa.array(items) if kind is None else _fit(items, kind)
    except _UNFIT as wrong:
        shown = kind if kind is not None else "one type"
        raise SchemaError(
            f'a value of column "{name}" is no {shown}', code="E_ROW", detail=str(wrong)[:200]
        ) from None


def _numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _numbers(name: str, found: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """Numbers as *kind*. Raises SchemaError."""
    try:
        return found if kind is None else found.cast(kind)
    except pa.ArrowException as wrong:
        raise SchemaError(
            f'a value of column "{name}" is no {kind}', code="E_ROW", detail=str(wrong)[:200]
        ) from None


def _fit(items: list[Any], kind: pa.DataType) -> pa.Array:
    """Raises one of _UNFIT: a value is not of *kind*."""
    convert = _converter(kind)
    try:
        return pa.array([None if value is None else convert(value) for value in items], kind)
    except _UNFIT:
        for i, value in enumerate(items):  # which one it is
            try:
                pa.array([None if value is None else convert(value)], kind)
            except _UNFIT:
                raise ValueError(f"row {i}: {value!r:.64}") from None
        raise


def _converter(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_boolean(kind):
        return _bool
    if pa.types.is_integer(kind):
        return _whole
    if pa.types.is_floating(kind):
        return _float32 if pa.types.is_float32(kind) else _number
    if pa.types.is_decimal(kind):
        return lambda value: python_values.decimal(value, kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return _time
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return python_values.binary
    return python_values.text


def _bool(value: Any) -> bool:
    if isinstance(value, bool) or (isinstance(value, int | float) and value in (0, 1)):
        return bool(value)
    raise ValueError(value)


def _whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise ValueError(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
        raise ValueError(value)
    return float(value)


def _float32(value: Any) -> float:
    found = _number(value)
    if abs(found) >= _FLOAT32:
        raise ValueError(value)
    return found


def _time(value: Any) -> Any:
    """Ticks, or a time; one without a zone is UTC."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ValueError(value)
