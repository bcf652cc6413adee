"""Rows of a followed table: when they are put together makes no difference; what is asked for of a
table.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import RemoteError
from penstock.link.description import Description
from penstock.link.remote_request import MirrorOptions, RemoteRequest
from penstock.link.row_buffer import RowBuffer, to_arrow
from penstock.sql.plan import Column
from penstock.types import ColumnType

_READINGS = Description(
    7,
    "d",
    "t",
    (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("INT"))),
    (Column("site", ColumnType("INT")),),
)
_STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.lists(
                st.tuples(
                    st.sampled_from("ab"), st.integers(0, 5), st.integers(0, 99), st.integers(0, 1)
                ),
                min_size=1,
            ),
        ),
        st.tuples(
            st.just("delete"),
            st.sampled_from([None, ["a"], ["b"]]),
            st.integers(0, 5),
            st.integers(0, 5),
        ),
        st.tuples(st.just("retag"), st.sampled_from("ab"), st.integers(0, 3)),
    ),
    max_size=12,
)


def _followed(
    steps: list[tuple[object, ...]], settled: list[bool]
) -> list[tuple[str, int, int, int]]:
    """What is held after *steps*, put together where *settled* says so."""
    held = RowBuffer()
    sites = {"a": 0, "b": 0}
    for step, now in zip(steps, settled, strict=True):
        match step:
            case ("add", list(rows)):
                columns = {
                    "tbname": [r[0] for r in rows],
                    "_op": pa.array([r[3] for r in rows], pa.int8()),
                    "ts": pa.array([r[1] for r in rows], pa.timestamp("ms", "UTC")),
                    "v": pa.array([r[2] for r in rows], pa.int32()),
                    "site": pa.array([sites[r[0]] for r in rows], pa.int32()),
                }
                held.add(pa.table(columns), _READINGS, _READINGS.fields)
            case ("delete", tables, int(low), int(high)):
                held.delete(tables, low, high, _READINGS)  # type: ignore[arg-type]
            case ("retag", str(table), int(site)):
                sites[table] = site
                held.retag([table], {"site": site}, _READINGS)
        if now:
            held.settle(_READINGS)
    frame = held.frame(_READINGS)
    return [] if frame is None else sorted(frame.select("tbname", "ts", "v", "site").rows())


@given(_STEPS, st.data())
def test_when_rows_are_put_together_makes_no_difference(
    steps: list[tuple[object, ...]], data: st.DataObject
) -> None:
    settled = data.draw(st.lists(st.booleans(), min_size=len(steps), max_size=len(steps)))
    assert _followed(steps, settled) == _plainly(steps)


def _plainly(steps: list[tuple[object, ...]]) -> list[tuple[str, int, int, int]]:
    rows: dict[tuple[str, int], int] = {}
    sites = {"a": 0, "b": 0}
    for step in steps:
        match step:
            case ("add", list(added)):
                for table, ts, value, removed in added:
                    if removed:
                        rows.pop((table, ts), None)
                    else:
                        rows[table, ts] = value
            case ("delete", tables, int(low), int(high)):
                rows = {
                    k: v
                    for k, v in rows.items()
                    if not (low <= k[1] <= high and (tables is None or k[0] in tables))
                }  # type: ignore[operator]
            case ("retag", str(table), int(site)):
                sites[table] = site
    return sorted((table, ts, value, sites[table]) for (table, ts), value in rows.items())


def test_a_column_rows_came_without_is_null() -> None:
    held = RowBuffer()
    held.add(
        pa.table({"tbname": ["a"], "ts": pa.array([1], pa.timestamp("ms", "UTC"))}),
        _READINGS,
        _READINGS.columns[:1],
    )
    frame = held.frame(_READINGS)
    assert frame is not None
    assert to_arrow(frame, _READINGS.columns, "ms").to_pydict()["v"] == [None]


def test_what_is_asked_for() -> None:
    wanted = RemoteRequest(MirrorOptions(columns=("V",), where="v > 1"))
    assert wanted.following(_READINGS) == "SELECT `ts`, `v` FROM `d`.`t` WHERE v > 1"
    assert wanted.rows(_READINGS) == "SELECT `v` FROM `d`.`t` WHERE v > 1"
    assert (
        wanted.snapshot(_READINGS)
        == "SELECT tbname, `ts`, `v` FROM (SELECT tbname, `ts`, `v` FROM `d`.`t` WHERE v > 1) AS t"
    )
    with pytest.raises(RemoteError) as refused:
        RemoteRequest(MirrorOptions(columns=("nothing",))).check(_READINGS)
    assert refused.value.code == "E_NO_COLUMN"


def test_a_definition_is_what_the_table_must_have() -> None:
    narrower = Description(0, "", "t", _READINGS.columns)
    assert [
        c.name for c in RemoteRequest(MirrorOptions(), narrower).visible_columns(_READINGS)
    ] == [
        "ts",
        "v",
    ]
    other = Description(
        0, "", "t", (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("DOUBLE")))
    )
    with pytest.raises(RemoteError) as refused:
        RemoteRequest(MirrorOptions(), other).check(_READINGS)
    assert refused.value.code == "E_REMOTE_SCHEMA" and "INT" in refused.value.detail


def test_new_tags_have_the_type_of_their_column() -> None:
    price = Column("price", ColumnType("DECIMAL", precision=9, scale=2))
    key = Column("key", ColumnType("VARBINARY", 4))
    priced = dataclasses.replace(_READINGS, tags=(price, key))
    rows = pl.DataFrame(
        {"tbname": ["a"], "ts": [1], "v": [2], "price": [Decimal("1.50")], "key": [b"x"]},
        schema_overrides={"price": pl.Decimal(9, 2)},
    )
    held = RowBuffer([rows])
    held.retag(["a"], {"price": "0.05", "key": "00ff"}, priced)
    assert held._frames[0].rows() == [("a", 1, 2, Decimal("0.05"), b"\x00\xff")]
