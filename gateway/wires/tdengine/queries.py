"""Actions of queries: a statement is run, its rows are fetched block by block, and freed."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from gateway import answers
from gateway.wires.tdengine import block, types
from gateway.wires.tdengine.columns import WireTable, wire_table
from gateway.wires.tdengine.frames import ActionRequest, Reply, versioned
from gateway.wires.tdengine.results import OpenResult, OpenResults
from gateway.wires.tdengine.session import WireSession
from penstock import tuning
from penstock.errors import SchemaError


class QueryActions:
    """Those of one connection."""

    def __init__(self, session: WireSession, results: OpenResults) -> None:
        self._session = session
        self._results = results

    def handlers(self) -> Mapping[str, Any]:
        return {
            "query": self._query,
            "binary_query": self._binary_query,
            "fetch": self._fetch,
            "fetch_block": self._fetch_block,
            "fetch_raw_block": self._fetch_raw_block,
            "free_result": self._free_result,
            "num_fields": self._num_fields,
        }

    async def keep(self, answer: pa.Table) -> tuple[int, dict[str, Any]]:
        """Return the number of a result that is kept, and what tells of its columns."""
        cells = answer.num_rows * answer.num_columns
        if cells < tuning.CELLS_RENDERED_IN_LOOP:
            table = wire_table(answer)
        else:
            table = await asyncio.to_thread(wire_table, answer)
        return self._results.add(self._session.user, table), _fields(table)

    async def _query(self, request: ActionRequest) -> Reply:
        return await self._run(request, request.text("sql"))

    async def _binary_query(self, request: ActionRequest) -> Reply:
        content = versioned(request.body())
        if len(content) < 4:
            raise SchemaError("message length is too short", code="E_BODY")
        (size,) = struct.unpack_from("<I", content)
        text = bytes(content[4 : 4 + size])
        if len(text) < size:
            raise SchemaError(
                "uncompleted message", code="E_BODY", detail=f"{len(text)} of {size} bytes of SQL"
            )
        try:
            return await self._run(request, text.decode())
        except UnicodeDecodeError as wrong:
            raise SchemaError("the SQL is not UTF-8", code="E_BODY", detail=str(wrong)) from None

    async def _run(self, request: ActionRequest, sql: str) -> Reply:
        answer, told = await self._session.run(sql)
        if isinstance(answer, answers.Affected):
            reply = request.answer(
                id=0, is_update=True, affected_rows=answer.rows, **_fields(WireTable((), "ms", 0))
            )
        else:
            number, fields = await self.keep(answer)
            reply = request.answer(id=number, is_update=False, affected_rows=0, **fields)
        return reply | {"message": told}

    async def _fetch(self, request: ActionRequest) -> Reply:
        number = request.integer("id")
        found = self._results.find(number)
        part = found.advance()
        if part is None:
            self._results.free(number)
            return request.answer(id=number, completed=True, lengths=None, rows=0)
        lengths = [column.length for column in found.table.columns]
        return request.answer(id=number, completed=False, lengths=lengths, rows=part[1])

    async def _fetch_block(self, request: ActionRequest) -> Reply:
        number = request.integer("id")
        found = self._results.find(number)
        if found.current is None:
            raise SchemaError("block is nil", code="E_BODY", hint="fetch comes before fetch_block")
        made = await _encode(found, *found.current)
        return struct.pack("<QQ", request.timing, number) + made

    async def _fetch_raw_block(self, request: ActionRequest) -> Reply:
        versioned(request.body())
        number = request.integer("id")
        found = self._results.find(number)
        part = found.advance()
        if part is None:
            self._results.free(number)
            return request.raw_block(number, None)
        return request.raw_block(number, await _encode(found, *part))

    async def _free_result(self, request: ActionRequest) -> Reply:
        """Free a result; there is no answer."""
        self._results.free(request.integer("id"))
        return None

    async def _num_fields(self, request: ActionRequest) -> Reply:
        found = self._results.find(request.integer("result_id"))
        return request.answer(num_fields=len(found.table.columns))


async def _encode(found: OpenResult, start: int, rows: int) -> bytes:
    if rows * len(found.table.columns) < tuning.CELLS_RENDERED_IN_LOOP:
        return block.encode(found.table, start, rows)
    return await asyncio.to_thread(block.encode, found.table, start, rows)


def _fields(table: WireTable) -> dict[str, Any]:
    columns = table.columns
    return {
        "fields_count": len(columns),
        "fields_names": [column.name for column in columns],
        "fields_types": [column.code for column in columns],
        "fields_lengths": [column.length for column in columns],
        "precision": types.PRECISIONS[table.unit],
        "fields_precisions": [column.precision for column in columns],
        "fields_scales": [column.scale for column in columns],
    }
