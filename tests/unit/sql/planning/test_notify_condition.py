"""WHERE of NOTIFY: bound to the columns of the result and the keys, refused with its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.sql.parser import parse_one
from penstock.sql.plan import StreamPlan
from penstock.sql.planner import plan_stream
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from tests.unit.sql.memory_view import MemoryView
from tests.unit.sql.planning.binding import MET
from tests.unit.sql.reading import refusal

BYTES = ColumnType("VARBINARY", length=8)

#: `met` has ts, Amps INT, b INT, d DOUBLE, s VARCHAR, and the tags ta and tb
SELECT = (
    "SELECT _wstart, avg(Amps), max(d) AS `Top`, last(s) AS word FROM met"
    " PARTITION BY tbname, ta AS site INTERVAL(1s)"
)


def made(where: str, events: str = "'WINDOW_CLOSE'") -> CreateStream:
    found = parse_one(f"CREATE STREAM s INTO o AS {SELECT}\nNOTIFY ON ({events}) WHERE {where}")
    assert isinstance(found, CreateStream)
    return found


def plan(statement: CreateStream) -> StreamPlan:
    view = MemoryView()
    view.add(MET)
    return plan_stream(statement, view, database="db", stream_id=1, target_id=2).plan


@pytest.mark.parametrize(
    ("where", "planned"),
    [
        ("`avg(Amps)` > 5 AND top < 2.5", "`avg(Amps)` > 5 AND top < 2.5"),
        ("avg( amps ) > 5", "`avg(Amps)` > 5"),
        ("abs(avg(Amps) - Top) > 5", "abs(`avg(Amps)` - Top) > 5"),
        ("word LIKE 'a%' OR word IS NULL", "word LIKE 'a%' OR word IS NULL"),
        ("tbname IN ('d1', 'd2') AND site = 3", "tbname IN ('d1', 'd2') AND site = 3"),
        ("_wstart >= '2026-01-01 00:00:00'", "_wstart >= '2026-01-01 00:00:00'"),
    ],
)
def test_a_condition_names_results_and_keys(where: str, planned: str) -> None:
    found = plan(made(where))
    assert found.notify is not None and found.notify.where == planned
    assert StreamPlan.from_json(found.to_json()) == found


def test_a_window_that_opens_has_keys_only() -> None:
    both = "'WINDOW_OPEN', 'WINDOW_CLOSE'"
    found = plan(made("tbname = 'd1' AND site < 4", both))
    assert found.notify is not None and found.notify.where == "tbname = 'd1' AND site < 4"
    error = refusal(lambda: plan(made("site < 4 AND Top > 1", both)))
    assert (error.code, error.line) == ("E_NOTIFY_WHERE", 2)
    assert "a window that opens has no result yet, and no Top" in error.message


@pytest.mark.parametrize(
    ("where", "code", "at", "said"),
    [
        ("d > 1", "E_UNKNOWN_COLUMN", "d > 1", "there is no column d"),
        ("Top = 'a'", "E_TYPE", "Top = 'a'", "DOUBLE and VARCHAR(1) do not fit"),
        ("Top", "E_TYPE", "Top", "a condition is needed here, not DOUBLE"),
        ("Top > 1 AND _wstart < now", "E_NOTIFY_WHERE", "Top", "the time now differs"),
        ("TODAY() > _wstart", "E_NOTIFY_WHERE", "TODAY", "the time now differs"),
        ("rand() > Top", "E_FORBIDDEN_FUNC", "rand()", "rand()"),
        ("Top > 1 OR sum(Amps) > 1", "E_NOTIFY_WHERE", "sum(Amps)", "has no such sum()"),
        ("o.top > 1", "E_NOTIFY_WHERE", "o.top", "o is no table here"),
        ("half(Top) > 1", "E_UNKNOWN_FUNCTION", "half(Top)", "there is no function half()"),
        ("Top IN (SELECT 1)", "E_UNSUPPORTED_EXPRESSION", "", "not a query"),
    ],
)
def test_what_is_no_condition_is_refused_at_its_place(
    where: str, code: str, at: str, said: str
) -> None:
    statement = made(where)
    error = refusal(lambda: plan(statement))
    assert (error.code, error.line) == (code, 2)
    assert said in error.message
    line = statement.source.text.split("\n")[1]
    assert line[error.column - 1 :].startswith(at)


def test_a_column_of_bytes_is_none_that_events_have() -> None:
    view = MemoryView()
    view.add(
        replace(
            MET,
            columns=(*MET.columns[:1], replace(MET.columns[4], type=BYTES)),
        )
    )
    text = "CREATE STREAM s INTO o AS SELECT _wstart, last(s) v FROM met INTERVAL(1s)"
    statement = parse_one(f"{text} NOTIFY ON ('WINDOW_CLOSE') WHERE v IS NULL")
    assert isinstance(statement, CreateStream)
    error = refusal(lambda: plan_stream(statement, view, database="db", stream_id=1, target_id=2))
    assert error.code == "E_UNKNOWN_COLUMN"
