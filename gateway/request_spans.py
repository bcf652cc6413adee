"""The span of a request, and the trace that its writes go on with.

A request that opens a WebSocket has no span: what comes over it does, each write for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar

from aiohttp import web

from penstock.runtime import traces
from penstock.runtime.traces import SpanContext
from penstock.telemetry.span import Span, SpanKind
from penstock.telemetry.tracer import Tracer

#: the request that is answered here: its span, or False when it is not sampled; None: none is
_current: ContextVar[Span | bool | None] = ContextVar("request_span", default=None)
_SERVER_ERROR = 500


def opens_socket(request: web.Request) -> bool:
    """Tell a request that asks for a WebSocket."""
    return "Upgrade" in request.headers


async def answer(
    tracer: Tracer,
    request: web.Request,
    reply: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> web.StreamResponse:
    """Have *reply* answer a request, below a span of its own if it is sampled."""
    span = _begin(tracer, request)
    token = _current.set(span or False)
    status = 0
    try:
        response = await reply(request)
        status = response.status
        return response
    except web.HTTPException as error:
        status = error.status
        raise
    except asyncio.CancelledError:
        if span is not None:
            span.error = "the caller went away"
        raise
    finally:
        _current.reset(token)
        if span is not None:
            _finish(tracer, span, status)


def _begin(tracer: Tracer, request: web.Request) -> Span | None:
    resource = request.match_info.route.resource
    route = resource.canonical if resource is not None else ""
    caller = traces.caller_of(request.headers)
    span = tracer.begin(f"{request.method} {route}".rstrip(), SpanKind.SERVER, caller)
    if span is not None:
        span.attributes["http.request.method"] = request.method
        span.attributes["http.route"] = route
        span.attributes["url.scheme"] = request.scheme
        if name := traces.trace_of(request.headers):
            span.attributes["penstock.trace"] = name
        if database := request.match_info.get("db") or request.query.get("db"):
            span.attributes["db.namespace"] = database
    return span


def _finish(tracer: Tracer, span: Span, status: int) -> None:
    if status:
        span.attributes["http.response.status_code"] = status
    # what is the caller's fault is no error of ours
    failed = not status or status >= _SERVER_ERROR
    tracer.finish(span, (span.error or f"HTTP status {status}") if failed else "")


def carried(headers: Mapping[str, str], tracer: Tracer | None) -> str | None:
    """Return the trace that writes of the present request carry: the caller's name for it, and the
    span to go on from.
    """
    name = traces.trace_of(headers)
    if tracer is None:
        return name
    found = _current.get()
    if isinstance(found, Span):
        return traces.text_of(name, found.context)
    caller = traces.caller_of(headers) if found is None else None
    return traces.text_of(name, caller[0] if caller is not None and caller[1] else None)


def parent() -> SpanContext | bool | None:
    """Return the span that a write stands below; False: the write is not sampled; None: it begins a
    trace of its own.
    """
    context = traces.context_of(traces.current())
    if context is not None:
        return context
    return None if _current.get() is None else False


def note_rows(database: str, rows: int) -> None:
    """Note in the span of the present request what it writes."""
    if isinstance(span := _current.get(), Span):
        span.attributes["db.namespace"] = database
        before = span.attributes.get("penstock.rows", 0)
        span.attributes["penstock.rows"] = rows + (before if isinstance(before, int) else 0)
