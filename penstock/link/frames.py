"""Messages of the link: JSON in text frames; in binary frames a JSON header and an Arrow IPC
stream, compressed where it pays.

Every message names its channel (`ch`); a binary frame is four bytes of header length, the header,
the stream. Pure: bytes in, bytes out. Refused: what is no frame, with one error (`E_LINK_FRAME`).
"""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa

from penstock import tuning
from penstock.errors import RemoteError, SchemaError
from penstock.rows import arrow_reader

#: what this build speaks; a peer that does not is refused before anything is exchanged
VERSION = 1
VERSION_HEADER = "X-Penstock-Link"
#: which mesh a link comes from (`penstock.outbound.reach.identity_of`), if a user has named the
#: host it goes to
ORIGIN_HEADER = "X-Penstock-Origin"
PATH = "/link"
#: largest frame either side accepts
MAX_FRAME = 64 << 20
#: frames of rows that may be under way on a channel before its reader has taken any
CREDIT = 16
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_PLAIN = pa.ipc.IpcWriteOptions()
_LIMITS = arrow_reader.for_body(MAX_FRAME)


class FrameError(RemoteError):
    code = "E_LINK_FRAME"


def pack(header: dict[str, Any], rows: pa.Table) -> bytes:
    """A binary frame."""
    head = json.dumps(header, separators=(",", ":")).encode()
    plain = rows.nbytes < tuning.FRAME_BYTES_SENT_PLAIN
    sink = io.BytesIO()
    sink.write(len(head).to_bytes(4, "little"))
    sink.write(head)
    with pa.ipc.new_stream(sink, rows.schema, options=_PLAIN if plain else _COMPRESSED) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def split(frame: str | bytes) -> tuple[dict[str, Any], memoryview | None]:
    """Header of a frame, and the bytes of its rows; a text frame has none. Raises FrameError."""
    try:
        if isinstance(frame, str):
            header = json.loads(frame)
            body = None
        else:
            view = memoryview(frame)
            size = int.from_bytes(view[:4], "little")
            header = json.loads(bytes(view[4 : 4 + size]))
            body = view[4 + size :]
        if not isinstance(header, dict):
            raise ValueError("the header is no object")
        int(header.get("ch", 0))
    except (ValueError, TypeError, OverflowError, RecursionError) as wrong:
        raise FrameError("this is no frame of the link", detail=_printable(wrong)) from None
    return header, body


def rows_of(body: memoryview) -> pa.Table:
    """Rows of a frame, checked. Raises FrameError."""
    try:
        return arrow_reader.read(pa.py_buffer(body), _LIMITS)
    except SchemaError as wrong:
        raise FrameError("this is no frame of the link", detail=wrong.detail) from None


def unpack(frame: str | bytes) -> tuple[dict[str, Any], pa.Table | None]:
    """Header and rows of a frame; a text frame has no rows. Raises FrameError."""
    header, body = split(frame)
    return header, None if body is None else rows_of(body)


def _printable(wrong: Exception) -> str:
    return str(wrong).encode(errors="replace").decode()[:200]
