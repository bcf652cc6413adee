"""What one subscriber has had and gets next: pure decisions, no sockets and no Kafka.

A subscription turns slices into messages. It drops what it has had (by offset) and what a restarted stream published twice (by producer and
position), so a subscriber that comes back with its last token sees every row or event exactly once.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from penstock import names
from penstock.catalog.model import Table
from penstock.codec import TableCodec, schema_ids
from penstock.errors import PenstockError, SchemaError
from penstock.records import EventsRecord, decode
from services.notifier.feed import Slice


class TokenError(PenstockError):
    code = "E_RESUME_TOKEN"


@dataclass
class Cursor:
    """Where a subscription stands: next offset of each partition, and per producer the highest position had."""

    offsets: dict[int, int]
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)

    def token(self) -> str:
        """Opaque text from which `from_token` goes on exactly here."""
        body = json.dumps({"v": 1, "o": self.offsets, "p": self.producers}, separators=(",", ":"))
        return base64.urlsafe_b64encode(zlib.compress(body.encode(), 1)).decode()

    @classmethod
    def from_token(cls, token: str) -> Cursor:
        try:
            raw = json.loads(zlib.decompress(base64.urlsafe_b64decode(token.encode())))
            offsets = {int(p): int(o) for p, o in raw["o"].items()}
            return cls(offsets, {k: (int(v[0]), int(v[1])) for k, v in raw["p"].items()})
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error):
            raise TokenError("this is no resume token", hint="send the token of the last message, or from: latest") from None

    def seen(self, partition: int, producer: str, offset: int, ordinal: int) -> bool:
        """Whether this position of *producer* was had; ordinals count in each partition by itself."""
        producer = f"{partition}/{producer}"
        last = self.producers.get(producer)
        if last is not None and (offset, ordinal) <= last:
            return True
        self.producers[producer] = (offset, ordinal)
        return False


@dataclass(frozen=True)
class Message:
    """One message to the subscriber: `payload` is a JSON array of rows or events, `count` how many."""

    kind: str
    payload: str
    count: int


class RowSubscription:
    """Rows of one table (a stream's result or any other); `tables` narrows to child tables."""

    def __init__(self, cursor: Cursor, table: Callable[[], Table | None], tables: Sequence[str] | None = None) -> None:
        """`table` gives the present definition: columns added while subscribed show up by themselves."""
        self.cursor, self._table, self._tables = cursor, table, list(tables) if tables is not None else None
        self._codecs: dict[int, TableCodec] = {}

    def take(self, piece: Slice) -> Message | None:
        """The message for a slice, or None when nothing in it concerns this subscription. Moves the cursor."""
        start = self.cursor.offsets.get(piece.partition, piece.first)
        self.cursor.offsets[piece.partition] = max(piece.next, start)
        table = self._table()
        if table is None:
            return None
        batch = piece.batch
        wanted = (batch.offsets >= start) & np.isin(schema_ids(batch.values), table.schema_ids)
        frames = []
        for schema_id, indexes in _runs(schema_ids(batch.values), np.flatnonzero(wanted)):
            codec = self._codecs.get(schema_id)
            if codec is None or codec.table != table:
                codec = self._codecs[schema_id] = TableCodec(table, schema_id)
            frames.append(self._rows(codec, piece.partition, [batch.values[i] for i in indexes]))
        frames = [f for f in frames if f.height]
        if not frames:
            return None
        rows = _readable(pl.concat(frames), table)
        return Message("rows", rows.write_json(), rows.height)

    def _rows(self, codec: TableCodec, partition: int, values: list[bytes | None]) -> pl.DataFrame:
        decoded = codec.decode(values)
        stamped = decoded.records.filter(pl.col("producer").is_not_null()).select("_record", "producer", "offset", "ordinal")
        repeated = [r for r, producer, offset, ordinal in stamped.iter_rows() if self.cursor.seen(partition, producer, offset, ordinal)]
        rows = decoded.rows.filter(~pl.col("_record").is_in(repeated)) if repeated else decoded.rows
        if self._tables is not None:
            rows = rows.filter(pl.col("tbname").is_in(self._tables))
        return rows.drop("_record", "_write")


class EventSubscription:
    """Window events of one stream; `tables` narrows to child tables of the result."""

    def __init__(self, cursor: Cursor, stream_id: int, tables: Sequence[str] | None = None) -> None:
        self.cursor, self._stream, self._tables = cursor, stream_id, set(tables) if tables is not None else None

    def take(self, piece: Slice) -> Message | None:
        start = self.cursor.offsets.get(piece.partition, piece.first)
        self.cursor.offsets[piece.partition] = max(piece.next, start)
        found: list[dict[str, Any]] = []
        for offset, value in zip(piece.batch.offsets, piece.batch.values, strict=True):
            if offset < start:
                continue
            try:
                record = decode(EventsRecord, value)
            except SchemaError:
                continue  # another kind of record on the topic
            if record.stream == self._stream and not self.cursor.seen(piece.partition, record.producer, record.offset, record.ordinal):
                found += [e for e in json.loads(record.events) if self._tables is None or e.get("tableName") in self._tables]
        return Message("events", json.dumps(found, separators=(",", ":")), len(found)) if found else None


def _runs(ids: Any, indexes: Any) -> list[tuple[int, list[int]]]:
    """Consecutive wanted records of one schema id, in order."""
    runs: list[tuple[int, list[int]]] = []
    for i in indexes.tolist():
        if runs and runs[-1][0] == ids[i]:
            runs[-1][1].append(i)
        else:
            runs.append((int(ids[i]), [i]))
    return runs


def _readable(rows: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Columns as JSON can have them; `op` says upsert, delete or merge. Times stay ticks of the table's precision."""
    made = [pl.col("tbname"), pl.col("_op").replace_strict({0: "upsert", 1: "delete", 2: "merge"}, return_dtype=pl.String).alias("op")]
    for column in (*table.columns, *table.tags):
        kind = rows.schema[column.name]
        if kind == pl.Binary:
            made.append(pl.col(column.name).bin.encode("base64"))
        elif isinstance(kind, pl.Decimal):
            made.append(pl.col(column.name).cast(pl.String))
        else:
            made.append(pl.col(column.name))
    return rows.select(made)


EVENTS_TOPIC = names.EVENTS
