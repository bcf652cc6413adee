"""Types of parameters before they have values, and schemas of SELECTs that wait for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from penstock.catalog.model import Table
from penstock.catalog.parameter_types import schema_of, stand_ins
from penstock.errors import SqlError
from penstock.sql.parser import read
from tests.unit.services.store.kit import PLAIN, STABLE
from tests.unit.services.store.test_query import opened

TIME = pa.timestamp("ms", "UTC")
INT = pa.int32()
TEXT = pa.utf8()


def find(database: str, name: str) -> Table | None:
    return {("d", "plain"): PLAIN, ("d", "meters"): STABLE}.get((database, name))


@pytest.mark.parametrize(
    ("sql", "types"),
    [
        ("SELECT v FROM plain", []),
        (
            "SELECT v FROM plain WHERE ts >= ? AND ? > ts AND V = ? AND w LIKE ?",
            [TIME, TIME, INT, TEXT],
        ),
        ("SELECT v FROM plain WHERE v IN (?, ?) OR v BETWEEN ? AND ?", [INT] * 4),
        ("SELECT v FROM plain WHERE v = -? LIMIT ? OFFSET ?", [INT, pa.int64(), pa.int64()]),
        ("SELECT a.v FROM plain a JOIN meters b ON a.ts = b.ts WHERE b.g = ?", [INT]),
        ("SELECT avg(v) FROM meters WHERE g = ? AND tbname = ? INTERVAL(1m)", [INT, TEXT]),
        ("SELECT v FROM (SELECT v FROM plain WHERE ts > ?) q WHERE q.v = ?", [TIME, TEXT]),
        ("SELECT ?, v + ? FROM plain WHERE v > abs(?)", [TEXT, TEXT, TEXT]),
        ("SELECT v FROM other.plain WHERE v = ?", [TEXT]),
        ("SELECT v FROM plain WHERE nothing = ?", [TEXT]),
        ("INSERT INTO plain VALUES (?, ?, ?), (1, ?, 'x')", [TIME, INT, TEXT, INT]),
        ("INSERT INTO plain (v, ts) VALUES (?, ?)", [INT, TIME]),
        ("INSERT INTO c USING meters TAGS (?) VALUES (?, ?, ?)", [INT, TIME, INT, TEXT]),
        ("INSERT INTO c USING other TAGS (?) VALUES (?)", [TEXT, TEXT]),
        ("INSERT INTO plain SELECT ts, v, w FROM meters WHERE g = ?", [INT]),
        ("DELETE FROM plain WHERE ts < ?", [TIME]),
        ("EXPLAIN SELECT v FROM plain WHERE v = ?", [INT]),
    ],
)
def test_the_column_beside_it_gives_a_parameter_its_type(
    sql: str, types: list[pa.DataType]
) -> None:
    (statement,) = read(sql)
    found = schema_of(statement, find, "d")
    assert found.types == types
    assert found.names == [str(at) for at in range(1, len(types) + 1)]


def test_names_count_once() -> None:
    (statement,) = read("SELECT v FROM plain WHERE ts > :since AND v = :n OR v = :n LIMIT :most")
    assert schema_of(statement, find, "d").names == ["since", "n", "most"]
    assert stand_ins(statement) == {"since": None, "n": None, "most": 1}


@pytest.mark.parametrize(
    ("sql", "fields"),
    [
        (
            "SELECT v, ts AS t FROM mine WHERE v = ? AND ts > ? LIMIT ?",
            {"v": INT, "t": pa.timestamp("ms")},
        ),
        ("SELECT count(*) AS n FROM mine WHERE v > :least", {"n": pa.int64()}),
        (
            "SELECT _wstart, max(v) AS m FROM mine WHERE v > ? INTERVAL(1s)",
            {"_wstart": pa.timestamp("ms"), "m": INT},
        ),
        ("EXPLAIN SELECT v FROM mine", {"item": TEXT, "value": TEXT}),
    ],
)
def test_a_select_is_described_before_it_has_values(
    tmp_path: Path, rows: Callable[..., pl.DataFrame], sql: str, fields: dict[str, Any]
) -> None:
    queries = opened(tmp_path, rows, 20.0)
    found = queries.describe(sql, "d")
    assert dict(zip(found.names, found.types, strict=True)) == fields


def test_what_is_wrong_is_told_when_it_is_described(
    tmp_path: Path, rows: Callable[..., pl.DataFrame]
) -> None:
    queries = opened(tmp_path, rows, 20.0)
    with pytest.raises(SqlError) as told:
        queries.describe("SELECT v,\n  vv FROM mine", "d")
    assert (told.value.line, told.value.column) == (2, 3)

    def refuse(database: str, name: str, table: Table | None) -> None:
        raise PermissionError(f"{database}.{name}")

    with pytest.raises(PermissionError, match="d.mine"):
        queries.describe("SELECT v FROM mine", "d", permit=refuse)
