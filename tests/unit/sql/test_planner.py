"""What the planner makes of statements, and every refusal it knows."""

from __future__ import annotations

import dataclasses

import pytest

from penstock.errors import SqlError, SqlSemanticError
from penstock.sql.compile import compile_expression, parse_expression
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Column, Duration, Fill, Interval, StreamPlan, Trigger
from penstock.sql.planner import REFUSALS, TableDef, explain
from penstock.types import ColumnType
from tests.unit.sql.memory_view import MemoryView, plan

DDL = (
    "CREATE STABLE met (ts TIMESTAMP, a INT, b INT, c INT, d DOUBLE, s VARCHAR(20), f FLOAT) TAGS (ta INT, tb VARCHAR(20), tn NCHAR(8))",
    "CREATE TABLE d1 USING met TAGS (1, 'x', 'y')",
    "CREATE TABLE p (Ts TIMESTAMP, A INT, big VARCHAR(5000), t2 TIMESTAMP, o BOOL, v VARBINARY(10), m DECIMAL(10,2))",
    "CREATE STABLE js (ts TIMESTAMP, a INT) TAGS (j JSON)",
    "CREATE STABLE tgt (ts TIMESTAMP, a INT, b INT) TAGS (ta VARCHAR(20))",
    "CREATE STABLE grp (ts TIMESTAMP, a INT) TAGS (g BIGINT UNSIGNED)",
    "CREATE TABLE ck (ts TIMESTAMP, k INT COMPOSITE KEY, x INT)",
    "CREATE STABLE tck (ts TIMESTAMP, k INT COMPOSITE KEY, x INT) TAGS (g BIGINT UNSIGNED)",
    "CREATE STABLE used (ts TIMESTAMP, a BIGINT) TAGS (g BIGINT UNSIGNED)",
    "CREATE VTABLE v1 (ts TIMESTAMP, a INT FROM p.A)",
)


@pytest.fixture
def view() -> MemoryView:
    made = MemoryView(*DDL, databases={"us": "us"})
    made.streams["db", "used"] = ["other"]
    return made


def one(text: str, view: MemoryView) -> StreamPlan:
    return plan(text if text.startswith("CREATE") else f"CREATE STREAM s1 {text}", view).plan


def outputs(made: StreamPlan) -> list[tuple[str, str, str]]:
    return [(o.name, o.sql, str(o.type)) for o in made.outputs]


def aggregates(made: StreamPlan) -> list[tuple[str, str | None, str, str | None]]:
    return [(a.function, a.sql, str(a.type), a.of) for a in made.aggregates]


# ---------------------------------------------------------------- what comes out


def test_defaults(view: MemoryView) -> None:
    made = one("INTO o AS SELECT _wstart, count(*) FROM met INTERVAL(10s)", view)
    assert made.trigger == Trigger("window_close")
    assert (made.ignore_expired, made.ignore_update, made.fill_history, made.on_error) == (
        True,
        True,
        False,
        "dead_letter",
    )
    assert (made.watermark, made.delete_mark, made.idle_timeout, made.notify) == (
        Duration(0, "a"),
        None,
        None,
        None,
    )
    assert made.fill == Fill("none") and made.where is None and made.path == "exchange"
    assert made.window == Interval(Duration(10, "s"), Duration(10, "s"))
    assert (made.stream_id, made.target.table_id, made.database, made.timezone) == (
        7,
        99,
        "db",
        "UTC",
    )


def test_new_target(view: MemoryView) -> None:
    planned = plan(
        "CREATE STREAM s1 INTO us.o AS SELECT _wstart, count(*), AVG(d) FROM met PARTITION BY tbname INTERVAL(10s)",
        view,
    )
    table = planned.new_target
    made = planned.plan
    assert table == TableDef(
        99,
        "us",
        "o",
        "stable",
        (
            Column("_wstart", ColumnType("TIMESTAMP")),
            Column("count(*)", ColumnType("BIGINT")),
            Column("AVG(d)", ColumnType("DOUBLE")),
        ),
        (
            Column("tag_tbname", ColumnType("VARCHAR", length=192)),
            Column("group_id", ColumnType("BIGINT UNSIGNED")),
        ),
        "us",
    )
    assert made.target.column_of == ("_wstart", "count(*)", "AVG(d)") and made.target.tag_of == (
        0,
        "group_id",
    )
    assert made.target.precision == "us" and made.source.precision == "ms" and made.path == "scan"


def test_aggregates_are_shared_and_scalars_stay_outside(view: MemoryView) -> None:
    made = one(
        "INTO o AS SELECT _wstart, avg(a) + sum(B) * 2 x, round(AVG(a), 1) y, count(1) FROM met INTERVAL(10s)",
        view,
    )
    assert aggregates(made) == [
        ("avg", "a", "DOUBLE", None),
        ("sum", "b", "BIGINT", None),
        ("count", "1", "BIGINT", None),
    ]
    assert outputs(made) == [
        ("_wstart", "_wstart", "TIMESTAMP"),
        ("x", "_a0 + _a1 * 2", "DOUBLE"),
        ("y", "round(_a0, 1)", "DOUBLE"),
        ("count(1)", "_a2", "BIGINT"),
    ]


def test_companions(view: MemoryView) -> None:
    made = one(
        "INTO o AS SELECT _wstart, max(a), s, b + 1 n, count(*) FROM met INTERVAL(10s)", view
    )
    assert aggregates(made)[:3] == [
        ("max", "a", "INT", None),
        ("companion", "s", "VARCHAR(20)", "_a0"),
        ("companion", "b", "INT", "_a0"),
    ]
    assert outputs(made)[3] == ("n", "_a2 + 1", "DOUBLE")


