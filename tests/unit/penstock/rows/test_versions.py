"""What versions of rows leave, by a model that keeps a dictionary a row."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.rows.versions import CLEAR, DELETE, MERGE, UPSERT, filler, without_clears
from penstock.storage import segments
from penstock.windows.rows.merge import complete
from penstock.windows.rows.row_columns import RowColumns
from tests.nightly import drawn

SCHEMA = {
    "tbname": pl.String,
    "ts": pl.Int64,
    "a": pl.Int32,
    "b": pl.String,
    "_op": pl.Int8,
    "_offset": pl.Int64,
    "_row": pl.UInt32,
}
KEYS = ["tbname", "ts"]
VALUES = {"a": st.integers(0, 3), "b": st.sampled_from("xy")}

Write = tuple[str, int, int, dict[str, Any]]
#: (table, time, operation, values that the write names)
WRITES = st.lists(
    st.tuples(
        st.sampled_from("pq"),
        st.integers(0, 2),
        st.sampled_from([UPSERT, MERGE, MERGE, MERGE, DELETE]),
        st.fixed_dictionaries({}, optional={n: v | st.none() for n, v in VALUES.items()}),
    ),
    max_size=12,
)


def versions(writes: list[Write], first: int = 0) -> pl.DataFrame:
    """The rows that *writes* make, as the gateway writes them."""
    made = []
    for offset, (table, ts, op, values) in enumerate(writes, first):
        named = [n for n, v in values.items() if v is None]
        if op == MERGE and named:
            marks = {n: filler(SCHEMA[n]()) for n in named}
            made.append((table, ts, marks.get("a"), marks.get("b"), CLEAR, offset, len(made)))
        made.append((table, ts, values.get("a"), values.get("b"), op, offset, len(made)))
    return pl.DataFrame(made, schema=SCHEMA, orient="row")


class Model:
    """The table, a dictionary a row."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}

    def write(self, table: str, ts: int, op: int, given: dict[str, Any]) -> None:
        if op == DELETE:
            self.rows.pop((table, ts), None)
            return
        blank = {"a": None, "b": None}
        before = self.rows.get((table, ts), blank) if op == MERGE else blank
        self.rows[table, ts] = {**before, **given}

    def table(self) -> list[tuple[Any, ...]]:
        return [(*key, row["a"], row["b"]) for key, row in sorted(self.rows.items())]


def shown(rows: pl.DataFrame) -> list[tuple[Any, ...]]:
    return rows.sort(KEYS).select("tbname", "ts", "a", "b").rows()


@settings(max_examples=drawn(200), deadline=None)
@given(WRITES)
def test_live_rows_are_those_of_the_model(writes: list[Write]) -> None:
    model = Model()
    for write in writes:
        model.write(*write)
    assert shown(segments.live(versions(writes), KEYS)) == model.table()


class Stored:
    """A history of what was written before a call."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = segments.live(rows, KEYS)

    def fetch(self, low: int, high: int, tables: Any = None) -> pl.DataFrame:
        return self.rows.filter(pl.col("ts").is_between(low, high))

    fetch_versions = fetch


@settings(max_examples=drawn(200), deadline=None)
@given(WRITES, WRITES)
def test_a_kernel_sees_each_partial_row_as_the_table_has_it_then(
    before: list[Write], writes: list[Write]
) -> None:
    model = Model()
    for write in before:
        model.write(*write)
    expected = []
    for table, ts, op, given_ in writes:
        model.write(table, ts, op, given_)
        if op != DELETE:
            row = model.rows[table, ts]
            expected.append((table, ts, row["a"], row["b"]))
    columns = RowColumns(list(KEYS), list(VALUES))
    rows = complete(versions(writes, len(before)), Stored(versions(before)), columns)
    rows = rows.filter(pl.col("_op") != DELETE)
    assert rows.select("tbname", "ts", "a", "b").rows() == expected
    assert set(rows.get_column("_op")) <= {UPSERT}


def test_who_takes_partial_rows_as_they_are_gets_each_once() -> None:
    rows = versions([("p", 0, UPSERT, {"a": 1}), ("p", 0, MERGE, {"b": None})])
    assert rows.height == 3
    assert without_clears(rows).get_column("_op").to_list() == [UPSERT, MERGE]
    whole = rows.filter(pl.col("_op") == UPSERT)
    assert without_clears(whole) is whole


@pytest.mark.parametrize(
    "kind", [pl.String(), pl.Binary(), pl.Boolean(), pl.Decimal(9, 2), pl.Float32(), pl.Int64()]
)
def test_every_type_has_a_filler(kind: pl.DataType) -> None:
    assert pl.Series([filler(kind)], dtype=kind).null_count() == 0
