"""Streams as TDengine has them since 3.3.7: recognised, and written as they are written here."""

from __future__ import annotations

import pytest

from penstock.errors import SqlSyntaxError
from penstock.sql import parse, parse_one
from penstock.sql.statements import CreateStream

BEGIN = "write it as in 3.3.6, with the window in the query: "


@pytest.mark.parametrize(
    ("newer", "column", "older"),
    [
        (
            "CREATE STREAM s INTERVAL(1m) SLIDING(1m) FROM t PARTITION BY tbname"
            " STREAM_OPTIONS(WATERMARK(5s)) INTO r AS SELECT _twstart, avg(a) FROM %%trows",
            17,
            "CREATE STREAM s WATERMARK 5s INTO r AS SELECT _wstart, avg(a) FROM t"
            " PARTITION BY tbname INTERVAL(1m) SLIDING(1m)",
        ),
        (
            "CREATE STREAM IF NOT EXISTS d.s EVENT_WINDOW(START WITH a > 1 END WITH a < (1))"
            " TRUE_FOR(5s) FROM d.t PARTITION BY tbname STREAM_OPTIONS(MAX_DELAY(5s)) INTO d.r"
            " AS SELECT _twstart AS ts, avg(a) FROM %%tbname WHERE ts >= _twstart",
            33,
            "CREATE STREAM IF NOT EXISTS d.s TRIGGER MAX_DELAY 5s INTO d.r AS SELECT _wstart AS ts,"
            " avg(a) FROM d.t PARTITION BY tbname EVENT_WINDOW START WITH a > 1 END WITH a < (1)"
            " TRUE_FOR(5s)",
        ),
        (
            "create stream s session(ts, 1m) from t into r as select _twend, count(*) from %%trows",
            17,
            "CREATE STREAM s into r AS SELECT _wend, count(*) FROM t session(ts, 1m)",
        ),
        (
            "CREATE STREAM s PERIOD(10s) INTO r AS SELECT count(*) FROM t",
            17,
            "CREATE STREAM s TRIGGER FORCE_WINDOW_CLOSE INTO r AS SELECT count(*) FROM t"
            " INTERVAL(10s)",
        ),
        (
            "CREATE STREAM s SLIDING(10s) FROM t INTO r AS SELECT _tcurrent_ts, avg(a) FROM %%trows",
            17,
            "CREATE STREAM s INTO r AS SELECT _wend, avg(a) FROM t INTERVAL(10s)",
        ),
        (
            "CREATE STREAM s INTO r OUTPUT_SUBTABLE(concat('x', %%tbname)) AS SELECT avg(a) FROM t"
            " INTERVAL(1m)",
            24,
            "CREATE STREAM s INTO r SUBTABLE(concat('x', tbname)) AS SELECT avg(a) FROM t"
            " INTERVAL(1m)",
        ),
        (
            "CREATE OR REPLACE STREAM s COUNT_WINDOW(4) FROM t INTO r AS SELECT sum(a) FROM %%trows",
            28,
            "CREATE STREAM s INTO r AS SELECT sum(a) FROM t COUNT_WINDOW(4)",
        ),
    ],
)
def test_the_older_form_is_in_the_hint_and_can_be_read(newer: str, column: int, older: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(newer)
    error = caught.value
    assert error.message == "this is the stream syntax of TDengine 3.3.7 and later"
    assert (error.line, error.column) == (1, column)
    assert error.hint == BEGIN + older
    assert isinstance(parse_one(older), CreateStream)


@pytest.mark.parametrize(
    ("newer", "hint"),
    [
        (
            "CREATE STREAM s INTERVAL(1m) SLIDING(1m) FROM t PARTITION BY tbname AS m"
            " NOTIFY('ws://h:1/x', 'ws://i:2') ON(WINDOW_OPEN|WINDOW_CLOSE)",
            "the window stands behind the table: CREATE STREAM s FROM t PARTITION BY tbname AS m"
            " INTERVAL(1m) SLIDING(1m) NOTIFY ('ws://h:1/x', 'ws://i:2')"
            " ON ('WINDOW_OPEN', 'WINDOW_CLOSE')",
        ),
        (
            "CREATE STREAM s STATE_WINDOW(a) FROM t PARTITION BY tbname NOTIFY('ws://h:1')",
            "the window stands behind the table: CREATE STREAM s FROM t PARTITION BY tbname"
            " STATE_WINDOW(a) NOTIFY ('ws://h:1') ON ('WINDOW_CLOSE')",
        ),
        (
            "CREATE STREAM s SESSION(ts, 1m) FROM t NOTIFY('ws://h:1') ON(WINDOW_CLOSE)"
            " AS SELECT avg(a) FROM %%trows",
            f"{BEGIN}CREATE STREAM s AS SELECT avg(a) FROM t SESSION(ts, 1m)"
            " NOTIFY ('ws://h:1') ON ('WINDOW_CLOSE')",
        ),
        (
            "CREATE STREAM s FROM t SESSION(ts, 1m) NOTIFY('ws://h:1') ON(WINDOW_CLOSE)"
            " INTO r AS SELECT avg(a) FROM %%trows",
            f"{BEGIN}CREATE STREAM s INTO r AS SELECT avg(a) FROM t SESSION(ts, 1m)"
            " NOTIFY ('ws://h:1') ON ('WINDOW_CLOSE')",
        ),
    ],
)
def test_events_without_a_table_are_told_of_here_too(newer: str, hint: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(newer)
    assert caught.value.hint == hint
    assert isinstance(parse_one(hint[hint.index("CREATE") :]), CreateStream)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM s FROM t INTO",
        "CREATE STREAM s INTERVAL(",
        "CREATE STREAM s INTO %%",
        "CREATE STREAM s PERIOD",
    ],
)
def test_half_a_statement_is_recognised_too(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match=r"3\.3\.7"):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM",
        "CREATE STREAM s",
        "CREATE STREAM s WATERMARK 5s",
        "CREATE STREAM s.x INT",
        "CREATE STREAM s FROM",
        "CREATE STREAM s FROM t INTERVAL(1m) NOTIFY",
    ],
)
def test_an_error_of_the_older_form_stays(text: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(text)
    assert "3.3.7" not in caught.value.message
