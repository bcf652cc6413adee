"""Functions of a row and the rows before it in a SELECT: types, and refusals with place and hint."""

from __future__ import annotations

import pytest

from penstock.sql.relational import Derived, SelectPlan, series_call
from tests.unit.sql.relational.test_binder import names, refusal, selection, types


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("diff(voltage)", "BIGINT"),
        ("DIFF(id, 3)", "BIGINT"),
        ("diff(on_)", "BIGINT"),
        ("diff(ts)", "BIGINT"),
        ("diff(current)", "DOUBLE"),
        ("diff(voltage * 2, 1)", "DOUBLE"),
        ("diff(NULL)", "DOUBLE"),
        ("diff(voltage) / 2", "DOUBLE"),
        ("abs(diff(voltage))", "BIGINT"),
        ("derivative(voltage, 1s, 0)", "DOUBLE"),
        ("derivative(on_, 90m, 1)", "DOUBLE"),
        ("csum(voltage)", "BIGINT"),
        ("csum(on_)", "BIGINT"),
        ("csum(id)", "BIGINT UNSIGNED"),
        ("csum(Phase)", "DOUBLE"),
        ("mavg(voltage, 1000)", "DOUBLE"),
        ("statecount(voltage, 'lt', -3)", "BIGINT"),
        ("state_count(current, 'NE', 0.5)", "BIGINT"),
        ("stateduration(voltage, 'GE', 3)", "BIGINT"),
        ("state_duration(voltage, 'EQ', 3, 1h)", "BIGINT"),
        ("irate(voltage)", "DOUBLE"),
        ("irate(on_)", "DOUBLE"),
    ],
)
def test_every_call_has_a_type(item: str, kind: str) -> None:
    assert types(f"SELECT {item} AS x FROM meters") == [kind]


def test_a_call_is_named_as_it_is_written_and_knows_its_constants() -> None:
    assert names("SELECT ts, Diff( height ) FROM places") == ["ts", "Diff( height )"]
    select = selection("SELECT stateduration(voltage, 'gt', -0.5, 2m) FROM meters")
    call = series_call(select.items[0].expression)
    assert call is not None
    assert call.options == ("GT", -0.5, 120_000)
    assert (str(call.argument), str(call.type)) == ("INT", "BIGINT")


def test_rows_are_in_order_of_time() -> None:
    order = selection("SELECT csum(voltage) FROM meters").series
    assert order is not None
    assert (order.time, order.precision, order.ties) == ("ts", "ms", ())


def test_rows_of_a_subquery_of_one_time_are_in_order_of_what_is_read() -> None:
    inner = "SELECT note, voltage, ts, id FROM meters"
    order = selection(f"SELECT csum(Voltage) FROM ({inner}) WHERE note > ''").series
    assert order is not None
    assert (order.time, order.ties) == ("ts", ("note", "voltage"))


def test_a_select_without_such_functions_has_no_order() -> None:
    select = selection("SELECT d FROM (SELECT ts, diff(voltage) AS d FROM meters)")
    assert select.series is None
    assert isinstance(select.source, Derived) and isinstance(select.source.query, SelectPlan)
    assert select.source.query.series is not None


HERE = "E_SERIES_HERE"
ARGUMENT = "E_FUNCTION_ARGUMENT"


