"""Messages of a foreign topic as columns, and rows as messages: JSON objects, or Avro as a Confluent Schema Registry frames it.

Decoding is whole or not at all: who is refused halves the messages to find the bad one, so good ones never pay for it.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from typing import Any, Literal

import fastavro
import httpx
import polars as pl
from fastavro.schema import parse_schema

from penstock.errors import RemoteError, SchemaError
from penstock.sql.plan import Column, Precision

_MAGIC = 0
_PREFIX = struct.Struct(">bI")
_TEXTS = ("TIMESTAMP", "DECIMAL", "VARBINARY")
_TIMEOUT_S = 10.0


class Registry:
    """A Schema Registry's schemas, each asked for once. Blocks; one thread at a time."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=_TIMEOUT_S)
        self._schemas: dict[int, Any] = {}

    def schema(self, schema_id: int) -> Any:
        """Raises SchemaError (there is none of this id) or RemoteError (the registry does not answer)."""
        if schema_id not in self._schemas:
            self._schemas[schema_id] = self._parsed(self._get(f"/schemas/ids/{schema_id}")["schema"])
        return self._schemas[schema_id]

    def newest(self, subject: str) -> tuple[int, Any]:
        """Id and schema that messages of *subject* are written with now."""
        found = self._get(f"/subjects/{subject}/versions/latest")
        return int(found["id"]), self._parsed(found["schema"])

    @staticmethod
    def _parsed(text: str) -> Any:
        try:
            return parse_schema(json.loads(text))
        except Exception as wrong:  # fastavro has no error of its own for all of it
            raise SchemaError("the registry's schema is no Avro schema", code="E_REMOTE_SCHEMA", detail=str(wrong)[:200]) from None

    def _get(self, path: str) -> Any:
        try:
            answer = self._client.get(path)
        except httpx.HTTPError as down:
            raise RemoteError("the schema registry does not answer", code="E_REGISTRY", detail=str(down)[:200]) from None
        if answer.status_code == 404:
            raise SchemaError("the schema registry does not know this schema", code="E_UNKNOWN_SCHEMA", detail=path)
        if answer.status_code != 200:
            raise RemoteError("the schema registry refuses", code="E_REGISTRY", detail=f"status {answer.status_code}")
        return answer.json()

    def close(self) -> None:
        self._client.close()


