"""Flight SQL, as far as a SELECT needs it: `CommandStatementQuery` becomes a ticket of ours, which
`do_get` answers; so does a prepared statement, with values for its placeholders.

Drivers (ADBC, and by it pandas, polars and DuckDB's users) wrap commands in protobuf's `Any`; the
fields used here are strings of bytes, so this reads and writes those and nothing more. Refused, as
not implemented: every other command. Drivers ask for what a server can do, and go on without.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

_PACKAGE = b"arrow.flight.protocol.sql."
_QUERY = b"CommandStatementQuery"
_PREPARED = b"CommandPreparedStatementQuery"
_CREATE = b"ActionCreatePreparedStatementRequest"
_CREATED = b"ActionCreatePreparedStatementResult"
#: wire types of protobuf
_VARINT = 0
_BYTES = 2


def ticket_of(command: bytes) -> bytes:
    """The ticket of a `CommandStatementQuery`, or of a prepared statement: its handle.

    Raises:
        NotImplementedError: it is another command.
        ValueError: it is no command of Flight SQL.
    """
    name, value = _unwrap(command)
    if name == _PREPARED:
        return value
    if name == _QUERY:
        return json.dumps({"sql": value.decode()}).encode()
    raise NotImplementedError(f"{name.decode(errors='replace')} is not served: queries are")


def prepared_query(body: bytes) -> str:
    """The text of an `ActionCreatePreparedStatementRequest`. Raises ValueError."""
    name, value = _unwrap(body)
    if name != _CREATE:
        raise ValueError("it prepares no statement")
    return value.decode()


def created(handle: bytes) -> bytes:
    """An `ActionCreatePreparedStatementResult`."""
    return _field(1, b"type.googleapis.com/" + _PACKAGE + _CREATED) + _field(2, _field(1, handle))


def bound(handle: bytes) -> bytes:
    """A `DoPutPreparedStatementResult`, which nothing wraps."""
    return _field(1, handle)


def _unwrap(message: bytes) -> tuple[bytes, bytes]:
    """The name of a message in `Any`, and its first field. Raises ValueError."""
    wrapped = dict(_fields(message))
    name = wrapped.get(1, b"").rpartition(b"/")[2]
    if not name.startswith(_PACKAGE):
        raise ValueError("it is no command of Flight SQL")
    return name.removeprefix(_PACKAGE), dict(_fields(wrapped.get(2, b""))).get(1, b"")


def _field(number: int, content: bytes) -> bytes:
    """A field that is a string of bytes."""
    size = len(content)
    head = bytearray((number << 3 | _BYTES,))
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + content


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of the fields that are strings of bytes. Raises ValueError."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number = tag >> 3
        kind = tag & 7
        if kind not in (_VARINT, _BYTES):
            raise ValueError("it has a field of a kind that no command has")
        value, at = _varint(message, at)
        if kind == _BYTES:
            if at + value > len(message):
                raise ValueError("it ends within a field")
            yield number, message[at : at + value]
            at += value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and what comes behind it. Raises ValueError."""
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        value = value | (byte & 0x7F) << shift
        at = at + 1
        shift = shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("it ends within a number")