@pytest.mark.parametrize(
    ("sql", "code", "column", "hint"),
    [
        ("SELECT 1 FROM meters WHERE diff(voltage) > 1", HERE, 28, "WHERE x > 0"),
        ("SELECT diff(voltage) d FROM meters WHERE d > 1", HERE, 42, "WHERE x > 0"),
        ("SELECT 1 FROM meters GROUP BY diff(voltage)", HERE, 31, "around it"),
        ("SELECT 1 FROM meters PARTITION BY csum(voltage)", HERE, 35, "around it"),
        ("SELECT diff(voltage) d FROM meters PARTITION BY d", HERE, 49, "around it"),
        ("SELECT diff(voltage) + 1 FROM meters PARTITION BY 1", HERE, 51, "tbname"),
        ("SELECT 1 FROM meters m JOIN places p ON diff(m.voltage) = 1", HERE, 41, "around it"),
        (
            "SELECT csum(diff(voltage)) FROM meters",
            HERE,
            13,
            "SELECT csum(x) FROM (SELECT ts, diff",
        ),
        ("SELECT diff(voltage) d, csum(d) FROM meters", HERE, 30, "SELECT csum(d) FROM"),
        ("SELECT max(diff(voltage)) FROM meters", HERE, 12, "SELECT max(x) FROM (SELECT ts, diff"),
        ("SELECT diff(max(voltage)) FROM meters", "E_AGGREGATE_HERE", 13, "subquery"),
        ("SELECT max(ts), mavg(voltage, 2) FROM meters", HERE, 17, "mavg(…) AS x"),
        ("SELECT diff(voltage) FROM meters ORDER BY sum(voltage)", HERE, 8, "diff(…) AS x"),
        ("SELECT diff(voltage) FROM meters GROUP BY tbname", HERE, 8, "PARTITION BY tbname"),
        ("SELECT ts FROM meters HAVING diff(voltage) > 1", HERE, 30, "PARTITION BY"),
        ("SELECT ts FROM meters ORDER BY diff(voltage)", HERE, 32, "ORDER BY x"),
        ("SELECT diff(voltage) FROM meters ORDER BY diff(id)", HERE, 43, "ORDER BY x"),
        ("SELECT diff(a.ts) FROM meters a, places b", HERE, 8, "JOIN b ON"),
        ("SELECT diff(1)", HERE, 8, "FROM (SELECT ts"),
        ("SELECT diff(id) FROM (SELECT id FROM meters)", HERE, 8, "select the time"),
        ("SELECT diff() FROM meters", ARGUMENT, 8, "diff(x, [ignore])"),
        ("SELECT derivative(id) FROM meters", ARGUMENT, 8, "derivative(x, unit, ignore_neg"),
        ("SELECT csum(id, 1) FROM meters", ARGUMENT, 8, "csum(x)"),
        ("SELECT diff(id, 4) FROM meters", ARGUMENT, 17, "constant"),
        ("SELECT diff(id, TRUE) FROM meters", ARGUMENT, 17, "constant"),
        ("SELECT diff(id, voltage) FROM meters", ARGUMENT, 17, "constant"),
        ("SELECT derivative(id, 1, 0) FROM meters", ARGUMENT, 23, "constant"),
        ("SELECT derivative(id, 1n, 0) FROM meters", ARGUMENT, 23, "constant"),
        ("SELECT derivative(id, 1b, 0) FROM meters", ARGUMENT, 23, "constant"),
        ("SELECT derivative(id, '1s', 0) FROM meters", ARGUMENT, 23, "constant"),
        ("SELECT derivative(id, 1s, 1s) FROM meters", ARGUMENT, 27, "constant"),
        ("SELECT mavg(id, 0) FROM meters", ARGUMENT, 17, "constant"),
        ("SELECT mavg(id, 1001) FROM meters", ARGUMENT, 17, "constant"),
        ("SELECT mavg(id, 1.5) FROM meters", ARGUMENT, 17, "constant"),
        ("SELECT statecount(id, 'XX', 1) FROM meters", ARGUMENT, 23, "operator, value"),
        ("SELECT statecount(id, GT, 1) FROM meters", "E_UNKNOWN_COLUMN", 23, ""),
        ("SELECT statecount(id, 'GT', 'a') FROM meters", ARGUMENT, 29, "constant"),
        ("SELECT stateduration(id, 'GT', 1, 1) FROM meters", ARGUMENT, 35, "[unit]"),
        ("SELECT csum(note) FROM meters", "E_TYPE", 13, "CAST"),
        ("SELECT mavg(ts, 2) FROM meters", "E_TYPE", 13, "CAST"),
        ("SELECT csum(volts) FROM meters", "E_UNKNOWN_COLUMN", 13, "voltage"),
        ("SELECT irate() FROM meters", ARGUMENT, 8, "irate(number)"),
        ("SELECT irate(id, id) FROM meters", ARGUMENT, 8, "irate(number)"),
        ("SELECT irate(note) FROM meters", "E_TYPE", 14, "CAST"),
        ("SELECT irate(id) FROM (SELECT id FROM meters)", ARGUMENT, 8, "select it first"),
        ("SELECT 1 FROM meters WHERE irate(id) > 1", "E_AGGREGATE_HERE", 28, "HAVING"),
        ("SELECT derivativ(id, 1s, 0) FROM meters", "E_UNKNOWN_FUNCTION", 8, "derivative()?"),
    ],
)
def test_what_is_refused_says_where_and_what_to_do(
    sql: str, code: str, column: int, hint: str
) -> None:
    error = refusal(sql)
    assert (error.code, error.column) == (code, column), str(error)
    assert hint in error.hint, str(error)
    assert error.line == 1 and error.snippet.rstrip().endswith("^"), error.snippet


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT diff(voltage) AS d, d * 2 FROM meters ORDER BY d",
        "SELECT diff(voltage) FROM meters ORDER BY DIFF(voltage)",
        "SELECT DISTINCT diff(voltage), csum(id) FROM meters PARTITION BY tbname, site",
        "SELECT max(d) FROM (SELECT ts, diff(voltage) AS d FROM meters) WHERE d > 1",
        "SELECT site, irate(voltage), count(*) FROM meters GROUP BY site HAVING irate(id) > 1",
        "SELECT ts FROM meters WHERE voltage > (SELECT max(d) FROM (SELECT ts, csum(id) d FROM meters))",
    ],
)
def test_what_is_possible(sql: str) -> None:
    assert selection(sql).outputs