def test_the_name_of_a_key_stays_one_value_among_operators(view: MemoryView) -> None:
    made = one(
        "INTO o AS SELECT _wstart, max(k * 2), k * 3 FROM met WHERE k * 2 > 1"
        " PARTITION BY a + 1 AS k INTERVAL(10s)",
        view,
    )
    assert made.where == "(a + 1) * 2 > 1"
    assert aggregates(made) == [("max", "(a + 1) * 2", "DOUBLE", None)]
    assert [sql for _, sql, _ in outputs(made)] == ["_wstart", "_a0", "_k0 * 3"]


def test_state_may_be_selected(view: MemoryView) -> None:
    made = one("INTO o AS SELECT _wstart, a, count(*) FROM d1 STATE_WINDOW(a)", view)
    assert aggregates(made)[0] == ("first", "a", "INT", None)


def test_keys_group_key_and_tbname(view: MemoryView) -> None:
    listed = "_wstart, tbname AS tn, _group_key(a+b) g, A + B h, last(ta)"
    made = one(f"INTO o AS SELECT {listed} FROM met PARTITION BY TBNAME, a + b INTERVAL(1s)", view)
    assert [(k.alias, k.sql, str(k.type)) for k in made.keys] == [
        ("tbname", "tbname", "VARCHAR(192)"),
        ("a + b", "a + b", "DOUBLE"),
    ]
    assert [o.sql for o in made.outputs] == ["_wstart", "_k0", "_k1", "_k1", "_a0"]
    assert made.path == "scan"


@pytest.mark.parametrize(
    ("listed", "name"),
    [
        ("count(*)", "_wstart"),
        ("count(*) _wstart", "ts"),
        ("count(*) _wstart, sum(a) TS", "ts1"),
        ("first(ts)", "_wstart"),
    ],
)
def test_start_is_added(view: MemoryView, listed: str, name: str) -> None:
    made = one(f"INTO o AS SELECT {listed} FROM d1 INTERVAL(10s)", view)
    assert (made.outputs[0].name, made.outputs[0].sql) == (name, "_wstart")


def test_names_are_the_tables_own(view: MemoryView) -> None:
    made = one(
        "TRIGGER AT_ONCE INTO o AS SELECT TS, a, x.O FROM DB.P x WHERE X.A > 1 AND now > ts", view
    )
    assert outputs(made) == [("Ts", "Ts", "TIMESTAMP"), ("A", "A", "INT"), ("o", "o", "BOOL")]
    assert made.where == "A > 1 AND now() > Ts" and made.source.table == "p"


def test_stars(view: MemoryView) -> None:
    rows = one("TRIGGER AT_ONCE INTO o AS SELECT * FROM met PARTITION BY tbname", view)
    assert [o.name for o in rows.outputs] == ["ts", "a", "b", "c", "d", "s", "f", "ta", "tb", "tn"]
    last = one("INTO o AS SELECT _wstart, last(*) FROM grp INTERVAL(1s)", view)
    assert [o.name for o in last.outputs] == ["_wstart", "last(ts)", "last(a)"]


def test_child_source(view: MemoryView) -> None:
    made = one("INTO o AS SELECT _wstart, count(*) FROM D1 INTERVAL(1s)", view)
    assert (made.source.kind, made.source.table, made.source.child, made.path) == (
        "child",
        "met",
        "d1",
        "scan",
    )


def test_tags_and_subtable(view: MemoryView) -> None:
    made = one(
        "INTO o TAGS(x VARCHAR(9), y INT) SUBTABLE(concat('t-', X, cast(a+1 AS VARCHAR(9)))) AS SELECT _wstart, count(*) FROM met "
        "PARTITION BY tb AS x, ta y, a + 1 INTERVAL(1s)",
        view,
    )
    assert made.target.tags == (
        Column("x", ColumnType("VARCHAR", length=9)),
        Column("y", ColumnType("INT")),
    )
    assert made.target.tag_of == (0, 1)
    assert made.target.subtable_sql == "concat('t-', _k0, CAST(_k2 AS VARCHAR(9)))"
    unkeyed = one("INTO o TAGS(x INT) AS SELECT _wstart, count(*) FROM met INTERVAL(1s)", view)
    assert unkeyed.target.tag_of == (None,)


def tags(made: StreamPlan) -> list[tuple[str, str, object]]:
    return [
        (t.name, str(t.type), origin)
        for t, origin in zip(made.target.tags, made.target.tag_of, strict=True)
    ]


@pytest.mark.parametrize(
    ("listed", "keys", "wanted"),
    [
        ("_wstart, count(*)", "tb", [("tb", "VARCHAR(20)", 0)]),
        (
            "_wstart, count(*)",
            "tbname AS meter, TA",
            [("meter", "VARCHAR(192)", 0), ("ta", "INT", 1)],
        ),
        ("_wstart, count(*)", "tbname", [("tag_tbname", "VARCHAR(192)", 0)]),
        ("_wstart, count(*), tbname tn", "tbname", [("tag_tbname", "VARCHAR(192)", 0)]),
        ("_wstart, ta, count(*)", "ta, tb", [("tb", "VARCHAR(20)", 1)]),
        ("_wstart, max(a) TA", "ta", [("tag_ta", "INT", 0)]),
        ("_wstart, max(a) ta, max(b) tag_ta", "ta", [("tag1_ta", "INT", 0)]),
        ("_wstart, count(*)", "a + b, a+b", [("a + b", "DOUBLE", 0), ("a+b", "DOUBLE", 1)]),
        ("_wstart, count(*)", "ta, TA", [("ta", "INT", 0), ("tag_ta", "INT", 1)]),
        (
            "_wstart, count(*)",
            "ta AS op, tb AS group_id, a AS _hash, b AS _late",
            [
                ("tag_op", "INT", 0),
                ("tag_group_id", "VARCHAR(20)", 1),
                ("tag__hash", "INT", 2),
                ("tag__late", "INT", 3),
            ],
        ),
    ],
)
def test_a_default_result_has_the_keys_as_tags(
    view: MemoryView, listed: str, keys: str, wanted: list[tuple[str, str, object]]
) -> None:
    made = one(f"INTO o AS SELECT {listed} FROM met PARTITION BY {keys} INTERVAL(1s)", view)
    assert tags(made) == [*wanted, ("group_id", "BIGINT UNSIGNED", "group_id")]


