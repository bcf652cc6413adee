"""SHOW, DESCRIBE and DELETE."""

from __future__ import annotations

from typing import Literal

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.principals import PrincipalParser
from penstock.sql.statements import (
    Delete,
    Describe,
    Name,
    Show,
    ShowCreate,
    ShowDistribution,
    ShowIndexes,
    ShowTableTags,
    ShowTags,
    Statement,
)
from penstock.sql.words import meant

_ABOUT_TABLES = ("INDEXES FROM", "TABLE DISTRIBUTED", "TABLE TAGS FROM", "TAGS FROM")
#: what may stand before `db.TABLES`
_KINDS = ("CHILD", "NORMAL")
#: subjects of two words
_PAIRS = (
    ("CHILD", "TABLES"),
    ("CLUSTER", "ALIVE"),
    ("EXTERNAL", "STREAMS"),
    ("NORMAL", "TABLES"),
    ("SYSTEM", "DATABASES"),
    ("USER", "DATABASES"),
)
_SHOWN = (
    "APPS",
    "CLUSTER",
    "CONNECTIONS",
    "CONSUMERS",
    "DATABASES",
    "DNODES",
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
        """`SHOW CREATE kind name`, questions about one table, `SHOW [db.]what [FROM db] [LIKE
        'pattern']` with `CHILD [db.]TABLES` as another form.
        """
        if self.sees_type(TokenType.DOT, 1):
            return self._show_list()
        if self.take("CREATE"):
            return self._show_create()
        return self._show_about_table() or self._show_list()

    def _show_about_table(self) -> Statement | None:
        """`TAGS FROM child`, `TABLE TAGS [columns] FROM stable`, `TABLE DISTRIBUTED table`,
        `INDEXES FROM table`; None for something else.
        """
        if self.take("TAGS"):
            return ShowTags(table=self._table_from("a child table"))
        if self.take("INDEXES"):
            return ShowIndexes(table=self._table_from("a table"))
        if not self.take("TABLE"):
            return None
        if self.one_of(("DISTRIBUTED", "TAGS"), "TAGS or DISTRIBUTED") == "DISTRIBUTED":
            return ShowDistribution(table=self.name())
        columns: tuple[Name, ...] = ()
        if not self.sees("FROM"):
            columns = self.list_of(self._tag_column)
        return ShowTableTags(stable=self._table_from("a supertable"), columns=columns)

    def _tag_column(self) -> Name:
        offset = self.offset
        return Name(self.identifier("a tag, tbname or _tags"), None, offset)

    def _table_from(self, what: str) -> Name:
        """`FROM [db.]table`, `FROM table FROM db`"""
        self.expect("FROM")
        found = self.name(f"the name of {what}")
        if found.database is None and self.take("FROM"):
            return Name(found.name, self.identifier("a database name"), found.offset)
        return found

    def _show_list(self) -> Statement:
        kind = ""
        database = None
        if self.sees_type(TokenType.DOT, 2):
            kind = self.one_of(_KINDS, "CHILD or NORMAL")
        if self.sees_type(TokenType.DOT, 1):
            database = self.identifier("a database name")
            self.index += 1
        if kind:
            self.expect("TABLES")
        what = f"{kind} TABLES" if kind else self._show_subject()
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
        for pair in _PAIRS:
            if self.take(*pair):
                return " ".join(pair)
        if self.take("MATERIALIZED", "VIEWS"):
            return "VIEWS"
        if self.take("USER", "PRIVILEGES"):
            return "GRANTS"
        word = self.word()
        if word not in _SHOWN:
            known = (*_SHOWN, *_ABOUT_TABLES, *map(" ".join, _PAIRS))
            self.fail("expected what to show", hint=meant(word or self.token.text, known))
        self.index += 1
        return word

    def delete(self) -> Statement:
        """`DELETE FROM table [WHERE condition]`; the gateway takes the time range out of the
        condition.
        """
        self.expect("FROM")
        table = self.name()
        return Delete(table=table, where=self.condition() if self.take("WHERE") else None)
