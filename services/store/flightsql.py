"""Flight SQL, as far as a SELECT needs it: `CommandStatementQuery` becomes a ticket of ours, which
`do_get` answers.

Drivers (ADBC, and by it pandas, polars and DuckDB's users) wrap commands in protobuf's `Any`; of
both the fields read here are strings of bytes, so this reads those and nothing more. Refused, as
not implemented: every other command. Drivers ask for prepared statements and for what a server can
do, and go on without.
"""

from __future__ import annotations

from collections.abc import Iterator

_PACKAGE = b"arrow.flight.protocol.sql."
_QUERY = b"CommandStatementQuery"
#: wire types of protobuf
_VARINT = 0
_BYTES = 2


def query_of(command: bytes) -> str:
    """The text of a `CommandStatementQuery`.

    Raises:
        NotImplementedError: it is another command.
        ValueError: it is no command of Flight SQL.
    """
    wrapped = dict(_fields(command))
    kind = wrapped.get(1, b"")
    value = wrapped.get(2, b"")
    name = kind.rpartition(b"/")[2]
    if not name.startswith(_PACKAGE):
        raise ValueError("it is no command of Flight SQL")
    if name != _PACKAGE + _QUERY:
        raise NotImplementedError(
            f"{name.removeprefix(_PACKAGE).decode(errors='replace')} is not served: queries are"
        )
    return dict(_fields(value)).get(1, b"").decode()


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