def test_names_of_keys_are_cut_and_more_keys_than_tags_are_no_fault(view: MemoryView) -> None:
    long = f"concat(tb, '{'x' * 80}')"
    made = one(
        f"INTO o AS SELECT _wstart, count(*) FROM met PARTITION BY {', '.join(['ta', long, long, *['tb'] * 140])} INTERVAL(1s)",
        view,
    )
    assert (
        len(made.target.tags) == 128
        and made.target.tag_of[-1] == "group_id"
        and len(made.keys) == 143
    )
    assert all(len(t.name.encode()) <= 64 for t in made.target.tags)
    assert len({t.name.lower() for t in made.target.tags}) == 128


def test_a_default_result_is_filled_again_by_the_names_of_its_tags(view: MemoryView) -> None:
    first = plan(
        "CREATE STREAM s1 INTO o AS SELECT _wstart, count(*) n FROM met PARTITION BY ta, tb INTERVAL(1s)",
        view,
    )
    assert first.new_target is not None
    view.add(dataclasses.replace(first.new_target, result_of=7))
    again = one(
        "INTO o AS SELECT _wstart, count(*) n FROM met PARTITION BY tb, tbname INTERVAL(1s)", view
    )
    assert tags(again) == [
        ("ta", "INT", None),
        ("tb", "VARCHAR(20)", 0),
        ("group_id", "BIGINT UNSIGNED", "group_id"),
    ]


def test_window_times_of_a_result_are_columns_where_there_is_no_window(view: MemoryView) -> None:
    first = plan(
        "CREATE STREAM s1 INTO o AS SELECT _wstart, _wend, _wduration, count(*) n FROM met PARTITION BY tb INTERVAL(1s)",
        view,
    )
    assert first.new_target is not None
    view.add(dataclasses.replace(first.new_target, result_of=7))
    made = one(
        "TRIGGER AT_ONCE INTO o2 AS SELECT _WSTART, _wend e, _wduration / 1000 d, n FROM o WHERE _wend > _wstart PARTITION BY tbname",
        view,
    )
    assert outputs(made)[:2] == [("_wstart", "_wstart", "TIMESTAMP"), ("e", "_wend", "TIMESTAMP")]
    assert made.window is None and made.where == "_wend > _wstart"
    every = one("TRIGGER AT_ONCE INTO o2 AS SELECT * FROM o PARTITION BY tbname", view)
    assert [o.name for o in every.outputs] == [
        "_wstart",
        "_wend",
        "_wduration",
        "n",
        "tb",
        "group_id",
    ]
    assert [t[0] for t in tags(every)] == ["tag_tbname", "tag_group_id"]
    with pytest.raises(SqlSemanticError, match="_wend needs a window"):
        one("TRIGGER AT_ONCE INTO o3 AS SELECT ts, _wend FROM met PARTITION BY tbname", view)


def test_json_key_becomes_text(view: MemoryView) -> None:
    made = one(
        "INTO o AS SELECT _wstart, j->'k' kk, count(*) FROM js PARTITION BY j->'k' INTERVAL(1s)",
        view,
    )
    assert made.keys[0].type == ColumnType("VARCHAR", length=4096)
    assert outputs(made)[1] == ("kk", "_k0", "VARCHAR(4096)")


def test_existing_targets(view: MemoryView) -> None:
    by_place = one(
        "INTO tgt AS SELECT count(*), max(a) FROM met PARTITION BY tbname INTERVAL(1s)", view
    )
    assert by_place.target.column_of == (
        "_wstart",
        "count(*)",
        "max(a)",
    ) and by_place.target.tag_of == (0,)
    by_name = one(
        "INTO tgt(TS, B) TAGS(TA) AS SELECT _wstart, max(a) x FROM met PARTITION BY tb ta INTERVAL(1s)",
        view,
    )
    assert by_name.target.column_of == ("_wstart", None, "x")
    assert (
        plan(
            "CREATE STREAM s1 INTO grp AS SELECT _wstart, count(*) FROM met PARTITION BY ta, tb INTERVAL(1s)",
            view,
        ).new_target
        is None
    )


def test_composite_keys(view: MemoryView) -> None:
    assert (
        one(
            "INTO o(w, k COMPOSITE KEY) AS SELECT _wstart, last(a) FROM met INTERVAL(1s)", view
        ).target.key_column
        == "k"
    )
    assert one("TRIGGER AT_ONCE INTO o AS SELECT ts, k, x FROM ck", view).target.key_column == "k"
    assert one("TRIGGER AT_ONCE INTO tck AS SELECT ts, k, x FROM ck", view).target.key_column == "k"


def test_options(view: MemoryView) -> None:
    made = one(
        "TRIGGER MAX_DELAY 6s WATERMARK 10s IGNORE EXPIRED 0 IGNORE UPDATE 0 DELETE_MARK 1s FILL_HISTORY 1 ASYNC INTO o AS "
        "SELECT _wstart, count(*) FROM met INTERVAL(1m)",
        view,
    )
    assert (made.trigger, made.watermark) == (
        Trigger("max_delay", Duration(6, "s")),
        Duration(10, "s"),
    )
    assert (
        made.ignore_expired,
        made.ignore_update,
        made.fill_history,
        made.fill_history_async,
    ) == (False, False, True, True)
    assert made.delete_mark == Duration(1, "m")


