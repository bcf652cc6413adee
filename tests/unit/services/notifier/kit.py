"""Stream entries, records and slices made by hand."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import numpy as np

from penstock.bus import Batch
from penstock.catalog.model import Database, StreamEntry, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.feeds.slices import Slice, slice_of
from penstock.records import EventsRecord
from penstock.sql.parser import parse_one
from penstock.sql.plan import Column, Precision
from penstock.sql.planner import TableDef, plan_stream
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from services.notifier.message import NotifyMessage, NotifyTarget


class _View:
    def precision(self, database: str) -> Precision | None:
        return "ms"

    def table(self, database: str, name: str) -> TableDef | None:
        if name != "meters":
            return None
        columns = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT")))
        return TableDef(
            7, database, name, "stable", columns, (Column("g", ColumnType("INT")),), "ms"
        )

    def table_names(self, database: str) -> list[str]:
        return ["meters"]

    def function(self, name: str) -> None:
        return None

    def streams_into(self, database: str, table: str) -> list[str]:
        return []


def entry(
    clause: str = "NOTIFY ('ws://h:1/a') ON ('WINDOW_OPEN', 'WINDOW_CLOSE')",
    *,
    stream: int = 12,
    created: int = 5,
) -> StreamEntry:
    text = f"CREATE STREAM db.s INTO db.r AS SELECT _wstart, count(*) c FROM db.meters PARTITION BY tbname INTERVAL(1s) {clause}"
    statement = parse_one(text)
    assert isinstance(statement, CreateStream)
    return StreamEntry(
        stream,
        plan_stream(statement, _View(), database="db", stream_id=stream, target_id=13).plan,
        created=created,
    )


def event(kind: str = "WINDOW_CLOSE", table: str = "d1", **more: Any) -> dict[str, Any]:
    return {"tableName": table, "eventType": kind, "windowStart": 1, **more}


def record(
    events: list[dict[str, Any]],
    *,
    offset: int = 4,
    ordinal: int = 0,
    history: bool = False,
    stream: int = 12,
    trace: str | None = None,
) -> EventsRecord:
    return EventsRecord(
        stream,
        "db.s",
        "s:12:in.db:0",
        offset,
        offset,
        json.dumps(events),
        ordinal,
        history=history,
        trace=trace,
    )


def message(
    offset: int, *, position: int | None = None, producer: str = "p", size: int = 10
) -> NotifyMessage:
    place = (offset if position is None else position, 0)
    return NotifyMessage(
        0,
        offset,
        12,
        "db.s",
        producer,
        place,
        1,
        "x" * size,
        (NotifyTarget("ws://h:1/a", "pause"),),
    )


def piece(values: list[bytes | None], first: int = 0, partition: int = 0) -> Slice:
    offsets = np.arange(first, first + len(values), dtype=np.int64)
    return slice_of(Batch("t", partition, offsets, offsets, [None] * len(values), values))


TARGET = NotifyTarget("ws://h:1/a", "pause")
NOTIFY = "NOTIFY ('ws://h:1/a') ON ('WINDOW_OPEN', 'WINDOW_CLOSE') ON_FAILURE PAUSE"
METERS = Table(
    7,
    "db",
    "meters",
    "stable",
    "in.db",
    2,
    "ms",
    (TableVersion(107, (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT")))),),
)


def streams(*entries: StreamEntry) -> Any:
    catalog = Catalog([Database(1, "db"), METERS, *entries])
    return SimpleNamespace(
        catalog=catalog, know=lambda ids: None, wait_for=lambda condition, timeout: None
    )


async def others() -> None:
    """Let all other tasks end."""
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
