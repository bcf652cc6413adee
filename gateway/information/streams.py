"""Lists of streams and their tasks: their status, and what they have counted."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gateway.answers import table_of
from gateway.information import columns
from gateway.information.viewer import Viewer
from gateway.stream_status import live_fields, progress, progress_of
from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.coordination.redis_link import ask
from penstock.sql.plan import StreamPlan
from penstock.sql.secret import hide

#: what a notifier says of its targets holds for so long
_TOLD_SECONDS = 15.0
#: what partition processors count, in the order of the columns that show it
_COUNTED = ("rows_in", "rows_out", "late", "failed", "state_bytes")


@dataclass(frozen=True)
class _Lag:
    """Records of a topic that are not worked on yet."""

    records: int
    #: where most of them are: `topic:partition`; None: nobody says
    partition: str | None

    @classmethod
    def of(cls, topic: str, beat: Mapping[str, Any]) -> _Lag:
        hindmost = beat.get("hindmost")
        where = None if hindmost is None else f"{topic}:{hindmost}"
        return cls(int(beat["lag"]), where)


class StreamLists:
    """Lists of the catalog's streams, with what their readers report."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def streams(self, database: str | None = None) -> pa.Table:
        """Return streams with their status."""
        rows = []
        streams = self._viewer.catalog.streams(database)
        reports = progress_of(self._viewer.redis, streams) if streams else []
        lags = self._lags(streams)
        safe = bool(streams) and self._is_safe()
        for s, said in zip(streams, reports, strict=True):
            status, message = self._status(s, said, safe=safe)
            p = s.plan
            notifies = p.notify is not None and p.notify.urls
            rows.append(
                (
                    s.name,
                    s.created,
                    s.id,
                    hide(p.sql),
                    status,
                    p.source.database,
                    p.source.child or p.source.table,
                    p.target.database if p.target.stored else None,
                    p.target.table if p.target.stored else None,
                    str(p.watermark),
                    _trigger(p),
                    p.path,
                    message,
                    *self._metrics(s, said, lags),
                    p.max_results or None,
                    p.max_state or None,
                    _targets(said)[1] if notifies else None,
                    _hindmost([lags[topic] for topic in self._topics(s) if topic in lags]),
                    _history_percent(said),
                    sum(stats.get("full_bytes", 0) for stats in _stats_of(said)),
                )
            )
        return table_of(columns.STREAMS, rows)

    def _metrics(
        self, stream: StreamEntry, said: dict[str, str], lags: Mapping[str, _Lag]
    ) -> tuple[int, int, int, int, int, int, str | None]:
        """Return rows in and out, late and failed, bytes of state, records not worked on yet, the
        newest complaint.
        """
        stats = _stats_of(said)
        rows_in, rows_out, late, failed, size = (sum(s[k] for s in stats) for k in _COUNTED)
        complaint = next((s["error"] for s in stats if s["error"]), None)
        lag = sum(lags[topic].records for topic in self._topics(stream) if topic in lags)
        return rows_in, rows_out, late, failed, size, lag, complaint

    def _topics(self, stream: StreamEntry) -> list[str]:
        """Return the topics whose records are worked on for a stream."""
        topics = [*self._viewer.whole().source_topics(stream.plan)]
        return [*topics, names.EXCHANGE] if stream.plan.path == "exchange" else topics

    def _lags(self, streams: Sequence[StreamEntry]) -> dict[str, _Lag]:
        """Return which records of each topic of the streams are not worked on yet."""
        topics = list({topic for stream in streams for topic in self._topics(stream)})
        if not topics:
            return {}
        keys = [names.query_heartbeat(t) for t in topics]
        beats = ask(lambda: self._viewer.redis.mget(keys))
        told = zip(topics, beats, strict=True)
        return {topic: _Lag.of(topic, json.loads(beat)) for topic, beat in told if beat is not None}

    def tasks(self) -> pa.Table:
        """Return what each task of each stream says of it."""
        rows: list[tuple[Any, ...]] = []
        for s in self._viewer.catalog.streams():
            said = self._progress(s)
            rows += [
                _task(s, field, value, said)
                for field, value in sorted(said.items())
                if ":" in field and not field.startswith(names.STATS)
            ]
        return table_of(columns.TASKS, rows)

    def _status(self, stream: StreamEntry, said: dict[str, str], *, safe: bool) -> tuple[str, str]:
        """Return the status of a stream, and what there is to say about it.

        Args:
            said: by its readers.
            safe: the mesh runs in safe mode.
        """
        failed = [
            f"{k.removeprefix(names.FAILED)}: {v}"
            for k, v in sorted(said.items())
            if k.startswith(names.FAILED)
        ]
        if failed:
            return "failed", "; ".join(failed)
        if stream.status != "running":
            return stream.status, stream.reason
        if held := said.get(names.HELD):
            return "paused", held
        if held := said.get(names.QUOTA):
            return "throttled", held
        if safe:
            return "stopped", "safe mode: DROP what must not run, then start without --safe"
        return self._readiness(stream, said)

    def _readiness(self, stream: StreamEntry, said: dict[str, str]) -> tuple[str, str]:
        """Return the status of a stream that nothing stops: it starts up, or is ready."""
        percent = _history_percent(said)
        if percent is not None:
            return "init", f"history {percent} %"
        wanted = live_fields(self._viewer.whole(), stream)
        live = len(wanted & said.keys())
        if live < len(wanted):
            return "init", f"live in {live} of {len(wanted)} partitions"
        return "ready", _targets(said)[0]

    def _is_safe(self) -> bool:
        return bool(ask(lambda: self._viewer.redis.exists(names.safe_mode())))

    def _progress(self, stream: StreamEntry) -> dict[str, str]:
        return progress(self._viewer.redis, stream)


