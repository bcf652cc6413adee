"""SHOW, DESCRIBE and DELETE."""

from __future__ import annotations

from typing import Literal

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.principals import PrincipalParser
from penstock.sql.statements import Delete, Describe, Show, ShowCreate, Statement

_SHOWN = (
    "APPS",
    "CLUSTER",
    "CONNECTIONS",
    "CONSUMERS",
    "DATABASES",
    "DNODES",
    "EXTERNAL STREAMS",
    "FUNCTIONS",
    "GRANTS",
    "LICENCES",
    "MNODES",
    "QNODES",
    "QUERIES",
    "ROLES",
    "SNODES",
    "STABLES",
    "STREAMS",
    "TABLES",
    "TAGS",
    "TOPICS",
    "TRANSACTIONS",
    "USERS",
    "VARIABLES",
    "VGROUPS",
    "VIEWS",
    "VTABLES",
)
_CREATED: dict[
    str, Literal["database", "stable", "table", "stream", "external stream", "materialized view"]
] = {
    "DATABASE": "database",
    "STABLE": "stable",
    "TABLE": "table",
    "STREAM": "stream",
    "VTABLE": "table",
    "EXTERNAL": "external stream",
    "MATERIALIZED": "materialized view",
    "VIEW": "materialized view",
}


class ShowParser(PrincipalParser):
    """Statements that inform, and DELETE."""

    def describe(self) -> Statement:
        return Describe(table=self.name())

    def show(self) -> Statement:
        """`SHOW CREATE kind name`, `SHOW [db.]what [FROM db] [LIKE 'pattern']`."""
        if self.take("CREATE"):
            return self._show_create()
        database = None
        if self.sees_type(TokenType.DOT, 1):
            database = self.identifier("a database name")
            self.index += 1
        what = self._show_subject()
        if database is None and self.take("FROM"):
            database = self.identifier("a database name")
        return Show(what=what, database=database, like=self.string() if self.take("LIKE") else None)

    def _show_create(self) -> Statement:
        word = self.one_of(_CREATED, "DATABASE, STABLE, TABLE or STREAM")
        if word in ("EXTERNAL", "MATERIALIZED"):
            self.expect("STREAM" if word == "EXTERNAL" else "VIEW")
        kind = _CREATED[word]
        return ShowCreate(kind=kind, name=self.name(f"a {kind} name"))

    def _show_subject(self) -> str:
        if self.take("EXTERNAL", "STREAMS"):
            return "EXTERNAL STREAMS"
        if self.take("MATERIALIZED", "VIEWS"):
            return "VIEWS"
        if self.take("USER", "PRIVILEGES"):
            return "GRANTS"
        return self.one_of([s for s in _SHOWN if " " not in s], "what to show")

    def delete(self) -> Statement:
        """`DELETE FROM table [WHERE condition]`; the gateway takes the time range out of the
        condition.
        """
        self.expect("FROM")
        table = self.name()
        return Delete(table=table, where=self.condition() if self.take("WHERE") else None)
