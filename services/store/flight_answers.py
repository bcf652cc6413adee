"""Answers to statements that come over Flight: by this store, or by a gateway."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from penstock.catalog.parameter_types import stand_ins
from penstock.errors import SqlError
from penstock.rows.parameters import encode
from penstock.sql import statements as st
from penstock.sql.parser import read
from services.store.flight_queries import FlightQueries
from services.store.flight_tickets import TicketRequest
from services.store.gateway_statements import GatewayStatements, kind_of


class FlightAnswers:
    """Any thread. Errors are PenstockErrors."""

    def __init__(self, queries: FlightQueries, gateway: GatewayStatements) -> None:
        self._queries = queries
        self._gateway = gateway

    def rows(self, user: str, authorization: str, request: TicketRequest) -> pa.Table:
        """Return the rows of a statement.

        Args:
            authorization: what *user* came with; a gateway is shown it.
        """
        if kind_of(request) == "store":
            return self._queries.run(user, request)
        with self._queries.running(user):
            return self._gateway.rows(authorization, request)

    def change(self, user: str, authorization: str, request: TicketRequest) -> int:
        """Return how many rows a statement changed; -1: it does not say."""
        with self._queries.running(user):
            return self._gateway.change(authorization, request)

    def describe(self, user: str, authorization: str, request: TicketRequest) -> pa.Schema | None:
        """Return the schema of the rows of a statement; None: it gives none, or which it gives
        depends on its parameters.
        """
        kind = kind_of(request)
        if kind == "changes":
            return None
        statement = _with_placeholders(request.sql)
        try:
            if kind == "store":
                return self._queries.describe(user, request)
            if statement is not None:
                request = replace(request, parameters=encode(stand_ins(statement) or []))
            with self._queries.running(user):
                return self._gateway.rows(authorization, request).schema
        except SqlError:
            if statement is None:
                raise
            return None

    def parameters(self, user: str, request: TicketRequest) -> pa.Schema:
        """Return the names and types of the parameters of a statement."""
        return self._queries.parameters(user, request)


def _with_placeholders(sql: str) -> st.Statement | None:
    """Return the only statement of a text, if it has placeholders."""
    try:
        statements = read(sql)
    except SqlError:
        return None
    one = statements[0] if len(statements) == 1 else None
    return one if one is not None and one.placeholders else None
