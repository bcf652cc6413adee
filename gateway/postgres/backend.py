"""What a server of PostgreSQL's protocol 3 answers, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from gateway.postgres.pg_types import PgType

PARSED = b"1\0\0\0\4"
BOUND = b"2\0\0\0\4"
CLOSED = b"3\0\0\0\4"
NO_DATA = b"n\0\0\0\4"
EMPTY = b"I\0\0\0\4"
SUSPENDED = b"s\0\0\0\4"
ASK_PASSWORD = b"R\0\0\0\x08\0\0\0\3"
LOGGED_IN = b"R\0\0\0\x08\0\0\0\0"
#: one byte, without a length, to a request for TLS
YES_TLS = b"S"
NO_TLS = b"N"
_NULL = b"\xff\xff\xff\xff"
_LENGTH = struct.Struct("!i")


def message(kind: bytes, body: bytes) -> bytes:
    return kind + _LENGTH.pack(len(body) + 4) + body


def ready(status: str) -> bytes:
    """Say that the next statement may come; *status* is `I`, `T` in a transaction, `E` in one that
    has failed.
    """
    return message(b"Z", status.encode())


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", _text(name) + _text(value))


def key_data(process: int, secret: int) -> bytes:
    """Tell the key by which another connection may end what this one runs."""
    return message(b"K", struct.pack("!iI", process, secret))


def complete(tag: str) -> bytes:
    return message(b"C", _text(tag))


def older_protocol(minor: int, options: Iterable[str]) -> bytes:
    """Say which minor version is spoken, and which options of the client are not known."""
    named = list(options)
    body = struct.pack("!ii", minor, len(named)) + b"".join(map(_text, named))
    return message(b"v", body)


def row_description(columns: Sequence[tuple[str, PgType]], formats: Sequence[int]) -> bytes:
    """Tell the columns of rows, each with its format."""
    parts = [struct.pack("!h", len(columns))]
    for (name, kind), form in zip(columns, formats, strict=True):
        parts.append(_text(name))
        parts.append(struct.pack("!ihihih", 0, 0, kind.oid, kind.size, -1, form))
    return message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def data_rows(columns: Sequence[Sequence[bytes | None]]) -> bytes:
    """Return a message for each row of these columns, all of one length."""
    count = _LENGTH.pack(len(columns))[2:]
    sized = [[_NULL if v is None else _LENGTH.pack(len(v)) + v for v in c] for c in columns]
    bodies = (count + b"".join(row) for row in zip(*sized, strict=True))
    return b"".join(b"D" + _LENGTH.pack(len(body) + 4) + body for body in bodies)


def empty_rows(count: int) -> bytes:
    """Return rows without columns."""
    return message(b"D", b"\0\0") * count


def notices(kind: bytes, fields: Mapping[str, str]) -> bytes:
    """Return an error (`E`) or a notice (`N`)."""
    parts = [code.encode() + _text(value) for code, value in fields.items() if value]
    return message(kind, b"".join(parts) + b"\0")


def _text(value: str) -> bytes:
    return value.encode(errors="backslashreplace").replace(b"\0", b"") + b"\0"
