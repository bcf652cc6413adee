"""Functions of a row and the rows before it, as DuckDB computes them, against plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import names
from penstock.catalog.model import Table, TableVersion
from penstock.errors import SqlError
from penstock.sql.parser import parse_one
from penstock.sql.plan import Column
from penstock.sql.relational import Output, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store.binding import Context, columns_of
from services.store.clauses import write_clauses
from services.store.translate import query
from tests.installing import install
from tests.nightly import drawn
from tests.relations import placed
from tests.unit.services.store.kit import STABLE, TOPIC
from tests.unit.services.store.plain_series import CALLS, Results, Rows, irate
from tests.unit.services.store.test_query_run import FAR, Asking, Far

KINDS = {
    "ts": "TIMESTAMP",
    "i": "BIGINT",
    "u": "BIGINT UNSIGNED",
    "x": "DOUBLE",
    "h": "DOUBLE",
    "b": "BOOL",
    "place": "INT",
    "n": "BIGINT",
}
TABLE = TableColumns(
    tuple(Output(name, ColumnType(kind)) for name, kind in KINDS.items()), row_keys=("tbname",)
)

# ---------------------------------------------------------------- DuckDB


class Played:
    """Rows in DuckDB, and what selects over them give. Rows have their number in `n`."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        schema = {"tbname": pl.String(), **{k: ColumnType(v).polars() for k, v in KINDS.items()}}
        frame = pl.DataFrame(rows, schema=schema).with_columns(pl.col("ts").cast(pl.Datetime("ms")))
        self._con = duckdb.connect(config={"threads": 1, "error_on_division_by_zero": False})
        self._con.register("given", frame.to_arrow())
        self._con.execute("CREATE TABLE t AS SELECT * FROM given")

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Compute a select."""
        statement = parse_one(text)
        assert isinstance(statement, Query)
        plan = bind(statement.query, QueryScope(statement.source, lambda _: TABLE))
        context = Context("UTC", relations=frozenset(("t",)))
        printed = query(write_clauses(placed(plan, time="ts"), statement, context), context)
        con = self._con.cursor()
        install(con, context.needed.values(), statement.source)
        found = con.execute(printed).fetchall()
        con.close()
        return found

    def close(self) -> None:
        self._con.close()


def values_of(kind: str) -> st.SearchStrategy[Any]:
    """Values of a column, NULL among them; sums of DOUBLE are exact but for `h`."""
    quarters = st.integers(-40, 40).map(lambda n: n / 4)
    values: dict[str, st.SearchStrategy[Any]] = {
        "i": st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1]),
        "u": st.integers(0, 3) | st.sampled_from([2**64 - 1, 2**63]),
        "x": quarters | st.just(math.nan),
        "h": quarters | st.sampled_from([1.7e308, -1.7e308, 5e-324, math.nan]),
        "b": st.booleans(),
    }
    return st.none() | values[kind]


#: times are few, so that many rows of several tables share one
ROW = st.fixed_dictionaries(
    {
        "tbname": st.sampled_from(["a", "b", "c"]),
        "ts": st.integers(-4, 4).map(lambda n: n * 700),
        **{kind: values_of(kind) for kind in "iuxhb"},
    }
)
ROWS = st.lists(ROW, max_size=24, unique_by=lambda r: (r["tbname"], r["ts"])).map(
    lambda rows: [{**r, "n": n, "place": ord(r["tbname"]) % 2} for n, r in enumerate(rows)]
)


def known(value: Any) -> Any:
    """NaN is no value, and BOOL is a number."""
    if isinstance(value, bool):
        return int(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def partitions(rows: list[dict[str, Any]], key: str, column: str) -> Iterator[Rows]:
    """Rows in the order of time and table, by partitions."""
    ordered = sorted(rows, key=lambda r: (r["ts"], r["tbname"]))
    for value in sorted({r[key] for r in rows} if key else {None}, key=str):
        yield [(r["n"], r["ts"], known(r[column])) for r in ordered if not key or r[key] == value]


def expected(rows: list[dict[str, Any]], key: str, column: str, call: Any) -> Results:
    return {n: v for part in partitions(rows, key, column) for n, v in call(part).items()}


def same(found: Results, wanted: Results) -> bool:
    return found.keys() == wanted.keys() and all(
        found[n] == pytest.approx(wanted[n], rel=1e-12, abs=0)
        if wanted[n] is not None
        else found[n] is None
        for n in wanted
    )


#: each call with each of its columns
CASES = [(text, column, call) for text, columns, call in CALLS for column in columns]


@given(
    ROWS,
    st.sampled_from(["", "tbname", "place"]),
    st.lists(st.sampled_from(CASES), min_size=1, max_size=8),
)
@settings(max_examples=drawn(40), deadline=None)
def test_each_function_gives_what_plain_python_does(
    rows: list[dict[str, Any]], key: str, cases: list[Any]
) -> None:
    played = Played(rows)
    by = f" PARTITION BY {key}" if key else ""
    for text, column, call in cases:
        item = text.format(column)
        found = dict(played.rows(f"SELECT n, {item} AS y FROM t{by}"))
        wanted = expected(rows, key, column, call)
        assert same(found, wanted), (item, found, wanted)
    played.close()


@given(ROWS, st.sampled_from(["", "tbname", "place"]), st.data())
@settings(max_examples=drawn(60), deadline=None)
def test_functions_beside_each_other_share_rows(
    rows: list[dict[str, Any]], key: str, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(CALLS), min_size=2, max_size=5))
    played = Played(rows)
    items = ", ".join(text.format("x") for text, _, _ in chosen)
    by = f" PARTITION BY {key}" if key else ""
    found = {n: values for n, *values in played.rows(f"SELECT n, {items} FROM t{by}")}
    wanted = [expected(rows, key, "x", call) for _, _, call in chosen]
    assert found.keys() == {n for each in wanted for n in each}
    for place, each in enumerate(wanted):
        assert same(
            {n: values[place] for n, values in found.items()}, {n: each.get(n) for n in found}
        )
    played.close()


@given(ROWS, st.sampled_from("iuxhb"))
@settings(max_examples=drawn(60), deadline=None)
def test_irate_gives_what_plain_python_does(rows: list[dict[str, Any]], column: str) -> None:
    played = Played(rows)
    found = dict(played.rows(f"SELECT tbname, irate({column}) FROM t GROUP BY tbname"))
    for name in {r["tbname"] for r in rows}:
        own = [r for r in rows if r["tbname"] == name]
        (part,) = partitions(own, "tbname", column)
        assert same({0: found[name]}, {0: irate(part)}), (name, part)
    played.close()


@given(ROWS)
@settings(max_examples=drawn(25), deadline=None)
def test_rows_come_in_order_of_time_and_limits_count_in_partitions(
    rows: list[dict[str, Any]],
) -> None:
    played = Played(rows)
    (every,) = partitions(rows, "", "i")
    order = [n for n, _, value in every if value is not None]
    assert [n for n, _ in played.rows("SELECT n, csum(i) FROM t")] == order
    assert [n for n, _ in played.rows("SELECT n, csum(i) FROM t LIMIT 3 OFFSET 1")] == order[1:4]
    first = set()
    for part in partitions(rows, "tbname", "i"):
        first.update([n for n, _, value in part if value is not None][:2])
    found = played.rows("SELECT n, csum(i) FROM t PARTITION BY tbname LIMIT 2")
    assert [n for n, _ in found] == [n for n in order if n in first]
    played.close()


# ---------------------------------------------------------------- a whole query


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    made = Asking(tmp_path)
    made.put(
        STABLE,
        ("d1", 1_000, 10, "x", 1),
        ("d2", 1_000, 20, "y", 2),
        ("d1", 3_000, 30, "x", 1),
        ("d2", 5_000, None, "y", 2),
        ("d1", 6_000, 7, "q", 1),
        ("d2", 9_000, 24, "y", 2),
    )
    for child in ("d1", "d2"):
        made.redis.hset(names.children(STABLE.id), child, "{}")
    return made


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        (
            "tbname, v, derivative(v, 1s, 0) FROM meters PARTITION BY tbname",
            [("d1", 30, 10), ("d1", 7, -23 / 3), ("d2", 24, 0.5)],
        ),
        ("diff(v) AS d FROM meters WHERE v > 7 ORDER BY d DESC", [(10,), (10,), (-6,)]),
        ("diff(v) FROM d1 ORDER BY diff(v)", [(-23,), (20,)]),
        (
            "v * 2 AS dbl, csum(dbl) FROM meters WHERE dbl < 50 PARTITION BY tbname LIMIT 1",
            [(20, 20), (40, 40)],
        ),
        ("g AS k, diff(v, 2) FROM meters PARTITION BY k SLIMIT 1", [(1, 20), (1, -23)]),
        ("g, diff(v, 2) FROM meters PARTITION BY 1 SLIMIT 1 SOFFSET 1", [(2, 4)]),
        (
            "DISTINCT statecount(v, 'GT', 9) AS c FROM meters ORDER BY c",
            [(-1,), (1,), (2,), (3,), (None,)],
        ),
        ("max(d) FROM (SELECT ts, diff(v) AS d FROM meters PARTITION BY tbname)", [(20,)]),
        ("csum(d) FROM (SELECT ts, diff(v, 2) AS d FROM d1)", [(20,), (-3,)]),
        (
            "n, diff(n) FROM (SELECT _wstart, count(*) AS n FROM meters INTERVAL(5s))",
            [(3, 0)],
        ),
        (
            "count(*) FROM meters WHERE v > (SELECT max(d) FROM (SELECT ts, diff(v) d FROM d1))",
            [(2,)],
        ),
        (
            "(SELECT max(x.v) FROM meters x WHERE x.tbname = m.tbname) AS top, diff(m.v)"
            " FROM meters m PARTITION BY m.tbname LIMIT 1",
            [(30, 20), (24, None)],
        ),
        (
            "diff(v) FROM d1 UNION ALL SELECT csum(v) FROM d2 ORDER BY 1",
            [(-23,), (20,), (20,), (44,)],
        ),
        (
            "_penstock_series_0, diff(v) AS _penstock_series_1 FROM (SELECT ts, v, 1 AS"
            " _penstock_series_0 FROM d1)",
            [(1, 20), (1, -23)],
        ),
    ],
)
def test_in_a_query(asking: Asking, sql: str, wanted: list[Any]) -> None:
    assert asking.rows(f"SELECT {sql}") == wanted


def test_columns_have_their_types(asking: Asking) -> None:
    found = asking.result("SELECT ts, diff(v), csum(g), mavg(v, 1), diff(ts) / 2 FROM meters")
    assert [f.metadata[b"type"].decode() for f in found.schema] == [
        "TIMESTAMP",
        "BIGINT",
        "BIGINT",
        "DOUBLE",
        "DOUBLE",
    ]
    assert [str(f.type) for f in found.schema] == [
        "timestamp[ms]",
        "int64",
        "int64",
        "double",
        "double",
    ]


def test_a_window_beside_one_is_refused_with_a_subquery(asking: Asking) -> None:
    with pytest.raises(SqlError) as caught:
        asking.rows("SELECT count(*), diff(v) FROM meters INTERVAL(10s)")
    error = caught.value
    assert (error.code, error.column) == ("E_SERIES_HERE", 18)
    assert (
        "SELECT _wstart, diff(x) FROM (SELECT _wstart, avg(v) AS x … INTERVAL(10s))" in error.hint
    )


def test_selects_in_each_other_are_as_many_as_can_be_printed(asking: Asking) -> None:
    text = "SELECT ts, v FROM d1"
    for _ in range(16):
        text = f"SELECT ts, stateduration(v, 'GE', -1) AS v FROM ({text})"
    assert len(asking.rows(text)) == 3
    with pytest.raises(SqlError, match="more than 16 selects"):
        asking.rows(f"SELECT csum(v) FROM ({text})")


def test_rows_of_another_deployment_come_with_what_orders_them(asking: Asking) -> None:
    asking.far = Far(replace(FAR, key_column="w"))
    assert asking.rows("SELECT csum(v) FROM far") == [(5,), (11,)]
    assert asking.far.asked == [("far", ("ts", "v", "w"), [])]


def test_a_table_says_what_tells_its_rows_apart() -> None:
    columns = (Column("ts", ColumnType("TIMESTAMP")), Column("k", ColumnType("INT")))
    keyed = Table(9, "d", "keyed", "plain", TOPIC, 1, "ms", (TableVersion(109, columns),), "k")
    assert columns_of(STABLE).row_keys == ("tbname",)
    assert columns_of(keyed).row_keys == ("k",)
