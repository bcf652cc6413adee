"""One expression over the rows, on each engine: polars as in a stream, DuckDB as in a query."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from penstock.sql.compile import compile_expression
from penstock.sql.parser import parse_one
from penstock.sql.relational import Output, QueryScope, TableColumns, bind
from penstock.sql.statements import Query
from penstock.types import ColumnType
from services.store.binding import Context
from services.store.translate import query
from tests.installing import install
from tests.relations import placed
from tests.sql.rows import COLUMNS

#: 2027-01-15 07:59:59.123 UTC
MOMENT = 1_799_999_999_123_456_789
#: `_row` numbers the rows
_COLUMNS = TableColumns(
    tuple(Output(n, t) for n, t in {**COLUMNS, "_row": ColumnType("INT UNSIGNED")}.items())
)


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as a frame of the kernels."""
    frame = pl.DataFrame(rows, schema={name: kind.polars() for name, kind in COLUMNS.items()})
    return frame.with_columns(_now=pl.lit(MOMENT // 1_000_000, pl.Int64))


def polars_values(text: str, frame: pl.DataFrame, timezone: str) -> list[Any]:
    """Compute an expression as a stream does. Times are ticks."""
    compiled = compile_expression(text, COLUMNS, timezone=timezone)
    return frame.with_columns(compiled.expr.alias("_")).get_column("_").to_list()


class DuckRows:
    """The rows in DuckDB, set up as the store does it."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame.drop("_now").with_row_index("_row")

    def values(self, text: str, timezone: str, *, aggregate: bool = False) -> list[Any]:
        """Compute an expression of each row, or an aggregate, as a query does. Times are ticks."""
        context = Context(timezone, relations=frozenset(("t",)), moment=MOMENT)
        statement = parse_one(
            f"SELECT {text} AS found FROM t{'' if aggregate else ' ORDER BY _row'}"
        )
        assert isinstance(statement, Query)
        scope = QueryScope(statement.source, lambda _: _COLUMNS, timezone)
        translated = query(placed(bind(statement.query, scope), time="ts"), context)
        con = duckdb.connect(config={"threads": 1})
        try:
            con.register("_rows", self._frame.to_arrow())
            con.execute(
                "SET error_on_division_by_zero=false; SET ieee_floating_point_ops=false;"
                " SET TimeZone='UTC'; CREATE TEMP VIEW t AS"
                " SELECT * REPLACE (make_timestamp_ms(ts)::TIMESTAMP_MS AS ts) FROM _rows"
            )
            install(con, context.needed.values(), statement.source)
            return _listed(con.sql(translated).to_arrow_table().column("found"))
        finally:
            con.close()


def _listed(found: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(found.type):
        return pl.Series(pl.from_arrow(found)).dt.epoch("ms").to_list()
    return list(found.to_pylist())
