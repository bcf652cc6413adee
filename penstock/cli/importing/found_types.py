"""Which type of column holds all values that a file has: the narrowest of BOOL, BIGINT, DOUBLE and
TIMESTAMP, else VARCHAR. Columns of Parquet say theirs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.cli.importing.times import read_times
from penstock.errors import SchemaError
from penstock.types import FROM_ARROW, ColumnType

_KINDS = ("BOOL", "BIGINT", "DOUBLE", "TIMESTAMP")
_WHOLE = r"^-?(0|[1-9][0-9]{0,18})$"
#: `007` is a name, not the number 7, and a DOUBLE has 15 digits that are sure
_NO_NUMBER = r"^[+-]?0[0-9]|^-?[0-9]{17,}$"
_EXACT = 2**53
_INT64 = range(-(2**63), 2**63)
#: lengths of text columns, in bytes
_LEAST, _MOST = 16, 65_517


class TypeFinder:
    """Sees the values of one column, piece by piece."""

    def __init__(self, name: str, *, textual: bool) -> None:
        """*textual*: values are text that may stand for numbers and truth values."""
        self.name = name
        self._textual = textual
        self._left = list(_KINDS)
        self._longest = 0
        self._own: ColumnType | None = None
        #: there was a value
        self.any = False

    def see(self, values: list[Any] | pa.ChunkedArray) -> None:
        """Take more values. Raises SchemaError: no column can have them."""
        if isinstance(values, pa.ChunkedArray):
            self._see_arrow(values)
            return
        present = [value for value in values if value is not None]
        if not present:
            return
        self.any = True
        if self._textual or all(isinstance(value, str) for value in present):
            self._see_texts(pa.array(present, pa.string()))
        else:
            self._see_json(present)

    def _see_json(self, values: list[Any]) -> None:
        kinds = _kinds_of_json(values)
        self._left = [kind for kind in self._left if kind in kinds]
        self._longest = max(self._longest, *(len(as_text(v).encode()) for v in values))

    def _see_texts(self, texts: pa.Array) -> None:
        tests = _TEXT_TESTS if self._textual else {"TIMESTAMP": _TEXT_TESTS["TIMESTAMP"]}
        self._left = [kind for kind in self._left if kind in tests and tests[kind](texts)]
        self._longest = max(self._longest, pc.max(pc.binary_length(texts)).as_py())

    def _see_arrow(self, values: pa.ChunkedArray) -> None:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        self.any = self.any or values.null_count < len(values)
        kind = values.type
        if _is_sized(kind):
            self._longest = max(self._longest, pc.max(pc.binary_length(values)).as_py() or 0)
        self._own = _type_of_arrow(self.name, kind, self._longest)

    def column_type(self) -> ColumnType:
        """Return the type that holds everything that was seen."""
        if self._own is not None:
            return self._own
        if self.any and self._left:
            return ColumnType(self._left[0])
        return ColumnType("VARCHAR", _length(self._longest))


def as_text(value: Any) -> str:
    """Return a value of JSON as text, which is what a column of mixed values holds."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _kinds_of_json(values: list[Any]) -> tuple[str, ...]:
    types = set(map(type, values))
    if types == {bool}:
        return ("BOOL",)
    if not types <= {int, float}:
        return ()
    kinds = []
    if types == {int} and all(value in _INT64 for value in values):
        kinds.append("BIGINT")
    if all(math.isfinite(v) if isinstance(v, float) else abs(v) <= _EXACT for v in values):
        kinds.append("DOUBLE")
    return tuple(kinds)


def _are_whole(texts: pa.Array) -> bool:
    return _all(pc.match_substring_regex(texts, _WHOLE)) and _casts(texts, pa.int64()) is not None


def _are_numbers(texts: pa.Array) -> bool:
    if pc.any(pc.match_substring_regex(texts, _NO_NUMBER)).as_py():
        return False
    found = _casts(texts, pa.float64())
    return found is not None and not pc.any(pc.is_inf(found)).as_py()


def _are_truths(texts: pa.Array) -> bool:
    return _all(pc.match_substring_regex(texts, "^(true|false)$", ignore_case=True))


_TEXT_TESTS: dict[str, Callable[[pa.Array], bool]] = {
    "BOOL": _are_truths,
    "BIGINT": _are_whole,
    "DOUBLE": _are_numbers,
    "TIMESTAMP": lambda texts: read_times(texts) is not None,
}


def _all(truths: pa.Array) -> bool:
    return bool(pc.all(truths).as_py())


def _casts(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return texts.cast(kind)
    except pa.ArrowException:
        return None


def _is_sized(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def is_text(kind: pa.DataType) -> bool:
    """Tell whether columns of *kind* hold text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _type_of_arrow(name: str, kind: pa.DataType, longest: int) -> ColumnType:
    if kind in FROM_ARROW:
        return ColumnType(FROM_ARROW[kind])
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return ColumnType("TIMESTAMP")
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return ColumnType("DECIMAL", precision=kind.precision, scale=kind.scale)
    if _is_sized(kind):
        return ColumnType("VARCHAR" if is_text(kind) else "VARBINARY", _length(longest))
    if pa.types.is_null(kind):
        return ColumnType("VARCHAR", _LEAST)
    raise SchemaError(
        f'column "{name}" has the type {kind}, which no column can have',
        code="E_ROW",
        hint="write it as text, or leave it out of the file",
    )


def word_of(kind: pa.DataType) -> str:
    """Return what a column of Arrow's *kind* is called in SQL; of text the length is not known."""
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if is_text(kind):
        return "VARCHAR"
    return FROM_ARROW.get(kind, "VARBINARY" if _is_sized(kind) else str(kind))


def _length(longest: int) -> int:
    """Return a length with room for values somewhat longer than those seen."""
    length = _LEAST
    while length < longest:
        length *= 2
    return min(length, _MOST)
