"""Actions of prepared statements, in both forms that clients have: one table after another
(`init`, `prepare`, `set_table_name`, `set_tags`, `bind`, …), and all at once (`stmt2_…`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gateway import answers
from gateway.layout import RowLayout
from gateway.wires.tdengine import block_reader, bound_tables, types
from gateway.wires.tdengine.bound_tables import BoundTable
from gateway.wires.tdengine.frames import ActionRequest, Reply, versioned
from gateway.wires.tdengine.open_statements import OpenStatement, OpenStatements
from gateway.wires.tdengine.prepared import (
    BindField,
    by_child,
    fields_of,
    prepare,
    quote_table,
    split_table,
    statements_of,
)
from gateway.wires.tdengine.queries import QueryActions
from gateway.wires.tdengine.session import WireSession
from penstock import tuning
from penstock.errors import SchemaError
from penstock.sql.plan import Column

#: user, database and table → its layout. Raises PenstockError: there is none, or it is not theirs
Locate = Callable[[str, str, str], Awaitable[RowLayout]]
_BIND_TYPES = {"column": 1, "tag": 2, "tbname": 4}
_NAME_BYTES = 271
_SCALARS = (bool, int, float, str)


class StatementActions:
    """Those of one connection."""

    def __init__(self, session: WireSession, queries: QueryActions, locate: Locate) -> None:
        self._session = session
        self._queries = queries
        self._locate = locate
        self._open = OpenStatements()

    def handlers(self) -> Mapping[str, Any]:
        return {
            "init": self._init,
            "prepare": self._prepare,
            "set_table_name": self._set_table_name,
            "set_tags": self._set_tags,
            "bind": self._bind,
            "add_batch": self._add_batch,
            "exec": self._run,
            "close": self._close,
            "use_result": self._use_result,
            "get_col_fields": self._tell_columns,
            "get_tag_fields": self._tell_tags,
            "stmt_num_params": self._count_parameters,
            "stmt2_init": self._init,
            "stmt2_prepare": self._prepare_2,
            "stmt2_bind": self._bind_2,
            "stmt2_exec": self._run,
            "stmt2_result": self._use_result,
            "stmt2_close": self._close_2,
        }

    def _find(self, request: ActionRequest) -> OpenStatement:
        return self._open.find(request.integer("stmt_id"))

    async def _init(self, request: ActionRequest) -> Reply:
        return request.answer(stmt_id=self._open.add().number)

    async def _close(self, request: ActionRequest) -> Reply:
        """Close a statement; there is no answer."""
        self._open.close(request.integer("stmt_id"))
        return None

    async def _close_2(self, request: ActionRequest) -> Reply:
        number = self._find(request).number
        self._open.close(number)
        return request.answer(stmt_id=number)

    # ---------------------------------------------------------------- what it is

    async def _prepare(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        statement.reset(prepare(request.text("sql")))
        return request.answer(stmt_id=statement.number, is_insert=statement.text().is_insert)

    async def _prepare_2(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        prepared = prepare(request.text("sql"))
        statement.reset(prepared)
        told: dict[str, Any] = {"fields": None, "fields_count": prepared.holders}
        if prepared.part is not None and request.args.get("get_fields") is True:
            fields, layout = await self._fields(statement)
            told = {"fields": [_all_of(f, layout) for f in fields], "fields_count": len(fields)}
        return request.answer(stmt_id=statement.number, is_insert=prepared.is_insert, **told)

    async def _fields(self, statement: OpenStatement) -> tuple[list[BindField], RowLayout]:
        """Return what the placeholders of an INSERT stand for, and the shape of its table. Raises
        PenstockError.
        """
        prepared = statement.text()
        part = prepared.part
        if part is None:
            raise SchemaError(
                "the statement is no INSERT", code="E_BODY", hint="get no fields of it"
            )
        table = part.stable or part.table
        database, name = table.database, table.name
        if part.stable is None and prepared.table is None:
            if statement.name is None:
                raise SchemaError(
                    "the table's name is not bound",
                    code="E_BODY",
                    hint="set_table_name comes first, or write INSERT INTO ? USING stable …",
                )
            database, name = split_table(statement.name)
        home = database or self._session.require_database()
        layout = await self._locate(self._session.user, home, name)
        fields = fields_of(part, layout, table_bound=prepared.table is None)
        return fields, layout

    async def _tell_columns(self, request: ActionRequest) -> Reply:
        return await self._tell_fields(request, "column")

    async def _tell_tags(self, request: ActionRequest) -> Reply:
        return await self._tell_fields(request, "tag")

    async def _tell_fields(self, request: ActionRequest, kind: str) -> Reply:
        statement = self._find(request)
        fields, layout = await self._fields(statement)
        told = [_of_column(f.column, layout.precision) for f in fields if f.kind == kind]
        return request.answer(stmt_id=statement.number, fields=told)

    async def _count_parameters(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        return request.answer(stmt_id=statement.number, num_params=statement.text().holders)

    # ---------------------------------------------------------------- values

    async def _set_table_name(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        name = request.text("name")
        quote_table(name)
        statement.name = name
        statement.tags = []
        return request.answer(stmt_id=statement.number)

    async def _set_tags(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        if request.content is None:
            statement.tags = _scalars(request.items("tags"))
        else:
            columns = await _decode(request.content)
            if any(len(column) != 1 for column in columns):
                raise SchemaError("rows not equal 1", code="E_BODY", hint="tags are one row")
            statement.tags = [column[0] for column in columns]
        return request.answer(stmt_id=statement.number)

    async def _bind(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        if request.content is None:
            columns = [_scalars(column) for column in request.items("columns")]
        else:
            columns = await _decode(request.content)
        bound = BoundTable(statement.name, statement.tags, columns)
        self._open.bind(statement, [bound], request.size)
        return request.answer(stmt_id=statement.number)

    async def _bind_2(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        content = versioned(request.body())[4:]
        if len(content) < tuning.ARROW_BYTES_DECODED_IN_LOOP:
            bound = bound_tables.read_tables(content)
        else:
            bound = await asyncio.to_thread(bound_tables.read_tables, content)
        self._open.bind(statement, bound, request.size)
        return request.answer(stmt_id=statement.number)

    async def _add_batch(self, request: ActionRequest) -> Reply:
        """What was bound is in the batch already."""
        return request.answer(stmt_id=self._find(request).number)

    # ---------------------------------------------------------------- run

    async def _run(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        prepared = statement.text()
        bound = statement.bound
        statement.clear()
        statement.answer = None
        if prepared.part is not None:
            affected, told = await self._insert(statement, bound)
        else:
            affected, told = await self._ask(statement, bound)
        return request.answer(stmt_id=statement.number, affected=affected) | {"message": told}

    async def _insert(self, statement: OpenStatement, bound: list[BoundTable]) -> tuple[int, str]:
        """Write all that is bound; return how many rows, and notices. What was written before an
        error stays.
        """
        if statement.name is None and bound:
            statement.name = bound[0].name
        if statement.fields is None:
            statement.fields, _ = await self._fields(statement)
        prepared, kinds = by_child(statement.text(), statement.fields)
        affected = 0
        notices: list[str] = []
        for text, parameters in statements_of(prepared, kinds, bound):
            answer, told = await self._session.run(text, parameters)
            affected += answer.rows if isinstance(answer, answers.Affected) else 0
            notices.extend([told] if told else [])
        return affected, "; ".join(dict.fromkeys(notices))

    async def _ask(self, statement: OpenStatement, bound: list[BoundTable]) -> tuple[int, str]:
        """Run a statement that is no INSERT, once; keep what it gives."""
        columns = bound[-1].columns if bound else []
        if any(len(column) != 1 for column in columns):
            raise SchemaError(
                "a query takes one row of values", code="E_PARAMETER", hint="run it once for each"
            )
        values = [column[0] for column in columns]
        answer, told = await self._session.run(statement.text().sql, values or None)
        if isinstance(answer, answers.Affected):
            return answer.rows, told
        statement.answer = answer
        return 0, told

    async def _use_result(self, request: ActionRequest) -> Reply:
        statement = self._find(request)
        if statement.answer is None:
            raise SchemaError("the statement has no result", code="E_BODY", hint="run it first")
        number, fields = await self._queries.keep(statement.answer)
        statement.answer = None
        return request.answer(stmt_id=statement.number, id=number, result_id=number, **fields)


async def _decode(content: memoryview) -> list[list[Any]]:
    if len(content) < tuning.ARROW_BYTES_DECODED_IN_LOOP:
        return block_reader.decode(content)
    return await asyncio.to_thread(block_reader.decode, content)


def _scalars(values: object) -> list[Any]:
    """Return values of JSON. Raises SchemaError: they are no list, or one is no single value."""
    if not isinstance(values, list):
        raise SchemaError("values are bound as lists", code="E_BODY")
    if not all(value is None or isinstance(value, _SCALARS) for value in values):
        raise SchemaError("a value is a list or an object", code="E_PARAMETER")
    return values


def _of_column(column: Column, precision: str) -> dict[str, Any]:
    """Return what tells a client of one column or tag."""
    kind = column.type
    size = kind.bytes()
    code = types.code_of(str(kind) if kind.kind == "DECIMAL" else kind.kind, size)
    if code == types.NCHAR:
        size = size * 4 + 2
    elif code in types.SIZED:
        size += 2
    return {
        "name": column.name,
        "field_type": code,
        # TDengine's JDBC driver takes that of all times from the first column, whatever it holds
        "precision": kind.precision or types.PRECISIONS[precision],
        "scale": kind.scale,
        "bytes": size,
    }


def _all_of(field: BindField, layout: RowLayout) -> dict[str, Any]:
    """Return what tells a client of one placeholder."""
    told = _of_column(field.column, layout.precision)
    if field.kind == "tbname":
        told["bytes"] = _NAME_BYTES
    return told | {"bind_type": _BIND_TYPES[field.kind]}
