"""Column types: our own words, those of others, and limits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.sql import parse_one
from penstock.sql.parsers.column_types import (
    _ELSEWHERE,
    _INSTEAD,
    MAX_LENGTH,
    TYPE_WORDS,
    TypeParser,
)
from penstock.types import ColumnType
from tests.nightly import drawn
from tests.unit.sql.reading import read, reader, refusal, refused

FEW = settings(max_examples=drawn(40), deadline=None)


def kind(text: str, default_length: int | None = None) -> ColumnType:
    found = read(TypeParser, text, lambda p: p.column_type(default_length))
    assert isinstance(found, ColumnType)
    return found


SIMPLE = some.sampled_from(
    [
        *("BOOL", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "TIMESTAMP", "JSON"),
        *(f"{k} UNSIGNED" for k in ("TINYINT", "SMALLINT", "INT", "BIGINT")),
    ]
).map(ColumnType)
SIZED = some.builds(
    ColumnType, some.sampled_from(["VARCHAR", "NCHAR", "VARBINARY"]), some.integers(1, MAX_LENGTH)
)
DECIMAL = some.integers(1, 38).flatmap(
    lambda p: some.integers(0, p).map(lambda s: ColumnType("DECIMAL", precision=p, scale=s))
)


@FEW
@given(SIMPLE | SIZED | DECIMAL)
def test_a_type_reads_its_own_text_in_either_case(wanted: ColumnType) -> None:
    assert kind(str(wanted)) == wanted
    assert kind(str(wanted).lower()) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("BINARY(7)", "VARCHAR(7)"),
        ("INTEGER", "INT"),
        ("INTEGER UNSIGNED", "INT UNSIGNED"),
        ("BOOLEAN", "BOOL"),
        ("NUMERIC(5,2)", "DECIMAL(5,2)"),
        ("DECIMAL", "DECIMAL(10,0)"),
        ("DECIMAL(7)", "DECIMAL(7,0)"),
        ("int8", "TINYINT"),
        ("uint64", "BIGINT UNSIGNED"),
        ("float32", "FLOAT"),
        ("float64", "DOUBLE"),
        ("string", f"VARCHAR({MAX_LENGTH})"),
        ("datetime", "TIMESTAMP"),
        ("datetime64", "TIMESTAMP"),
    ],
)
def test_other_words_for_a_type_give_ours(text: str, wanted: str) -> None:
    assert str(kind(text)) == wanted


def test_a_length_may_be_left_out_only_where_there_is_a_default() -> None:
    assert kind("VARCHAR", 0) == ColumnType("VARCHAR", 0)
    assert kind("VARCHAR(3)", 0) == ColumnType("VARCHAR", 3)
    assert kind("string", 0) == ColumnType("VARCHAR", 0)
    assert refused(lambda: kind("VARCHAR")) == (
        "E_SYNTAX",
        1,
        8,
        'expected "(", but the statement ends',
    )


def test_a_precision_of_times_is_read_and_gives_a_notice() -> None:
    parser = reader(TypeParser, "datetime64(3)")
    assert parser.column_type() == ColumnType("TIMESTAMP")
    assert parser.at_end
    assert parser.notices == [
        "DATETIME64 is TIMESTAMP: times have the precision of the database",
    ]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("VARCHAR(0)", 9, f"length must be between 1 and {MAX_LENGTH}"),
        (f"NCHAR({MAX_LENGTH + 1})", 7, f"length must be between 1 and {MAX_LENGTH}"),
        ("DECIMAL(0)", 9, "precision must be between 1 and 38"),
        ("DECIMAL(39)", 9, "precision must be between 1 and 38"),
        ("DECIMAL(5,6)", 11, "scale must be between 0 and 5"),
        ("DATETIME64(10)", 12, "precision must be between 0 and 9"),
        ("DOUBLE UNSIGNED", 1, "DOUBLE has no unsigned form"),
        ("BOOL UNSIGNED", 1, "BOOL has no unsigned form"),
        ("VARCHAR(x)", 9, "expected the length, found x"),
    ],
)
def test_a_type_outside_its_limits_is_refused_where_it_stands(
    text: str, column: int, message: str
) -> None:
    assert refused(lambda: kind(text)) == ("E_SYNTAX", 1, column, message)


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("TEXT", "VARCHAR(n)"),
        ("blob", "VARBINARY(n)"),
        ("GEOMETRY(100)", "VARCHAR(n) for the text"),
        ("CHAR(3)", "VARCHAR(n)"),
        ("REAL", "FLOAT (32 bits) or DOUBLE (64 bits)"),
        ("DATE", "TIMESTAMP"),
        ("INT4", "INT"),
    ],
)
def test_a_type_of_another_system_is_refused_with_the_one_to_use(word: str, instead: str) -> None:
    error = refusal(lambda: kind(word))
    assert (error.code, error.line, error.column) == ("E_SYNTAX", 1, 1)
    assert error.message == f"this is no column type here, found {word.partition('(')[0]}"
    assert error.hint.startswith(f"use {instead}")


def test_a_refused_type_is_pointed_at_in_its_statement() -> None:
    error = refusal(lambda: parse_one("CREATE TABLE t (ts TIMESTAMP,\n  note TEXT)"))
    assert (error.line, error.column) == (2, 8)


def test_a_word_is_either_taken_or_refused() -> None:
    assert not _INSTEAD.keys() & {*TYPE_WORDS, *_ELSEWHERE}


def test_an_unknown_type_hints_at_the_nearest_and_lists_all() -> None:
    error = refusal(lambda: kind("VARCHA(3)"))
    assert error.message == "expected a column type, found VARCHA"
    assert error.hint.startswith("did you mean VARCHAR?")
    assert all(word in error.hint for word in TYPE_WORDS)
