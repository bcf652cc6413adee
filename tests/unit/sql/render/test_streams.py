"""Text of statements about streams."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.compile.expression import parse_expression
from penstock.sql.parsers.query import QueryParser
from penstock.sql.plan import Duration, Trigger
from penstock.sql.render import streams as family
from penstock.sql.render.parts import render
from penstock.types import ColumnType
from tests.unit.sql.reading import read

S = st.Name("s", "d")
SECOND = Duration(1, "s")


def query(text: str = "SELECT a FROM t") -> Any:
    return read(QueryParser, text, QueryParser.query)


def stream(**more: Any) -> st.CreateStream:
    return st.CreateStream(**{"stream": S, "target": st.Name("o"), "query": query(), **more})


def options(**given: Any) -> st.CreateStream:
    return stream(options=st.StreamOptions(**given))


TAIL = "INTO o AS SELECT a FROM t"
STATEMENTS: list[tuple[st.Statement, str]] = [
    (stream(), f"CREATE STREAM d.s {TAIL}"),
    (stream(or_replace=True), f"CREATE OR REPLACE STREAM d.s {TAIL}"),
    (stream(if_not_exists=True), f"CREATE STREAM IF NOT EXISTS d.s {TAIL}"),
    (
        options(trigger=Trigger("max_delay", SECOND), watermark=SECOND),
        f"CREATE STREAM d.s TRIGGER MAX_DELAY 1s WATERMARK 1s {TAIL}",
    ),
    (
        options(trigger=Trigger("continuous_window_close", SECOND)),
        f"CREATE STREAM d.s TRIGGER CONTINUOUS_WINDOW_CLOSE RECALCULATE 1s {TAIL}",
    ),
    (
        options(trigger=Trigger("at_once"), ignore_expired=False, ignore_update=True),
        f"CREATE STREAM d.s TRIGGER AT_ONCE IGNORE EXPIRED 0 IGNORE UPDATE 1 {TAIL}",
    ),
    (
        options(delete_mark=SECOND, fill_history=True, fill_history_async=True),
        f"CREATE STREAM d.s DELETE_MARK 1s FILL_HISTORY 1 ASYNC {TAIL}",
    ),
    (
        options(idle_timeout=SECOND, on_error="stop", max_results=5, max_state=0),
        f"CREATE STREAM d.s IDLE_TIMEOUT 1s ON_ERROR STOP MAX_RESULTS 5 MAX_STATE 0 {TAIL}",
    ),
    (
        stream(
            target_columns=(st.TargetColumn("a"), st.TargetColumn("b c", True)),
            tags=(st.TargetTag("t", ColumnType("INT"), "c"), st.TargetTag("u")),
            subtable=parse_expression("concat('x', t)"),
        ),
        "CREATE STREAM d.s INTO o (a, `b c` COMPOSITE KEY) TAGS (t INT COMMENT 'c', u)"
        " SUBTABLE(concat('x', t)) AS SELECT a FROM t",
    ),
    (
        stream(notify=st.NotifyClause(("ws://a:1",), ("WINDOW_OPEN",), True, "drop")),
        f"CREATE STREAM d.s {TAIL} NOTIFY ('ws://a:1') ON ('WINDOW_OPEN') NOTIFY_HISTORY 1"
        " ON_FAILURE DROP",
    ),
    (
        stream(notify=st.NotifyClause((), ("WINDOW_OPEN", "WINDOW_CLOSE"))),
        f"CREATE STREAM d.s {TAIL} NOTIFY ON ('WINDOW_OPEN', 'WINDOW_CLOSE')",
    ),
    (
        stream(target=None, notify=st.NotifyClause((), ("WINDOW_OPEN",))),
        "CREATE STREAM d.s AS SELECT a FROM t NOTIFY ON ('WINDOW_OPEN')",
    ),
    (
        stream(
            notify=st.NotifyClause(
                (), ("WINDOW_CLOSE",), True, where=parse_expression("`a b` > 5 AND c = 'x'")
            )
        ),
        f"CREATE STREAM d.s {TAIL} NOTIFY ON ('WINDOW_CLOSE') WHERE `a b` > 5 AND c = 'x'"
        " NOTIFY_HISTORY 1",
    ),
    (st.Explain(statement=stream()), f"EXPLAIN CREATE STREAM d.s {TAIL}"),
    (st.Explain(statement=st.Query(query=query())), "EXPLAIN SELECT a FROM t"),
    (st.PauseStream(stream=S), "PAUSE STREAM d.s"),
    (st.PauseStream(stream=S, if_exists=True), "PAUSE STREAM IF EXISTS d.s"),
    (
        st.ResumeStream(stream=S, if_exists=True, ignore_untreated=True),
        "RESUME STREAM IF EXISTS IGNORE UNTREATED d.s",
    ),
    (st.FlushStream(stream=S), "FLUSH STREAM d.s"),
    (st.RecalculateStream(stream=S, begin=5), "RECALCULATE STREAM d.s FROM 5"),
    (
        st.RecalculateStream(
            stream=S, begin="2024-01-01", until=st.RelativeTime("now", ((-1, SECOND),))
        ),
        "RECALCULATE STREAM d.s FROM '2024-01-01' TO now - 1s",
    ),
    (
        st.AlterStream(stream=S, options=st.StreamOptions(max_state=5)),
        "ALTER STREAM d.s MAX_STATE 5",
    ),
]


@pytest.mark.parametrize(("statement", "text"), STATEMENTS, ids=[s[1] for s in STATEMENTS])
def test_a_statement_has_one_text_that_is_read_back(statement: st.Statement, text: str) -> None:
    assert render(statement) == text
    assert parse_one(text) == statement


def test_every_statement_about_streams_has_a_case() -> None:
    made = {type(statement) for statement, _ in STATEMENTS}
    own = {k for k, f in render.registry.items() if f.__module__ == family.__name__}
    assert own == made
