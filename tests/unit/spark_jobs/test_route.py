"""What a scan sends to the exchange: the group's partition gets the row, late is seen here, and
replaced rows leave their old group.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from penstock.rows.rows import Rows
from penstock.rows.versions import CLEAR, DELETE, MERGE, UPSERT
from penstock.sql.plan import Member, Origin, StreamPlan
from spark_jobs.processor.group_places import PARTITIONS
from spark_jobs.processor.route import Route, Taken, columns_to_send, newest
from tests.unit.sql.memory_view import MemoryView, plan

T0 = 1_700_006_400_000
DDL = "CREATE STABLE m (ts TIMESTAMP, a INT, b INT, c INT) TAGS (g INT)"


def planned(text: str) -> StreamPlan:
    return plan(text, MemoryView(DDL)).plan


def frame(*rows: tuple[str, int, int | None, int | None], op: int = UPSERT) -> pl.DataFrame:
    lines = [(i, i, T0, op, t, T0 + ts, a, b, 0, 1) for i, (t, ts, a, b) in enumerate(rows)]
    schema = {
        "_step": pl.UInt32,
        "_offset": pl.Int64,
        "_now": pl.Int64,
        "_op": pl.Int8,
        "tbname": pl.String,
        "ts": pl.Int64,
        "a": pl.Int32,
        "b": pl.Int32,
        "c": pl.Int32,
        "g": pl.Int32,
    }
    return pl.DataFrame(lines, schema=schema, orient="row")


def taken(rows: pl.DataFrame) -> Taken:
    return Taken(1, "ts", Rows.of_frame(rows))


class Stored:
    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows

    def fetch(self, low: int, high: int, tables: object = None) -> pl.DataFrame:
        return self.rows.filter(pl.col("ts").is_between(low, high))


def test_only_what_the_plan_reads_is_sent() -> None:
    made = planned(
        "CREATE STREAM s INTO o AS SELECT _wstart, sum(a) FROM m WHERE b > 0 PARTITION BY g INTERVAL(1s)"
    )
    assert columns_to_send(made) == ["ts", "a", "b", "g"]
    [(_, part)], _ = Route(made).split([taken(frame(("t", 0, 1, 1), ("t", 1, 1, 0)))], None)
    assert part.columns == [
        "_step",
        "_offset",
        "_now",
        "_op",
        "tbname",
        "ts",
        "a",
        "b",
        "g",
        "_late",
    ]
    assert part.height == 1


def test_late_is_what_lies_below_its_own_table_in_earlier_writes() -> None:
    made = planned("CREATE STREAM s INTO o AS SELECT _wstart, sum(a) FROM m INTERVAL(1s)")
    route = Route(made)
    [(_, part)], _ = route.split(
        [taken(frame(("t", 5, 1, 1), ("t", 3, 1, 1), ("u", 1, 1, 1)))], None
    )
    assert part["_late"].to_list() == [False, True, False]
    saved = route.delta(True)
    again = Route(made)
    again.restore([saved])
    [(_, part)], _ = again.split([taken(frame(("t", 4, 1, 1), ("u", 2, 1, 1)))], None)
    assert part["_late"].to_list() == [True, False]


def test_an_update_that_moves_a_row_takes_it_out_of_its_old_group() -> None:
    route = Route(
        planned(
            "CREATE STREAM s IGNORE UPDATE 0 INTO o AS SELECT _wstart, sum(a) FROM m PARTITION BY b INTERVAL(1s)"
        )
    )
    first, _ = route.split([taken(frame(("t", 5, 1, 1)))], None)
    assert [p["_op"].to_list() for _, p in first] == [[UPSERT]]
    second, _ = route.split([taken(frame(("t", 5, 1, 2)))], None)
    assert len(second) == PARTITIONS
    ops = {place: part["_op"].to_list() for place, part in second}
    assert sorted(ops.values()) == [[UPSERT], *[[DELETE]] * (PARTITIONS - 1)]


def test_an_update_that_fails_where_leaves() -> None:
    route = Route(
        planned(
            "CREATE STREAM s IGNORE UPDATE 0 INTO o AS SELECT _wstart, sum(a) FROM m WHERE a > 0 PARTITION BY g INTERVAL(1s)"
        )
    )
    route.split([taken(frame(("t", 5, 1, 1)))], None)
    parts, _ = route.split([taken(frame(("t", 5, -1, 1)))], None)
    assert {p["_op"].to_list()[0] for _, p in parts} == {DELETE} and len(parts) == PARTITIONS
    assert route.split([taken(frame(("t", 6, -1, 1)))], None)[0] == []


def test_a_partial_write_is_made_whole_before_it_leaves() -> None:
    route = Route(
        planned(
            "CREATE STREAM s IGNORE UPDATE 0 INTO o AS SELECT _wstart, sum(a) FROM m PARTITION BY b INTERVAL(1s)"
        )
    )
    route.split([taken(frame(("t", 5, 1, 7)))], None)
    parts, _ = route.split(
        [taken(frame(("t", 5, 2, None), op=MERGE))], Stored(frame(("t", 5, 1, 7)))
    )
    [whole] = [p.row(0, named=True) for _, p in parts if p["_op"].to_list() == [UPSERT]]
    assert (whole["a"], whole["b"]) == (2, 7)


@pytest.mark.parametrize("update", ["IGNORE UPDATE 0", "IGNORE UPDATE 1"])
def test_a_clear_leaves_with_its_row_and_not_beside_it(update: str) -> None:
    route = Route(
        planned(
            f"CREATE STREAM s {update} INTO o AS SELECT _wstart, sum(a) FROM m PARTITION BY g INTERVAL(1s)"
        )
    )
    write = pl.concat([frame(("t", 5, None, 1), op=CLEAR), frame(("t", 5, 2, None), op=MERGE)])
    parts, failed = route.split([taken(write)], Stored(frame(("t", 5, 1, 7))))
    [(whole,)] = [p.rows(named=True) for _, p in parts if p["_op"].to_list() != [DELETE]]
    assert failed is None and whole["a"] == 2


def test_every_stored_row_is_one_partitions_own_and_the_one_it_was_sent_to() -> None:
    route = Route(
        planned(
            "CREATE STREAM s INTO o AS SELECT _wstart, sum(a) FROM m PARTITION BY b INTERVAL(1s)"
        )
    )
    rows = frame(*((f"t{i}", i, 1, i % 11) for i in range(40)))
    sent = {place: set(part["tbname"]) for place, part in route.split([taken(rows)], None)[0]}
    own = {place: set(route.select_finished(place, rows)["tbname"]) for place in range(PARTITIONS)}
    assert {p: t for p, t in own.items() if t} == sent
    assert sorted(t for tables in own.values() for t in tables) == sorted(rows["tbname"])


def test_tables_of_a_virtual_source_leave_as_one_in_the_order_of_the_log() -> None:
    tables = ("CREATE TABLE p (ts TIMESTAMP, a INT)", "CREATE TABLE q (ts TIMESTAMP, b INT)")
    view = MemoryView(*tables, "CREATE VTABLE v (ts TIMESTAMP, a INT FROM p.a, b INT FROM q.b)")
    made = plan(
        "CREATE STREAM s INTO o AS SELECT _wstart, sum(a), sum(b) FROM v INTERVAL(10s)", view
    ).plan
    member = Member("v", (), (Origin("a", 101, "p", "a"), Origin("b", 102, "q", "b")))
    route = Route(replace(made, source=replace(made.source, members=(member,))))

    def written(table: str, column: str, *offsets: int) -> pl.DataFrame:
        lines = [(step, at, T0, UPSERT, table, T0 + at, at) for step, at in enumerate(offsets)]
        kinds = (pl.UInt32, pl.Int64, pl.Int64, pl.Int8, pl.String, pl.Int64, pl.Int32)
        return pl.DataFrame(
            lines,
            dict(
                zip(("_step", "_offset", "_now", "_op", "tbname", "ts", column), kinds, strict=True)
            ),
            orient="row",
        )

    chunk = [
        Taken(101, "ts", Rows.of_frame(written("p", "a", 0, 2, 3)), (2, "old")),
        Taken(102, "ts", Rows.of_frame(written("q", "b", 1, 4)), (4, "new")),
    ]
    [(_, part)], failed = route.split(chunk, None)
    assert failed is None
    assert part.select("_offset", "a", "b").rows() == [
        (0, 0, None),
        (1, None, 1),
        (2, 2, None),
        (3, 3, None),
        (4, None, 4),
    ]
    assert part["_step"].n_unique() == 5
    assert newest(chunk) == "new" and newest(chunk[:1]) == "old"
