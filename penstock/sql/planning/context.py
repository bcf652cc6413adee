"""What the steps of planning one statement share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from sqlglot import exp

from penstock.sql.compile import Compiled, Functions, compile_expression, nothing
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.view import TableDef
from penstock.sql.relational import (
    Output,
    QueryScope,
    StreamSelect,
    StreamSource,
    TableColumns,
    bind_stream,
)
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from penstock.udf import UserFunction


class PlanningContext:
    """A statement, its source and its zone. `relation` is the source as the binder is given it,
    which calls it by the first of *names*.
    """

    def __init__(
        self,
        statement: CreateStream,
        source: TableDef,
        names: tuple[str, ...],
        timezone: str,
        functions: Functions = nothing,
    ) -> None:
        self._functions = functions
        #: user-defined functions met, by name
        self.used: dict[str, UserFunction] = {}
        self.statement = statement
        self.source = source
        self.timezone = timezone
        self.relation = StreamSource(names[0], _columns_of(source), names[1:])

    def function(self, name: str) -> UserFunction | None:
        """Return the user-defined function *name*, which the plan then has to hold."""
        found = self._functions(name)
        if found is not None:
            self.used[found.name.lower()] = found
        return found

    def bind(self, select: exp.Select) -> StreamSelect:
        """Bind the statement's SELECT."""
        source = self.statement.source
        scope = QueryScope(source, lambda _: self.relation.table, self.timezone, self.function)
        return bind_stream(select, scope, self.relation)

    def compile(self, node: exp.Expr, columns: Mapping[str, ColumnType]) -> Compiled:
        """Compile what is not over the source's columns, but over *columns*."""
        return compile_expression(
            node,
            columns,
            precision=self.source.precision,
            timezone=self.timezone,
            source=self.statement.source,
            functions=self.function,
        )

    def refuse(
        self, at: exp.Expr | int | None, message: str, *, code: str, hint: str = ""
    ) -> NoReturn:
        """Raise an error that points at *at*."""
        raise self.statement.error(message, at, code=code, hint=hint)

    def refuse_query(self, at: exp.Expr | int | None, what: str, hint: str) -> NoReturn:
        """Refuse a query that no stream can compute."""
        refuse(self.statement, "E_UNSUPPORTED_QUERY", at, what=what, hint=hint)


def _columns_of(source: TableDef) -> TableColumns:
    columns = (*source.columns, *source.tags)
    return TableColumns(
        tuple(Output(c.name, c.type, source.precision) for c in columns),
        source.precision,
        database=source.database,
        tags=frozenset(t.name.lower() for t in source.tags),
    )
