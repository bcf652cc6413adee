"""Rows that top, bottom, unique, tail and sample choose, beside plain Python, over random rows with
NULL, NaN and equal times.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.model import Database, Table, TableVersion
from penstock.sql.functions.row_choosers import ROW_CHOOSERS
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.store.query import Queries, QueryLimits
from tests.unit.services.store.kit import TOPIC, MemoryStore

COLUMNS = {"ts": "TIMESTAMP", "i": "INT", "d": "DOUBLE", "id": "INT"}
TAGS = (Column("g", ColumnType("INT")),)
VERSION = TableVersion(0, tuple(Column(n, ColumnType(kind)) for n, kind in COLUMNS.items()), TAGS)
TABLE = Table(7, "d", "m", "stable", TOPIC, 1, "ms", (VERSION,))
_DOUBLES = (None, math.nan, 0.0, 1.5, -2.25, 1e300)
Row = dict[str, Any]


def _rows() -> list[Row]:
    dice = random.Random(7)
    times = {(f"t{dice.randrange(6)}", dice.randrange(60)) for _ in range(250)}
    rows = [
        {
            "tbname": table,
            "ts": time,
            "i": dice.choice((None, 0, 7, -3, dice.randrange(-20, 20))),
            "d": dice.choice((*_DOUBLES, dice.uniform(-9, 9))),
            "g": int(table[1]) % 2,
        }
        for table, time in times
    ]
    rows.sort(key=lambda row: (row["ts"], row["tbname"]))
    return [{**row, "id": number} for number, row in enumerate(rows)]


ROWS = _rows()


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Queries:
    directory: Path = tmp_path_factory.mktemp("store")
    store = MemoryStore(directory, Database(1, "d", partitions=1), TABLE)
    shuffled = random.Random(3).sample(ROWS, len(ROWS))
    listed = ("tbname", *COLUMNS, "g")
    store.put(TABLE, *(tuple(row[name] for name in listed) for row in shuffled))
    limits = QueryLimits("256MB", 1, 1_000_000, 60.0, "0B")
    return Queries(store.partitions, store.resolver, limits)


def _known(rows: list[Row], column: str) -> list[Row]:
    return [r for r in rows if r[column] is not None and not math.isnan(r[column])]


def _top(rows: list[Row], column: str) -> list[Row]:
    return sorted(_known(rows, column), key=lambda r: (-r[column], r["id"]))[:5]


def _bottom(rows: list[Row], column: str) -> list[Row]:
    return sorted(_known(rows, column), key=lambda r: (r[column], r["id"]))[:5]


def _unique(rows: list[Row], column: str) -> list[Row]:
    seen: dict[str, Row] = {}
    for row in rows:
        seen.setdefault(repr(row[column]), row)
    return list(seen.values())


def _tail(rows: list[Row], column: str) -> list[Row]:
    return rows[::-1][3 : 3 + 4]


_PLAIN: dict[str, Callable[[list[Row], str], list[Row]]] = {
    "top({}, 5)": _top,
    "bottom({}, 5)": _bottom,
    "unique({})": _unique,
    "tail({}, 4, 3)": _tail,
}


@pytest.mark.parametrize("key", ["", "tbname", "g"])
@pytest.mark.parametrize("column", ["i", "d"])
@pytest.mark.parametrize("call", _PLAIN)
def test_the_chosen_rows_are_those_of_plain_python(
    queries: Queries, call: str, column: str, key: str
) -> None:
    partition = f"PARTITION BY {key}" if key else ""
    item = call.format(column)
    answer = queries.run(f"SELECT {item} AS found, id, {column} FROM m {partition}", "d")
    found = [row["id"] for row in answer.to_pylist()]
    wanted = []
    for part in {row[key] for row in ROWS} if key else {None}:
        rows = [row for row in ROWS if not key or row[key] == part]
        wanted += [row["id"] for row in _PLAIN[call](rows, column)]
    assert found == sorted(wanted)
    assert repr(answer["found"].to_pylist()) == repr(answer[column].to_pylist())


@pytest.mark.parametrize("column", ["i", "d"])
def test_a_sample_has_each_row_sooner_or_later(queries: Queries, column: str) -> None:
    wanted = {row["id"] for row in _known(ROWS, column) if row["tbname"] == "t1"}
    seen: set[int] = set()
    for _ in range(60):
        sql = f"SELECT sample({column}, 5) AS v, id FROM m WHERE tbname = 't1'"
        ids = queries.run(sql, "d")["id"].to_pylist()
        assert len(set(ids)) == 5
        seen.update(ids)
    assert seen == wanted


def test_every_chooser_is_tested_here() -> None:
    assert ROW_CHOOSERS.keys() == {"top", "bottom", "unique", "tail", "sample"}
