"""What writes are told though they were taken."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC

import polars as pl
import pyarrow as pa
import pytest

from gateway import insert, notices, rows
from gateway.coalescer import PendingWrite
from gateway.layout import RowLayout
from gateway.notices import of_writes
from penstock.sql import parse_one
from penstock.sql.statements import Insert
from tests.unit.gateway.test_rows import METERS, NOW

LOOP = asyncio.new_event_loop()
ROW = {"tbname": "d1", "ts": NOW, "v": 1.0, "n": 1, "s": "", "site": "a"}
SHARED = "{} of {} rows share their key; the later replaced the earlier; a key column or a supertable keeps both"


def of(*bodies: object, layout: RowLayout = METERS, told: bool = True) -> list[list[str]]:
    """Notices of writes with these bodies that left together."""
    writes = []
    frames = []
    for body in bodies:
        frame = (
            rows.from_arrow(layout, body)
            if isinstance(body, pa.Table)
            else rows.from_objects(layout, body)
        )  # type: ignore[arg-type]
        frames.append(frame)
        writes.append(PendingWrite(layout, body, frame.height, 1, LOOP.create_future(), told=told))  # type: ignore[arg-type]
    return [
        list(found)
        for found in of_writes(layout, pl.concat(frames), writes, [f.height for f in frames])
    ]


def test_rows_of_one_write_that_share_their_key() -> None:
    twice = [ROW, {**ROW, "v": 2.0}, {**ROW, "ts": NOW + 1}]
    assert of(twice) == [[SHARED.format(2, 3)]]
    assert of(pl.DataFrame(twice).to_arrow()) == [[SHARED.format(2, 3)]]
    # another table, another time, another write
    assert of([ROW, {**ROW, "tbname": "d2"}, {**ROW, "ts": NOW + 1}]) == [[]]
    assert of([ROW], [ROW], twice, [ROW]) == [[], [], [SHARED.format(2, 3)], []]
    assert of(twice, told=False) == [[]]


def test_a_key_column_tells_them_apart() -> None:
    keyed = replace(METERS, key_column="n")
    assert of([ROW, {**ROW, "n": 2}], layout=keyed) == [[]]
    assert of([ROW, {**ROW, "n": 2}, ROW], layout=keyed) == [[SHARED.format(2, 3)]]


def test_parts_of_a_row_that_complete_each_other_replace_nothing() -> None:
    first = {"tbname": "d1", "ts": NOW, "v": 1.0}
    second = {"tbname": "d1", "ts": NOW, "n": 1}
    assert of([first, second]) == [[]]
    assert of([first, second, {**first, "v": 2.0}]) == [[SHARED.format(3, 3)]]
    assert of([first, ROW]) == [[SHARED.format(2, 2)]]


@pytest.mark.parametrize(
    ("time", "early"),
    [(1_700_000_000, True), (0, True), (-5, True), (631_152_000_000, False), ("1970-01-01", False)],
)
def test_numbers_before_1990(time: object, early: bool) -> None:
    [found] = of([ROW, {**ROW, "ts": time}])
    assert bool(found) is early
    if time == 1_700_000_000:
        assert found == [
            "1 of 2 times are before 1990 (1700000000 is 1970-01-20T16:13:20Z); numbers count milliseconds here"
        ]
    if isinstance(time, int):
        assert bool(of(pl.DataFrame([{**ROW, "ts": time}]).to_arrow())[0]) is early


def test_times_that_arrow_gives_as_times_are_meant() -> None:
    table = (
        pl.DataFrame([ROW]).with_columns(pl.Series("ts", [0]).cast(pl.Datetime("ms"))).to_arrow()
    )
    assert of(table) == [[]]


@pytest.mark.parametrize(
    ("values", "count"), [("(5, 1, 1, 'x') ('1970-01-01', 1, 1, 'x')", 1), ("(NOW, 1, 1, 'x')", 0)]
)
def test_numbers_before_1990_in_a_statement(values: str, count: int) -> None:
    statement = parse_one(f"INSERT INTO d1 VALUES {values}")
    assert isinstance(statement, Insert)
    bound = insert.bind(statement, statement.parts[0], METERS, "d1", UTC, NOW * 1_000_000)
    assert len(bound.notices) == count and all(
        n.startswith("1 of 2 times are before 1990 (5 is 1970") for n in bound.notices
    )
    assert insert.join_by_table([bound, bound])[0].notices == bound.notices


def test_the_header_keeps_them_apart() -> None:
    found = [*notices.of_numbers([1, 10**30 * -1], "ms"), SHARED.format(2, 3)]
    assert notices.headers(found)["Penstock-Notice"].split(", ") == found and all(
        n.isascii() for n in found
    )
    assert notices.headers([]) == {}
