"""CREATE and DROP by the kind of object, user-defined functions and snodes."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.tables import TableParser
from penstock.sql.statements import CreateFunction, CreateSnode, Drop, DropKind, Name, Statement
from penstock.types import ColumnType


class DdlParser(TableParser):
    """Statements that change the catalog, streams apart."""

    def create(self) -> Statement:
        """Behind CREATE, streams apart (see `parser.py`)."""
        if self.take("AGGREGATE"):
            self.expect("FUNCTION")
            return self.create_function(or_replace=False, aggregate=True)
        virtual = self.take("VIRTUAL")
        known = (
            "DATABASE",
            "STABLE",
            "TABLE",
            "VTABLE",
            "STREAM",
            "FUNCTION",
            "SNODE",
            "USER",
            "ROLE",
        )
        word = self.one_of(known, "what to create")
        if word == "FUNCTION":
            return self.create_function(or_replace=False, aggregate=False)
        if word == "DATABASE":
            return self.create_database()
        if word == "STABLE":
            return self.create_stable(virtual)
        if word == "SNODE":
            return self.create_snode()
        return self.create_table(virtual or word == "VTABLE")

    def create_function(self, or_replace: bool, aggregate: bool) -> Statement:
        """Behind FUNCTION. OUTPUTTYPE is TDengine's word for RETURNS; BUFSIZE has no meaning
        here.
        """
        if_not_exists = self.if_not_exists()
        name = self.identifier("a function name")
        parameters = self.list_in_parentheses(
            lambda: (self.identifier("a parameter name"), self.column_type())
        )
        returns: ColumnType | None = None
        code: str | None = None
        while not self.at_end:
            word = self.one_of(
                ("RETURNS", "OUTPUTTYPE", "LANGUAGE", "AS", "BUFSIZE"), "RETURNS, LANGUAGE or AS"
            )
            if word in ("RETURNS", "OUTPUTTYPE"):
                returns = self.column_type()
            elif word == "AS":
                code = self.string()
            elif word == "BUFSIZE":
                self.skip_option(word)
            else:
                language = (
                    self.string()
                    if self.sees_type(TokenType.STRING)
                    else self.identifier("a language")
                )
                if language.lower() != "python":
                    self.fail("functions are written in Python", index=self.index - 1)
        if returns is None or code is None:
            self.fail("expected " + ("RETURNS type" if returns is None else "AS 'code'"))
        return CreateFunction(
            name=name,
            parameters=parameters,
            returns=returns,
            code=code,
            aggregate=aggregate,
            if_not_exists=if_not_exists,
            or_replace=or_replace,
        )

    def create_snode(self) -> Statement:
        self.expect("ON", "DNODE")
        return CreateSnode(dnode=self.integer())

    def drop(self) -> Statement:
        kinds: dict[str, DropKind] = {
            "DATABASE": "database",
            "TABLE": "table",
            "STABLE": "stable",
            "STREAM": "stream",
            "VTABLE": "table",
            "SNODE": "snode",
            "FUNCTION": "function",
            "EXTERNAL": "external stream",
            "MATERIALIZED": "materialized view",
            "VIEW": "materialized view",
            "USER": "user",
            "ROLE": "role",
        }
        word = self.one_of(kinds, "what to drop")
        if word in ("EXTERNAL", "MATERIALIZED"):
            self.expect("STREAM" if word == "EXTERNAL" else "VIEW")
        kind = kinds[word]
        if kind == "snode":
            self.expect("ON", "DNODE")
            return Drop(kind=kind, names=(Name(str(self.integer())),), if_exists=(False,))

        def item() -> tuple[bool, Name]:
            if_exists = self.if_exists()
            if kind in ("database", "function", "user", "role"):
                offset = self.offset
                return if_exists, Name(self.identifier(f"a {kind} name"), None, offset)
            return if_exists, self.name(f"a {kind} name")

        items = self.list_of(item) if kind == "table" else (item(),)
        return Drop(
            kind=kind, names=tuple(n for _, n in items), if_exists=tuple(e for e, _ in items)
        )
