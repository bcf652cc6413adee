"""What SELECT sees must be the same before and after a flush, a merge and a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rows.versions import CLEAR, DELETE, MERGE, UPSERT
from penstock.storage import segments
from penstock.storage.segments import Position, RangeDelete, Segment
from services.store.flush import (
    Newest,
    SegmentLayout,
    expire,
    flush,
    merge,
    remove_leftovers,
    remove_merged,
    to_ticks,
)
from services.store.flush import _runs as find_runs
from services.store.relation import Relation, parts
from services.store.tail import Tail
from tests.nightly import drawn

COLUMNS = [("ts", "TIMESTAMP_MS"), ("v", "INTEGER"), ("w", "VARCHAR"), ("later", "DOUBLE")]


class Bench:
    """One partition of one table, flushed when told."""

    def __init__(self, root: Path, layout: SegmentLayout) -> None:
        self.root = str(root)
        self.layout = layout
        self.tail = Tail(Position("in.a", 0, 1))
        self.newest: dict[int, Newest] = {}

    def flush(self) -> None:
        frozen = self.tail.freeze()
        if frozen is not None:
            self.tail.thaw(flush(self.root, "in.a", 0, 1, frozen, {7: self.layout}, self.newest))

    def table(self) -> list[tuple[object, ...]]:
        con = duckdb.connect()
        sql = Relation(
            con, "r", self.layout, COLUMNS, parts(self.root, 7, {0: self.tail.view()})
        ).sql()
        return con.execute(
            f"SELECT tbname, epoch_ms(ts), v, w, later FROM ({sql}) ORDER BY 1, 2"
        ).fetchall()


@pytest.fixture
def bench(tmp_path: Path, layout: SegmentLayout) -> Bench:
    return Bench(tmp_path, layout)


def test_upsert_merge_delete(bench: Bench, rows: Callable[..., pl.DataFrame]) -> None:
    bench.tail.append(
        3,
        {7: rows(("a", 1000, 1, "x", 0, 0), ("a", 2000, 2, "y", 0, 1), ("b", 1000, 3, "z", 0, 2))},
        [],
        1.0,
    )
    bench.flush()
    bench.tail.append(
        6,
        {
            7: rows(
                ("a", 1000, None, "merged", 2, 3),
                ("a", 3000, 5, None, 0, 4),
                ("b", 1000, None, None, 1, 5),
            )
        },
        [],
        1.0,
    )
    expected = [
        ("a", 1000, 1, "merged", None),
        ("a", 2000, 2, "y", None),
        ("a", 3000, 5, None, None),
    ]
    assert bench.table() == expected
    bench.flush()
    assert bench.table() == expected
    bench.tail.append(7, {}, [RangeDelete(7, 6, ("a",), 0, 2500)], 1.0)
    assert bench.table() == [("a", 3000, 5, None, None)]
    bench.tail.append(8, {7: rows(("a", 1000, 9, "new", 0, 7))}, [], 1.0)
    assert bench.table()[0] == ("a", 1000, 9, "new", None)


def test_fresh_segments_need_no_resolution(bench: Bench, rows: Callable[..., pl.DataFrame]) -> None:
    bench.tail.append(1, {7: rows(("a", 1000, 1, "x", 0, 0))}, [], 1.0)
    bench.flush()
    bench.tail.append(2, {7: rows(("a", 2000, 1, "x", 0, 1))}, [], 1.0)
    bench.flush()
    found = segments.segments(segments.directory(bench.root, 7, 0))
    assert [s.fresh for s in found] == [True, True]
    bench.tail.append(3, {7: rows(("a", 2000, 7, "x", 0, 2))}, [], 1.0)
    bench.flush()
    assert [s.fresh for s in segments.segments(segments.directory(bench.root, 7, 0))] == [
        True,
        True,
        False,
    ]


def one_by_one(bench: Bench, rows: Callable[..., pl.DataFrame], times: list[int]) -> None:
    """A row at each of these times, every one flushed by itself."""
    for i, time in enumerate(times):
        bench.tail.append(i + 1, {7: rows(("a", time, i, "x", 0, i))}, [], 1.0)
        bench.flush()


def test_merge_keeps_the_table_and_its_history(
    bench: Bench, rows: Callable[..., pl.DataFrame], layout: SegmentLayout
) -> None:
    one_by_one(bench, rows, [1000 + i % 3 for i in range(9)])
    before = bench.table()
    assert merge(bench.root, layout, 0, 9) >= 8
    assert bench.table() == before
    where = segments.directory(bench.root, 7, 0)
    found = segments.segments(where)
    assert len(found) == 1
    history = segments.read(found, time_column="ts")
    assert history is not None and history.height == 9
    as_it_was = segments.live(
        to_ticks(history, layout).filter(pl.col("_offset") < 4), ["tbname", "ts"]
    )
    assert as_it_was.sort("ts")["v"].to_list() == [3, 1, 2]


def test_who_knows_an_older_position_finds_all_below_it_after_a_merge(
    bench: Bench, rows: Callable[..., pl.DataFrame], layout: SegmentLayout
) -> None:
    one_by_one(bench, rows, [1000 + i for i in range(9)])
    where = segments.directory(bench.root, 7, 0)
    listed = segments.segments(where, 5)
    assert merge(bench.root, layout, 0, 9) == 9
    assert segments.segments(where, 5) == listed and len(listed) == 5
    assert [s.rows for s in segments.segments(where, 9)] == [9]
    assert remove_merged(bench.root, 7, 0) == 0
    assert remove_merged(bench.root, 7, 0, linger=0) == 9
    assert [s.rows for s in segments.segments(where)] == [9]


def test_what_was_merged_goes_with_the_merged_one_when_it_is_too_old(
    bench: Bench, rows: Callable[..., pl.DataFrame], layout: SegmentLayout
) -> None:
    one_by_one(bench, rows, [1000 + i for i in range(8)])
    merge(bench.root, layout, 0, 8)
    assert expire(bench.root, 7, 0, 1008) == 1
    assert segments.segments(segments.directory(bench.root, 7, 0)) == []


def test_a_segment_that_was_never_committed_does_not_count(
    bench: Bench, rows: Callable[..., pl.DataFrame], layout: SegmentLayout
) -> None:
    bench.tail.append(1, {7: rows(("a", 1000, 1, "x", 0, 0))}, [], 1.0)
    bench.flush()
    bench.tail.append(2, {7: rows(("a", 2000, 2, "x", 0, 1))}, [], 1.0)
    frozen = bench.tail.freeze()
    assert frozen is not None
    committed = Position.load(bench.root, "in.a", 0, 1)
    flush(bench.root, "in.a", 0, 1, frozen, {7: layout}, bench.newest)
    committed.save(bench.root)  # as if the crash came before the position
    bench.tail = Tail(Position.load(bench.root, "in.a", 0, 1))
    assert [r[1] for r in bench.table()] == [1000]
    remove_leftovers(bench.root, 7, 0, committed.next)
    assert len(segments.segments(segments.directory(bench.root, 7, 0))) == 1


def test_failed_flush_loses_nothing(bench: Bench, rows: Callable[..., pl.DataFrame]) -> None:
    bench.tail.append(1, {7: rows(("a", 1000, 1, "x", 0, 0))}, [], 1.0)
    assert bench.tail.freeze() is not None
    bench.tail.append(2, {7: rows(("a", 2000, 2, "x", 0, 1))}, [], 1.0)
    bench.tail.unfreeze()
    bench.flush()
    assert [r[1] for r in bench.table()] == [1000, 2000]


def test_repeats_of_a_producer_are_dropped() -> None:
    tail = Tail(Position("in.a", 0, 1))
    assert not tail.seen("s:1:in.a:0", 5, 0)
    assert tail.seen("s:1:in.a:0", 5, 0)
    assert not tail.seen("s:1:in.a:0", 5, 1)
    assert tail.seen("s:1:in.a:0", 4, 9)


@settings(max_examples=drawn(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 5),
            st.integers(0, 9) | st.none(),
            st.sampled_from([0, 0, 0, 1, 2, 3]),
        ),
        max_size=30,
    ),
    st.sets(st.integers(0, 29)),
)
def test_flushing_anywhere_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[tuple[str, int, int | None, int]],
    cuts: set[int],
) -> None:
    layout = SegmentLayout(7, "ts", ("tbname", "ts"), "ms", ("ts",))
    schema = {
        "tbname": pl.String,
        "ts": pl.Int64,
        "v": pl.Int32,
        "w": pl.String,
        "_op": pl.Int8,
        "_offset": pl.Int64,
        "_row": pl.UInt32,
    }
    bench = Bench(tmp_path_factory.mktemp("segments"), layout)
    model: dict[tuple[str, int], int | None] = {}
    for i, (name, ts, value, op) in enumerate(writes):
        # a clear comes with the partial row that it is for
        versions = [(name, ts, value, None, op, i, 0)]
        if op == CLEAR:
            versions = [(name, ts, 1, None, CLEAR, i, 0), (name, ts, None, None, MERGE, i, 1)]
        frame = pl.DataFrame(versions, schema=schema, orient="row")
        bench.tail.append(i + 1, {7: frame}, [], 1.0)
        if op == DELETE:
            model.pop((name, ts), None)
        elif op == CLEAR:
            model[name, ts] = None
        elif op == UPSERT or value is not None or (name, ts) not in model:
            model[name, ts] = value
        if i in cuts:
            bench.flush()
    assert [(r[0], r[1], r[2]) for r in bench.table()] == [
        (n, t, v) for (n, t), v in sorted(model.items())
    ]


def test_a_segment_of_an_earlier_version_with_values_that_are_no_times_is_readable(
    bench: Bench,
) -> None:
    layout = SegmentLayout(7, "ts", ("tbname", "ts"), "ms", ("ts", "seen"))
    rows = pl.DataFrame(
        {
            "tbname": ["a", "b"],
            "ts": [1000, 2000],
            "seen": [1_700_000_000_000_000_000, 5],
            "_op": [0, 0],
            "_offset": [0, 1],
        },
        schema_overrides={"_op": pl.Int8},
    ).with_columns(_row=pl.int_range(pl.len(), dtype=pl.UInt32))
    where = segments.directory(bench.root, 7, 0)
    wire = rows.with_columns(pl.col("ts", "seen").cast(pl.Datetime("ms")))
    segments.write(where, wire.to_arrow(), "ts", 0, 1, fresh=True, low=1000, high=2000)
    bench.tail.append(2, {}, [], 1.0)
    bench.flush()
    con = duckdb.connect()
    columns = [("ts", "TIMESTAMP_MS"), ("seen", "TIMESTAMP_MS")]
    sql = Relation(con, "r", layout, columns, parts(bench.root, 7, {0: bench.tail.view()})).sql()
    found = con.execute(f"SELECT tbname, epoch_ms(seen) FROM ({sql}) ORDER BY 1").fetchall()
    assert found == [("a", None), ("b", 5)]


@pytest.mark.parametrize("flushed", [True, False])
def test_a_renamed_tag_keeps_its_values_and_a_new_one_under_its_name_has_none(
    bench: Bench, rows: Callable[..., pl.DataFrame], flushed: bool
) -> None:
    bench.tail.append(
        1, {7: rows(("a", 1000, 1, "x", 0, 0), ("b", 1000, None, "y", 0, 0))}, [], 1.0
    )
    if flushed:
        bench.flush()
    stored = {"w": ("w#9",), "tag": ("w",), "ts": ("ts",), "v": ("v",)}
    layout = SegmentLayout(7, "ts", ("tbname", "ts"), "ms", ("ts",), stored)
    bench.layout = layout
    later = rows(("a", 2000, 2, "z", 0, 1)).with_columns(pl.Series("w#9", [5]))
    bench.tail.append(2, {7: later}, [], 1.0)
    bench.tail.set_tags(7, "b", {"w": "set"})
    if flushed:
        bench.flush()
    columns = [("ts", "TIMESTAMP_MS"), ("v", "INTEGER"), ("w", "INTEGER"), ("tag", "VARCHAR")]
    con = duckdb.connect()
    sql = Relation(con, "r", layout, columns, parts(bench.root, 7, {0: bench.tail.view()})).sql()
    found = con.execute(
        f"SELECT tbname, epoch_ms(ts), v, w, tag FROM ({sql}) ORDER BY 1, 2"
    ).fetchall()
    assert found == [
        ("a", 1000, 1, None, "x"),
        ("a", 2000, 2, 5, "z"),
        ("b", 1000, None, None, "set"),
    ]


def test_rows_that_an_earlier_build_wrote_under_a_new_name_are_read_with_those_under_the_old(
    bench: Bench, rows: Callable[..., pl.DataFrame]
) -> None:
    bench.tail.append(1, {7: rows(("a", 1000, 1, "x", 0, 0))}, [], 1.0)
    bench.tail.append(2, {7: rows(("a", 2000, 2, "y", 0, 1)).rename({"w": "tag"})}, [], 1.0)
    bench.flush()
    layout = SegmentLayout(7, "ts", ("tbname", "ts"), "ms", ("ts",), {"tag": ("tag", "w")})
    columns = [("ts", "TIMESTAMP_MS"), ("tag", "VARCHAR")]
    con = duckdb.connect()
    sql = Relation(con, "r", layout, columns, parts(bench.root, 7, {0: bench.tail.view()})).sql()
    assert con.execute(f"SELECT tag FROM ({sql}) ORDER BY ts").fetchall() == [("x",), ("y",)]


def of_rows(*rows: int) -> list[Segment]:
    return [Segment(Path(f"{i}"), i, i, count, 0, 0, True) for i, count in enumerate(rows)]


def run_rows(*rows: int, most: int = 4_000_000) -> list[list[int]]:
    return [[s.rows for s in run] for run in find_runs(of_rows(*rows), most)]


def test_four_neighbours_of_one_size_are_merged_and_fewer_are_not() -> None:
    assert run_rows(100, 100, 100) == []
    assert run_rows(100, 100, 100, 100) == [[100] * 4]
    assert run_rows(9000, 100, 100, 9000, 100, 100) == []
    assert run_rows(9000, *[100] * 5, 9000) == [[100] * 5]


def test_large_files_that_have_no_room_for_another_are_merged_too() -> None:
    """Four of more than a million rows are above the limit together."""
    assert run_rows(*[1_200_000] * 3) == []
    assert run_rows(*[1_200_000] * 4) == [[1_200_000] * 3]
    assert run_rows(3_600_000, *[1_200_000] * 3) == []
    assert run_rows(*[3_600_000] * 5) == []


def test_a_table_that_grows_has_few_files_and_rows_are_written_a_few_times() -> None:
    files: list[int] = []
    written = 0
    for _ in range(1000):
        files.append(1000)
        written += 1000
        while runs := run_rows(*files):
            whole = sum(runs[0])
            at = next(i for i in range(len(files)) if files[i : i + len(runs[0])] == runs[0])
            files[at : at + len(runs[0])] = [whole]
            written += whole
    assert sum(files) == 1_000_000
    assert len(files) <= 15
    assert written <= 7 * 1_000_000
