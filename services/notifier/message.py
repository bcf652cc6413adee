"""What the record of a stream's events becomes for the targets of its NOTIFY clause: one message,
or nothing.

A record is one message, so a repeat carries the same `messageId` whatever was sent around it.
Refused here: who gets it when.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from penstock.catalog.model import StreamEntry
from penstock.outbound.targets import is_web
from penstock.records import EventsRecord
from penstock.runtime.traces import shown
from services.notifier.event_filter import passing


@dataclass(frozen=True)
class NotifyTarget:
    """Where messages go. Streams that drop and streams that wait have connections of their own,
    even to one URL; so have those that sign with different keys.
    """

    url: str
    on_failure: Literal["drop", "pause"]
    #: database and name of the key that signs requests; empty: nothing does
    signed_by: str = ""

    def key(self, partition: int) -> str:
        """Name of its cursor of one partition."""
        how = f"{self.on_failure}:{self.signed_by}" if self.signed_by else self.on_failure
        return f"{partition}|{how}|{self.url}"

    @classmethod
    def of_key(cls, key: str) -> tuple[int, NotifyTarget]:
        partition, how, url = key.split("|", 2)
        on_failure, _, signed_by = how.partition(":")
        return int(partition), cls(url, "drop" if on_failure == "drop" else "pause", signed_by)


@dataclass(frozen=True)
class NotifyMessage:
    """A message on its way. `position` is the record's place among all of its producer."""

    partition: int
    offset: int
    stream: int
    name: str
    producer: str
    position: tuple[int, int]
    events: int
    text: str
    targets: tuple[NotifyTarget, ...]
    trace: str | None = None


def targets_of(entry: StreamEntry) -> tuple[NotifyTarget, ...]:
    """Whom a stream notifies."""
    notify = entry.plan.notify
    if notify is None:
        return ()
    # the name of a database may hold any character, that of a key may not
    key = f"{quote(entry.database, safe='')}/{notify.signed_by}" if notify.signed_by else ""
    return tuple(
        NotifyTarget(url, notify.on_failure, key if is_web(url) else "") for url in notify.urls
    )


def pack(
    entry: StreamEntry, record: EventsRecord, partition: int, offset: int, now: int
) -> NotifyMessage | None:
    """The message of *record*, made at *now* (epoch milliseconds); None when nobody is to be
    told.
    """
    notify = entry.plan.notify
    targets = targets_of(entry)
    if notify is None or not targets or (record.history and not notify.history):
        return None
    wanted = {*notify.on, "WINDOW_INVALIDATION"}
    events = passing(entry.plan, [e for e in events_of(record) if e.get("eventType") in wanted])
    if not events:
        return None
    message = {
        "messageId": message_id(entry, record),
        "timestamp": now,
        "streams": [{"streamName": entry.name, "events": events}],
    }
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    name = f"{entry.database}.{entry.name}"
    position = (record.offset, record.ordinal)
    return NotifyMessage(
        partition,
        offset,
        entry.id,
        name,
        record.producer,
        position,
        len(events),
        text,
        targets,
        record.trace,
    )


def events_of(record: EventsRecord) -> list[dict[str, Any]]:
    """A record's events as targets and subscribers get them. Raises ValueError when they are
    none.
    """
    events: list[dict[str, Any]] = json.loads(record.events, parse_constant=_no_number)
    if record.trace is None:
        return events
    trace = shown(record.trace)
    return [{**event, "traceId": trace} for event in events]


def _no_number(_: str) -> None:
    """NaN and Infinity are no JSON: null."""


def message_id(entry: StreamEntry, record: EventsRecord) -> str:
    """The same for the same record for ever; `created` tells streams of one id in two meshes
    apart.
    """
    text = f"{entry.created}/{record.producer}/{record.offset}/{record.ordinal}"
    return hashlib.blake2b(text.encode(), digest_size=16, person=b"penstock-message").hexdigest()
