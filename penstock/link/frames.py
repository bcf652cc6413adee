"""Messages of the link: JSON in text frames; in binary frames a JSON header and an Arrow IPC stream, compressed where it pays.

Every message names its channel (`ch`); a binary frame is four bytes of header length, the header, the stream. Pure: bytes in, bytes out.
Refused: what is no frame, with one error (`E_LINK_FRAME`).
"""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa

from penstock.errors import RemoteError

#: what this build speaks; a peer that does not is refused before anything is exchanged
VERSION = 1
VERSION_HEADER = "X-Penstock-Link"
PATH = "/link"
#: largest frame either side accepts
MAX_FRAME = 64 << 20
#: frames of rows that may be under way on a channel before its reader has taken any
CREDIT = 16
#: below this many bytes compression costs more than it saves
_SMALL = 2048
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_PLAIN = pa.ipc.IpcWriteOptions()


class FrameError(RemoteError):
    code = "E_LINK_FRAME"


def pack(header: dict[str, Any], rows: pa.Table) -> bytes:
    """A binary frame."""
    head = json.dumps(header, separators=(",", ":")).encode()
    sink = io.BytesIO()
    sink.write(len(head).to_bytes(4, "little"))
    sink.write(head)
    with pa.ipc.new_stream(sink, rows.schema, options=_PLAIN if rows.nbytes < _SMALL else _COMPRESSED) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def unpack(frame: str | bytes) -> tuple[dict[str, Any], pa.Table | None]:
    """Header and rows of a frame; a text frame has no rows. Raises FrameError."""
    try:
        if isinstance(frame, str):
            header, rows = json.loads(frame), None
        else:
            view = memoryview(frame)
            size = int.from_bytes(view[:4], "little")
            header = json.loads(bytes(view[4 : 4 + size]))
            rows = pa.ipc.open_stream(pa.py_buffer(view[4 + size :])).read_all()
        if not isinstance(header, dict):
            raise ValueError("the header is no object")
    except (ValueError, UnicodeDecodeError, pa.ArrowException, OSError) as wrong:
        raise FrameError("this is no frame of the link", detail=str(wrong)[:200]) from None
    return header, rows
