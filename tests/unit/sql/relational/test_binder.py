"""Names, types and refusals of the binder, each error with its place and way out."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.errors import PenstockError, SqlSemanticError
from penstock.sql import parse_one
from penstock.sql.functions import AGGREGATES, QUERY_ONLY, REGISTRY
from penstock.sql.relational import (
    Output,
    QueryPlan,
    QueryScope,
    SelectPlan,
    TableColumns,
    bind,
    binding_of,
    nodes_of,
)
from penstock.sql.relational.signatures import AGGREGATE_NAMES, result_type
from penstock.sql.statements import Query
from penstock.types import ColumnType
from penstock.udf import UserFunction

DOUBLE = ColumnType("DOUBLE")
TWICE = UserFunction(30, "twice", (DOUBLE,), DOUBLE, "def twice(a):\n    return a")
TABLES = {
    "meters": {
        "ts": ColumnType("TIMESTAMP"),
        "current": ColumnType("FLOAT"),
        "voltage": ColumnType("INT"),
        "Phase": ColumnType("DOUBLE"),
        "note": ColumnType("VARCHAR", length=20),
        "id": ColumnType("BIGINT UNSIGNED"),
        "on_": ColumnType("BOOL"),
        "site": ColumnType("NCHAR", length=8),
    },
    "places": {
        "ts": ColumnType("TIMESTAMP"),
        "site": ColumnType("NCHAR", length=8),
        "height": ColumnType("INT"),
    },
}


def columns(name: str) -> TableColumns:
    outputs = tuple(Output(n, kind) for n, kind in TABLES[name.lower()].items())
    tags = frozenset(("site",)) if name.lower() == "meters" else frozenset()
    return TableColumns(outputs, "ms", database="power", tags=tags)


def bound(sql: str) -> QueryPlan:
    statement = parse_one(sql)
    assert isinstance(statement, Query)
    scope = QueryScope(
        statement.source,
        lambda table: columns(table.name),
        functions=lambda name: TWICE if name == "twice" else None,
    )
    return bind(statement.query, scope)


def selection(sql: str) -> SelectPlan:
    plan = bound(sql)
    assert isinstance(plan, SelectPlan)
    return plan


def types(sql: str) -> list[str]:
    return [str(output.type) for output in bound(sql).outputs]


def names(sql: str) -> list[str]:
    return [output.name for output in bound(sql).outputs]


def refusal(sql: str) -> SqlSemanticError:
    with pytest.raises(SqlSemanticError) as caught:
        bound(sql)
    return caught.value


# ---------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("voltage", "INT"),
        ("VOLTAGE", "INT"),
        ("phase", "DOUBLE"),
        ("tbname", "VARCHAR(192)"),
        ("_c0", "TIMESTAMP"),
        ("_rowts", "TIMESTAMP"),
        ("_tp_time", "TIMESTAMP"),
        ("_tp_sn", "BIGINT"),
        ("_tp_shard", "INT"),
        ("meters.voltage", "INT"),
        ("power.meters.voltage", "INT"),
        ("1", "INT"),
        ("3000000000", "BIGINT"),
        ("1.5", "DOUBLE"),
        ("'text'", "VARCHAR(4)"),
        ("TRUE", "BOOL"),
        ("1h", "BIGINT"),
        ("voltage + 1", "DOUBLE"),
        ("voltage % 2", "DOUBLE"),
        ("-voltage", "DOUBLE"),
        ("voltage & 1", "BIGINT"),
        ("ts - ts", "BIGINT"),
        ("ts + 1h", "TIMESTAMP"),
        ("ts - 1000", "TIMESTAMP"),
        ("ts > '2024-01-31'", "BOOL"),
        ("note LIKE 'a%'", "BOOL"),
        ("voltage IN (1, 2)", "BOOL"),
        ("voltage BETWEEN 1 AND 2", "BOOL"),
        ("note IS NULL", "BOOL"),
        ("CASE WHEN on_ THEN voltage ELSE 1 END", "INT"),
        ("CASE WHEN on_ THEN voltage ELSE 1.5 END", "DOUBLE"),
        ("CAST(voltage AS VARCHAR(9))", "VARCHAR(9)"),
        ("abs(voltage)", "INT"),
        ("upper(note)", "VARCHAR(20)"),
        ("concat(note, site)", "NCHAR(28)"),
        ("trim(BOTH 'x' FROM note)", "VARCHAR(20)"),
        ("coalesce(voltage, 1.5)", "DOUBLE"),
        ("now", "TIMESTAMP"),
        ("year(ts)", "BIGINT"),
        ("md5(note)", "VARCHAR(32)"),
        ("twice(voltage)", "DOUBLE"),
        ("count(*)", "BIGINT"),
        ("sum(voltage)", "BIGINT"),
        ("sum(id)", "BIGINT UNSIGNED"),
        ("sum(current)", "DOUBLE"),
        ("avg(voltage)", "DOUBLE"),
        ("min(voltage)", "INT"),
        ("max(note)", "VARCHAR(20)"),
        ("spread(ts)", "DOUBLE"),
        ("last(ts)", "TIMESTAMP"),
        ("count(DISTINCT note)", "BIGINT"),
        ("apercentile(voltage, 99.5)", "DOUBLE"),
        ("median(ts)", "TIMESTAMP"),
        ("median(voltage)", "DOUBLE"),
        ("sum(voltage) / count(*)", "DOUBLE"),
        ("(SELECT max(height) FROM places)", "INT"),
        ("EXISTS(SELECT 1 FROM places)", "BOOL"),
        ("voltage IN (SELECT height FROM places)", "BOOL"),
        ("NULL", "NULL"),
    ],
)
def test_every_expression_has_a_type(item: str, kind: str) -> None:
    assert types(f"SELECT {item} AS x FROM meters") == [kind]


def test_every_node_knows_its_type() -> None:
    select = selection("SELECT voltage + 1 AS x FROM meters WHERE ts > '2024-01-31'")
    addition = select.items[0].expression
    assert isinstance(addition, exp.Add)
    assert [str(binding.type) for n in (addition, addition.left) if (binding := binding_of(n))] == [
        "DOUBLE",
        "INT",
    ]
    again = binding_of(addition.copy())
    assert again is not None and again.kind == "DOUBLE"


def test_every_function_of_a_query_has_a_rule() -> None:
    of_the_store = {"current_timestamp", "database", "server_version", "variance_pop"}
    every = (QUERY_ONLY.keys() | of_the_store) - AGGREGATES.keys() - REGISTRY.keys()
    assert [name for name in sorted(every) if result_type(name, [DOUBLE]) is None] == []
    assert AGGREGATES.keys() <= AGGREGATE_NAMES


# ---------------------------------------------------------------- what is left to be understood


def test_a_star_is_every_column_but_the_virtual_ones() -> None:
    assert names("SELECT * FROM meters") == list(TABLES["meters"])
    assert names("SELECT p.* FROM meters m, places p") == list(TABLES["places"])
    both = names("SELECT * FROM meters m JOIN places p ON m.site = p.site")
    assert both == [*TABLES["meters"], *TABLES["places"]]


def test_columns_that_using_makes_one_of_come_once() -> None:
    merged = "SELECT * FROM meters m JOIN places p USING (TS, site)"
    assert names(merged) == [*TABLES["meters"], "height"]
    assert names("SELECT ts, site FROM meters m JOIN places p USING (ts, site)") == ["ts", "site"]


def test_the_right_side_of_a_filtering_join_has_no_columns() -> None:
    sql = "SELECT * FROM meters m LEFT SEMI JOIN places p ON m.site = p.site"
    assert names(sql) == list(TABLES["meters"])


def test_calls_of_all_columns_and_of_several() -> None:
    assert names("SELECT last(*) FROM places") == list(TABLES["places"])
    assert types("SELECT last(*) FROM places") == [str(k) for k in TABLES["places"].values()]
    assert names("SELECT last(ts, height) FROM places") == ["last(ts)", "last(height)"]


def test_a_child_table_shows_its_columns_and_knows_its_tags() -> None:
    outputs = tuple(Output(n, kind) for n, kind in TABLES["meters"].items())
    child = TableColumns(outputs, tags=frozenset(("site",)), hidden=frozenset(("site",)))
    shown = [n for n in TABLES["meters"] if n != "site"]
    for item, wanted in (("*", shown), ("m1.*", shown), ("last(*)", shown), ("site", ["site"])):
        statement = parse_one(f"SELECT {item} FROM m1")
        assert isinstance(statement, Query)
        found = bind(statement.query, QueryScope(statement.source, lambda _: child))
        assert [output.name for output in found.outputs] == wanted


def test_an_item_is_called_as_it_is_written() -> None:
    assert names("SELECT COUNT( * ), height+1, ts, height h FROM places GROUP BY ts, height") == [
        "COUNT( * )",
        "height+1",
        "ts",
        "h",
    ]


def test_a_tag_beside_its_table_is_the_one_of_the_latest_row() -> None:
    found = bound("SELECT SITE, upper(site), count(*) FROM meters PARTITION BY tbname")
    assert [(o.name, str(o.type)) for o in found.outputs[:2]] == [
        ("site", "NCHAR(8)"),
        ("upper(site)", "NCHAR(8)"),
    ]
    calls = [str(node.this) for node in nodes_of(found) if isinstance(node, exp.Anonymous)]
    assert calls.count("last_row") == 2
    error = refusal("SELECT note, count(*) FROM meters PARTITION BY tbname")
    assert error.code == "E_NOT_GROUPED"


# ---------------------------------------------------------------- scopes


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT voltage AS v FROM meters ORDER BY v",
        "SELECT voltage AS v FROM meters ORDER BY 1 DESC",
        "SELECT sum(voltage) AS s FROM meters GROUP BY site HAVING s > 3 ORDER BY s",
        "SELECT voltage + 1 AS v, count(*) FROM meters GROUP BY v",
        "SELECT voltage + 1, count(*) FROM meters GROUP BY 1",
        "SELECT voltage + 1, count(*) FROM meters GROUP BY voltage + 1",
        "SELECT voltage + 1 - 2, count(*) FROM meters GROUP BY voltage + 1",
        "SELECT (voltage), count(*) FROM meters m GROUP BY m.voltage",
        "SELECT count(*) FROM meters GROUP BY site ORDER BY count(*)",
        "SELECT site, count(*) FROM meters PARTITION BY site",
        "SELECT tbname, last(voltage) FROM meters PARTITION BY tbname",
        "SELECT tbname, site, upper(site), count(*) FROM meters GROUP BY tbname",
        "SELECT max(voltage), ts, site FROM meters",
        "SELECT last(voltage) - 1, ts FROM meters ORDER BY ts",
        "SELECT site, max(voltage), ts, note FROM meters GROUP BY site",
        "SELECT last_row(voltage), last_row(note), ts FROM meters PARTITION BY tbname",
        "SELECT last(v) FROM (SELECT ts AS t, voltage AS v FROM meters)",
        "SELECT v FROM (SELECT voltage AS v, ts FROM meters) ORDER BY ts",
        "SELECT x.v FROM (SELECT voltage AS v FROM meters) x",
        "SELECT site FROM meters m WHERE EXISTS (SELECT 1 FROM places WHERE height = voltage)",
        "SELECT site FROM meters m WHERE voltage > (SELECT max(height) FROM places p"
        " WHERE p.site = m.site)",
        "SELECT site FROM meters UNION SELECT site FROM places ORDER BY site",
        "(SELECT site FROM meters LIMIT 1) UNION ALL (SELECT site FROM places) ORDER BY 1",
        "SELECT a.voltage FROM meters a JOIN meters b ON a.ts = b.ts",
        "SELECT 1 + 1",
        "SELECT DISTINCT site FROM meters",
    ],
)
def test_what_may_be_said(sql: str) -> None:
    assert len(bound(sql).outputs) >= 1


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("sql", "code", "column", "hint"),
    [
        ("SELECT voltag FROM meters", "E_UNKNOWN_COLUMN", 8, "did you mean voltage?"),
        ("SELECT m.voltag FROM meters m", "E_UNKNOWN_COLUMN", 8, "did you mean voltage?"),
        ("SELECT 1 FROM meters WHERE hight > 1", "E_UNKNOWN_COLUMN", 28, "known here"),
        ("SELECT meterz.ts FROM meters", "E_UNKNOWN_COLUMN", 8, "did you mean meters.ts?"),
        ("SELECT meters.ts FROM meters m", "E_UNKNOWN_COLUMN", 8, "FROM has m"),
        ("SELECT q.* FROM meters", "E_UNKNOWN_COLUMN", 8, "FROM has meters"),
        ("SELECT ts FROM meters m, places p", "E_AMBIGUOUS_COLUMN", 8, "write m.ts or p.ts"),
        ("SELECT _wstart FROM meters", "E_UNKNOWN_COLUMN", 8, "INTERVAL(10s)"),
        ("SELECT x", "E_UNKNOWN_COLUMN", 8, "there is no FROM"),
        ("SELECT *", "E_QUERY", 8, "add FROM"),
        ("SELECT 1 FROM meters, meters", "E_QUERY", 23, "meters AS other"),
        ("SELECT 1 FROM meters JOIN places USING (height)", "E_UNKNOWN_COLUMN", 41, "write ON"),
        ("SELECT 1 FROM meters GROUP BY volts", "E_UNKNOWN_COLUMN", 31, "voltage"),
        ("SELECT 1 FROM meters ORDER BY volts", "E_UNKNOWN_COLUMN", 31, "voltage"),
        ("SELECT site, count(*) FROM meters", "E_NOT_GROUPED", 8, "GROUP BY site"),
        ("SELECT ts, sum(voltage) FROM meters", "E_NOT_GROUPED", 8, "last(ts)"),
        ("SELECT note FROM meters GROUP BY site", "E_NOT_GROUPED", 8, "note in GROUP BY"),
        (
            "SELECT last(v) FROM (SELECT voltage AS v FROM meters)",
            "E_FUNCTION_ARGUMENT",
            8,
            "max()",
        ),
        ("SELECT site FROM meters ORDER BY 'site'", "E_QUERY", 34, "without quotes"),
        ("SELECT 1 FROM meters WHERE voltage IN (SELECT site FROM places)", "E_TYPE", 28, "CAST"),
        ("SELECT regexp_matches(site, '[') FROM meters", "E_PATTERN", 29, ""),
        ("SELECT max(voltage), min(voltage), ts FROM meters", "E_NOT_GROUPED", 36, "last(ts)"),
        ("SELECT count(*) FROM meters GROUP BY site HAVING note = ''", "E_NOT_GROUPED", 50, "note"),
        ("SELECT count(*) FROM meters ORDER BY ts", "E_NOT_GROUPED", 38, "GROUP BY ts"),
        ("SELECT 1 FROM meters WHERE count(*) > 1", "E_AGGREGATE_HERE", 28, "HAVING"),
        ("SELECT 1 FROM meters GROUP BY sum(voltage)", "E_AGGREGATE_HERE", 31, "HAVING"),
        ("SELECT sum(voltage) s FROM meters WHERE s > 1", "E_AGGREGATE_HERE", 41, "HAVING"),
        ("SELECT sum(voltage) s FROM meters GROUP BY 1", "E_AGGREGATE_HERE", 44, "group by"),
        ("SELECT sum(max(voltage)) FROM meters", "E_AGGREGATE_HERE", 12, "subquery"),
        ("SELECT sum(note) FROM meters", "E_TYPE", 12, "CAST"),
        ("SELECT sum() FROM meters", "E_FUNCTION_ARGUMENT", 8, "sum(number)"),
        ("SELECT sum(*) FROM meters", "E_FUNCTION_ARGUMENT", 8, "sum(number)"),
        ("SELECT apercentile(voltage, 200) FROM meters", "E_FUNCTION_ARGUMENT", 8, "percentile"),
        ("SELECT abs(note) FROM meters", "E_TYPE", 12, "CAST"),
        ("SELECT abs(1, 2) FROM meters", "E_FUNCTION_ARGUMENT", 8, "abs(number)"),
        ("SELECT twice() FROM meters", "E_FUNCTION_ARGUMENT", 8, "twice(DOUBLE)"),
        ("SELECT abz(voltage) FROM meters", "E_UNKNOWN_FUNCTION", 8, "did you mean abs()?"),
        ("SELECT qqqqqq(voltage) FROM meters", "E_UNKNOWN_FUNCTION", 8, "docs/sql-functions.md"),
        ("SELECT twa(note) FROM meters", "E_TYPE", 12, "CAST"),
        ("SELECT abs(*) FROM meters", "E_UNSUPPORTED_EXPRESSION", 0, ""),
        ("SELECT note + 1 FROM meters", "E_TYPE", 8, "CAST"),
        ("SELECT ts + ts FROM meters", "E_TYPE", 8, "subtract"),
        ("SELECT 1 FROM meters WHERE ts > 'soon'", "E_TYPE", 33, "2024-01-31"),
        ("SELECT 1 FROM meters WHERE voltage = 'x'", "E_TYPE", 28, "write a number"),
        ("SELECT 1 FROM meters WHERE ts = on_", "E_TYPE", 28, "CAST"),
        ("SELECT 1 FROM meters WHERE note", "E_TYPE", 28, "compare"),
        ("SELECT 1 FROM meters m JOIN places p ON m.note", "E_TYPE", 41, "compare"),
        ("SELECT 1 FROM meters HAVING note", "E_TYPE", 29, "compare"),
        ("SELECT CASE WHEN on_ THEN ts ELSE on_ END FROM meters", "E_TYPE", 8, "CAST"),
        ("SELECT 1 FROM meters ORDER BY 2", "E_QUERY", 31, "from 1 to 1"),
        ("SELECT (SELECT ts, site FROM places) FROM meters", "E_QUERY", 8, "one column"),
        ("SELECT ts IN (SELECT on_ FROM meters) FROM places", "E_TYPE", 8, "CAST"),
        ("SELECT ts FROM places UNION SELECT ts, site FROM places", "E_QUERY", 29, "same number"),
        ("SELECT ts FROM meters UNION SELECT on_ FROM meters", "E_TYPE", 29, "CAST"),
        (
            "SELECT ts FROM meters UNION SELECT ts FROM places ORDER BY site",
            "E_UNKNOWN_COLUMN",
            60,
            "",
        ),
    ],
)
def test_what_is_refused_says_where_and_what_to_do(
    sql: str, code: str, column: int, hint: str
) -> None:
    error = refusal(sql)
    assert (error.code, error.column) == (code, column), str(error)
    assert hint in error.hint, str(error)
    if column:
        assert error.line == 1 and error.snippet.endswith("^"), error.snippet


def test_places_are_right_on_later_lines_too() -> None:
    error = refusal("SELECT ts,\n  site\nFROM meters\nWHERE heigth > 1")
    assert (error.line, error.column) == (4, 7)
    assert error.snippet == "WHERE heigth > 1\n      ^^^^^^"


# ---------------------------------------------------------------- hostile text


@pytest.mark.parametrize("name", ["x`y", "a.b", '"; --', "\u202e", "_penstock_subquery_1", "ts\0"])
def test_hostile_names_are_names(name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    try:
        error = refusal(f"SELECT {quoted} FROM meters")
    except PenstockError as refused:  # the parser's
        assert refused.code == "E_SYNTAX"
    else:
        assert error.code == "E_UNKNOWN_COLUMN" and name in error.message
        assert names("SELECT x.ts FROM (SELECT ts FROM meters) x") == ["ts"]
        assert names(f"SELECT ts AS {quoted} FROM meters") == [name]


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%", "&", " AND ", " OR "])
def test_a_long_chain_is_bound_without_a_deep_stack(operator: str) -> None:
    assert len(types("SELECT " + operator.join(["voltage"] * 401) + " AS x FROM meters")) == 1
    grouped = operator.join(["voltage"] * 401)
    assert len(types(f"SELECT {grouped} AS x, count(*) FROM meters GROUP BY voltage")) == 2


def test_deep_nesting_is_bound() -> None:
    nested = "(" * 45 + "voltage" + ")" * 45
    assert types(f"SELECT {nested} AS x FROM meters") == ["INT"]
    calls = "abs(" * 20 + "voltage" + ")" * 20
    assert types(f"SELECT {calls} AS x FROM meters") == ["INT"]
    queries = "(SELECT x FROM " * 20 + "(SELECT voltage AS x FROM meters)" + ")" * 20
    assert types(f"SELECT x FROM {queries}") == ["INT"]
    many = " UNION SELECT voltage FROM meters" * 47
    assert types(f"SELECT voltage FROM meters{many}") == ["INT"]


def test_a_value_that_is_written_twice_at_each_level_costs_nothing() -> None:
    greatest = "greatest(" * 20 + "voltage" + ", 1)" * 20
    assert types(f"SELECT {greatest} AS x FROM meters") == ["INT"]


def test_half_a_character_is_refused() -> None:
    assert refusal("SELECT '\ud800' FROM meters").code == "E_CONSTANT"
