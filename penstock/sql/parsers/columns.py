"""Definitions of columns and options of tables, which several statements share."""

from __future__ import annotations

from typing import Any

from sqlglot.tokenizer_core import TokenType

from penstock.names import EVENT_NUMBER, EVENT_TIME
from penstock.sql.parsers.cursor import MAX_KEEP_YEARS, too_long
from penstock.sql.parsers.values import ValueParser
from penstock.sql.plan import Duration
from penstock.sql.statements import ColumnDef, Name, TableOptions
from penstock.types import ColumnType

_IGNORED_TABLE_OPTIONS = ("ROLLUP", "SMA", "TTL", "WATERMARK", "MAX_DELAY", "DELETE_MARK")
_IGNORED_COLUMN_OPTIONS = ("ENCODE", "COMPRESS", "LEVEL")


class ColumnParser(ValueParser):
    """Grammar of column lists and table options."""

    def columns(self) -> tuple[ColumnDef, ...]:
        """`(name type …, …)`; the first must be a TIMESTAMP, names differ."""
        columns = self.list_in_parentheses(self.column_def)
        if columns[0].type.kind != "TIMESTAMP":
            first = columns[0]
            raise self.source.syntax_error(
                f"the first column must be a TIMESTAMP, {first.name} is {first.type}",
                first.offset,
                len(first.name),
                code="E_NO_TIME_COLUMN",
                hint="begin with a time: (ts TIMESTAMP, …)",
            )
        self.distinct(columns)
        return columns

    def event_columns(self) -> tuple[ColumnDef, ...]:
        """The columns of `CREATE STREAM name (…)`: without a TIMESTAMP first, rows get their time
        and a number as they come.
        """
        columns = self.list_in_parentheses(self.column_def)
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
                    f'"{column.name}" is defined twice',
                    column.offset,
                    len(column.name),
                    code="E_DUPLICATE_COLUMN",
                    hint="names of columns and tags differ by more than their case",
                )
            seen.add(column.name.lower())

    def column_def(self) -> ColumnDef:
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
                origin = self.origin()
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

    def origin(self) -> tuple[Name, str]:
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
                given["keep"] = self.keep_time()
            elif self.take("WITH"):
                given.update(self._with())
            else:
                known = ("COMMENT", "KEEP", "WITH", *_IGNORED_TABLE_OPTIONS)
                self.skip_option(self.one_of(known, "a table option"))
        return TableOptions(**given)

    def _with(self) -> dict[str, Any]:
        given: dict[str, Any] = {}

        def item() -> None:
            word = self.one_of(("TOPIC", "PARTITIONS"), "topic or partitions")
            self.expect_type(TokenType.EQ, '"="')
            if word == "PARTITIONS":
                given["partitions"] = self.count_option(word)
            elif self.string().lower() == "own":
                given["own_topic"] = True
            else:
                self.fail("topic can only be 'own'", index=self.index - 1)

        self.list_in_parentheses(item)
        if "partitions" in given and "own_topic" not in given:
            self.fail(
                "partitions needs topic='own'",
                index=self.index - 1,
                hint="a shared topic has the partitions of its database",
            )
        return given

    def count_option(self, word: str) -> int:
        value = self.integer()
        if not 1 <= value <= 1024:
            self.fail(f"{word} must be between 1 and 1024", index=self.index - 1)
        return value

    def keep_time(self) -> Duration:
        if self.sees_type(TokenType.NUMBER) and not self.unit_follows():
            days = Duration(self.integer(), "d")
            if too_long(days, MAX_KEEP_YEARS):
                self.fail(f"a table may be kept {MAX_KEEP_YEARS} years", index=self.index - 1)
            return days
        return self.duration(years=MAX_KEEP_YEARS)

    def skip_option(self, word: str) -> None:
        """Step over the values of an ignored option: literals, words and durations joined by commas
        and colons.
        """
        self.notices.append(f"{word} has no meaning here and is ignored")
        while True:
            if self.take_type(TokenType.DASH) and self.take_type(TokenType.COLON):
                continue
            kind = self.token.token_type
            if kind is TokenType.L_PAREN:
                self.list_in_parentheses(self.identifier)
            elif kind in (TokenType.NUMBER, TokenType.STRING, TokenType.VAR):
                self.index += 2 if self.unit_follows() else 1
            else:
                self.fail(f"expected a value for {word}")
            if not (self.take_type(TokenType.COMMA) or self.take_type(TokenType.COLON)):
                return
