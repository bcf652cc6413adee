"""Redis in memory, as far as services and the gateway ask anything of it."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import redis

from penstock.runtime.clock import Clock, ManualClock

NOW = 1_800_000_000_000_000_000


class MemoryRedis:
    """Texts, hashes, sets and streams; answers are bytes, as the real one's are.

    Keys run out by *clock*; while `down` is set nothing is answered.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or ManualClock(NOW)
        self.texts: dict[str, str] = {}
        self.hashes: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.sets: defaultdict[str, set[str]] = defaultdict(set)
        self.sorted_sets: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self.streams: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
        self.down = False
        self._until: dict[str, float] = {}

    def _look(self) -> None:
        """Fail while Redis is away, and forget keys whose time is over."""
        if self.down:
            raise redis.ConnectionError("Redis is away")
        over = [key for key, until in self._until.items() if until <= self._clock.monotonic()]
        for key in over:
            self._forget(key)

    def _forget(self, key: str) -> int:
        self._until.pop(key, None)
        there = key in self.texts or bool(self.hashes.get(key))
        self.texts.pop(key, None)
        self.hashes.pop(key, None)
        self.sorted_sets.pop(key, None)
        self.streams.pop(key, None)
        return int(there)

    # ---------------------------------------------------------------- texts

    def get(self, key: str) -> bytes | None:
        self._look()
        return _bytes(self.texts.get(key))

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        self._look()
        return [_bytes(self.texts.get(key)) for key in keys]

    def set(
        self,
        key: str,
        value: object,
        *,
        nx: bool = False,
        ex: float | None = None,
        px: float | None = None,
    ) -> bool | None:
        self._look()
        if nx and key in self.texts:
            return None
        self.texts[key] = _text(value)
        self._until.pop(key, None)
        if ex is not None or px is not None:
            self._until[key] = self._clock.monotonic() + (ex or 0) + (px or 0) / 1000
        return True

    def delete(self, *keys: str) -> int:
        self._look()
        return sum(self._forget(key) for key in keys)

    def exists(self, *keys: str) -> int:
        self._look()
        return sum(key in self.texts or bool(self.hashes.get(key)) for key in keys)

    def expire(self, key: str, seconds: float) -> bool:
        self._look()
        self._until[key] = self._clock.monotonic() + seconds
        return True

    def unlink(self, *keys: str) -> int:
        return self.delete(*keys)

    def scan_iter(self, match: str, count: int = 0) -> Iterator[bytes]:
        self._look()
        found = [k for k in (*self.texts, *self.hashes) if fnmatch.fnmatchcase(k, match)]
        return iter([k.encode() for k in found])

    # ---------------------------------------------------------------- sets

    def sadd(self, key: str, *members: str) -> None:
        self._look()
        self.sets[key].update(members)

    def sismember(self, key: str, member: str) -> bool:
        self._look()
        return member in self.sets[key]

    def zadd(self, key: str, mapping: Mapping[str, float]) -> None:
        self._look()
        self.sorted_sets[key] |= mapping

    def zrangebyscore(self, key: str, low: float | str, high: float | str) -> list[bytes]:
        self._look()
        found = self.sorted_sets[key].items()
        return [m.encode() for m, score in found if float(low) <= score <= float(high)]

    # ---------------------------------------------------------------- streams

    def xadd(self, key: str, fields: Mapping[str, object], maxlen: int) -> None:
        self._look()
        self.streams[key].append({_text(f): _text(v) for f, v in fields.items()})
        del self.streams[key][:-maxlen]

    def xrevrange(
        self, key: str, count: int | None = None
    ) -> list[tuple[bytes, dict[bytes, bytes]]]:
        self._look()
        found = [
            (f"{at}-0".encode(), {f.encode(): v.encode() for f, v in fields.items()})
            for at, fields in enumerate(self.streams[key])
        ]
        return found[::-1][:count]

    # ---------------------------------------------------------------- hashes

    def hget(self, key: str, field: str) -> bytes | None:
        self._look()
        return _bytes(self.hashes[key].get(_text(field)))

    def hexists(self, key: str, field: str) -> bool:
        self._look()
        return _text(field) in self.hashes[key]

    def hgetall(self, key: str) -> dict[bytes, bytes]:
        self._look()
        return {f.encode(): v.encode() for f, v in self.hashes[key].items()}

    def hkeys(self, key: str) -> list[bytes]:
        self._look()
        return [f.encode() for f in self.hashes[key]]

    def hmget(self, key: str, fields: Sequence[str | bytes]) -> list[bytes | None]:
        self._look()
        return [_bytes(self.hashes[key].get(_text(field))) for field in fields]

    def hlen(self, key: str) -> int:
        self._look()
        return len(self.hashes[key])

    def hset(
        self,
        key: str,
        field: str | None = None,
        value: object = None,
        mapping: Mapping[str, object] | None = None,
    ) -> None:
        self._look()
        given = dict(mapping or {}) | ({} if field is None else {field: value})
        self.hashes[key] |= {_text(f): _text(v) for f, v in given.items()}

    def hsetnx(self, key: str, field: str, value: object) -> int:
        self._look()
        new = field not in self.hashes[key]
        self.hashes[key].setdefault(field, _text(value))
        return int(new)

    def hdel(self, key: str, *fields: str) -> int:
        self._look()
        return sum(self.hashes[key].pop(_text(field), None) is not None for field in fields)

    def hscan_iter(self, key: str, count: int = 0) -> Iterator[tuple[bytes, bytes]]:
        return iter(self.hgetall(key).items())

    # ---------------------------------------------------------------- pipelines, scripts

    def pipeline(self, transaction: bool = True) -> _Pipeline:
        self._look()
        return _Pipeline(self)

    def eval(self, script: str, count: int, *given: Any) -> int:
        """The scripts of `penstock.coordination.lease`, told apart by what only one of them
        says.
        """
        self._look()
        keys = given[:count]
        arguments = given[count:]
        held = self.texts.get(keys[0])
        if "math.max" in script:
            return self._acquire(held, keys, arguments)
        if held is None:
            return 0
        token, epoch, _ = held.split("|", 2)
        if "string.match" in script:
            return self._forget(keys[0]) if epoch == str(arguments[0]) else 0
        if token != arguments[0]:
            return 0
        if "pexpire" in script:
            self._until[keys[0]] = self._clock.monotonic() + arguments[1] / 1000
            return 1
        return self._forget(keys[0])

    def _acquire(self, held: str | None, keys: Sequence[str], arguments: Sequence[Any]) -> int:
        if held is not None:
            return 0
        token, milli, seen, address = arguments
        epoch = max(int(self.texts.get(keys[1], "0")), int(seen)) + 1
        self.texts[keys[1]] = str(epoch)
        self.set(keys[0], f"{token}|{epoch}|{address}", px=milli)
        return epoch


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


class _Pipeline:
    """Runs each command when it is given; `execute` returns what they gave."""

    def __init__(self, client: MemoryRedis) -> None:
        self._client = client
        self._results: list[Any] = []

    def __enter__(self) -> _Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        command = getattr(self._client, name)

        def run(*arguments: Any, **more: Any) -> None:
            self._results.append(command(*arguments, **more))

        return run

    def execute(self) -> list[Any]:
        results = self._results
        self._results = []
        return results


class AsyncRedis:
    """The same client for code that awaits."""

    def __init__(self, client: MemoryRedis) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        command = getattr(self._client, name)

        async def call(*arguments: Any, **more: Any) -> Any:
            return command(*arguments, **more)

        return call
