"""Random SELECTs: what is bound runs, and its columns have the types that they are bound to."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.sql.parser import parse_one
from penstock.sql.relational import BoundQuery, Output, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store.binding import BoundTable, Context
from services.store.translate import query
from tests.nightly import drawn

TYPES = {
    "ts": ColumnType("TIMESTAMP"),
    "v": ColumnType("INT"),
    "big": ColumnType("BIGINT"),
    "f": ColumnType("FLOAT"),
    "d": ColumnType("DOUBLE"),
    "flag": ColumnType("BOOL"),
    "w": ColumnType("VARCHAR", length=16),
}
TABLE = TableColumns(tuple(Output(n, k) for n, k in TYPES.items()))
CONTEXT = Context({"t": BoundTable("t", tuple(TYPES))}, "UTC")
ROWS = pa.table(
    {
        "tbname": ["t", "t", "t"],
        "ts": pa.array([0, 1_000, None], pa.timestamp("ms")),
        "v": pa.array([1, None, -7], pa.int32()),
        "big": pa.array([2**60, 3, None], pa.int64()),
        "f": pa.array([1.5, None, 0.1], pa.float32()),
        "d": [0.25, -3.0, None],
        "flag": [True, False, None],
        "w": ["1.5", "x", None],
    }
)
LEAF = st.sampled_from(
    [*TYPES, "1", "1.5", "0", "'2'", "'2024-01-31'", "NULL", "1h", "TRUE", "3000000000", "-2"]
)


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = ["+", "-", "*", "/", "%", "=", "<>", "<", ">=", "AND", "OR"]
    binary = st.tuples(inner, st.sampled_from(operators), inner).map(
        lambda p: f"({p[0]} {p[1]} {p[2]})"
    )
    functions = ["abs", "floor", "sqrt", "upper", "char_length", "-", "NOT "]
    unary = st.tuples(st.sampled_from(functions), inner).map(lambda p: f"{p[0]}({p[1]})")
    among = st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} IN ({p[1]}, {p[2]}))")
    between = st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} BETWEEN {p[1]} AND {p[2]})")
    return st.one_of(binary, unary, among, between)


VALUE = st.recursive(LEAF, _composed, max_leaves=6)
AGGREGATE = st.tuples(
    st.sampled_from(["sum", "avg", "min", "max", "count", "spread", "stddev", "last"]), VALUE
).map(lambda p: f"{p[0]}({p[1]})")


def bound(sql: str) -> BoundQuery | None:
    """What the text means; None where it means nothing."""
    try:
        statement = parse_one(sql)
        assert isinstance(statement, Query)
        return bind(statement.query.copy(), QueryScope(statement.source, lambda _: TABLE))
    except PenstockError:
        return None


def answer(found: BoundQuery) -> pa.Table:
    con = duckdb.connect()
    try:
        con.execute("SET TimeZone='UTC'; SET ieee_floating_point_ops=false")
        con.execute("SET error_on_division_by_zero=false")
        con.register("t", ROWS)
        return con.sql(query(found.tree, CONTEXT)).to_arrow_table()
    finally:
        con.close()


@given(VALUE | AGGREGATE)
@settings(max_examples=drawn(150), deadline=None)
def test_columns_have_the_types_that_they_are_bound_to(value: str) -> None:
    found = bound(f"SELECT {value} AS x FROM t")
    if found is None:
        return
    (output,) = found.outputs
    if output.type.kind == "NULL":
        return
    kind = answer(found).schema.field(0).type
    if output.type.kind == "TIMESTAMP":
        assert kind == pa.timestamp("ms"), value
    else:
        assert kind == output.type.arrow(), value


@given(VALUE)
@settings(max_examples=drawn(100), deadline=None)
def test_conditions_run(condition: str) -> None:
    found = bound(f"SELECT v FROM t WHERE {condition}")
    if found is not None:
        assert answer(found).num_rows <= 3
