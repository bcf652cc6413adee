"""CREATE STREAM TABLE and its options."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.databases import DatabaseParser
from penstock.sql.statements import CreateStreamTable, Statement, StreamTableSettings

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
#: options that name one column
_NAME_OPTIONS = ("filter_column", "timestamp_column", "status_column", "cache_purge_time_column")
#: a name in backticks, or one without commas
_COLUMN_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^,`]+))\s*(?:,|$)")


class StreamTableParser(DatabaseParser):
    """Grammar of stream tables."""

    def create_stream_table(self) -> Statement:
        """Read the rest of `CREATE STREAM TABLE`."""
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
            given[word] = self._stream_table_option(word)

        self.list_in_parentheses(item)
        self._check_stream_table_options(given, at)
        return CreateStreamTable(
            table=table,
            columns=columns,
            if_not_exists=if_not_exists,
            options=StreamTableSettings(**given),
        )

    def _stream_table_option(self, word: str) -> Any:
        if word in ("key_column", "time_column"):
            return self._column_names()
        if word in _NAME_OPTIONS:
            return self.string()
        if word == "key_rule":
            return self.string().lower()
        if word in ("async_write", "compress"):
            return self.one_of(("TRUE", "FALSE"), "TRUE or FALSE") == "TRUE"
        if word in ("cache_purge_interval", "cache_retention_time"):
            return self.duration()
        if word == "raft_group" and self.sees_type(TokenType.STRING):
            return self.string()
        return self._number_option(whole=word != "retention_minutes")

    def _check_stream_table_options(self, given: Collection[str], at: int) -> None:
        """Refuse options of which some are missing; *at* is where errors point."""
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

    def _number_option(self, *, whole: bool) -> int | float:
        """Read any number: its limits are checked with a better message later."""
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

    def _column_names(self) -> tuple[str, ...]:
        """Read `'a'`, `'a, b'` or `'`odd name`, b'`: names separated by commas, in one string."""
        at = self.index
        names = tuple(
            a.replace("``", "`") or b.strip() for a, b in _COLUMN_NAME.findall(self.string())
        )
        if not names or not all(names):
            self.fail("expected names of columns, separated by commas", index=at)
        return names
