"""Names of a query bound to its source: in the catalog's spelling, qualifiers checked and dropped,
types asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from sqlglot import exp

from penstock.sql.compile import Compiled, Functions, compile_expression, nothing
from penstock.sql.functions import FORBIDDEN, RANDOM
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.view import TableDef
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from penstock.udf import UserFunction

TBNAME = ColumnType("VARCHAR", length=192)
TIMESTAMP = ColumnType("TIMESTAMP")
#: names that stand for the source's time column
TIME_ALIASES = ("_c0", "_rowts", "_tp_time")
WINDOW_NAMES = ("_wstart", "_wend", "_wduration")


class Binder:
    """Binds expressions of one statement; `aliases` are names that stand for other (bound)
    expressions.
    """

    def __init__(
        self,
        statement: CreateStream,
        source: TableDef,
        qualifiers: tuple[str, ...],
        timezone: str,
        functions: Functions = nothing,
    ) -> None:
        self._functions = functions
        #: user-defined functions met, by name
        self.used: dict[str, UserFunction] = {}
        self.statement = statement
        self.source = source
        self.timezone = timezone
        self.qualifiers = {q.lower() for q in qualifiers}
        self.columns: dict[str, ColumnType] = {
            c.name: c.type for c in (*source.columns, *source.tags)
        }
        self.columns["tbname"] = TBNAME
        self._spelled = {name.lower(): name for name in self.columns}
        self.aliases: dict[str, exp.Expr] = {}

    def column_name(self, node: exp.Column) -> str | None:
        """The source's spelling of a column, or None when it has no such column."""
        self._check_qualifier(node)
        name = node.name.lower()
        if name in self._spelled:
            return self._spelled[name]
        return self.source.columns[0].name if name in TIME_ALIASES else None

    def _check_qualifier(self, node: exp.Column) -> None:
        table = node.table
        if table and table.lower() not in self.qualifiers:
            raise self.statement.error(
                f"{table} is not in FROM",
                node,
                code="E_UNKNOWN_COLUMN",
                hint=f"the source here is {self.source.shown}",
            )

    def bind(self, node: exp.Expr) -> exp.Expr:
        """A copy of *node* with names as the source spells them; unknown ones are left for the
        compiler to refuse.
        """
        return node.copy().transform(self._bound, copy=False)

    def _bound(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Anonymous):
            self.check_function(node)
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return node
        name = self.column_name(node)
        if name is None and node.name.lower() in self.aliases and not node.table:
            return self.aliases[node.name.lower()].copy()
        if name is None and node.name.lower() in WINDOW_NAMES:
            name = node.name.lower()
        if name is None:
            return node
        bound = exp.Column(this=exp.Identifier(this=name, quoted=False))
        bound.meta.update(node.meta)
        return bound

    def check_function(self, node: exp.Anonymous) -> None:
        """Refuse the functions that no stream may use."""
        name = str(node.this).lower()
        if name in FORBIDDEN:
            why, instead = FORBIDDEN[name]
            refuse(
                self.statement, "E_FORBIDDEN_FUNC", node, function=name, why=why, instead=instead
            )
        if name in RANDOM:
            refuse(
                self.statement,
                "E_FORBIDDEN_FUNC",
                node,
                function=name,
                why="each run would give another result",
                instead="crc32(…) of something that differs from row to row",
            )

    def compile(self, bound: exp.Expr, columns: Mapping[str, ColumnType] | None = None) -> Compiled:
        """Compile over the source's columns, or over *columns*."""
        known = self.columns if columns is None else columns
        return compile_expression(
            bound,
            known,
            precision=self.source.precision,
            timezone=self.timezone,
            source=self.statement.source,
            functions=self.function,
        )

    def refuse_query(self, at: exp.Expr | int | None, what: str, hint: str) -> NoReturn:
        """Refuse a query that no stream can compute."""
        refuse(self.statement, "E_UNSUPPORTED_QUERY", at, what=what, hint=hint)

    def function(self, name: str) -> UserFunction | None:
        """The user-defined function *name*, which the plan then has to hold."""
        found = self._functions(name)
        if found is not None:
            self.used[found.name.lower()] = found
        return found
