"""What the driver of the stream jobs stands on, in memory: Redis, and a catalog with its reader."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import redis

from penstock.catalog.apply import Changed
from penstock.catalog.model import Database, Entry, StreamEntry, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.coordination import lease
from penstock.runtime.clock import ManualClock
from penstock.sql.plan import Column, StreamPlan
from penstock.types import ColumnType
from tests.unit.windows.plans import window_plan

TOPIC = "in.db"


class MemoryRedis:
    """The commands that the driver uses, over dictionaries; answers texts."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        #: key → text and when it is gone
        self.texts: dict[str, tuple[str, float]] = {}
        self.hashes: dict[str, dict[str, str]] = defaultdict(dict)
        self.sets: dict[str, set[str]] = defaultdict(set)
        self.answers = True

    def _ask(self) -> None:
        if not self.answers:
            raise redis.ConnectionError("Redis is away")

    # ---------------------------------------------------------------- texts

    def get(self, key: str) -> str | None:
        self._ask()
        text, end = self.texts.get(key, ("", 0.0))
        return text if end > self.clock.monotonic() else None

    def set(self, key: str, value: object, *, ex: int | None = None, px: int | None = None) -> None:
        self._ask()
        life = float("inf")
        if ex is not None:
            life = float(ex)
        if px is not None:
            life = px / 1000
        self.texts[key] = (str(value), self.clock.monotonic() + life)

    def exists(self, key: str) -> int:
        return int(self.get(key) is not None)

    def pttl(self, key: str) -> int:
        self._ask()
        return (
            int((self.texts[key][1] - self.clock.monotonic()) * 1000) if key in self.texts else -2
        )

    def delete(self, *keys: str) -> None:
        self._ask()
        for key in keys:
            self.texts.pop(key, None)
            self.hashes.pop(key, None)

    # ---------------------------------------------------------------- hashes and sets

    def hset(
        self,
        key: str,
        field: str = "",
        value: object = "",
        mapping: Mapping[str, object] | None = None,
    ) -> None:
        self._ask()
        for name, given in (mapping or {field: value}).items():
            self.hashes[key][name] = str(given)

    def hsetnx(self, key: str, field: str, value: object) -> bool:
        self._ask()
        fresh = field not in self.hashes[key]
        self.hashes[key].setdefault(field, str(value))
        return fresh

    def hdel(self, key: str, *fields: str) -> None:
        self._ask()
        for field in fields:
            self.hashes[key].pop(field, None)

    def hgetall(self, key: str) -> dict[str, str]:
        self._ask()
        return dict(self.hashes.get(key, {}))

    def hkeys(self, key: str) -> list[str]:
        return list(self.hgetall(key))

    def sadd(self, key: str, *members: object) -> None:
        self._ask()
        self.sets[key] |= {str(m) for m in members}

    # ---------------------------------------------------------------- scripts and pipelines

    def eval(self, script: str, count: int, *given: Any) -> int:
        """The scripts of `penstock.coordination.lease`."""
        keys = given[:count]
        token, *more = (str(g) for g in given[count:])
        held = self.get(keys[0])
        if script == lease._ACQUIRE:
            if held is not None:
                return 0
            life, seen, address = more
            epoch = max(int(self.get(keys[1]) or 0), int(seen)) + 1
            self.set(keys[1], epoch)
            self.set(keys[0], f"{token}|{epoch}|{address}", px=int(life))
            return epoch
        if script == lease._REVOKE:
            mine = held is not None and held.split("|")[1] == token
        else:
            mine = held is not None and held.startswith(f"{token}|")
        if not mine:
            return 0
        if script == lease._RENEW:
            self.set(keys[0], held, px=int(more[0]))
        else:
            self.delete(keys[0])
        return 1

    def pipeline(self, transaction: bool) -> _Pipeline:
        return _Pipeline(self)


class _Pipeline:
    """Commands that are answered together."""

    def __init__(self, client: MemoryRedis) -> None:
        self._client = client
        self._asked: list[Callable[[], Any]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        command = getattr(self._client, name)
        return lambda *given, **named: self._asked.append(lambda: command(*given, **named))

    def __enter__(self) -> _Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self) -> list[Any]:
        asked = self._asked
        self._asked = []
        return [ask() for ask in asked]


class Reader:
    """Stands where `CatalogReader` does: a catalog that a test changes."""

    def __init__(self, *entries: Entry) -> None:
        self.catalog = Catalog(entries)
        self.listeners: list[Callable[[list[Changed]], None]] = []

    def listen(self, listener: Callable[[list[Changed]], None]) -> None:
        self.listeners.append(listener)

    def put(self, entry: Entry) -> None:
        self._tell(Changed(self.catalog.put(entry), entry))

    def remove(self, entry_id: int) -> None:
        self._tell(Changed(self.catalog.remove(entry_id), None))

    def wake(self) -> None:
        """Have the listeners look at once."""
        self._tell()

    def _tell(self, *changes: Changed) -> None:
        for listener in self.listeners:
            listener(list(changes))


def database(id: int = 5, name: str = "db", **given: Any) -> Database:
    return Database(id, name, **{"partitions": 2, **given})


def source(partitions: int = 2) -> Table:
    """The supertable `st` that plans of `window_plan` read."""
    columns = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("DOUBLE")))
    tags = (Column("loc", ColumnType("VARCHAR", 20)),)
    version = TableVersion(100, columns, tags)
    return Table(1, "db", "st", "stable", TOPIC, partitions, "ms", (version,))


def stream(number: int = 7, name: str = "s", status: str = "running", **given: Any) -> StreamEntry:
    plan: StreamPlan = replace(window_plan(**given), stream_id=number, name=name)
    return StreamEntry(number, plan, status=status)  # type: ignore[arg-type]


def task(**given: Any) -> str:
    """What a task says of itself in its query's progress."""
    return json.dumps({"attempt": 0, "host": "elsewhere", "pid": 1, "epoch": 0, **given})
