"""Records of one table in a slice: rows with their places, stamps, and controls between them."""

from __future__ import annotations

import dataclasses
from typing import Any

from penstock.catalog.model import TableVersion
from penstock.feeds.slices import Slice, slice_of
from penstock.records import ControlRecord, encode
from penstock.rows.versions import DELETE
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.federation.records import records_of
from tests.unit.services.federation.kit import COLUMNS, PLAIN, STABLE, TOPIC, record
from tests.unit.services.kit import MemoryLog


def piece(*values: bytes) -> Slice:
    log = MemoryLog()
    for value in values:
        log.append(TOPIC, value)
    return slice_of(log.batch(TOPIC))


def test_rows_have_their_place_in_the_log() -> None:
    found = records_of(
        piece(
            record(STABLE, ("d1", 10, 1, 5), ("d2", 11, 2, 6)),
            record(PLAIN, ("plain", 12, 3)),
            record(STABLE, ("d1", 13, 4, 5), op=DELETE),
        ),
        STABLE,
    )
    shown = found.rows.select("_at", "_offset", "_row", "_op", "tbname", "_time", "v", "_part")
    assert shown.rows() == [
        (0, 0, 0, 0, "d1", 10, 1, 0),
        (0, 0, 1, 0, "d2", 11, 2, 0),
        (2, 2, 0, DELETE, "d1", 13, 4, 0),
    ]
    assert found.rows["_appended"].null_count() == 0
    assert (found.stamps, found.controls) == ([], [])


def test_stamps_of_producers() -> None:
    found = records_of(
        piece(
            record(PLAIN, ("plain", 1, 1)),
            record(PLAIN, ("plain", 2, 2), producer="s:1", from_offset=3, offset=4, ordinal=7),
        ),
        PLAIN,
    )
    assert found.stamps == [(1, "s:1", 4, 7)]


def test_deletes_and_tags_of_this_table_only() -> None:
    def control(kind: str, table: int) -> bytes:
        return encode(ControlRecord(kind, table=table, tables=("d1",), low=1, high=2, body="{}"))

    found = records_of(
        piece(
            control("delete", STABLE.id),
            control("delete", PLAIN.id),
            control("tag", STABLE.id),
            control("barrier", STABLE.id),
            b"\0\0\0\0\1junk",
        ),
        STABLE,
    )
    assert [(at, c.kind) for at, c in found.controls] == [(0, "delete"), (2, "tag")]
    assert found.rows.is_empty()


def test_rows_of_all_versions_come_in_the_order_of_the_log() -> None:
    wider = (*COLUMNS, Column("w", ColumnType("INT")))
    altered = dataclasses.replace(PLAIN, versions=(*PLAIN.versions, TableVersion(117, wider)))
    found = records_of(
        piece(
            record(PLAIN, ("plain", 1, 1)),
            record(altered, ("plain", 2, 2, 20)),
            record(PLAIN, ("plain", 3, 3)),
        ),
        altered,
    )
    assert found.rows.select("_at", "v", "w").rows() == [(0, 1, None), (1, 2, 20), (2, 3, None)]


def test_a_slice_is_decoded_once_for_all_who_listen() -> None:
    given = piece(record(PLAIN, ("plain", 1, 1)))
    assert records_of(given, PLAIN) is records_of(given, PLAIN)
    other: Any = records_of(given, STABLE)
    assert other.rows.is_empty()
