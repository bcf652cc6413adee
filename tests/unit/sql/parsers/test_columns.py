"""Column lists and table options."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.names import EVENT_NUMBER, EVENT_TIME
from penstock.sql.parsers.columns import ColumnParser
from penstock.sql.plan import Duration
from penstock.sql.render.parts import column_definition
from penstock.sql.statements import ColumnDef, Name, TableOptions
from penstock.types import ColumnType
from tests.nightly import drawn
from tests.unit.sql.reading import read, reader, refusal, refused

FEW = settings(max_examples=drawn(40), deadline=None)

TIMESTAMP = ColumnType("TIMESTAMP")
INT = ColumnType("INT")


def columns(text: str) -> Any:
    return read(ColumnParser, text, ColumnParser.columns)


def options(text: str) -> Any:
    return read(ColumnParser, text, ColumnParser.table_options)


def test_columns_keep_their_spelling_and_order() -> None:
    assert columns("(Ts timestamp, `a b` int)") == (
        ColumnDef("Ts", TIMESTAMP),
        ColumnDef("a b", INT),
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a INT COMPOSITE KEY", ColumnDef("a", INT, True)),
        ("a INT PRIMARY KEY", ColumnDef("a", INT, True)),
        ("a INT COMMENT 'it'", ColumnDef("a", INT, False, "it")),
        ("a INT FROM t.x", ColumnDef("a", INT, origin=(Name("t"), "x"))),
        ("a INT FROM db.t.x", ColumnDef("a", INT, origin=(Name("t", "db"), "x"))),
        ("a INT COMMENT 'it' COMPOSITE KEY", ColumnDef("a", INT, True, "it")),
    ],
)
def test_a_column_has_its_options_in_any_order(text: str, wanted: ColumnDef) -> None:
    assert read(ColumnParser, text, ColumnParser.column_def) == wanted


names = some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@FEW
@given(
    some.builds(
        ColumnDef,
        names,
        some.sampled_from([INT, TIMESTAMP, ColumnType("VARCHAR", 9)]),
        some.booleans(),
        some.none() | names,
        some.none() | some.tuples(some.builds(Name, names, some.none() | names), names),
    )
)
def test_a_written_column_is_read_back(column: ColumnDef) -> None:
    assert read(ColumnParser, column_definition(column), ColumnParser.column_def) == column


def test_how_a_column_is_stored_elsewhere_is_ignored_with_a_notice() -> None:
    parser = reader(ColumnParser, "a INT ENCODE 'x' COMPRESS 'y' LEVEL 'z' COMMENT 'c'")
    assert parser.column_def() == ColumnDef("a", INT, comment="c")
    assert [n.split()[0] for n in parser.notices] == ["ENCODE", "COMPRESS", "LEVEL"]


@pytest.mark.parametrize(
    ("text", "code", "column", "message"),
    [
        ("(a INT)", "E_NO_TIME_COLUMN", 2, "the first column must be a TIMESTAMP, a is INT"),
        ("(ts TIMESTAMP, a INT, A INT)", "E_DUPLICATE_COLUMN", 23, '"A" is defined twice'),
        ("(ts TIMESTAMP, ts INT)", "E_DUPLICATE_COLUMN", 16, '"ts" is defined twice'),
        ("(ts TIMESTAMP, a)", "E_SYNTAX", 17, "expected a column type, found )"),
        ("()", "E_SYNTAX", 2, "expected a column name, found )"),
        ("(ts TIMESTAMP FROM a)", "E_SYNTAX", 21, 'expected ".column", found )'),
    ],
)
def test_a_list_of_columns_is_refused_at_its_fault(
    text: str, code: str, column: int, message: str
) -> None:
    assert refused(lambda: columns(text)) == (code, 1, column, message)


def test_event_columns_get_a_time_and_a_number_when_they_have_none() -> None:
    found = read(ColumnParser, "(a INT, b INT)", ColumnParser.event_columns)
    assert found == (
        ColumnDef(EVENT_TIME, TIMESTAMP),
        ColumnDef(EVENT_NUMBER, ColumnType("BIGINT"), True),
        ColumnDef("a", INT),
        ColumnDef("b", INT),
    )
    given_time = read(ColumnParser, "(ts TIMESTAMP, a INT)", ColumnParser.event_columns)
    assert given_time == (ColumnDef("ts", TIMESTAMP), ColumnDef("a", INT))


def test_an_event_column_cannot_be_called_as_the_time_is() -> None:
    text = f"(a INT, `{EVENT_TIME}` INT)"
    error = refusal(lambda: read(ColumnParser, text, ColumnParser.event_columns))
    assert "is defined twice" in error.message


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", TableOptions()),
        ("COMMENT 'x' KEEP 7", TableOptions("x", Duration(7, "d"))),
        ("KEEP 36h", TableOptions(keep=Duration(36, "h"))),
        ("KEEP 1000y", TableOptions(keep=Duration(1000, "y"))),
        ("KEEP 365000", TableOptions(keep=Duration(365000, "d"))),
        ("WITH (topic = 'own')", TableOptions(own_topic=True)),
        ("WITH (partitions=4, TOPIC='OWN')", TableOptions(own_topic=True, partitions=4)),
    ],
)
def test_table_options(text: str, wanted: TableOptions) -> None:
    assert options(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "TTL 100",
        "SMA (a, b)",
        "ROLLUP(avg)",
        "WATERMARK 10s, 5s",
        "MAX_DELAY 1m,2m",
        "DELETE_MARK 'x'",
        "ROLLUP -:7d",
    ],
)
def test_options_of_another_system_are_stepped_over_with_a_notice(text: str) -> None:
    parser = reader(ColumnParser, f"{text} COMMENT 'x'")
    assert parser.table_options() == TableOptions("x")
    assert parser.at_end
    word = text.split("(")[0].split()[0]
    assert parser.notices == [f"{word} has no meaning here and is ignored"]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("KEEP 365001", 6, "a table may be kept 1000 years"),
        ("KEEP 1001y", 6, "a length of time may have 1000 years"),
        ("WITH (topic='shared')", 13, "topic can only be 'own'"),
        ("WITH (partitions=4)", 19, "partitions needs topic='own'"),
        ("WITH (topic='own', partitions=0)", 31, "PARTITIONS must be between 1 and 1024"),
        ("WITH (topic='own', partitions=1025)", 31, "PARTITIONS must be between 1 and 1024"),
        ("WITH (size=1)", 7, "expected topic or partitions, found size"),
        ("TTL", 4, "expected a value for TTL, but the statement ends"),
        ("COMMENTS 'x'", 1, "expected a table option, found COMMENTS"),
    ],
)
def test_a_table_option_is_refused_at_its_fault(text: str, column: int, message: str) -> None:
    assert refused(lambda: options(text)) == ("E_SYNTAX", 1, column, message)
