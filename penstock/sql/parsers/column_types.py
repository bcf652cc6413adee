"""Types of columns, under our names and those of Timeplus and ClickHouse."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.cursor import TokenCursor
from penstock.sql.words import meant
from penstock.types import SIZED, ColumnType

_ALIASES = {"BINARY": "VARCHAR", "INTEGER": "INT", "BOOLEAN": "BOOL", "NUMERIC": "DECIMAL"}
#: what these types are called elsewhere (Timeplus, ClickHouse)
_ELSEWHERE = {
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "UINT8": "TINYINT UNSIGNED",
    "UINT16": "SMALLINT UNSIGNED",
    "UINT32": "INT UNSIGNED",
    "UINT64": "BIGINT UNSIGNED",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "STRING": "VARCHAR",
    "DATETIME": "TIMESTAMP",
    "DATETIME64": "TIMESTAMP",
}
_TEXT = "VARCHAR(n), n bytes of UTF-8"
_BYTES = "VARBINARY(n), n bytes"
_MOMENT = "TIMESTAMP, a point in time"
#: what to use instead of types of other systems that are no exact match of one of ours
_INSTEAD = {
    **dict.fromkeys(("TEXT", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "NTEXT", "CLOB"), _TEXT),
    **dict.fromkeys(("CHAR", "CHARACTER", "VARCHAR2", "ENUM", "XML"), _TEXT),
    **dict.fromkeys(("NVARCHAR", "NVARCHAR2"), "NCHAR(n), n characters"),
    **dict.fromkeys(("BLOB", "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "BYTEA", "BYTES"), _BYTES),
    "GEOMETRY": "VARCHAR(n) for the text of a shape (WKT), VARBINARY(n) for its bytes (WKB)",
    "UUID": "VARCHAR(36)",
    **dict.fromkeys(("DATE", "TIME", "TIMESTAMPTZ", "SMALLDATETIME"), _MOMENT),
    "REAL": "FLOAT (32 bits) or DOUBLE (64 bits): systems differ in what REAL is",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "INT2": "SMALLINT",
    "INT4": "INT",
    "MEDIUMINT": "INT",
    "LONG": "BIGINT",
    **dict.fromkeys(("SERIAL", "BIGSERIAL"), "BIGINT; nothing counts by itself here"),
    **dict.fromkeys(("NUMBER", "MONEY", "DEC"), "DECIMAL(p, s)"),
    "BIT": "BOOL",
    "JSONB": "JSON, for a tag",
}
_SIMPLE = ("BOOL", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "TIMESTAMP", "JSON")
_UNSIGNED = ("TINYINT", "SMALLINT", "INT", "BIGINT")
TYPE_WORDS = (*_SIMPLE, *SIZED, "DECIMAL", *_ALIASES)
#: Longest VARCHAR/VARBINARY in bytes and NCHAR in characters.
MAX_LENGTH = 65517


class TypeParser(TokenCursor):
    """The grammar of column types."""

    def column_type(self, default_length: int | None = None) -> ColumnType:
        """A column type; sized types need a length unless *default_length* is given (CAST)."""
        start = self.index
        kind = self.word()
        if kind in _INSTEAD:
            self.fail("this is no column type here", hint=f"use {_INSTEAD[kind]}")
        if kind not in TYPE_WORDS and kind not in _ELSEWHERE:
            self.fail("expected a column type", hint=meant(kind or self.token.text, TYPE_WORDS))
        self.index += 1
        if kind in _ELSEWHERE:
            return self._type_from_elsewhere(kind, default_length)
        kind = _ALIASES.get(kind, kind)
        if kind in SIZED:
            return self._type_with_length(kind, default_length)
        if kind == "DECIMAL":
            return self._decimal_type()
        if self.take("UNSIGNED"):
            if kind not in _UNSIGNED:
                self.index = start
                self.fail(f"{kind} has no unsigned form")
            return ColumnType(f"{kind} UNSIGNED")
        return ColumnType(kind)

    def _type_with_length(self, kind: str, default_length: int | None) -> ColumnType:
        if not self.sees_type(TokenType.L_PAREN) and default_length is not None:
            return ColumnType(kind, default_length)
        self.open()
        length = self._within(1, MAX_LENGTH, "length")
        self.close()
        return ColumnType(kind, length)

    def _decimal_type(self) -> ColumnType:
        precision = 10
        scale = 0
        if self.take_type(TokenType.L_PAREN):
            precision = self._within(1, 38, "precision")
            if self.take_type(TokenType.COMMA):
                scale = self._within(0, precision, "scale")
            self.close()
        return ColumnType("DECIMAL", precision=precision, scale=scale)

    def _type_from_elsewhere(self, word: str, default_length: int | None) -> ColumnType:
        """Our type of the one called *word*; a string is as long as a row can be."""
        if word == "DATETIME64" and self.take_type(TokenType.L_PAREN):
            self._within(0, 9, "precision")
            self.close()
            self.notices.append("DATETIME64 is TIMESTAMP: times have the precision of the database")
        kind = _ELSEWHERE[word]
        return (
            ColumnType(kind, MAX_LENGTH if default_length is None else default_length)
            if kind in SIZED
            else ColumnType(kind)
        )

    def _within(self, low: int, high: int, what: str) -> int:
        value = self.integer(f"the {what}")
        if not low <= value <= high:
            self.index -= 1
            self.fail(f"{what} must be between {low} and {high}")
        return value
