"""ADBC's driver of Flight SQL, with pyarrow."""

from __future__ import annotations

from typing import Any

import adbc_driver_flightsql.dbapi as flightsql
import pyarrow as pa
from adbc_driver_flightsql import DatabaseOptions
from told import options, serve, value

_told = options()
_connection: Any


def connect() -> str:
    global _connection
    _connection = flightsql.connect(
        f"grpc://{_told['host']}:{_told['flight']}",
        db_kwargs={
            "username": _told["user"],
            "password": _told["password"],
            DatabaseOptions.RPC_CALL_HEADER_PREFIX.value + "database": _told["database"],
        },
        autocommit=True,
    )
    about = _connection.adbc_get_info()
    return f"{about['vendor_name']} {about['vendor_version']}"


def query(sql: str, *words: str) -> Any:
    with _connection.cursor() as cursor:
        cursor.execute(sql, [value(w) for w in words] or None)
        table = cursor.fetch_arrow_table()
    return {
        "columns": [[field.name, str(field.type)] for field in table.schema],
        "rows": [list(row) for row in zip(*(_texts(c) for c in table.columns), strict=True)],
    }


def _texts(column: pa.ChunkedArray) -> list[Any]:
    """Return values; times as texts, since Python's have no nanoseconds."""
    if pa.types.is_timestamp(column.type):
        return [
            None if ticks is None else _time(ticks)
            for ticks in column.cast(pa.timestamp("ns", column.type.tz)).cast("int64").to_pylist()
        ]
    return list(column.to_pylist())


def _time(ticks: int) -> str:
    seconds, rest = divmod(ticks, 10**9)
    whole = pa.scalar(seconds, pa.timestamp("s")).as_py().isoformat()
    return f"{whole}.{rest:09d}+00:00"


def update(sql: str, *rows: str) -> int:
    """Run a statement, or one for each row of values with bars between them."""
    with _connection.cursor() as cursor:
        if rows:
            cursor.executemany(sql, [[value(w) for w in row.split("|")] for row in rows])
        else:
            cursor.execute(sql)
        return int(cursor.rowcount)


def many(sql: str, size: str) -> list[int]:
    with _connection.cursor() as cursor:
        cursor.execute(sql)
        counted = [(b.num_rows, sum(b.column(0).to_pylist())) for b in cursor.fetch_record_batch()]
    return [sum(n for n, _ in counted), sum(s for _, s in counted)]


def objects(schema: str) -> list[Any]:
    """Tables of a schema with the names of their columns."""
    found = (
        _connection.adbc_get_objects(depth="all", db_schema_filter=schema).read_all().to_pylist()
    )
    return [
        [catalog["catalog_name"], s["db_schema_name"], t["table_name"], t["table_type"]]
        + [c["column_name"] for c in t["table_columns"]]
        for catalog in found
        for s in catalog["catalog_db_schemas"]
        for t in s["db_schema_tables"]
    ]


def columns(schema: str, table: str) -> list[list[str]]:
    found = _connection.adbc_get_table_schema(table, db_schema_filter=schema)
    return [[field.name, str(field.type)] for field in found]


def table_types() -> list[str]:
    return list(_connection.adbc_get_table_types())


def ingest(table: str, number: str, mode: str) -> int:
    """Write a table of so many rows in bulk."""
    numbers = range(int(number))
    data = pa.table(
        {
            "ts": pa.array([1_704_067_200_000 + n for n in numbers], pa.timestamp("ms", "UTC")),
            "n": pa.array(list(numbers), pa.int64()),
            "note": pa.array([None if n % 2 else f"it's {n}" for n in numbers]),
        }
    )
    with _connection.cursor() as cursor:
        return int(cursor.adbc_ingest(table, data, mode=mode))


def _code_of(wrong: Exception) -> Any:
    return getattr(getattr(wrong, "status_code", None), "name", None)


serve(
    connect,
    {
        "query": query,
        "update": update,
        "many": many,
        "objects": objects,
        "columns": columns,
        "table_types": table_types,
        "ingest": ingest,
    },
    _code_of,
)
