"""CREATE and ALTER DATABASE, USE."""

from __future__ import annotations

from typing import Any

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.columns import ColumnParser
from penstock.sql.plan import Duration
from penstock.sql.statements import (
    AlterDatabase,
    CreateDatabase,
    DatabaseOptions,
    Statement,
    UseDatabase,
)

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


class DatabaseParser(ColumnParser):
    """Grammar of databases."""

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
                self.skip_option(word)
            else:
                given[word.lower()] = self._option_value(word)
        return DatabaseOptions(**given)

    def _option_value(self, word: str) -> Any:
        if word == "PRECISION":
            return self._precision()
        if word == "KEEP":
            return self._keep()
        if word == "MAX_AHEAD":
            return self.duration()
        if word == "DOT_TO_UNDERSCORE":
            return self.flag()
        return self.count_option(word)

    def _precision(self) -> str:
        text = (
            self.string() if self.sees_type(TokenType.STRING) else self.identifier("a precision")
        ).lower()
        if text not in ("ms", "us", "ns"):
            self.fail("expected 'ms', 'us' or 'ns'", index=self.index - 1)
        return text

    def _keep(self) -> Duration:
        """Read days or a duration; of TDengine's list of up to three (for storage tiers) the
        longest counts.
        """
        times = self.list_of(self.keep_time)
        if len(times) > 1:
            self.notices.append("KEEP: storage tiers are not used, the longest time counts")
        return max(times, key=lambda d: d.ticks("ms"))