def test_continuous_takes_its_own_options(view: MemoryView) -> None:
    made = one(
        "TRIGGER CONTINUOUS_WINDOW_CLOSE INTO o AS SELECT _wstart, count(*) FROM met INTERVAL(1m)",
        view,
    )
    assert made.trigger.every == Duration(60, "m")
    assert (made.ignore_expired, made.ignore_update) == (False, False)


def test_fill_values(view: MemoryView) -> None:
    made = one(
        "INTO o AS SELECT _wstart, count(*), sum(a)+1, 5 k, tb FROM met PARTITION BY tb INTERVAL(1s) FILL(VALUE_F, 1, NULL)",
        view,
    )
    assert made.fill == Fill("value", (None, "1", "NULL", None, None))


def test_long_expressions_give_short_names(view: MemoryView) -> None:
    total = " + ".join(f"sum({c})" for c in "abcabcabc")
    made = one(f"INTO o AS SELECT _wstart, {total} FROM met INTERVAL(1s)", view)
    assert len(made.outputs[1].name.encode()) == 64


def test_time_zone_offsets_get_a_name(view: MemoryView) -> None:
    made = plan(
        "CREATE STREAM s1 INTO o AS SELECT _wstart, count(*) FROM met INTERVAL(1d)",
        view,
        timezone="+08:00",
    ).plan
    assert made.timezone == "Etc/GMT-8"
    for unknown in ("+05:30", "Mars/Olympus", "../etc/passwd"):
        with pytest.raises(SqlSemanticError) as caught:
            plan(
                "CREATE STREAM s1 INTO o AS SELECT _wstart, count(*) FROM met INTERVAL(1d)",
                view,
                timezone=unknown,
            )
        assert caught.value.code == "E_TIMEZONE"


def test_result_of_a_stream_is_a_source(view: MemoryView) -> None:
    view.add(dataclasses.replace(view.tables["db", "met"], name="res", result_of=3))
    assert (
        one("INTO o AS SELECT _wstart, count(*) FROM res INTERVAL(1s)", view).source.result_of == 3
    )


def test_notify(view: MemoryView) -> None:
    made = one(
        "INTO o AS SELECT _wstart, count(*) FROM met INTERVAL(1s) NOTIFY ('WS://h:1/x?k=v', 'wss://[::1]:8080') ON ('window_close') "
        "NOTIFY_HISTORY 1 ON_FAILURE DROP",
        view,
    )
    assert made.notify is not None
    assert (made.notify.on, made.notify.history, made.notify.on_failure) == (
        ("WINDOW_CLOSE",),
        True,
        "drop",
    )


def test_a_stream_without_a_result_table(view: MemoryView) -> None:
    planned = plan(
        "CREATE STREAM s1 AS SELECT sum(a) AS total, s FROM met PARTITION BY tbname STATE_WINDOW(s)"
        " NOTIFY ON ('WINDOW_CLOSE') WHERE total > 1",
        view,
    )
    made = planned.plan
    assert planned.new_target is None
    assert not made.target.stored and made.target.table_id == 0
    assert (made.target.database, made.target.table) == ("db", "s1")
    assert [c.name for c in made.target.columns] == ["_wstart", "total", "s"]
    assert made.notify is not None and made.notify.where == "total > 1"
    assert StreamPlan.from_json(made.to_json()) == made
    shown = explain(made)
    assert (
        "result   (_wstart TIMESTAMP, total BIGINT, s VARCHAR(20)) in the events of NOTIFY,"
        " in no table" in shown
    )
    assert not [line for line in shown if line.startswith(("tags", "children"))]
    assert not [line for line in shown if "MAX_DELAY" in line]


def test_a_table_called_as_the_stream_is_none_of_its_business(view: MemoryView) -> None:
    for name in ("used", "p", "met"):
        text = f"CREATE STREAM {name} FROM met INTERVAL(1s) NOTIFY ON ('WINDOW_OPEN')"
        made = plan(text, view).plan
        assert not made.target.stored
        assert outputs(made) == [
            ("_wstart", "_wstart", "TIMESTAMP"),
            ("count(*)", "_a0", "BIGINT"),
        ]


def test_a_stream_of_before_has_a_result_table(view: MemoryView) -> None:
    made = one("INTO o AS SELECT _wstart, count(*) FROM met INTERVAL(10s)", view)
    text = made.to_json().replace(',"stored":true', "")
    assert "stored" not in text and StreamPlan.from_json(text) == made


def test_json_round_trip(view: MemoryView) -> None:
    for text in (
        "INTO o AS SELECT _wstart, max(a), s FROM met PARTITION BY tbname INTERVAL(1d, 8h) SLIDING(1h) FILL(PREV)",
        "INTO o AS SELECT _wstart, count(*) FROM d1 EVENT_WINDOW START WITH a = 0 END WITH b = 9 AND c > 1 TRUE_FOR(3s)",
        "WATERMARK 1s INTO o AS SELECT _wstart, apercentile(a, 50, 't-digest') FROM d1 COUNT_WINDOW(4, 2)",
    ):
        made = one(text, view)
        assert StreamPlan.from_json(made.to_json()) == made


def test_event_columns(view: MemoryView) -> None:
    window = one(
        "INTO o AS SELECT _wstart, count(*) FROM d1 EVENT_WINDOW START WITH A = 0 END WITH b = 9 AND a > B",
        view,
    ).window
    assert window is not None and window.kind == "event"
    assert (window.start_columns, window.end_columns) == (("a",), ("b", "a"))


