"""CREATE and ALTER of supertables, plain tables and child tables."""

from __future__ import annotations

from typing import Any

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.stream_tables import StreamTableParser
from penstock.sql.statements import (
    AlterTable,
    ChildDef,
    ColumnDef,
    CreateChildren,
    CreateStable,
    CreateTable,
    Name,
    Statement,
)


class TableParser(StreamTableParser):
    """Grammar of tables."""

    def create_stable(self, virtual: bool = False) -> Statement:
        if_not_exists = self.if_not_exists()
        table = self.name()
        columns = self.columns()
        if not self.sees("TAGS"):
            self.fail(
                "expected TAGS", hint="a supertable has tags; a table without tags is CREATE TABLE"
            )
        return self._stable(table, columns, if_not_exists, virtual)

    def _stable(
        self, table: Name, columns: tuple[ColumnDef, ...], if_not_exists: bool, virtual: bool
    ) -> Statement:
        self.expect("TAGS")
        tags = self.list_in_parentheses(self.column_def)
        self.distinct((*columns, *tags))
        if self.take("VIRTUAL"):
            virtual = self.flag()
        return CreateStable(
            table=table,
            columns=columns,
            tags=tags,
            if_not_exists=if_not_exists,
            options=self.table_options(),
            virtual=virtual,
        )

    def create_table(self, virtual: bool = False) -> Statement:
        """A plain table, a supertable (with TAGS), or one or several child tables (USING)."""
        if_not_exists = self.if_not_exists()
        table = self.name()
        if self.sees("USING"):
            return self._child_tables(table, if_not_exists, virtual)
        if virtual and self.sees_type(TokenType.L_PAREN) and self.word(2) == "FROM":
            origins = self.list_in_parentheses(self._child_origin)
            return CreateChildren(
                children=(self._child(table, if_not_exists, origins),), virtual=True
            )
        columns = self.columns()
        if self.sees("TAGS"):
            return self._stable(table, columns, if_not_exists, virtual)
        return CreateTable(
            table=table,
            columns=columns,
            if_not_exists=if_not_exists,
            options=self.table_options(),
            virtual=virtual,
        )

    def _child_origin(self) -> tuple[str, tuple[Name, str]]:
        name = self.identifier("a column name")
        self.expect("FROM")
        return name, self.origin()

    def _child_tables(self, table: Name, if_not_exists: bool, virtual: bool) -> Statement:
        children = [self._child(table, if_not_exists)]
        while not self.at_end:
            self.take_type(TokenType.COMMA)
            if_not_exists = self.if_not_exists()
            children.append(self._child(self.name(), if_not_exists))
        return CreateChildren(children=tuple(children), virtual=virtual)

    def _child(
        self,
        table: Name,
        if_not_exists: bool,
        origins: tuple[tuple[str, tuple[Name, str]], ...] = (),
    ) -> ChildDef:
        self.expect("USING")
        stable = self.name("a supertable name")
        names = (
            self.list_in_parentheses(self.identifier) if self.sees_type(TokenType.L_PAREN) else None
        )
        self.expect("TAGS")
        at = self.index
        values = self.list_in_parentheses(self.value)
        if names is not None and len(names) != len(values):
            self.fail(f"found {len(values)} tag values for {len(names)} tag names", index=at)
        while self.word() in ("TTL", "COMMENT"):
            self.skip_option(self.one_of(("TTL", "COMMENT"), "an option"))
        return ChildDef(table, stable, names, values, if_not_exists, origins)

    def alter_table(self, stable: bool) -> Statement:
        table = self.name()
        word = self.one_of(
            ("ADD", "DROP", "MODIFY", "RENAME", "SET", "ALTER", "KEEP", "COMMENT"), "what to alter"
        )
        if word in ("KEEP", "COMMENT"):
            self.index -= 1
            return AlterTable(
                table=table, action="options", stable=stable, options=self.table_options()
            )
        if word == "ALTER":
            self.expect("COLUMN")
            column = self.identifier("a column name")
            self.expect("SET")
            origin = None if self.take("NULL") else self.origin()
            return AlterTable(
                table=table, action="set_origin", stable=stable, name=column, origin=origin
            )
        if word == "SET":
            self.expect("TAG")
            return AlterTable(
                table=table, action="set_tag", stable=stable, values=self.list_of(self._assignment)
            )
        what = self.one_of(
            ("TAG",) if word == "RENAME" else ("COLUMN", "TAG"),
            "TAG" if word == "RENAME" else "COLUMN or TAG",
        ).lower()
        action: Any = f"{word.lower()}_{what}"
        if word in ("ADD", "MODIFY"):
            return AlterTable(
                table=table, action=action, stable=stable, definition=self.column_def()
            )
        name = self.identifier(f"a {what} name")
        new_name = self.identifier("the new name") if word == "RENAME" else None
        return AlterTable(table=table, action=action, stable=stable, name=name, new_name=new_name)

    def _assignment(self) -> tuple[str, Any]:
        name = self.identifier("a tag name")
        self.expect_type(TokenType.EQ, '"="')
        return name, self.value()
