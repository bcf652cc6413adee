"""Rows of virtual tables: columns of several origins, joined by time, with their members' tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import polars as pl

from penstock.sql.plan import Column, Member, Origin
from penstock.types import ColumnType
from services.store import virtual
from services.store.relation import literal

COLUMNS = [("ts", "TIMESTAMP_MS"), ("a", "INTEGER"), ("b", "INTEGER")]
TAG = Column("g", ColumnType("INT"))


class Origins:
    """Child tables of one supertable with columns x and y, and a plain one with z."""

    def __init__(self) -> None:
        self.con = duckdb.connect()
        self.asked: list[tuple[int, tuple[str, ...]]] = []
        self.tables: dict[int, pl.DataFrame] = {
            1: pl.DataFrame(
                {
                    "tbname": ["d1", "d1", "d2"],
                    "_penstock_ts": [1, 2, 1],
                    "x": [10, 11, 20],
                    "y": [100, 101, 200],
                }
            ),
            2: pl.DataFrame({"tbname": ["p", "p"], "_penstock_ts": [2, 3], "z": [7, 8]}),
        }
        for number, rows in self.tables.items():
            self.con.register(f"t{number}", rows.to_arrow())

    def rows(self, table_id: int, tables: Sequence[str], number: int) -> str | None:
        self.asked.append((table_id, tuple(tables)))
        if table_id not in self.tables:
            return None
        listed = ", ".join(literal(t) for t in tables)
        return (
            "SELECT * REPLACE (make_timestamp_ms(_penstock_ts) AS _penstock_ts)"
            f" FROM t{table_id} WHERE tbname IN ({listed})"
        )

    def read(
        self, members: Sequence[Member], *tags: Column, columns: Any = None
    ) -> list[tuple[Any, ...]]:
        columns = columns or [*COLUMNS, *((t.name, "INTEGER") for t in tags)]
        sql = virtual.sql(self.con, "v", columns, tags, members, self.rows)
        return self.con.execute(
            f"SELECT * REPLACE (epoch_ms(ts) AS ts) FROM ({sql}) ORDER BY tbname, ts"
        ).fetchall()


def origin(column: str, table_id: int, table: str, source: str) -> Origin:
    return Origin(column, table_id, table, source)


def test_columns_of_several_origins_are_joined_by_time() -> None:
    member = Member("m", (), (origin("a", 1, "d1", "x"), origin("b", 2, "p", "z")))
    rows = Origins().read([member])
    assert rows == [("m", 1, 10, None), ("m", 2, 11, 7), ("m", 3, None, 8)]


def test_members_with_the_same_columns_are_read_in_one_go() -> None:
    origins = Origins()
    members = [
        Member("m1", (), (origin("a", 1, "d1", "x"), origin("b", 1, "d1", "y"))),
        Member("m2", (), (origin("a", 1, "d2", "x"), origin("b", 1, "d2", "y"))),
        Member("m3", (), (origin("a", 1, "d2", "y"),)),
    ]
    rows = origins.read(members)
    assert rows == [
        ("m1", 1, 10, 100),
        ("m1", 2, 11, 101),
        ("m2", 1, 20, 200),
        ("m3", 1, 200, None),
    ]
    assert origins.asked == [(1, ("d1", "d2")), (1, ("d2",))]


def test_one_origin_may_serve_two_members() -> None:
    members = [Member(name, (), (origin("a", 1, "d2", "x"),)) for name in ("m1", "m2")]
    assert Origins().read(members) == [("m1", 1, 20, None), ("m2", 1, 20, None)]


def test_tags_of_members_stand_beside_their_rows() -> None:
    members = [
        Member("m1", (5,), (origin("a", 1, "d1", "x"),)),
        Member("m2", (None,), (origin("a", 1, "d2", "x"),)),
    ]
    rows = Origins().read(members, TAG)
    assert rows == [
        ("m1", 1, 10, None, 5),
        ("m1", 2, 11, None, 5),
        ("m2", 1, 20, None, None),
    ]


def test_a_tag_that_is_a_time_is_shown_as_one() -> None:
    tag = Column("since", ColumnType("TIMESTAMP"))
    columns = [*COLUMNS, ("since", "TIMESTAMP_MS")]
    rows = Origins().read(
        [Member("m", (1_500,), (origin("a", 1, "d2", "x"),))], tag, columns=columns
    )
    ((_, _, _, _, since),) = rows
    assert since.isoformat() == "1970-01-01T00:00:01.500000"


def test_an_origin_that_is_gone_has_no_rows() -> None:
    member = Member("m", (), (origin("a", 1, "d2", "x"), origin("b", 99, "gone", "q")))
    assert Origins().read([member]) == [("m", 1, 20, None)]


def test_nothing_at_all_has_names_and_types() -> None:
    origins = Origins()
    sql = virtual.sql(origins.con, "v", COLUMNS, (), [], origins.rows)
    found = origins.con.execute(sql).to_arrow_table()
    assert found.schema.names == ["tbname", "ts", "a", "b"]
    assert found.num_rows == 0
