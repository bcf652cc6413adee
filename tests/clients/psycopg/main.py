"""psycopg 3."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from told import options, serve, value

_told = options()
_connection: psycopg.Connection[Any]


def _connected() -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=_told["host"],
        port=_told["postgres"],
        user=_told["user"],
        password=_told["password"],
        dbname=_told["database"],
        options=f"-c TimeZone={_told.get('zone', 'UTC')}",
        autocommit=True,
    )


def connect() -> str:
    global _connection
    _connection = _connected()
    return str(_connection.info.parameter_status("server_version"))


def query(sql: str, *words: str) -> Any:
    cursor = _connection.execute(
        re.sub(r"\$\d", "%s", sql) if words else sql,
        [value(w) for w in words] or None,
        prepare=True,
    )
    assert cursor.description is not None
    names = [[c.name, _connection.adapters.types[c.type_code].name] for c in cursor.description]
    return {"columns": names, "rows": cursor.fetchall()}


def many(sql: str, size: str) -> list[int]:
    """Read rows as they come.

    On a connection of its own: libpq stays in pieces for the first question of a pipeline.
    """
    with _connected() as connection:
        rows = list(connection.cursor().stream(sql, size=int(size)))
    return [len(rows), sum(row[0] for row in rows)]


def at_once(*statements: str) -> list[Any]:
    """Send all before the first answer is read."""
    with _connection.pipeline():
        cursors = [_connection.execute(sql) for sql in statements]
    return [cursor.fetchall() for cursor in cursors]


def transaction(*statements: str) -> list[str]:
    """Run statements as one transaction of which nothing is committed; how each ended."""
    ended = []
    with _connection.transaction(force_rollback=True):
        for sql in statements:
            try:
                _connection.execute(sql)
                ended.append("ok")
            except psycopg.Error as wrong:
                ended.append(wrong.sqlstate or "?")
    return ended


def insert(sql: str, *rows: str) -> int:
    """Write with executemany; a row is values with bars between them."""
    with _connection.cursor() as cursor:
        cursor.executemany(sql, [[value(w) for w in row.split("|")] for row in rows])
        return cursor.rowcount


serve(
    connect,
    {
        "query": query,
        "many": many,
        "at_once": at_once,
        "transaction": transaction,
        "insert": insert,
    },
    lambda wrong: getattr(wrong, "sqlstate", None),
)
