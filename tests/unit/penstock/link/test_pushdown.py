"""What of a query goes to other deployments."""

from __future__ import annotations

import pytest

from penstock.catalog.model import External
from penstock.link import pushdown
from penstock.sql import parse_one
from penstock.sql.plan import Column
from penstock.sql.statements import Query
from penstock.types import ColumnType

_COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("INT")),
    Column("site", ColumnType("INT")),
)
_TAGS = (Column("g", ColumnType("INT")), Column("h", ColumnType("INT")))
_FAR = {
    "near.one": External(
        1, "near", "one", "penstock", (("h1:1", "h2:1"),), "far", "meters", _COLUMNS
    ),
    "near.tagged": External(
        3, "near", "tagged", "penstock", (("h1:1", "h2:1"),), "far", "tagged", _COLUMNS, _TAGS
    ),
    "near.two": External(
        2, "near", "two", "penstock", (("h1:1",), ("h3:1",)), "far", "log", _COLUMNS
    ),
}
_ONE = "near.one at h1:1|h2:1"
_TWO = "near.two at h1:1, h3:1"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("SELECT v FROM here", []),
        (
            "SELECT count(*) AS n FROM one WHERE v > 1 INTERVAL(10s)",
            [
                ("runs in", "the deployment at h1:1|h2:1"),
                (
                    "pushed down",
                    "SELECT count(*) AS n FROM far.meters AS one WHERE v > 1 INTERVAL(10s)",
                ),
            ],
        ),
        # * of SELECT TAGS means the tags
        (
            "SELECT TAGS tbname, * FROM tagged",
            [
                ("runs in", "the deployment at h1:1|h2:1"),
                ("pushed down", "SELECT TAGS tbname, g, h FROM far.tagged AS tagged"),
            ],
        ),
        (
            "SELECT max(v), _tp_sn FROM two t WHERE t.site = 3",
            [
                ("runs in", "store"),
                ("reads", _TWO),
                (
                    "pushed down",
                    "SELECT tbname, `ts`, `v`, `site`, `_tp_sn` FROM `far`.`log` WHERE (site = 3)",
                ),
            ],
        ),
        (
            "SELECT count(*) FROM two WHERE v > 1 INTERVAL(10s)",
            [
                ("runs in", "store"),
                ("reads", _TWO),
                ("pushed down", "SELECT tbname, `ts`, `v`, `site` FROM `far`.`log`"),
            ],
        ),
        (
            "SELECT h.x FROM one o JOIN here h ON h.id = o.site WHERE o.v > 1 AND h.x = 2",
            [
                ("runs in", "store"),
                ("reads", "segments and the log's tail"),
                ("reads", _ONE),
                (
                    "pushed down",
                    "SELECT tbname, `ts`, `v`, `site` FROM `far`.`meters` WHERE (v > 1)",
                ),
            ],
        ),
    ],
)
def test_explain_says_what_is_asked_of_whom(text: str, lines: list[tuple[str, str]]) -> None:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    assert (
        pushdown.explain(
            statement.query, "near", lambda database, name: _FAR.get(f"{database}.{name}")
        )
        == lines
    )
