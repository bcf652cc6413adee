"""CREATE and ALTER DATABASE, USE."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.parsers.databases import DatabaseParser
from penstock.sql.plan import Duration
from penstock.sql.statements import AlterDatabase, CreateDatabase, DatabaseOptions, UseDatabase
from tests.unit.sql.reading import read, reader, refused


def created(text: str) -> Any:
    return read(DatabaseParser, text, DatabaseParser.create_database)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", DatabaseOptions()),
        ("PRECISION 'us'", DatabaseOptions(precision="us")),
        ("precision NS", DatabaseOptions(precision="ns")),
        ("KEEP 30", DatabaseOptions(keep=Duration(30, "d"))),
        ("KEEP 12h PARTITIONS 8", DatabaseOptions(keep=Duration(12, "h"), partitions=8)),
        ("MAX_AHEAD 5m REPLICA 3", DatabaseOptions(max_ahead=Duration(5, "m"), replica=3)),
        ("DOT_TO_UNDERSCORE 0", DatabaseOptions(dot_to_underscore=False)),
    ],
)
def test_options_of_a_database(text: str, options: DatabaseOptions) -> None:
    assert created(f"d {text}") == CreateDatabase(name="d", options=options)


def test_a_database_may_be_there_already() -> None:
    assert created("IF NOT EXISTS `a.b`") == CreateDatabase(name="a.b", if_not_exists=True)


def test_the_longest_of_several_storage_tiers_counts() -> None:
    parser = reader(DatabaseParser, "d KEEP 10, 30d, 48h")
    found = parser.create_database()
    assert found == CreateDatabase(name="d", options=DatabaseOptions(keep=Duration(30, "d")))
    assert parser.notices == ["KEEP: storage tiers are not used, the longest time counts"]


def test_options_of_another_system_give_notices() -> None:
    parser = reader(DatabaseParser, "d VGROUPS 4 CACHEMODEL 'both' RETENTIONS 1s:1d,1m:2d KEEP 3")
    found = parser.create_database()
    assert parser.at_end
    assert found == CreateDatabase(name="d", options=DatabaseOptions(keep=Duration(3, "d")))
    assert [n.split()[0] for n in parser.notices] == ["VGROUPS", "CACHEMODEL", "RETENTIONS"]


def test_altering_needs_an_option() -> None:
    found = read(DatabaseParser, "d KEEP 3", DatabaseParser.alter_database)
    assert found == AlterDatabase(name="d", options=DatabaseOptions(keep=Duration(3, "d")))
    assert refused(lambda: read(DatabaseParser, "d", DatabaseParser.alter_database)) == (
        "E_SYNTAX",
        1,
        2,
        "expected a database option, but the statement ends",
    )


@pytest.mark.parametrize("text", ["d", "DATABASE d"])
def test_use_may_say_that_it_is_a_database(text: str) -> None:
    assert read(DatabaseParser, text, DatabaseParser.use) == UseDatabase(name="d")


@pytest.mark.parametrize(
    ("text", "code", "column", "message"),
    [
        ("d KEEP 1 KEEP 2", "E_OPTION_TWICE", 10, "KEEP is given twice"),
        ("d VGROUPS 1 VGROUPS 2", "E_OPTION_TWICE", 13, "VGROUPS is given twice"),
        ("d PRECISION 'ps'", "E_SYNTAX", 13, "expected 'ms', 'us' or 'ns'"),
        ("d PARTITIONS 0", "E_SYNTAX", 14, "PARTITIONS must be between 1 and 1024"),
        ("d REPLICA 2000", "E_SYNTAX", 11, "REPLICA must be between 1 and 1024"),
        ("d DOT_TO_UNDERSCORE 2", "E_SYNTAX", 21, "expected 0 or 1, found 2"),
        ("d SIZE 1", "E_SYNTAX", 3, "expected a database option, found SIZE"),
    ],
)
def test_a_fault_is_refused_at_its_place(text: str, code: str, column: int, message: str) -> None:
    found = refused(lambda: created(text))
    assert found[:3] == (code, 1, column)
    assert found[3].startswith(message)
