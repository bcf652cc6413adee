"""asyncpg."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
from told import options, serve, value

_told = options()
_loop = asyncio.new_event_loop()
_connection: Any


def connect() -> str:
    global _connection
    _connection = _loop.run_until_complete(
        asyncpg.connect(
            host=_told["host"],
            port=_told["postgres"],
            user=_told["user"],
            password=_told["password"],
            database=_told["database"],
            server_settings={"timezone": _told.get("zone", "UTC")},
            ssl="prefer",
        )
    )
    return str(_connection.get_settings().server_version)


async def _query(sql: str, *words: str) -> Any:
    prepared = await _connection.prepare(sql)
    rows = await prepared.fetch(*(value(w) for w in words))
    names = [[a.name, a.type.name] for a in prepared.get_attributes()]
    return {"columns": names, "rows": [list(row) for row in rows]}


async def _many(sql: str, size: str) -> list[int]:
    """Read rows some at a time, by a portal in a transaction."""
    async with _connection.transaction():
        rows = [row[0] async for row in _connection.cursor(sql, prefetch=int(size))]
    return [len(rows), sum(rows)]


async def _transaction(*statements: str) -> list[str]:
    """Run statements as one transaction that is rolled back; how each ended."""
    ended = []
    transaction = _connection.transaction(isolation="repeatable_read", readonly=True)
    await transaction.start()
    for sql in statements:
        try:
            await _connection.execute(sql)
            ended.append("ok")
        except asyncpg.PostgresError as wrong:
            ended.append(wrong.sqlstate)
    await transaction.rollback()
    return ended


async def _pool(sql: str, times: str) -> list[Any]:
    """Ask by connections of a pool, which resets each as it comes back."""
    async with asyncpg.create_pool(
        host=_told["host"],
        port=_told["postgres"],
        user=_told["user"],
        password=_told["password"],
        database=_told["database"],
        min_size=2,
        max_size=2,
    ) as pool:
        return list(await asyncio.gather(*(pool.fetchval(sql) for _ in range(int(times)))))


def _waited(work: Any) -> Any:
    return lambda *words: _loop.run_until_complete(work(*words))


serve(
    connect,
    {
        "query": _waited(_query),
        "many": _waited(_many),
        "transaction": _waited(_transaction),
        "pool": _waited(_pool),
    },
    lambda wrong: getattr(wrong, "sqlstate", None),
)
