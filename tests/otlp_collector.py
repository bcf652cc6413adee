"""A collector of spans over OTLP/HTTP, as far as tests ask: keeps what comes, and answers what it
is told to.
"""

from __future__ import annotations

import gzip
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from penstock.errors import SchemaError
from penstock.protobuf import BYTES, FIXED64, ProtobufReader, signed


@dataclass(frozen=True)
class FoundSpan:
    """A span as the collector has it; `resource` are the attributes of its process."""

    trace: str
    span: str
    parent: str
    name: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    links: list[tuple[str, str]]
    error: str
    code: int
    resource: dict[str, Any]


@dataclass
class OtlpCollector:
    """`answers` are statuses given one after the other, then 200."""

    spans: list[FoundSpan] = field(default_factory=list)
    #: path and headers of each request
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    url: str = ""

    def of_trace(self, trace: str) -> list[FoundSpan]:
        """The spans of one trace in the order in which they began."""
        found = {s.span: s for s in list(self.spans) if s.trace == trace}
        return sorted(found.values(), key=lambda s: s.start)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        self.requests.append((path, headers))
        status = self.answers.pop(0) if self.answers else 200
        if status == 200:
            packed = headers.get("content-encoding") == "gzip"
            self.spans += spans_in(gzip.decompress(body) if packed else body)
        return status


@contextmanager
def collecting() -> Iterator[OtlpCollector]:
    """A collector on a free port."""
    made = OtlpCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(made.take(self.path, headers, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# -------------------------------------------------------------------------------- protobuf


class _Message:
    """Fields of a message by number, each a list of values: numbers or bytes."""

    def __init__(self, data: bytes) -> None:
        self.fields: dict[int, list[Any]] = {}
        reader = ProtobufReader(data, 1 << 20, _broken, _broken)
        for number, wire, low, high in reader.fields(0, len(data)):
            value: Any = low
            if wire == BYTES:
                value = data[low:high]
            elif wire == FIXED64:
                (value,) = struct.unpack("<Q", data[low:high])
            self.fields.setdefault(number, []).append(value)

    def all(self, number: int) -> list[_Message]:
        return [_Message(each) for each in self.fields.get(number, [])]

    def bytes(self, number: int) -> bytes:
        (found,) = self.fields.get(number, [b""])
        return bytes(found)

    def text(self, number: int) -> str:
        return self.bytes(number).decode()

    def number(self, number: int) -> int:
        (found,) = self.fields.get(number, [0])
        return int(found)


def _broken(why: str) -> SchemaError:
    return SchemaError(why, code="E_BODY")


def spans_in(body: bytes) -> list[FoundSpan]:
    """The spans of an ExportTraceServiceRequest."""
    found = []
    for about in _Message(body).all(1):
        (resource,) = about.all(1) or [_Message(b"")]
        for scope in about.all(2):
            found += [_span(span, _attributes(resource, 1)) for span in scope.all(2)]
    return found


def _span(span: _Message, resource: dict[str, Any]) -> FoundSpan:
    (status,) = span.all(15) or [_Message(b"")]
    return FoundSpan(
        span.bytes(1).hex(),
        span.bytes(2).hex(),
        span.bytes(4).hex(),
        span.text(5),
        span.number(6),
        span.number(7),
        span.number(8),
        _attributes(span, 9),
        [(link.bytes(1).hex(), link.bytes(2).hex()) for link in span.all(13)],
        status.text(2),
        status.number(3),
        resource,
    )


def _attributes(message: _Message, number: int) -> dict[str, Any]:
    return {each.text(1): _value(each.all(2)[0]) for each in message.all(number)}


def _value(value: _Message) -> Any:
    ((number, (found,)),) = value.fields.items()
    if number == 1:
        return found.decode()
    if number == 2:
        return bool(found)
    if number == 3:
        return signed(found)
    if number == 4:
        return struct.unpack("<d", struct.pack("<Q", found))[0]
    return [_value(each) for each in _Message(found).all(1)]