class Messages:
    """Decodes and encodes messages of one topic.

    Args:
        columns: the table's, its time first.
    """

    def __init__(self, form: Literal["json", "avro"], columns: Sequence[Column], precision: Precision, registry: Registry | None) -> None:
        self._form, self._columns, self._precision, self._registry = form, tuple(columns), precision, registry
        self._read = {c.name: pl.String() if c.type.kind in _TEXTS else c.type.polars() for c in columns}

    def decode(self, values: Sequence[bytes]) -> pl.DataFrame:
        """A row for each message; times are ticks, fields that a message has not are NULL, other fields are left out.

        Raises:
            SchemaError: one of them is no such message.
            RemoteError: its schema cannot be had now.
        """
        return self._from_json(values) if self._form == "json" else self._from_avro(values)

    def encode(self, rows: pl.DataFrame, subject: str) -> list[bytes]:
        """A message for each row; *rows* as `decode` gives them. Raises SchemaError, RemoteError."""
        if self._form == "json":
            lines = rows.select(self._printed(c) for c in self._columns).write_ndjson().encode().split(b"\n")
            return lines[: rows.height]
        assert self._registry is not None
        schema_id, schema = self._registry.newest(subject)
        named = {f["name"]: f["type"] for f in schema.get("fields", ())}
        if missing := [c.name for c in self._columns if c.name not in named and rows[c.name].null_count() < rows.height]:
            raise SchemaError(f"the topic's schema has no field {missing[0]}", code="E_REMOTE_SCHEMA", detail=f"subject {subject}")
        prefix = _PREFIX.pack(_MAGIC, schema_id)
        made = []
        for row in rows.select(self._object(c, named[c.name]) for c in self._columns if c.name in named).iter_rows(named=True):
            out = io.BytesIO()
            try:
                fastavro.schemaless_writer(out, schema, row)
            except Exception as wrong:
                raise SchemaError("a row does not fit the topic's schema", code="E_ROW", detail=str(wrong)[:200]) from None
            made.append(prefix + out.getvalue())
        return made

    # ---------------------------------------------------------------- JSON

    def _from_json(self, values: Sequence[bytes]) -> pl.DataFrame:
        # a newline inside an object is white space: in a text it would be escaped
        lines = b"\n".join(_unframed(v).replace(b"\n", b" ") for v in values)
        try:
            frame = pl.read_ndjson(io.BytesIO(lines), schema=self._read)
        except pl.exceptions.PolarsError as wrong:
            raise SchemaError("the message is no JSON object with these fields", code="E_MALFORMED", detail=str(wrong)[:200]) from None
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
            raise SchemaError(f"{column.name} is no {column.type}", code="E_MALFORMED", detail=str(bad)[:100])
        return found

    def _ticks(self, series: pl.Series) -> pl.Series:
        """Numbers are ticks already; texts are ISO 8601, in UTC unless they say otherwise."""
        text = series.str.replace(" ", "T", literal=True).str.replace("Z$", "+00:00")
        zoned = text.str.contains(r"T.*[+-]\d\d:?\d\d$")
        text = pl.select(pl.when(zoned).then(text).otherwise(text + "+00:00")).to_series()
        times = text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%:z", time_unit=self._precision, strict=False)
        return pl.select(pl.coalesce(series.cast(pl.Int64, strict=False), times.to_physical())).to_series().alias(series.name)

    def _printed(self, column: Column) -> pl.Expr:
        given = pl.col(column.name)
        if column.type.kind == "TIMESTAMP":
            digits = {"ms": 3, "us": 6, "ns": 9}[self._precision]
            return given.cast(pl.Datetime(self._precision)).dt.strftime(f"%Y-%m-%dT%H:%M:%S%.{digits}fZ")
        if column.type.kind == "VARBINARY":
            return given.bin.encode("hex")
        return given.cast(pl.String) if column.type.kind == "DECIMAL" else given

    # ---------------------------------------------------------------- Avro

    def _from_avro(self, values: Sequence[bytes]) -> pl.DataFrame:
        assert self._registry is not None
        rows = []
        for value in values:
            if len(value) < _PREFIX.size or value[0] != _MAGIC:
                raise SchemaError("the message has no schema id before it", code="E_MALFORMED")
            schema = self._registry.schema(_PREFIX.unpack_from(value)[1])
            try:
                row = fastavro.schemaless_reader(io.BytesIO(value[_PREFIX.size :]), schema, None)
            except Exception as wrong:  # whatever broken bytes make of it
                raise SchemaError("the message does not follow its schema", code="E_MALFORMED", detail=str(wrong)[:200]) from None
            if not isinstance(row, dict):
                raise SchemaError("the message is no Avro record", code="E_MALFORMED")
            rows.append(row)
        return pl.DataFrame([self._column(c, [r.get(c.name) for r in rows]) for c in self._columns])

    def _column(self, column: Column, values: list[Any]) -> pl.Series:
        try:
            if column.type.kind == "TIMESTAMP":
                # logical types come as datetimes, plain numbers are ticks; schemas of one topic may differ in that
                times = pl.Series(
                    [None if isinstance(v, int) else v for v in values], dtype=pl.Datetime(self._precision, "UTC"), strict=True
                )
                ticks = pl.Series([v if isinstance(v, int) else None for v in values], dtype=pl.Int64)
                return pl.select(pl.coalesce(ticks, times.to_physical())).to_series().alias(column.name)
            return pl.Series(column.name, values, column.type.polars(), strict=True)
        except (TypeError, pl.exceptions.PolarsError, OverflowError) as wrong:
            raise SchemaError(f"{column.name} is no {column.type}", code="E_MALFORMED", detail=str(wrong)[:200]) from None

    def _object(self, column: Column, kind: Any) -> pl.Expr:
        """As fastavro wants it: for a logical type a datetime, for a number the ticks."""
        given = pl.col(column.name)
        timed = any(isinstance(k, dict) and "logicalType" in k for k in (kind if isinstance(kind, list) else [kind]))
        return given.cast(pl.Datetime(self._precision, "UTC")) if timed and column.type.kind == "TIMESTAMP" else given


def _unframed(value: bytes) -> bytes:
    """JSON without the schema id that Confluent's serializers of JSON Schema put before it; no JSON begins with that byte."""
    return value[_PREFIX.size :] if value[:1] == b"\0" else value
