"""What Debezium tells of a database's table, as versions of rows in a table of ours that follows
it: who changes a row there overwrites it here, who deletes it there deletes it here.

A row of ours is found by its time and its key column. A change that moves a row (its time or key is
another) deletes it at its old place, which the message has to say: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from penstock.errors import SchemaError
from penstock.foreign.connect import UNKNOWN, fit
from penstock.foreign.envelopes import Envelope, Envelopes, Record
from penstock.foreign.unreadable import refusing
from penstock.rows.versions import CLEAR, DELETE, MERGE, UPSERT, filler
from penstock.sql.plan import Column, Precision

#: key and value of a message; without a value it is a tombstone
KeyValue = tuple[bytes | None, bytes | None]
#: time in ticks, and the value of the key column
_Place = tuple[int, Any]
#: what PostgreSQL's connector has for a large value that a change did not touch
_UNTOUCHED = (
    "__debezium_unavailable_value",
    b"__debezium_unavailable_value",
    "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
)
#: fields of a key that a connector's own router adds
_ROUTED = "__dbz__"
#: the time of every row of a table that has none of its own
_FIXED = 0
_WHOLE_ROWS = "PostgreSQL says it after ALTER TABLE … REPLICA IDENTITY FULL"


@dataclass(frozen=True)
class _Version:
    """A row to be written. `message` is the number of its message, `row` its number within that."""

    message: int
    row: int
    op: int
    values: Mapping[str, Any] = field(repr=False)


class Changes:
    """Decodes messages of one topic. One thread.

    Args:
        columns: the table's, its time first and its key column second.
        fixed_time: rows have no time of their own, so that the key column alone tells them apart.
    """

    def __init__(
        self,
        envelopes: Envelopes,
        columns: Sequence[Column],
        precision: Precision,
        *,
        fixed_time: bool,
    ) -> None:
        self._envelopes = envelopes
        self._columns = tuple(columns)
        self._time, self._key = columns[0], columns[1]
        self._precision = precision
        self._fixed = fixed_time
        self._types = {c.name: c.type.polars() for c in columns}

    def decode(self, messages: Sequence[KeyValue]) -> pl.DataFrame:
        """Versions in the order of *messages*, of which each makes none to two: `_op`, the table's
        columns, `_message` (its number in *messages*) and `_row` (the version's in its message).

        Raises:
            SchemaError: one of them cannot be followed.
            RemoteError: its schema cannot be had now.
        """
        found = [
            version
            for number, (key, value) in enumerate(messages)
            for version in self._versions(number, key, value)
        ]
        frame = {
            "_message": pl.Series([v.message for v in found], dtype=pl.Int64),
            "_row": pl.Series([v.row for v in found], dtype=pl.Int64),
            "_op": pl.Series([v.op for v in found], dtype=pl.Int8),
        }
        for column in self._columns:
            values = [v.values.get(column.name) for v in found]
            try:
                series = pl.Series(column.name, values, self._types[column.name], strict=True)
            except (TypeError, OverflowError, pl.exceptions.PolarsError) as wrong:
                raise _no_value(column, wrong) from None
            frame[column.name] = series
        return pl.DataFrame(frame)

    def _versions(self, number: int, key: bytes | None, value: bytes | None) -> list[_Version]:
        with refusing("the message cannot be read"):
            named = None if key is None else self._envelopes.key(key)
            if value is None:
                made = self._of_tombstone(named)
            else:
                self._check_key(named)
                envelope = self._envelopes.envelope(value)
                made = [] if envelope is None else self._of_envelope(envelope, named)
        return [_Version(number, row, op, values) for row, (op, values) in enumerate(made)]

    def _check_key(self, named: Record | None) -> None:
        """Raise SchemaError for rows whose key is longer than ours: two of them would be one row
        here.
        """
        own = {self._key.name} if self._fixed else {self._key.name, self._time.name}
        more = [n for n in (named.values if named else ()) if n not in own]
        strange = [n for n in more if not str(n).startswith(_ROUTED)]
        if strange:
            raise SchemaError(
                f"rows are told apart by {strange[0]}, too",
                code="E_MALFORMED",
                detail=f"the key of this table is {', '.join(sorted(own))}",
            )

    # ---------------------------------------------------------------- one message

    def _of_tombstone(self, named: Record | None) -> list[tuple[int, dict[str, Any]]]:
        """Behind a delete it says the same again. It stands alone where compaction took the
        delete.
        """
        place = self._place(named)
        return [] if place is None else [self._delete(place)]

    def _of_envelope(
        self, envelope: Envelope, named: Record | None
    ) -> list[tuple[int, dict[str, Any]]]:
        if envelope.op == "d":
            place = self._old_place(envelope.before, named)
            if place is None:
                raise _no_old_place("the message of a delete", self._time)
            return [self._delete(place)]
        if envelope.after is None:
            raise SchemaError("the message has no row after the change", code="E_MALFORMED")
        return self._upsert(envelope, envelope.after, named)

    def _upsert(
        self, envelope: Envelope, after: Record, named: Record | None
    ) -> list[tuple[int, dict[str, Any]]]:
        """Return the row after the change, preceded by its deletion if it was elsewhere before."""
        place = self._place(after)
        if place is None:
            raise self._no_place(after)
        old = self._old_place(envelope.before, named) if envelope.op == "u" else None
        if envelope.op == "u" and old is None and not self._fixed:
            raise _no_old_place("the message of an update", self._time)
        moved = old is not None and old != place
        row, untouched = self._row(after, envelope.before, place)
        if not untouched:
            written = [(UPSERT, row)]
        elif moved:
            raise _no_old_place(f"a row that moved without its {untouched[0]}", self._time)
        else:
            written = self._merge(row, untouched)
        return [self._delete(old), *written] if old is not None and moved else written

    def _merge(self, row: dict[str, Any], untouched: Sequence[str]) -> list[Any]:
        """Return the row without the values that stay. In other columns NULL counts as a value."""
        keys = (self._time.name, self._key.name)
        empty = {
            c.name: filler(self._types[c.name])
            for c in self._columns
            if row[c.name] is None and c.name not in untouched
        }
        clear = [(CLEAR, {k: row[k] for k in keys} | empty)] if empty else []
        return [*clear, (MERGE, row)]

    def _row(
        self, after: Record, before: Record | None, place: _Place
    ) -> tuple[dict[str, Any], list[str]]:
        """Return a row, and the names of columns whose values the message does not say."""
        row: dict[str, Any] = {self._time.name: place[0], self._key.name: place[1]}
        untouched = []
        for column in self._columns[2:]:
            value, source = after.values.get(column.name), after
            if _is_untouched(value) and before is not None:
                value, source = before.values.get(column.name), before
                value = _UNTOUCHED[0] if value is None else value
            if _is_untouched(value):
                untouched.append(column.name)
                value = None
            row[column.name] = self._fit(value, source, column)
        return row, untouched

    def _delete(self, place: _Place) -> tuple[int, dict[str, Any]]:
        return DELETE, {self._time.name: place[0], self._key.name: place[1]}

    # ---------------------------------------------------------------- places

    def _old_place(self, before: Record | None, named: Record | None) -> _Place | None:
        """Return where the row was, or None if the message does not say."""
        place = self._place(before)
        # of a NOT NULL column that is not in the replica identity, PostgreSQL's connector says 0
        if place is not None and not self._fixed and place[0] == 0:
            place = None
        return place or self._place(named)

    def _place(self, record: Record | None) -> _Place | None:
        """Return the place in *record*, or None if it does not say all of it."""
        if record is None:
            return None
        time = _FIXED if self._fixed else self._value(record, self._time)
        key = self._value(record, self._key)
        return None if time is None or key is None else (time, key)

    def _value(self, record: Record, column: Column) -> Any:
        return self._fit(record.values.get(column.name), record, column)

    def _fit(self, value: Any, record: Record, column: Column) -> Any:
        kind = record.kinds.get(column.name, UNKNOWN)
        try:
            return fit(value, kind, column, self._precision)
        except (ValueError, OverflowError) as wrong:
            raise _no_value(column, wrong) from None

    def _no_place(self, record: Record) -> SchemaError:
        missing = self._key
        if not self._fixed and self._value(record, self._time) is None:
            missing = self._time
        known = missing.name in record.values
        hint = "it is NULL" if known else "the source has no such column"
        if missing is self._time:
            hint += "; fixed_time = true is for tables without a time that stays"
        return SchemaError(f"the row has no {missing.name}", code="E_MALFORMED", detail=hint)


def _is_untouched(value: Any) -> bool:
    return isinstance(value, str | bytes) and value in _UNTOUCHED


def _no_old_place(what: str, time: Column) -> SchemaError:
    return SchemaError(
        f"{what} does not say what the row was before",
        code="E_MALFORMED",
        detail=f"its old {time.name} and key are needed; {_WHOLE_ROWS}",
    )


def _no_value(column: Column, wrong: Exception) -> SchemaError:
    return SchemaError(
        f"{column.name} is no {column.type}", code="E_MALFORMED", detail=str(wrong)[:200]
    )
