"""Quotas of streams: beyond MAX_RESULTS a stream pauses until the surplus is made up for, beyond
MAX_STATE it is stopped.

Processors report what a stream has published and keeps; the sums are held against its plan here,
once a mesh. What follows from it goes out as control records, so it takes effect at an offset and a
replay repeats it; a field of the stream's status says why. Other streams do not notice. Refused
here: holding up rows of a topic, which are everybody's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import redis

from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.catalog.view import Catalog
from penstock.records import ControlRecord
from penstock.runtime import log

#: what a quota allows in so many seconds may be published at once
_BURST_SECONDS = 5.0
#: a surplus beyond that is forgiven: what waits for a paused stream is kept in its state
_LONGEST_PAUSE = 30.0
#: how long a processor may take to report that it has stopped, and what it has published of a
#: stream's history
_STOP_SECONDS = 30.0
_REPORT_SECONDS = 5.0

_log = log.get(__name__)


@dataclass(frozen=True)
class Usage:
    """What the processors of a stream report, summed up; `filling`: some of them compute its
    history, which no quota counts.
    """

    rows_out: int = 0
    full_bytes: int = 0
    filling: bool = False

    @classmethod
    def of(cls, status: Mapping[str, str]) -> Usage:
        found = [json.loads(v) for f, v in status.items() if f.startswith(names.STATS)]
        filling = any(f.startswith(names.FILLING) for f in status)
        return cls(
            sum(s["rows_out"] for s in found), sum(s.get("full_bytes", 0) for s in found), filling
        )


@dataclass(frozen=True)
class Account:
    """What a stream may publish at the moment `at`, when it has published `rows_out`; below zero it
    is that many rows ahead.

    What comes out before `free_until` counts as history.
    """

    at: float
    rows_out: int
    credit: float
    free_until: float

    @classmethod
    def open(cls, usage: Usage, quota: int, now: float) -> Account:
        return cls(now, usage.rows_out, quota * _BURST_SECONDS, now)

    def charge(self, usage: Usage, quota: int, now: float) -> Account:
        """The account at *now*. Counters go back for a moment when a processor begins again from
        its
        state: nothing is credited for that.
        """
        free_until = now + _REPORT_SECONDS if usage.filling else self.free_until
        published = 0 if now < free_until else max(usage.rows_out - self.rows_out, 0)
        credit = min(self.credit + quota * (now - self.at), quota * _BURST_SECONDS) - published
        return Account(
            now,
            max(usage.rows_out, self.rows_out),
            max(credit, -quota * _LONGEST_PAUSE),
            free_until,
        )


@dataclass
class _Known:
    """A stream that has been looked at: whether it is paused for its quota, and until when it may
    take to stop.
    """

    held: bool
    account: Account | None = None
    stops_until: float = float("-inf")


#: sends a control record to every partition of a stream's source
Send = Callable[[StreamEntry, ControlRecord], None]


class Quotas:
    """Minds the streams that have quotas."""

    def __init__(self, client: redis.Redis, send: Send) -> None:
        self._redis = client
        self._send = send
        self._known: dict[int, _Known] = {}

    def mind(self, catalog: Catalog, now: float) -> None:
        """Hold what streams have done by *now* (monotonic seconds) against their quotas."""
        streams = {s.id: s for s in catalog.streams()}
        self._known = {i: k for i, k in self._known.items() if i in streams}
        for stream in streams.values():
            known = self._known.get(stream.id)
            if known is None or known.held or stream.plan.max_results or stream.plan.max_state:
                self._mind(stream, known, now)

    def _mind(self, stream: StreamEntry, known: _Known | None, now: float) -> None:
        status = {
            str(f): str(v) for f, v in self._redis.hgetall(names.stream_status(stream.id)).items()
        }
        usage = Usage.of(status)
        limit = stream.plan.max_results
        if known is None:
            # whom an earlier driver has paused nobody else lets go; who is not paused does not
            # notice
            known = self._known[stream.id] = _Known(held=names.QUOTA in status or bool(limit))
        if _keeps_too_much(stream, usage) and now > known.stops_until:
            self._stop(stream, known, usage, now)
        known.account = None if not limit else _charge(known.account, usage, limit, now)
        if known.account is None or known.account.credit >= 0:
            self._release(stream, known, status)
        elif not known.held:
            self._hold(stream, known, known.account)

    def _stop(self, stream: StreamEntry, known: _Known, usage: Usage, now: float) -> None:
        reason = (
            f"stopped: it keeps {usage.full_bytes >> 20} MB, MAX_STATE is {stream.plan.max_state}"
        )
        _log.warning("stream is over its quota", stream=_name(stream), reason=reason)
        self._send(stream, ControlRecord("stop", stream=stream.id, body=reason))
        known.stops_until = now + _STOP_SECONDS

    def _hold(self, stream: StreamEntry, known: _Known, account: Account) -> None:
        reason = (
            f"throttled: MAX_RESULTS is {stream.plan.max_results} a second, and it is"
            f" {-account.credit:.0f} rows ahead"
        )
        _log.warning("stream is over its quota", stream=_name(stream), reason=reason)
        self._redis.hset(names.stream_status(stream.id), names.QUOTA, reason)
        known.held = True
        if stream.status == "running":
            self._send(stream, ControlRecord("pause", stream=stream.id))

    def _release(self, stream: StreamEntry, known: _Known, status: Mapping[str, str]) -> None:
        """Let it go on, unless somebody paused it by a statement or its target of NOTIFY is
        behind.
        """
        if not known.held:
            return
        self._redis.hdel(names.stream_status(stream.id), names.QUOTA)
        if stream.status == "running" and names.HELD not in status:
            self._send(stream, ControlRecord("resume", stream=stream.id))
        known.held = False


def _keeps_too_much(stream: StreamEntry, usage: Usage) -> bool:
    """Return True if a stream's state is larger than its MAX_STATE."""
    most = stream.plan.max_state
    return bool(most) and usage.full_bytes > most << 20


def _charge(account: Account | None, usage: Usage, quota: int, now: float) -> Account:
    """Return the account at *now*, which is opened first if there is none."""
    return (account or Account.open(usage, quota, now)).charge(usage, quota, now)


def _name(stream: StreamEntry) -> str:
    return f"{stream.database}.{stream.name}"
