"""The newest entries of all services' logs in Redis: a stream for each service and node, and a set
of those that there are. Services send them with their beat, so they may be seconds late.

Entries may come twice when Redis took them and its answer was lost; `read` drops what is the same.
Refused: keeping logs. Streams are short, and what nobody adds to for a week is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import redis

from penstock import names
from penstock.config.settings import Settings
from penstock.runtime.log_entries import LogEntry, parse_json
from penstock.runtime.newest_entries import NewestEntries, TakenEntries

#: entries of a stream, about: Redis cuts where that costs nothing
KEPT = 1_000
FORGOTTEN_SECONDS = 7 * 86_400


class LogSender:
    """Sends what a process has logged; what Redis did not take is sent again with the next beat."""

    def __init__(self, settings: Settings, logged: NewestEntries) -> None:
        self._logged = logged
        self._key = names.log(settings.node, settings.service)
        self._member = f"{settings.node}:{settings.service}"
        self._unsent = TakenEntries()

    def send(self, pipe: redis.client.Pipeline) -> None:
        """Execute *pipe* with all that is new. Raises redis.RedisError."""
        self._unsent = self._unsent or self._logged.take()
        left_out = self._unsent.left_out
        for entry in self._unsent.entries:
            about: dict[Any, Any] = {"entry": entry}
            pipe.xadd(self._key, about | ({"left_out": left_out} if left_out else {}), maxlen=KEPT)
            left_out = 0
        if self._unsent:
            pipe.expire(self._key, FORGOTTEN_SECONDS)
            pipe.zadd(names.logs(), {self._member: time.time()})
            pipe.expire(names.logs(), FORGOTTEN_SECONDS)
        pipe.execute()
        self._unsent = TakenEntries()


@dataclass(frozen=True)
class SentEntry:
    """An entry of a service's log, and on which node that was. `left_out` before it were logged
    faster than they could be sent.
    """

    node: int
    entry: LogEntry
    left_out: int = 0


def senders(client: redis.Redis, now: float) -> list[tuple[int, str]]:
    """Return node and service of each log that there is; *now*: epoch seconds.

    Raises:
        redis.RedisError: it does not answer.
    """
    found = client.zrangebyscore(names.logs(), now - FORGOTTEN_SECONDS, "+inf")
    members = cast(list[str | bytes], found)
    parts = (_text(member).partition(":") for member in members)
    return sorted((int(node), service) for node, _, service in parts if node.isdecimal())


def read(client: redis.Redis, logs: list[tuple[int, str]], most: int | None) -> list[SentEntry]:
    """Return the entries of *logs*, the newest first.

    Args:
        logs: nodes and services, of `senders`.
        most: of each log; None for all.

    Raises:
        redis.RedisError: it does not answer.
    """
    with client.pipeline(transaction=False) as pipe:
        for node, service in logs:
            pipe.xrevrange(names.log(node, service), count=most)
        answers = cast(list[list[tuple[Any, dict[Any, Any]]]], pipe.execute())
    found = [
        sent
        for (node, service), records in zip(logs, answers, strict=True)
        for sent in _entries(node, service, records)
    ]
    return sorted(found, key=lambda sent: sent.entry.time, reverse=True)


def _entries(
    node: int, service: str, records: list[tuple[Any, dict[Any, Any]]]
) -> Iterator[SentEntry]:
    told = [{_text(k): _text(v) for k, v in fields.items()} for _, fields in records]
    for line, left_out in dict.fromkeys((t.get("entry", ""), t.get("left_out", "0")) for t in told):
        entry = parse_json(line, service)
        if entry is not None:
            yield SentEntry(node, entry, int(left_out))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
