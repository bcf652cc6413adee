"""What Penstock writes otherwise than SQLAlchemy's standard SQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy.exc import CompileError
from sqlalchemy.sql import compiler


class PenstockNames(compiler.IdentifierPreparer):
    """Every name in backticks: what is a keyword need not be known here."""

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`", escape_quote="`")

    def _requires_quotes(self, value: str) -> bool:
        return True


class PenstockStatements(compiler.SQLCompiler):
    """Queries and what changes rows."""

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """Return LIMIT and OFFSET; an OFFSET needs a LIMIT."""
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        elif select._offset_clause is not None:
            text += f"\n LIMIT {2**63 - 1}"
        if select._offset_clause is not None:
            text += " OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def visit_update(self, *given: Any, **kw: Any) -> str:
        raise CompileError("Penstock has no UPDATE: INSERT a row with the same time again")

    def visit_now_func(self, *given: Any, **kw: Any) -> str:
        return "now()"


class PenstockDefinitions(compiler.DDLCompiler):
    """CREATE and DROP. A row's key is its time, whatever a table of SQLAlchemy's says of keys."""

    def get_column_specification(self, column: Any, **kw: Any) -> str:
        name = self.preparer.format_column(column)
        kind = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        return f"{name} {kind}"

    def create_table_constraints(
        self, table: Any, _include_foreign_key_constraints: Any = None, **kw: Any
    ) -> str:
        """Leave keys and constraints out; a foreign key is refused, as nothing would hold it."""
        if table.foreign_keys:
            raise CompileError("Penstock has no foreign keys: leave them out")
        return ""

    def visit_create_index(self, create: Any, *given: Any, **kw: Any) -> str:
        """Ask for nothing: rows are in the order of their time, and no other index is kept."""
        return "SELECT 1"

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        return "SELECT 1"

    def visit_create_schema(self, create: Any, **kw: Any) -> str:
        exists = "IF NOT EXISTS " if create.if_not_exists else ""
        return f"CREATE DATABASE {exists}{self.preparer.quote(create.element)}"

    def visit_drop_schema(self, drop: Any, **kw: Any) -> str:
        exists = "IF EXISTS " if drop.if_exists else ""
        return f"DROP DATABASE {exists}{self.preparer.quote(drop.element)}"
