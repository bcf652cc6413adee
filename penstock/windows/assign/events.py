"""Notifications of windows: what opened, closed or was taken back in one write, as the messages'
event objects.

Events of a write are ordered by window start, OPEN before CLOSE before INVALIDATION. `windowId` is
a hash of the partition's id and the window's start, so OPEN and CLOSE of one window share it, also
over a restart. Refuses to number messages or to know who listens: the notifier does both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import polars as pl

from penstock.sql.plan import TICKS_PER_SECOND, StreamPlan
from penstock.windows.groups.groups import Groups

_TYPES = {
    "interval": "Time",
    "session": "Session",
    "state": "State",
    "event": "Event",
    "count": "Count",
}
_RANK = {"WINDOW_OPEN": 0, "WINDOW_CLOSE": 1, "WINDOW_INVALIDATION": 2}


def window_id(group: int, start: int) -> str:
    """Decimal 64-bit id of the window of partition *group* that starts at *start*."""
    digest = hashlib.blake2b(
        f"{group}:{start}".encode(), digest_size=8, person=b"penstock-window"
    ).digest()
    return str(int.from_bytes(digest, "big"))


#: (number of the write, window start, rank of the type, group id): what events of one call are
#: sorted by
Order = tuple[int, int, int, int]


@dataclass(frozen=True)
class Stamp:
    """Which write of the call caused a change, and its append time (ticks); `own` where partitions
    differ.
    """

    step: int
    now: int
    own: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def of(self, group: int) -> tuple[int, int]:
        """Write and append time for one partition."""
        return self.own.get(group, (self.step, self.now))


class Events:
    """Makes the events of one plan; nothing when it has no NOTIFY."""

    def __init__(self, plan: StreamPlan, groups: Groups) -> None:
        self.plan = plan
        self.groups = groups
        self.notify = plan.notify
        self.kind = plan.window.kind if plan.window is not None else ""
        self.session = self.kind == "session"
        #: whether a group's results have a child table
        self.stored = plan.target.stored

    def wants(self, kind: str) -> bool:
        """Whether events of *kind* are sent."""
        return self.notify is not None and (kind == "WINDOW_INVALIDATION" or kind in self.notify.on)

    def make(
        self,
        opened: pl.DataFrame,
        closed: pl.DataFrame,
        results: pl.DataFrame | None,
        removed: pl.DataFrame,
        stamp: Stamp,
    ) -> list[tuple[Order, dict[str, Any]]]:
        """Events of one or several writes, each with its place among those of the call.

        Args:
            opened, closed, removed: windows; those of STATE_WINDOW with `_before` and `_after`, the
                neighbours' states.
            results: the result rows of *closed*, line by line.
            stamp: the writes that caused it.
        """
        numbers = pl.concat([f.get_column("_g") for f in (opened, closed, removed)]).unique()
        known = self.groups.targets.of(numbers.to_numpy()).select("tbname", "_group")
        about = dict(
            zip(
                numbers.to_list(),
                zip(known.iter_rows(), self._tags(numbers), strict=True),
                strict=True,
            )
        )
        made: list[tuple[Order, dict[str, Any]]] = []
        second = TICKS_PER_SECOND[self.plan.source.precision]

        def base(kind: str, line: dict[str, Any]) -> dict[str, Any]:
            (child, group), tags = about[line["_g"]]
            step, now = stamp.of(line["_g"])
            event: dict[str, Any] = {"tableName": child} if self.stored else {}
            event |= {
                "eventType": kind,
                "eventTime": now * 1000 // second,
                "windowId": window_id(group, line["_wstart"]),
                "windowType": _TYPES[self.kind],
                "groupId": str(group),
                "tags": tags,
                "windowStart": line["_wstart"],
            }
            if kind != "WINDOW_OPEN":
                event["windowEnd"] = line["_wend"] if self.kind == "interval" else line["_stop"]
            made.append(((step, line["_wstart"], _RANK[kind], group), event))
            return event

        if self.wants("WINDOW_OPEN"):
            for line in opened.iter_rows(named=True):
                event = base("WINDOW_OPEN", line)
                if self.kind == "state":
                    event |= {"prevState": line["_before"], "curState": line["_state"]}
                if self.kind == "event":
                    event["triggerCondition"] = {
                        "conditionIndex": 0,
                        "fieldValue": line.get("_opened") or {},
                    }
        if self.wants("WINDOW_CLOSE") and results is not None:
            for line, result in zip(
                closed.iter_rows(named=True), self._results(results), strict=True
            ):
                event = base("WINDOW_CLOSE", line)
                if self.kind == "state":
                    event |= {"curState": line["_state"], "nextState": line["_after"]}
                if self.kind == "event":
                    event["triggerCondition"] = {
                        "conditionIndex": 1,
                        "fieldValue": line.get("_closed_by") or {},
                    }
                event["result"] = result
        if self.wants("WINDOW_INVALIDATION"):
            for line in removed.iter_rows(named=True):
                base("WINDOW_INVALIDATION", line)
        return made

    def _tags(self, numbers: pl.Series) -> Iterator[dict[str, Any]]:
        """The keys of PARTITION BY of each group, under their own names."""
        named = [key.alias for key in self.plan.keys]
        values = (
            self.groups.keys_of(numbers.to_numpy()).select(self.groups.columns).iter_rows()
            if named
            else repeat((), len(numbers))
        )
        return (dict(zip(named, line, strict=True)) for line in values)

    def _results(self, rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
        target = self.plan.target
        columns = [
            c.name
            for c, origin in zip(target.columns, target.column_of, strict=True)
            if origin is not None
        ]
        return rows.select(columns).iter_rows(named=True)
