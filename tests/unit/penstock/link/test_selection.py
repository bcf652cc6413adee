from __future__ import annotations

import polars as pl
import pytest

from penstock.errors import SqlError
from penstock.link.description import Description
from penstock.link.selection import compile_selection
from penstock.sql.plan import Column
from penstock.types import ColumnType

SOURCE = Description(
    7,
    "d",
    "t",
    (
        Column("ts", ColumnType("TIMESTAMP")),
        Column("code", ColumnType("INT")),
        Column("note", ColumnType("VARCHAR", 9)),
    ),
    (Column("site", ColumnType("INT")),),
)


def _rows() -> pl.DataFrame:
    rows = {
        "_op": pl.Series([0, 0, 1], dtype=pl.Int8),
        "tbname": ["a", "b", "a"],
        "_time": [1, 2, 3],
        "_offset": [5, 5, 6],
        "_row": [0, 1, 0],
        "_part": pl.Series([2, 2, 2], dtype=pl.Int32),
        "_appended": [9, 9, 9],
        "ts": [1, 2, 3],
        "code": [200, 404, None],
        "note": ["x", "y", None],
        "site": [1, 2, None],
    }
    return pl.DataFrame(rows)


def test_filters_and_projects_and_lets_deletes_pass() -> None:
    made = compile_selection(
        "SELECT note AS n, code + 1 AS c, site FROM d.t WHERE code >= 400 AND _tp_time > earliest_ts()",
        SOURCE,
    )
    assert [c.name for c in made.outputs] == ["n", "c", "site"]
    rows = made.apply(_rows())
    assert rows.columns == ["_op", "tbname", "_time", "_offset", "_row", "n", "c", "site"]
    assert rows["_op"].to_list() == [0, 1] and rows["n"].to_list() == ["y", None]


def test_virtual_columns_and_now() -> None:
    made = compile_selection(
        "SELECT _tp_sn, _tp_shard, _tp_append_time, _tp_time FROM t WHERE ts > now - 2d",
        SOURCE,
        now=10**9,
    )
    rows = made.apply(_rows())
    assert (
        rows["_tp_sn"].to_list() == [5, 5, 6]
        and rows["_tp_shard"].to_list() == [2, 2, 2]
        and rows["_tp_time"].to_list() == [1, 2, 3]
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t",
        "SELECT a.code FROM t AS a JOIN t AS b ON a.ts = b.ts",
        "SELECT code FROM t ORDER BY code",
        "SELECT _wstart, count(*) FROM t INTERVAL(1s)",
        "SELECT nothing FROM t",
        "SELECT code, code FROM t",
        "SELECT other.code FROM t",
        "SELECT 1",
        "SELECT code FROM t WHERE note",
        "SELECT code FROM t LIMIT 1",
    ],
)
def test_more_than_that_is_refused(sql: str) -> None:
    with pytest.raises(SqlError):
        compile_selection(sql, SOURCE)
