"""Trace ids: how somebody who writes rows finds them again in what every service logs, in results
and in notifications.

A client gives one with a request; the gateway writes it into the records (their field `trace`),
stream jobs take it over into results and events, the notifier into messages. Nothing is done for
rows without one. Owns its form in requests, records and logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import polars as pl
import structlog

#: W3C Trace Context: version, trace id, parent id, flags, of which the lowest bit says that the
#: caller keeps this trace
_PARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f][13579bdf](?:-|\Z)")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_MARK = "trace:"
_STAMP = re.compile(rf"(?:\A|\n){_MARK}(.+)\Z")
#: of a column that rows have on their way through the exchange
COLUMN = "_trace"
_current: ContextVar[str | None] = ContextVar("trace", default=None)


def trace_of(headers: Mapping[str, str]) -> str | None:
    """Return the trace id of a request: that of a sampled `traceparent`, else `X-Trace-Id`. What
    cannot be one counts for nothing: the standard asks for that.
    """
    parent = headers.get("traceparent")
    if parent is not None and (found := _PARENT.match(parent)) is not None:
        return found[1]
    own = headers.get("X-Trace-Id")
    return own if own is not None and _ID.match(own) else None


@contextmanager
def bound(trace: str) -> Iterator[None]:
    """Do what is inside for *trace*: it is in every log line, and `current`."""
    token = _current.set(trace)
    try:
        with structlog.contextvars.bound_contextvars(trace=trace):
            yield
    finally:
        _current.reset(token)


def current() -> str | None:
    return _current.get()


def stamp(trace: str | None, before: str = "") -> str | None:
    """The field `trace` of a record, behind what else has to stand there."""
    if trace is None:
        return before or None
    return f"{before}\n{_MARK}{trace}" if before else _MARK + trace


def newest(stamps: pl.Series) -> tuple[int, str] | None:
    """Place and trace id of the last record that has one."""
    if stamps.null_count() == stamps.len():
        return None
    likely = stamps.str.contains(_MARK, literal=True).arg_true()
    for place in reversed(likely):  # mostly the first is one; an idempotency key may look like it
        if (found := _STAMP.search(stamps[place])) is not None:
            return int(place), found[1]
    return None
