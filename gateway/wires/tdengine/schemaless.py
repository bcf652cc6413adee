"""Action `insert`: points as line protocol, or as OpenTSDB's `put` in lines or JSON, into the
current database. Tables are made and widened as at the other wires of points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.wires import lines, puts
from gateway.wires.influxql.times import EPOCHS
from gateway.wires.point_writer import PointBatch, PointWriter
from gateway.wires.tdengine.frames import ActionRequest, Reply
from gateway.wires.tdengine.session import WireSession
from gateway.wires.text_body import Read, read_text
from penstock.errors import SchemaError

_LINES = 1
#: number of a protocol → how it is read
_READERS: dict[int, Read] = {_LINES: lines.parse, 2: puts.from_lines, 3: puts.from_json}
_MILLISECOND = 10**6


class SchemalessActions:
    """Those of one connection."""

    def __init__(self, session: WireSession, writer: PointWriter) -> None:
        self._session = session
        self._writer = writer

    def handlers(self) -> Mapping[str, Any]:
        return {"insert": self._insert}

    async def _insert(self, request: ActionRequest) -> Reply:
        protocol = request.integer("protocol")
        read = _READERS.get(protocol)
        if read is None:
            raise SchemaError(
                "unknown schemaless protocol",
                code="E_BODY",
                hint="1 is line protocol, 2 OpenTSDB's lines, 3 OpenTSDB's JSON",
            )
        if request.text("table_name_key", ""):
            raise SchemaError(
                "table_name_key is not taken here",
                code="E_BODY",
                hint="leave it out: a child table's name is made from its tags",
            )
        unit = _unit(request) if protocol == _LINES else _MILLISECOND
        database = self._session.require_database()
        user = self._session.user
        self._writer.admit(user, database)
        data = request.text("data").encode()
        points, refused = await read_text(read, data)
        told = await self._writer.write(
            user, database, PointBatch(points, refused, unit, len(data))
        )
        count = len(points)
        reply = request.answer(affected_rows=count, total_rows=count)
        return reply | {"message": "; ".join(told)}


def _unit(request: ActionRequest) -> int:
    """Return nanoseconds of one tick of a line's time. Raises SchemaError."""
    precision = request.text("precision", "") or "ns"
    if precision not in EPOCHS:
        raise SchemaError(
            f"unknown precision {precision[:16]!r}",
            code="E_BODY",
            hint=f"one of {', '.join(EPOCHS)}",
        )
    return EPOCHS[precision]