def _stats_of(said: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what each processor of a stream has counted."""
    return [json.loads(v) for f, v in said.items() if f.startswith(names.STATS)]


def _history_percent(said: Mapping[str, str]) -> int | None:
    """Return how much of a stream's history is filled where that is slowest; None: nowhere is it
    being filled.
    """
    return min((int(v) for f, v in said.items() if f.startswith(names.FILLING)), default=None)


def _hindmost(lags: Sequence[_Lag]) -> str | None:
    """Return the partition, of those that a stream reads, in which most records wait."""
    worst = max(lags, key=lambda lag: lag.records, default=None)
    return worst.partition if worst is not None and worst.records else None


def _targets(said: dict[str, str]) -> tuple[str, int]:
    """Return which targets of NOTIFY are down and why, and how many events wait for targets."""
    told = [json.loads(v) for f, v in sorted(said.items()) if f.startswith(names.TARGETS)]
    now = time.time()
    told = [t for t in told if now - t["at"] < _TOLD_SECONDS]
    waiting = sum(t["waiting"] for t in told)
    down = list(dict.fromkeys(why for t in told for why in t["down"]))
    return "; ".join([*down, f"{waiting} events wait"] if down else []), waiting


def _trigger(plan: StreamPlan) -> str:
    kind = plan.trigger.kind.upper()
    return f"{kind} {plan.trigger.every}" if plan.trigger.every else kind


def _task(stream: StreamEntry, field: str, value: str, said: dict[str, str]) -> tuple[Any, ...]:
    """Return the row of one task out of all that is said of its stream."""
    filling = field.startswith(names.FILLING)
    task = field.removeprefix(names.FILLING)
    live = value.isdigit() and not filling
    level = "exchange" if task.startswith(names.EXCHANGE) else "scan"
    stats = json.loads(said.get(f"{names.STATS}{task.removeprefix(names.FAILED)}", "{}"))
    note = f"history {value} %" if filling else value
    return (
        stream.name,
        stream.database,
        stream.id,
        task,
        level,
        _task_status(stream, field, said),
        int(value) if live else None,
        None if live else note,
        *(stats.get(name, 0) for name in _COUNTED),
        stats.get("error") or None,
        int(value) if filling else None,
    )


def _task_status(stream: StreamEntry, field: str, said: dict[str, str]) -> str:
    if field.startswith(names.FAILED) or f"{names.FAILED}{field}" in said:
        return "failed"
    if field.startswith(names.FILLING):
        return "init"
    return "ready" if stream.status == "running" else stream.status
