"""The frame that Confluent's serializers put before a message: a zero byte and the id of its
schema.
"""

from __future__ import annotations

import struct

from penstock.errors import SchemaError

_MAGIC = 0
_PREFIX = struct.Struct(">bI")


def frame_prefix(schema_id: int) -> bytes:
    """Return the bytes that go before a message."""
    return _PREFIX.pack(_MAGIC, schema_id)


def unframe(value: bytes) -> tuple[int, bytes]:
    """Return the id of the schema, and the message behind it. Raises SchemaError."""
    if len(value) < _PREFIX.size or value[0] != _MAGIC:
        raise SchemaError("the message has no schema id before it", code="E_MALFORMED")
    return _PREFIX.unpack_from(value)[1], value[_PREFIX.size :]


def strip_frame(value: bytes) -> bytes:
    """Return JSON without the schema id that Confluent's serializers of JSON Schema put before it.
    No JSON begins with the zero byte of a frame.
    """
    return value[_PREFIX.size :] if value[:1] == b"\0" else value
