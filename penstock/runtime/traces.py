"""Trace ids: how somebody who writes rows finds them again in what every service logs, in results
and in notifications.

A client gives one with a request; the gateway writes it into the records (their field `trace`),
stream jobs take it over into results and events, the notifier into messages. Where services send
spans (`penstock.telemetry`) and a write is sampled, the span to go on from stands behind it.
Nothing is done for rows without either. Owns their form in requests, records and logs.

What is carried is a text: `NAME`, `NAME/TRACESPAN` or `/TRACESPAN`. The name is what the client
gave; without one, nobody asked for lines in the log.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import polars as pl
import structlog

#: W3C Trace Context: version, trace id, parent id, flags, of which the lowest bit says that the
#: caller keeps this trace
_PARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f][13579bdf](?:-|\Z)")
#: the same, with the parent's span and whether the caller keeps this trace
_CALLER = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]([0-9a-f])(?:-|\Z)"
)
_CARRIED = re.compile(r"([A-Za-z0-9._-]{0,64})/([0-9a-f]{32})([0-9a-f]{16})\Z")
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_MARK = "trace:"
#: a stamp whose trace has a name, for columns of stamps
_NAMED = f"{_MARK}[A-Za-z0-9._-]"
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


@dataclass(frozen=True, slots=True)
class SpanContext:
    """Which span others go on from: hexadecimal digits, 32 and 16."""

    trace_id: str
    span_id: str

    @property
    def traceparent(self) -> str:
        """The header by which W3C Trace Context passes a sampled span on."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def derived_span(self, *parts: object) -> str:
        """Return the id of a span below this one that is the same for the same *parts*: what is
        computed again after a crash is the same bytes, and the same span.
        """
        text = "/".join((self.span_id, *map(str, parts)))
        return hashlib.blake2b(text.encode(), digest_size=8, person=b"penstock-span").hexdigest()


def caller_of(headers: Mapping[str, str]) -> tuple[SpanContext, bool] | None:
    """Return the caller's span, and whether it keeps the trace; None when it names none."""
    found = _CALLER.match(headers.get("traceparent", ""))
    if found is None:
        return None
    return SpanContext(found[1], found[2]), bool(int(found[3], 16) & 1)


def text_of(name: str | None, context: SpanContext | None) -> str | None:
    """Return the text that is carried: *name* is what the client gave, *context* a sampled span."""
    if context is None:
        return name
    return f"{name or ''}/{context.trace_id}{context.span_id}"


def name_of(trace: str | None) -> str:
    """Return what the client called it, which logs are to show; empty when it gave no name."""
    return "" if trace is None else trace.partition("/")[0]


def context_of(trace: str | None) -> SpanContext | None:
    """Return the span to go on from, or None when the trace is not sampled."""
    found = None if trace is None else _CARRIED.match(trace)
    return None if found is None else SpanContext(found[2], found[3])


def shown(trace: str) -> str:
    """Return the id for others to see: the client's name, else the id of the trace."""
    name = name_of(trace)
    context = None if name else context_of(trace)
    return name if context is None else context.trace_id


def chosen(carried: Iterable[str | None]) -> str | None:
    """Return the one that a record has, of all whose rows are in it, oldest first: the newest with
    a name, else the newest.
    """
    found: str | None = None
    for trace in carried:
        if trace is not None and (name_of(trace) or not name_of(found)):
            found = trace
    return found


@contextmanager
def bound(trace: str) -> Iterator[None]:
    """Do what is inside for *trace*: it is `current`, and its name is in every log line."""
    token = _current.set(trace)
    name = name_of(trace)
    try:
        with structlog.contextvars.bound_contextvars(**({"trace": name} if name else {})):
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
    """Place and trace of the last record that has one with a name, else of the last that has
    one.
    """
    if stamps.null_count() == stamps.len():
        return None
    for likely in (stamps.str.contains(_NAMED), stamps.str.contains(_MARK, literal=True)):
        # mostly the first is one; an idempotency key may look like it
        for place in reversed(likely.arg_true()):
            if (found := _STAMP.search(stamps[place])) is not None:
                return int(place), found[1]
    return None


def rank(found: tuple[int, str]) -> tuple[bool, int]:
    """Return what of several (place, trace) the largest is to be chosen by, as `newest` does."""
    return bool(name_of(found[1])), found[0]
