"""Databases and tables: CREATE, ALTER, DROP, and the column definitions streams share with them."""

from __future__ import annotations

import re
from typing import Any

from sqlglot.tokenizer_core import TokenType

from penstock.names import EVENT_NUMBER, EVENT_TIME
from penstock.sql.parsers.cursor import MAX_KEEP_YEARS, too_long
from penstock.sql.parsers.values import ValueParser
from penstock.sql.plan import Duration
from penstock.sql.statements import (
    AlterDatabase,
    AlterTable,
    ChildDef,
    ColumnDef,
    CreateChildren,
    CreateDatabase,
    CreateFunction,
    CreateSnode,
    CreateStable,
    CreateStreamTable,
    CreateTable,
    DatabaseOptions,
    Drop,
    DropKind,
    Name,
    Statement,
    StreamTableOptions,
    TableOptions,
    UseDatabase,
)
from penstock.types import ColumnType

_DATABASE_OPTIONS = ("PRECISION", "KEEP", "PARTITIONS", "MAX_AHEAD", "REPLICA", "DOT_TO_UNDERSCORE")
#: Options of TDengine databases that mean nothing here: accepted with a notice, so that its DDL
#: scripts run.
_IGNORED_DATABASE_OPTIONS = (
    "BUFFER",
    "CACHEMODEL",
    "CACHESIZE",
    "COMP",
    "COMPACT_INTERVAL",
    "COMPACT_TIME_OFFSET",
    "COMPACT_TIME_RANGE",
    "DNODES",
    "DURATION",
    "ENCRYPT_ALGORITHM",
    "KEEP_TIME_OFFSET",
    "MAXROWS",
    "MINROWS",
    "PAGES",
    "PAGESIZE",
    "RETENTIONS",
    "SINGLE_STABLE",
    "SS_CHUNKPAGES",
    "SS_COMPACT",
    "SS_KEEPLOCAL",
    "STT_TRIGGER",
    "TABLE_PREFIX",
    "TABLE_SUFFIX",
    "TSDB_PAGESIZE",
    "VGROUPS",
    "WAL_FSYNC_PERIOD",
    "WAL_LEVEL",
    "WAL_RETENTION_PERIOD",
    "WAL_RETENTION_SIZE",
    "WAL_ROLL_PERIOD",
    "WAL_SEGMENT_SIZE",
)
_IGNORED_TABLE_OPTIONS = ("ROLLUP", "SMA", "TTL", "WATERMARK", "MAX_DELAY", "DELETE_MARK")
_STREAM_TABLE_OPTIONS = (
    "RAFT_GROUP",
    "CACHE_LIMIT",
    "KEY_COLUMN",
    "RETENTION_MINUTES",
    "PRE_CACHE",
    "FILTER_COLUMN",
    "TIMESTAMP_COLUMN",
    "KEY_RULE",
    "TIME_COLUMN",
    "STATUS_COLUMN",
    "ASYNC_WRITE",
    "COMPRESS",
    "FLUSH_MODE",
    "CACHE_PURGE_TIME_COLUMN",
    "CACHE_PURGE_INTERVAL",
    "CACHE_RETENTION_TIME",
)
_PURGE_OPTIONS = ("cache_purge_time_column", "cache_purge_interval", "cache_retention_time")
#: a name in backticks, or one without commas
_KEY_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,`]+))\s*(?:,|$)")
_IGNORED_COLUMN_OPTIONS = ("ENCODE", "COMPRESS", "LEVEL")


class DdlParser(ValueParser):
    """Statements that change the catalog, streams apart."""

    # ---------------------------------------------------------------- databases

    def create_database(self) -> Statement:
        if_not_exists = self.if_not_exists()
        name = self.identifier("a database name")
        return CreateDatabase(
            name=name, if_not_exists=if_not_exists, options=self._database_options()
        )

    def alter_database(self) -> Statement:
        name = self.identifier("a database name")
        if self.at_end:
            self.fail("expected a database option")
        return AlterDatabase(name=name, options=self._database_options())

    def use(self) -> Statement:
        self.take("DATABASE")
        return UseDatabase(name=self.identifier("a database name"))

    def _database_options(self) -> DatabaseOptions:
        given: dict[str, Any] = {}
        ignored: set[str] = set()
        while not self.at_end:
            word = self.one_of(
                (*_DATABASE_OPTIONS, *_IGNORED_DATABASE_OPTIONS), "a database option"
            )
            if word.lower() in given or word in ignored:
                self.fail(f"{word} is given twice", code="E_OPTION_TWICE", index=self.index - 1)
            if word in _IGNORED_DATABASE_OPTIONS:
                ignored.add(word)
                self._skip_option(word)
            elif word == "PRECISION":
                text = (
                    self.string().lower()
                    if self.sees_type(TokenType.STRING)
                    else self.identifier("a precision").lower()
                )
                if text not in ("ms", "us", "ns"):
                    self.fail("expected 'ms', 'us' or 'ns'", index=self.index - 1)
                given["precision"] = text
            elif word == "KEEP":
                given["keep"] = self._keep()
            elif word == "MAX_AHEAD":
                given["max_ahead"] = self.duration()
            elif word == "DOT_TO_UNDERSCORE":
                given["dot_to_underscore"] = self.flag()
            else:
                given[word.lower()] = self._counted(word)
        return DatabaseOptions(**given)

    def _counted(self, word: str) -> int:
        value = self.integer()
        if not 1 <= value <= 1024:
            self.fail(f"{word} must be between 1 and 1024", index=self.index - 1)
        return value

    def _keep(self) -> Duration:
        """Days, or a duration; of TDengine's list of up to three (for storage tiers) the longest
        counts.
        """
        kept = self.listed(self._days)
        if len(kept) > 1:
            self.notices.append("KEEP: storage tiers are not used, the longest time counts")
        return max(kept, key=lambda d: d.ticks("ms"))

    def _days(self) -> Duration:
        if self.sees_type(TokenType.NUMBER) and not self.unit_follows():
            days = Duration(self.integer(), "d")
            if too_long(days, MAX_KEEP_YEARS):
                self.fail(f"a table may be kept {MAX_KEEP_YEARS} years", index=self.index - 1)
            return days
        return self.duration(years=MAX_KEEP_YEARS)

    def _skip_option(self, word: str) -> None:
        """Step over the values of an ignored option: literals, words and durations joined by commas
        and colons.
        """
        self.notices.append(f"{word} has no meaning here and is ignored")
        while True:
            if self.take_type(TokenType.DASH) and self.take_type(TokenType.COLON):
                continue
            kind = self.token.token_type
            if kind is TokenType.L_PAREN:
                self.wrapped(self.identifier)
            elif kind in (TokenType.NUMBER, TokenType.STRING, TokenType.VAR):
                self.index += 2 if self.unit_follows() else 1
            else:
                self.fail(f"expected a value for {word}")
            if not (self.take_type(TokenType.COMMA) or self.take_type(TokenType.COLON)):
                return

    # ---------------------------------------------------------------- columns and table options

    def columns(self) -> tuple[ColumnDef, ...]:
        """`(name type …, …)`; the first must be a TIMESTAMP, names differ."""
        columns = self.wrapped(self._column_def)
        if columns[0].type.kind != "TIMESTAMP":
            first = columns[0]
            raise self.source.syntax_error(
                f"the first column must be a TIMESTAMP, {first.name} is {first.type}",
                first.offset,
                len(first.name),
            )
        self.distinct(columns)
        return columns

    def event_columns(self) -> tuple[ColumnDef, ...]:
        """The columns of `CREATE STREAM name (…)`: without a TIMESTAMP first, rows get their time
        and a number as they come.
        """
        columns = self.wrapped(self._column_def)
        if columns[0].type.kind != "TIMESTAMP":
            number = ColumnDef(EVENT_NUMBER, ColumnType("BIGINT"), composite_key=True)
            columns = (ColumnDef(EVENT_TIME, ColumnType("TIMESTAMP")), number, *columns)
        self.distinct(columns)
        return columns

    def distinct(self, columns: tuple[ColumnDef, ...]) -> None:
        """Refuse two columns of one name."""
        seen: set[str] = set()
        for column in columns:
            if column.name.lower() in seen:
                raise self.source.syntax_error(
                    f'"{column.name}" is defined twice', column.offset, len(column.name)
                )
            seen.add(column.name.lower())

    def _column_def(self) -> ColumnDef:
        offset = self.offset
        name = self.identifier("a column name")
        kind = self.column_type()
        composite = False
        comment = None
        origin = None
        while not self.at_end:
            if self._composite_key():
                composite = True
            elif self.take("COMMENT"):
                comment = self.string()
            elif self.take("FROM"):
                origin = self._origin()
            elif (word := self.word()) in _IGNORED_COLUMN_OPTIONS:
                self.index += 1
                self._skip_option_value(word)
            else:
                break
        return ColumnDef(name, kind, composite, comment, origin, offset)

    def _skip_option_value(self, word: str) -> None:
        self.notices.append(f"{word} has no meaning here and is ignored")
        self.string()

    def _composite_key(self) -> bool:
        return self.take("COMPOSITE", "KEY") or self.take("PRIMARY", "KEY")

    def _origin(self) -> tuple[Name, str]:
        """`[db.]table.column`"""
        start = self.offset
        parts = [self.identifier("a table name")]
        while len(parts) < 3 and self.take_type(TokenType.DOT):
            parts.append(self.identifier("a column name"))
        if len(parts) < 2:
            self.fail('expected ".column"')
        return Name(parts[-2], parts[0] if len(parts) == 3 else None, start), parts[-1]

    def table_options(self) -> TableOptions:
        """COMMENT, KEEP, WITH (topic='own', partitions=n); TDengine's others are ignored with a
        notice.
        """
        given: dict[str, Any] = {}
        while not self.at_end and not self.sees_type(TokenType.COMMA):
            if self.take("COMMENT"):
                given["comment"] = self.string()
            elif self.take("KEEP"):
                given["keep"] = self._days()
            elif self.take("WITH"):
                given.update(self._with())
            else:
                known = ("COMMENT", "KEEP", "WITH", *_IGNORED_TABLE_OPTIONS)
                self._skip_option(self.one_of(known, "a table option"))
        return TableOptions(**given)

    def _with(self) -> dict[str, Any]:
        given: dict[str, Any] = {}

        def item() -> None:
            word = self.one_of(("TOPIC", "PARTITIONS"), "topic or partitions")
            self.expect_type(TokenType.EQ, '"="')
            if word == "PARTITIONS":
                given["partitions"] = self._counted(word)
            elif self.string().lower() == "own":
                given["own_topic"] = True
            else:
                self.fail("topic can only be 'own'", index=self.index - 1)

        self.wrapped(item)
        if "partitions" in given and "own_topic" not in given:
            self.fail(
                "partitions needs topic='own'",
                index=self.index - 1,
                hint="a shared topic has the partitions of its database",
            )
        return given

    # ---------------------------------------------------------------- stream tables

    def create_stream_table(self) -> Statement:
        """Behind `CREATE STREAM TABLE`."""
        if_not_exists = self.if_not_exists()
        table = self.name()
        columns = self.columns()
        if not self.sees("WITH"):
            self.fail("expected WITH", hint="WITH (raft_group=11, cache_limit=100000)")
        self.index += 1
        at = self.index
        given: dict[str, Any] = {}

        def item() -> None:
            word = self.one_of(_STREAM_TABLE_OPTIONS, "an option of stream tables").lower()
            if word in given:
                self.fail(f"{word} is given twice", code="E_OPTION_TWICE", index=self.index - 1)
            self.expect_type(TokenType.EQ, '"="')
            if word in ("key_column", "time_column"):
                given[word] = self._key_columns()
            elif word in (
                "filter_column",
                "timestamp_column",
                "status_column",
                "cache_purge_time_column",
            ):
                given[word] = self.string()
            elif word == "key_rule":
                given[word] = self.string().lower()
            elif word in ("async_write", "compress"):
                given[word] = self.one_of(("TRUE", "FALSE"), "TRUE or FALSE") == "TRUE"
            elif word in ("cache_purge_interval", "cache_retention_time"):
                given[word] = self.duration()
            elif word == "raft_group" and self.sees_type(TokenType.STRING):
                given[word] = self.string()
            else:
                given[word] = self._number_of(whole=word != "retention_minutes")

        self.wrapped(item)
        purge = [w for w in _PURGE_OPTIONS if w not in given]
        if 0 < len(purge) < len(_PURGE_OPTIONS):
            self.fail(
                f"{' and '.join(purge)} is missing",
                index=at,
                hint=f"{', '.join(_PURGE_OPTIONS)} go together",
            )
        missing = [w for w in ("raft_group", "cache_limit") if w not in given]
        if missing:
            self.fail(
                f"{' and '.join(missing)} is missing",
                index=at,
                hint="WITH (raft_group=11, cache_limit=100000)",
            )
        return CreateStreamTable(
            table=table,
            columns=columns,
            if_not_exists=if_not_exists,
            options=StreamTableOptions(**given),
        )

    def _number_of(self, *, whole: bool) -> Any:
        """A number, so that the one who knows what it is for can say what is wrong with it."""
        minus = self.take_type(TokenType.DASH)
        token = self.token
        if (
            token.token_type is not TokenType.NUMBER
            or (whole and not token.text.isdigit())
            or len(token.text) > 20
        ):
            self.fail("expected a whole number" if whole else "expected a number")
        self.index += 1
        number = int(token.text) if token.text.isdigit() else float(token.text)
        return -number if minus else number

    def _key_columns(self) -> tuple[str, ...]:
        """`'a'`, `'a, b'` or `'`odd name`, b'`: names separated by commas, in one string."""
        at = self.index
        found = tuple(
            a.replace("``", "`") or b.strip() for a, b in _KEY_NAME.findall(self.string())
        )
        if not found or not all(found):
            self.fail("expected names of columns, separated by commas", index=at)
        return found

    # ---------------------------------------------------------------- CREATE TABLE

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
        tags = self.wrapped(self._column_def)
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
            return self._children(table, if_not_exists, virtual)
        if virtual and self.sees_type(TokenType.L_PAREN) and self.word(2) == "FROM":
            origins = self.wrapped(self._child_origin)
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
        return name, self._origin()

    def _children(self, table: Name, if_not_exists: bool, virtual: bool) -> Statement:
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
        names = self.wrapped(self.identifier) if self.sees_type(TokenType.L_PAREN) else None
        self.expect("TAGS")
        at = self.index
        values = self.wrapped(self.value)
        if names is not None and len(names) != len(values):
            self.fail(f"found {len(values)} tag values for {len(names)} tag names", index=at)
        while self.word() in ("TTL", "COMMENT"):
            self._skip_option(self.one_of(("TTL", "COMMENT"), "an option"))
        return ChildDef(table, stable, names, values, if_not_exists, origins)

    def create_snode(self) -> Statement:
        self.expect("ON", "DNODE")
        return CreateSnode(dnode=self.integer())

    # ---------------------------------------------------------------- ALTER and DROP

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
            origin = None if self.take("NULL") else self._origin()
            return AlterTable(
                table=table, action="set_origin", stable=stable, name=column, origin=origin
            )
        if word == "SET":
            self.expect("TAG")
            return AlterTable(
                table=table, action="set_tag", stable=stable, values=self.listed(self._assignment)
            )
        what = self.one_of(
            ("TAG",) if word == "RENAME" else ("COLUMN", "TAG"),
            "TAG" if word == "RENAME" else "COLUMN or TAG",
        ).lower()
        action: Any = f"{word.lower()}_{what}"
        if word in ("ADD", "MODIFY"):
            return AlterTable(
                table=table, action=action, stable=stable, definition=self._column_def()
            )
        name = self.identifier(f"a {what} name")
        new_name = self.identifier("the new name") if word == "RENAME" else None
        return AlterTable(table=table, action=action, stable=stable, name=name, new_name=new_name)

    def _assignment(self) -> tuple[str, Any]:
        name = self.identifier("a tag name")
        self.expect_type(TokenType.EQ, '"="')
        return name, self.value()

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

        items = self.listed(item) if kind == "table" else (item(),)
        return Drop(
            kind=kind, names=tuple(n for _, n in items), if_exists=tuple(e for e, _ in items)
        )

    def create_function(self, or_replace: bool, aggregate: bool) -> Statement:
        """Behind FUNCTION. OUTPUTTYPE is TDengine's word for RETURNS; BUFSIZE has no meaning
        here.
        """
        if_not_exists = self.if_not_exists()
        name = self.identifier("a function name")
        parameters = self.wrapped(lambda: (self.identifier("a parameter name"), self.column_type()))
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
                self._skip_option(word)
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
