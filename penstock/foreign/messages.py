"""Messages of a foreign topic as columns, and rows as messages: JSON objects, or Avro as a
Confluent Schema Registry frames it.

Decoding is whole or not at all: who is refused halves the messages to find the bad one, so good
ones never pay for it.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Sequence
from typing import Any, Literal

import fastavro
import polars as pl

from penstock.errors import SchemaError
from penstock.foreign.avro import Nanoseconds, row_of
from penstock.foreign.framing import frame_prefix, strip_frame, unframe
from penstock.foreign.registry import SchemaRegistry
from penstock.foreign.unreadable import refusing
from penstock.sql.plan import TICKS_PER_SECOND, Column, Precision

#: microseconds that fit into 64 bits of nanoseconds
_MOST_MICROS = (2**63 - 1) // 1000
_TEXTS = ("TIMESTAMP", "DECIMAL", "VARBINARY")


class Messages:
    """Decodes and encodes messages of one topic.

    Args:
        columns: the table's, its time first.
    """

    def __init__(
        self,
        form: Literal["json", "avro"],
        columns: Sequence[Column],
        precision: Precision,
        registry: SchemaRegistry | None,
    ) -> None:
        self._form = form
        self._columns = tuple(columns)
        self._precision = precision
        self._registry = registry
        self._read = {
            c.name: pl.String() if c.type.kind in _TEXTS else c.type.polars() for c in columns
        }

    def decode(self, values: Sequence[bytes]) -> pl.DataFrame:
        """A row for each message; times are ticks, fields that a message has not are NULL, other
        fields are left out.

        Raises:
            SchemaError: one of them is no such message.
            RemoteError: its schema cannot be had now.
        """
        with refusing("the message cannot be read"):
            return self._from_json(values) if self._form == "json" else self._from_avro(values)

    def encode(self, rows: pl.DataFrame, subject: str) -> list[bytes]:
        """Make a message of each row; *rows* as `decode` gives them. Raises SchemaError,
        RemoteError.
        """
        if self._form == "json":
            lines = rows.select(self._as_text(c) for c in self._columns).write_ndjson()
            return lines.encode().split(b"\n")[: rows.height]
        return self._encode_avro(rows, subject)

    def _encode_avro(self, rows: pl.DataFrame, subject: str) -> list[bytes]:
        assert self._registry is not None
        schema_id, schema = self._registry.newest(subject)
        named = {f["name"]: f["type"] for f in schema.get("fields", ())}
        for column in self._columns:
            if column.name not in named and rows[column.name].null_count() < rows.height:
                raise SchemaError(
                    f"the topic's schema has no field {column.name}",
                    code="E_REMOTE_SCHEMA",
                    detail=f"subject {subject}",
                )
        prefix = frame_prefix(schema_id)
        messages = []
        known = [c for c in self._columns if c.name in named]
        objects = rows.select(self._object(c, named[c.name]) for c in known)
        for row in objects.iter_rows(named=True):
            out = io.BytesIO()
            try:
                fastavro.schemaless_writer(out, schema, row)
            except Exception as wrong:
                raise SchemaError(
                    "a row does not fit the topic's schema", code="E_ROW", detail=str(wrong)[:200]
                ) from None
            messages.append(prefix + out.getvalue())
        return messages

    # ---------------------------------------------------------------- JSON

    def _from_json(self, values: Sequence[bytes]) -> pl.DataFrame:
        # a newline inside an object is white space: in a text it would be escaped
        lines = b"\n".join(strip_frame(v).replace(b"\n", b" ") for v in values)
        try:
            frame = pl.read_ndjson(io.BytesIO(lines), schema=self._read)
        except pl.exceptions.PolarsError as wrong:
            raise SchemaError(
                "the message is no JSON object with these fields",
                code="E_MALFORMED",
                detail=str(wrong)[:200],
            ) from None
        if frame.height != len(values):
            raise SchemaError("the message is no JSON object", code="E_MALFORMED")
        return frame.select(self._meant(frame[c.name], c) for c in self._columns)

    def _meant(self, series: pl.Series, column: Column) -> pl.Series:
        """The value that a text stands for."""
        kind = column.type.kind
        if kind == "TIMESTAMP":
            found = self._ticks(series)
        elif kind == "DECIMAL":
            found = series.cast(column.type.polars(), strict=False)
        elif kind == "VARBINARY":
            found = series.str.decode("hex", strict=False)
        else:
            return series
        if found.null_count() != series.null_count():
            bad = series.filter(found.is_null() & series.is_not_null())[0]
            raise SchemaError(
                f"{column.name} is no {column.type}", code="E_MALFORMED", detail=str(bad)[:100]
            )
        return found

    def _ticks(self, series: pl.Series) -> pl.Series:
        """Numbers are ticks already; texts are ISO 8601, in UTC unless they say otherwise."""
        text = series.str.replace(" ", "T", literal=True).str.replace("Z$", "+00:00")
        zoned = text.str.contains(r"T.*[+-]\d\d:?\d\d$")
        text = pl.select(pl.when(zoned).then(text).otherwise(text + "+00:00")).to_series()
        numbers = series.cast(pl.Int64, strict=False)
        return (
            pl.select(pl.coalesce(numbers, self._read_times(text))).to_series().alias(series.name)
        )

    def _read_times(self, text: pl.Series) -> pl.Series:
        """Ticks of texts; of times that nanoseconds cannot count the least number, which is no
        time.
        """
        form = "%Y-%m-%dT%H:%M:%S%.f%:z"
        times = text.str.to_datetime(form, time_unit=self._precision, strict=False).to_physical()
        if self._precision != "ns":
            return times
        micros = text.str.to_datetime(form, time_unit="us", strict=False).to_physical()
        inside = micros.is_between(-_MOST_MICROS, _MOST_MICROS).fill_null(value=True)
        return times.zip_with(inside, pl.Series([-(2**63)], dtype=pl.Int64))

    def _as_text(self, column: Column) -> pl.Expr:
        given = pl.col(column.name)
        if column.type.kind == "TIMESTAMP":
            digits = {"ms": 3, "us": 6, "ns": 9}[self._precision]
            return given.cast(pl.Datetime(self._precision)).dt.strftime(
                f"%Y-%m-%dT%H:%M:%S%.{digits}fZ"
            )
        if column.type.kind == "VARBINARY":
            return given.bin.encode("hex")
        return given.cast(pl.String) if column.type.kind == "DECIMAL" else given

    # ---------------------------------------------------------------- Avro

    def _from_avro(self, values: Sequence[bytes]) -> pl.DataFrame:
        assert self._registry is not None
        rows = []
        for value in values:
            schema_id, body = unframe(value)
            rows.append(row_of(body, self._registry.schema(schema_id)))
        return pl.DataFrame([self._column(c, [r.get(c.name) for r in rows]) for c in self._columns])

    def _column(self, column: Column, values: list[Any]) -> pl.Series:
        try:
            if column.type.kind == "TIMESTAMP":
                # logical types come as datetimes, plain numbers are ticks; schemas of one topic may
                # differ in that
                given = [self._moment(v) for v in values]
                times = pl.Series(
                    [None if isinstance(v, int) else v for v in given],
                    dtype=pl.Datetime(self._precision, "UTC"),
                    strict=True,
                )
                ticks = pl.Series(
                    [v if isinstance(v, int) else None for v in given], dtype=pl.Int64
                )
                return (
                    pl.select(pl.coalesce(ticks, times.to_physical()))
                    .to_series()
                    .alias(column.name)
                )
            return pl.Series(column.name, values, column.type.polars(), strict=True)
        except (TypeError, pl.exceptions.PolarsError, OverflowError) as wrong:
            raise SchemaError(
                f"{column.name} is no {column.type}", code="E_MALFORMED", detail=str(wrong)[:200]
            ) from None

    def _moment(self, value: Any) -> Any:
        """A time as an aware datetime or ticks: times without a zone are UTC, dates their
        midnight.
        """
        if isinstance(value, Nanoseconds):
            return value * TICKS_PER_SECOND[self._precision] // TICKS_PER_SECOND["ns"]
        if isinstance(value, dt.datetime):
            return value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return (
            dt.datetime.combine(value, dt.time(), dt.UTC) if isinstance(value, dt.date) else value
        )

    def _object(self, column: Column, kind: Any) -> pl.Expr:
        """As fastavro wants it: for a logical type a datetime, for a number the ticks."""
        given = pl.col(column.name)
        logical = [
            k["logicalType"]
            for k in (kind if isinstance(kind, list) else [kind])
            if isinstance(k, dict) and "logicalType" in k
        ]
        if column.type.kind == "TIMESTAMP" and any(
            str(name).endswith("-nanos") for name in logical
        ):
            return given * (TICKS_PER_SECOND["ns"] // TICKS_PER_SECOND[self._precision])
        timed = bool(logical)
        return (
            given.cast(pl.Datetime(self._precision, "UTC"))
            if timed and column.type.kind == "TIMESTAMP"
            else given
        )
