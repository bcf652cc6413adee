"""`WITH name AS (SELECT …)`: queries under names of their own.

A name is written out where FROM uses it, as a subquery: whoever asks a tree which tables it reads
meets tables only, and a name that is also a table's is never taken for the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql.nodes import STANDS_ALONE
from penstock.sql.parsers.expression import MAX_DEPTH
from penstock.sql.parsers.windows import WindowParser

#: parts of a tree that the names of one statement may be written out to
MAX_WRITTEN = 20_000


@dataclass(frozen=True)
class _CommonTable:
    query: exp.Query
    #: names of its columns, where WITH gives them
    columns: tuple[exp.Identifier, ...]
    #: levels that it nests
    height: int
    #: parts of its tree
    size: int


class WithParser(WindowParser):
    """The grammar of WITH on top of windows."""

    #: queries that names mean here, by names in lower case
    _named: Mapping[str, _CommonTable] = {}
    _written = 0

    def _common_tables(self) -> None:
        """Read the names behind WITH; each knows those before it."""
        self._refuse_recursive()
        own: set[str] = set()
        while True:
            name = self._identifier().name
            if name.lower() in own:
                self.fail(f"WITH has {name} twice", index=self.index - 1)
            own.add(name.lower())
            self._named = {**self._named, name.lower(): self._query_of_name()}
            if not self.take_type(TokenType.COMMA):
                return

    def _refuse_recursive(self) -> None:
        named_so = self.sees("RECURSIVE", "AS") or self.sees_type(TokenType.L_PAREN, 1)
        if self.sees("RECURSIVE") and not named_so:
            self.fail(
                "a query cannot read its own result: there is no WITH RECURSIVE",
                hint="write a step each: WITH a AS (…), b AS (SELECT … FROM a …) SELECT … FROM b",
            )

    def _query_of_name(self) -> _CommonTable:
        columns: tuple[exp.Identifier, ...] = ()
        if self.sees_type(TokenType.L_PAREN):
            columns = self.list_in_parentheses(self._identifier)
        self.expect("AS")
        outer, self.deepest = self.deepest, self.depth
        self.open()
        query = self.query()
        self.close()
        height = self.deepest - self.depth
        self.deepest = max(outer, self.deepest)
        return _CommonTable(query, columns, height, sum(1 for _ in query.walk()))

    def _write_out(self, table: exp.Table) -> exp.Expr:
        """Return the query that *table* names, or *table* itself where it names none."""
        named = self._named.get(table.name.lower()) if not table.args.get("db") else None
        if named is None:
            return table
        deepest = self.depth + named.height
        self.deepest = max(self.deepest, deepest)
        self._written += named.size
        if deepest > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels", index=self.index - 1)
        if self._written > MAX_WRITTEN:
            self.fail(
                "the queries of WITH are used too often",
                index=self.index - 1,
                hint="store the rows of one of them in a table: INSERT INTO t SELECT …",
            )
        alias = exp.TableAlias(this=table.this.copy())
        if named.columns:
            alias.set("columns", [column.copy() for column in named.columns])
        made = exp.Subquery(this=named.query.copy(), alias=alias)
        made.meta[STANDS_ALONE] = True
        return made
