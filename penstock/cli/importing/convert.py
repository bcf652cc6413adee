"""Values of a file as columns of a table, without loss; of the first one that does not fit its line
is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.cli.importing.found_types import as_text, is_text
from penstock.cli.importing.pieces import FilePiece, RowFile, excerpt, fault
from penstock.cli.importing.times import read_times, to_unit
from penstock.errors import SchemaError

Values: TypeAlias = list[Any] | pa.ChunkedArray
#: what Arrow and Python say of values that do not fit
_UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)
_TICKS = r"^-?[0-9]{1,19}$"


@dataclass(frozen=True)
class ColumnUse:
    """What becomes of a column of the file: the column of the table that it fills, and its type."""

    source: str
    target: str
    type: pa.DataType


@dataclass(frozen=True)
class Converter:
    """Makes pieces of *file* tables. `cut_times` leaves out digits that times have too many."""

    file: RowFile
    uses: Sequence[ColumnUse]
    cut_times: bool = False

    def table(self, piece: FilePiece) -> pa.Table:
        """Return the rows of *piece*. Raises SchemaError: a value does not fit."""
        columns = [self._column(piece, use) for use in self.uses]
        return pa.table(columns, names=[use.target for use in self.uses])

    def _column(self, piece: FilePiece, use: ColumnUse) -> pa.Array | pa.ChunkedArray:
        count = len(piece.places)
        values = piece.columns.get(use.source)
        if values is None:  # no row of this piece has the key
            return pa.nulls(count, use.type)

        def attempt(start: int, end: int) -> pa.Array | pa.ChunkedArray:
            part = _slice(values, start, end)
            return convert(part, use.type, textual=self.file.textual, cut_times=self.cut_times)

        try:
            return attempt(0, count)
        except _UNFIT:
            bad = _first_unfit(attempt, count)
            value = _slice(values, bad, bad + 1)
            raise self._refusal(piece.places[bad], value, use) from None

    def _refusal(self, place: int, value: Values, use: ColumnUse) -> SchemaError:
        """Return the error of one value, given as a column of it alone."""
        plain = value.to_pylist()[0] if isinstance(value, pa.ChunkedArray) else value[0]
        what = f"{excerpt(plain)} is no {_word(use.type)}"
        hint = ""
        if pa.types.is_timestamp(use.type):
            hint = "write 2026-03-01T09:00:00.5Z, or ticks as a whole number"
            if self._fits_when_cut(value, use.type):
                what = f"{excerpt(plain)} has more digits than times in {use.type.unit}"
                hint = "--cut-times leaves them out; CREATE DATABASE … PRECISION 'ns' keeps them"
        return fault(self.file.path, self.file.unit, place, f'column "{use.source}": {what}', hint)

    def _fits_when_cut(self, value: Values, kind: pa.DataType) -> bool:
        try:
            convert(value, kind, textual=self.file.textual, cut_times=True)
        except _UNFIT:
            return False
        return True


def convert(
    values: Values, kind: pa.DataType, *, textual: bool, cut_times: bool
) -> pa.Array | pa.ChunkedArray:
    """Return *values* as Arrow's *kind*.

    Args:
        textual: values are text that stands for numbers and truth values.
        cut_times: leave out digits that times have too many.

    Raises:
        one of `_UNFIT`: a value does not fit.
    """
    if isinstance(values, pa.ChunkedArray):
        return _convert_arrow(values, kind, cut_times)
    if is_text(kind):
        return pa.array([None if v is None else as_text(v) for v in values], kind)
    if textual or _are_time_texts(values, kind):
        return _convert_texts(pa.array(values, pa.string()), kind, cut_times)
    return _convert_json(values, kind)


def _are_time_texts(values: Sequence[Any], kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and any(isinstance(value, str) for value in values)


def _convert_json(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return numbers and truth values as *kind*; a time is a number of ticks."""
    if bool in set(map(type, values)) and not pa.types.is_boolean(kind):
        raise TypeError("a truth value is no number")
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def _convert_texts(texts: pa.Array, kind: pa.DataType, cut_times: bool) -> pa.Array:
    if pa.types.is_timestamp(kind):
        if pc.all(pc.match_substring_regex(texts, _TICKS)).as_py():
            return texts.cast(pa.int64()).cast(kind)
        found = read_times(texts)
        if found is None:
            raise ValueError("no times")
        return to_unit(found, kind.unit, cut=cut_times)
    if pa.types.is_floating(kind):
        return _finite(texts.cast(pa.float64())).cast(kind)
    return texts.cast(kind)


def _convert_arrow(values: pa.ChunkedArray, kind: pa.DataType, cut_times: bool) -> pa.ChunkedArray:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_timestamp(kind) and pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(values.type):
        return to_unit(values, kind.unit, cut=cut_times)
    return values.cast(kind)


def _slice(values: Values, start: int, end: int) -> Any:
    if isinstance(values, pa.ChunkedArray):
        return values.slice(start, end - start)
    return values[start:end]


def _first_unfit(attempt: Callable[[int, int], Any], count: int) -> int:
    """Return the first value that cannot be converted, by halving: each value is seen twice."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        try:
            attempt(low, middle)
        except _UNFIT:
            high = middle
        else:
            low = middle
    return low


def _finite(numbers: pa.Array) -> pa.Array:
    if pc.any(pc.is_inf(numbers)).as_py():
        raise ValueError("infinite")
    return numbers


def _word(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "time"
    if pa.types.is_integer(kind):
        return f"whole number of {kind.bit_width} bits"
    if pa.types.is_floating(kind):
        return "number"
    return "truth value" if pa.types.is_boolean(kind) else str(kind)