ODD_NAMES = [
    "now",
    "today",
    "timezone",
    "count",
    "interval",
    "select",
    "timestamp",
    "position",
    "trim",
    "1h",
    "e1",
    "a b",
    "it's",
    "null",
    "case",
    "true",
    "_c",
    "cast",
    "not",
    "desc",
    "Größe",
    "a.b",
    "a`b",
    "tbname1",
    "window",
    "match",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_canonical_text_means_the_same(name: str) -> None:
    """Every expression of a plan is compiled from its text again, whatever the columns are
    called.
    """
    column = "`" + name.replace("`", "``") + "`"
    where = f"{column} > -5 AND NOT ({column} IS NULL OR {column} * 2 = 4)"
    made = one(
        f"INTO o AS SELECT _wstart, sum({column}) x, max({column} - -1) FROM w WHERE {where} "
        f"PARTITION BY {column} % 3 INTERVAL(1s)",
        MemoryView(f"CREATE TABLE w (ts TIMESTAMP, {column} INT)"),
    )
    types = {c.name: c.type for c in made.source.columns}
    for sql in (made.where, made.keys[0].sql, *(a.sql for a in made.aggregates)):
        assert sql is not None
        assert to_sql(parse_expression(sql)) == sql
        compile_expression(sql, types)


def test_explain(view: MemoryView) -> None:
    made = one(
        "WATERMARK 5s INTO o AS SELECT _wstart, count(*) FROM met PARTITION BY ta INTERVAL(1d) SLIDING(1h)",
        view,
    )
    text = "\n".join(explain(made))
    assert "exchange" in text and "intervals of 1d, sliding by 1h" in text
    assert "warning: the open window is not shown" in text and "warning: IGNORE UPDATE is 1" in text


# ---------------------------------------------------------------- what is refused

AS = "AS SELECT _wstart, count(*) c1"
REFUSED: list[tuple[str, str]] = [
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT a FROM met INTERVAL(10s)"),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT _wstart FROM met INTERVAL(10s)"),
    (
        "E_UNSUPPORTED_QUERY",
        "INTO o AS SELECT _wstart, tbname tn FROM met PARTITION BY tbname INTERVAL(10s)",
    ),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT _wstart, a, max(a), min(b) FROM met INTERVAL(10s)"),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT _wstart, a, count(*) FROM met INTERVAL(10s)"),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT _wstart, count(DISTINCT a) FROM met INTERVAL(10s)"),
    (
        "E_UNSUPPORTED_QUERY",
        "INTO o AS SELECT _wstart, _group_key(a), count(*) FROM met INTERVAL(10s)",
    ),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT *, count(*) FROM met INTERVAL(10s)"),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT _wstart, sum(_wduration) FROM met INTERVAL(10s)"),
    ("E_UNSUPPORTED_QUERY", "TRIGGER AT_ONCE INTO o AS SELECT a, ts FROM d1"),
    ("E_UNSUPPORTED_QUERY", "TRIGGER AT_ONCE INTO o AS SELECT ts, a FROM met PARTITION BY ta"),
    ("E_UNSUPPORTED_QUERY", "TRIGGER AT_ONCE INTO o AS SELECT ts, j FROM js PARTITION BY tbname"),
    ("E_UNSUPPORTED_QUERY", "TRIGGER AT_ONCE INTO o AS SELECT ts, x FROM ck"),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT _wstart, last(j) FROM js INTERVAL(1s)"),
    (
        "E_UNSUPPORTED_QUERY",
        "INTO o AS SELECT _wstart, count(*) FROM js PARTITION BY j INTERVAL(1s)",
    ),
    ("E_UNSUPPORTED_QUERY", f"INTO o {AS} FROM information_schema.ins_tables INTERVAL(1s)"),
    ("E_UNSUPPORTED_QUERY", f"INTO o {AS} FROM met x JOIN d1 y ON x.ts = y.ts INTERVAL(1s)"),
    ("E_UNSUPPORTED_QUERY", f"INTO o {AS} FROM met INTERVAL(1s) LIMIT 3"),
    (
        "E_UNSUPPORTED_QUERY",
        f"INTO o {AS} FROM d1 INTERVAL(1s) UNION ALL SELECT _wstart, count(*) FROM d1 INTERVAL(1s)",
    ),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT DISTINCT _wstart, count(*) FROM met INTERVAL(1s)"),
    ("E_UNSUPPORTED_QUERY", f"INTO o {AS} FROM met WHERE a IN (SELECT 1) INTERVAL(1s)"),
    ("E_UNSUPPORTED_QUERY", "INTO o AS SELECT 1"),
    ("E_GROUP_BY", "INTO o AS SELECT count(*) FROM met GROUP BY ta"),
    ("E_HAVING", f"INTO o {AS} FROM met INTERVAL(1s) HAVING c1 > 1"),
    ("E_NONWINDOW_TRIGGER", "INTO o AS SELECT ts, a FROM d1"),
    ("E_NONWINDOW_TRIGGER", "TRIGGER MAX_DELAY 5s INTO o AS SELECT ts, a FROM d1"),
    ("E_NONWINDOW_AGG", "TRIGGER AT_ONCE INTO o AS SELECT last(ts), count(*) FROM met"),
    (
        "E_EVENT_NEEDS_TBNAME",
        f"INTO o {AS} FROM met PARTITION BY ta EVENT_WINDOW START WITH a = 0 END WITH a = 9",
    ),
    ("E_COUNT_NEEDS_TBNAME", f"WATERMARK 1s INTO o {AS} FROM met COUNT_WINDOW(3)"),
    ("E_STATE_NEEDS_TBNAME", f"INTO o {AS} FROM met STATE_WINDOW(a)"),
    ("E_WINDOW_ON_COMPOSITE_KEY", f"INTO o {AS} FROM ck STATE_WINDOW(x)"),
    ("E_COUNT_WATERMARK", f"WATERMARK 0s INTO o {AS} FROM d1 COUNT_WINDOW(3)"),
    (
        "E_COUNT_IGNORE_EXPIRED",
        f"WATERMARK 1s IGNORE EXPIRED 0 INTO o {AS} FROM d1 COUNT_WINDOW(3)",
    ),
    ("E_COUNT_SIZE", f"WATERMARK 1s INTO o {AS} FROM d1 COUNT_WINDOW(1)"),
    ("E_COUNT_SIZE", f"WATERMARK 1s INTO o {AS} FROM d1 COUNT_WINDOW(-3)"),
    ("E_COUNT_SLIDING", f"WATERMARK 1s INTO o {AS} FROM d1 COUNT_WINDOW(3, 4)"),
    ("E_COUNT_SLIDING", f"WATERMARK 1s INTO o {AS} FROM d1 COUNT_WINDOW(3, 0)"),
    (
        "E_FWC_FILL_HISTORY",
        f"TRIGGER FORCE_WINDOW_CLOSE FILL_HISTORY 1 INTO o {AS} FROM d1 INTERVAL(1s)",
    ),
    (
        "E_FWC_IGNORE_EXPIRED",
        f"TRIGGER FORCE_WINDOW_CLOSE IGNORE EXPIRED 0 INTO o {AS} FROM d1 INTERVAL(1s)",
    ),
    (
        "E_FWC_IGNORE_UPDATE",
        f"TRIGGER FORCE_WINDOW_CLOSE IGNORE UPDATE 0 INTO o {AS} FROM d1 INTERVAL(1s)",
    ),
    ("E_FWC_SLIDING", f"TRIGGER FORCE_WINDOW_CLOSE INTO o {AS} FROM d1 INTERVAL(2s) SLIDING(1s)"),
    (
        "E_FWC_WINDOW",
        f"TRIGGER FORCE_WINDOW_CLOSE INTO o {AS} FROM d1 EVENT_WINDOW START WITH a = 0 END WITH a = 9",
    ),
    ("E_FWC_FILL_MODE", f"TRIGGER FORCE_WINDOW_CLOSE INTO o {AS} FROM d1 INTERVAL(1s) FILL(NEXT)"),
    (
        "E_FWC_NEEDS_TBNAME",
        f"TRIGGER FORCE_WINDOW_CLOSE INTO o {AS} FROM met PARTITION BY ta INTERVAL(1s)",
    ),
    (
        "E_CWC_WINDOW",
        f"TRIGGER CONTINUOUS_WINDOW_CLOSE IGNORE UPDATE 0 IGNORE EXPIRED 0 INTO o {AS} FROM d1 COUNT_WINDOW(3)",
    ),
    ("E_FWC_WINDOW", f"TRIGGER FORCE_WINDOW_CLOSE INTO o {AS} FROM met COUNT_WINDOW(3)"),
    (
        "E_CWC_RECALC_MIN",
        f"TRIGGER CONTINUOUS_WINDOW_CLOSE RECALCULATE 599s INTO o {AS} FROM d1 INTERVAL(1s)",
    ),
    ("E_MAX_DELAY_MIN", f"TRIGGER MAX_DELAY 4999a INTO o {AS} FROM d1 INTERVAL(1s)"),
    ("E_FORBIDDEN_FUNC", "TRIGGER AT_ONCE INTO o AS SELECT ts, diff(a) FROM d1"),
    ("E_FORBIDDEN_FUNC", "INTO o AS SELECT _wstart, 1 + twa(a) FROM d1 INTERVAL(1s)"),
    ("E_SUBTABLE_TYPE", f"INTO o SUBTABLE(ta) {AS} FROM met PARTITION BY ta INTERVAL(1s)"),
    ("E_SUBTABLE_TYPE", f"INTO o SUBTABLE(tn) {AS} FROM met PARTITION BY tn INTERVAL(1s)"),
    (
        "E_SUBTABLE_COLUMN",
        f"INTO o SUBTABLE(concat(tb, s)) {AS} FROM met PARTITION BY tb INTERVAL(1s)",
    ),
    ("E_SUBTABLE_COLUMN", f"INTO o SUBTABLE(tbname) {AS} FROM met PARTITION BY tb INTERVAL(1s)"),
    ("E_TAG_NOT_IN_PARTITION", f"INTO o TAGS(zz INT) {AS} FROM met PARTITION BY ta INTERVAL(1s)"),
    ("E_TARGET_EXISTS", f"INTO tgt TAGS(ta INT) {AS} FROM met PARTITION BY ta INTERVAL(1s)"),
    ("E_TARGET_NOT_STABLE", f"INTO p {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_NOT_STABLE", f"INTO d1 {AS} FROM p INTERVAL(1s)"),
    ("E_TARGET_NOT_STABLE", f"INTO v1 {AS} FROM p INTERVAL(1s)"),
    ("E_TARGET_COLUMNS", f"INTO o(a, b, c) {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_COLUMNS", f"INTO tgt {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_COLUMNS", f"INTO tgt(ts, zz) {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_COLUMNS", f"INTO tgt(ts, ts) {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_COLUMNS", f"INTO tgt(b, ts) {AS} FROM met INTERVAL(1s)"),
    (
        "E_TARGET_COLUMNS",
        "INTO o(w, k COMPOSITE KEY) AS SELECT _wstart, avg(a) FROM met INTERVAL(1s)",
    ),
    ("E_TARGET_COLUMNS", f"INTO o(w COMPOSITE KEY, k) {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_COLUMNS", f"INTO tck(ts, x) {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_TAGS", f"INTO grp TAGS(zz) {AS} FROM met PARTITION BY ta zz INTERVAL(1s)"),
    (
        "E_TARGET_TAGS",
        "INTO tgt AS SELECT _wstart, max(a), max(b) FROM met PARTITION BY ta, tb INTERVAL(1s)",
    ),
    ("E_TARGET_NO_TS", f"INTO tgt(a, b) {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_IN_USE", f"INTO used {AS} FROM met INTERVAL(1s)"),
    ("E_TARGET_IS_SOURCE", f"INTO grp {AS} FROM grp INTERVAL(1s)"),
    ("E_TABLE_NOT_EXIST", f"INTO o {AS} FROM nope INTERVAL(1s)"),
    ("E_TABLE_NOT_EXIST", f"INTO o TAGS(ta) {AS} FROM met PARTITION BY ta INTERVAL(1s)"),
    ("E_DATABASE_NOT_EXIST", f"INTO o {AS} FROM nodb.met INTERVAL(1s)"),
    ("E_DATABASE_NOT_EXIST", f"INTO nodb.o {AS} FROM met INTERVAL(1s)"),
    ("E_STREAM_DATABASE", f"CREATE STREAM us.s1 INTO o {AS} FROM met INTERVAL(1s)"),
    ("E_SLIDING_GT_INTERVAL", f"INTO o {AS} FROM met INTERVAL(1n) SLIDING(2n)"),
    ("E_SLIDING_TOO_SMALL", f"INTO o {AS} FROM met INTERVAL(1d) SLIDING(1a)"),
    ("E_SLIDING_UNIT", f"INTO o {AS} FROM met INTERVAL(40d) SLIDING(1n)"),
    ("E_INTERVAL_TOO_SMALL", f"INTO o {AS} FROM met INTERVAL(9a)"),
    ("E_INTERVAL_TOO_SMALL", f"INTO o {AS} FROM met INTERVAL(100u)"),
    ("E_INTERVAL_PRECISION", f"INTO o {AS} FROM met INTERVAL(10500u)"),
    ("E_OFFSET_GE_INTERVAL", f"INTO o {AS} FROM met INTERVAL(1s, 1s)"),
    ("E_OFFSET_AUTO", f"INTO o {AS} FROM met INTERVAL(1s, AUTO)"),
    ("E_OFFSET_UNIT", f"INTO o {AS} FROM met INTERVAL(1y, 1n)"),
    ("E_SESSION_COLUMN", f"INTO o {AS} FROM met SESSION(a, 1s)"),
    ("E_SESSION_GAP", f"INTO o {AS} FROM met SESSION(ts, 0s)"),
    ("E_SESSION_GAP", f"INTO o {AS} FROM met SESSION(ts, 1n)"),
    ("E_STATE_TYPE", f"INTO o {AS} FROM d1 STATE_WINDOW(d)"),
    ("E_STATE_COLUMN", f"INTO o {AS} FROM d1 STATE_WINDOW(ta)"),
    ("E_EVENT_CONDITION", f"INTO o {AS} FROM d1 EVENT_WINDOW START WITH s END WITH a = 1"),
    ("E_FILL_WINDOW", f"INTO o {AS} FROM d1 SESSION(ts, 1s) FILL(NULL)"),
    ("E_FILL_VALUES", f"INTO o {AS} FROM d1 INTERVAL(1s) FILL(VALUE, 1, 2)"),
    ("E_FILL_VALUES", f"INTO o {AS} FROM d1 INTERVAL(1s) FILL(VALUE, 'abc')"),
    ("E_FILL_VALUES", f"INTO o {AS} FROM d1 INTERVAL(1s) FILL(VALUE, now)"),
    ("E_DURATION", f"WATERMARK 1n INTO o {AS} FROM d1 INTERVAL(1s)"),
    ("E_DUPLICATE_COLUMN", "INTO o AS SELECT _wstart, max(a), MAX(a) FROM met INTERVAL(1s)"),
    ("E_DUPLICATE_COLUMN", "INTO o AS SELECT _wstart, max(a) group_id FROM met INTERVAL(1s)"),
    ("E_DUPLICATE_COLUMN", f"INTO o TAGS(c1 INT) {AS} FROM met PARTITION BY ta c1 INTERVAL(1s)"),
    (
        "E_RESERVED_NAME",
        "INTO o AS SELECT _wstart, tbname, count(*) FROM met PARTITION BY tbname INTERVAL(1s)",
    ),
    ("E_RESERVED_NAME", "INTO o AS SELECT _wstart, count(*) Op FROM met INTERVAL(1s)"),
    ("E_NAME_LENGTH", f"INTO {'t' * 193} {AS} FROM met INTERVAL(1s)"),
    ("E_NAME_LENGTH", f"CREATE STREAM {'s' * 193} INTO o {AS} FROM met INTERVAL(1s)"),
    ("E_NAME_LENGTH", f"INTO o AS SELECT _wstart, count(*) {'c' * 65} FROM met INTERVAL(1s)"),
    ("E_RESULT_TOO_LONG", "INTO tgt(ts, a) AS SELECT _wstart, first(big) FROM p INTERVAL(1s)"),
    ("E_VTABLE_WATERMARK", f"WATERMARK 1s INTO o {AS} FROM v1 INTERVAL(1s)"),
    ("E_VTABLE_DISORDER", f"IGNORE EXPIRED 0 INTO o {AS} FROM v1 INTERVAL(1s)"),
    ("E_VTABLE_DISORDER", f"IGNORE UPDATE 0 INTO o {AS} FROM v1 INTERVAL(1s)"),
    ("E_VTABLE_FILL_HISTORY", f"FILL_HISTORY 1 INTO o {AS} FROM v1 INTERVAL(1s)"),
    ("E_VTABLE_TRIGGER", f"TRIGGER CONTINUOUS_WINDOW_CLOSE INTO o {AS} FROM v1 INTERVAL(1s)"),
    ("E_VTABLE_COUNT_WINDOW", f"INTO o {AS} FROM v1 COUNT_WINDOW(3)"),
    ("E_NOTIFY_URL", f"INTO o {AS} FROM met INTERVAL(1s) NOTIFY ('ftp://h:1') ON ('WINDOW_OPEN')"),
    ("E_NOTIFY_URL", f"INTO o {AS} FROM met INTERVAL(1s) NOTIFY ('ws://h/x') ON ('WINDOW_OPEN')"),
    ("E_NOTIFY_URL", f"INTO o {AS} FROM met INTERVAL(1s) NOTIFY ('ws://:80/x') ON ('WINDOW_OPEN')"),
    (
        "E_NOTIFY_URL",
        f"INTO o {AS} FROM met INTERVAL(1s) NOTIFY ('ws://h:99999') ON ('WINDOW_OPEN')",
    ),
    (
        "E_NOTIFY_URL",
        f"INTO o {AS} FROM met INTERVAL(1s) NOTIFY ('ws://h:1/{'x' * 120}') ON ('WINDOW_OPEN')",
    ),
    (
        "E_NOTIFY_KEY",
        f"INTO o {AS} FROM met INTERVAL(1s) NOTIFY ('http://h') ON ('WINDOW_OPEN') SIGNED_BY '/etc/passwd'",
    ),
    (
        "E_NOTIFY_EVENT",
        f"INTO o {AS} FROM met INTERVAL(1s) NOTIFY ('ws://h:1') ON ('WINDOW_INVALIDATION')",
    ),
    (
        "E_NOTIFY_WHERE",
        f"INTO o {AS} FROM met INTERVAL(1s) NOTIFY ON ('WINDOW_CLOSE') WHERE now > _wstart",
    ),
    (
        "E_NOTIFY_WINDOW",
        "TRIGGER AT_ONCE INTO o AS SELECT ts, a FROM d1 NOTIFY ('ws://h:1') ON ('WINDOW_OPEN')",
    ),
    ("E_NOTIFY_WINDOW", "TRIGGER AT_ONCE AS SELECT ts, a FROM d1 NOTIFY ON ('WINDOW_OPEN')"),
    ("E_NOTIFY_ONLY", f"{AS} FROM met INTERVAL(1s) FILL(PREV) NOTIFY ON ('WINDOW_CLOSE')"),
    ("E_NOTIFY_ONLY", "TRIGGER MAX_DELAY 5s FROM met INTERVAL(1s) NOTIFY ON ('WINDOW_CLOSE')"),
    ("E_UNKNOWN_COLUMN", "TRIGGER AT_ONCE FROM met NOTIFY ON ('WINDOW_CLOSE')"),
    (
        "E_DUPLICATE_COLUMN",
        "AS SELECT _wstart, sum(a) x, sum(b) x FROM met INTERVAL(1s) NOTIFY ON ('WINDOW_CLOSE')",
    ),
    ("E_OPTION_TWICE", f"IGNORE UPDATE 0 IGNORE UPDATE 0 INTO o {AS} FROM met INTERVAL(1s)"),
    ("E_TYPE", "INTO o AS SELECT _wstart, sum(s) FROM met INTERVAL(1s)"),
    ("E_TYPE", "INTO o AS SELECT _wstart, max(v) FROM p INTERVAL(1s)"),
    ("E_TYPE", f"INTO o {AS} FROM met WHERE s INTERVAL(1s)"),
    ("E_AGGREGATE_HERE", "INTO o AS SELECT _wstart, sum(max(a)) FROM met INTERVAL(1s)"),
    ("E_AGGREGATE_HERE", f"INTO o {AS} FROM met WHERE count(*) > 1 INTERVAL(1s)"),
    ("E_UNKNOWN_COLUMN", f"INTO o {AS} FROM met WHERE aa > 1 INTERVAL(1s)"),
    ("E_UNKNOWN_COLUMN", f"INTO o {AS} FROM met x WHERE met.a > 1 INTERVAL(1s)"),
    ("E_FUNCTION_ARGUMENT", "INTO o AS SELECT _wstart, apercentile(a, 101) FROM met INTERVAL(1s)"),
    ("E_FUNCTION_ARGUMENT", "INTO o AS SELECT _wstart, sum(*) FROM met INTERVAL(1s)"),
]


