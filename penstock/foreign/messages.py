"""Messages of a foreign topic as columns, and rows as messages: JSON objects, or Avro as a
Confluent Schema Registry frames it.

Decoding is whole or not at all: who is refused halves the messages to find the bad one, so good
ones never pay for it.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
import time
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import fastavro
import httpx
import polars as pl

from penstock.errors import PenstockError, RemoteError, SchemaError
from penstock.foreign.avro import Nanoseconds, parse, row_of
from penstock.outbound.reach import Reach
from penstock.sql.plan import TICKS_PER_SECOND, Column, Precision

#: microseconds that fit into 64 bits of nanoseconds
_MOST_MICROS = (2**63 - 1) // 1000
_MAGIC = 0
_PREFIX = struct.Struct(">bI")
#: what making columns of strange values may raise: anything, and the panic of a polars kernel,
#: which is no Exception
_FAILURES = (Exception, pl.exceptions.PanicException)
_TEXTS = ("TIMESTAMP", "DECIMAL", "VARBINARY")
_TIMEOUT_S = 10.0
#: most that a registry may take for one answer, and send
_WHOLE_S = 20.0
_MAX_ANSWER = 1 << 20


def _no_answer() -> RemoteError:
    return RemoteError(
        "the schema registry's answer is none",
        code="E_REGISTRY",
        hint="is that the address of a schema registry?",
    )


class SchemaRegistry:
    """A Schema Registry's schemas, each asked for once. Blocks; one thread at a time.

    Each question goes to an address that was checked just before, and nowhere else: neither a
    redirect nor a proxy of the environment is followed. Errors hold no word of the answer.
    """

    def __init__(self, url: str, reach: Reach | None = None) -> None:
        """*reach*: where registries may be; by default anywhere."""
        self._url = urlsplit(url)
        self._reach = reach if reach is not None else Reach()
        self._client = httpx.Client(timeout=_TIMEOUT_S, trust_env=False, follow_redirects=False)
        self._schemas: dict[int, Any] = {}
        #: schemas of these ids are none that we take: every message of theirs would be a question
        self._refused: dict[int, SchemaError] = {}

    def schema(self, schema_id: int) -> Any:
        """Raises SchemaError (there is none of this id) or RemoteError (the registry does not
        answer).
        """
        if schema_id in self._refused:
            raise self._refused[schema_id]
        if schema_id not in self._schemas:
            text = self._get(f"/schemas/ids/{schema_id}").get("schema")
            try:
                self._schemas[schema_id] = parse(text)
            except SchemaError as refused:
                self._refused[schema_id] = refused
                raise
        return self._schemas[schema_id]

    def newest(self, subject: str) -> tuple[int, Any]:
        """Id and schema that messages of *subject* are written with now."""
        found = self._get(f"/subjects/{quote(subject, safe='')}/versions/latest")
        schema_id = found.get("id")
        if not isinstance(schema_id, int) or not 0 <= schema_id < 1 << 32:
            raise _no_answer()
        return schema_id, parse(found.get("schema"))

    def _get(self, path: str) -> dict[str, Any]:
        try:
            status, body = self._fetch(path)
        except httpx.HTTPError as down:
            raise RemoteError(
                "the schema registry does not answer", code="E_REGISTRY", detail=type(down).__name__
            ) from None
        if status == 404:
            raise SchemaError(
                "the schema registry does not know this schema",
                code="E_UNKNOWN_SCHEMA",
                detail=path,
            )
        if status != 200:
            raise RemoteError(
                "the schema registry refuses", code="E_REGISTRY", detail=f"status {status}"
            )
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise _no_answer() from None
        if not isinstance(found, dict):
            raise _no_answer()
        return found

    def _fetch(self, path: str) -> tuple[int, bytes]:
        """Ask by GET. Return status and body. Raises httpx.HTTPError, CatalogError,
        RemoteError.
        """
        url = self._url
        host = self._url.hostname or ""
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = self._reach.addresses(host, port)
        if not addresses:
            raise RemoteError(
                "the schema registry does not answer",
                code="E_REGISTRY",
                detail="nobody has that name",
            )
        headers = {"Host": url.netloc, "Accept": "application/json", "Accept-Encoding": "identity"}
        until = time.monotonic() + _WHOLE_S
        for address in addresses:
            place = f"[{address}]" if ":" in address else address
            request = self._client.build_request(
                "GET",
                f"{url.scheme}://{place}:{port}{url.path}{path}",
                headers=headers,
                extensions={"sni_hostname": host},
            )
            try:
                answer = self._client.send(request, stream=True)
            except httpx.ConnectError:
                if address == addresses[-1]:
                    raise
                continue
            break
        return answer.status_code, _read_body(answer, until)

    def close(self) -> None:
        self._client.close()


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
        try:
            return self._from_json(values) if self._form == "json" else self._from_avro(values)
        except PenstockError:
            raise
        # the types of strangers are without number: one we cannot take costs its message alone
        except _FAILURES as wrong:
            raise SchemaError(
                "the message cannot be read",
                code="E_MALFORMED",
                detail=f"{type(wrong).__name__}: {wrong}"[:200],
            ) from None

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
        prefix = _PREFIX.pack(_MAGIC, schema_id)
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
        lines = b"\n".join(_strip_frame(v).replace(b"\n", b" ") for v in values)
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
            if len(value) < _PREFIX.size or value[0] != _MAGIC:
                raise SchemaError("the message has no schema id before it", code="E_MALFORMED")
            schema = self._registry.schema(_PREFIX.unpack_from(value)[1])
            rows.append(row_of(value[_PREFIX.size :], schema))
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


def _strip_frame(value: bytes) -> bytes:
    """JSON without the schema id that Confluent's serializers of JSON Schema put before it; no JSON
    begins with that byte.
    """
    return value[_PREFIX.size :] if value[:1] == b"\0" else value


def _read_body(answer: httpx.Response, until: float) -> bytes:
    """Read what comes until the time *until*, up to the most that an answer may have."""
    body = b""
    try:
        for piece in answer.iter_raw():
            body += piece
            if len(body) > _MAX_ANSWER or time.monotonic() > until:
                raise _no_answer()
    finally:
        answer.close()
    return body
