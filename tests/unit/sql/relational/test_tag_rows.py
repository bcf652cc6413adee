"""SELECT TAGS in a plan: one row for each child table, and the names that it knows."""

from __future__ import annotations

import pytest

from penstock.sql.relational import Scan
from tests.unit.sql.relational.test_binder import names, refusal, selection, types


def test_the_tags_of_child_tables_are_read() -> None:
    source = selection("SELECT TAGS site FROM meters m WHERE tbname = 'a'").source
    assert isinstance(source, Scan)
    assert (source.table, source.name, source.of_tags) == ("meters", "m", True)
    plain = selection("SELECT site FROM meters").source
    assert isinstance(plain, Scan)
    assert not plain.of_tags


def test_each_select_says_for_itself_what_it_reads() -> None:
    plan = selection("SELECT voltage FROM meters WHERE site IN (SELECT TAGS site FROM meters)")
    assert isinstance(plan.source, Scan)
    assert not plan.source.of_tags
    # a column of the SELECT around is no column of this one
    selection("SELECT TAGS (SELECT max(voltage) FROM meters) AS x FROM meters")


def test_names_and_types() -> None:
    assert names("SELECT TAGS * FROM meters") == ["site"]
    assert types("SELECT TAGS tbname, *, upper(m.site) FROM meters m") == [
        "VARCHAR(192)",
        "NCHAR(8)",
        "NCHAR(8)",
    ]


@pytest.mark.parametrize(
    ("sql", "code", "column", "hint"),
    [
        (
            "SELECT TAGS Voltage FROM meters",
            "E_UNKNOWN_COLUMN",
            13,
            "SELECT TAGS knows tbname, site",
        ),
        ("SELECT TAGS * FROM meters WHERE ts > 1", "E_UNKNOWN_COLUMN", 33, "leave TAGS out"),
        ("SELECT TAGS _c0 FROM meters", "E_UNKNOWN_COLUMN", 13, "known here: tbname, site"),
        ("SELECT TAGS site FROM places", "E_NOT_A_STABLE", 23, "leave TAGS out"),
        ("SELECT TAGS * FROM meters, places", "E_UNSUPPORTED_QUERY", 20, "join it as a subquery"),
        ("SELECT TAGS a FROM (SELECT 1 AS a)", "E_UNSUPPORTED_QUERY", 20, "join it as a subquery"),
        ("SELECT TAGS 1", "E_UNSUPPORTED_QUERY", 1, "join it as a subquery"),
    ],
)
def test_what_is_refused(sql: str, code: str, column: int, hint: str) -> None:
    error = refusal(sql)
    assert (error.code, error.column) == (code, column)
    assert hint in (error.hint or "")