@pytest.mark.parametrize(
    ("code", "text"), REFUSED, ids=[f"{i}-{c}" for i, (c, _) in enumerate(REFUSED)]
)
def test_refused(view: MemoryView, code: str, text: str) -> None:
    with pytest.raises(SqlError) as caught:
        one(text, view)
    error = caught.value
    assert error.code == code, str(error)
    assert error.line == 1 and error.column >= 1 and "^" in error.snippet and error.hint
    assert "{" not in error.message + error.hint


def test_every_refusal_is_tested() -> None:
    given_elsewhere = {"E_NO_DATABASE", "E_TIMEZONE"}
    assert set(REFUSALS) - {code for code, _ in REFUSED} == given_elsewhere


def test_no_database_in_use(view: MemoryView) -> None:
    from penstock.sql.parser import parse_one
    from penstock.sql.planner import plan_stream
    from penstock.sql.statements import CreateStream

    statement = parse_one(f"CREATE STREAM s1 INTO o {AS} FROM met INTERVAL(1s)")
    assert isinstance(statement, CreateStream)
    with pytest.raises(SqlSemanticError) as caught:
        plan_stream(statement, view, database=None, stream_id=1, target_id=2)
    assert caught.value.code == "E_NO_DATABASE"


def test_place_in_a_long_statement(view: MemoryView) -> None:
    with pytest.raises(SqlSemanticError) as caught:
        one(
            "CREATE STREAM s1\n  TRIGGER AT_ONCE\n  INTO o\nAS SELECT _wstart,\n  elapsed(ts)\nFROM met INTERVAL(1s)",
            view,
        )
    assert (caught.value.line, caught.value.column) == (5, 3)
    assert caught.value.snippet == "  elapsed(ts)\n  ^^^^^^^^^^^"


def test_or_replace_may_keep_its_target(view: MemoryView) -> None:
    one(
        "CREATE OR REPLACE STREAM other INTO used AS SELECT _wstart, count(*) FROM met INTERVAL(1s)",
        view,
    )
