"""Statements that a gateway answers: SHOW, `information_schema`, definitions, rows to be written.

They are sent with the credentials of who asks, so a gateway's rights and limits hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pyarrow as pa
from sqlglot import exp

from penstock.client.gateway import JSON, Gateway
from penstock.client.wire import ARROW, to_stream
from penstock.errors import PenstockError, RemoteError, SqlError
from penstock.sql import render
from penstock.sql import statements as st
from penstock.sql.parser import read
from services.store.flight_tickets import TicketRequest

#: who answers a statement: a store; a gateway, with rows and without changing anything; or a
#: gateway that changes something
Kind = Literal["store", "lists", "changes"]
_SCHEMA = "information_schema"
#: statements besides SELECT that change nothing
_LISTS = (
    st.Describe,
    st.Explain,
    st.Show,
    st.ShowCreate,
    st.ShowDistribution,
    st.ShowIndexes,
    st.ShowTableTags,
    st.ShowTags,
)
#: what a statement without rows answers with
_AFFECTED = "affected_rows"


def kind_of(request: TicketRequest) -> Kind:
    """Tell who answers a statement. What cannot be read is a store's, which says why."""
    if request.from_service:
        return "store"
    try:
        statements = read(request.sql)
    except SqlError:
        return "store"
    if len(statements) != 1:
        return "changes" if statements else "store"
    statement = statements[0]
    if isinstance(statement, st.Explain) and isinstance(statement.statement, st.Query):
        statement = statement.statement
    if isinstance(statement, st.Query):
        return "lists" if _is_of_lists(statement.query, request.database) else "store"
    return "lists" if isinstance(statement, _LISTS) else "changes"


def _is_of_lists(query: exp.Query, database: str) -> bool:
    """Tell a query of `information_schema`, of open windows, or of the session: stores have none
    of them.
    """
    tables = list(query.find_all(exp.Table))
    if any((table.db or database).lower() == _SCHEMA for table in tables):
        return True
    if any(select.args.get("open_windows") is not None for select in query.find_all(exp.Select)):
        return True
    return not tables and query.find(exp.Anonymous) is not None


class GatewayStatements:
    """Any thread. Blocks."""

    def __init__(self, url: str, *, timeout: float, ca: Path | None = None) -> None:
        # credentials of users never go through a proxy
        self._gateway = Gateway(url, "", timeout=timeout, ca=ca, direct=True)

    def rows(self, authorization: str, request: TicketRequest) -> pa.Table:
        """Return the answer to a statement; of one that gives no rows, how many it changed. Raises
        PenstockError.
        """
        fields = {
            "sql": request.sql,
            "database": request.database,
            "timezone": request.timezone,
            "parameters": request.parameters,
        }
        body = json.dumps({name: value for name, value in fields.items() if value})
        answer = self._gateway.post(
            "/v1/query", body.encode(), JSON, {"Authorization": authorization, "Accept": ARROW}
        )
        return _read(answer.content)

    def change(self, authorization: str, request: TicketRequest) -> int:
        """Return how many rows a statement changed; -1: it does not say. Raises PenstockError."""
        answer = self.rows(authorization, request)
        if answer.schema.names != [_AFFECTED]:
            return -1
        return int(answer.column(0)[0].as_py())

    def define(self, authorization: str, statement: st.Statement, database: str) -> None:
        """Run a statement that is made here. Raises PenstockError."""
        self.rows(authorization, TicketRequest(render(statement), database))

    def write(self, authorization: str, database: str, table: str, rows: pa.Table) -> int:
        """Write rows; return how many were acked. Raises PenstockError."""
        path = f"/v1/tables/{quote(database, safe='')}/{quote(table, safe='')}/rows"
        answer = self._gateway.post(path, to_stream(rows), ARROW, {"Authorization": authorization})
        return int(_told(answer.json()).get("rows", 0))

    def close(self) -> None:
        self._gateway.close()


def _read(content: bytes) -> pa.Table:
    try:
        return pa.ipc.open_stream(content).read_all()
    except (pa.ArrowException, OSError) as wrong:
        raise _odd(str(wrong)) from None


def _told(answer: object) -> Mapping[str, Any]:
    if isinstance(answer, dict):
        return answer
    raise _odd(type(answer).__name__)


def _odd(detail: str) -> PenstockError:
    return RemoteError("the gateway's answer cannot be read", detail=detail[:200])
