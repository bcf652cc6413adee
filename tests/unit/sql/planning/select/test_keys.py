"""PARTITION BY, bound to the source."""

from __future__ import annotations

import pytest

from penstock.sql.compile.expression import parse_expression
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Key
from penstock.sql.planning.select.keys import PartitionKeys
from penstock.sql.planning.view import TableDef
from penstock.sql.relational.stream_names import strip_parentheses
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import (
    MET,
    TAGGED,
    bound,
    keys_of,
    refused_at,
    statement,
)

INT = ColumnType("INT")


def keys(clause: str, source: TableDef = MET) -> PartitionKeys:
    made = statement(f"1 FROM met PARTITION BY {clause}")
    return keys_of(made, source)


def test_without_a_clause_there_is_one_group() -> None:
    found = keys_of(statement("1 FROM met"))
    assert (found.items, found.by_table) == ((), False)


@pytest.mark.parametrize(
    ("clause", "wanted"),
    [
        ("AMPS", Key("Amps", "Amps", INT)),
        ("met.amps AS k", Key("k", "Amps", INT)),
        ("(ta)", Key("ta", "ta", INT)),
        ("amps  + 1", Key("amps  + 1", "Amps + 1", ColumnType("DOUBLE"))),
        ("tbname", Key("tbname", "tbname", ColumnType("VARCHAR", length=192))),
    ],
)
def test_a_key_has_a_name_a_text_and_a_type(clause: str, wanted: Key) -> None:
    assert keys(clause).items == (wanted,)


def test_a_partition_by_table_is_known_as_one() -> None:
    assert keys("ta, TBNAME").by_table
    assert not keys("ta").by_table


def test_a_key_is_found_by_its_expression_and_by_its_name() -> None:
    found = keys("ta, Amps + 1 AS k, ta AS again")
    assert found.place(parse_expression("ta")) == 0
    assert found.place(parse_expression("((Amps + 1))")) == 1
    assert found.place(parse_expression("Amps")) is None
    assert [found.place_of_alias(n) for n in ("TA", "K", "again", "x")] == [0, 1, 2, None]


def test_an_alias_is_known_behind_the_clause_but_not_before() -> None:
    query = bound(statement("K, met.b FROM met PARTITION BY ta + 1 AS k, ta AS k, k AS b"))
    assert [to_sql(item.expression) for item in query.select.items] == ["ta + 1", "b"]
    assert [to_sql(key) for key in query.select.partition_by] == ["ta + 1", "ta", "ta + 1"]
    before = statement("1 FROM met PARTITION BY k + 1, ta AS k")
    assert refused_at(before, lambda: bound(before)) == ("E_UNKNOWN_COLUMN", "k + 1, ta AS")


def test_a_value_from_json_becomes_text() -> None:
    (key,) = keys("j -> 'k'", TAGGED).items
    assert (key.sql, str(key.type)) == ("CAST(j -> 'k' AS VARCHAR(4096))", "VARCHAR(4096)")


def test_a_whole_json_tag_is_no_key() -> None:
    made = statement("1 FROM met PARTITION BY ta, j")
    code, at = refused_at(made, lambda: keys_of(made, TAGGED))
    assert code == "E_UNKNOWN_COLUMN"
    alone = statement("1 FROM met PARTITION BY j")
    assert refused_at(alone, lambda: keys_of(alone, TAGGED)) == (
        "E_UNSUPPORTED_QUERY",
        "j",
    )
    assert at == "ta, j"


def test_parentheses_do_not_count() -> None:
    assert to_sql(strip_parentheses(parse_expression("((a))"))) == "a"
    assert to_sql(strip_parentheses(parse_expression("(a) + 1"))) == "(a) + 1"
