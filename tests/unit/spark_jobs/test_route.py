"""What a scan sends to the exchange: the group's partition gets the row, late is seen here, and replaced rows leave their old group."""

from __future__ import annotations

import polars as pl

from penstock.sql.plan import StreamPlan
from penstock.windows.kernel import DELETE, MERGE, UPSERT
from spark_jobs.lanes.route import PARTITIONS, Route, needed
from tests.unit.sql.memory_view import MemoryView, plan

T0 = 1_700_006_400_000
DDL = "CREATE STABLE m (ts TIMESTAMP, a INT, b INT, c INT) TAGS (g INT)"


def planned(text: str) -> StreamPlan:
    return plan(text, MemoryView(DDL)).plan


def frame(*rows: tuple[str, int, int | None, int | None], op: int = UPSERT) -> pl.DataFrame:
    lines = [(i, i, T0, op, t, T0 + ts, a, b, 0, 1) for i, (t, ts, a, b) in enumerate(rows)]
    schema = {
        "_step": pl.UInt32, "_offset": pl.Int64, "_now": pl.Int64, "_op": pl.Int8, "tbname": pl.String, "ts": pl.Int64, "a": pl.Int32,
        "b": pl.Int32, "c": pl.Int32, "g": pl.Int32,
    }  # fmt: skip
    return pl.DataFrame(lines, schema=schema, orient="row")


class Stored:
    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows

    def fetch(self, low: int, high: int, tables: object = None) -> pl.DataFrame:
        return self.rows.filter(pl.col("ts").is_between(low, high))


def test_only_what_the_plan_reads_is_sent() -> None:
    made = planned("CREATE STREAM s INTO o AS SELECT _wstart, sum(a) FROM m WHERE b > 0 PARTITION BY g INTERVAL(1s)")
    assert needed(made) == ["ts", "a", "b", "g"]
    [(_, part)], _ = Route(made).split(1, "ts", frame(("t", 0, 1, 1), ("t", 1, 1, 0)), None)
    assert part.columns == ["_step", "_offset", "_now", "_op", "tbname", "ts", "a", "b", "g", "_late"]
    assert part.height == 1


def test_late_is_what_lies_below_its_own_table_in_earlier_writes() -> None:
    made = planned("CREATE STREAM s INTO o AS SELECT _wstart, sum(a) FROM m INTERVAL(1s)")
    route = Route(made)
    [(_, part)], _ = route.split(1, "ts", frame(("t", 5, 1, 1), ("t", 3, 1, 1), ("u", 1, 1, 1)), None)
    assert part["_late"].to_list() == [False, True, False]
    saved = route.delta(True)
    again = Route(made)
    again.restore([saved])
    [(_, part)], _ = again.split(1, "ts", frame(("t", 4, 1, 1), ("u", 2, 1, 1)), None)
    assert part["_late"].to_list() == [True, False]


def test_an_update_that_moves_a_row_takes_it_out_of_its_old_group() -> None:
    route = Route(planned("CREATE STREAM s IGNORE UPDATE 0 INTO o AS SELECT _wstart, sum(a) FROM m PARTITION BY b INTERVAL(1s)"))
    first, _ = route.split(1, "ts", frame(("t", 5, 1, 1)), None)
    assert [p["_op"].to_list() for _, p in first] == [[UPSERT]]
    second, _ = route.split(1, "ts", frame(("t", 5, 1, 2)), None)
    assert len(second) == PARTITIONS
    ops = {place: part["_op"].to_list() for place, part in second}
    assert sorted(ops.values()) == [[UPSERT], *[[DELETE]] * (PARTITIONS - 1)]


def test_an_update_that_fails_where_leaves() -> None:
    route = Route(
        planned("CREATE STREAM s IGNORE UPDATE 0 INTO o AS SELECT _wstart, sum(a) FROM m WHERE a > 0 PARTITION BY g INTERVAL(1s)")
    )
    route.split(1, "ts", frame(("t", 5, 1, 1)), None)
    parts, _ = route.split(1, "ts", frame(("t", 5, -1, 1)), None)
    assert {p["_op"].to_list()[0] for _, p in parts} == {DELETE} and len(parts) == PARTITIONS
    assert route.split(1, "ts", frame(("t", 6, -1, 1)), None)[0] == []


def test_a_partial_write_is_made_whole_before_it_leaves() -> None:
    route = Route(planned("CREATE STREAM s IGNORE UPDATE 0 INTO o AS SELECT _wstart, sum(a) FROM m PARTITION BY b INTERVAL(1s)"))
    route.split(1, "ts", frame(("t", 5, 1, 7)), None)
    parts, _ = route.split(1, "ts", frame(("t", 5, 2, None), op=MERGE), Stored(frame(("t", 5, 1, 7))))
    [whole] = [p.row(0, named=True) for _, p in parts if p["_op"].to_list() == [UPSERT]]
    assert (whole["a"], whole["b"]) == (2, 7)


def test_every_stored_row_is_one_partitions_own_and_the_one_it_was_sent_to() -> None:
    route = Route(planned("CREATE STREAM s INTO o AS SELECT _wstart, sum(a) FROM m PARTITION BY b INTERVAL(1s)"))
    rows = frame(*((f"t{i}", i, 1, i % 11) for i in range(40)))
    sent = {place: set(part["tbname"]) for place, part in route.split(1, "ts", rows, None)[0]}
    own = {place: set(route.finished_at(place, rows)["tbname"]) for place in range(PARTITIONS)}
    assert {p: t for p, t in own.items() if t} == sent
    assert sorted(t for tables in own.values() for t in tables) == sorted(rows["tbname"])
