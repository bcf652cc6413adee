from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from services.store.partition_keys import WindowPartitionKeys


def expression(text: str) -> exp.Expr:
    return sqlglot.select(text).expressions[0]


def keys(*texts: str) -> WindowPartitionKeys:
    made = sqlglot.select("count(*)")
    made.set("partition_by", exp.Partition(expressions=[expression(text) for text in texts]))
    return WindowPartitionKeys(made)


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        ("site", True),
        ("SITE", True),
        ("v % 4", True),
        ("V % 4", True),
        ("v", False),
        ("v % 5", False),
    ],
)
def test_a_key_is_the_same_expression_whatever_its_case(node: str, wanted: bool):
    assert keys("site", "v % 4 AS part").has(expression(node)) == wanted


def test_an_alias_is_a_name_of_its_key():
    found = keys("site", "v % 4 AS Part")
    assert [found.has_name(name) for name in ("site", "part", "v")] == [True, True, False]
    assert [key.sql() for key in found.nodes] == ["site", "v % 4"]


def test_without_partition_by_nothing_is_a_key():
    found = WindowPartitionKeys(sqlglot.select("site"))
    assert found.nodes == [] and not found.has(expression("site")) and not found.has_name("site")
